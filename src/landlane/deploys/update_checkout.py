"""Update a checkout to the target branch, and run its checks again.

An update is a merge or a rebase that either succeeds or is rolled back completely. After a conflict the tree
is as before, and the error names the paths and the commits that conflict.
"""

from __future__ import annotations

import os
from contextlib import suppress
from enum import StrEnum

from landlane.deploys.sync import (
    MOST_SHOWN,
    Position,
    commits_in,
    dirty_error,
    find_position,
    list_changes,
    position_facts,
    sync,
)
from landlane.errors import LandlaneError, Malformed, NotAllowed, RepositoryError, Stale
from landlane.git import trial_merge as trials
from landlane.git.commit_paths import operation_under_way
from landlane.git.commits import is_ancestor
from landlane.git.create_checkout import base_ref
from landlane.git.lock import git_lock
from landlane.git.run import git_failed, run_in, try_git_output
from landlane.git.target import find_target
from landlane.git.tree_diff import find_untracked_in_the_way, list_changed_paths
from landlane.landing.combine import merge_files_by_kind
from landlane.processes.child import Child
from landlane.sandbox.sandboxed_check import CheckCommand, CheckPlaces, run_sandboxed_check
from landlane.settings.model import LandingCheck
from landlane.tasks.git_evidence import CheckRun
from landlane.tasks.model import branch_of
from landlane.tasks.records import get_task
from landlane.values import replace, value
from landlane.workspaces.committed_settings import read_at
from landlane.workspaces.records import list_open
from landlane.workspaces.records import update as update_workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from landlane.git.discovery import Checkout
    from landlane.repository import Repository
    from landlane.sessions.model import Session

    Tick = Callable[[], None]


class UpdateMethod(StrEnum):
    """How the commits of the target get into the checkout."""

    MERGE = "merge"
    REBASE = "rebase"


MERGE, REBASE = UpdateMethod
_TAIL = 4000
_UPDATE_SECONDS = 1800.0  # hooks of the project may run in the meantime
# The user's git settings must not make an update stash, squash or move other branches.
_PLAIN_SETTINGS = (
    *("-c", "merge.autoStash=false", "-c", "rebase.autoStash=false", "-c", "rebase.updateRefs=false"),
    *("-c", "rebase.autoSquash=false", "-c", "rebase.rebaseMerges=false", "-c", "merge.stat=false"),
    *("-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "advice.mergeConflict=false"),
)


@value
class Update:
    """A finished update: its method, the commit before it, and the results of the checks after it."""

    method: UpdateMethod
    before: str
    position: Position
    checks: tuple[dict[str, Any], ...] = ()


def update(
    repo: Repository, session: Session, how: str, *, is_checked: bool = True, on_tick: Tick = lambda: None
) -> Update:
    """Merge the target into the checkout or rebase the checkout onto it, and run the checks again.

    Raises:
        Malformed: there is no such method.
        RepositoryError: the target cannot be fetched, or git refuses.
        LandlaneError: the checkout has uncommitted or unfinished work, or the two sides conflict.
        NotAllowed: it would not move the target branch forward.
    """
    if how not in list(UpdateMethod):
        raise Malformed(
            f"--update {how[:40]} is not valid; use merge or rebase",
            code="BAD_UPDATE",
            hint="use merge or rebase",
            unknown=how,
            example="rebase",
        )
    method = UpdateMethod(how)
    before = sync(repo)
    _check_updatable(repo, before)
    if not before.behind:
        return Update(method=method, before=before.head, position=before)
    with git_lock(repo.common_dir, f"sync {before.branch}", on_wait=repo.report):
        # The checkout may have changed during the wait for the lock.
        if _read_head(repo.checkout) != (before.branch, before.head):
            raise Stale(
                f"{before.branch} moved while it was to be updated",
                code="BRANCH_MOVED",
                hint="another session works in this checkout; try again",
            )
        _check_updatable(repo, before)
        _merge_or_rebase(repo, before, method)
    after = find_position(repo, find_target(repo.home, repo.settings), is_fetched=True)
    _record_base(repo, session, before.tip)
    checks = _run_checks(repo, before.branch, on_tick) if is_checked else ()
    return Update(method=method, before=before.head, position=after, checks=checks)


def _read_head(here: Checkout) -> tuple[str, str]:
    """Return the branch and the commit of a checkout."""
    branch = try_git_output(here, "symbolic-ref", "--quiet", "--short", "HEAD")
    return branch, try_git_output(here, "rev-parse", "HEAD")


def _check_updatable(repo: Repository, position: Position) -> None:
    if verb := operation_under_way(repo.checkout):
        raise LandlaneError(
            f"a {verb} is unfinished here",
            code="UNFINISHED",
            hint=f"end it first: git {verb} --continue, or git {verb} --abort",
        )
    if not position.branch:
        raise LandlaneError(
            "no branch is checked out here, so that an update would be lost",
            code="NO_BRANCH_HERE",
            hint="git switch BRANCH first",
        )
    if changed := list_changes(repo.checkout, with_untracked=False):
        raise dirty_error(changed, "commit it with `landlane commit`, or put it aside: `landlane stash save`")
    if position.behind and position.branch == position.target and position.ahead:
        raise NotAllowed(
            f"{position.target} itself has {position.ahead} of its own that {position.place} lacks",
            code="TARGET_DIVERGED",
            hint="the target only moves forward: move your commits to a branch, and `landlane land` it",
            **position_facts(position),
        )


def _merge_or_rebase(repo: Repository, before: Position, method: UpdateMethod) -> None:
    """Merge or rebase; if it fails or is interrupted, restore the tree."""
    here = repo.checkout
    _check_nothing_overwritten(here, before)
    is_target = before.branch == before.target
    merged = _merge_files_by_kind(repo, before) if method == MERGE and not is_target else ""
    if is_target or merged:
        words = ("merge", "--quiet", "--ff-only", merged or before.tip)
    elif method == MERGE:
        words = ("merge", "--quiet", "--ff", "--no-edit", "-m", f"Merge {before.place} into {before.branch}")
        words += (before.tip,)
    else:
        words = ("rebase", "--quiet", before.tip)
    editor = {"GIT_EDITOR": "true", "GIT_SEQUENCE_EDITOR": "true", "GIT_OPTIONAL_LOCKS": "1"}
    try:
        result = run_in(here, *_PLAIN_SETTINGS, *words, limit_seconds=_UPDATE_SECONDS, variables=editor)
    except BaseException:
        _roll_back(here, before)
        raise
    if result.exit_code:
        conflicts = try_git_output(here, "diff", "--name-only", "--diff-filter=U", "-z").split("\0")
        _roll_back(here, before)
        if not any(conflicts):
            raise git_failed(words, result)
        raise _conflict(here, before, method, [path for path in conflicts if path])


def _merge_files_by_kind(repo: Repository, before: Position) -> str:
    """Return a merge commit with files merged by their kind, as in the landing queue; empty if not needed.

    Else a counter that both sides raised would count once, and a changelog would conflict.
    """
    here = repo.checkout
    settings = read_at(repo, before.tip)
    if not settings.landing.merge.files or not before.base:
        return ""
    there = replace(repo, checkout=replace(here, home=""))  # a clone merges in its own repository
    paths = list_changed_paths(here, before.base, before.head)
    files = merge_files_by_kind(there, settings, before.tip, before.head, paths)
    if isinstance(files, trials.MergeConflict) or not files.contents:
        return ""
    merged = trials.try_merge(here, before.head, before.tip)
    if isinstance(merged, trials.MergeConflict) and any(path not in files.contents for path in merged.paths):
        return ""
    for path in files.generated:
        repo.report(f"{path} is generated: run its command again before you commit")
    tree = trials.replace_files(here, merged.tree, files.contents)
    message = f"Merge {before.place} into {before.branch}\n"
    return trials.create_commit(here, tree, [before.head, before.tip], message)


def _conflict(here: Checkout, before: Position, method: UpdateMethod, conflicts: list[str]) -> LandlaneError:
    span = f"{before.base}..{before.tip}" if before.base else before.tip
    described = [{"path": path, "commits": commits_in(here, span, path)} for path in conflicts[:MOST_SHOWN]]
    more = f" and {len(conflicts) - 1} more" if len(conflicts) > 1 else ""
    return LandlaneError(
        f"{before.branch} and {before.place} conflict in {conflicts[0]}{more}; nothing was changed",
        code="CONFLICT",
        hint=f"read what the others changed there, then `git {method} {before.tip[:12]}`"
        " and solve it by hand",
        conflicts=described,
        count=len(conflicts),
        **position_facts(before),
    )


def _check_nothing_overwritten(here: Checkout, before: Position) -> None:
    """Refuse an update that would overwrite untracked files; git overwrites ignored ones without a word."""
    if untracked := find_untracked_in_the_way(here, before.base or before.head, before.tip):
        raise LandlaneError(
            f"{before.place} brings {untracked[0]}, which lies here without being under version control",
            code="IN_THE_WAY",
            hint="move it away, or compare it with what comes and remove it; then sync again",
            paths=untracked[:MOST_SHOWN],
        )


def _roll_back(here: Checkout, before: Position) -> None:
    for name, verb in (("MERGE_HEAD", "merge"), ("rebase-merge", "rebase"), ("rebase-apply", "rebase")):
        if os.path.exists(os.path.join(here.git_dir, name)):
            run_in(
                here, verb, "--abort", limit_seconds=_UPDATE_SECONDS, variables={"GIT_OPTIONAL_LOCKS": "1"}
            )
    if _read_head(here) != (before.branch, before.head):
        raise RepositoryError(
            f"an update of {before.branch} could not be taken back",
            code="GIT_FAILED",
            hint=f"git reflog shows what happened; it stood at {before.head}",
            head=before.head,
        )


def _record_base(repo: Repository, session: Session, tip: str) -> None:
    """Record the new base if this checkout is a workspace."""
    workspace = next((one for one in list_open(repo) if one.path == repo.checkout.root), None)
    if workspace is None:
        return
    with suppress(NotAllowed):  # it is being closed
        update_workspace(repo, workspace, "synced", session, base=tip)
    # A clone borrows objects from its home. The ref that keeps them there moves too, unless that loses some.
    if workspace.base and is_ancestor(repo.home, workspace.base, tip):
        run_in(repo.home, "update-ref", base_ref(workspace.id), tip)


def _run_checks(repo: Repository, branch: str, on_tick: Tick) -> tuple[dict[str, Any], ...]:
    """Run the check of the branch's task in this checkout, or those of the queue."""
    results: list[dict[str, Any]] = []
    for check in _checks_for(repo, branch):
        repo.report(f"checking: {check.name}")
        results.append(_run_check(repo, check, on_tick))
    return tuple(results)


def _run_check(repo: Repository, check: LandingCheck, on_tick: Tick) -> dict[str, Any]:
    runs = 0
    while True:
        runs += 1
        limit_ms = check.limit_ms or repo.settings.landing.check_limit_ms
        checked = _run_sandboxed(repo, check.run, limit_ms / 1000, on_tick)
        has_passed = not checked.exit_code and not checked.is_late
        if has_passed or runs > check.retries:
            output = checked.output[-_TAIL:]
            facts = {"name": check.name, "passed": has_passed, "exit": checked.exit_code}
            return {**facts, "late": checked.is_late, "runs": runs, "output": output}


def _checks_for(repo: Repository, branch: str) -> tuple[LandingCheck, ...]:
    if command := _task_check(repo, branch):
        return (LandingCheck(run=command, name=command, limit_ms=repo.settings.tasks.check_limit_ms),)
    return repo.settings.landing.checks or ()


def _task_check(repo: Repository, branch: str) -> str:
    task_id, _, attempt = branch.removeprefix("landlane/").removesuffix("/work").rpartition("-")
    if not task_id or not attempt.isdecimal() or branch != branch_of(task_id, int(attempt)):
        return ""
    try:
        return get_task(repo, task_id).check
    except Malformed:  # the branch only looks like that of a task
        return ""


def _run_sandboxed(repo: Repository, command: str, limit_seconds: float, on_tick: Tick) -> CheckRun:
    """Run a check in this checkout, as the landing queue would: what came with the update is not ours."""
    checkout = repo.checkout.root
    without = [name for name in os.environ if name.startswith(("LANDLANE_", "GIT_"))]
    run = CheckCommand(
        words=("/bin/sh", "-c", command),
        path=checkout,
        environment={},
        limit_seconds=limit_seconds,
        without=without,
    )
    places = CheckPlaces(root=repo.home.root, common_dir=repo.common_dir, state_folder=repo.state_folder)
    ended = run_sandboxed_check(repo.settings, places, run, on_tick)
    output = (ended.stdout + ended.stderr).replace("\0", "\ufffd")
    return CheckRun(exit_code=ended.exit_code, output=output, is_late=ended.has_timed_out)


def run_shell(
    command: str,
    folder: str,
    limit_seconds: float,
    on_tick: Tick = lambda: None,
    environment: Mapping[str, str] | None = None,
) -> CheckRun:
    """Run a shell command that acts for no session, and only on the repository that it runs in."""
    without = [name for name in os.environ if name.startswith(("LANDLANE_", "GIT_"))]
    child = Child(["/bin/sh", "-c", command], cwd=folder, without=without, environment=environment)
    ended = child.wait(limit_seconds, on_tick)
    output = (ended.stdout + ended.stderr).replace("\0", "\ufffd")
    return CheckRun(exit_code=ended.exit_code, output=output, is_late=ended.has_timed_out)
