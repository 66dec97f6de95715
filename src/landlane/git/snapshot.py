"""Pictures of a working tree: what is tracked, or new and not ignored, as one tree each, by raw bytes.

A checkout is looked at through a *lens*: a git directory of ours that stays, with an index of its own. So a
second picture costs little more than asking for the state of each file, and git's untracked cache tells which
folders are as they were. Nothing in the checkout can make git run a command here: its settings, hooks and
filters are not heard. Objects lie in the lens, out of reach of `git gc`, and are swept away when they are
old.
"""

from __future__ import annotations

import contextlib
import os
import stat

from landlane.errors import RepositoryError
from landlane.git.private_dir.cached import Lens, open_lens
from landlane.git.untrusted_checkout import home_git_output, to_bytes, to_text
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from landlane.git.untrusted_checkout import UntrustedCheckout

ADDED = "added"
DELETED = "deleted"
CHANGED = "changed"
MODE = "mode"

NOT_KEPT = b"landlane: not kept: "  # so begins what stands for a file whose bytes are not kept
_MOST_BYTES = 8 * 1024 * 1024  # of a file that is kept without being held by name
_MOST_BYTES_NAMED = 256 * 1024 * 1024
_STATUS = (
    "status",
    "--porcelain=v1",
    "-z",
    "--untracked-files=all",
    "--no-renames",
    "--ignore-submodules=all",
)
_ABSENT = "000000"
_LINK = "120000"


@value
class Changed:
    """A path that differs between two pictures, with git's modes and objects; an absent side is empty."""

    path: str
    kind: str
    old_mode: str = ""
    old_oid: str = ""
    new_mode: str = ""
    new_oid: str = ""


@value
class KeptFile:
    """What a path held: its bytes, and git's mode. `is_kept` is false where only its stamp was noted."""

    mode: str
    data: bytes

    @property
    def is_kept(self) -> bool:
        """Whether these are the bytes themselves."""
        return not self.data.startswith(NOT_KEPT)


@value
class StoredFile:
    """A file that was kept by itself: git's mode and object, and its stamp; all empty where none is."""

    mode: str = ""
    oid: str = ""
    stamp: str = ""


def take_snapshot(home: str, place: UntrustedCheckout, named: Iterable[str] = (), *, by: str = "") -> str:
    """Picture a checkout, and tell the tree; `named` paths are in it though git ignores them.

    `by` says for whom, so that `last_snapshot` can tell whether anybody looked since.

    Raises:
        RepositoryError: git refuses, or something cannot be read.
        TimedOut: somebody else has looked through the same lens all the time.
    """
    wanted = sorted(set(named))
    with open_lens(home, place) as lens:
        try:
            tree = _picture(lens, wanted)
        except RepositoryError:
            # An object that was borrowed from the repository may be gone, or the index be damaged: anew.
            lens.start_over()
            tree = _picture(lens, wanted)
        if lens.taken_by != by:
            lens.note(taken_by=by)
        return tree


def last_snapshot(home: str, place: UntrustedCheckout, by: str = "") -> str:
    """The newest picture of a checkout, if it was taken for `by`, or for anybody; empty when it was not."""
    with open_lens(home, place, is_looking=True) as lens:
        return lens.tree if by in ("", lens.taken_by) else ""


def _picture(lens: Lens, named: Sequence[str]) -> str:
    if not lens.is_begun:
        from landlane.git.private_dir.index import begin_index  # noqa: PLC0415 - needed once for each lens

        _stage(lens, begin_index(lens), ())
        _seal(lens)
    dirty = [line[3:] for line in lens.git_output(*_STATUS).split("\0") if line]
    paths = [path for path in dirty if not path.endswith("/")]  # such is a repository of its own
    known = frozenset(lens.named)
    wanted = (*named, *lens.newly_tracked())
    extra = [path for path in wanted if path not in known and _is_plain(lens.place.root, path)]
    if not paths and not extra and lens.tree:
        return lens.tree
    _stage(lens, [*paths, *extra], {*extra, *lens.named})
    if extra:
        lens.note(named=[*lens.named, *extra])
    return _seal(lens)


def _is_plain(root: str, path: str) -> bool:
    """Whether a named path is a file in this checkout, not behind a link."""
    full = os.path.join(root, path)
    try:
        is_file = stat.S_ISREG(os.lstat(full).st_mode)
    except (OSError, ValueError):
        return False
    return is_file and os.path.realpath(os.path.dirname(full)) == os.path.dirname(os.path.normpath(full))


def _stage(lens: Lens, paths: Iterable[str], named: Iterable[str]) -> None:
    """Bring the index up to what lies at these paths."""
    exempt = frozenset(named)
    plain: list[bytes] = []
    noted: list[bytes] = []
    size = 0
    for path in dict.fromkeys(paths):
        stamp, length = _stamp_if_unkept(os.path.join(lens.place.root, path), is_named=path in exempt)
        if stamp:
            oid = lens.write_object("blob", NOT_KEPT + stamp.encode())
            noted.append(b"100644 " + oid.encode() + b"\t" + to_bytes(path) + b"\0")
        else:
            plain.append(to_bytes(path) + b"\0")
            size += length
    if plain:
        lens.git_output(
            "update-index", "--add", "--remove", "--replace", "-z", "--stdin", stdin=b"".join(plain)
        )
    if noted:
        lens.git_output("update-index", "-z", "--index-info", stdin=b"".join(noted))
    if plain:
        lens.note(staged_bytes=lens.staged_bytes + size, staged_files=lens.staged_files + len(plain))


def _stamp_if_unkept(full: str, *, is_named: bool) -> tuple[str, int]:
    """What stands for a file that is too large or cannot be read; empty for all others. And its length."""
    try:
        seen = os.lstat(full)
    except OSError:
        return "", 0
    if not stat.S_ISREG(seen.st_mode):
        return "", 0
    is_small = seen.st_size <= (_MOST_BYTES_NAMED if is_named else _MOST_BYTES)
    if is_small and os.access(full, os.R_OK):
        return "", seen.st_size
    return f"{seen.st_size} {seen.st_mtime_ns} {seen.st_ctime_ns} {seen.st_ino}\n", 0


def _seal(lens: Lens) -> str:
    """Make a tree of the index, and let HEAD be there, so that the next look lists only what is newer."""
    tree = lens.git_output("write-tree").strip()
    if tree != lens.tree:
        lens.move_to(tree)
    return tree


def changes_between(home: str, place: UntrustedCheckout, before: str, after: str) -> list[Changed]:
    """What differs between two pictures of a checkout.

    Raises:
        RepositoryError: one of them is not there any more.
    """
    if before == after:
        return []
    with open_lens(home, place, is_looking=True) as lens:
        listed = lens.git_output("diff-tree", "-r", "-z", "--no-renames", "--raw", before, after)
    return read_raw(listed)


def read_raw(listed: str) -> list[Changed]:
    """The changes that `--raw -z` tells of."""
    fields = listed.split("\0")
    found: list[Changed] = []
    for head, path in zip(fields[0::2], fields[1::2], strict=False):
        old_mode, new_mode, old_oid, new_oid, _ = head.lstrip(":").split(" ")
        is_new, is_gone = old_mode == _ABSENT, new_mode == _ABSENT
        kind = ADDED if is_new else DELETED if is_gone else MODE if old_oid == new_oid else CHANGED
        found.append(
            Changed(
                path=path,
                kind=kind,
                old_mode="" if is_new else old_mode,
                old_oid="" if is_new else old_oid,
                new_mode="" if is_gone else new_mode,
                new_oid="" if is_gone else new_oid,
            )
        )
    return found


def differing_from_head(home: str, place: UntrustedCheckout, tree: str, head: str) -> set[str]:
    """The paths at which a picture differs from a commit: what is not committed yet."""
    with open_lens(home, place, is_looking=True) as lens:
        found = lens.run("diff-tree", "-r", "-z", "--no-renames", "--name-only", f"{head}^{{tree}}", tree)
    if found.exit_code:
        return set()
    return {path for path in found.stdout.split("\0") if path}


def store_files(home: str, place: UntrustedCheckout, files: Iterable[str]) -> dict[str, StoredFile]:
    """Keep files that lie anywhere, by their absolute paths; what was not touched since is not read again."""
    found: dict[str, StoredFile] = {}
    with open_lens(home, place, is_looking=True) as lens:
        known: dict[str, list[str]] = lens.stored
        for full in files:
            with contextlib.suppress(OSError):
                found[full] = _store(lens, full, known.get(full))
        fresh = {full: [one.mode, one.oid, one.stamp] for full, one in found.items()}
        if any(known.get(full) != row for full, row in fresh.items()):
            lens.note(stored=fresh)
    return found


def _store(lens: Lens, full: str, known: list[str] | None) -> StoredFile:
    seen = os.lstat(full)
    stamp = f"{seen.st_size}:{seen.st_mtime_ns}:{seen.st_ctime_ns}:{seen.st_ino}"
    if known is not None and known[2] == stamp:
        return StoredFile(mode=known[0], oid=known[1], stamp=stamp)
    if stat.S_ISLNK(seen.st_mode):
        data, mode = os.fsencode(os.readlink(full)), _LINK
    elif stat.S_ISREG(seen.st_mode):
        unkept, _ = _stamp_if_unkept(full, is_named=True)
        mode = "100755" if seen.st_mode & 0o100 else "100644"
        with open(full, "rb") as file:
            data = NOT_KEPT + unkept.encode() if unkept else file.read()
    else:
        return StoredFile(mode="", oid="", stamp="")
    return StoredFile(mode=mode, oid=lens.write_object("blob", data), stamp=stamp)


def keep_changes(
    home: str, place: UntrustedCheckout, ref: str, changes: Sequence[Changed], message: str
) -> str:
    """Keep both sides of changes for good, as one commit with the folders `before` and `after` at home.

    Raises:
        RepositoryError: git refuses.
    """
    rows: list[bytes] = []
    for change in changes:
        for side, mode, oid in (
            ("before", change.old_mode, change.old_oid),
            ("after", change.new_mode, change.new_oid),
        ):
            if oid:
                rows.append(f"{mode} {oid}\t{side}/".encode() + to_bytes(change.path) + b"\0")
    with open_lens(home, place, is_looking=True) as lens:
        return lens.bring_home(ref, rows, message)


def read_kept(home: str, commit: str) -> tuple[dict[str, KeptFile], dict[str, KeptFile]]:
    """What `keep_changes` kept, by path: before, and after.

    Raises:
        RepositoryError: it is not there any more.
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
    """What lies at a path now, in the form in which it would be kept; nothing where there is no file."""
    full = os.path.join(root, path)
    try:
        seen = os.lstat(full)
        if stat.S_ISLNK(seen.st_mode):
            return KeptFile(mode=_LINK, data=os.fsencode(os.readlink(full)))
        if not stat.S_ISREG(seen.st_mode):
            return None
        with open(full, "rb") as file:
            return KeptFile(mode="100755" if seen.st_mode & 0o100 else "100644", data=file.read())
    except OSError:
        return None


def path_text(path: str) -> str:
    """A path as it can be shown: bytes that are no text are escaped."""
    return to_text(to_bytes(path)).encode("utf-8", "backslashreplace").decode()
