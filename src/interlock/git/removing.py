"""Removing checkouts: their files, what git knows of them, and nothing that they link to or have mounted."""

from __future__ import annotations

import os
import shutil
import stat

from interlock.errors import RepositoryError
from interlock.git.layout import HOME_POINTER
from interlock.git.lock import git_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from interlock.git.layout import Checkout


def private_git_dir(home: Checkout, path: str) -> str:
    """The git directory that belongs to a checkout alone; empty when it is gone."""
    own = os.path.join(path, ".git")
    if os.path.isdir(own):
        return os.path.realpath(own)
    return next((folder for folder, root in worktree_entries(home) if root == path), "")


def worktree_entries(home: Checkout) -> list[tuple[str, str]]:
    """Every linked worktree as (its git directory, its root), read from the files."""
    folder = os.path.join(home.common_dir, "worktrees")
    found: list[tuple[str, str]] = []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        try:
            with open(
                os.path.join(folder, name, "gitdir"), encoding="utf-8", errors="surrogateescape"
            ) as file:
                found.append((os.path.join(folder, name), os.path.dirname(file.readline().rstrip("\n"))))
        except OSError:
            continue
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
    going = going_name(path, mark)
    check_no_mounts(path)
    is_clone = os.path.isdir(os.path.join(path, ".git"))
    admin = "" if is_clone else _entry_of(home, path)
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


def going_name(path: str, mark: str) -> str:
    """What a checkout is called while it is being removed."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{mark or 'old'}.closing")


def is_made_here(home: Checkout, path: str) -> bool:
    """Whether a folder is a checkout that we made for a repository: a clone of it, or a locked worktree."""
    marker = os.path.join(path, ".git")
    if os.path.isdir(marker):
        return _content(os.path.join(marker, HOME_POINTER)) == home.common_dir + "\n"
    entry = _entry_of(home, path)
    if not entry or not os.path.lexists(os.path.join(entry, "locked")):
        return False
    said = _content(marker).rstrip("\n")
    named = said.removeprefix("gitdir: ")
    return named != said and os.path.realpath(os.path.join(path, named)) == os.path.realpath(entry)


def _content(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(100_000)
    except OSError:
        return ""


def _entry_of(home: Checkout, path: str) -> str:
    return next((folder for folder, root in worktree_entries(home) if root == path), "")


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
    shutil.rmtree(path, onerror=_make_writable_and_retry)


def check_no_mounts(path: str) -> None:
    """Make sure that nothing is mounted at a folder or below it.

    Raises:
        RepositoryError: something is, and is named.
    """
    inside = path.rstrip("/") + "/"
    mounted = next((one for one in _mounts() if one == path or one.startswith(inside)), "")
    if mounted:
        raise RepositoryError(
            f"{mounted} is mounted inside the checkout and would be emptied",
            code="MOUNTED_INSIDE",
            hint=f"umount {mounted}, then close it again",
        )


def _mounts() -> list[str]:
    """Where something is mounted, as this process sees it; nothing where the system does not tell."""
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            fields = [line.split(b" ") for line in file]
    except OSError:
        return []
    # Spaces, tabs, line ends and backslashes in names are written as octal numbers.
    names = [
        os.fsdecode(line[4].decode("unicode_escape").encode("latin-1")) for line in fields if len(line) > 4
    ]
    return names


def _unlink_links(path: str) -> None:
    """Links go first: no later step, of this or another program, can be led out by one."""
    folders = [path]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as entries:
                found = list(entries)
        except PermissionError:
            os.chmod(folder, stat.S_IRWXU)
            with os.scandir(folder) as entries:
                found = list(entries)
        folders += [entry.path for entry in found if entry.is_dir(follow_symlinks=False)]
        for entry in found:
            if entry.is_symlink():
                _unlink(entry.path)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except PermissionError:
        os.chmod(os.path.dirname(path), stat.S_IRWXU)
        os.unlink(path)


def _make_writable_and_retry(function: object, path: str, info: object) -> None:
    """Caches are often read-only; their owner may remove them all the same."""
    error = info[1] if isinstance(info, tuple) else None  # pyright: ignore[reportUnknownVariableType]
    if isinstance(error, FileNotFoundError):
        return
    try:
        os.chmod(os.path.dirname(path), stat.S_IRWXU)
        if os.path.isdir(path) and not os.path.islink(path):
            os.chmod(path, stat.S_IRWXU)
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
