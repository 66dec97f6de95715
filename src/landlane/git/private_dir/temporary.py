"""Looking at a checkout through a git directory of our own, so that nothing in it can make git run a command.

A checkout's own settings may name programs (a file monitor, filters, hooks), and whoever worked there may
have written them. So git is never pointed at them: it is given a *shadow*, a git directory made for the
occasion, with the few settings that say how files are compared, a copy of the checkout's index, and the
object stores to read from. Looking changes nothing in the checkout, not even times in its index.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time

from landlane.errors import RepositoryError
from landlane.git.run import GitResult, GitStream, git_failed, run_git
from landlane.git.untrusted_checkout import (
    BIG_FILE,
    CLONE,
    LIMIT_SECONDS,
    SUBMODULE,
    home_git_output,
    is_oid,
    quoted_store,
    read_refs,
    read_small,
    run_home_git,
    sealed_environment,
    to_bytes,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping

    from landlane.git.untrusted_checkout import UntrustedCheckout

_STALE_SECONDS = 3600.0
# What says how files are compared and which are ignored; nothing here can name a program.
_TAKEN_OVER = (
    "core.filemode",
    "core.symlinks",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.autocrlf",
    "core.eol",
    "core.excludesfile",
    "core.attributesfile",
    "core.sharedrepository",
    "extensions.objectformat",
)
# One pass over the data, little memory, and on the disk before anything that it saves is deleted.
_OURS = {
    "core.bare": "false",
    "core.fsync": "all",
    "core.compression": "1",
    "core.bigfilethreshold": BIG_FILE,
    "core.untrackedcache": "false",
    "core.fsmonitor": "false",
    "core.hookspath": "/dev/null",
    "core.quotepath": "false",
    "core.logallrefupdates": "false",
    "fastimport.unpacklimit": "50",
    "gc.auto": "0",
    "uploadpack.allowfilter": "false",
}


class Shadow:
    """A git directory of ours over somebody's checkout."""

    def __init__(self, home: str, place: UntrustedCheckout, folder: str) -> None:
        self.home = home
        self.place = place
        self.folder = folder
        self.settings: dict[str, str] = {}
        self.refs: dict[str, str] = read_refs(place.git_dir) if place.has_own_objects else {}
        self.branch, self.head = _read_head(home, place, self.refs)
        self.environment = sealed_environment(
            GIT_DIR=folder, GIT_WORK_TREE=place.root, GIT_INDEX_FILE=os.path.join(folder, "index")
        )

    @property
    def algorithm(self) -> str:
        """The name of the hash that objects are named by."""
        return self.settings.get("extensions.objectformat", "sha1")

    @property
    def zero(self) -> str:
        """The name that stands for no object."""
        return "0" * (64 if self.algorithm == "sha256" else 40)

    @property
    def index(self) -> str:
        """The copy of the checkout's index; there may be none."""
        return os.path.join(self.folder, "index")

    def run(self, *arguments: str, stdin: bytes | None = None) -> GitResult:
        return run_git(
            *arguments,
            cwd=self.place.root,
            stdin=stdin,
            limit_seconds=LIMIT_SECONDS,
            environment=self.environment,
        )

    def git_output(self, *arguments: str, stdin: bytes | None = None) -> str:
        """What git answers, where nothing but an answer will do.

        Raises:
            RepositoryError: git refused.
        """
        found = self.run(*arguments, stdin=stdin)
        if found.exit_code:
            raise git_failed(arguments, found)
        return found.stdout

    def stream(self, *arguments: str) -> GitStream:
        return GitStream(*arguments, cwd=self.place.root, environment=self.environment)

    def kinds_of(self, oids: Iterable[str]) -> dict[str, tuple[str, int]]:
        """The type and size of each of these objects that is there."""
        wanted = sorted(set(oids))
        if not wanted:
            return {}
        asked = "\n".join(wanted).encode() + b"\n"
        found = self.git_output("cat-file", "--batch-check", "--buffer", stdin=asked)
        lines = (line.split(" ") for line in found.splitlines())
        return {words[0]: (words[1], int(words[2])) for words in lines if len(words) == 3}

    def write_refs(self, refs: Mapping[str, str]) -> None:
        """Make these the refs of the shadow."""
        lines = [f"{oid} {name}\n" for name, oid in sorted(refs.items())]
        with open(os.path.join(self.folder, "packed-refs"), "w", encoding="utf-8") as file:
            file.write("# pack-refs with: sorted \n" + "".join(lines))


@contextlib.contextmanager
def open_shadow(home: str, place: UntrustedCheckout) -> Generator[Shadow]:
    """A shadow over a checkout, for as long as it is looked at.

    Raises:
        RepositoryError: what the checkout says of itself cannot be read.
    """
    if not os.path.isdir(place.root) or not os.path.isdir(place.git_dir):
        raise RepositoryError(
            f"the checkout at {place.root} is gone, or its git directory is",
            code="CHECKOUT_GONE",
            hint="`git worktree list` tells which worktrees there are",
        )
    room = os.path.join(home, "landlane", "rescuing")
    os.makedirs(room, exist_ok=True)
    _sweep(room)
    folder = tempfile.mkdtemp(dir=room)
    lock = os.open(os.path.join(folder, "lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shadow = Shadow(home, place, folder)
        _furnish(shadow)
        yield shadow
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _sweep(room: str) -> None:
    """Remove what killed processes left behind: shadows that are old and that nobody holds."""
    for name in os.listdir(room):
        folder = os.path.join(room, name)
        with contextlib.suppress(OSError):
            if time.time() - os.stat(folder).st_mtime < _STALE_SECONDS:
                continue
            lock = os.open(os.path.join(folder, "lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _furnish(shadow: Shadow) -> None:
    folder, place = shadow.folder, shadow.place
    for name in ("objects/info", "objects/pack", "refs", "info"):
        os.makedirs(os.path.join(folder, name))
    shadow.settings = _settings(shadow.home, place)
    with open(os.path.join(folder, "HEAD"), "w", encoding="utf-8") as file:
        file.write(f"{shadow.head or 'ref: refs/heads/unborn'}\n")
    with open(os.path.join(folder, "config"), "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(config_text({**shadow.settings, **_OURS}))
    if place.has_own_objects:
        stores = [os.path.join(place.git_dir, "objects")]
        if place.kind == CLONE:
            stores.append(os.path.join(shadow.home, "objects"))
        with open(os.path.join(folder, "objects", "info", "alternates"), "wb") as file:
            file.write(b"".join(to_bytes(quoted_store(store)) + b"\n" for store in stores))
    else:
        shadow.environment["GIT_OBJECT_DIRECTORY"] = os.path.join(shadow.home, "objects")
    _copy_index(shadow)
    common = place.git_dir if place.has_own_objects else shadow.home
    for name in ("info/exclude", "info/attributes", "shallow"):
        text = read_small(os.path.join(common, name))
        if text is not None:
            with open(os.path.join(folder, name), "wb") as file:
                file.write(text)


def _copy_index(shadow: Shadow) -> None:
    """Copy the index with its time: by it git knows which entries are too young to be trusted."""
    git_dir = shadow.place.git_dir
    shared = [name for name in os.listdir(git_dir) if name.startswith("sharedindex.")]
    for name in ("index", *shared):
        with contextlib.suppress(FileNotFoundError):
            handle = _open_index(os.path.join(git_dir, name))
            with open(handle, "rb") as file, open(os.path.join(shadow.folder, name), "wb") as copy:
                was = os.fstat(handle)
                shutil.copyfileobj(file, copy)
            os.utime(os.path.join(shadow.folder, name), ns=(was.st_atime_ns, was.st_mtime_ns))
    if shared and os.path.exists(shadow.index):
        # A split index means nothing without its other half, which would be gone when it is restored.
        was = os.stat(shadow.index)
        shadow.git_output("update-index", "--no-split-index")
        os.utime(shadow.index, ns=(was.st_atime_ns, was.st_mtime_ns))


def _open_index(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RepositoryError(
            f"the index {path} cannot be read: {error.strerror}",
            code="RESCUE_UNREADABLE",
            hint="make it readable, or remove it, and try again",
        ) from error


def _settings(home: str, place: UntrustedCheckout) -> dict[str, str]:
    found = home_git_output(home, "config", "--list", "-z").split("\0")
    pairs = (entry.partition("\n") for entry in found)
    settings = {name: text for name, _, text in pairs if name in _TAKEN_OVER}
    if place.kind == SUBMODULE:
        # Its objects may be named otherwise than those at home. With `--file` git only reads.
        config = os.path.join(place.git_dir, "config")
        asked = ("config", "--no-includes", "--file", config, "--get", "extensions.objectformat")
        settings["extensions.objectformat"] = run_home_git(home, *asked).stdout.strip() or "sha1"
    return settings


def config_text(settings: Mapping[str, str]) -> str:
    """Settings as the `config` of a git directory."""
    is_plain = settings.get("extensions.objectformat", "sha1") == "sha1"
    lines = [f"[core]\n\trepositoryformatversion = {0 if is_plain else 1}\n"]
    for name, text in settings.items():
        if name == "extensions.objectformat" and is_plain:
            continue
        section, _, key = name.partition(".")
        escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        lines.append(f'[{section}]\n\t{key} = "{escaped}"\n')
    return "".join(lines)


def _read_head(home: str, place: UntrustedCheckout, refs: Mapping[str, str]) -> tuple[str, str]:
    """The branch a checkout is on, and its commit; either may be empty."""
    text = (read_small(os.path.join(place.git_dir, "HEAD")) or b"").decode("utf-8", "surrogateescape").strip()
    if not text.startswith("ref:"):
        if not is_oid(text):
            raise RepositoryError(
                f"the HEAD of {place.root} cannot be read",
                code="REPOSITORY_BROKEN",
                hint="`git fsck` and `git worktree repair` tell more",
            )
        return "", text
    branch = text.removeprefix("ref:").strip()
    if place.has_own_objects:
        return branch, refs.get(branch, "")
    return branch, run_home_git(
        home, "rev-parse", "--verify", "--quiet", f"{branch}^{{commit}}"
    ).stdout.strip()
