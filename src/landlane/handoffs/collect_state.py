"""Collect the state of a task from git, the journal and the hooks when it is handed off.

Git runs in the repository's main checkout: a sandboxed agent may write the configuration of its own checkout.
"""

from __future__ import annotations

from contextlib import suppress

from landlane.claims.take import live_claims_of
from landlane.errors import LandlaneError, PatternError
from landlane.git import create_checkout as checkouts
from landlane.git.run import resolve_revision, run_git, try_git_output
from landlane.git.snapshot import changes_between, take_snapshot
from landlane.git.target import find_target, target_tip
from landlane.git.untrusted_checkout import CLONE as FOREIGN
from landlane.handoffs.text import shorten
from landlane.patterns.pattern import covers_alternative
from landlane.rescue.save import drop_same_rescues, locate_checkout, save_checkout
from landlane.sessions.client_sessions import list_subagents
from landlane.sessions.sandbox_runs import RunState, list_runs
from landlane.sessions.tool_calls import commands_in
from landlane.store import records
from landlane.tasks.records import get_task, history_in, lessons_in
from landlane.values import value
from landlane.workspaces.model import CLONE, OPEN, Workspace
from landlane.workspaces.records import is_local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from landlane.patterns.pattern import Alternative
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot
    from landlane.tasks.model import Task


_MOST_PATHS = 500
_MOST_LESSONS = 20
_LONGEST_WHY = 1000


@value
class _TaskCheckout:
    """The checkout of a task, and the branch with its commits."""

    root: str
    branch: str
    workspace: Workspace | None = None


def collect_state(repo: Repository, task_id: str, session: Session | None = None) -> dict[str, Any]:
    """Return the state of a task without asking its owner; save its uncommitted work as a rescue.

    The state has the branch and head, the changed and uncommitted paths, the rescue, claims, commands with
    exit codes, and why earlier attempts failed. `unknown` names what could not be read.

    Raises:
        Malformed: there is no such task.
    """
    task = get_task(repo, task_id)
    taken: dict[str, Any] = {"machine": repo.processes.machine}
    unknown: list[str] = []
    checkout = _find_checkout(repo, task)
    if checkout is not None:
        taken |= {"branch": checkout.branch, "path": checkout.root}
        if checkout.workspace is not None:
            taken["workspace"] = checkout.workspace.id
        for what, collect in (("commits", _collect_commits), ("uncommitted work", _collect_uncommitted)):
            try:
                taken |= collect(repo, session, task, checkout, taken)
            except (LandlaneError, OSError) as error:
                unknown.append(f"{what}: {getattr(error, 'message', error)}")
    taken |= repo.store.view(lambda snapshot: _from_store(snapshot, task))
    if unknown:
        taken["unknown"] = unknown
    return taken


def _find_checkout(repo: Repository, task: Task) -> _TaskCheckout | None:
    if not repo.common_dir:
        return None
    for document in repo.store.view(
        lambda snapshot: records.find_by_key(snapshot, "workspace", task.id, OPEN)
    ):
        one = Workspace.from_document(document)
        if one.attempt == task.attempt and is_local(repo, one):
            return _TaskCheckout(root=one.path, branch=one.branch, workspace=one)
    return None if _has_throwaway_checkout(repo, task) else _TaskCheckout(root=repo.checkout.root, branch="")


def _has_throwaway_checkout(repo: Repository, task: Task) -> bool:
    """Return whether a read-only worker has the task: its supervisor saves its checkout once it has ended."""
    return any(run.worker and run.session == task.session for run in list_runs(repo, RunState.RUNNING))


def _collect_commits(
    repo: Repository, _: Session | None, task: Task, checkout: _TaskCheckout, __: dict[str, Any]
) -> dict[str, Any]:
    """Return the branch of the work, its head and base, and the paths it changes."""
    branch, head = checkout.branch, ""
    if checkout.workspace is not None:
        if checkout.workspace.kind == CLONE:
            checkouts.fetch_clone_branch(repo.home, checkout.root, branch)
        head = resolve_revision(repo.home, f"refs/heads/{branch}^{{commit}}")
    else:
        branch, head = _find_branch(repo, task, checkout.root)
    changed = paths_changed_by(repo, head)[:_MOST_PATHS]
    base = _merge_base(repo, head)
    counted = try_git_output(repo.home, "rev-list", "--count", f"{base}..{head}") if base else ""
    commits = int(counted) if counted.isdecimal() else 0
    return {"branch": branch, "head": head, "base": base, "commits": commits, "changed": changed}


def _merge_base(repo: Repository, head: str) -> str:
    if not head:
        return ""
    target = target_tip(repo.home, find_target(repo.home, repo.settings))
    return try_git_output(repo.home, "merge-base", target, head)


def paths_changed_by(repo: Repository, head: str) -> list[str]:
    """Return the paths that differ between a commit and its merge base with the target."""
    base = _merge_base(repo, head)
    if not base or base == head:
        return []
    listed = try_git_output(repo.home, "diff", "--name-only", "-z", "--no-renames", base, head)
    return _storable([path for path in listed.split("\0") if path])


def _find_branch(repo: Repository, task: Task, root: str) -> tuple[str, str]:
    """Return the branch and head of a task without a workspace: of its own branch, or of the checkout."""
    own = resolve_revision(repo.home, f"refs/heads/{task.branch}^{{commit}}")
    if own:
        return task.branch, own
    place = locate_checkout(repo, root)
    if place.kind == FOREIGN:
        return "", ""
    branch = run_git("symbolic-ref", "--quiet", "--short", "HEAD", cwd=root, git_dir=place.git_dir)
    return "" if branch.exit_code else branch.stdout.strip(), _head_of(root, place.git_dir)


def _collect_uncommitted(
    repo: Repository, session: Session | None, task: Task, checkout: _TaskCheckout, taken: dict[str, Any]
) -> dict[str, Any]:
    """Return the uncommitted paths and a rescue of them; in a shared checkout, only the claimed paths."""
    place = locate_checkout(repo, checkout.root)
    head = str(taken.get("head", ""))
    if checkout.workspace is None:
        if place.kind == FOREIGN:  # its git configuration is not trusted
            return {}
        head = _head_of(checkout.root, place.git_dir)
    tree = resolve_revision(repo.home, f"{head}^{{tree}}") if head else ""
    empty = try_git_output(repo.home, "hash-object", "-t", "tree", "/dev/null")
    after = take_snapshot(place)
    dirty = [one.path for one in changes_between(place, tree or empty, after)]
    if checkout.workspace is None:
        dirty = _claimed_paths(repo, task, dirty)
    if not dirty:
        return {"dirty": [], "rescue": ""}
    reason = f"{task.id} is handed over"
    rescue = save_checkout(
        repo, session, checkout.root, reason, workspace=checkout.workspace, force=True, task=task.id
    )
    if rescue and checkout.workspace is not None:
        drop_same_rescues(repo, rescue, checkout.workspace)
    return {"dirty": _storable(dirty[:_MOST_PATHS]), "rescue": rescue}


def _head_of(root: str, git_dir: str) -> str:
    found = run_git("rev-parse", "--verify", "--quiet", "HEAD", cwd=root, git_dir=git_dir)
    return "" if found.exit_code else found.stdout.strip()


def _claimed_paths(repo: Repository, task: Task, paths: list[str]) -> list[str]:
    """Return the paths that the owner of the task has claimed."""

    def look(snapshot: Snapshot) -> list[tuple[str, str]]:
        claims = live_claims_of(snapshot, task.session)
        return [(claim.pattern, claim.kind) for claim in claims if claim.task in ("", task.id)]

    held = [
        one for text, kind in repo.store.view(look) for one in repo.git.pattern_of(text, kind).alternatives
    ]
    return [
        path
        for path, literal in literals_of(repo, paths).items()
        if any(covers_alternative(one, literal) for one in held)
    ]


def literals_of(repo: Repository, paths: Iterable[str]) -> dict[str, Alternative]:
    """Return these paths in the form in which claims are compared, without names that cannot be claimed."""
    literals: dict[str, Alternative] = {}
    for path in paths:
        with suppress(PatternError):
            (literals[path],) = repo.git.pattern_of(path, "literal").alternatives
    return literals


def _from_store(snapshot: Snapshot, task: Task) -> dict[str, Any]:
    claims = {
        claim.token: {"pattern": claim.pattern, "mode": claim.mode}
        for claim in live_claims_of(snapshot, task.session)
        if claim.task in ("", task.id)
    }
    return {
        "claims": list(claims.values()),
        "commands": commands_in(snapshot, _sessions_of(snapshot, task)),
        "failed": failures_in(snapshot, task),
    }


def _sessions_of(snapshot: Snapshot, task: Task) -> list[str]:
    """Return the sessions that worked on this attempt, and their subagents that are still running."""
    owners = [
        entry.session
        for entry in history_in(snapshot, task.id)
        if entry.kind == "task.taken" and entry.facts()["attempt"] == task.attempt
    ]
    children = [child.id for owner in owners for child in list_subagents(snapshot, owner)]
    return [*owners, *children]


def failures_in(snapshot: Snapshot, task: Task) -> list[dict[str, Any]]:
    """Return the reasons that earlier owners gave when they failed or handed off the task."""
    lessons = lessons_in(snapshot, task.id)[-_MOST_LESSONS:]
    return [
        {"attempt": one.attempt, "agent": one.agent, "why": shorten(one.why, _LONGEST_WHY)} for one in lessons
    ]


def _storable(paths: list[str]) -> list[str]:
    """Return the paths with bytes that are not UTF-8 escaped, as every store can hold them."""
    return [path.encode("utf-8", "backslashreplace").decode() for path in paths]
