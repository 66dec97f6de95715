"""Find what in a working tree differs from a fresh checkout of its commit, byte by byte.

git's own index says quickly which files were not touched since they were written; those are not read again.
The rest is compared byte for byte with what a checkout would write. What git's conversions (line ends,
filters) would hide is a difference here, except where a fresh checkout produces the same bytes.
"""

from __future__ import annotations

import os
import stat
from enum import StrEnum

from landlane.errors import RepositoryError
from landlane.git.discovery import HOME_POINTER
from landlane.git.tree_diff import SUBMODULE, parse_raw_diff
from landlane.git.untrusted_checkout import MAIN, to_bytes
from landlane.git.worktree_files import TreeReader, default_modes
from landlane.rescue.compare_files import Conversion, FileComparer, IndexEntry
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.git.private_git_dir import TemporaryGitDir


class EntryType(StrEnum):
    """What a rescue has of a path."""

    FILE = "file"
    LINK = "link"
    MODE = "mode"  # the content is that of the commit, only the permissions are unusual


FILE, LINK, MODE = EntryType
_SKIPPED = "left out: it is not a file, link or folder of this checkout"


@value
class UnsavedFile:
    """One path that must be saved; with `oid` when git has these bytes already."""

    path: str
    type: EntryType
    mode: int
    oid: str = ""


@value
class UnsavedFiles:
    """What a fresh checkout of the commit would not restore in a working tree."""

    files: tuple[UnsavedFile, ...]
    deleted: tuple[str, ...]
    folders: tuple[tuple[str, int], ...]
    empty_folders: tuple[str, ...]
    submodules: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    staged_blobs: tuple[str, ...]
    converted: tuple[tuple[str, Conversion], ...]  # unchanged files that have other bytes than their blob
    modified: int
    staged: int
    untracked: int
    removed: int


def find_unsaved(private: TemporaryGitDir) -> UnsavedFiles:
    """Examine everything in a checkout's working tree and index.

    Raises:
        RepositoryError: a folder or file cannot be read, or git refuses.
    """
    with TreeReader(private.checkout.root) as tree:
        return _Finder(private, tree).find()


class _Finder:
    """Collects while it examines a tree; used once."""

    def __init__(self, private: TemporaryGitDir, tree: TreeReader) -> None:
        self._private = private
        self._tree = tree
        self._files: dict[str, UnsavedFile] = {}
        self._deleted: set[str] = set()
        self._notes: list[str] = []
        self._skipped: list[str] = []
        self._repositories: set[str] = set()
        self._empty: set[str] = set()

    def find(self) -> UnsavedFiles:
        entries = self._read_index()
        staged = self._staged_paths()
        tracked = {entry.path: entry for entry in entries if entry.stage == "0" and entry.mode != SUBMODULE}
        comparer = FileComparer(self._private, self._tree)
        differing = comparer.find_differing(tracked, self._dirty_paths())
        unmerged = {entry.path for entry in entries if entry.stage != "0"}
        for path in sorted(differing | unmerged | staged | comparer.unexpected):
            is_in_git = path in tracked and path not in differing and path not in comparer.converted
            self._add(path, tracked[path].oid if is_in_git else "")
        for path in self._untracked_paths():
            if path.endswith("/"):
                self._add_repository(path.rstrip("/"))
            else:
                self._add(path, is_new=True)
        for path, mode in comparer.permissions.items():
            if path not in self._files and path not in self._deleted:
                self._files[path] = UnsavedFile(path=path, type=MODE, mode=mode)
        self._find_empty_folders()
        self._find_special_files([entry.path for entry in entries])
        new = {path for path in self._files if path not in tracked and path not in staged}
        return UnsavedFiles(
            files=tuple(self._files.values()),
            deleted=tuple(sorted(self._deleted)),
            folders=self._unusual_folders([entry.path for entry in entries]),
            empty_folders=tuple(sorted(self._empty)),
            submodules=tuple((entry.path, entry.oid) for entry in entries if entry.mode == SUBMODULE),
            notes=(*self._notes, *(f"{path}: {_SKIPPED}" for path in dict.fromkeys(self._skipped))),
            staged_blobs=self._staged_blobs(entries, staged),
            converted=tuple(comparer.converted.items()),
            modified=len((differing - comparer.hidden) & self._files.keys()),
            staged=len(staged),
            untracked=len(new),
            removed=len((differing - staged) & self._deleted),
        )

    def _read_index(self) -> list[IndexEntry]:
        entries: list[IndexEntry] = []
        asked = ("ls-files", "--stage", "-v", "-z")
        listed = self._private.run(*asked)
        if listed.exit_code:
            self._private.replace_index()
            self._notes.append("the index was damaged: every file was saved, but not what was only staged")
        for line in (self._private.git_output(*asked) if listed.exit_code else listed.stdout).split("\0"):
            if not line:
                continue
            head, _, path = line.partition("\t")
            tag, mode, oid, stage = head.split(" ")
            entries.append(IndexEntry(path=path, mode=mode, oid=oid, stage=stage, tag=tag))
        return entries

    def _diff(self, *words: str) -> set[str]:
        return {change.path for change in parse_raw_diff(self._private.git_output(*words))}

    def _staged_paths(self) -> set[str]:
        """Return the paths at which index and commit differ."""
        base = self._private.head
        if not base:
            base = self._private.git_output("hash-object", "-t", "tree", "--stdin", stdin=b"").strip()
        return self._diff(
            "diff-index", "--cached", "--raw", "-z", "--no-renames", "--ignore-submodules=dirty", base
        )

    def _dirty_paths(self) -> set[str]:
        """Return the paths that were touched since git last compared them, without submodules."""
        return self._diff("diff-files", "--raw", "-z", "--no-renames", "--ignore-submodules=all")

    def _untracked_paths(self, *options: str) -> list[str]:
        listed = self._private.run("ls-files", "--others", "--exclude-standard", "-z", *options)
        # git continues when it cannot open a folder; its files would be lost.
        closed = [line for line in listed.stderr.splitlines() if "could not open directory" in line]
        if listed.exit_code or closed:
            raise RepositoryError(
                f"not everything can be read: {(closed or [listed.stderr])[0][:300]}",
                code="RESCUE_UNREADABLE",
                hint="make it readable, or remove it, and try again",
            )
        return [path for path in listed.stdout.split("\0") if path]

    def _staged_blobs(self, entries: list[IndexEntry], staged: set[str]) -> tuple[str, ...]:
        """Return the blobs that are in the index and not in the commit."""
        oids = {
            entry.oid
            for entry in entries
            if entry.mode != SUBMODULE and (entry.stage != "0" or entry.path in staged)
        }
        return tuple(oid for oid, (kind, _) in self._private.kinds_of(oids).items() if kind == "blob")

    def _add(self, path: str, oid: str = "", *, is_new: bool = False) -> None:
        found = self._tree.lstat(path)
        if found is not None and stat.S_ISREG(found.st_mode):
            mode = stat.S_IMODE(found.st_mode)
            self._files[path] = UnsavedFile(path=path, type=FILE, mode=mode, oid=oid)
        elif found is not None and stat.S_ISLNK(found.st_mode):
            self._files[path] = UnsavedFile(path=path, type=LINK, mode=0)
        else:
            if found is not None and not stat.S_ISDIR(found.st_mode):
                self._skipped.append(path)
            if not is_new:
                self._deleted.add(path)

    def _add_repository(self, path: str) -> None:
        """Add a repository within the tree with its `.git`, since all of it is nowhere else."""
        root = self._private.checkout.root
        self._repositories.add(path)
        if self._private.checkout.kind == MAIN and _is_workspace(os.path.join(root, path)):
            self._skipped.append(path + "/")
            return
        for inner, is_folder in self._tree.walk(path):
            if is_folder:
                self._empty.add(inner)
            else:
                self._add(inner, is_new=True)

    def _find_empty_folders(self) -> None:
        tree = self._tree
        tops = [path.rstrip("/") for path in self._untracked_paths("--directory") if path.endswith("/")]
        if tops:
            ignored = self._untracked_paths("--directory", "--ignored")
            without = {path.rstrip("/") for path in (*ignored, *self._skipped)}
            for top in tops:
                if top not in self._repositories:
                    self._walk_untracked(top, without)
        for path in self._deleted:
            parent = os.path.dirname(path)
            while parent and not tree.is_folder(parent):
                parent = os.path.dirname(parent)
            if parent and tree.is_empty(parent):
                self._empty.add(parent)

    def _walk_untracked(self, top: str, without: set[str]) -> None:
        """Add the empty folders below an untracked one, and each `.git`, which git passes over."""
        for path, is_folder in self._tree.walk(top, without):
            if is_folder:
                self._empty.add(path)
            elif "/.git/" in path or path.endswith("/.git") or self._tree.is_special(path):
                self._add(path, is_new=True)

    def _find_special_files(self, tracked: list[str]) -> None:
        """Note the sockets, pipes and devices beside tracked files, which git does not list."""
        folders = {"", *(os.path.dirname(path) for path in tracked)}
        found = [f"./{path}" for folder in sorted(folders) for path in self._tree.list_special(folder)]
        if found:
            asked = to_bytes("\0".join(found))
            # git refuses to read these paths literally; with `./` before them none has a magic meaning.
            words = ("check-ignore", "-z", "--stdin")
            answer = self._private.run(*words, stdin=asked, GIT_LITERAL_PATHSPECS="0")
            ignored = answer.stdout.split("\0")
            self._skipped += (path.removeprefix("./") for path in found if path not in ignored)

    def _unusual_folders(self, tracked: list[str]) -> tuple[tuple[str, int], ...]:
        """Return every folder of the restored tree whose permissions are not the usual ones."""
        usual = default_modes()[0]
        folders: set[str] = set(self._empty)
        for path in (*tracked, *self._files, *self._empty):
            parent = os.path.dirname(path)
            while parent and parent not in folders:
                folders.add(parent)
                parent = os.path.dirname(parent)
        modes = ((path, self._tree.folder_mode(path)) for path in sorted(folders))
        return tuple((path, mode) for path, mode in modes if mode not in (usual, -1))


def _is_workspace(folder: str) -> bool:
    """Return whether a folder in the main checkout is a worktree or clone of it, which is saved by itself."""
    marker = os.path.join(folder, ".git")
    return os.path.isfile(marker) or os.path.isfile(os.path.join(marker, HOME_POINTER))
