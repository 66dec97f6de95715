"""Bubblewrap: finding it, and the arguments that turn a sandbox into mounts and namespaces of its own."""

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
# Where programs put their sockets and what others left: a command gets empty ones of its own.
_PRIVATE = ("/run", "/var/run", "/tmp", "/var/tmp")  # noqa: S108 - the places themselves are meant
# Inside of /run all the same: the names of hosts, and all programs of some distributions.
_NEEDED = ("/etc/resolv.conf", "/run/current-system", "/run/wrappers", "/run/opengl-driver")
_NAMESPACES = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--cap-drop", "ALL")


def find_bubblewrap() -> str:
    """The program that was named, or the first `bwrap` on the path; empty where there is none."""
    named = os.environ.get(BWRAP_VARIABLE, "")
    return os.path.abspath(found) if (found := shutil.which(named or "bwrap")) else ""


def trial_command(bwrap: str) -> list[str]:
    """Bubblewrap with all that a sandbox asks of it, to run nothing but itself."""
    return [bwrap, *_base(), *_NAMESPACES, "--new-session", "--", bwrap, "--version"]


def wrap_command(
    bwrap: str, sandbox: Sandbox, command: list[str], cwd: str, *, has_terminal: bool = False
) -> list[str]:
    """The command inside a read-only machine in which its own places alone can be changed."""
    words = [bwrap, *_base()]
    for _, path, how in sorted(_places(sandbox)):  # outer places first: what lies within covers them
        words += _mount(path, how)
    for path in sandbox.hidden:
        if os.path.isdir(path):
            words += ["--remount-ro", path]  # not before everything in it has its place
    words += _NAMESPACES
    if not has_terminal:
        words.append("--new-session")
    return [*words, "--chdir", cwd, "--", *command]


def _base() -> list[str]:
    words = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    # Root without any capability may still write most settings of the kernel: they belong to it.
    return [*words, "--remount-ro", "/proc"] if os.geteuid() == 0 else words


_EMPTY, _READ, _WRITE, _COVER = "1 empty", "2 read", "3 write", "4 cover"


def _places(sandbox: Sandbox) -> set[tuple[int, str, str]]:
    """Every mount, with its depth."""
    empty = [path for path in _PRIVATE if os.path.isdir(path) and not os.path.islink(path)]
    needed = [*map(os.path.realpath, _NEEDED), sys.prefix, sys.base_prefix, _own_folder()]
    kept = [path for path in needed if _is_below_any(path, empty)]
    kept += [path for path in sandbox.readable if _is_below_any(path, [*empty, *sandbox.hidden])]
    kept += _ways_to(sandbox.sockets_visible, empty, sandbox.hidden)
    found = {(path, _EMPTY) for path in empty}
    found |= {(path, _READ) for path in kept if os.path.exists(path)}
    found |= {(path, _WRITE) for path in sandbox.may_change()}
    found |= {(path, _COVER) for path in sandbox.hidden if os.path.lexists(path)}
    for path in listening_sockets():
        is_seen = not _is_below_any(path, [*empty, *sandbox.hidden]) or _is_below_any(path, kept)
        if is_seen and path not in sandbox.sockets_visible and not _is_below_any(path, sandbox.may_change()):
            found.add((path, _COVER))
    return {(path.count("/"), path, how) for path, how in found}


def _ways_to(sockets: Sequence[str], empty: Sequence[str], hidden: Sequence[str]) -> list[str]:
    """What to mount so that these sockets are seen where nothing else is.

    The folder, where it is not itself hidden or everybody's: whoever listens there may end, and begin anew.
    """
    ways: list[str] = []
    for path in sockets:
        folder = os.path.dirname(path)
        if _is_below_any(path, [*empty, *hidden]):
            ways.append(path if folder in empty or folder in hidden else folder)
    return ways


def _mount(path: str, how: str) -> list[str]:
    if how == _READ:
        return ["--ro-bind", path, path]
    if how == _WRITE:
        return ["--bind", path, path]
    if how == _EMPTY or os.path.isdir(path):
        return ["--tmpfs", path]
    return ["--ro-bind", "/dev/null", path]


def listening_sockets() -> list[str]:
    """The unix sockets of all programs that lie in the file system now, where the kernel tells their path."""
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


def _own_folder() -> str:
    """Where this program lies, which may be started inside, too."""
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
