"""How a task stands, taken down mechanically when it is handed over: from git, the journal and the hooks.

Git is asked at home: the settings of a checkout that a sandboxed agent may write are not obeyed.
"""

from __future__ import annotations

from landlane.claims.read import live_claims_of
from landlane.errors import LandlaneError, PatternError
from landlane.git import create_checkout as checkouts
from landlane.git.run import resolve_revision, run_git, try_git_output
from landlane.git.snapshot import changes_between, take_snapshot
from landlane.git.target import find_target, target_tip
from landlane.git.untrusted_checkout import CLONE as FOREIGN
from landlane.handoffs.text import cut
from landlane.patterns.pattern import covers_alternative
from landlane.rescue.save import drop_same_rescues, locate_checkout, save_checkout
from landlane.sessions.client_sessions import children_of
from landlane.sessions.command_history import commands_in
from landlane.sessions.sandbox_runs import list_running
from landlane.store import records
from landlane.tasks.records import get_task, history_in, lessons_in
from landlane.values import value
from landlane.workspaces.model import CLONE, OPEN
from landlane.workspaces.records import is_here, workspace_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot
    from landlane.tasks.model import Task
    from landlane.workspaces.model import Workspace


_MOST_PATHS = 500
_MOST_LESSONS = 20
_LONGEST_WHY = 1000


@value
class _Ground:
    """Where a task was worked on: a checkout, and the branch that its commits are on."""

    root: str
    branch: str
    workspace: Workspace | None = None


def observe(repo: Repository, task_id: str, session: Session | None = None) -> dict[str, Any]:
    """How a task stands, as git, the journal and the hooks tell: nothing of it is said by its owner.

    Branch, head, the paths that are changed, those of them in no commit (and a rescue that keeps them),
    commands with their exit codes, claims, what was tried before. What cannot be told is named under
    `unknown`; it keeps nobody from handing over.

    Raises:
        Malformed: there is no such task.
    """
    task = get_task(repo, task_id)
    taken: dict[str, Any] = {"machine": repo.processes.machine}
    unknown: list[str] = []
    ground = _find_ground(repo, task)
    if ground is not None:
        taken |= {"branch": ground.branch, "path": ground.root}
        if ground.workspace is not None:
            taken["workspace"] = ground.workspace.id
        for what, look in (("commits", _look_at_commits), ("uncommitted work", _look_at_tree)):
            try:
                taken |= look(repo, session, task, ground, taken)
            except (LandlaneError, OSError) as error:
                unknown.append(f"{what}: {getattr(error, 'message', error)}")
    taken |= repo.store.view(lambda snapshot: _from_store(snapshot, task))
    if unknown:
        taken["unknown"] = unknown
    return taken


def _find_ground(repo: Repository, task: Task) -> _Ground | None:
    if not repo.common_dir:
        return None
    for document in repo.store.view(lambda snapshot: records.by_key(snapshot, "workspace", task.id, OPEN)):
        one = workspace_from(document)
        if one.attempt == task.attempt and is_here(repo, one, repo.common_dir):
            return _Ground(root=one.path, branch=one.branch, workspace=one)
    return None if _is_throw_away(repo, task) else _Ground(root=repo.checkout.root, branch="")


def _is_throw_away(repo: Repository, task: Task) -> bool:
    """Whether a worker that may only look is at it: what it wrote is where it alone decides what lies there.

    Its keeper saves that once nothing of the worker lives any more.
    """
    return any(run.worker and run.session == task.session for run in list_running(repo))


def _look_at_commits(
    repo: Repository, _: Session | None, task: Task, ground: _Ground, __: dict[str, Any]
) -> dict[str, Any]:
    """The head of the work, and what it changes beyond the target; asked of the repository at home.

    The settings of a checkout that a sandboxed agent may write are not obeyed.
    """
    branch, head = ground.branch, ""
    if ground.workspace is not None:
        if ground.workspace.kind == CLONE:
            checkouts.fetch_clone_branch(repo.home, ground.root, branch)
        head = resolve_revision(repo.home, f"refs/heads/{branch}^{{commit}}")
    else:
        branch, head = _stand(repo, task, ground.root)
    base = base_of(repo, head)
    changed = changed_beyond(repo, head)[:_MOST_PATHS]
    return {"branch": branch, "head": head, "base": base, "changed": changed}


def base_of(repo: Repository, head: str) -> str:
    """Where a commit and the target parted."""
    return (
        try_git_output(
            repo.home, "merge-base", target_tip(repo.home, find_target(repo.home, repo.settings)), head
        )
        if head
        else ""
    )


def changed_beyond(repo: Repository, head: str) -> list[str]:
    """The paths that a commit changes beyond the target."""
    base = base_of(repo, head)
    if not base or base == head:
        return []
    listed = try_git_output(repo.home, "diff", "--name-only", "-z", "--no-renames", base, head)
    return _text([path for path in listed.split("\0") if path])


def _stand(repo: Repository, task: Task, root: str) -> tuple[str, str]:
    """Where a checkout that is no workspace stands: the branch of the task if it is there, else its own."""
    own = resolve_revision(repo.home, f"refs/heads/{task.branch}^{{commit}}")
    if own:
        return task.branch, own
    place = locate_checkout(repo, root)
    if place.kind == FOREIGN:
        return "", ""
    words = ("symbolic-ref", "--quiet", "--short", "HEAD"), ("rev-parse", "--verify", "--quiet", "HEAD")
    found = [run_git(*one, cwd=root, git_dir=place.git_dir) for one in words]
    branch, head = ("" if one.exit_code else one.stdout.strip() for one in found)
    return branch, head


def _look_at_tree(
    repo: Repository, session: Session | None, task: Task, ground: _Ground, taken: dict[str, Any]
) -> dict[str, Any]:
    """What is in no commit, and a rescue of it. In a checkout that several share, only what is claimed."""
    place = locate_checkout(repo, ground.root)
    head = str(taken.get("head", ""))
    if ground.workspace is None:
        if place.kind == FOREIGN:  # its settings are whoever's who may write there
            return {}
        head = _stand_of(ground.root, place.git_dir)
    tree = resolve_revision(repo.home, f"{head}^{{tree}}") if head else ""
    empty = try_git_output(repo.home, "hash-object", "-t", "tree", "/dev/null")
    after = take_snapshot(place)
    dirty = [one.path for one in changes_between(place, tree or empty, after)]
    if ground.workspace is None:
        dirty = _claimed(repo, task, dirty)
    if not dirty:
        return {"dirty": [], "rescue": ""}
    reason = f"{task.id} is handed over"
    rescue = save_checkout(
        repo, session, ground.root, reason, workspace=ground.workspace, force=True, task=task.id
    )
    if rescue and ground.workspace is not None:
        drop_same_rescues(repo, rescue, ground.workspace)
    return {"dirty": _text(dirty[:_MOST_PATHS]), "rescue": rescue}


def save_unfinished(repo: Repository, session: Session, task: Task, root: str, base: str) -> str:
    """Save what a checkout has that its commit has not; the rescue, or nothing where there is nothing.

    Raises:
        RepositoryError: it cannot be saved.
    """
    place = locate_checkout(repo, root)
    tree = resolve_revision(repo.home, f"{base}^{{tree}}")
    after = take_snapshot(place)
    if not tree or not any(changes_between(place, tree, after)):
        return ""
    reason = f"{task.id} went on elsewhere"
    return save_checkout(repo, session, root, reason, force=True, task=task.id)


def _stand_of(root: str, git_dir: str) -> str:

    found = run_git("rev-parse", "--verify", "--quiet", "HEAD", cwd=root, git_dir=git_dir)
    return "" if found.exit_code else found.stdout.strip()


def _claimed(repo: Repository, task: Task, paths: list[str]) -> list[str]:
    """Those of these paths that the owner of the task holds."""

    def look(snapshot: Snapshot) -> list[tuple[str, str]]:
        claims = live_claims_of(snapshot, task.session)
        return [(claim.pattern, claim.kind) for claim in claims if claim.task in ("", task.id)]

    pattern_of = repo.git.pattern_of
    held = [branch for text, kind in repo.store.view(look) for branch in pattern_of(text, kind).alternatives]
    mine: list[str] = []
    for path in paths:
        try:
            (branch,) = pattern_of(path, "literal").alternatives
        except PatternError:
            continue
        if any(covers_alternative(one, branch) for one in held):
            mine.append(path)
    return mine


def _from_store(snapshot: Snapshot, task: Task) -> dict[str, Any]:
    claims = {
        claim.token: {"pattern": claim.pattern, "mode": claim.mode}
        for claim in live_claims_of(snapshot, task.session)
        if claim.task in ("", task.id)
    }
    return {
        "claims": list(claims.values()),
        "commands": commands_in(snapshot, _sessions_of(snapshot, task)),
        "failed": failed_in(snapshot, task),
    }


def _sessions_of(snapshot: Snapshot, task: Task) -> list[str]:
    """The sessions that worked on this attempt, and their subagents that are still there."""
    owners = [
        entry.session
        for entry in history_in(snapshot, task.id)
        if entry.kind == "task.taken" and entry.facts()["attempt"] == task.attempt
    ]
    children = [child.id for owner in owners for child in children_of(snapshot, owner)]
    return [*owners, *children]


def failed_in(snapshot: Snapshot, task: Task) -> list[dict[str, Any]]:
    """What earlier owners said of why they could not do it, or what they handed over."""
    lessons = lessons_in(snapshot, task.id)[-_MOST_LESSONS:]
    return [
        {"attempt": one.attempt, "agent": one.agent, "why": cut(one.why, _LONGEST_WHY)} for one in lessons
    ]


def _text(paths: list[str]) -> list[str]:
    """Paths that every store can hold: what is no text is shown."""
    return [path.encode("utf-8", "backslashreplace").decode() for path in paths]
