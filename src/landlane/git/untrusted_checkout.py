"""Checkouts and the repository at home that keeps their rescues, and careful ways to read and ask them."""

from __future__ import annotations

import os
import stat

from landlane.git.run import GitResult, git_failed, run_git
from landlane.values import value

MAIN = "main"
WORKTREE = "worktree"
CLONE = "clone"
SUBMODULE = "submodule"

BIG_FILE = "16m"  # from here on git streams a file instead of holding it in memory
LIMIT_SECONDS = 600.0  # for one reading of a big tree on a busy disk
_SMALL = 64 * 1024 * 1024
_HEX = frozenset("0123456789abcdef")


@value
class UntrustedCheckout:
    """A checkout: its folder, the git directory that is its own, and of what kind it is."""

    root: str
    git_dir: str
    kind: str

    @property
    def has_own_objects(self) -> bool:
        """Whether its commits may be missing at home."""
        return self.kind in {CLONE, SUBMODULE}


def to_bytes(path: str) -> bytes:
    """A path as the file system knows it; names need not be UTF-8."""
    return path.encode("utf-8", "surrogateescape")


def to_text(path: bytes) -> str:
    """A path as text that can be turned back, whatever its bytes."""
    return path.decode("utf-8", "surrogateescape")


def is_oid(text: str) -> bool:
    """Whether it is the full name of an object."""
    return len(text) in (40, 64) and _HEX.issuperset(text)


def sealed_environment(**variables: str) -> dict[str, str]:
    """An environment in which git hears nothing but these variables and the settings of its git directory."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    return environment | {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "LC_ALL": "C",
        **variables,
    }


def run_home_git(home: str, *arguments: str, stdin: bytes | None = None, **variables: str) -> GitResult:
    """Run git on the home repository itself, with the user's settings but without hooks."""
    return run_git(
        *("-c", "core.hooksPath=/dev/null", "-c", "core.fsync=all", "-c", "gc.auto=0"),
        *("-c", f"core.bigFileThreshold={BIG_FILE}", "--git-dir", home),
        *arguments,
        cwd=home,
        stdin=stdin,
        limit_seconds=LIMIT_SECONDS,
        variables=variables,
    )


def home_git_output(home: str, *arguments: str, stdin: bytes | None = None, **variables: str) -> str:
    """What git answers on the home repository, where nothing but an answer will do.

    Raises:
        RepositoryError: git refused.
    """
    found = run_home_git(home, *arguments, stdin=stdin, **variables)
    if found.exit_code:
        raise git_failed(arguments, found)
    return found.stdout


def read_small(path: str, limit: int = _SMALL) -> bytes | None:
    """What an ordinary file holds; nothing for links, pipes and what is not there."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(handle, "rb") as file:
        return file.read(limit) if stat.S_ISREG(os.fstat(handle).st_mode) else None


def quoted_store(path: str) -> str:
    """The path of an object store as git reads it from `alternates` and from its environment."""
    if not any(odd in path for odd in '\n":#'):
        return path
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def read_refs(git_dir: str) -> dict[str, str]:
    """The refs of a repository, read from its files."""
    refs: dict[str, str] = {}
    packed = (read_small(os.path.join(git_dir, "packed-refs")) or b"").decode("utf-8", "surrogateescape")
    for line in packed.splitlines():
        oid, _, name = line.partition(" ")
        if is_oid(oid) and name.startswith("refs/"):
            refs[name] = oid
    for folder, _, names in os.walk(os.path.join(git_dir, "refs")):
        for name in names:
            path = os.path.join(folder, name)
            oid = (read_small(path, 4096) or b"").decode("utf-8", "replace").strip()
            if is_oid(oid):
                refs[os.path.relpath(path, git_dir)] = oid
    return refs
