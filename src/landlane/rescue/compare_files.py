"""Comparing files with what a fresh checkout would write, reading as few of them as can be."""

from __future__ import annotations

import hashlib
import os
import stat

from landlane.git.untrusted_checkout import to_bytes
from landlane.git.worktree_reader import default_modes
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from landlane.git.private_dir.temporary import Shadow
    from landlane.git.worktree_reader import TreeReader

_CHUNK = 1 << 20
_CONVERTED_LIMIT = 64 * 1024 * 1024  # nobody converts line ends of bigger files
_ATTRIBUTES = ("text", "eol", "crlf", "filter", "ident", "working-tree-encoding")
_PROGRAM = "100755"
_LINK = "120000"


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
        """Whether git was told that the file need not be there (skip-worktree)."""
        return self.tag in {"S", "s"}

    @property
    def is_trusted(self) -> bool:
        """Whether git was told not to look (assume-unchanged), or need not."""
        return self.tag.islower() or self.tag == "S"


class FileComparer:
    """Tells which tracked files are not as a checkout would write them."""

    def __init__(self, shadow: Shadow, tree: TreeReader) -> None:
        self._shadow = shadow
        self._tree = tree
        self._modes = default_modes()
        self.hidden: set[str] = set()
        self.permissions: dict[str, int] = {}
        self.unexpected: set[str] = set()
        self.converted: set[str] = set()

    def differing(self, tracked: Mapping[str, IndexEntry], dirty: set[str]) -> set[str]:
        """The paths whose file is missing or differs from the index by a byte, a type or the right to be run.

        Beside that it notes in `permissions` the odd ones of files that do not differ, in `hidden` what git
        itself holds to be unchanged by virtue of a filter, in `unexpected` what is there though a sparse
        checkout leaves it out, and in `converted` what does not differ but has other bytes than its blob.
        """
        sizes = self._shadow.kinds_of(entry.oid for entry in tracked.values())
        differing: set[str] = set()
        suspects: dict[str, os.stat_result] = {}
        for path, entry in tracked.items():
            seen = self._tree.look(path)
            if seen is None or stat.S_ISDIR(seen.st_mode):
                if not entry.is_left_out:
                    differing.add(path)
                continue
            if entry.is_left_out:
                self.unexpected.add(path)
            if not self._has_same_type(entry, seen):
                differing.add(path)
                continue
            size = sizes.get(entry.oid, ("", -1))[1]
            if path in dirty or entry.is_trusted or size not in (seen.st_size, -1):
                suspects[path] = seen
            self._note_permissions(entry, seen)
        return differing | self._judge(tracked, suspects, dirty)

    def _has_same_type(self, entry: IndexEntry, seen: os.stat_result) -> bool:
        if entry.mode == _LINK:
            # Without links in the file system, git writes where they point into a file.
            has_links = self._shadow.settings.get("core.symlinks") != "false"
            return stat.S_ISLNK(seen.st_mode) == has_links
        if not stat.S_ISREG(seen.st_mode):
            return False
        if self._shadow.settings.get("core.filemode") == "false":
            return True
        return bool(seen.st_mode & 0o100) == (entry.mode == _PROGRAM)

    def _note_permissions(self, entry: IndexEntry, seen: os.stat_result) -> None:
        _, program, plain = self._modes
        mode = stat.S_IMODE(seen.st_mode)
        if stat.S_ISREG(seen.st_mode) and mode != (program if entry.mode == _PROGRAM else plain):
            self.permissions[entry.path] = mode

    def _judge(
        self, tracked: Mapping[str, IndexEntry], suspects: dict[str, os.stat_result], dirty: set[str]
    ) -> set[str]:
        attributes = self._attributes(tracked, suspects)
        for path, named in attributes.items():
            if named.get("filter") and path not in suspects:
                seen = self._tree.look(path)
                if seen is not None:
                    suspects[path] = seen
        differing: set[str] = set()
        for path, seen in suspects.items():
            entry, named = tracked[path], attributes.get(path, {})
            if self._is_same(entry, seen):
                continue
            if self._is_converted(entry, seen, named):
                self.converted.add(path)
                continue
            differing.add(path)
            if named.get("filter") and path not in dirty and not entry.is_trusted:
                self.hidden.add(path)
        return differing

    def _attributes(
        self, tracked: Mapping[str, IndexEntry], suspects: Mapping[str, object]
    ) -> dict[str, dict[str, str]]:
        """The attributes that make git convert: of all files where filters may be, else of suspects only."""
        has_files = any(os.path.basename(path) == ".gitattributes" for path in tracked)
        has_files = has_files or "core.attributesfile" in self._shadow.settings
        has_files = has_files or os.path.exists(os.path.join(self._shadow.folder, "info", "attributes"))
        paths = list(tracked) if has_files or self._tree.has(".gitattributes") else list(suspects)
        found: dict[str, dict[str, str]] = {}
        if not paths:
            return found
        asked = b"\0".join(to_bytes(path) for path in paths) + b"\0"
        fields = self._shadow.git_output("check-attr", "-z", "--stdin", *_ATTRIBUTES, stdin=asked).split("\0")
        for path, name, said in zip(fields[0::3], fields[1::3], fields[2::3], strict=False):
            if said not in {"unspecified", "unset"}:
                found.setdefault(path, {})[name] = said
            elif said == "unset" and name in {"text", "crlf"}:
                found.setdefault(path, {})["binary"] = "set"
        return found

    # -------------------------------------------------------------------------- is it the same file

    def _is_same(self, entry: IndexEntry, seen: os.stat_result) -> bool:
        if stat.S_ISLNK(seen.st_mode):
            return self._name_of(self._tree.read_link(entry.path) or b"") == entry.oid
        return self._file_name(entry.path) == entry.oid

    def _is_converted(self, entry: IndexEntry, seen: os.stat_result, named: Mapping[str, str]) -> bool:
        """Whether a file is what git makes of its blob when it writes it."""
        if stat.S_ISLNK(seen.st_mode) or seen.st_size > _CONVERTED_LIMIT:
            return False
        if named.get("ident") or named.get("working-tree-encoding"):
            return self._is_as_git_converts(entry)
        return self._has_usual_line_ends(entry, named)

    def _has_usual_line_ends(self, entry: IndexEntry, named: Mapping[str, str]) -> bool:
        """Whether a file only has the CRLF that a checkout would write for it."""
        if "binary" in named or not self._wants_crlf(named):
            return False
        raw = self._read(entry.path)
        plain = raw.replace(b"\r\n", b"\n")
        if b"\r" in plain or plain.replace(b"\n", b"\r\n") != raw:
            return False
        return self._name_of(plain) == entry.oid

    def _wants_crlf(self, named: Mapping[str, str]) -> bool:
        if "eol" in named:
            return named["eol"] == "crlf"
        settings = self._shadow.settings
        if settings.get("core.autocrlf", "").lower() in {"true", "yes", "on", "1"}:
            return True
        return ("text" in named or "crlf" in named) and settings.get("core.eol", "").lower() == "crlf"

    def _is_as_git_converts(self, entry: IndexEntry) -> bool:
        made = self._shadow.run("cat-file", "--filters", f"--path={entry.path}", entry.oid)
        return not made.exit_code and to_bytes(made.stdout) == self._read(entry.path)

    def _read(self, path: str) -> bytes:
        handle = self._tree.open(path)
        if handle is None:
            return b""
        with open(handle, "rb") as file:
            return file.read(_CONVERTED_LIMIT + 1)

    def _name_of(self, content: bytes) -> str:
        return hashlib.new(self._shadow.algorithm, b"blob %d\0" % len(content) + content).hexdigest()

    def _file_name(self, path: str) -> str:
        """The name git would give to a file's bytes as they are."""
        handle = self._tree.open(path)
        if handle is None:
            return ""
        with open(handle, "rb") as file:
            summed = hashlib.new(self._shadow.algorithm, b"blob %d\0" % os.fstat(handle).st_size)
            while chunk := file.read(_CHUNK):
                summed.update(chunk)
        return summed.hexdigest()
