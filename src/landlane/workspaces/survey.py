"""Looking workspaces over: size, age, holder, stale bases; and giving room when the disk is short."""

from __future__ import annotations

import os

from landlane.claims.read import list_claims
from landlane.errors import RepositoryError
from landlane.git.run import run_in, try_git_output
from landlane.git.target import commits_at, find_target, target_tip
from landlane.patterns.pattern import covers_alternative
from landlane.values import value
from landlane.workspaces import records as operations
from landlane.workspaces.disk_space import size_of
from landlane.workspaces.model import CLONE, OPEN, THERE, Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.claims.model import Claim
    from landlane.patterns.pattern import Alternative
    from landlane.repository import Repository


@value
class WorkspaceStatus:
    """A workspace as it lies there. `behind` is unknown when its base or the target is."""

    workspace: Workspace
    is_there: bool
    size: int
    age_ms: int
    is_held: bool
    behind: int | None
    is_stale: bool


def survey(repo: Repository, *, with_closed: bool = False) -> list[WorkspaceStatus]:
    """Every workspace with what is known and what is found.

    git is asked once for all branches, and once or twice for each commit that a workspace stands on.
    """
    found = operations.list_workspaces(repo, with_closed=with_closed)
    distances = Distances(repo, found)
    now = repo.wall_ms()
    return [_look(repo, one, distances, now) for one in found]


def _look(repo: Repository, one: Workspace, distances: Distances, now: int) -> WorkspaceStatus:
    is_here = one.state in THERE and operations.is_here(repo, one, repo.common_dir)
    is_there = is_here and os.path.isdir(one.path)
    behind, touched = distances.of(one) if is_there else (None, False)
    return WorkspaceStatus(
        workspace=one,
        is_there=is_there,
        size=size_of(one.path) if is_there else 0,
        age_ms=max((one.closed_at or now) - one.opened_at, 0),
        is_held=one.state == OPEN and operations.is_held(repo, one),
        behind=behind,
        is_stale=touched,
    )


class Distances:
    """How far workspaces are behind the target: many stand on the same commit, and that is asked once."""

    def __init__(self, repo: Repository, workspaces: list[Workspace]) -> None:
        self._repo = repo
        self._counts: dict[str, int | None] = {}
        self._changed: dict[str, list[Alternative]] = {}
        self._claims: list[Claim] | None = None
        open_ones = [one for one in workspaces if one.state in THERE]
        self._tip, self._heads = "", {}
        if open_ones:
            self._heads = commits_at(repo.home, [f"refs/heads/{one.branch}" for one in open_ones])
            try:
                self._tip = target_tip(repo.home, find_target(repo.home, repo.settings))
            except RepositoryError:
                return

    def of(self, one: Workspace) -> tuple[int | None, bool]:
        """How many commits of the target a workspace lacks, and whether they touch what it claims."""
        head = self._heads.get(f"refs/heads/{one.branch}", "") or one.base
        if one.kind == CLONE and head != one.base:
            head = one.base  # what its branch is at home may be older than what it took in by a sync
        if not self._tip or not head:
            return None, False
        count = self._count(head)
        return count, bool(count) and self._touches(one, head)

    def _count(self, head: str) -> int | None:
        if head == self._tip:
            return 0
        if head not in self._counts:
            count = try_git_output(self._repo.home, "rev-list", "--count", f"{head}..{self._tip}")
            self._counts[head] = int(count) if count.isdecimal() else None
        return self._counts[head]

    def _touches(self, one: Workspace, head: str) -> bool:
        pattern_of = self._repo.git.pattern_of
        if self._claims is None:
            self._claims = list_claims(self._repo)
        held = [
            branch
            for claim in self._claims
            if claim.session == one.session
            for branch in pattern_of(claim.pattern, claim.kind).alternatives
        ]
        if not held:
            return False
        if head not in self._changed:
            words = ("diff", "--name-only", "-z", "--no-renames", f"{head}...{self._tip}")
            names = run_in(self._repo.home, *words).stdout.split("\0")
            self._changed[head] = [pattern_of(name, "literal").alternatives[0] for name in names if name]
        return any(covers_alternative(mine, path) for mine in held for path in self._changed[head])
