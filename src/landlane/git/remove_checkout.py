"""Remove checkouts: their files and their entry in git, but nothing that they link to or have mounted."""

from __future__ import annotations

import functools
import os
import shutil
import stat

from landlane.errors import RepositoryError
from landlane.files import is_at_or_below
from landlane.git.discovery import HOME_POINTER
from landlane.git.lock import git_lock
from landlane.git.untrusted_checkout import read_small
from landlane.platform.process import list_mounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.git.discovery import Checkout

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def is_folder(path: str) -> bool:
    """Return whether a path is a folder itself, and not a link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def find_git_dir(home: Checkout, path: str) -> str:
    """Return the git directory that belongs to a checkout alone; empty when it is gone.

    An agent may have replaced `.git` by a link or a file that leads to the git directory of another checkout.
    Those are not followed. Only the main checkout, where no agent is sandboxed, may have a link.
    """
    own = os.path.join(path, ".git")
    if is_folder(own) or (path == home.root and os.path.isdir(own)):
        return os.path.realpath(own)
    return worktree_git_dir(home, path)


def worktree_git_dir(home: Checkout, path: str) -> str:
    """Return the git directory that the repository lists for a linked worktree; its `.git` is not read."""
    return next((folder for folder, root in list_worktrees(home) if root == path), "")


def unlink_in_git_dir(root: str, name: str) -> None:
    """Delete a file of the git directory in a checkout's folder, without following links.

    Raises:
        OSError: there is no such file, or a folder on the way is a link.
    """
    folder = os.open(root, _FOLDER)
    try:
        git_dir = os.open(".git", _FOLDER, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        os.unlink(name, dir_fd=git_dir)
    finally:
        os.close(git_dir)


def list_worktrees(home: Checkout) -> list[tuple[str, str]]:
    """Return every linked worktree as (git directory, root), read from the files."""
    folder = os.path.join(home.common_dir, "worktrees")
    found: list[tuple[str, str]] = []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        entry = os.path.join(folder, name)
        marker = _read(os.path.join(entry, "gitdir")) if is_folder(entry) else ""
        if marker:
            found.append((entry, os.path.dirname(marker.partition("\n")[0])))
    return found


def remove_checkout(
    home: Checkout, path: str, *, mark: str = "", on_step: Callable[[str], None] = lambda _: None
) -> None:
    """Remove a checkout and its entry in the repository. Targets of links in it stay as they are.

    A file at its path is not the checkout, and stays; a link is removed.

    It is renamed first, so that no process sees half of it and a second call finds the rest. `mark` makes the
    new name unique.

    Raises:
        RepositoryError: something in it cannot be removed.
    """
    going = removal_path(path, mark)
    check_no_mounts(path)
    admin = worktree_git_dir(home, path)
    if is_folder(os.path.join(path, ".git")) and not os.path.lexists(os.path.join(admin, "locked")):
        admin = ""  # a clone has replaced a worktree of the user
    # If it was renamed under our own mark before, a folder at the old path is not ours.
    if (is_folder(path) or os.path.islink(path)) and not (mark and os.path.lexists(going)):
        remove_tree(going)
        try:
            os.rename(path, going)
        except OSError as error:
            raise _not_removed(path, error) from error
        on_step("renamed")
    if admin:
        with git_lock(home.common_dir, f"remove worktree {os.path.basename(path)}"):
            remove_tree(admin)
        on_step("forgotten")
    remove_tree(going)


def removal_path(path: str, mark: str) -> str:
    """Return the path of a checkout while it is being removed."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{mark or 'old'}.closing")


def is_own_checkout(home: Checkout, path: str) -> bool:
    """Return whether a folder is a checkout that we made for a repository: a clone or a locked worktree."""
    marker = os.path.join(path, ".git")
    if is_folder(marker):
        return _read(os.path.join(marker, HOME_POINTER)) == home.common_dir + "\n"
    entry = worktree_git_dir(home, path)
    if not entry or not os.path.lexists(os.path.join(entry, "locked")):
        return False
    line = _read(marker).rstrip("\n")
    named = line.removeprefix("gitdir: ")
    return named != line and os.path.realpath(os.path.join(path, named)) == os.path.realpath(entry)


def _read(path: str) -> str:
    return (read_small(path, 100_000) or b"").decode("utf-8", "surrogateescape")


def remove_tree(path: str) -> None:
    """Delete a folder without following any link out of it, or emptying what is mounted in it.

    Raises:
        RepositoryError: something is mounted in it, or cannot be removed.
    """
    if not os.path.lexists(path):
        return
    if os.path.islink(path) or not os.path.isdir(path):
        os.unlink(path)
        return
    check_no_mounts(path)
    _unlink_links(path)
    shutil.rmtree(path, onerror=functools.partial(_make_writable_and_retry, path))


def check_no_mounts(path: str) -> None:
    """Refuse a folder that is or contains a mount point.

    Raises:
        RepositoryError: something is mounted there.
    """
    mounted = next((point for point in list_mounts() if is_at_or_below(point, path)), "")
    if mounted:
        raise RepositoryError(
            f"{mounted} is mounted inside the checkout and would be emptied",
            code="MOUNTED_INSIDE",
            hint=f"umount {mounted}, then close it again",
        )


def _unlink_links(path: str) -> None:
    """Delete all links first, so that no later step can follow one out of the folder."""
    folders = [path]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as entries:
                found = list(entries)
        except PermissionError:
            _make_accessible(folder)
            with os.scandir(folder) as entries:
                found = list(entries)
        folders += [entry.path for entry in found if entry.is_dir(follow_symlinks=False)]
        for entry in found:
            if entry.is_symlink():
                try:
                    os.unlink(entry.path)
                except PermissionError:
                    _make_accessible(folder)
                    os.unlink(entry.path)


def _make_accessible(folder: str) -> None:
    """Let the owner of a folder read and write it; the target of a link is not changed."""
    if is_folder(folder):
        os.chmod(folder, stat.S_IRWXU)


def _make_writable_and_retry(top: str, function: object, path: str, info: object) -> None:
    """Remove a path of a read-only folder, as caches often are. Modes above `top` are not changed."""
    error = info[1] if isinstance(info, tuple) else None  # pyright: ignore[reportUnknownVariableType]
    if isinstance(error, FileNotFoundError):
        return
    try:
        if path != top:
            _make_accessible(os.path.dirname(path))
        if is_folder(path):
            _make_accessible(path)
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)
    except OSError as second:
        raise _not_removed(path, second) from second


def _not_removed(path: str, error: OSError) -> RepositoryError:
    return RepositoryError(
        f"{path} cannot be removed: {error.strerror}",
        code="NOT_REMOVED",
        hint="fix its permissions, then close the workspace again; what was rescued is safe",
    )
