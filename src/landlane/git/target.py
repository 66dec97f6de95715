"""The branch that work lands on: which one it is, its newest commit, and fetching it."""

from __future__ import annotations

import os
import time

from landlane.errors import RepositoryError
from landlane.files import read_first_line
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

_OWN_PREFIX = "landlane/"
_STAMP = "fetched"
_FETCH_SECONDS = 300.0
# What git prints when another process changed something at the same moment.
RACE_MESSAGES = (
    *("cannot lock ref", "commondir", "unable to update local ref", ".lock': File exists", "bad object"),
)
_NO_SUCH_BRANCH = "couldn't find remote ref"
_SAME_SECONDS = 2.0
_CONFIG_NAMES = ("GIT_CONFIG", "XDG_CONFIG_HOME")
_settings: dict[str, tuple[float, tuple[object, ...], list[tuple[str, str, str]]]] = {}


@value
class TargetBranch:
    """A branch, and the remote whose copy of it counts; without a remote, the local branch does."""

    branch: str
    remote: str = ""

    @property
    def ref(self) -> str:
        return f"refs/heads/{self.branch}"

    @property
    def remote_ref(self) -> str:
        """The last fetched state of the remote's branch."""
        return f"refs/remotes/{self.remote}/{self.branch}" if self.remote else ""


@value
class BaseCommit:
    """The newest commit of the target, and whether it was just fetched."""

    target: TargetBranch
    commit: str
    is_fresh: bool


def find_target(home: Checkout, settings: Settings) -> TargetBranch:
    """Return the target branch: the one in the settings, else a usual one.

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
    """Return git's settings here; of several values the last one counts."""
    return {key: text for _, key, text in scoped_settings(home)}


def scoped_settings(home: Checkout) -> list[tuple[str, str, str]]:
    """Return git's settings here as (scope, key, text).

    They are read several times in a row, so they are cached for a moment, while their files do not change.
    """
    before = _config_marks(home)
    cache_key = f"{home.git_dir}\n{home.common_dir}"
    at, marks, known = _settings.get(cache_key, (0.0, (), []))
    if marks != before or time.monotonic() - at > _SAME_SECONDS:
        listed = run_in(home, "config", "--list", "--show-scope", "-z")
        parts = listed.stdout.split("\0")
        items = ((scope, item.partition("\n")) for scope, item in zip(parts[::2], parts[1::2], strict=False))
        known = [(scope, key, text) for scope, (key, _, text) in items]
        _settings.clear()
        if not listed.exit_code:
            _settings[cache_key] = (time.monotonic(), before, known)
    return known


def _config_marks(home: Checkout) -> tuple[object, ...]:
    """Return what changes when git's settings do: the state of their files, and variables."""
    own = os.path.expanduser("~")
    files = [os.path.join(home.common_dir, "config"), os.path.join(home.git_dir, "config.worktree")]
    files += [os.path.join(own, ".gitconfig"), os.path.join(own, ".config", "git", "config")]
    marks: list[object] = [item for item in os.environ.copy().items() if item[0].startswith(_CONFIG_NAMES)]
    for file in files:
        try:
            found = os.stat(file)
        except OSError:
            marks.append(None)
        else:
            marks.append((found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))
    return tuple(marks)


def commits_at(home: Checkout, refs: Sequence[str]) -> dict[str, str]:
    """Return the commits of these refs, without missing ones; with at most one git command."""
    known = read_refs(home.common_dir, refs)
    if known is not None:
        return known
    form = "--format=%(refname) %(objectname) %(objecttype) %(*objectname)"
    lines = (line.split(" ") for line in try_git_output(home, "for-each-ref", form, *refs).splitlines())
    return {name: peeled or oid for name, oid, kind, peeled in lines if name in refs and kind != "tree"}


def commit_at(home: Checkout, ref: str) -> str:
    """Return the commit of one ref; empty where there is none."""
    return commits_at(home, [ref]).get(ref, "") if ref else ""


def _usual_branch(home: Checkout, known: dict[str, str]) -> str:
    """Return the remote's default branch, else a usual name, else the branch of the main checkout.

    The main checkout may be on a topic branch, where nothing should land.
    """
    default = read_first_line(os.path.join(home.common_dir, "refs", "remotes", "origin", "HEAD"))
    default = default.removeprefix("ref: refs/remotes/origin/")
    head = _head_branch(home)
    usual = [known.get("init.defaultbranch", ""), "main", "master", "trunk"]
    names = [default, *([head] if head in usual else []), *usual, head]
    names = [name for name in names if name and not name.startswith(_OWN_PREFIX)]
    existing = commits_at(home, [f"refs/heads/{name}" for name in names])
    return next((name for name in names if f"refs/heads/{name}" in existing), default)


def _head_branch(home: Checkout) -> str:
    """Return the branch of the main checkout, read from its file where possible."""
    line = read_first_line(os.path.join(home.common_dir, "HEAD"))
    branch = line.removeprefix("ref: refs/heads/")
    if branch == ".invalid":  # the refs are in tables, which only git can read
        return try_git_output(home, "symbolic-ref", "--quiet", "--short", "HEAD")
    return branch if branch != line else ""


def _find_remote(known: dict[str, str], settings: Settings, branch: str) -> str:
    chosen = settings.landing.remote
    if chosen == "none":
        return ""
    remotes = {key[len("remote.") :].rpartition(".")[0] for key in known if key.startswith("remote.")}
    wanted = chosen or known.get(f"branch.{branch}.remote") or "origin"
    if chosen and wanted not in remotes:
        raise RepositoryError(
            f"there is no remote {wanted!r}, which [landing] remote names",
            code="NO_REMOTE",
            hint=f"git remote add {wanted} URL, or mend [landing] remote in landlane.toml",
        )
    return wanted if wanted in remotes else ""


def fetch_target(home: Checkout, target: TargetBranch, on_tick: Callable[[], None] | None = None) -> str:
    """Fetch the target branch; return what went wrong, or an empty text.

    If another process fetched while this one waited, that is new enough.
    """
    if not target.remote:
        return ""
    called_at = time.monotonic_ns()
    with git_lock(home.common_dir, f"fetch {target.remote}/{target.branch}", name=FETCH_LOCK):
        if _fetched_at(home, target) >= called_at:
            return ""
        begun_at = time.monotonic_ns()
        result = _fetch(home, target, on_tick)
        if result.exit_code and any(message in result.stderr for message in RACE_MESSAGES):
            # A worktree was being added, or another fetch moved the ref: try again, alone.
            with git_lock(home.common_dir, f"fetch {target.remote}/{target.branch}"):
                result = _fetch(home, target, on_tick)
        if result.exit_code and _NO_SUCH_BRANCH in result.stderr and commits_at(home, [target.ref]):
            # It was never pushed, or was deleted there: only the local branch exists.
            run_in(home, "update-ref", "-d", target.remote_ref)
            return ""
        if result.exit_code:
            # The line in which git says why, without the advice after it.
            lines = result.stderr.splitlines()
            fatal = [line.removeprefix("fatal: ") for line in lines if line.startswith("fatal: ")]
            return (fatal or lines or [f"exit {result.exit_code}"])[0]
        with open(_stamp(home, target), "w", encoding="ascii") as file:
            file.write(str(begun_at))
    return ""


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
    """Return when the last fetch began, on the monotonic clock; -1 when unknown or before a reboot."""
    try:
        at = int(read_first_line(_stamp(home, target)))
    except ValueError:
        return -1
    return at if at <= time.monotonic_ns() else -1


def target_tip(home: Checkout, target: TargetBranch) -> str:
    """Return the newest commit of the target that is known here: that of the remote, where there is one.

    A local branch that contains the remote's is newer: its commits wait to be pushed.
    """
    known = commits_at(home, [ref for ref in (target.ref, target.remote_ref) if ref])
    here, remote = known.get(target.ref, ""), known.get(target.remote_ref, "")
    if not remote or here == remote or (here and is_ancestor(home, remote, here)):
        return here
    return remote


def find_base(home: Checkout, target: TargetBranch, *, is_offline: bool = False) -> BaseCommit:
    """Return where new work should begin, freshly fetched unless `is_offline`.

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
    return BaseCommit(target=target, commit=commit, is_fresh=not (is_offline and target.remote))
