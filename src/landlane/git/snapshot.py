"""Snapshots of a working tree: tracked files, and new ones that are not ignored, as one tree of raw bytes.

They are taken through a private git directory that is kept, with an index of its own. So a second snapshot
costs little more than a `stat` of each file, and git's untracked cache knows which folders are unchanged.
Nothing in the checkout can make git run a command here. Objects are in the private directory, out of reach of
`git gc`, and are removed when they are old.
"""

from __future__ import annotations

import contextlib
import os
import stat

from landlane.errors import RepositoryError
from landlane.git.snapshot_dir import SnapshotDir, open_snapshot_dir
from landlane.git.tree_diff import LINK, TreeChange, parse_raw_diff
from landlane.git.untrusted_checkout import home_git_output, to_bytes
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from landlane.git.untrusted_checkout import UntrustedCheckout

NOT_KEPT = b"landlane: not kept: "  # the content of a file whose bytes are not kept begins so
_MOST_BYTES = 8 * 1024 * 1024  # of a file that is kept without being named
_MOST_BYTES_NAMED = 256 * 1024 * 1024
_STATUS = (
    *("status", "--porcelain=v1", "-z", "--untracked-files=all"),
    *("--no-renames", "--ignore-submodules=all"),
)


@value
class KeptFile:
    """The content of a path, and git's mode."""

    mode: str
    data: bytes

    @property
    def is_kept(self) -> bool:
        """Whether these are the bytes themselves, and not only a stamp."""
        return not self.data.startswith(NOT_KEPT)


@value
class StoredFile:
    """A file that was stored by itself: git's mode and object, and its stamp; all empty for no file."""

    mode: str = ""
    oid: str = ""
    stamp: str = ""


def take_snapshot(checkout: UntrustedCheckout, named: Iterable[str] = (), *, by: str = "") -> str:
    """Take a snapshot and return its tree; `named` paths are in it though git ignores them.

    `by` names the caller, so that `last_snapshot` can check whether another caller took one since.

    Raises:
        RepositoryError: git refuses, or something cannot be read.
        TimedOut: other processes took snapshots of this checkout all the time.
    """
    wanted = sorted(set(named))
    with open_snapshot_dir(checkout) as directory:
        try:
            tree = _take(directory, wanted)
        except RepositoryError:
            # A borrowed object may be gone, or the index damaged: start again.
            directory.start_over()
            tree = _take(directory, wanted)
        if directory.taken_by != by:
            directory.note(taken_by=by)
        return tree


def last_snapshot(checkout: UntrustedCheckout, by: str = "") -> str:
    """Return the newest snapshot of a checkout; empty if it was taken for a caller other than `by`."""
    with open_snapshot_dir(checkout, only_objects=True) as directory:
        return directory.tree if by in ("", directory.taken_by) else ""


def _take(directory: SnapshotDir, named: Sequence[str]) -> str:
    if not directory.has_index:
        _stage(directory, directory.begin_index(), ())
        _write_tree(directory)
    dirty = [line[3:] for line in directory.git_output(*_STATUS).split("\0") if line]
    paths = [path for path in dirty if not path.endswith("/")]  # a folder is a repository of its own
    known = frozenset(directory.named)
    wanted = (*named, *directory.list_newly_tracked())
    extra = [path for path in wanted if path not in known and _is_plain(directory.checkout.root, path)]
    if not paths and not extra and directory.tree:
        return directory.tree
    _stage(directory, [*paths, *extra], {*extra, *directory.named})
    if extra:
        directory.note(named=[*directory.named, *extra])
    return _write_tree(directory)


def _is_plain(root: str, path: str) -> bool:
    """Return whether a named path is a file in this checkout, not behind a link."""
    full = os.path.join(root, path)
    try:
        is_file = stat.S_ISREG(os.lstat(full).st_mode)
    except (OSError, ValueError):
        return False
    return is_file and os.path.realpath(os.path.dirname(full)) == os.path.dirname(os.path.normpath(full))


def _stage(directory: SnapshotDir, paths: Iterable[str], named: Iterable[str]) -> None:
    """Bring the index up to date with the files at these paths."""
    exempt = frozenset(named)
    plain: list[bytes] = []
    stamped: list[bytes] = []
    size = 0
    for path in dict.fromkeys(paths):
        stamp, length = _stamp_if_unkept(os.path.join(directory.checkout.root, path), is_named=path in exempt)
        if stamp:
            oid = directory.write_object("blob", NOT_KEPT + stamp.encode())
            stamped.append(b"100644 " + oid.encode() + b"\t" + to_bytes(path) + b"\0")
        else:
            plain.append(to_bytes(path) + b"\0")
            size += length
    if plain:
        words = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
        directory.git_output(*words, stdin=b"".join(plain))
    if stamped:
        directory.git_output("update-index", "-z", "--index-info", stdin=b"".join(stamped))
    if plain:
        directory.note(
            staged_bytes=directory.staged_bytes + size, staged_files=directory.staged_files + len(plain)
        )


def _stamp_if_unkept(full: str, *, is_named: bool) -> tuple[str, int]:
    """Return the stamp of a file that is too large or unreadable, empty for others; and the size to keep."""
    try:
        found = os.lstat(full)
    except OSError:
        return "", 0
    if not stat.S_ISREG(found.st_mode):
        return "", 0
    is_small = found.st_size <= (_MOST_BYTES_NAMED if is_named else _MOST_BYTES)
    if is_small and os.access(full, os.R_OK):
        return "", found.st_size
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino}\n", 0


def _write_tree(directory: SnapshotDir) -> str:
    """Make a tree of the index, and HEAD of it, so that the next snapshot lists only what is newer."""
    tree = directory.git_output("write-tree").strip()
    if tree != directory.tree:
        directory.set_last(tree)
    return tree


def changes_between(checkout: UntrustedCheckout, before: str, after: str) -> list[TreeChange]:
    """Return what differs between two snapshots of a checkout.

    Raises:
        RepositoryError: one of them is gone.
    """
    if before == after:
        return []
    with open_snapshot_dir(checkout, only_objects=True) as directory:
        words = ("diff-tree", "-r", "-z", "--no-renames", "--raw")
        return list(parse_raw_diff(directory.git_output(*words, before, after)))


def differing_from_head(checkout: UntrustedCheckout, tree: str, head: str) -> set[str]:
    """Return the paths at which a snapshot differs from a commit: the changes that are not committed."""
    with open_snapshot_dir(checkout, only_objects=True) as directory:
        words = ("diff-tree", "-r", "-z", "--no-renames", "--name-only")
        result = directory.run(*words, f"{head}^{{tree}}", tree)
    return set() if result.exit_code else {path for path in result.stdout.split("\0") if path}


def store_files(checkout: UntrustedCheckout, files: Iterable[str]) -> dict[str, StoredFile]:
    """Store files by their absolute paths; a file that was not touched since is not read again."""
    found: dict[str, StoredFile] = {}
    with open_snapshot_dir(checkout, only_objects=True) as directory:
        known = directory.stored
        for full in files:
            with contextlib.suppress(OSError):
                found[full] = _store(directory, full, known.get(full))
        fresh = {full: [file.mode, file.oid, file.stamp] for full, file in found.items()}
        if any(known.get(full) != row for full, row in fresh.items()):
            directory.note(stored=fresh)
    return found


def _store(directory: SnapshotDir, full: str, known: list[str] | None) -> StoredFile:
    found = os.lstat(full)
    stamp = f"{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}:{found.st_ino}"
    if known is not None and known[2] == stamp:
        return StoredFile(mode=known[0], oid=known[1], stamp=stamp)
    if stat.S_ISREG(found.st_mode):
        unkept, _ = _stamp_if_unkept(full, is_named=True)
        if unkept:
            data = NOT_KEPT + unkept.encode()
            return StoredFile(mode=_mode(found), oid=directory.write_object("blob", data), stamp=stamp)
    content = _read_content(full, found)
    if content is None:
        return StoredFile()
    return StoredFile(mode=_mode(found), oid=directory.write_object("blob", content), stamp=stamp)


def _mode(found: os.stat_result) -> str:
    if stat.S_ISLNK(found.st_mode):
        return LINK
    return "100755" if found.st_mode & 0o100 else "100644"


def _read_content(full: str, found: os.stat_result) -> bytes | None:
    if stat.S_ISLNK(found.st_mode):
        return os.fsencode(os.readlink(full))
    if not stat.S_ISREG(found.st_mode):
        return None
    with open(full, "rb") as file:
        return file.read()


def keep_changes(checkout: UntrustedCheckout, ref: str, changes: Sequence[TreeChange], message: str) -> str:
    """Keep both sides of changes for good, as one commit with the folders `before` and `after`.

    Raises:
        RepositoryError: git refuses.
    """
    entries: list[bytes] = []
    for change in changes:
        for side, (mode, oid) in (("before", change.old), ("after", change.new)):
            if oid:
                entries.append(f"{mode} {oid}\t{side}/".encode() + to_bytes(change.path) + b"\0")
    with open_snapshot_dir(checkout, only_objects=True) as directory:
        return directory.save_entries(ref, entries, message)


def read_kept(home: str, commit: str) -> tuple[dict[str, KeptFile], dict[str, KeptFile]]:
    """Return what `keep_changes` kept, by path: before, and after.

    Raises:
        RepositoryError: it is gone.
    """
    listed = [row for row in home_git_output(home, "ls-tree", "-r", "-z", commit).split("\0") if row]
    parts = [row.partition("\t") for row in listed]
    heads = [head.split(" ") for head, _, _ in parts]
    asked = "".join(f"{head[2]}\n" for head in heads).encode()
    answer = to_bytes(home_git_output(home, "cat-file", "--batch", "--buffer", stdin=asked))
    sides: dict[str, dict[str, KeptFile]] = {"before": {}, "after": {}}
    at = 0
    for head, (_, _, name) in zip(heads, parts, strict=True):
        end = answer.index(b"\n", at)
        size = int(answer[at:end].split(b" ")[2])
        side, _, path = name.partition("/")
        sides[side][path] = KeptFile(mode=head[0], data=answer[end + 1 : end + 1 + size])
        at = end + 1 + size + 1
    return sides["before"], sides["after"]


def read_file_now(root: str, path: str) -> KeptFile | None:
    """Return what is at a path now, in the form in which it would be kept; None where there is no file."""
    full = os.path.join(root, path)
    try:
        found = os.lstat(full)
        content = _read_content(full, found)
        return KeptFile(mode=_mode(found), data=content) if content is not None else None
    except OSError:
        return None
