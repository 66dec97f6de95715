"""A private git directory that is kept between snapshots of a checkout: its index makes the next one quick.

Its object store borrows from the repository's, and its HEAD is the last snapshot. One process uses it at a
time.
"""

from __future__ import annotations

import contextlib
import json
import os
import time

from landlane.errors import RepositoryError, TimedOut
from landlane.files import write_atomically
from landlane.git.lock import lock_file_within
from landlane.git.private_git_dir import (
    COMPARING_SETTINGS,
    OWN_SETTINGS,
    PrivateGitDir,
    check_exists,
    open_lock,
    remove_file,
)
from landlane.git.untrusted_checkout import home_git_output, read_small, to_bytes
from landlane.ids import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from typing import Any

    from landlane.git.untrusted_checkout import UntrustedCheckout

_FOLDER = "lenses"  # the name that existing repositories have
_FORM = 1
_WAIT_SECONDS = 20.0
_SETTINGS_SECONDS = 600.0  # settings may also be in files that the watched ones include
_OLD_SECONDS = 6 * 3600.0
_MOST_STAGED_FILES = 20_000
_MOST_STAGED_BYTES = 2_000_000_000
_SETTINGS = {
    **OWN_SETTINGS,
    "core.autocrlf": "false",
    "core.untrackedcache": "true",
    "status.showuntrackedfiles": "all",  # git uses the untracked cache only with this setting
    "core.preloadindex": "true",
    "core.fsync": "none",  # what must last is fetched into the repository, and synced there
    "core.loosecompression": "1",
    "index.version": "4",
    "index.skiphash": "true",
}
# Overrides every attribute in the checkout: each file counts as the bytes that it is.
_RAW_ATTRIBUTES = b"* -text -filter -ident -working-tree-encoding !eol -crlf\n"


class SnapshotDir(PrivateGitDir):
    """The private git directory for snapshots, held by this process alone."""

    def __init__(self, checkout: UntrustedCheckout, folder: str) -> None:
        super().__init__(checkout, folder, GIT_OPTIONAL_LOCKS="1")  # git may refresh our own index
        self._state = _read_state(folder)
        self.settings = self._state.get("settings", {})

    @property
    def tree(self) -> str:
        """The last snapshot; empty if there is none or it was interrupted."""
        is_complete = read_small(self.path("HEAD")) == f"{self._state.get('head')}\n".encode()
        return str(self._state.get("tree", "")) if is_complete else ""

    @property
    def has_index(self) -> bool:
        return bool(self._state.get("is_begun")) and os.path.exists(self.index)

    @property
    def named(self) -> list[str]:
        """The paths that are part of snapshots though git may ignore them."""
        return list(self._state.get("named", ()))

    @property
    def taken_by(self) -> str:
        """The caller for which the last snapshot was taken."""
        return str(self._state.get("taken_by", ""))

    @property
    def stored(self) -> dict[str, list[str]]:
        """The files outside the checkout that were stored: mode, object and stamp of each."""
        return dict(self._state.get("stored", {}))

    @property
    def staged_bytes(self) -> int:
        return int(self._state.get("staged_bytes", 0))

    @property
    def staged_files(self) -> int:
        return int(self._state.get("staged_files", 0))

    def note(self, **fields: object) -> None:
        """Save fields for the next process."""
        self._state |= fields
        write_atomically(self.path("facts.json"), json.dumps(self._state))

    def list_newly_tracked(self) -> list[str]:
        """Return the files that git tracks though it would ignore them, if any may have been added.

        A snapshot leaves out ignored files, so these are added by name, like claimed ones.
        """
        index = os.path.join(self.checkout.git_dir, "index")
        try:
            with open(index, "rb") as file:
                count = int.from_bytes(file.read(12)[8:12], "big")
        except OSError:
            return []
        if count == self._state.get("tracked"):
            return []
        self.note(tracked=count)
        words = ("ls-files", "--cached", "--ignored", "--exclude-standard", "-z")
        listed = self.run(*words, GIT_INDEX_FILE=index, GIT_OPTIONAL_LOCKS="0")
        return [path for path in listed.stdout.split("\0") if path] if not listed.exit_code else []

    def write_object(self, kind: str, data: bytes) -> str:
        """Write an object and return its id; starting git would take longer than all the rest."""
        import hashlib  # noqa: PLC0415 - expensive, and only needed when something has changed
        import zlib  # noqa: PLC0415 - only needed when something has changed

        content = f"{kind} {len(data)}\0".encode() + data
        oid = hashlib.new(self.algorithm, content, usedforsecurity=False).hexdigest()
        path = self.path(f"objects/{oid[:2]}/{oid[2:]}")
        if os.path.exists(path):
            os.utime(path)
            return oid
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_atomically(path, zlib.compress(content, 1))
        return oid

    def write_commit(self, tree: str, message: str, at: int = 0) -> str:
        who = f"landlane <landlane@localhost> {at} +0000"
        text = f"tree {tree}\nauthor {who}\ncommitter {who}\n\n{message}\n"
        return self.write_object("commit", text.encode("utf-8", "replace"))

    def set_last(self, tree: str) -> None:
        """Make a tree the last snapshot: HEAD becomes a commit of it."""
        head = self.write_commit(tree, "snapshot")
        write_atomically(self.path("HEAD"), f"{head}\n")
        self.note(tree=tree, head=head)

    def save_entries(self, ref: str, entries: Sequence[bytes], message: str) -> str:
        """Make a commit of index entries, and a ref of it in the repository.

        Raises:
            RepositoryError: git refuses.
        """
        index = self.path("keeping")
        remove_file(index)
        self.git_output("update-index", "-z", "--index-info", stdin=b"".join(entries), GIT_INDEX_FILE=index)
        tree = self.git_output("write-tree", GIT_INDEX_FILE=index).strip()
        os.unlink(index)
        commit = self.write_commit(tree, message, int(time.time()))
        own_ref = self.path("refs/kept")
        write_atomically(own_ref, f"{commit}\n")
        try:
            home_git_output(
                self.home,
                *("-c", "protocol.file.allow=always", "-c", "fetch.unpackLimit=50"),
                *("fetch", "--quiet", "--no-tags", "--no-prune", "--no-write-fetch-head"),
                *("--no-auto-maintenance", "--no-recurse-submodules", self.folder, f"+refs/kept:{ref}"),
            )
        finally:
            os.unlink(own_ref)
        return commit

    def prepare(self) -> None:
        """Create what is missing, and follow the repository's settings."""
        self.make_folders()
        remove_file(self.path("index.lock"))  # of a killed git: this process is alone here
        if not os.path.exists(self.path("HEAD")):
            write_atomically(self.path("HEAD"), "ref: refs/heads/none\n")
        marks = self._settings_marks()
        is_old = time.time() - float(self._state.get("read_at", 0)) > _SETTINGS_SECONDS
        if self._state.get("marks") != marks or is_old:
            self.configure(COMPARING_SETTINGS, _SETTINGS, ("info/exclude",))
            self.note(marks=marks, settings=self.settings, read_at=time.time(), root=self.checkout.root)
        if self.staged_files > _MOST_STAGED_FILES or self.staged_bytes > _MOST_STAGED_BYTES:
            self._remove_old_objects()

    def _settings_marks(self) -> list[str]:
        """Return marks that differ once a file with settings was changed."""
        user = os.path.expanduser("~")
        base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(user, ".config")
        files = (
            os.path.join(self.home, "config"),
            os.path.join(self.home, "config.worktree"),
            os.path.join(user, ".gitconfig"),
            os.path.join(base, "git", "config"),
            os.path.join(self.checkout.common_dir, "info", "exclude"),
        )
        return [str(_FORM), *(_mark(file) for file in files)]

    def start_over(self) -> None:
        """Forget the index; the next snapshot sets it up again."""
        self._remove_index()
        self.note(is_begun=False, tree="", head="", named=[], tracked=-1)

    def _remove_index(self) -> None:
        for name in os.listdir(self.folder):
            if name in ("index", "index.lock") or name.startswith("sharedindex."):
                os.unlink(self.path(name))

    def _remove_old_objects(self) -> None:
        self.start_over()  # the index may name some of them
        before = time.time() - _OLD_SECONDS
        for folder, _, names in os.walk(self.path("objects")):
            for name in names:
                path = os.path.join(folder, name)
                with contextlib.suppress(OSError):
                    if len(name) >= 38 and os.stat(path).st_mtime < before:
                        os.unlink(path)
        self.note(staged_files=0, staged_bytes=0, stored={})

    def begin_index(self) -> list[str]:
        """Set up the index from the checkout's own; return the paths that must be staged again.

        The checkout's index knows which files were not touched, so those need not be read. But it has what
        git would store: if a filter or line ends make that differ from the file, the file is staged again.
        """
        attributes = self.path("info/attributes")
        remove_file(attributes)
        self._remove_index()
        try:
            self.copy_index()
            again = self._find_unlike_files() if os.path.exists(self.index) else []
        except RepositoryError:
            self._remove_index()
            again = []
        write_atomically(attributes, _RAW_ATTRIBUTES)
        self.git_output("update-index", "--index-version", "4", "--force-untracked-cache")
        self.note(is_begun=True, named=[], tree="", head="")
        return again

    def _find_unlike_files(self) -> list[str]:
        """Remove the entries whose object differs from the file, and return their paths."""
        hidden: list[str] = []
        again: dict[str, None] = {}
        tracked: list[tuple[str, str]] = []
        for row in filter(None, self.git_output("ls-files", "-v", "--stage", "-z").split("\0")):
            head, _, path = row.partition("\t")
            tag, mode, oid, stage = head.split(" ")
            if tag.islower() or tag == "S":
                hidden.append(path)
            if stage != "0":
                again[path] = None
            elif mode.startswith("100"):
                tracked.append((path, oid))
        if hidden:  # files that git was asked not to look at count, too
            for option in ("--no-assume-unchanged", "--no-skip-worktree"):
                self.git_output("update-index", option, "-z", "--stdin", stdin=_path_list(hidden))
        again |= dict.fromkeys(self._find_converted(tracked))
        if again:
            self.git_output("update-index", "--force-remove", "-z", "--stdin", stdin=_path_list(list(again)))
        return list(again)

    def _find_converted(self, tracked: Sequence[tuple[str, str]]) -> list[str]:
        """Return the files whose bytes on the disk differ from their object."""
        asked = "".join(f"{oid}\n" for _, oid in tracked).encode()
        form = "--batch-check=%(objectsize)"
        sizes = self.git_output("cat-file", form, "--buffer", stdin=asked).splitlines() if tracked else []
        converted: list[str] = []
        has_attributes = os.path.exists(os.path.join(self.checkout.git_dir, "info", "attributes"))
        for (path, _), size in zip(tracked, sizes, strict=True):
            has_attributes |= path.endswith(".gitattributes")
            with contextlib.suppress(OSError):
                if str(os.lstat(os.path.join(self.checkout.root, path)).st_size) != size:
                    converted.append(path)
        if has_attributes:
            words = ("check-attr", "-z", "--stdin", "filter", "working-tree-encoding", "ident")
            fields = self.git_output(*words, stdin=_path_list([path for path, _ in tracked])).split("\0")
            for path, text in zip(fields[0::3], fields[2::3], strict=False):
                if text not in ("unspecified", "unset"):
                    converted.append(path)
        return converted


@contextlib.contextmanager
def open_snapshot_dir(checkout: UntrustedCheckout, *, only_objects: bool = False) -> Generator[SnapshotDir]:
    """Open the snapshot directory of a checkout, for this process alone.

    With `only_objects` the settings are not brought up to date.

    Raises:
        RepositoryError: the checkout is gone.
        TimedOut: other processes used it all the time.
    """
    check_exists(checkout)
    name = digest(f"{checkout.root}\0{checkout.git_dir}")[:16]
    folder = os.path.join(checkout.home, "landlane", _FOLDER, name)
    if not os.path.isdir(folder):
        remove_orphaned_dirs(checkout.home)  # here, because a new one is rare
        os.makedirs(folder, mode=0o700, exist_ok=True)
    lock = open_lock(folder)
    try:
        if not lock_file_within(lock, _WAIT_SECONDS):
            raise TimedOut(
                f"{checkout.root} is looked at by others all the time",
                code="SNAPSHOT_BUSY",
                hint="try again; end a hanging git or landlane process there",
            )
        directory = SnapshotDir(checkout, folder)
        if not only_objects or not os.path.exists(directory.path("config")):
            directory.prepare()
        yield directory
    finally:
        os.close(lock)


def remove_orphaned_dirs(home: str) -> int:
    """Remove the snapshot directories of checkouts that are gone; return how many."""
    import shutil  # noqa: PLC0415 - expensive, and rarely needed

    parent = os.path.join(home, "landlane", _FOLDER)
    removed = 0
    for name in os.listdir(parent) if os.path.isdir(parent) else ():
        folder = os.path.join(parent, name)
        root = str(_read_state(folder).get("root", ""))
        if root and not os.path.isdir(root):
            shutil.rmtree(folder, ignore_errors=True)
            removed += 1
    return removed


def _read_state(folder: str) -> dict[str, Any]:
    try:
        with open(os.path.join(folder, "facts.json"), "rb") as file:
            state = json.loads(file.read())
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _mark(path: str) -> str:
    try:
        found = os.stat(path)
    except OSError:
        return ""
    return f"{found.st_mtime_ns}:{found.st_size}:{found.st_ino}"


def _path_list(paths: Sequence[str]) -> bytes:
    return b"".join(to_bytes(path) + b"\0" for path in paths)
