"""Where a checkout stands beside the target branch: fetched, then told how far it is behind and ahead."""

from __future__ import annotations

from landlane.errors import LandlaneError, RepositoryError, Stale
from landlane.git.run import git_output, resolve_revision, try_git_output
from landlane.git.target import fetch_target, find_target, target_tip
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.git.discovery import Checkout
    from landlane.git.target import TargetBranch
    from landlane.repository import Repository

MOST_SHOWN = 20  # commits and paths that an answer names; the counts tell the rest
_FIELDS = "%H%x1f%s%x1f%(trailers:key=Landlane-Agent,valueonly,separator=%x2C )%x1e"


@value
class Position:
    """Where a checkout stands beside the target branch. `trouble` says why that was not just fetched."""

    branch: str
    target: str
    remote: str
    head: str
    tip: str
    base: str
    behind: int
    ahead: int
    changed: tuple[str, ...]
    trouble: str = ""

    @property
    def place(self) -> str:
        """The target as people call it: origin/main."""
        return f"{self.remote}/{self.target}" if self.remote else self.target


def find_position(
    repo: Repository, target: TargetBranch, *, is_remote_only: bool = False, is_fetched: bool = False
) -> Position:
    """Fetch the target unless that was just done, and tell where the checkout stands beside it.

    What counts is the remote's copy; commits of the branch here that wait to be pushed count as well, unless
    `is_remote_only`, or for who stands on that very branch.

    Raises:
        RepositoryError: there is no commit to compare.
    """
    here, home = repo.checkout, repo.home
    try:
        trouble = "" if is_fetched else fetch_target(home, target)
    except RepositoryError as error:  # a remote that does not answer within the time is out of reach, too
        trouble = error.message
    branch = try_git_output(here, "symbolic-ref", "--quiet", "--short", "HEAD")
    head = resolve_revision(here, "HEAD^{commit}")
    is_theirs = target.remote and (is_remote_only or branch == target.branch)
    known = resolve_revision(home, f"{target.remote_ref}^{{commit}}") if is_theirs else ""
    tip = known or ("" if is_theirs and is_remote_only else target_tip(home, target))
    if not head or not tip:
        lacking = "this checkout" if not head else f"{target.remote}/{target.branch}".lstrip("/")
        raise RepositoryError(
            f"{lacking} has no commit to compare" + (f": {trouble}" if trouble else ""),
            code="OFFLINE" if trouble else "NO_COMMIT",
            hint="mend the connection, then try again" if trouble else "make a first commit there",
        )
    _bring_here(repo, target, tip)
    counts = git_output(here, "rev-list", "--left-right", "--count", f"{tip}...{head}").split()
    return Position(
        branch=branch,
        target=target.branch,
        remote=target.remote,
        head=head,
        tip=tip,
        base=try_git_output(here, "merge-base", tip, head),
        behind=int(counts[0]),
        ahead=int(counts[1]),
        changed=tuple(changes_in(here, with_untracked=False)),
        trouble=trouble,
    )


def _bring_here(repo: Repository, target: TargetBranch, tip: str) -> None:
    """Let a clone have what its home has; a worktree has it already."""
    if not repo.checkout.home:
        return
    known = f"refs/remotes/home/{target.branch}"
    if resolve_revision(repo.checkout, known) == tip:
        return
    is_here = resolve_revision(repo.home, target.ref) == tip
    words = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
    source = target.ref if is_here else target.remote_ref
    git_output(repo.checkout, "-c", "gc.auto=0", *words, "--", repo.home.common_dir, f"+{source}:{known}")


def changes_in(here: Checkout, *, with_untracked: bool) -> list[str]:
    """The paths that differ from HEAD; with those that are in no commit and not ignored, if they count."""
    which = "all" if with_untracked else "no"
    words = ("status", "--porcelain=v1", "-z", f"--untracked-files={which}", "--no-renames")
    # Another repository below this one shows as a folder.
    return [entry[3:].rstrip("/") for entry in git_output(here, *words).split("\0") if entry]


def commits_in(here: Checkout, span: str, *paths: str) -> list[dict[str, str]]:
    """The newest commits of a span that touch these paths, each with its agent where it names one."""
    words = ("log", f"--max-count={MOST_SHOWN}", f"--format={_FIELDS}", span, "--")
    found: list[dict[str, str]] = []
    for entry in try_git_output(here, "--literal-pathspecs", *words, *paths).split("\x1e"):
        commit, _, rest = entry.strip().partition("\x1f")
        subject, _, agent = rest.partition("\x1f")
        if commit:
            found.append({"commit": commit, "subject": subject, "agent": agent})
    return found


def sync(repo: Repository) -> Position:
    """Fetch, and tell where the checkout stands.

    Raises:
        RepositoryError: the target cannot be fetched; what is known of it from before is among the facts.
    """
    position = find_position(repo, find_target(repo.home, repo.settings))
    if position.trouble:
        raise offline(position, "what is told was fetched before; mend the connection, then sync again")
    return position


def offline(position: Position, hint: str) -> RepositoryError:
    """The remote cannot be asked; with what was known before."""
    return RepositoryError(
        f"{position.remote} cannot be asked for {position.target}: {position.trouble}",
        code="OFFLINE",
        hint=hint,
        **position_facts(position),
    )


def behind_error(repo: Repository, position: Position, hint: str) -> Stale:
    """The checkout lacks commits of the target; with which."""
    commits = "commit" if position.behind == 1 else "commits"
    return Stale(
        f"{position.branch or position.head[:12]} is {position.behind} {commits} behind {position.place}",
        code="BEHIND",
        hint=hint,
        **position_facts(position),
        commits=commits_in(repo.checkout, f"{position.head}..{position.tip}"),
    )


def position_facts(position: Position) -> dict[str, Any]:
    """A position as programs read it."""
    return {
        "branch": position.branch or None,
        "target": position.target,
        "remote": position.remote or None,
        "behind": position.behind,
        "ahead": position.ahead,
        "tip": position.tip,
        "head": position.head,
        "base": position.base or None,
        "is_fresh": not position.trouble,
        "dirty": bool(position.changed),
        "changed": list(position.changed[:MOST_SHOWN]),
    }


def dirty_error(paths: Sequence[str], hint: str) -> LandlaneError:
    """Something here is in no commit."""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return LandlaneError(
        f"not committed: {paths[0]}{more}",
        code="DIRTY",
        hint=hint,
        paths=list(paths[:MOST_SHOWN]),
        count=len(paths),
    )
