"""Compare a checkout with the target branch: fetch it, and count the commits behind and ahead."""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.errors import LandlaneError, RepositoryError, Stale
from landlane.git.run import git_output, resolve_revision, try_git_output
from landlane.git.target import fetch_target, find_target, target_tip
from landlane.units import count
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.deploys.json_types import PositionJson
    from landlane.git.discovery import Checkout
    from landlane.git.target import TargetBranch
    from landlane.repository import Repository

MOST_SHOWN = 20  # commits and paths in an answer; the counts include the others
_FIELDS = "%H%x1f%ct%x1f%s%x1f%an%x1f%(trailers:key=Landlane-Agent,valueonly,separator=%x2C )%x1e"


@value
class Position:
    """A checkout compared with the target branch. `trouble` says why the target could not be fetched."""

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
        """The target as git shows it, such as origin/main."""
        return f"{self.remote}/{self.target}" if self.remote else self.target


def find_position(
    repo: Repository, target: TargetBranch, *, is_remote_only: bool = False, is_fetched: bool = False
) -> Position:
    """Fetch the target unless that was just done, and compare the checkout with it.

    Commits of the local target branch that are not pushed yet count as well, unless `is_remote_only`, or if
    the checkout is on that branch.

    Raises:
        RepositoryError: there is no commit to compare.
    """
    here, home = repo.checkout, repo.home
    try:
        trouble = "" if is_fetched else fetch_target(home, target)
    except RepositoryError as error:  # such as a remote that does not answer in time
        trouble = error.message
    branch = try_git_output(here, "symbolic-ref", "--quiet", "--short", "HEAD")
    head = resolve_revision(here, "HEAD^{commit}")
    uses_remote = target.remote and (is_remote_only or branch == target.branch)
    remote_tip = resolve_revision(home, f"{target.remote_ref}^{{commit}}") if uses_remote else ""
    tip = remote_tip or ("" if uses_remote and is_remote_only else target_tip(home, target))
    if not head or not tip:
        lacking = "this checkout" if not head else f"{target.remote}/{target.branch}".lstrip("/")
        raise RepositoryError(
            f"{lacking} has no commit to compare" + (f": {trouble}" if trouble else ""),
            code="OFFLINE" if trouble else "NO_COMMIT",
            hint="check the connection, then try again" if trouble else "make a first commit there",
        )
    _fetch_into_clone(repo, target, tip)
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
        changed=tuple(list_changes(here, with_untracked=False)),
        trouble=trouble,
    )


def _fetch_into_clone(repo: Repository, target: TargetBranch, tip: str) -> None:
    """Fetch the target from the home of a clone; a worktree shares its objects."""
    if not repo.checkout.home:
        return
    known = f"refs/remotes/home/{target.branch}"
    if resolve_revision(repo.checkout, known) == tip:
        return
    is_here = resolve_revision(repo.home, target.ref) == tip
    words = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
    source = target.ref if is_here else target.remote_ref
    git_output(repo.checkout, "-c", "gc.auto=0", *words, "--", repo.home.common_dir, f"+{source}:{known}")


def list_changes(here: Checkout, *, with_untracked: bool) -> list[str]:
    """Return the paths that differ from HEAD, and untracked ones that are not ignored if asked for."""
    which = "all" if with_untracked else "no"
    words = ("status", "--porcelain=v1", "-z", f"--untracked-files={which}", "--no-renames")
    # A repository inside of this one is listed as a folder.
    return [entry[3:].rstrip("/") for entry in git_output(here, *words).split("\0") if entry]


def commits_in(here: Checkout, span: str, *paths: str) -> list[dict[str, str]]:
    """Return the newest commits of a range that touch these paths, with author, and agent if it names one."""
    words = ("log", f"--max-count={MOST_SHOWN}", f"--format={_FIELDS}", span, "--")
    commits: list[dict[str, str]] = []
    for entry in try_git_output(here, "--literal-pathspecs", *words, *paths).split("\x1e"):
        commit, *fields = entry.strip("\n").split("\x1f", 4)
        if commit:
            seconds, subject, author, agent = fields
            at = rfc3339(int(seconds) * 1000)
            names = {"agent": agent, "author": author}
            commits.append({"commit": commit, "subject": subject, **names, "at": at})
    return commits


def sync(repo: Repository) -> Position:
    """Fetch the target and compare the checkout with it.

    Raises:
        RepositoryError: the target cannot be fetched; the facts have the comparison with the last fetch.
    """
    position = find_position(repo, find_target(repo.home, repo.settings))
    if position.trouble:
        raise offline(position, f"shown as fetched last; check the connection: git fetch {position.remote}")
    return position


def offline(position: Position, hint: str) -> RepositoryError:
    """Return the error for a remote that cannot be reached, with the last known position."""
    return RepositoryError(
        f"cannot fetch {position.target} from {position.remote}: {position.trouble}",
        code="OFFLINE",
        hint=hint,
        **position_facts(position),
    )


def behind_error(repo: Repository, position: Position, hint: str) -> Stale:
    """Return the error for a checkout that lacks commits of the target, with these commits."""
    ahead = f", {position.ahead} ahead" if position.ahead else ""
    behind = f"{count(position.behind, 'commit')} behind {position.place}"
    return Stale(
        f"{position.branch or position.head[:8]} is {behind}{ahead}",
        code="BEHIND",
        hint=hint,
        **position_facts(position),
        commits=commits_in(repo.checkout, f"{position.head}..{position.tip}"),
    )


def position_facts(position: Position) -> PositionJson:
    """Return the public JSON form of a position."""
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
    """Return the error for uncommitted changes."""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return LandlaneError(
        f"{paths[0]}{more} {'are' if more else 'is'} not committed",
        code="DIRTY",
        hint=hint,
        paths=list(paths[:MOST_SHOWN]),
        count=len(paths),
    )
