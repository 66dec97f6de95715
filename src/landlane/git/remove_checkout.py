"""Removing checkouts: their files, what git knows of them, and nothing that they link to or have mounted."""

from __future__ import annotations

import functools
import os
import shutil
import stat

from landlane.errors import RepositoryError
from landlane.git.discovery import HOME_POINTER
from landlane.git.lock import git_lock
from landlane.git.untrusted_checkout import read_small
from landlane.platform.proc import list_mounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.git.discovery import Checkout

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def is_folder(path: str) -> bool:
    """Whether a folder itself lies at a path, and no link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def find_git_dir(home: Checkout, path: str) -> str:
    """The git directory that belongs to a checkout alone; empty when it is gone.

    Whoever worked in a checkout may have put a link or a file in its place, which leads to the git directory
    of another. None of those is followed; only the main checkout, where nobody is sandboxed, may have a link.
    """
    own = os.path.join(path, ".git")
    if is_folder(own) or (path == home.root and os.path.isdir(own)):
        return os.path.realpath(own)
    return worktree_git_dir(home, path)


def worktree_git_dir(home: Checkout, path: str) -> str:
    """The git directory that the repository itself has for a linked worktree, whatever its `.git` says."""
    return next((folder for folder, root in list_worktrees(home) if root == path), "")


def unlink_in_git_dir(root: str, name: str) -> None:
    """Delete a file of the git directory in a checkout's folder, through no link.

    Raises:
        OSError: there is no such file, or a link is on the way.
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
    """Every linked worktree as (its git directory, its root), read from the files."""
    folder = os.path.join(home.common_dir, "worktrees")
    found: list[tuple[str, str]] = []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        entry = os.path.join(folder, name)
        said = _content(os.path.join(entry, "gitdir")) if is_folder(entry) else ""
        if said:
            found.append((entry, os.path.dirname(said.partition("\n")[0])))
    return found


def remove_checkout(
    home: Checkout, path: str, *, mark: str = "", on_step: Callable[[str], None] = lambda _: None
) -> None:
    """Remove a checkout and what the repository knows of it. What it links to stays as it is.

    It is renamed first: nobody finds half a checkout, and a second try finds what is left. `mark` makes that
    name one that nobody else uses.

    Raises:
        RepositoryError: something in it cannot be removed, and is named.
    """
    going = removal_path(path, mark)
    check_no_mounts(path)
    admin = worktree_git_dir(home, path)
    if is_folder(os.path.join(path, ".git")) and not os.path.lexists(os.path.join(admin, "locked")):
        admin = ""  # a clone stands where somebody's worktree was
    # What lies there after it was renamed under our own mark is somebody else's.
    if os.path.lexists(path) and not (mark and os.path.lexists(going)):
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
    """What a checkout is called while it is being removed."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{mark or 'old'}.closing")


def is_own_checkout(home: Checkout, path: str) -> bool:
    """Whether a folder is a checkout that we made for a repository: a clone of it, or a locked worktree."""
    marker = os.path.join(path, ".git")
    if is_folder(marker):
        return _content(os.path.join(marker, HOME_POINTER)) == home.common_dir + "\n"
    entry = worktree_git_dir(home, path)
    if not entry or not os.path.lexists(os.path.join(entry, "locked")):
        return False
    said = _content(marker).rstrip("\n")
    named = said.removeprefix("gitdir: ")
    return named != said and os.path.realpath(os.path.join(path, named)) == os.path.realpath(entry)


def _content(path: str) -> str:
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
    """Make sure that nothing is mounted at a folder or below it.

    Raises:
        RepositoryError: something is, and is named.
    """
    inside = path.rstrip("/") + "/"
    mounted = next((one for one in list_mounts() if one == path or one.startswith(inside)), "")
    if mounted:
        raise RepositoryError(
            f"{mounted} is mounted inside the checkout and would be emptied",
            code="MOUNTED_INSIDE",
            hint=f"umount {mounted}, then close it again",
        )


def _unlink_links(path: str) -> None:
    """Links go first: no later step, of this or another program, can be led out by one."""
    folders = [path]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as entries:
                found = list(entries)
        except PermissionError:
            _open_up(folder)
            with os.scandir(folder) as entries:
                found = list(entries)
        folders += [entry.path for entry in found if entry.is_dir(follow_symlinks=False)]
        for entry in found:
            if entry.is_symlink():
                _unlink(entry.path)


def _unlink(path: str) -> None:
    """Delete a link; the folder it is in is one that is being removed."""
    try:
        os.unlink(path)
    except PermissionError:
        _open_up(os.path.dirname(path))
        os.unlink(path)


def _open_up(folder: str) -> None:
    """Let its owner read and write a folder; of a link, what it leads to stays as it is."""
    if is_folder(folder):
        os.chmod(folder, stat.S_IRWXU)


def _make_writable_and_retry(top: str, function: object, path: str, info: object) -> None:
    """Caches are often read-only; their owner may remove them all the same. Above `top` nothing changes."""
    error = info[1] if isinstance(info, tuple) else None  # pyright: ignore[reportUnknownVariableType]
    if isinstance(error, FileNotFoundError):
        return
    try:
        if path != top:
            _open_up(os.path.dirname(path))
        if is_folder(path):
            _open_up(path)
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)
    except OSError as second:
        raise _not_removed(path, second) from second


def _not_removed(path: str, error: OSError) -> RepositoryError:
    return RepositoryError(
        f"{path} cannot be removed: {error.strerror}",
        code="NOT_REMOVED",
        hint="mend its permissions, then close the workspace again; what was rescued is safe",
    )
