"""The branch that work lands on: which it is, where it counts, and bringing it up to date."""

from __future__ import annotations

import os
import time

from landlane.errors import RepositoryError
from landlane.git.ancestry import is_ancestor
from landlane.git.lock import FETCH_LOCK, git_lock
from landlane.git.refs import read_refs
from landlane.git.run import run_in, try_git_output
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.git.discovery import Checkout
    from landlane.git.run import GitResult
    from landlane.settings.model import Settings

_OURS = "landlane/"
_STAMP = "fetched"
_FETCH_SECONDS = 300.0
# What git says when somebody else did something at the same moment.
RACE_MESSAGES = (
    "cannot lock ref",
    "commondir",
    "unable to update local ref",
    ".lock': File exists",
    "bad object",
)
_SAME_SECONDS = 2.0
_CONFIG_NAMES = ("GIT_CONFIG", "XDG_CONFIG_HOME")
_asked: dict[str, tuple[float, tuple[object, ...], list[tuple[str, str, str]]]] = {}
_NO_SUCH_BRANCH = "couldn't find remote ref"


@value
class TargetBranch:
    """A branch, and the remote whose copy of it counts; without one, the branch here does."""

    branch: str
    remote: str = ""

    @property
    def ref(self) -> str:
        """The branch here."""
        return f"refs/heads/{self.branch}"

    @property
    def remote_ref(self) -> str:
        """What was last seen of the remote's."""
        return f"refs/remotes/{self.remote}/{self.branch}" if self.remote else ""


@value
class BaseCommit:
    """Where the target stands, and whether that was just asked of the remote."""

    target: TargetBranch
    commit: str
    is_fresh: bool
    trouble: str = ""


def find_target(home: Checkout, settings: Settings) -> TargetBranch:
    """The target branch: what the settings say, else the branch of the main checkout, else the usual ones.

    Raises:
        RepositoryError: there is no commit to work on, or no such branch.
    """
    known = git_settings(home)
    branch = settings.landing.target or _usual_branch(home, known)
    if not branch:
        raise RepositoryError(
            "there is no branch to work on yet",
            code="NO_TARGET",
            hint="make a first commit, or name the branch: [landing] target in landlane.toml",
        )
    target = TargetBranch(branch=branch, remote=_find_remote(known, settings, branch))
    if settings.landing.target and not target.remote and not commits_at(home, [target.ref]):
        raise RepositoryError(
            f"there is no branch {branch}, which work should land on",
            code="NO_TARGET",
            hint="name another under [landing] target in landlane.toml, or create it",
        )
    return target


def git_settings(home: Checkout) -> dict[str, str]:
    """All that git is told here: the last of several values counts, as for git itself."""
    return {key: text for _, key, text in scoped_settings(home)}


def scoped_settings(home: Checkout) -> list[tuple[str, str, str]]:
    """All that git is told here, each with where it stands, such as `local`; by one git.

    One piece of work asks this several times in a row: an answer is used again for a moment, as long as the
    files it came from are the same.
    """
    before = _config_marks(home)
    place = f"{home.git_dir}\n{home.common_dir}"
    at, marks, known = _asked.get(place, (0.0, (), []))
    if marks != before or time.monotonic() - at > _SAME_SECONDS:
        found = run_in(home, "config", "--list", "--show-scope", "-z")
        parts = found.stdout.split("\0")
        items = ((scope, item.partition("\n")) for scope, item in zip(parts[::2], parts[1::2], strict=False))
        known = [(scope, key, text) for scope, (key, _, text) in items]
        _asked.clear()
        if not found.exit_code:
            _asked[place] = (time.monotonic(), before, known)
    return known


def _config_marks(home: Checkout) -> tuple[object, ...]:
    """What changes when git's settings do: files as they are, and what the environment adds."""
    own = os.path.expanduser("~")
    places = [os.path.join(home.common_dir, "config"), os.path.join(home.git_dir, "config.worktree")]
    places += [os.path.join(own, ".gitconfig"), os.path.join(own, ".config", "git", "config")]
    marks: list[object] = [item for item in os.environ.copy().items() if item[0].startswith(_CONFIG_NAMES)]
    for place in places:
        try:
            found = os.stat(place)
        except OSError:
            marks.append(None)
        else:
            marks.append((found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))
    return tuple(marks)


def commits_at(home: Checkout, refs: Sequence[str]) -> dict[str, str]:
    """The commits that those of these branches stand on that are there; at most one git for all of them."""
    known = read_refs(home.common_dir, refs)
    if known is not None:
        return known
    form = "--format=%(refname) %(objectname) %(objecttype) %(*objectname)"
    rows = (line.split(" ") for line in try_git_output(home, "for-each-ref", form, *refs).splitlines())
    return {name: peeled or oid for name, oid, kind, peeled in rows if name in refs and kind != "tree"}


def commit_at(home: Checkout, ref: str) -> str:
    """The commit that one branch stands on; empty where there is none."""
    return commits_at(home, [ref]).get(ref, "") if ref else ""


def _usual_branch(home: Checkout, known: dict[str, str]) -> str:
    """The remote's own choice, else one of the usual names, else the branch of the main checkout.

    Somebody may stand on a topic branch in the main checkout: nothing should land there for that.
    """
    chosen = _remote_choice(home)
    head = _head_branch(home)
    usual = [known.get("init.defaultbranch", ""), "main", "master", "trunk"]
    names = [chosen, *([head] if head in usual else []), *usual, head]
    names = [name for name in names if name and not name.startswith(_OURS)]
    there = commits_at(home, [f"refs/heads/{name}" for name in names])
    for name in names:
        if f"refs/heads/{name}" in there:
            return name
    return chosen


def _remote_choice(home: Checkout) -> str:
    """The branch that `origin` shows to whoever clones it, as it was told at the last clone."""
    try:
        path = os.path.join(home.common_dir, "refs", "remotes", "origin", "HEAD")
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.readline().rstrip("\n").removeprefix("ref: refs/remotes/origin/")
    except OSError:
        return ""


def _head_branch(home: Checkout) -> str:
    """The branch of the main checkout, read from its file where that tells it."""
    try:
        with open(os.path.join(home.common_dir, "HEAD"), encoding="utf-8", errors="surrogateescape") as file:
            line = file.readline().rstrip("\n")
    except OSError:
        line = ""
    branch = line.removeprefix("ref: refs/heads/")
    if branch == ".invalid":  # the refs are in tables, which only git can read
        return try_git_output(home, "symbolic-ref", "--quiet", "--short", "HEAD")
    return branch if branch != line else ""


def _find_remote(known: dict[str, str], settings: Settings, branch: str) -> str:
    if settings.landing.remote == "none":
        return ""
    remotes = {key[len("remote.") :].rpartition(".")[0] for key in known if key.startswith("remote.")}
    wanted = settings.landing.remote or known.get(f"branch.{branch}.remote") or "origin"
    if settings.landing.remote and wanted not in remotes:
        raise RepositoryError(
            f"there is no remote {wanted!r}, which [landing] remote names",
            code="NO_REMOTE",
            hint=f"git remote add {wanted} URL, or mend [landing] remote in landlane.toml",
        )
    return wanted if wanted in remotes else ""


def fetch_target(home: Checkout, target: TargetBranch, on_tick: Callable[[], None] | None = None) -> str:
    """Fetch the target branch; tells what went wrong, or nothing.

    Whoever waited while somebody else fetched need not do so again: what was fetched is newer than the wish.
    """
    if not target.remote:
        return ""
    asked_at = time.monotonic_ns()
    with git_lock(home.common_dir, f"fetch {target.remote}/{target.branch}", name=FETCH_LOCK):
        if _fetched_at(home, target) >= asked_at:
            return ""
        begun_at = time.monotonic_ns()
        found = _fetch(home, target, on_tick)
        if found.exit_code and any(sign in found.stderr for sign in RACE_MESSAGES):
            # A worktree was being entered, or somebody else's fetch moved the ref: once more, quite alone.
            with git_lock(home.common_dir, f"fetch {target.remote}/{target.branch}"):
                found = _fetch(home, target, on_tick)
        if found.exit_code and _NO_SUCH_BRANCH in found.stderr and commits_at(home, [target.ref]):
            # It was never pushed, or is gone there: the branch here is all there is.
            run_in(home, "update-ref", "-d", target.remote_ref)
            return ""
        if found.exit_code:
            return failure_reason(found)
        _note_fetched(home, target, begun_at)
    return ""


def failure_reason(found: GitResult) -> str:
    """Why git refused, in its own words: the line that says so, not the advice behind it."""
    lines = found.stderr.splitlines()
    fatal = [line.removeprefix("fatal: ") for line in lines if line.startswith("fatal: ")]
    return (fatal or lines or [f"exit {found.exit_code}"])[0]


def _fetch(home: Checkout, target: TargetBranch, on_tick: Callable[[], None] | None) -> GitResult:
    return run_in(
        home,
        *("-c", "gc.auto=0", "-c", "maintenance.auto=false", "fetch", "--quiet", "--no-tags"),
        *("--no-write-fetch-head", "--no-recurse-submodules", target.remote),
        f"+{target.ref}:{target.remote_ref}",
        limit_seconds=_FETCH_SECONDS,
        on_tick=on_tick,
    )


def _stamp(home: Checkout, target: TargetBranch) -> str:
    name = f"{_STAMP}-{target.remote}-{target.branch}".replace("/", "%")
    return os.path.join(home.common_dir, "landlane", name)


def _fetched_at(home: Checkout, target: TargetBranch) -> int:
    """When the last fetch began, on a clock that ends with the machine's run: a later one than now is old."""
    try:
        with open(_stamp(home, target), encoding="ascii") as file:
            at = int(file.read())
    except (OSError, ValueError):
        return -1
    return at if at <= time.monotonic_ns() else -1


def _note_fetched(home: Checkout, target: TargetBranch, at: int) -> None:
    with open(_stamp(home, target), "w", encoding="ascii") as file:
        file.write(str(at))


def target_tip(home: Checkout, target: TargetBranch) -> str:
    """The newest commit of the target that is known here: of the remote's copy, where that counts.

    A branch here that has all of the remote's and more is newer: its commits wait to be pushed.
    """
    known = commits_at(home, [ref for ref in (target.ref, target.remote_ref) if ref])
    here = known.get(target.ref, "")
    if not target.remote:
        return here
    there = known.get(target.remote_ref, "")
    if not there or here == there:
        return here
    if here and is_ancestor(home, there, here):
        return here
    return there


def find_base(home: Checkout, target: TargetBranch, *, is_offline: bool = False) -> BaseCommit:
    """Where new work should begin, freshly fetched unless it may be without.

    Raises:
        RepositoryError: the remote cannot be reached, or the target has no commit.
    """
    trouble = "" if is_offline else fetch_target(home, target)
    if trouble:
        raise RepositoryError(
            f"{target.remote} cannot be asked for {target.branch}: {trouble}",
            code="OFFLINE",
            hint="mend the connection; or go on from what was fetched last with --offline",
        )
    commit = target_tip(home, target)
    if not commit:
        raise RepositoryError(
            f"{target.branch} has no commit yet", code="NO_TARGET", hint="make a first commit there"
        )
    return BaseCommit(
        target=target, commit=commit, is_fresh=not (is_offline and target.remote), trouble=trouble
    )
