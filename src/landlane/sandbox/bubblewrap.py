"""Bubblewrap: find it, and build the arguments that turn a sandbox into mounts and namespaces."""

from __future__ import annotations

import os
import shutil
import stat
import sys

from landlane.sandbox.model import Sandbox, is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

BWRAP_VARIABLE = "LANDLANE_BWRAP"
# These hold sockets and files of other programs: a command gets empty ones of its own.
_PRIVATE = ("/run", "/var/run", "/tmp", "/var/tmp")  # noqa: S108 - the folders themselves are meant
# Parts of /run that must stay visible: the name resolver, and all programs of some distributions.
_NEEDED = ("/etc/resolv.conf", "/run/current-system", "/run/wrappers", "/run/opengl-driver")
_PRIVATE_NETWORK = ("--unshare-net",)
_NAMESPACES = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--cap-drop", "ALL")


def find_bubblewrap() -> str:
    """Return the path of the program that LANDLANE_BWRAP names, or of `bwrap`; empty if there is none."""
    named = os.environ.get(BWRAP_VARIABLE, "")
    return os.path.abspath(found) if (found := shutil.which(named or "bwrap")) else ""


def trial_command(bwrap: str, *, has_private_network: bool) -> list[str]:
    """Return a command that tries the features a sandbox needs from bubblewrap."""
    network = _PRIVATE_NETWORK if has_private_network else ()
    return [bwrap, *_base(), *_NAMESPACES, *network, "--new-session", "--", bwrap, "--version"]


def wrap_command(
    bwrap: str,
    sandbox: Sandbox,
    command: list[str],
    cwd: str,
    *,
    has_private_network: bool,
    has_terminal: bool = False,
) -> list[str]:
    """Return the command that runs `command` with all files read-only except those of its own folders."""
    words = [bwrap, *_base()]
    for _, path, how in sorted(_mounts(sandbox)):  # outer ones first: inner mounts cover them
        words += _mount_options(path, how)
    for path in sandbox.hidden:
        if os.path.isdir(path):
            words += ["--remount-ro", path]  # last: mounts inside of it need their mount points
    words += _NAMESPACES
    if has_private_network:
        words += _PRIVATE_NETWORK
    if not has_terminal:
        words.append("--new-session")
    return [*words, "--chdir", cwd, "--", *command]


def _base() -> list[str]:
    words = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    # Root owns most kernel settings in /proc, so it may write them even without any capability.
    return [*words, "--remount-ro", "/proc"] if os.geteuid() == 0 else words


_EMPTY, _READ, _WRITE, _COVER = "1 empty", "2 read", "3 write", "4 cover"


def _mounts(sandbox: Sandbox) -> set[tuple[int, str, str]]:
    """Return every mount as (depth, path, how)."""
    empty = [path for path in _PRIVATE if os.path.isdir(path) and not os.path.islink(path)]
    empty = [path for path in empty if path not in sandbox.writable]
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    needed = [*map(os.path.realpath, _NEEDED), sys.prefix, sys.base_prefix, package]
    covered = [*empty, *sandbox.hidden]
    shown = [path for path in needed if _is_below_any(path, covered)]
    # What it may write in is mounted below: a second mount would make it read-only.
    readable = [path for path in sandbox.readable if not _is_below_any(path, sandbox.writable_roots())]
    shown += [path for path in readable if path in covered or _is_below_any(path, covered)]
    for path in sandbox.sockets_visible:
        if _is_below_any(path, covered):
            # The folder where possible: the socket is replaced when its server restarts.
            folder = os.path.dirname(path)
            shown.append(path if folder in covered else folder)
    found = {(path, _EMPTY) for path in empty}
    found |= {(path, _READ) for path in shown if os.path.exists(path)}
    found |= {(path, _WRITE) for path in sandbox.writable_roots()}
    found |= {(path, _COVER) for path in sandbox.hidden if os.path.lexists(path)}
    for path in listening_sockets():
        is_visible = not _is_below_any(path, covered) or _is_below_any(path, shown)
        is_allowed = path in sandbox.sockets_visible or _is_below_any(path, sandbox.writable_roots())
        if is_visible and not is_allowed:
            found.add((path, _COVER))
    return {(path.count("/"), path, how) for path, how in found}


def _mount_options(path: str, how: str) -> list[str]:
    if how == _READ:
        return ["--ro-bind", path, path]
    if how == _WRITE:
        return ["--bind", path, path]
    if how == _EMPTY or os.path.isdir(path):
        return ["--tmpfs", path]
    return ["--ro-bind", "/dev/null", path]


def listening_sockets() -> list[str]:
    """Return the unix sockets of all programs that have a path in the file system now."""
    try:
        with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()[1:]
    except OSError:
        return []
    named = {parts[7] for line in lines if len(parts := line.split(None, 7)) == 8}
    paths = {os.path.realpath(path) for path in named if path.startswith("/")}
    return sorted(path for path in paths if _is_socket(path))


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False


def _is_below_any(path: str, folders: Sequence[str]) -> bool:
    return any(is_within(path, folder) for folder in folders)
