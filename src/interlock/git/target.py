"""The branch that work lands on: which it is, where it counts, and bringing it up to date."""

from __future__ import annotations

import os
import time

from interlock.errors import RepositoryError
from interlock.git.lock import git_lock
from interlock.git.run import ask, run_in
from interlock.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interlock.config import Settings
    from interlock.git.layout import Checkout

_OURS = "interlock/"
_STAMP = "fetched"
_FETCH_SECONDS = 300.0


@value
class Target:
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
class Base:
    """Where the target stands, and whether that was just asked of the remote."""

    target: Target
    commit: str
    is_fresh: bool
    trouble: str = ""


def find_target(home: Checkout, settings: Settings) -> Target:
    """The target branch: what the settings say, else the branch of the main checkout, else the usual ones.

    Raises:
        RepositoryError: there is no commit to work on, or no such branch.
    """
    branch = settings.target or _usual_branch(home)
    if not branch:
        raise RepositoryError(
            "there is no branch to work on yet",
            code="NO_TARGET",
            hint="make a first commit, or name the branch: [landing] target in interlock.toml",
        )
    target = Target(branch=branch, remote=_find_remote(home, settings, branch))
    if not ask(home, "rev-parse", "--verify", "--quiet", f"{target.ref}^{{commit}}") and not target.remote:
        raise RepositoryError(
            f"there is no branch {branch}, which work should land on",
            code="NO_TARGET",
            hint="name another under [landing] target in interlock.toml, or create it",
        )
    return target


def _usual_branch(home: Checkout) -> str:
    head = ask(home, "symbolic-ref", "--quiet", "--short", "HEAD")
    usual = ask(home, "config", "init.defaultBranch")
    for name in (head, usual, "main", "master", "trunk"):
        if name and not name.startswith(_OURS) and _has(home, f"refs/heads/{name}"):
            return name
    remote = ask(home, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
    return remote.partition("/")[2]


def _find_remote(home: Checkout, settings: Settings, branch: str) -> str:
    if settings.remote == "none":
        return ""
    remotes = ask(home, "remote").splitlines()
    wanted = settings.remote or ask(home, "config", f"branch.{branch}.remote") or "origin"
    if settings.remote and wanted not in remotes:
        raise RepositoryError(
            f"there is no remote {wanted!r}, which [landing] remote names",
            code="NO_REMOTE",
            hint=f"git remote add {wanted} URL, or mend [landing] remote in interlock.toml",
        )
    return wanted if wanted in remotes else ""


def _has(home: Checkout, ref: str) -> bool:
    return bool(ask(home, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}"))


def fetch_target(home: Checkout, target: Target) -> str:
    """Fetch the target branch; tells what went wrong, or nothing.

    Whoever waited while somebody else fetched need not do so again: what was fetched is newer than the wish.
    """
    if not target.remote:
        return ""
    asked_at = time.monotonic_ns()
    with git_lock(home.common_dir, f"fetch {target.remote}/{target.branch}"):
        if _fetched_at(home, target) >= asked_at:
            return ""
        begun_at = time.monotonic_ns()
        found = run_in(
            home,
            *("-c", "gc.auto=0", "-c", "maintenance.auto=false", "fetch", "--quiet", "--no-tags"),
            *("--no-write-fetch-head", "--no-recurse-submodules", target.remote),
            f"+{target.ref}:{target.remote_ref}",
            limit_seconds=_FETCH_SECONDS,
        )
        if found.exit_code:
            return found.trouble.splitlines()[-1] if found.trouble else f"exit {found.exit_code}"
        _note_fetched(home, target, begun_at)
    return ""


def _stamp(home: Checkout, target: Target) -> str:
    name = f"{_STAMP}-{target.remote}-{target.branch}".replace("/", "%")
    return os.path.join(home.common_dir, "interlock", name)


def _fetched_at(home: Checkout, target: Target) -> int:
    """When the last fetch began, on a clock that ends with the machine's run: a later one than now is old."""
    try:
        with open(_stamp(home, target), encoding="ascii") as file:
            at = int(file.read())
    except (OSError, ValueError):
        return -1
    return at if at <= time.monotonic_ns() else -1


def _note_fetched(home: Checkout, target: Target, at: int) -> None:
    with open(_stamp(home, target), "w", encoding="ascii") as file:
        file.write(str(at))


def tip_of(home: Checkout, target: Target) -> str:
    """The newest commit of the target that is known here: of the remote's copy, where that counts.

    A branch here that has all of the remote's and more is newer: its commits wait to be pushed.
    """
    here = ask(home, "rev-parse", "--verify", "--quiet", f"{target.ref}^{{commit}}")
    if not target.remote:
        return here
    there = ask(home, "rev-parse", "--verify", "--quiet", f"{target.remote_ref}^{{commit}}")
    if not there or here == there:
        return here
    if here and not run_in(home, "merge-base", "--is-ancestor", there, here).exit_code:
        return here
    return there


def find_base(home: Checkout, target: Target, *, is_offline: bool = False) -> Base:
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
    commit = tip_of(home, target)
    if not commit:
        raise RepositoryError(
            f"{target.branch} has no commit yet", code="NO_TARGET", hint="make a first commit there"
        )
    return Base(target=target, commit=commit, is_fresh=not (is_offline and target.remote), trouble=trouble)
