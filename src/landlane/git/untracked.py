"""What lies where commits bring something, and is in no commit: git overwrites an ignored file unasked."""

from __future__ import annotations

import os

from landlane.git.run import git_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.git.discovery import Checkout


def find_untracked_in_the_way(here: Checkout, before: str, after: str) -> list[str]:
    """The paths of a checkout that are under no version control, where going between two commits adds files.

    A file may also lie where a folder comes, and a folder with files of its own where a file comes.
    """
    words = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A", before, after)
    added = [path for path in git_output(here, *words).split("\0") if path]
    there = {name for path in added for name in _upwards(path) if _is_file(os.path.join(here.root, name))}
    strange = there - set(git_output(here, "ls-files", "-z").split("\0")) if there else set[str]()
    for path in added:
        place = os.path.join(here.root, path)
        if os.path.isdir(place) and not os.path.islink(place):
            others = git_output(here, "ls-files", "--others", "-z", "--", f":(top,literal){path}/")
            strange |= {other for other in others.split("\0") if other}
    return sorted(strange)


def is_reachable(root: str, path: str, except_for: frozenset[str]) -> bool:
    """Whether nothing but folders lies on the way to a path; other than these paths."""
    return not any(
        _is_file(os.path.join(root, name)) for name in _upwards(path)[:-1] if name not in except_for
    )


def _upwards(path: str) -> list[str]:
    """All folders on the way to a path, and the path."""
    names = path.split("/")
    return ["/".join(names[: count + 1]) for count in range(len(names))]


def _is_file(path: str) -> bool:
    return os.path.lexists(path) and (os.path.islink(path) or not os.path.isdir(path))
