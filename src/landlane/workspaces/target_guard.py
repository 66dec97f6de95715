"""Refuse commits on the branch that only the landing queue moves."""

from __future__ import annotations

from landlane.errors import NotAllowed, RepositoryError
from landlane.git.target import commits_at, find_target
from landlane.workspaces.committed_settings import committed_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.git.target import TargetBranch
    from landlane.repository import Repository


LAND_FIRST = "land through the queue"

GUARD_CODES = frozenset({"TARGET_GUARDED"})


def check_branch(repo: Repository, branch: str) -> None:
    """Refuse a commit on the branch that only the queue moves. A clone has its own branches, so it may.

    Raises:
        NotAllowed: it is that branch.
    """
    target = guarded_target(repo) if branch and not repo.checkout.home else None
    if target is not None and branch == target.branch:
        raise bypasses_queue_error(target)


def guarded_target(repo: Repository) -> TargetBranch | None:
    """Return the branch that only the queue moves: one whose own settings have `[landing] checks`.

    The settings file in a checkout does not count. So the first such settings can be committed by hand, and
    editing a file does not disable the guard.
    """
    target = likely_target(repo)
    if target is None:
        return None
    known = commits_at(repo.home, [ref for ref in (target.remote_ref, target.ref) if ref])
    tip = known.get(target.remote_ref, "") or known.get(target.ref, "")  # local commits are not on it yet
    if tip == repo.held.tip:
        found = repo.held.shared if repo.held.is_committed else None
    else:
        found = committed_at(repo.home, tip) if tip else None
    return target if found is not None and found.landing.checks is not None else None


def likely_target(repo: Repository) -> TargetBranch | None:
    """Return the branch that work lands on, or None."""
    try:
        return find_target(repo.home, repo.settings)
    except RepositoryError:
        return None


def bypasses_queue_error(target: TargetBranch) -> NotAllowed:
    """Return the error for a change of the target branch that bypasses the landing queue."""
    return NotAllowed(
        f"{target.branch} changes only through landing",
        code="TARGET_GUARDED",
        hint="work on a branch, then land it: git switch -c my-change",
        branch=target.branch,
        rule=LAND_FIRST,
    )
