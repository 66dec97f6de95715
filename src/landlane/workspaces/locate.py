"""Find workspaces, and the folder that they are in."""

from __future__ import annotations

import os

from landlane.errors import Malformed, RepositoryError
from landlane.files import is_at_or_below
from landlane.git.run import run_git, try_git_output
from landlane.workspaces.records import list_local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

    from landlane.git.discovery import Checkout
    from landlane.repository import Repository
    from landlane.workspaces.model import Workspace


def workspaces_folder(repo: Repository) -> str:
    """Return the folder of the workspaces: beside the repository, so that no tool searches them with it.

    Raises:
        Malformed: the settings name a folder inside the repository.
    """
    root = main_root(repo.home)
    outer = _outermost(root) if root != repo.home.root else root
    named = repo.settings.workspace.folder
    if not named:
        parts = [outer] if outer == root else [outer, root]
        name = ".".join(os.path.basename(part) for part in parts)
        return os.path.join(os.path.dirname(outer), f"{name}.workspaces")
    folder = os.path.realpath(os.path.join(root, os.path.expanduser(named)))
    if is_at_or_below(folder, os.path.realpath(outer)):
        raise Malformed(
            f"workspace.folder is inside the repository ({folder}); tools would search it",
            code="WORKSPACE_INSIDE",
            hint="use a folder outside: landlane config set workspace.folder ../workspaces",
        )
    return folder


def main_root(home: Checkout) -> str:
    """Return the root of the main checkout, also for a submodule, whose git directory is elsewhere."""
    if os.path.basename(home.common_dir) == ".git":
        return home.root
    named = try_git_output(home, "config", "--file", os.path.join(home.common_dir, "config"), "core.worktree")
    return os.path.realpath(os.path.join(home.common_dir, named)) if named else home.common_dir


def _outermost(root: str) -> str:
    """Return the root of the outermost repository that a submodule is part of, or the root itself."""
    while True:
        found = run_git("rev-parse", "--show-superproject-working-tree", cwd=root)
        above = "" if found.exit_code else found.stdout.rstrip("\n")
        if not above:
            return root
        root = above


def find_free_path(folder: str, name: str, taken: Container[str] = ()) -> str:
    """Return a path for this folder name, with a number if it exists or the name is taken."""
    candidate, count = name, 1
    while candidate in taken or os.path.lexists(os.path.join(folder, candidate)):
        count += 1
        candidate = f"{name}-{count}"
    return os.path.join(folder, candidate)


def make_folder(folder: str) -> None:
    """Create the folder of the workspaces.

    Raises:
        RepositoryError: it cannot be created or written to.
    """
    try:
        os.makedirs(folder, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return
        trouble = "permission denied"
    except OSError as error:
        trouble = error.strerror or str(error)
    raise forbidden(folder, trouble)


def forbidden(folder: str, trouble: str) -> RepositoryError:
    """Return the error for a folder in which no workspace can be created."""
    return RepositoryError(
        f"cannot create a workspace in {folder}: {trouble}",
        code="FOLDER_FORBIDDEN",
        hint="make it writable or choose another: landlane config set workspace.folder ../workspaces",
    )


def find_workspace(repo: Repository, text: str) -> Workspace:
    """Return the workspace that an id, a task or a folder names; for an empty text, that of this checkout.

    Raises:
        Malformed: there is none.
    """
    known = list_local(repo)
    path = os.path.realpath(text) if text else repo.checkout.root
    matching = (
        [one for one in known if one.id == text]
        or [one for one in known if one.path == path]
        or [one for one in known if one.task == text]
        or [one for one in known if is_at_or_below(path, one.path)]
    )
    if matching:
        return matching[-1]
    raise Malformed(
        f"no workspace {text[:80]}" if text else "the current directory is not in a workspace",
        code="UNKNOWN_WORKSPACE",
        hint="give an id, a task or a folder: landlane workspace list",
    )
