"""Bringing a checkout up to date with the target branch, and running its checks again.

An update is a merge or a rebase that succeeds as a whole, or is taken back as a whole: whoever meets a
conflict finds the tree as it was, and hears which paths and whose commits are in the way.
"""

from __future__ import annotations

import os

from landlane.deploys.sync import (
    MOST_SHOWN,
    Position,
    changes_in,
    commits_in,
    dirty_error,
    find_position,
    position_facts,
    sync,
)
from landlane.errors import LandlaneError, Malformed, NotAllowed, RepositoryError, Stale
from landlane.git import trial_merge as trials
from landlane.git.create_checkout import base_ref
from landlane.git.lock import git_lock
from landlane.git.run import git_failed, run_in, try_git_output
from landlane.git.target import find_target
from landlane.git.tree_diff import find_untracked_in_the_way, list_changed_paths
from landlane.landing.combine import merge_files_by_kind, merge_rules
from landlane.processes.child import Child
from landlane.settings.model import LandingCheck
from landlane.store import records
from landlane.tasks.evidence_model import CheckRun
from landlane.tasks.model import branch_of
from landlane.tasks.records import get_task
from landlane.values import replace, value
from landlane.workspaces.committed_settings import read_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from landlane.git.discovery import Checkout
    from landlane.git.run import GitResult
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction

    Tick = Callable[[], None]


MERGE, REBASE = "merge", "rebase"
_TAIL = 4000
_UPDATE_SECONDS = 1800.0  # hooks of the project may run meanwhile
# What stands in the git directory while something is under way that an update must not run into.
_UNFINISHED = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")
# The user's own habits must not make an update stash, squash or move other branches.
_PLAINLY = (
    *("-c", "merge.autoStash=false", "-c", "rebase.autoStash=false", "-c", "rebase.updateRefs=false"),
    *("-c", "rebase.autoSquash=false", "-c", "rebase.rebaseMerges=false", "-c", "merge.stat=false"),
    *("-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "advice.mergeConflict=false"),
)


@value
class Update:
    """What an update did: how, from which commit, and what the checks said after it."""

    how: str
    before: str
    position: Position
    checks: tuple[dict[str, Any], ...] = ()


def update(
    repo: Repository, session: Session, how: str, *, is_checked: bool = True, on_tick: Tick = lambda: None
) -> Update:
    """Bring the checkout up to date by `merge` or `rebase`, and run its checks again.

    Raises:
        Malformed: there is no such way.
        RepositoryError: the target cannot be fetched, or git refuses.
        LandlaneError: something uncommitted or unfinished is in the way, or the two sides conflict.
        NotAllowed: it would move the target branch otherwise than forward.
    """
    if how not in (MERGE, REBASE):
        raise Malformed(f"{how[:40]!r} is no way to update", code="BAD_UPDATE", hint="use merge or rebase")
    before = sync(repo)
    _check_updatable(repo, before)
    if not before.behind:
        return Update(how=how, before=before.head, position=before)
    with git_lock(repo.common_dir, f"sync {before.branch}", on_wait=repo.report):
        # What was found before the lock may have changed while we waited for it.
        if _standing(repo.checkout) != (before.branch, before.head):
            raise _moved(before)
        _check_updatable(repo, before)
        _bring_in(repo, before, how)
    after = find_position(repo, find_target(repo.home, repo.settings), is_fetched=True)
    _note_base(repo, session, before.tip)
    checks = run_checks(repo, before.branch, on_tick) if is_checked else ()
    return Update(how=how, before=before.head, position=after, checks=checks)


def _standing(here: Checkout) -> tuple[str, str]:
    return try_git_output(here, "symbolic-ref", "--quiet", "--short", "HEAD"), try_git_output(
        here, "rev-parse", "HEAD"
    )


def _moved(before: Position) -> Stale:
    return Stale(
        f"{before.branch} moved while it was to be updated",
        code="BRANCH_MOVED",
        hint="somebody works in this checkout just now; sync again",
    )


def _check_updatable(repo: Repository, position: Position) -> None:
    for name in _UNFINISHED:
        if os.path.exists(os.path.join(repo.checkout.git_dir, name)):
            verb = {"M": "merge", "C": "cherry-pick", "R": "revert", "r": "rebase"}[name[0]]
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
    if changed := changes_in(repo.checkout, with_untracked=False):
        raise dirty_error(changed, "commit it with `landlane commit`, or put it aside: `landlane stash save`")
    if position.behind and position.branch == position.target and position.ahead:
        raise NotAllowed(
            f"{position.target} itself has {position.ahead} of its own that {position.place} lacks",
            code="TARGET_DIVERGED",
            hint="the target only moves forward: move your commits to a branch, and `landlane land` it",
            **position_facts(position),
        )


def _bring_in(repo: Repository, before: Position, how: str) -> None:
    """Merge or rebase; whatever stops it half way, the tree is as it was."""
    here = repo.checkout
    _check_not_in_the_way(here, before)
    joined = _merge_files_by_kind(repo, before) if how == MERGE and before.branch != before.target else ""
    if before.branch == before.target or joined:
        words = ("merge", "--quiet", "--ff-only", joined or before.tip)
    elif how == MERGE:
        words = ("merge", "--quiet", "--ff", "--no-edit", "-m", f"Merge {before.place} into {before.branch}")
        words += (before.tip,)
    else:
        words = ("rebase", "--quiet", before.tip)
    editor = {"GIT_EDITOR": "true", "GIT_SEQUENCE_EDITOR": "true", "GIT_OPTIONAL_LOCKS": "1"}
    try:
        found = run_in(here, *_PLAINLY, *words, limit_seconds=_UPDATE_SECONDS, variables=editor)
    except BaseException:
        _take_back(here, before)
        raise
    if found.exit_code:
        conflicts = try_git_output(here, "diff", "--name-only", "--diff-filter=U", "-z").split("\0")
        _take_back(here, before)
        raise _refused(here, before, how, [path for path in conflicts if path], words, found)


def _merge_files_by_kind(repo: Repository, before: Position) -> str:
    """A merge in which hot files are joined by class, as the queue does it; nothing where git's will do.

    A counter that both sides raised would else count once, and a changelog would be a conflict.
    """
    here = repo.checkout
    classes = merge_rules(read_at(repo, before.tip))
    if not classes or not before.base:
        return ""
    there = replace(repo, checkout=replace(here, home=""))  # a clone merges in its own repository
    paths = list_changed_paths(here, before.base, before.head)
    files = merge_files_by_kind(there, classes, before.tip, before.head, paths)
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


def _refused(
    here: Checkout, before: Position, how: str, conflicts: list[str], words: tuple[str, ...], found: GitResult
) -> LandlaneError:
    if not conflicts:
        return git_failed(words, found)
    span = f"{before.base}..{before.tip}" if before.base else before.tip
    told_of = [{"path": path, "commits": commits_in(here, span, path)} for path in conflicts[:MOST_SHOWN]]
    more = f" and {len(conflicts) - 1} more" if len(conflicts) > 1 else ""
    return LandlaneError(
        f"{before.branch} and {before.place} conflict in {conflicts[0]}{more}; nothing was changed",
        code="CONFLICT",
        hint=f"read what the others changed there, then `git {how} {before.tip[:12]}` and solve it by hand",
        conflicts=told_of,
        count=len(conflicts),
        **position_facts(before),
    )


def _check_not_in_the_way(here: Checkout, before: Position) -> None:
    """Refuse to let git overwrite a file that is in no commit: an ignored one it would not even mention."""
    if strange := find_untracked_in_the_way(here, before.base or before.head, before.tip):
        raise LandlaneError(
            f"{before.place} brings {strange[0]}, which lies here without being under version control",
            code="IN_THE_WAY",
            hint="move it away, or compare it with what comes and remove it; then sync again",
            paths=strange[:MOST_SHOWN],
        )


def _take_back(here: Checkout, before: Position) -> None:
    for name, verb in (("MERGE_HEAD", "merge"), ("rebase-merge", "rebase"), ("rebase-apply", "rebase")):
        if os.path.exists(os.path.join(here.git_dir, name)):
            run_in(
                here, verb, "--abort", limit_seconds=_UPDATE_SECONDS, variables={"GIT_OPTIONAL_LOCKS": "1"}
            )
    if _standing(here) != (before.branch, before.head):
        raise RepositoryError(
            f"an update of {before.branch} could not be taken back",
            code="GIT_FAILED",
            hint=f"git reflog shows what happened; it stood at {before.head}",
            head=before.head,
        )


def _note_base(repo: Repository, session: Session, tip: str) -> None:
    """Remember in the record of the workspace, if this is one, from where its own changes count now."""

    def work(tx: Transaction) -> records.Document | None:
        for known in records.all_of(tx, "workspace", ("open",)):
            if known.get("path") == repo.checkout.root and (
                document := records.lock(tx, "workspace", known["id"])
            ):
                records.put(tx, "workspace", {**document, "base": tip}, "synced", session)
                return known
        return None

    found = repo.change(work)
    if found is None or not found.get("base"):
        return
    # A clone borrows its objects: what keeps them at home moves along, unless that would let go of something.
    if not run_in(repo.home, "merge-base", "--is-ancestor", found["base"], tip).exit_code:
        run_in(repo.home, "update-ref", base_ref(str(found["id"])), tip)


def run_checks(repo: Repository, branch: str, on_tick: Tick = lambda: None) -> tuple[dict[str, Any], ...]:
    """Run what must hold for this branch, in this checkout: the check of its task, or those of the queue."""
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
        checked = run_shell(check.run, repo.checkout.root, limit_ms / 1000, on_tick)
        has_passed = not checked.exit_code and not checked.is_late
        if has_passed or runs > check.retries:
            output = checked.output[-_TAIL:]
            told_of = {"name": check.name, "passed": has_passed, "exit": checked.exit_code}
            return {**told_of, "late": checked.is_late, "runs": runs, "output": output}


def _checks_for(repo: Repository, branch: str) -> tuple[LandingCheck, ...]:
    command = _task_check(repo, branch)
    if command:
        return (LandingCheck(run=command, name=command, limit_ms=repo.settings.tasks.check_limit_ms),)
    return repo.settings.landing.checks or ()


def _task_check(repo: Repository, branch: str) -> str:
    task_id, _, attempt = branch.removeprefix("landlane/").removesuffix("/work").rpartition("-")
    if not task_id or not attempt.isdecimal() or branch != branch_of(task_id, int(attempt)):
        return ""
    try:
        return get_task(repo, task_id).check
    except Malformed:  # a branch that only looks like one of ours
        return ""


def run_shell(
    command: str,
    folder: str,
    limit_seconds: float,
    on_tick: Tick = lambda: None,
    environment: Mapping[str, str] | None = None,
) -> CheckRun:
    """Run a line of shell that acts for nobody, and on no repository but the one it stands in."""
    without = [name for name in os.environ if name.startswith(("LANDLANE_", "GIT_"))]
    child = Child(["/bin/sh", "-c", command], cwd=folder, without=without, environment=environment)
    ended = child.wait(limit_seconds, on_tick)
    output = (ended.stdout + ended.stderr).replace("\0", "\ufffd")
    return CheckRun(exit_code=ended.exit_code, output=output, is_late=ended.has_timed_out)
