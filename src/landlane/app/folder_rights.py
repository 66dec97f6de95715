"""Who may read the state folder: only its owner, or a group if git shares the repository with one."""

from __future__ import annotations

import os
import re
import stat

from landlane.app.store_place import POINTER
from landlane.files import read_regular

_PRIVATE = 0o700
_SET_GROUP = 0o2000
_SETTING = re.compile(r"(?im)^\s*(?:\[core\]\s*)?sharedrepository\s*=\s*\"?(\w+)")
# Values of core.sharedRepository, as git reads them; other values are permissions in octal.
_SHARED = {
    **dict.fromkeys(("", "false", "no", "off", "umask", "0"), 0),
    **dict.fromkeys(("true", "yes", "on", "group", "1"), 0o060),
    **dict.fromkeys(("all", "world", "everybody", "2"), 0o064),
}
# Entries that stay private in every repository: secrets of sessions, and sockets of the resident.
_SECRET = frozenset(("sessions", "activity", "door", "resident.lock"))


def protect_folder(folder: str, common_dir: str) -> list[str]:
    """Give the state folder, and what is in it, the rights that it must have; return what was too open.

    Only the owner can do that, and a folder whose own rights are right is not searched.
    """
    found = os.stat(folder)
    now, wanted = stat.S_IMODE(found.st_mode), folder_mode(common_dir)
    if now == wanted or found.st_uid != os.geteuid():
        return []
    changed = [path for path in (folder, *_entries(folder)) if _protect(path, folder, wanted)]
    return changed if now & ~wanted & 0o077 else []


def folder_mode(common_dir: str) -> int:
    """Return the permissions of the state folder of a repository."""
    shared = _shared_rights(common_dir)
    if not shared & 0o060:
        return _PRIVATE
    return _PRIVATE | _SET_GROUP | shared | (shared & 0o044) >> 2  # who reads a folder also enters it


def is_too_open(folder: str, common_dir: str) -> bool:
    """Return whether users can read the state folder who must not."""
    return bool(os.stat(folder).st_mode & ~folder_mode(common_dir) & 0o077)


def has_url(folder: str) -> bool:
    """Return whether the file that names the store has a URL, which may hold a password."""
    try:
        return b"://" in read_regular(os.path.join(folder, POINTER))
    except OSError:
        return True


def _shared_rights(common_dir: str) -> int:
    """Return which rights git gives the group and others on files of this repository."""
    if not common_dir:
        return 0
    try:  # starting git would take longer than most commands
        with open(os.path.join(common_dir, "config"), encoding="utf-8", errors="replace") as file:
            value = next(iter(_SETTING.findall(file.read())[-1:]), "").lower()
        return _SHARED[value] if value in _SHARED else int(value, 8) & 0o066
    except (OSError, ValueError):
        return 0


def _entries(folder: str) -> list[str]:
    return [
        os.path.join(above, name)
        for above, folders, files in os.walk(folder, topdown=False)
        for name in (*files, *folders)
    ]


def _protect(path: str, folder: str, wanted: int) -> bool:
    """Give one entry its rights; return whether they changed."""
    name = os.path.relpath(path, folder).partition("/")[0]
    is_secret = name in _SECRET or (name == POINTER and has_url(folder))
    try:
        found = os.lstat(path)
        mode = stat.S_IMODE(found.st_mode)
        if stat.S_ISDIR(found.st_mode):
            right = _PRIVATE if is_secret else wanted
        elif stat.S_ISREG(found.st_mode):
            open_to = 0 if is_secret else wanted & 0o066
            is_program = mode & 0o100
            right = mode & 0o700 | open_to | ((open_to & 0o044) >> 2 if is_program else 0)
        else:
            return False
        if mode == right or found.st_uid != os.geteuid():
            return False
        os.chmod(path, right)
    except OSError:
        return False  # it was deleted meanwhile
    return True
