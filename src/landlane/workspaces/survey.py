"""Examine workspaces: size, age, holder, and whether their base is out of date."""

from __future__ import annotations

import os

from landlane.claims.take import list_claims
from landlane.errors import RepositoryError
from landlane.git.run import run_in, try_git_output
from landlane.git.target import commits_at, find_target, target_tip
from landlane.patterns.pattern import covers_alternative
from landlane.sessions.leases import find_session
from landlane.tasks.model import FINAL
from landlane.tasks.records import find_task
from landlane.values import value
from landlane.workspaces.clean_up import reason_to_keep
from landlane.workspaces.disk_space import size_of
from landlane.workspaces.misplaced import list_changed_files
from landlane.workspaces.model import CLONE, ON_DISK, OPEN, Workspace
from landlane.workspaces.records import is_held, is_local, list_workspaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.claims.model import Claim
    from landlane.patterns.pattern import Alternative
    from landlane.repository import Repository


@value
class WorkspaceStatus:
    """A workspace and what is on disk. `behind` is None when its base or the target is unknown.

    `uncommitted` is the number of changed files, None if they were not counted. `seen_at` is the last sign of
    life of its session, in wall-clock milliseconds. `is_removable` says whether `prune` would close it.
    """

    workspace: Workspace
    is_there: bool
    size: int
    age_ms: int
    is_held: bool
    behind: int | None
    is_stale: bool
    title: str = ""  # of its task
    ended_as: str = ""  # the state of its task, if that is final
    uncommitted: int | None = None
    seen_at: int | None = None
    is_removable: bool = False
    is_elsewhere: bool = False  # in another clone or on another machine


def survey(
    repo: Repository, *, with_closed: bool = False, with_changes: bool = False
) -> list[WorkspaceStatus]:
    """Return the status of every workspace.

    It runs git once for all branches, and once or twice for each commit that a workspace is at; with
    `with_changes` also for every workspace, to count its uncommitted files.
    """
    found = list_workspaces(repo, () if with_closed else ON_DISK)
    distances = _Distances(repo, found)
    now = repo.wall_ms()
    return [_examine(repo, one, distances, now, with_changes=with_changes) for one in found]


def _examine(
    repo: Repository, one: Workspace, distances: _Distances, now: int, *, with_changes: bool
) -> WorkspaceStatus:
    task, session = repo.store.view(
        lambda snapshot: (find_task(snapshot, one.task), find_session(snapshot, one.session))
    )
    is_there = one.state in ON_DISK and is_local(repo, one) and os.path.isdir(one.path)
    behind, is_stale = distances.of(one) if is_there else (None, False)
    return WorkspaceStatus(
        workspace=one,
        is_there=is_there,
        size=size_of(one.path) if is_there else 0,
        age_ms=max((one.closed_at or now) - one.opened_at, 0),
        is_held=one.state == OPEN and is_held(repo, one),
        behind=behind,
        is_stale=is_stale,
        title=task.title if task else "",
        ended_as=task.state if task and task.state in FINAL else "",
        uncommitted=_count_changes(repo, one) if with_changes and is_there else None,
        seen_at=repo.store.wall_of(session.seen_at) if session else None,
        is_elsewhere=not is_local(repo, one),
        is_removable=is_there and not reason_to_keep(repo, None, one),
    )


def _count_changes(repo: Repository, one: Workspace) -> int | None:
    try:
        return len(list_changed_files(repo, one.path))
    except RepositoryError:
        return None  # a damaged checkout must not hide the others


class _Distances:
    """How far workspaces are behind the target. Many are at the same commit, so answers are kept."""

    def __init__(self, repo: Repository, workspaces: list[Workspace]) -> None:
        self._repo = repo
        self._counts: dict[str, int | None] = {}
        self._changed: dict[str, list[Alternative]] = {}
        self._claims: list[Claim] | None = None
        self._tip, self._heads = "", {}
        if refs := [f"refs/heads/{one.branch}" for one in workspaces if one.state in ON_DISK]:
            self._heads = commits_at(repo.home, refs)
            try:
                self._tip = target_tip(repo.home, find_target(repo.home, repo.settings))
            except RepositoryError:
                return

    def of(self, one: Workspace) -> tuple[int | None, bool]:
        """Return how many commits of the target a workspace lacks, and whether they touch its claims."""
        # The branch of a clone at home may be older than what the clone merged by a sync.
        head = one.base if one.kind == CLONE else self._heads.get(f"refs/heads/{one.branch}", "") or one.base
        if not self._tip or not head:
            return None, False
        count = self._count(head)
        return count, bool(count) and self._touches_claims(one, head)

    def _count(self, head: str) -> int | None:
        if head == self._tip:
            return 0
        if head not in self._counts:
            count = try_git_output(self._repo.home, "rev-list", "--count", f"{head}..{self._tip}")
            self._counts[head] = int(count) if count.isdecimal() else None
        return self._counts[head]

    def _touches_claims(self, one: Workspace, head: str) -> bool:
        pattern_of = self._repo.git.pattern_of
        if self._claims is None:
            self._claims = list_claims(self._repo)
        held = [
            alternative
            for claim in self._claims
            if claim.session == one.session
            for alternative in pattern_of(claim.pattern, claim.kind).alternatives
        ]
        if not held:
            return False
        if head not in self._changed:
            words = ("diff", "--name-only", "-z", "--no-renames", f"{head}...{self._tip}")
            names = run_in(self._repo.home, *words).stdout.split("\0")
            self._changed[head] = [pattern_of(name, "literal").alternatives[0] for name in names if name]
        return any(covers_alternative(mine, path) for mine in held for path in self._changed[head])
