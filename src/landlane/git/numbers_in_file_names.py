"""Numbers that stand in file names: in the target and every other branch, and in all working trees."""

from __future__ import annotations

import os

from landlane.git.run import run_in
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from landlane.git.discovery import Checkout

    Reader = Callable[[str], int | None]
    from collections.abc import Callable


NUMBER_MARK = "{n}"


def find_numbers(checkout: Checkout, path: str) -> NumbersFound:
    """The numbers where `path` has its `{n}`, in branches and in working trees (untracked files, too)."""
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


def _numbers(read: Reader, names: Iterable[str]) -> frozenset[int]:
    return frozenset(number for name in names if (number := read(name)) is not None)


def _trees(checkout: Checkout, folder: str) -> list[str]:
    """The different contents of a folder over all branches: most branches share one."""
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
    """The files below a folder, each by its path from the root."""
    for place, folders, names in os.walk(os.path.join(root, folder)):
        if ".git" in folders:
            folders.remove(".git")
        inside = os.path.relpath(place, root)
        for name in names:
            yield name if inside == "." else os.path.join(inside, name)


_MOST_DIGITS = 15  # a number is below 2^53, as every token is


@value
class NumbersFound:
    """Which numbers stand in a branch, and which only in a working tree."""

    in_branches: frozenset[int] = frozenset()
    in_trees: frozenset[int] = frozenset()

    @property
    def highest(self) -> int:
        """The highest of all; 0 when there is none."""
        return max(self.in_branches | self.in_trees, default=0)


def fixed_folder(path: str) -> str:
    """The folder that everything a path with `{n}` can mean lies in; empty for the root."""
    plain = path[: min(at for mark in (NUMBER_MARK, "*", "?") if (at := path.find(mark)) >= 0)]
    return plain.rpartition("/")[0]


def number_reader(path: str) -> Callable[[str], int | None]:
    """What tells the number in a file's path, if the file is one of these."""
    import re  # noqa: PLC0415

    form = re.compile("".join(_translate(path)))

    def read(name: str) -> int | None:
        match = form.fullmatch(name)
        return int(match[1]) if match and len(match[1]) <= _MOST_DIGITS else None

    return read


def _translate(path: str) -> list[str]:
    import re  # noqa: PLC0415

    parts: list[str] = []
    at = 0
    marks = ((NUMBER_MARK, "([0-9]+)"), ("**/", "(?:.*/)?"), ("**", ".*"), ("*", "[^/]*"), ("?", "[^/]"))
    while at < len(path):
        for mark, meant in marks:
            if path.startswith(mark, at):
                parts.append(meant)
                at += len(mark)
                break
        else:
            parts.append(re.escape(path[at]))
            at += 1
    return parts
