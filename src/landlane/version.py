"""The version number, and the commands that upgrade this installation or add an extra to it."""

from __future__ import annotations

import os
import sys

__version__ = "0.1.0"

_NAME = "landlane"


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this installation."""
    wanted = f"'{_source()}[{extra}]'"
    tool = _tool()
    if tool:
        return f"{tool} install {'--force ' if tool == 'pipx' else ''}{wanted}"
    return f"{_pip()} install {wanted}"


def upgrade_command() -> str:
    """Return the command that upgrades this installation."""
    return f"{tool} upgrade {_NAME}" if (tool := _tool()) else f"{_pip()} install --upgrade {_source()}"


def _tool() -> str:
    """Return the program that made the environment for this command alone; empty if there is none."""
    folders = sys.prefix.split(os.sep)
    for tool, parents in (("uv tool", ["uv", "tools"]), ("pipx", ["pipx", "venvs"])):
        if folders[-3:-1] == parents:
            return tool
    return ""


def _pip() -> str:
    """Return `pip` if that is the one of this interpreter, else how this interpreter starts it."""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if os.access(os.path.join(folder, "pip"), os.X_OK):
            return "pip" if folder == os.path.dirname(sys.executable) else f"{sys.executable} -m pip"
    return f"{sys.executable} -m pip"


def _source() -> str:
    """Return what was installed: a folder with the sources, or the name in the package index."""
    number = f"{sys.version_info[0]}.{sys.version_info[1]}"
    packages = os.path.join(sys.prefix, "lib", f"python{number}", "site-packages")
    try:
        with open(
            os.path.join(packages, f"{_NAME}-{__version__}.dist-info", "direct_url.json"), encoding="utf-8"
        ) as file:
            url = file.read().partition('"url"')[2].split('"')[1]
    except (OSError, IndexError):
        return _NAME
    is_plain = url.startswith("file:///") and not set(url) & set("%' ")
    return url.removeprefix("file://") if is_plain else _NAME
