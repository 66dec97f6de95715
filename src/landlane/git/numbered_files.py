"""Numbers that stand in file names: in the target and every other branch, and in all working trees."""

from __future__ import annotations

import os

from landlane.git.run import run_in
from landlane.state.numbers import NumbersFound, folder_of, reader_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from landlane.git.discovery import Checkout

    Reader = Callable[[str], int | None]


def find_numbers(checkout: Checkout, path: str) -> NumbersFound:
    """The numbers where `path` has its `{n}`, in branches and in working trees (untracked files, too)."""
    folder = folder_of(path)
    read = reader_for(path)
    if not checkout.common_dir:
        return NumbersFound(in_trees=_numbers(read, _files_below(checkout.root, folder)))
    in_branches: set[int] = set()
    for tree in _trees(checkout, folder):
        listed = run_in(checkout, "ls-tree", "-r", "-z", "--name-only", "--full-tree", tree).text
        names = (os.path.join(folder, name) for name in listed.split("\0") if name)
        in_branches |= _numbers(read, names)
    in_trees: set[int] = set()
    for root in _working_trees(checkout):
        in_trees |= _numbers(read, _files_below(root, folder))
    return NumbersFound(in_branches=frozenset(in_branches), in_trees=frozenset(in_trees))


def _numbers(read: Reader, names: Iterable[str]) -> frozenset[int]:
    return frozenset(number for name in names if (number := read(name)) is not None)


def _trees(checkout: Checkout, folder: str) -> list[str]:
    """The different contents of a folder over all branches: most branches share one."""
    listed = run_in(checkout, "for-each-ref", "--format=%(objectname)", "refs/heads", "refs/remotes").text
    commits = list(dict.fromkeys(listed.split()))
    if not commits:
        return []
    asked = "".join(f"{commit}:{folder}\n" for commit in commits)
    answered = run_in(checkout, "cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=asked.encode())
    words = (line.split(" ") for line in answered.text.splitlines())
    return list(dict.fromkeys(line[0] for line in words if line[1:] == ["tree"]))


def _working_trees(checkout: Checkout) -> list[str]:
    listed = run_in(checkout, "worktree", "list", "--porcelain").text
    roots = [line[9:] for line in listed.splitlines() if line.startswith("worktree ")]
    return [root for root in dict.fromkeys([checkout.root, *roots]) if os.path.isdir(root)]


def _files_below(root: str, folder: str) -> Iterator[str]:
    """The files below a folder, each by its path from the root."""
    for place, folders, names in os.walk(os.path.join(root, folder)):
        if ".git" in folders:
            folders.remove(".git")
        inside = os.path.relpath(place, root)
        for name in names:
            yield name if inside == "." else os.path.join(inside, name)
