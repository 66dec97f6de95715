"""Compare two trees, resolve links in a tree, and find untracked files that a change would overwrite."""

from __future__ import annotations

import os
from enum import StrEnum

from landlane.git.run import git_output, run_in
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from landlane.git.discovery import Checkout

    Version = tuple[str, str]  # mode and object; empty texts where there is none

LINK, SUBMODULE = "120000", "160000"
_ABSENT = "000000"
_MOST_HOPS = 40


class TreeChangeKind(StrEnum):
    """How a path differs between two trees."""

    ADDED = "added"
    DELETED = "deleted"
    CHANGED = "changed"
    MODE = "mode"


@value
class TreeChange:
    """A path that differs between two trees: git's modes and objects, empty for a side without the path."""

    path: str
    old_mode: str
    old_oid: str
    new_mode: str
    new_oid: str

    @property
    def old(self) -> Version:
        return self.old_mode, self.old_oid

    @property
    def new(self) -> Version:
        return self.new_mode, self.new_oid

    @property
    def kind(self) -> TreeChangeKind:
        if self.is_addition:
            return TreeChangeKind.ADDED
        if self.is_deletion:
            return TreeChangeKind.DELETED
        return TreeChangeKind.MODE if self.old_oid == self.new_oid else TreeChangeKind.CHANGED

    @property
    def is_addition(self) -> bool:
        return not self.old_mode

    @property
    def is_deletion(self) -> bool:
        return not self.new_mode

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link now."""
        return self.new_mode == LINK

    @property
    def is_submodule(self) -> bool:
        """Whether it is, or was, another repository."""
        return SUBMODULE in (self.old_mode, self.new_mode)


def parse_raw_diff(text: str) -> Iterator[TreeChange]:
    """Read the output of a git diff with `--raw -z --no-renames`."""
    tokens = iter(text.split("\0"))
    for token in tokens:
        if token.startswith(":"):
            old_mode, new_mode, old_oid, new_oid, _ = token[1:].split(" ")
            old = (old_mode, old_oid) if old_mode != _ABSENT else ("", "")
            new = (new_mode, new_oid) if new_mode != _ABSENT else ("", "")
            yield TreeChange(
                path=next(tokens), old_mode=old[0], old_oid=old[1], new_mode=new[0], new_oid=new[1]
            )


def diff_trees(checkout: Checkout, old: str, new: str) -> list[TreeChange]:
    """Return what differs between two trees or commits; renames as two changes, submodules always.

    An empty `old` compares a commit with nothing.

    Raises:
        RepositoryError: git cannot compare them.
    """
    words = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--ignore-submodules=none", "--no-commit-id")
    return list(parse_raw_diff(git_output(checkout, *words, *((old, new) if old else ("--root", new)))))


def list_changed_paths(checkout: Checkout, old: str, new: str) -> list[str]:
    """Return the paths that differ between two trees or commits.

    Raises:
        RepositoryError: git cannot compare them.
    """
    return [change.path for change in diff_trees(checkout, old, new)]


def resolve_link(home: Checkout, tree: str, path: str, blob: str) -> str | None:
    """Return where a link leads within a tree, following further links; None when it leads out of the tree.

    The root itself is an empty text. A path that is not in the tree is followed by name.
    """
    parents = path.split("/")[:-1]
    left = _link_target(home, blob)
    hops = 0
    while left is not None and left:
        name = left.pop(0)
        if name in ("", "."):
            continue
        if name == "..":
            if not parents:
                return None
            parents.pop()
            continue
        mode, oid = _entry(home, tree, "/".join([*parents, name]))
        if mode != LINK:
            parents.append(name)
            continue
        hops += 1
        further = _link_target(home, oid) if hops <= _MOST_HOPS else None
        left = [*further, *left] if further is not None else None
    return None if left is None else "/".join(parents)


def files_below(home: Checkout, tree: str, folder: str) -> list[str]:
    """Return all entries of a tree below a folder; none when it is a file or missing."""
    words = ["ls-tree", "-r", "-z", "--full-tree", "--name-only", tree]
    listed = run_in(home, *words, *(["--", f"{folder}/"] if folder else []))
    return [path for path in listed.stdout.split("\0") if path]


def _entry(home: Checkout, tree: str, path: str) -> Version:
    listed = run_in(home, "ls-tree", "-z", "--full-tree", tree, "--", path)
    for line in listed.stdout.split("\0"):
        head, _, name = line.partition("\t")
        if name == path:
            mode, _, oid = head.split(" ")
            return mode, oid
    return "", ""


def _link_target(home: Checkout, blob: str) -> list[str] | None:
    """Return the names in a link's target; None when it is absolute."""
    read = run_in(home, "cat-file", "blob", blob)
    if read.exit_code or not read.stdout or read.stdout.startswith("/"):
        return None
    return read.stdout.split("/")


def find_untracked_in_the_way(here: Checkout, before: str, after: str) -> list[str]:
    """Return the untracked paths of a checkout that moving between two commits would overwrite.

    git overwrites an ignored file without asking. A file may also lie where a folder comes, and a folder with
    files of its own where a file comes.
    """
    added = [change.path for change in diff_trees(here, before, after) if change.is_addition]
    names = {name for path in added for name in _with_parents(path)}
    files = {name for name in names if _is_file(os.path.join(here.root, name))}
    untracked = files - set(git_output(here, "ls-files", "-z").split("\0")) if files else set[str]()
    for path in added:
        full = os.path.join(here.root, path)
        if os.path.isdir(full) and not os.path.islink(full):
            others = git_output(here, "ls-files", "--others", "-z", "--", f":(top,literal){path}/")
            untracked |= {other for other in others.split("\0") if other}
    return sorted(untracked)


def is_reachable(root: str, path: str, except_for: frozenset[str]) -> bool:
    """Return whether only folders, and these other paths, lie on the way to a path."""
    parents = [name for name in _with_parents(path)[:-1] if name not in except_for]
    return not any(_is_file(os.path.join(root, name)) for name in parents)


def _with_parents(path: str) -> list[str]:
    names = path.split("/")
    return ["/".join(names[: count + 1]) for count in range(len(names))]


def _is_file(path: str) -> bool:
    return os.path.lexists(path) and (os.path.islink(path) or not os.path.isdir(path))
