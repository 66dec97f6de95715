"""What a sandboxed command may read although it is in a place that is hidden: programs, toolchains, caches.

Hidden are the home of the user, temporary folders, and the sockets of the user's session. Rules name what is
hidden and what is visible in it, and the innermost rule counts.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from landlane.settings.model import Settings

_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - the folders themselves are meant
# Toolchains and downloads in the home: read by builds, and of no use to others. No file with a sign-in.
_TOOLS = (
    *(".rustup", ".cargo/bin", ".cargo/registry", ".cargo/git", ".cargo/env", "go/pkg/mod", "go/bin"),
    *(".nvm", ".fnm", ".volta", ".pyenv", ".rbenv", ".asdf", ".sdkman", ".local/share/mise", ".bun/bin"),
    *(".local/share/pnpm", ".local/share/uv", ".local/share/pipx", ".local/pipx", ".local/lib", ".opam"),
    *(".m2/repository", ".gradle/wrapper", ".nuget/packages", ".pub-cache", ".gem", ".ghcup", ".deno/bin"),
    *(".cache/pip", ".cache/ms-playwright", ".cache/puppeteer", ".cache/Cypress", ".cache/coursier"),
)
_CCACHE = (".cache/ccache", ".ccache")


def user_home() -> str:
    """Return the home of the user with links resolved; empty if there is none that could be hidden."""
    home = os.path.realpath(os.path.expanduser("~"))
    return home if os.path.isdir(home) and home.count("/") > 0 and home != "/" else ""


def private_places() -> list[str]:
    """Return what every sandbox hides: the home, temporary files, and the folder of the user's session."""
    session = f"/run/user/{os.geteuid()}"
    found = [user_home(), *_TEMPORARY, session]
    return [path for path in dict.fromkeys(map(_real, found)) if path and os.path.isdir(path)]


def tool_folders() -> list[str]:
    """Return the toolchains and caches in the home that exist."""
    home = user_home()
    return [path for name in _TOOLS if home and os.path.exists(path := os.path.join(home, name))]


def ccache_folder() -> str:
    """Return the folder of ccache; empty if there is none."""
    home = user_home()
    named = os.environ.get("CCACHE_DIR", "")
    folders = [named] if named else [os.path.join(home, name) for name in _CCACHE if home]
    return next((os.path.realpath(path) for path in folders if os.path.isdir(path)), "")


def program_folders(search_path: str, hidden: Iterable[str]) -> list[str]:
    """Return what the programs on a search path need to be started, as far as it is hidden.

    That is the folder of each program, and its installation, such as a virtual environment.
    """
    hidden = tuple(hidden)
    found: dict[str, None] = {}
    for folder in dict.fromkeys(map(_real, (*search_path.split(os.pathsep), *_own_folders()))):
        if not folder or not os.path.isdir(folder) or not _is_below_any(folder, hidden):
            continue
        found[_installation_of(folder)] = None
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if os.path.islink(path) and os.path.isfile(path):
                target = os.path.realpath(path)
                if _is_below_any(target, hidden):
                    found[_owner_of(target)] = None
    user = user_home()
    return [path for path in found if path not in (user, "/") and os.path.exists(path)]


def workspace_folders(settings: Settings, root: str) -> list[str]:
    """Return where workspaces are: beside the repository, or where the settings say."""
    named = settings.workspace.folder
    return [f"{root}.workspaces", *([os.path.join(root, os.path.expanduser(named))] if named else ())]


def borrowed_objects(common_dir: str) -> list[str]:
    """Return the object stores that a repository borrows from."""
    try:
        with open(
            f"{common_dir}/objects/info/alternates", encoding="utf-8", errors="surrogateescape"
        ) as file:
            lines = file.read(100_000).splitlines()
    except OSError:
        return []
    return [
        _real(os.path.join(common_dir, "objects", line)) for line in lines if line and line[0] not in '#"'
    ]


def _own_folders() -> tuple[str, ...]:
    """Return where the interpreter that starts sandboxed programs has its files."""
    return (os.path.dirname(sys.executable), os.path.join(sys.base_prefix, "bin"))


def own_package() -> str:
    """Return the folder that our own package is imported from."""
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _installation_of(folder: str) -> str:
    """Return the folder with everything that the programs of a folder need."""
    parent, name = os.path.split(folder)
    if name == ".bin":  # of npm: links to files beside it
        return parent
    if name in ("bin", "sbin") and parent not in (user_home(), os.path.join(user_home(), ".local")):
        return parent
    return folder


def _owner_of(target: str) -> str:
    """Return what a program needs that a link leads to: its package, its installation, or only the file."""
    head, found, _ = target.partition("/node_modules/")
    if found:
        return f"{head}/node_modules"
    folder = os.path.dirname(target)
    return _installation_of(folder) if os.path.basename(folder) in ("bin", "sbin") else target


def _is_below_any(path: str, folders: Iterable[str]) -> bool:
    return any(path.startswith(folder.rstrip("/") + "/") for folder in folders)


def _real(path: str) -> str:
    return os.path.realpath(path) if path else ""
