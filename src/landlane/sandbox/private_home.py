"""The private home of a sandboxed command: its folders, and the user's settings without secrets.

The home of the user is hidden, so what programs need from there is copied, or linked if it can be read.
"""

from __future__ import annotations

import os
import re
import stat

from landlane.errors import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# Folders in the scratch folder, and the variables that lead programs there.
_PRIVATE = {
    "tmp": ("TMPDIR", "TMP", "TEMP"),
    "home/.config": ("XDG_CONFIG_HOME",),
    "home/.cache": ("XDG_CACHE_HOME",),
    "home/.local/share": ("XDG_DATA_HOME",),
    "home/.local/state": ("XDG_STATE_HOME",),
    "run": ("XDG_RUNTIME_DIR",),
    "clients/claude": ("CLAUDE_CONFIG_DIR",),
    "clients/codex": ("CODEX_HOME",),
}
# Settings of the user: the copy in the private home, the variable that names it, and where the original is.
_SETTINGS = (
    (".gitconfig", "GIT_CONFIG_GLOBAL", (".gitconfig", ".config/git/config")),
    (".config/pip/pip.conf", "PIP_CONFIG_FILE", (".config/pip/pip.conf", ".pip/pip.conf")),
    (".npmrc", "NPM_CONFIG_USERCONFIG", (".npmrc",)),
)
# Folders that programs have for themselves: never a link, but what is in them may be one.
_OWN_FOLDERS = frozenset((".config", ".cache", ".local", ".local/share", ".local/state"))
_MOST_BYTES = 1_000_000
_SECRET_LINE = re.compile(r"_auth|authorization|token|passw|secret|api_?key|://[^/\s]*@", re.IGNORECASE)
# Sections of git's settings that name files outside of the sandbox, or programs that know secrets.
_LEFT_OUT = re.compile(r"\s*\[\s*(?:include|includeif|credential)\b", re.IGNORECASE)


def prepare_home(scratch: str) -> dict[str, str]:
    """Create the private folders, and return the variables that lead there.

    Raises:
        Malformed: the scratch folder has something else in their place, such as a link.
    """
    variables: dict[str, str] = {}
    for folder, names in _PRIVATE.items():
        path = scratch
        for part in folder.split("/"):
            path = os.path.join(path, part)
            _make_private(path)
        variables |= dict.fromkeys(names, path)
    home = os.path.join(scratch, "home")
    for name, variable, originals in _SETTINGS:
        target = os.path.join(home, name)
        if os.path.lexists(target) or _copy_settings(variable, originals, target):
            variables[variable] = target
    return {**variables, "HOME": home}


def link_into_home(scratch: str, user_home: str, paths: Iterable[str]) -> None:
    """Make what is inside of the user's home available at the same place in the private one."""
    for path in paths:
        if path.startswith(f"{user_home}/"):
            name = os.path.relpath(path, user_home)
            link = os.path.join(scratch, "home", name)
            if name in _OWN_FOLDERS:
                link_into_home(scratch, user_home, [entry.path for entry in os.scandir(path)])
            elif not os.path.lexists(link):
                os.makedirs(os.path.dirname(link), mode=0o700, exist_ok=True)
                os.symlink(path, link)


def _make_private(path: str) -> None:
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise Malformed(
                f"{path} is not a folder",
                code="SANDBOX_PLACE",
                hint="remove it: it stands where a private folder must be",
            ) from None


def _copy_settings(variable: str, originals: tuple[str, ...], target: str) -> bool:
    """Copy the user's settings of a program, except lines with secrets; return whether there are any."""
    named = os.environ.get(variable, "")
    user_home = os.path.expanduser("~")
    for path in (named,) if named else [os.path.join(user_home, name) for name in originals]:
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                lines = file.read(_MOST_BYTES).splitlines(keepends=True)
        except (OSError, ValueError):
            continue
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False  # as /dev/null, which stays in use
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        with open(target, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.writelines(_without_secrets(lines))
        return True
    return False


def _without_secrets(lines: Iterable[str]) -> Iterable[str]:
    is_left_out = False
    for line in lines:
        if line.lstrip().startswith("["):
            is_left_out = bool(_LEFT_OUT.match(line) or _SECRET_LINE.search(line))
        if not is_left_out and not _SECRET_LINE.search(line):
            yield line
