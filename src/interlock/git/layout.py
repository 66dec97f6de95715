"""Where a repository lies: its checkout, git directory and common directory, found by reading files, not by
starting git (a process start costs more than a whole claim)."""

from __future__ import annotations

import os

from interlock.errors import RepositoryError
from interlock.values import value

OUTSIDE_GIT = ".interlock"


@value
class Checkout:
    """One working tree and the repository it belongs to. Outside git, `git_dir` and `common_dir` are empty."""

    root: str
    git_dir: str
    common_dir: str

    @property
    def state_folder(self) -> str:
        """Where the state of the repository lives, shared by all its worktrees."""
        if self.common_dir:
            return os.path.join(self.common_dir, "interlock")
        return os.path.join(self.root, OUTSIDE_GIT)


def find_checkout(start: str) -> Checkout:
    """The checkout that a folder lies in.

    Raises:
        RepositoryError: there is none, or one that is bare or broken.
    """
    folder = os.path.realpath(start)
    if from_environment := _from_environment(folder):
        return from_environment
    while True:
        found = _checkout_at(folder)
        if found is not None:
            return found
        if os.path.isdir(os.path.join(folder, OUTSIDE_GIT)):
            return Checkout(root=folder, git_dir="", common_dir="")
        if is_git_dir(folder):
            raise RepositoryError(
                f"{folder} is a bare repository or the inside of one; it has no files to claim",
                code="BARE_REPOSITORY",
                hint="run this in a worktree of it: git worktree add ../work, then cd ../work",
            )
        parent = os.path.dirname(folder)
        if parent == folder:
            raise RepositoryError(
                f"no git repository here or above: {start}",
                code="NO_REPOSITORY",
                hint="cd into a repository, run `git init`, or `interlock init` to use a folder without git",
            )
        folder = parent


def _from_environment(folder: str) -> Checkout | None:
    """What GIT_DIR says, as git sets it for the hooks it runs."""
    git_dir = os.environ.get("GIT_DIR", "")
    if not git_dir:
        return None
    git_dir = os.path.realpath(os.path.join(folder, git_dir))
    work_tree = os.environ.get("GIT_WORK_TREE", "")
    if work_tree:
        root = os.path.realpath(os.path.join(folder, work_tree))
    elif os.path.basename(git_dir) == ".git":
        root = os.path.dirname(git_dir)
    else:
        root = os.path.dirname(_first_line(os.path.join(git_dir, "gitdir"))) or folder
    return _checked(root, git_dir)


def _checkout_at(folder: str) -> Checkout | None:
    marker = os.path.join(folder, ".git")
    if os.path.isdir(marker):
        return _checked(folder, marker)
    line = _first_line(marker)
    if line.startswith("gitdir: "):
        return _checked(folder, os.path.realpath(os.path.join(folder, line[8:])))
    return None


def _checked(root: str, git_dir: str) -> Checkout:
    common = _first_line(os.path.join(git_dir, "commondir"))
    common_dir = os.path.realpath(os.path.join(git_dir, common)) if common else git_dir
    if not is_git_dir(common_dir) or not os.path.lexists(os.path.join(git_dir, "HEAD")):
        raise RepositoryError(
            f"the repository at {root} is broken: {git_dir} lacks HEAD, objects or refs",
            code="REPOSITORY_BROKEN",
            hint="`git fsck` and `git worktree repair` tell more",
        )
    return Checkout(root=root, git_dir=git_dir, common_dir=common_dir)


def is_git_dir(folder: str) -> bool:
    """Whether a folder is the inside of a repository, by the three things git itself looks for."""
    return (
        os.path.lexists(os.path.join(folder, "HEAD"))
        and os.path.isdir(os.path.join(folder, "objects"))
        and os.path.isdir(os.path.join(folder, "refs"))
    )


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.readline().rstrip("\n")
    except (OSError, ValueError):
        return ""
