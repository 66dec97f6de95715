"""Compare files with what a fresh checkout would write, reading as few of them as possible."""

from __future__ import annotations

import hashlib
import os
import stat
from enum import StrEnum

from landlane.git.tree_diff import LINK
from landlane.git.untrusted_checkout import to_bytes
from landlane.git.worktree_files import default_modes
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from landlane.git.private_git_dir import PrivateGitDir
    from landlane.git.worktree_files import TreeReader

_CHUNK = 1 << 20
_CONVERTED_LIMIT = 64 * 1024 * 1024  # line ends of bigger files are not converted
_ATTRIBUTES = ("text", "eol", "crlf", "filter", "ident", "working-tree-encoding")
_PROGRAM = "100755"


class Conversion(StrEnum):
    """How the bytes of a file differ from those of its blob, though git considers it unchanged."""

    CRLF = "crlf"
    OTHER = "other"


@value
class IndexEntry:
    """One entry of an index."""

    path: str
    mode: str
    oid: str
    stage: str
    tag: str

    @property
    def is_left_out(self) -> bool:
        """Whether the file need not exist (skip-worktree)."""
        return self.tag in {"S", "s"}

    @property
    def is_unchecked(self) -> bool:
        """Whether git does not look at the file (assume-unchanged or skip-worktree)."""
        return self.tag.islower() or self.tag == "S"


def blob_id(algorithm: str, size: int, chunks: Iterable[bytes]) -> str:
    """Return the id that git gives to a file's bytes as they are."""
    digest = hashlib.new(algorithm, b"blob %d\0" % size, usedforsecurity=False)
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def file_blob_id(tree: TreeReader, path: str, algorithm: str) -> str:
    """Return the id that git gives to a regular file's bytes; empty when there is no such file."""
    handle = tree.open(path)
    if handle is None:
        return ""
    with open(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            return ""
        return blob_id(algorithm, found.st_size, iter(lambda: file.read(_CHUNK), b""))


class FileComparer:
    """Finds the tracked files that are not as a checkout would write them.

    Beside its result, `find_differing` fills `permissions` with the unusual ones of files that do not differ,
    `hidden` with files that git itself considers unchanged because of a filter, `unexpected` with files that
    exist though a sparse checkout leaves them out, and `converted` with files that do not differ but have
    other bytes than their blob: with CRLF where the blob has LF, or otherwise.
    """

    def __init__(self, private: PrivateGitDir, tree: TreeReader) -> None:
        self._private = private
        self._tree = tree
        self._modes = default_modes()
        self.hidden: set[str] = set()
        self.permissions: dict[str, int] = {}
        self.unexpected: set[str] = set()
        self.converted: dict[str, Conversion] = {}

    def find_differing(self, tracked: Mapping[str, IndexEntry], dirty: set[str]) -> set[str]:
        """Return the paths whose file is missing or differs from the index in bytes, type or mode."""
        sizes = self._private.kinds_of(entry.oid for entry in tracked.values())
        differing: set[str] = set()
        suspects: dict[str, os.stat_result] = {}
        for path, entry in tracked.items():
            found = self._tree.lstat(path)
            if found is None or stat.S_ISDIR(found.st_mode):
                if not entry.is_left_out:
                    differing.add(path)
                continue
            if entry.is_left_out:
                self.unexpected.add(path)
            if not self._has_same_type(entry, found):
                differing.add(path)
                continue
            size = sizes.get(entry.oid, ("", -1))[1]
            if path in dirty or entry.is_unchecked or size not in (found.st_size, -1):
                suspects[path] = found
            self._note_permissions(entry, found)
        return differing | self._compare(tracked, suspects, dirty)

    def _has_same_type(self, entry: IndexEntry, found: os.stat_result) -> bool:
        if entry.mode == LINK:
            # On a file system without links, git writes the target into a file.
            has_links = self._private.settings.get("core.symlinks") != "false"
            return stat.S_ISLNK(found.st_mode) == has_links
        if not stat.S_ISREG(found.st_mode):
            return False
        if self._private.settings.get("core.filemode") == "false":
            return True
        return bool(found.st_mode & 0o100) == (entry.mode == _PROGRAM)

    def _note_permissions(self, entry: IndexEntry, found: os.stat_result) -> None:
        _, program, plain = self._modes
        mode = stat.S_IMODE(found.st_mode)
        if stat.S_ISREG(found.st_mode) and mode != (program if entry.mode == _PROGRAM else plain):
            self.permissions[entry.path] = mode

    def _compare(
        self, tracked: Mapping[str, IndexEntry], suspects: dict[str, os.stat_result], dirty: set[str]
    ) -> set[str]:
        attributes = self._read_attributes(tracked, suspects)
        for path, named in attributes.items():
            if named.get("filter") and path not in suspects:
                found = self._tree.lstat(path)
                if found is not None:
                    suspects[path] = found
        differing: set[str] = set()
        for path, found in suspects.items():
            entry, named = tracked[path], attributes.get(path, {})
            if self._has_same_bytes(entry, found):
                continue
            conversion = self._find_conversion(entry, found, named)
            if conversion is not None:
                self.converted[path] = conversion
                continue
            differing.add(path)
            if named.get("filter") and path not in dirty and not entry.is_unchecked:
                self.hidden.add(path)
        return differing

    def _read_attributes(
        self, tracked: Mapping[str, IndexEntry], suspects: Mapping[str, object]
    ) -> dict[str, dict[str, str]]:
        """Return the attributes that make git convert, for suspects; for all files if any have attributes."""
        has_attributes = (
            any(os.path.basename(path) == ".gitattributes" for path in tracked)
            or "core.attributesfile" in self._private.settings
            or os.path.exists(self._private.path("info/attributes"))
            or self._tree.exists(".gitattributes")
        )
        paths = list(tracked) if has_attributes else list(suspects)
        attributes: dict[str, dict[str, str]] = {}
        if not paths:
            return attributes
        asked = b"\0".join(to_bytes(path) for path in paths) + b"\0"
        words = ("check-attr", "-z", "--stdin", *_ATTRIBUTES)
        fields = self._private.git_output(*words, stdin=asked).split("\0")
        for path, name, text in zip(fields[0::3], fields[1::3], fields[2::3], strict=False):
            if text not in {"unspecified", "unset"}:
                attributes.setdefault(path, {})[name] = text
            elif text == "unset" and name in {"text", "crlf"}:
                attributes.setdefault(path, {})["binary"] = "set"
        return attributes

    def _has_same_bytes(self, entry: IndexEntry, found: os.stat_result) -> bool:
        if stat.S_ISLNK(found.st_mode):
            return self._blob_id(self._tree.read_link(entry.path) or b"") == entry.oid
        return file_blob_id(self._tree, entry.path, self._private.algorithm) == entry.oid

    def _find_conversion(
        self, entry: IndexEntry, found: os.stat_result, named: Mapping[str, str]
    ) -> Conversion | None:
        """Return how git makes a file of its blob when it writes it; None if this is not what it makes."""
        if stat.S_ISLNK(found.st_mode) or found.st_size > _CONVERTED_LIMIT:
            return None
        if named.get("ident") or named.get("working-tree-encoding"):
            made = self._private.run("cat-file", "--filters", f"--path={entry.path}", entry.oid)
            is_made = not made.exit_code and to_bytes(made.stdout) == self._read(entry.path)
            return Conversion.OTHER if is_made else None
        return Conversion.CRLF if self._has_usual_line_ends(entry, named) else None

    def _has_usual_line_ends(self, entry: IndexEntry, named: Mapping[str, str]) -> bool:
        """Return whether a file only has the CRLF that a checkout would write for it."""
        if "binary" in named or not self._wants_crlf(named):
            return False
        raw = self._read(entry.path)
        plain = raw.replace(b"\r\n", b"\n")
        if b"\r" in plain or plain.replace(b"\n", b"\r\n") != raw:
            return False
        return self._blob_id(plain) == entry.oid

    def _wants_crlf(self, named: Mapping[str, str]) -> bool:
        if "eol" in named:
            return named["eol"] == "crlf"
        settings = self._private.settings
        if settings.get("core.autocrlf", "").lower() in {"true", "yes", "on", "1"}:
            return True
        return ("text" in named or "crlf" in named) and settings.get("core.eol", "").lower() == "crlf"

    def _read(self, path: str) -> bytes:
        handle = self._tree.open(path)
        if handle is None:
            return b""
        with open(handle, "rb") as file:
            return file.read(_CONVERTED_LIMIT + 1)

    def _blob_id(self, content: bytes) -> str:
        return blob_id(self._private.algorithm, len(content), [content])
