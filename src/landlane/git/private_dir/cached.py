"""A lens: a git directory of ours over somebody's checkout, kept from one look to the next.

It has an index, an object store that borrows from the repository's, and a HEAD that is the last picture.
Only one process looks through it at a time: its index is the memory that makes the next look quick.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time

from landlane.errors import RepositoryError, TimedOut
from landlane.files import write_whole
from landlane.git.run import GitResult, git_failed, run_git
from landlane.git.untrusted_checkout import (
    CLONE,
    home_git_output,
    is_oid,
    quoted_store,
    read_small,
    run_home_git,
    sealed_environment,
    to_bytes,
)
from landlane.ids import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from typing import Any

    from landlane.git.untrusted_checkout import UntrustedCheckout

_FORM = 1
_WAIT_SECONDS = 20.0
_FIRST_SLEEP, _LONGEST_SLEEP = 0.002, 0.03
_LIMIT_SECONDS = 300.0
_SETTINGS_SECONDS = 600.0  # settings may also be in files that those we watch include
_OLD_SECONDS = 6 * 3600.0
_MOST_STAGED_FILES = 20_000
_MOST_STAGED_BYTES = 2_000_000_000
_TAKEN_OVER = (
    "core.filemode",
    "core.symlinks",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.excludesfile",
    "core.sharedrepository",
    "extensions.objectformat",
)
_OURS = {
    "core.bare": "false",
    "core.autocrlf": "false",
    "core.untrackedcache": "true",
    "status.showuntrackedfiles": "all",  # git uses the cache only when this is what is asked for
    "core.preloadindex": "true",
    "core.fsmonitor": "false",
    "core.hookspath": "/dev/null",
    "core.fsync": "none",  # what matters is brought home, and written through there
    "core.loosecompression": "1",
    "core.bigfilethreshold": "16m",
    "core.quotepath": "false",
    "core.logallrefupdates": "false",
    "index.version": "4",
    "index.skiphash": "true",
    "gc.auto": "0",
    "uploadpack.allowfilter": "false",
}


class Lens:
    """One lens, held by this process alone."""

    def __init__(self, home: str, place: UntrustedCheckout, folder: str) -> None:
        self.home = home
        self.place = place
        self.folder = folder
        self._facts = _read_facts(folder)
        self.environment = sealed_environment(
            GIT_DIR=folder,
            GIT_WORK_TREE=place.root,
            GIT_INDEX_FILE=os.path.join(folder, "index"),
            GIT_OPTIONAL_LOCKS="1",  # it is our own index that is brought up to date
        )

    # ------------------------------------------------------------------------------- what is known

    @property
    def tree(self) -> str:
        """The last picture; empty when there is none, or when whoever took it was cut off."""
        is_whole = read_small(os.path.join(self.folder, "HEAD")) == f"{self._facts.get('head')}\n".encode()
        return str(self._facts.get("tree", "")) if is_whole else ""

    @property
    def is_begun(self) -> bool:
        """Whether the index was set up."""
        return bool(self._facts.get("is_begun")) and os.path.exists(os.path.join(self.folder, "index"))

    @property
    def named(self) -> list[str]:
        """The paths that are pictured though git may ignore them."""
        return list(self._facts.get("named", ()))

    @property
    def taken_by(self) -> str:
        """For whom the last picture was taken."""
        return str(self._facts.get("taken_by", ""))

    @property
    def stored(self) -> dict[str, list[str]]:
        """The files elsewhere that were kept one by one: their mode, object and stamp."""
        return dict(self._facts.get("stored", {}))

    @property
    def staged_bytes(self) -> int:
        return int(self._facts.get("staged_bytes", 0))

    @property
    def staged_files(self) -> int:
        return int(self._facts.get("staged_files", 0))

    @property
    def algorithm(self) -> str:
        """The hash that objects are named by."""
        return str(self._facts.get("settings", {}).get("extensions.objectformat", "sha1"))

    def note(self, **facts: object) -> None:
        """Remember something of this lens."""
        self._facts |= facts
        write_whole(os.path.join(self.folder, "facts.json"), json.dumps(self._facts).encode())

    # ------------------------------------------------------------------------------- asking git

    def run(self, *arguments: str, stdin: bytes | None = None, **variables: str) -> GitResult:
        return run_git(
            *arguments,
            cwd=self.place.root,
            stdin=stdin,
            limit_seconds=_LIMIT_SECONDS,
            environment={**self.environment, **variables},
        )

    def git_output(self, *arguments: str, stdin: bytes | None = None, **variables: str) -> str:
        """What git answers, where nothing but an answer will do.

        Raises:
            RepositoryError: git refused.
        """
        found = self.run(*arguments, stdin=stdin, **variables)
        if found.exit_code:
            raise git_failed(arguments, found)
        return found.stdout

    def newly_tracked(self) -> list[str]:
        """The files that git tracks though it would ignore them, if any may have been added since.

        A look passes over what is ignored. So those are pictured by name, like what is claimed by name.
        """
        index = os.path.join(self.place.git_dir, "index")
        try:
            with open(index, "rb") as file:
                count = int.from_bytes(file.read(12)[8:12], "big")
        except OSError:
            return []
        if count == self._facts.get("tracked"):
            return []
        self.note(tracked=count)
        words = ("ls-files", "--cached", "--ignored", "--exclude-standard", "-z")
        found = self.run(*words, GIT_INDEX_FILE=index, GIT_OPTIONAL_LOCKS="0")
        return [path for path in found.stdout.split("\0") if path] if not found.exit_code else []

    def write_object(self, kind: str, data: bytes) -> str:
        """Write one object; starting git for a small one would take longer than all the rest."""
        import hashlib  # noqa: PLC0415 - dear, and only needed when something has changed
        import zlib  # noqa: PLC0415

        whole = f"{kind} {len(data)}\0".encode() + data
        oid = hashlib.new(self.algorithm, whole, usedforsecurity=False).hexdigest()
        path = os.path.join(self.folder, "objects", oid[:2], oid[2:])
        if os.path.exists(path):
            os.utime(path)
            return oid
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_whole(path, zlib.compress(whole, 1))
        return oid

    def move_to(self, tree: str) -> None:
        """Let a tree be the last picture: HEAD is a commit of it."""
        who = "landlane <landlane@localhost> 0 +0000"
        text = f"tree {tree}\nauthor {who}\ncommitter {who}\n\nsnapshot\n"
        head = self.write_object("commit", text.encode())
        write_whole(os.path.join(self.folder, "HEAD"), f"{head}\n".encode())
        self.note(tree=tree, head=head)

    def bring_home(self, ref: str, rows: Sequence[bytes], message: str) -> str:
        """Make a commit of entries of an index, and a ref of it in the repository at home.

        Raises:
            RepositoryError: git refuses.
        """
        index = os.path.join(self.folder, "keeping")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(index)
        self.git_output("update-index", "-z", "--index-info", stdin=b"".join(rows), GIT_INDEX_FILE=index)
        tree = self.git_output("write-tree", GIT_INDEX_FILE=index).strip()
        os.unlink(index)
        who = f"landlane <landlane@localhost> {int(time.time())} +0000"
        text = f"tree {tree}\nauthor {who}\ncommitter {who}\n\n{message}\n"
        commit = self.write_object("commit", text.encode("utf-8", "replace"))
        mine = os.path.join(self.folder, "refs", "kept")
        write_whole(mine, f"{commit}\n".encode())
        try:
            home_git_output(
                self.home,
                *("-c", "protocol.file.allow=always", "-c", "fetch.unpackLimit=50"),
                *("fetch", "--quiet", "--no-tags", "--no-prune", "--no-write-fetch-head"),
                *("--no-auto-maintenance", "--no-recurse-submodules", self.folder, f"+refs/kept:{ref}"),
            )
        finally:
            os.unlink(mine)
        return commit

    # ------------------------------------------------------------------------------- setting up

    def remove_index(self) -> None:
        """Remove the index, and what a killed git left of it."""
        for name in os.listdir(self.folder):
            if name in ("index", "index.lock") or name.startswith("sharedindex."):
                os.unlink(os.path.join(self.folder, name))

    def start_over(self) -> None:
        """Forget the index; the next look sets it up again."""
        self.remove_index()
        self.note(is_begun=False, tree="", head="", named=[], tracked=-1)

    def furnish(self) -> None:
        """Make sure that everything is there, and follows the repository's settings."""
        for name in ("objects/info", "objects/pack", "refs", "info"):
            os.makedirs(os.path.join(self.folder, name), exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # of a git that was killed: nobody else is here
            os.unlink(os.path.join(self.folder, "index.lock"))
        if not os.path.exists(os.path.join(self.folder, "HEAD")):
            write_whole(os.path.join(self.folder, "HEAD"), b"ref: refs/heads/none\n")
        marks = self._marks()
        is_old = time.time() - float(self._facts.get("read_at", 0)) > _SETTINGS_SECONDS
        if self._facts.get("marks") != marks or is_old:
            self._follow_settings(marks)
        if self.staged_files > _MOST_STAGED_FILES or self.staged_bytes > _MOST_STAGED_BYTES:
            self._sweep()

    def _marks(self) -> list[str]:
        """By what is known that no setting has changed."""
        user = os.path.expanduser("~")
        base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(user, ".config")
        common = self.place.git_dir if self.place.has_own_objects else self.home
        files = (
            os.path.join(self.home, "config"),
            os.path.join(self.home, "config.worktree"),
            os.path.join(user, ".gitconfig"),
            os.path.join(base, "git", "config"),
            os.path.join(common, "info", "exclude"),
        )
        return [str(_FORM), *(_mark(file) for file in files)]

    def _follow_settings(self, marks: list[str]) -> None:
        from landlane.git.private_dir.temporary import config_text  # noqa: PLC0415 - dear, and seldom needed

        found = home_git_output(self.home, "config", "--list", "-z").split("\0")
        pairs = (entry.partition("\n") for entry in found)
        settings = {name: text for name, _, text in pairs if name in _TAKEN_OVER}
        path = os.path.join(self.folder, "config")
        text = config_text({**settings, **_OURS}).encode("utf-8", "surrogateescape")
        write_whole(path, text)
        stores = [os.path.join(self.home, "objects")]
        if self.place.kind == CLONE:
            stores.append(os.path.join(self.place.git_dir, "objects"))
        borrowed = b"".join(to_bytes(quoted_store(store)) + b"\n" for store in stores)
        write_whole(os.path.join(self.folder, "objects", "info", "alternates"), borrowed)
        common = self.place.git_dir if self.place.has_own_objects else self.home
        exclude = read_small(os.path.join(common, "info", "exclude")) or b""
        write_whole(os.path.join(self.folder, "info", "exclude"), exclude)
        self.note(marks=marks, settings=settings, read_at=time.time(), root=self.place.root)

    def _sweep(self) -> None:
        """Remove objects of old pictures. The index is set up again, for it may name some of them."""
        self.start_over()
        before = time.time() - _OLD_SECONDS
        for folder, _, names in os.walk(os.path.join(self.folder, "objects")):
            for name in names:
                path = os.path.join(folder, name)
                with contextlib.suppress(OSError):
                    if len(name) >= 38 and os.stat(path).st_mtime < before:
                        os.unlink(path)
        self.note(staged_files=0, staged_bytes=0, stored={})


@contextlib.contextmanager
def open_lens(home: str, place: UntrustedCheckout, *, is_looking: bool = False) -> Generator[Lens]:
    """The lens over a checkout, for this process alone; with `is_looking` only its objects are asked for.

    Raises:
        RepositoryError: the checkout is gone.
        TimedOut: somebody else has had it all the time.
    """
    if not os.path.isdir(place.root) or not os.path.isdir(place.git_dir):
        raise RepositoryError(
            f"the checkout at {place.root} is gone, or its git directory is",
            code="CHECKOUT_GONE",
            hint="`git worktree list` tells which worktrees there are",
        )
    name = digest(f"{place.root}\0{place.git_dir}")[:16]
    folder = os.path.join(home, "landlane", "lenses", name)
    if not os.path.isdir(folder):
        drop_lenses(home)  # now and then: a new one is rare
        os.makedirs(folder, mode=0o700, exist_ok=True)
    lock = os.open(os.path.join(folder, "lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        _wait_for(lock, place.root)
        lens = Lens(home, place, folder)
        if not is_looking or not lens.algorithm or not os.path.exists(os.path.join(folder, "config")):
            lens.furnish()
        yield lens
    finally:
        os.close(lock)


def _wait_for(lock: int, root: str) -> None:
    give_up_at = time.monotonic() + _WAIT_SECONDS
    sleep = _FIRST_SLEEP
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= give_up_at:
                raise TimedOut(
                    f"{root} is looked at by others all the time",
                    code="LENS_BUSY",
                    hint="try again; end a hanging git or landlane process there",
                ) from None
            time.sleep(sleep)
            sleep = min(sleep * 1.5, _LONGEST_SLEEP)
        else:
            return


def drop_lenses(home: str) -> int:
    """Remove the lenses of checkouts that are gone; tells how many."""
    import shutil  # noqa: PLC0415 - dear, and seldom needed

    room = os.path.join(home, "landlane", "lenses")
    dropped = 0
    for name in os.listdir(room) if os.path.isdir(room) else ():
        folder = os.path.join(room, name)
        root = str(_read_facts(folder).get("root", ""))
        if root and not os.path.isdir(root):
            shutil.rmtree(folder, ignore_errors=True)
            dropped += 1
    return dropped


def head_of(home: str, place: UntrustedCheckout) -> str:
    """The commit that a checkout stands on; empty when there is none yet."""
    text = (read_small(os.path.join(place.git_dir, "HEAD")) or b"").decode("utf-8", "surrogateescape").strip()
    if not text.startswith("ref:"):
        return text
    name = text.removeprefix("ref:").strip()
    common = place.git_dir if place.has_own_objects else home
    loose = (read_small(os.path.join(common, name)) or b"").decode("utf-8", "replace").strip()
    if is_oid(loose):
        return loose
    found = run_home_git(common, "rev-parse", "--verify", "-q", name)
    return found.stdout.strip()


def _read_facts(folder: str) -> dict[str, Any]:
    try:
        with open(os.path.join(folder, "facts.json"), "rb") as file:
            found = json.loads(file.read())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _mark(path: str) -> str:
    try:
        seen = os.stat(path)
    except OSError:
        return ""
    return f"{seen.st_mtime_ns}:{seen.st_size}:{seen.st_ino}"
