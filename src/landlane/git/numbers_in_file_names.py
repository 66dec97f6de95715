"""Find the numbers in file names, in all branches and all working trees."""

from __future__ import annotations

import os
import re

from landlane.git.run import run_in
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from landlane.git.discovery import Checkout

    NumberReader = Callable[[str], int | None]

NUMBER_MARK = "{n}"
_MOST_DIGITS = 15  # a number is below 2^53, like every token
_WILDCARDS = {NUMBER_MARK: "([0-9]+)", "**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_WILDCARD = re.compile("|".join(map(re.escape, _WILDCARDS)))


@value
class NumbersFound:
    """The numbers in a branch, and those in a working tree."""

    in_branches: frozenset[int] = frozenset()
    in_trees: frozenset[int] = frozenset()

    @property
    def highest(self) -> int:
        """The highest of all; 0 when there is none."""
        return max(self.in_branches | self.in_trees, default=0)


def find_numbers(checkout: Checkout, path: str) -> NumbersFound:
    """Return the numbers in names of tracked and untracked files, at the place of `{n}` in `path`."""
    folder = fixed_folder(path)
    read = number_reader(path)
    if not checkout.common_dir:
        return NumbersFound(in_trees=_numbers(read, _files_below(checkout.root, folder)))
    in_branches: set[int] = set()
    for tree in _trees(checkout, folder):
        listed = run_in(checkout, "ls-tree", "-r", "-z", "--name-only", "--full-tree", tree).stdout
        names = (os.path.join(folder, name) for name in listed.split("\0") if name)
        in_branches |= _numbers(read, names)
    in_trees: set[int] = set()
    for root in _working_trees(checkout):
        in_trees |= _numbers(read, _files_below(root, folder))
    return NumbersFound(in_branches=frozenset(in_branches), in_trees=frozenset(in_trees))


def _numbers(read: NumberReader, names: Iterable[str]) -> frozenset[int]:
    return frozenset(number for name in names if (number := read(name)) is not None)


def _trees(checkout: Checkout, folder: str) -> list[str]:
    """Return the distinct trees of a folder over all branches: most branches share one."""
    listed = run_in(checkout, "for-each-ref", "--format=%(objectname)", "refs/heads", "refs/remotes").stdout
    commits = list(dict.fromkeys(listed.split()))
    if not commits:
        return []
    asked = "".join(f"{commit}:{folder}\n" for commit in commits)
    answered = run_in(checkout, "cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=asked.encode())
    words = (line.split(" ") for line in answered.stdout.splitlines())
    return list(dict.fromkeys(line[0] for line in words if line[1:] == ["tree"]))


def _working_trees(checkout: Checkout) -> list[str]:
    listed = run_in(checkout, "worktree", "list", "--porcelain").stdout
    roots = [line[9:] for line in listed.splitlines() if line.startswith("worktree ")]
    return [root for root in dict.fromkeys([checkout.root, *roots]) if os.path.isdir(root)]


def _files_below(root: str, folder: str) -> Iterator[str]:
    """Yield the files below a folder, by their paths from the root."""
    for parent, folders, names in os.walk(os.path.join(root, folder)):
        if ".git" in folders:
            folders.remove(".git")
        inside = os.path.relpath(parent, root)
        for name in names:
            yield name if inside == "." else os.path.join(inside, name)


def fixed_folder(path: str) -> str:
    """Return the folder that contains all files that a path with `{n}` can match; empty for the root."""
    plain = path[: min(at for mark in (NUMBER_MARK, "*", "?") if (at := path.find(mark)) >= 0)]
    return plain.rpartition("/")[0]


def number_reader(path: str) -> NumberReader:
    """Return a function that reads the number in a file's path, or None for other files."""
    parts: list[str] = []
    end = 0
    for mark in _WILDCARD.finditer(path):
        parts += (re.escape(path[end : mark.start()]), _WILDCARDS[mark[0]])
        end = mark.end()
    form = re.compile("".join([*parts, re.escape(path[end:])]))

    def read(name: str) -> int | None:
        match = form.fullmatch(name)
        return int(match[1]) if match and len(match[1]) <= _MOST_DIGITS else None

    return read
