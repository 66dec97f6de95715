"""Apply a returned patch or returned files in a throwaway checkout, and fetch the resulting commit.

The checkout borrows the objects of the repository. Its own objects stay there until the change was checked,
so a refused change never reaches the repository, and no other working tree or index is touched. Settings and
attributes are those of the repository; hooks do not run.
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
from landlane.files import is_inside
from landlane.git.create_checkout import add_detached_clone, clone_at
from landlane.git.run import git_failed, git_output, resolve_revision, run_in
from landlane.git.worktree_files import TreeReader, TreeWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from landlane.git.discovery import Checkout
    from landlane.git.tree_diff import TreeChange

MAX_BYTES = 64 * 1024 * 1024  # of all changed files together
_LIMIT_SECONDS = 600.0
_READ_BYTES = 1024 * 1024
# The same bytes and modes result whatever the user's settings are, and names that are special to a file
# system or to git are refused.
_SETTINGS = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false"),
    *("-c", "core.splitIndex=false", "-c", "core.sparseCheckout=false", "-c", "index.sparse=false"),
    *("-c", "core.fileMode=true", "-c", "core.symlinks=true", "-c", "core.ignoreCase=false"),
    *("-c", "core.safecrlf=false", "-c", "core.protectHFS=true", "-c", "core.protectNTFS=true"),
    *("-c", "apply.whitespace=nowarn", "-c", "apply.ignoreWhitespace=no"),
)
_BINARY = re.compile(rb"^(literal|delta) (\d{1,15})\n((?:[A-Za-z][!-~]+\n)*)", re.MULTILINE)
_IGNORING = "Ignoring path "  # git skips a name that is special to it with this message
_UNSAFE = re.compile(rf"[Ii]nvalid path '(.+)'|{_IGNORING}(.+)|file '(.+)' is beyond a symbolic link")


@contextmanager
def open_throwaway_checkout(home: Checkout, base: str) -> Generator[Checkout]:
    """Open a throwaway clone whose index is at `base`.

    Raises:
        RepositoryError: there is no such commit, or git fails.
    """
    if resolve_revision(home, f"{base}^{{commit}}") != base:  # the full id is required
        raise RepositoryError(
            f"there is no commit {base[:40] or 'that the work began from'} here",
            code="UNKNOWN_BASE",
            hint="the commit that the worker's checkout stood on must be in this repository",
        )
    with tempfile.TemporaryDirectory(prefix="landlane-returned-") as folder:
        path = os.path.realpath(folder)
        add_detached_clone(home, path, base, "")
        checkout = clone_at(path)
        git_output(checkout, *_SETTINGS, "read-tree", base)
        yield checkout


def tree_with_patch(checkout: Checkout, patch: str) -> str:
    """Apply a patch and return the resulting tree.

    Raises:
        NotAllowed: it is not a patch, does not apply, contains unsafe paths, or is too big.
    """
    data = patch.encode("utf-8", "surrogateescape")
    if not data.strip():
        return git_output(checkout, *_SETTINGS, "write-tree")
    data += b"" if data.endswith(b"\n") else b"\n"  # workers often lose it
    _check_declared(data)
    applied = run_in(
        checkout, *_SETTINGS, *("apply", "--cached", "-p1", "-"), stdin=data, limit_seconds=_LIMIT_SECONDS
    )
    if applied.exit_code:
        raise _unfit(
            "the patch does not fit",
            applied.stderr,
            "make it in the checkout it belongs to: git add -A && git diff --cached --binary BASE",
        )
    return git_output(checkout, *_SETTINGS, "write-tree")


def _check_declared(patch: bytes) -> None:
    """Refuse binary hunks whose result is too big, because git would hold it in memory."""
    size = 0
    for part in _BINARY.finditer(patch):
        size += max(int(part[2]), _delta_result(part[3]) if part[1] == b"delta" else 0)
    if size > 2 * MAX_BYTES:  # git's binary patches contain both directions
        raise too_big(size)


def _delta_result(lines: bytes) -> int:
    """Return the declared size of a delta's result; 0 if it cannot be read, which git refuses as well."""
    first = lines.partition(b"\n")[0]
    try:
        inflated = zlib.decompressobj().decompress(b85decode(first[1:]), 32)
    except (ValueError, zlib.error):
        return 0
    _, rest = _varint(inflated)
    return _varint(rest)[0]


def _varint(data: bytes) -> tuple[int, bytes]:
    number = 0
    for at, byte in enumerate(data):
        number |= (byte & 0x7F) << (7 * at)
        if byte < 0x80:
            return number, data[at + 1 :]
    return number, b""


def tree_with_files(checkout: Checkout, files: Sequence[str], scratch: str) -> str:
    """Copy files from the scratch folder to the same paths and return the resulting tree.

    Line endings and filters follow the repository's settings and attributes, as with `git add`.

    Raises:
        NotAllowed: a file is missing, is not a file or link, is behind a link, or they are too big.
    """
    left = MAX_BYTES
    with TreeReader(scratch) as reader, TreeWriter(checkout.root) as writer:
        for path in sorted(set(files)):
            left -= _copy(reader, writer, path, left)
    listed = "".join(f"{path}\0" for path in sorted(set(files))).encode("utf-8", "surrogateescape")
    words = ("update-index", "--add", "--replace", "-z", "--stdin")
    added = run_in(checkout, *_SETTINGS, *words, stdin=listed, limit_seconds=_LIMIT_SECONDS)
    if added.exit_code or _IGNORING in added.stderr:
        raise _unfit("the files do not fit", added.stderr, "name files of the repository, each once")
    return git_output(checkout, *_SETTINGS, "write-tree")


def _copy(reader: TreeReader, writer: TreeWriter, path: str, limit: int) -> int:
    """Copy one file or link, and return its size."""
    if not is_inside(path):
        raise unsafe_change(f"{path} is not a path inside the repository", [path])
    status = reader.lstat(path)
    if status is None:
        raise _unfit(
            f"{path} is listed, and is not in the scratch folder",
            "",
            "put it there under the same path; to delete a file, hand in a patch",
            path,
        )
    if stat.S_ISLNK(status.st_mode):
        writer.link(path, reader.read_link(path) or b"")
        return 0
    descriptor = reader.open(path) if stat.S_ISREG(status.st_mode) else None
    if descriptor is None:
        raise _unfit(f"{path} in the scratch folder is not a file", "", "list files, not folders", path)
    with open(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        if size > limit:
            raise too_big(MAX_BYTES - limit + size, path)
        pieces = iter(lambda: file.read(_READ_BYTES), b"")
        writer.write(path, _limit_size(pieces, limit, path), 0o755 if status.st_mode & 0o100 else 0o644)
    return size


def _limit_size(pieces: Iterator[bytes], limit: int, path: str) -> Generator[bytes]:
    """Yield pieces up to a limit, because a file can grow while it is read."""
    for piece in pieces:
        limit -= len(piece)
        if limit < 0:
            raise too_big(MAX_BYTES - limit, path)
        yield piece


def check_sizes(checkout: Checkout, changes: Sequence[TreeChange]) -> None:
    """Refuse a change whose files together are too big.

    Raises:
        NotAllowed: they are.
    """
    blobs = "".join(f"{change.new_oid}\n" for change in changes if change.new_oid)
    listed = run_in(checkout, "cat-file", "--batch-check=%(objectsize)", stdin=blobs.encode())
    size = sum(int(line) for line in listed.stdout.split() if line.isdecimal())
    if size > MAX_BYTES:
        raise too_big(size)


def fetch_commit(home: Checkout, checkout: Checkout, branch: str, commit: str, before: str) -> str:
    """Fetch a commit onto a branch that is at `before`, or new; return the error, or "" on success.

    Git checks every object that it fetches.
    """
    ref = f"refs/heads/{branch}"
    git_output(checkout, "update-ref", ref, commit)
    checked = ("-c", "transfer.fsckObjects=true", "-c", "gc.auto=0", "-c", "maintenance.auto=false")
    fetch = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
    words = (*checked, *fetch, "--", checkout.root, ref)
    fetched = run_in(home, *words, limit_seconds=_LIMIT_SECONDS)
    if fetched.exit_code:
        raise git_failed(("fetch", checkout.root), fetched)
    moved = run_in(home, "update-ref", "-m", "landlane: handed in", ref, commit, before or "0" * len(commit))
    return moved.stderr or f"exit {moved.exit_code}" if moved.exit_code else ""


def too_big(size: int, path: str = "") -> NotAllowed:
    """Return the refusal of a change that is too big."""
    return NotAllowed(
        f"the change holds {size:,} bytes; {MAX_BYTES:,} are the most",
        code="CHANGE_TOO_BIG",
        hint="leave out what is built or downloaded; what must be so big, a person commits",
        paths=[path] if path else [],
    )


def unsafe_change(why: str, paths: Sequence[str]) -> NotAllowed:
    """Return the refusal of a change that no role may make."""
    return NotAllowed(
        why,
        code="CHANGE_UNSAFE",
        hint="hand in ordinary files by their own names; links may lead to files of the repository",
        path=paths[0] if paths else "",
        paths=list(paths),
    )


def _unfit(what: str, error: str, hint: str, path: str = "") -> NotAllowed:
    words = error[:600]
    match = _UNSAFE.search(error)
    if match:
        return unsafe_change(f"{what}: {words}", [match[1] or match[2] or match[3]])
    return NotAllowed(
        f"{what}: {words}" if words else what, code="CHANGE_UNFIT", hint=hint, paths=[path] if path else []
    )
