"""Find the repository of a folder by reading files: starting git would take longer than a claim."""

from __future__ import annotations

import os

from landlane.errors import RepositoryError
from landlane.files import is_at_or_below, read_first_line
from landlane.text import home_path
from landlane.values import value

OUTSIDE_GIT = ".landlane"
HOME_POINTER = "landlane-home"  # in the git directory of a clone: the git directory of its home


@value
class Checkout:
    """One working tree and its repository. Outside git, `git_dir` and `common_dir` are empty.

    A workspace that is a clone has a repository of its own. Its `home` is the common directory of the one it
    was made from, which has the state.
    """

    root: str
    git_dir: str
    common_dir: str
    home: str = ""

    @property
    def home_dir(self) -> str:
        """The common git directory of the repository that the state belongs to."""
        return self.home or self.common_dir

    @property
    def state_folder(self) -> str:
        """The folder of the repository's state, shared by all its worktrees and workspaces."""
        if self.home_dir:
            return os.path.join(self.home_dir, "landlane")
        return os.path.join(self.root, OUTSIDE_GIT)

    @property
    def home_checkout(self) -> Checkout:
        """The main checkout of the repository that the state belongs to; itself outside of git."""
        if not self.home_dir:
            return self
        # A bare repository has no main checkout: git then works in the repository itself.
        is_beside = os.path.basename(self.home_dir) == ".git"
        root = os.path.dirname(self.home_dir) if is_beside else self.home_dir
        return Checkout(root=root, git_dir=self.home_dir, common_dir=self.home_dir)


def find_checkout(start: str) -> Checkout:
    """Return the checkout that contains a folder.

    Raises:
        RepositoryError: there is none, or one that is bare or broken.
    """
    folder = os.path.realpath(start)
    if from_environment := _from_environment(folder):
        return from_environment
    while True:
        checkout = checkout_at(folder)
        if checkout is not None:
            return checkout
        if os.path.isdir(os.path.join(folder, OUTSIDE_GIT)):
            return Checkout(root=folder, git_dir="", common_dir="")
        if is_git_dir(folder):
            raise _bare(folder)
        parent = os.path.dirname(folder)
        if parent == folder:
            raise RepositoryError(
                f"{home_path(start)} is not in a git repository",
                code="NO_REPOSITORY",
                hint="git init",
            )
        folder = parent


def _from_environment(folder: str) -> Checkout | None:
    """Return the checkout that GIT_DIR names, as in hooks; None for a folder outside of its worktree."""
    named = os.environ.get("GIT_DIR", "")
    if not named:
        return None
    git_dir = git_dir_of(os.path.abspath(named)) or os.path.realpath(named)
    if is_at_or_below(folder, git_dir):
        raise _bare(folder)
    work_tree = os.environ.get("GIT_WORK_TREE", "")
    root = os.path.realpath(work_tree) if work_tree else _root_of(git_dir, folder)
    return _open_checkout(root, git_dir) if is_at_or_below(folder, root) else None


def _root_of(git_dir: str, folder: str) -> str:
    """Return the root of the worktree of a git directory, seen from a folder that should be in it."""
    root = folder
    while git_dir_of(os.path.join(root, ".git")) != git_dir:
        if root == os.path.dirname(root):
            linked = os.path.dirname(read_first_line(os.path.join(git_dir, "gitdir")))
            beside = os.path.dirname(git_dir) if os.path.basename(git_dir) == ".git" else ""
            return linked or beside or folder  # git also takes its working folder
        root = os.path.dirname(root)
    return root


def checkout_at(folder: str) -> Checkout | None:
    """Return the checkout whose root is exactly this folder.

    Raises:
        RepositoryError: it is broken.
    """
    marker = os.path.join(folder, ".git")
    git_dir = git_dir_of(marker)
    if git_dir:
        return _open_checkout(folder, git_dir)
    if os.path.lexists(marker):
        raise _broken(folder, f"{marker} leads to no git directory")
    return None


def git_dir_of(marker: str) -> str:
    """Return the git directory that a `.git` is or points to; empty when it is neither folder nor pointer."""
    if os.path.isdir(marker):
        return os.path.realpath(marker)
    line = read_first_line(marker)
    named = line.removeprefix("gitdir: ")
    return os.path.realpath(os.path.join(os.path.dirname(marker), named)) if named != line else ""


def _open_checkout(root: str, git_dir: str) -> Checkout:
    common = read_first_line(os.path.join(git_dir, "commondir"))
    common_dir = os.path.realpath(os.path.join(git_dir, common)) if common else git_dir
    if not is_git_dir(common_dir) or not os.path.lexists(os.path.join(git_dir, "HEAD")):
        raise _broken(root, f"{git_dir} lacks HEAD, objects or refs")
    home = read_first_line(os.path.join(common_dir, HOME_POINTER))
    # A pointer that cannot be read must not make the clone a repository with a state of its own.
    has_home = bool(home) or os.path.lexists(os.path.join(common_dir, HOME_POINTER))
    if has_home and not (home and is_git_dir(home)):
        raise RepositoryError(
            f"the workspace at {root} belongs to a repository that is gone: {home or 'unknown'}",
            code="HOME_GONE",
            hint=f"if it was moved, write its git directory into {os.path.join(common_dir, HOME_POINTER)}",
        )
    return Checkout(
        root=root, git_dir=git_dir, common_dir=common_dir, home=os.path.realpath(home) if home else ""
    )


def _broken(root: str, why: str) -> RepositoryError:
    return RepositoryError(
        f"the repository at {root} is broken: {why}",
        code="REPOSITORY_BROKEN",
        hint="`git fsck` and `git worktree repair` tell more",
    )


def _bare(folder: str) -> RepositoryError:
    name = os.path.basename(folder).removesuffix(".git") or "work"
    return RepositoryError(
        f"{home_path(folder)} is a bare repository and has no files",
        code="BARE_REPOSITORY",
        hint=f"git worktree add ../{name} && cd ../{name}",
    )


def is_git_dir(folder: str) -> bool:
    """Return whether a folder is a git directory, by the three entries that git itself checks."""
    return (
        os.path.lexists(os.path.join(folder, "HEAD"))
        and os.path.isdir(os.path.join(folder, "objects"))
        and os.path.isdir(os.path.join(folder, "refs"))
    )
