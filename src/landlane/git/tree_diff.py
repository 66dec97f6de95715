"""What differs between two trees, entry by entry with modes, and where a link in a tree leads."""

from __future__ import annotations

from landlane.git.run import git_failed, run_in
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.git.discovery import Checkout

LINK, SUBMODULE, FOLDER = "120000", "160000", "040000"
_MOST_HOPS = 40


@value
class TreeChange:
    """One path that differs: its kind before and after, and what it is after."""

    path: str
    mode_before: str
    mode: str
    blob: str

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link now."""
        return self.mode == LINK

    @property
    def is_submodule(self) -> bool:
        """Whether it is, or was, another repository."""
        return SUBMODULE in (self.mode_before, self.mode)


def tree_changes(home: Checkout, one: str, other: str) -> list[TreeChange]:
    """Every path that differs between two trees or commits; both ends of a rename, submodules always.

    Raises:
        RepositoryError: git cannot compare them.
    """
    words = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--ignore-submodules=none", one, other)
    found = run_in(home, *words)
    if found.exit_code:
        raise git_failed(words, found)
    fields = found.stdout.split("\0")
    changes: list[TreeChange] = []
    for head, path in zip(fields[::2], fields[1::2], strict=False):
        before, mode, _, blob, _ = head.removeprefix(":").split(" ")
        changes.append(TreeChange(path=path, mode_before=before, mode=mode, blob=blob))
    return changes


def resolve_link(home: Checkout, tree: str, path: str, blob: str) -> str | None:
    """Where a link leads within a tree, over all links on the way; nothing when it leads out of it.

    The root itself is an empty text. What is not in the tree is followed by its name alone.
    """
    at = path.split("/")[:-1]
    left = _target(home, blob)
    hops = 0
    while left is not None and left:
        name = left.pop(0)
        if name in ("", "."):
            continue
        if name == "..":
            if not at:
                return None
            at.pop()
            continue
        mode, found = _entry(home, tree, "/".join([*at, name]))
        if mode != LINK:
            at.append(name)
            continue
        hops += 1
        further = _target(home, found) if hops <= _MOST_HOPS else None
        left = [*further, *left] if further is not None else None
    return None if left is None else "/".join(at)


def files_below(home: Checkout, tree: str, folder: str) -> list[str]:
    """All entries of a tree that lie below a folder; none when it is a file, or not there."""
    words = ["ls-tree", "-r", "-z", "--full-tree", "--name-only", tree]
    found = run_in(home, *words, *(["--", f"{folder}/"] if folder else []))
    return [path for path in found.stdout.split("\0") if path]


def _entry(home: Checkout, tree: str, path: str) -> tuple[str, str]:
    found = run_in(home, "ls-tree", "-z", "--full-tree", tree, "--", path)
    for line in found.stdout.split("\0"):
        facts, _, name = line.partition("\t")
        if name == path:
            mode, _, blob = facts.split(" ")
            return mode, blob
    return "", ""


def _target(home: Checkout, blob: str) -> list[str] | None:
    """The names on the way that a link says; nothing when it begins at the root of the machine."""
    found = run_in(home, "cat-file", "blob", blob)
    if found.exit_code or not found.stdout or found.stdout.startswith("/"):
        return None
    return found.stdout.split("/")
