"""Write a commit with `git fast-import`: content of any size in one pass and little memory."""

from __future__ import annotations

import os
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from landlane.git.run import GitStream
    from landlane.git.worktree_files import TreeReader

MADE_REF = "refs/rescue/made"  # the commit in the private git directory, until it is in the repository
_CHUNK = 1 << 20
_AT_ONCE = 8 * _CHUNK
_SAMPLE = 1 << 16


class CommitWriter:
    """Feeds `git fast-import`: blobs as they come, and at the end the commit of all of them."""

    def __init__(self, stream: GitStream) -> None:
        self._stream = stream
        self._marks = 0
        self._numbers: dict[str, int] = {}
        self._tree: list[str] = []
        self._known: set[str] = set()
        self.bytes = 0

    def next_name(self, folder: str) -> str:
        number = self._numbers.get(folder, 0) + 1
        self._numbers[folder] = number
        return f"{folder}/{number:06d}"

    def add(self, name: str, content: bytes) -> None:
        self._begin(name, len(content))
        self._stream.write(content + b"\n")

    def add_numbered(self, folder: str, content: bytes) -> str:
        name = self.next_name(folder)
        self.add(name, content)
        return name

    def add_stream(self, name: str, handle: int) -> int:
        """Add the content of a file; return its length."""
        size = os.fstat(handle).st_size
        if size <= _AT_ONCE:
            content = _read_up_to(handle, _AT_ONCE * 2)
            self.add(name, content)
            return len(content)
        # The length comes first. If the file shrinks meanwhile, zeros fill the rest, and the returned length
        # says how much of it counts.
        self._begin(name, size)
        left = size
        while left and (chunk := os.read(handle, min(left, _CHUNK))):
            self._stream.write(chunk)
            left -= len(chunk)
        read = size - left
        while left:
            filling = min(left, _CHUNK)
            self._stream.write(bytes(filling))
            left -= filling
        self._stream.write(b"\n")
        return read

    def refer(self, name: str, oid: str, mode: str = "100644") -> None:
        """Add an object that git has already."""
        if name not in self._known:
            self._known.add(name)
            self._tree.append(f"M {mode} {oid} {name}\n")

    def commit(self, message: str, at: int, parents: Iterable[str]) -> None:
        text = message.encode()
        author = f"Landlane <landlane@localhost> {at} +0000"
        lines = [f"commit {MADE_REF}\nauthor {author}\ncommitter {author}\ndata {len(text)}\n".encode(), text]
        # Never `from`: the tree begins empty, and parents keep this order.
        lines += [f"merge {oid}\n".encode() for oid in parents]
        self._stream.write(b"".join(lines))
        for line in self._tree:
            self._stream.write(line.encode())
        self._stream.write(b"\ndone\n")

    def _begin(self, name: str, size: int) -> None:
        self._marks += 1
        self.bytes += size
        self._stream.write(b"blob\nmark :%d\ndata %d\n" % (self._marks, size))
        self._tree.append(f"M 100644 :{self._marks} {name}\n")


def _read_up_to(handle: int, limit: int) -> bytes:
    chunks: list[bytes] = []
    while limit > 0 and (chunk := os.read(handle, min(limit, _CHUNK))):
        chunks.append(chunk)
        limit -= len(chunk)
    return b"".join(chunks)


def cheapest_compression(tree: TreeReader, paths: Iterable[str]) -> int:
    """Return the compression level: 0 where most bytes are dense already, such as archives and media.

    Compressing those would take several times as long as writing them.
    """
    dense = total = 0
    for path in paths:
        found = tree.lstat(path)
        size = found.st_size if found is not None else 0
        total += size
        if size > _AT_ONCE:
            dense += size if _is_dense(tree, path, size) else 0
    return 0 if dense * 2 > total else 1


def _is_dense(tree: TreeReader, path: str, size: int) -> bool:
    handle = tree.open(path)
    if handle is None:
        return False
    try:
        samples = b"".join(os.pread(handle, _SAMPLE, size * part // 4) for part in range(4))
    except OSError:
        return False  # the actual read reports the error
    finally:
        os.close(handle)
    return len(zlib.compress(samples, 1)) * 10 > len(samples) * 9
