"""Where workspaces lie, and finding them again."""

from __future__ import annotations

import os

from landlane.errors import Malformed, RepositoryError
from landlane.git.run import run_git, try_git_output
from landlane.workspaces import records as operations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.git.discovery import Checkout
    from landlane.repository import Repository
    from landlane.workspaces.model import Workspace


def workspaces_folder(repo: Repository) -> str:
    """Where workspaces lie: beside the repository, so that no tool walks into them.

    Raises:
        Malformed: the settings name a folder inside of it.
    """
    root = main_root(repo.home)
    outer = _outermost(root) if root != repo.home.root else root
    named = repo.settings.workspace.folder
    if not named:
        name = (
            os.path.basename(outer)
            if outer == root
            else f"{os.path.basename(outer)}.{os.path.basename(root)}"
        )
        return os.path.join(os.path.dirname(outer), f"{name}.workspaces")
    folder = os.path.realpath(os.path.join(root, os.path.expanduser(named)))
    real = os.path.realpath(outer)
    if folder == real or folder.startswith(real.rstrip("/") + "/"):
        raise Malformed(
            f"[workspace] folder is {folder}, inside the repository, where every tool would walk into it",
            code="WORKSPACE_INSIDE",
            hint=f"name a folder outside of {real}, such as ../workspaces beside it",
        )
    return folder


def main_root(home: Checkout) -> str:
    """The root of the main checkout, also where that lies elsewhere than its git directory: a submodule."""
    if os.path.basename(home.common_dir) == ".git":
        return home.root
    named = try_git_output(home, "config", "--file", os.path.join(home.common_dir, "config"), "core.worktree")
    return os.path.realpath(os.path.join(home.common_dir, named)) if named else home.common_dir


def _outermost(root: str) -> str:
    """The root of the repository that a submodule is part of in the end; itself if it is none."""
    while True:
        found = run_git("rev-parse", "--show-superproject-working-tree", cwd=root)
        above = "" if found.exit_code else found.stdout.rstrip("\n")
        if not above:
            return root
        root = above


def free_place(folder: str, name: str) -> str:
    """A path that nothing lies at; what somebody else put there is not touched."""
    path, count = os.path.join(folder, name), 1
    while os.path.lexists(path):
        count += 1
        path = os.path.join(folder, f"{name}-{count}")
    return path


def make_folder(folder: str) -> None:
    """Make the folder that workspaces lie in.

    Raises:
        RepositoryError: it cannot be made, or not be written in.
    """
    try:
        os.makedirs(folder, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return
        trouble = "it may not be written"
    except OSError as error:
        trouble = error.strerror or str(error)
    raise forbidden(folder, trouble)


def forbidden(folder: str, trouble: str) -> RepositoryError:
    """Why there can be no workspace in a folder."""
    return RepositoryError(
        f"no workspace can be made in {folder}: {trouble}",
        code="FOLDER_FORBIDDEN",
        hint="make it writable, or name another: [workspace] folder in landlane.toml",
    )


def find_workspace(repo: Repository, text: str, *, with_closed: bool = False) -> Workspace:
    """The workspace that an id, a task or a folder means; without a text, the one we stand in.

    Raises:
        Malformed: there is none.
    """
    known = operations.list_workspaces(repo, with_closed=with_closed)
    known = [one for one in known if operations.is_here(repo, one, repo.common_dir)]
    path = os.path.realpath(text) if text else repo.checkout.root
    meant = [one for one in known if one.id == text] or [one for one in known if one.path == path]
    meant = meant or [one for one in known if one.task == text]
    meant = meant or [one for one in known if path.startswith(one.path + "/")]
    if meant:
        return meant[-1]
    raise operations.unknown_workspace(text or repo.checkout.root)
