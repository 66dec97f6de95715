"""Find what in a working tree differs from a fresh checkout of its commit, byte by byte.

git's own index says quickly which files were not touched since they were written; those are not read again.
The rest is compared byte for byte with what a checkout would write. What git's conversions (line ends,
filters) would hide is a difference here, except where a fresh checkout brings about the same bytes.
"""

from __future__ import annotations

import os
import stat

from landlane.errors import RepositoryError
from landlane.git.discovery import HOME_POINTER
from landlane.git.untrusted_checkout import MAIN
from landlane.git.worktree_reader import TreeReader, default_modes
from landlane.rescue.compare_files import FileComparer, IndexEntry
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.git.private_dir.temporary import Shadow

FILE = "file"
LINK = "link"
MODE = "mode"  # the content is that of the commit, only the permissions are unusual
_GITLINK = "160000"


@value
class UnsavedFile:
    """One path that must be saved; with `oid` when git has these very bytes already."""

    path: str
    type: str
    mode: int
    oid: str = ""


@value
class UnsavedFiles:
    """A working tree, as far as a fresh checkout of its commit would not bring it back."""

    files: tuple[UnsavedFile, ...]
    deleted: tuple[str, ...]
    folders: tuple[tuple[str, int], ...]
    empty_folders: tuple[str, ...]
    submodules: tuple[tuple[str, str], ...]
    skipped: tuple[str, ...]
    staged_blobs: tuple[str, ...]
    modified: int
    staged: int
    untracked: int
    removed: int


def find_unsaved(shadow: Shadow) -> UnsavedFiles:
    """Look at everything in a checkout's working tree and index.

    Raises:
        RepositoryError: a folder or file cannot be read, or git refuses.
    """
    return _Surveyor(shadow).survey()


class _Surveyor:
    """Collects while it looks; used once."""

    def __init__(self, shadow: Shadow) -> None:
        self._shadow = shadow
        self._files: dict[str, UnsavedFile] = {}
        self._deleted: set[str] = set()
        self._skipped: list[str] = []
        self._hidden: set[str] = set()  # saved, but no change in the eyes of git
        self._empty: set[str] = set()

    def survey(self) -> UnsavedFiles:
        entries = self._read_index()
        staged = self._staged_paths()
        dirty = self._dirty_paths()
        tracked = {entry.path: entry for entry in entries if entry.stage == "0" and entry.mode != _GITLINK}
        with TreeReader(self._shadow.place.root) as tree:
            comparer = FileComparer(self._shadow, tree)
            differing = comparer.differing(tracked, dirty)
            self._hidden = comparer.hidden
            unmerged = {entry.path for entry in entries if entry.stage != "0"}
            for path in sorted(differing | unmerged | set(staged) | comparer.unexpected):
                entry = tracked.get(path)
                is_kept = entry is not None and path not in differing and path not in comparer.converted
                self._look(tree, path, entry.oid if entry is not None and is_kept else "")
            others = self._untracked_paths()
            for path in others:
                if path.endswith("/"):
                    self._look_into_nested(tree, path.rstrip("/"))
                else:
                    self._look(tree, path, "", is_new=True)
            gitlinks = [(entry.path, entry.oid) for entry in entries if entry.mode == _GITLINK]
            self._note_permissions(comparer.permissions)
            self._find_empty_folders(tree)
            folders = self._unusual_folders(tree, [entry.path for entry in entries])
        new = {path for path in self._files if path not in tracked and path not in staged}
        return UnsavedFiles(
            files=tuple(self._files.values()),
            deleted=tuple(sorted(self._deleted)),
            folders=folders,
            empty_folders=tuple(sorted(self._empty)),
            submodules=tuple(gitlinks),
            skipped=tuple(self._skipped),
            staged_blobs=self._staged_blobs(entries, staged),
            modified=len((differing - self._hidden) & self._files.keys()),
            staged=len(staged),
            untracked=len(new),
            removed=len((differing - set(staged)) & self._deleted),
        )

    # ------------------------------------------------------------------------------- what git says

    def _read_index(self) -> list[IndexEntry]:
        entries: list[IndexEntry] = []
        for line in self._shadow.git_output("ls-files", "--stage", "-v", "-z").split("\0"):
            if not line:
                continue
            head, _, path = line.partition("\t")
            tag, mode, oid, stage = head.split(" ")
            entries.append(IndexEntry(path=path, mode=mode, oid=oid, stage=stage, tag=tag))
        return entries

    def _staged_paths(self) -> dict[str, str]:
        """The paths at which index and commit differ, with what the index has there."""
        base = self._shadow.head or self._empty_tree()
        asked = ("diff-index", "--cached", "--raw", "-z", "--no-renames", "--ignore-submodules=dirty", base)
        found = _raw_diff(self._shadow.git_output(*asked))
        return {path: new for path, (_, new, _) in found.items()}

    def _empty_tree(self) -> str:
        return self._shadow.git_output("hash-object", "-t", "tree", "--stdin", stdin=b"").strip()

    def _dirty_paths(self) -> set[str]:
        """The paths that were touched since git last compared them; submodules are looked at by ourselves."""
        asked = ("diff-files", "--raw", "-z", "--no-renames", "--ignore-submodules=all")
        return set(_raw_diff(self._shadow.git_output(*asked)))

    def _untracked_paths(self, *how: str) -> list[str]:
        found = self._shadow.run("ls-files", "--others", "--exclude-standard", "-z", *how)
        # git goes on when it cannot look into a folder; we would lose what is in it.
        closed = [line for line in found.stderr.splitlines() if "could not open directory" in line]
        if found.exit_code or closed:
            raise RepositoryError(
                f"not everything can be read: {(closed or [found.stderr])[0][:300]}",
                code="RESCUE_UNREADABLE",
                hint="make it readable, or remove it, and try again",
            )
        return [path for path in found.stdout.split("\0") if path]

    def _staged_blobs(self, entries: list[IndexEntry], staged: dict[str, str]) -> tuple[str, ...]:
        """The blobs that the index names and the commit does not."""
        oids = {
            entry.oid
            for entry in entries
            if entry.mode != _GITLINK and (entry.stage != "0" or entry.path in staged)
        }
        return tuple(oid for oid, (kind, _) in self._shadow.kinds_of(oids).items() if kind == "blob")

    # ------------------------------------------------------------------------------- what is there

    def _look(self, tree: TreeReader, path: str, oid: str, *, is_new: bool = False) -> None:
        seen = tree.look(path)
        if seen is None or stat.S_ISDIR(seen.st_mode):
            if not is_new:
                self._deleted.add(path)
            return
        mode = stat.S_IMODE(seen.st_mode)
        if stat.S_ISREG(seen.st_mode):
            self._files[path] = UnsavedFile(path=path, type=FILE, mode=mode, oid=oid)
        elif stat.S_ISLNK(seen.st_mode):
            self._files[path] = UnsavedFile(path=path, type=LINK, mode=0)
        else:
            self._skipped.append(path)
            if not is_new:
                self._deleted.add(path)

    def _look_into_nested(self, tree: TreeReader, path: str) -> None:
        """A repository within the tree: nothing of it is anywhere else, its `.git` included."""
        if self._shadow.place.kind == MAIN and self._is_workspace(
            os.path.join(self._shadow.place.root, path)
        ):
            self._skipped.append(path + "/")
            return
        for found, is_folder in tree.walk(path):
            if is_folder:
                self._empty.add(found)
            else:
                self._look(tree, found, "", is_new=True)

    def _is_workspace(self, folder: str) -> bool:
        """Whether a folder in the main checkout is a worktree or clone of it, with a life of its own."""
        marker = os.path.join(folder, ".git")
        return os.path.isfile(marker) or os.path.isfile(os.path.join(marker, HOME_POINTER))

    def _note_permissions(self, modes: dict[str, int]) -> None:
        """Tracked files whose content is the commit's but whose permissions a checkout would not set."""
        for path, mode in modes.items():
            if path not in self._files and path not in self._deleted:
                self._files[path] = UnsavedFile(path=path, type=MODE, mode=mode)

    def _find_empty_folders(self, tree: TreeReader) -> None:
        found: set[str] = set()
        tops = [path.rstrip("/") for path in self._untracked_paths("--directory") if path.endswith("/")]
        nested = {path.rstrip("/") for path in tops if tree.has(path + "/.git")}
        if tops:
            asked = self._untracked_paths("--directory", "--ignored")
            # Of a checkout with a life of its own not even its `.git` is ours.
            without = {path.rstrip("/") for path in (*asked, *self._skipped)}
            for top in tops:
                if top not in nested:
                    found.update(self._walk_untracked(tree, top, without))
        for path in self._deleted:
            parent = os.path.dirname(path)
            while parent and not tree.is_folder(parent):
                parent = os.path.dirname(parent)
            if parent and tree.is_empty(parent):
                found.add(parent)
        self._empty |= found

    def _walk_untracked(self, tree: TreeReader, top: str, without: set[str]) -> list[str]:
        """The empty folders below an untracked one; looks at each `.git` that git passes over, too."""
        empty: list[str] = []
        for path, is_folder in tree.walk(top, without):
            if is_folder:
                empty.append(path)
            elif "/.git/" in path or path.endswith("/.git"):
                self._look(tree, path, "", is_new=True)
        return empty

    def _unusual_folders(self, tree: TreeReader, tracked: list[str]) -> tuple[tuple[str, int], ...]:
        """Every folder that a restored tree has and that is not open in the usual way."""
        usual = default_modes()[0]
        folders: set[str] = set(self._empty)
        for path in (*tracked, *self._files, *self._empty):
            parent = os.path.dirname(path)
            while parent and parent not in folders:
                folders.add(parent)
                parent = os.path.dirname(parent)
        modes = ((path, tree.folder_mode(path)) for path in sorted(folders))
        return tuple((path, mode) for path, mode in modes if mode not in (usual, -1))


def _raw_diff(text: str) -> dict[str, tuple[str, str, str]]:
    """Path to (mode, object, status), as `--raw -z` tells of the newer side."""
    fields = text.split("\0")
    found: dict[str, tuple[str, str, str]] = {}
    for head, path in zip(fields[0::2], fields[1::2], strict=False):
        _, mode, _, oid, status = head.split(" ")
        found[path] = (mode, oid, status)
    return found
