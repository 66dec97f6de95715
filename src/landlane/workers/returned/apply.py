"""A change that somebody hands in, as a patch or as files, made into a tree on a bench of its own.

The bench is a throw-away repository that borrows our objects. What is made of the change lies there until it
was judged: nothing of what is refused ever reaches the repository, and no working tree or index of anybody is
touched. Settings and attributes are ours; hooks are not run.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
import zlib
from base64 import b85decode
from contextlib import contextmanager

from landlane.errors import NotAllowed, RepositoryError
from landlane.git.create_checkout import add_detached_clone, clone_at
from landlane.git.run import git_failed, git_output, resolve_revision, run_in
from landlane.git.worktree_files import TreeReader, TreeWriter, is_inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from landlane.git.discovery import Checkout
    from landlane.git.tree_diff import TreeChange

MOST_BYTES = 64 * 1024 * 1024  # of all files together as they are after the change
_LIMIT_SECONDS = 600.0
_PIECE = 1024 * 1024
# The same bytes and modes come out whatever the user's settings say, and no name that some disk or some git
# takes for its own passes.
_SETTINGS = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false"),
    *("-c", "core.splitIndex=false", "-c", "core.sparseCheckout=false", "-c", "index.sparse=false"),
    *("-c", "core.fileMode=true", "-c", "core.symlinks=true", "-c", "core.ignoreCase=false"),
    *("-c", "core.safecrlf=false", "-c", "core.protectHFS=true", "-c", "core.protectNTFS=true"),
    *("-c", "apply.whitespace=nowarn", "-c", "apply.ignoreWhitespace=no"),
)
_BINARY = re.compile(rb"^(literal|delta) (\d{1,15})\n((?:[A-Za-z][!-~]+\n)*)", re.MULTILINE)
_IGNORING = "Ignoring path "  # so git passes over a name that it takes for its own, and goes on
_UNSAFE = re.compile(rf"[Ii]nvalid path '(.+)'|{_IGNORING}(.+)|file '(.+)' is beyond a symbolic link")


@contextmanager
def open_bench(home: Checkout, base: str) -> Generator[Checkout]:
    """A throw-away repository whose index is as a commit of ours.

    Raises:
        RepositoryError: there is no such commit, or git refuses.
    """
    if resolve_revision(home, f"{base}^{{commit}}") != base:  # its full name
        raise RepositoryError(
            f"there is no commit {base[:40] or 'that the work began from'} here",
            code="UNKNOWN_BASE",
            hint="the commit that the worker's checkout stood on must be in this repository",
        )
    with tempfile.TemporaryDirectory(prefix="landlane-returned-") as folder:
        path = os.path.realpath(folder)
        add_detached_clone(home, path, base, "")
        bench = clone_at(path)
        git_output(bench, *_SETTINGS, "read-tree", base)
        yield bench


def tree_with_patch(bench: Checkout, patch: str) -> str:
    """The tree that a patch makes of the one on the bench.

    Raises:
        NotAllowed: it is no patch, does not fit, names paths that nobody may have, or is too big.
    """
    data = patch.encode("utf-8", "surrogateescape")
    if not data.strip():
        return git_output(bench, *_SETTINGS, "write-tree")
    data += b"" if data.endswith(b"\n") else b"\n"  # which many lose on the way
    _check_declared(data)
    found = run_in(
        bench, *_SETTINGS, *("apply", "--cached", "-p1", "-"), stdin=data, limit_seconds=_LIMIT_SECONDS
    )
    if found.exit_code:
        raise _unfit(
            "the patch does not fit",
            found.stderr,
            "make it in the checkout it belongs to: git add -A && git diff --cached --binary BASE",
        )
    return git_output(bench, *_SETTINGS, "write-tree")


def _check_declared(patch: bytes) -> None:
    """Refuse binary parts that would unfold to more than anybody may hand in: git would hold all of it."""
    size = 0
    for part in _BINARY.finditer(patch):
        size += max(int(part[2]), _delta_result(part[3]) if part[1] == b"delta" else 0)
    if size > 2 * MOST_BYTES:  # git's patches also say how to come back
        raise too_big(size)


def _delta_result(lines: bytes) -> int:
    """How big a delta says that its result is; nothing where it cannot be read, as git will find as well."""
    first = lines.partition(b"\n")[0]
    try:
        unfolded = zlib.decompressobj().decompress(b85decode(first[1:]), 32)
    except (ValueError, zlib.error):
        return 0
    _, rest = _varint(unfolded)
    return _varint(rest)[0]


def _varint(data: bytes) -> tuple[int, bytes]:
    number = 0
    for at, byte in enumerate(data):
        number |= (byte & 0x7F) << (7 * at)
        if byte < 0x80:
            return number, data[at + 1 :]
    return number, b""


def tree_with_files(bench: Checkout, files: Sequence[str], scratch: str) -> str:
    """The tree on the bench with files as they lie in a folder, each under the same path.

    Line ends and filters are those of our settings and attributes, as `git add` has them.

    Raises:
        NotAllowed: one is missing there, is no file or link, is behind a link, or all of them are too big.
    """
    left = MOST_BYTES
    with TreeReader(scratch) as reader, TreeWriter(bench.root) as writer:
        for path in sorted(set(files)):
            left -= _copy(reader, writer, path, left)
    listed = "".join(f"{path}\0" for path in sorted(set(files))).encode("utf-8", "surrogateescape")
    words = ("update-index", "--add", "--replace", "-z", "--stdin")
    found = run_in(bench, *_SETTINGS, *words, stdin=listed, limit_seconds=_LIMIT_SECONDS)
    if found.exit_code or _IGNORING in found.stderr:
        raise _unfit("the files do not fit", found.stderr, "name files of the repository, each once")
    return git_output(bench, *_SETTINGS, "write-tree")


def _copy(reader: TreeReader, writer: TreeWriter, path: str, most: int) -> int:
    """Copy one file or link; tells how big it is."""
    if not is_inside(path):
        raise unsafe(f"{path} is no path inside the repository", [path])
    seen = reader.lstat(path)
    if seen is None:
        raise _unfit(
            f"{path} is listed, and is not in the scratch folder",
            "",
            "put it there under the same path; to delete a file, hand in a patch",
            path,
        )
    if stat.S_ISLNK(seen.st_mode):
        writer.link(path, reader.read_link(path) or b"")
        return 0
    handle = reader.open(path) if stat.S_ISREG(seen.st_mode) else None
    if handle is None:
        raise _unfit(f"{path} in the scratch folder is no file", "", "list files, not folders", path)
    with open(handle, "rb") as file:
        size = os.fstat(handle).st_size
        if size > most:
            raise too_big(MOST_BYTES - most + size, path)
        pieces = iter(lambda: file.read(_PIECE), b"")
        writer.write(path, _at_most(pieces, most, path), 0o755 if seen.st_mode & 0o100 else 0o644)
    return size


def _at_most(pieces: Iterator[bytes], most: int, path: str) -> Generator[bytes]:
    """Pass pieces on, and stop one that grows while it is read."""
    for piece in pieces:
        most -= len(piece)
        if most < 0:
            raise too_big(MOST_BYTES - most, path)
        yield piece


def check_sizes(bench: Checkout, changes: Sequence[TreeChange]) -> None:
    """Refuse a change whose files together are too big.

    Raises:
        NotAllowed: they are.
    """
    blobs = "".join(f"{change.new_oid}\n" for change in changes if change.new_oid)
    found = run_in(bench, "cat-file", "--batch-check=%(objectsize)", stdin=blobs.encode())
    size = sum(int(line) for line in found.stdout.split() if line.isdecimal())
    if size > MOST_BYTES:
        raise too_big(size)


def bring_home(home: Checkout, bench: Checkout, branch: str, commit: str, before: str) -> str:
    """Take a commit over from the bench onto a branch that stands at `before`, or is new; or say why not.

    Every object is checked once more on the way. Nothing is said when it worked.
    """
    ref = f"refs/heads/{branch}"
    git_output(bench, "update-ref", ref, commit)
    checked = ("-c", "transfer.fsckObjects=true", "-c", "gc.auto=0", "-c", "maintenance.auto=false")
    fetch = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
    words = (*checked, *fetch, "--", bench.root, ref)
    found = run_in(home, *words, limit_seconds=_LIMIT_SECONDS)
    if found.exit_code:
        raise git_failed(("fetch", bench.root), found)
    moved = run_in(home, "update-ref", "-m", "landlane: handed in", ref, commit, before or "0" * len(commit))
    return moved.stderr or f"exit {moved.exit_code}" if moved.exit_code else ""


def too_big(size: int, path: str = "") -> NotAllowed:
    """More than anybody may hand in."""
    return NotAllowed(
        f"the change holds {size:,} bytes; {MOST_BYTES:,} are the most",
        code="CHANGE_TOO_BIG",
        hint="leave out what is built or downloaded; what must be so big, a person commits",
        paths=[path] if path else [],
    )


def unsafe(why: str, paths: Sequence[str]) -> NotAllowed:
    """What nobody may hand in, whatever it is allowed to change."""
    return NotAllowed(
        why,
        code="CHANGE_UNSAFE",
        hint="hand in ordinary files by their own names; links may lead to files of the repository",
        path=paths[0] if paths else "",
        paths=list(paths),
    )


def _unfit(what: str, said: str, hint: str, path: str = "") -> NotAllowed:
    words = said[:600]
    odd = _UNSAFE.search(said)
    if odd:
        return unsafe(f"{what}: {words}", [odd[1] or odd[2] or odd[3]])
    return NotAllowed(
        f"{what}: {words}" if words else what, code="CHANGE_UNFIT", hint=hint, paths=[path] if path else []
    )
