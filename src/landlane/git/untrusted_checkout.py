"""Read a checkout that may have been tampered with, and run git on the repository that keeps its rescues."""

from __future__ import annotations

import os
import stat

from landlane.git.refs import is_oid
from landlane.git.run import GitResult, git_failed, run_git
from landlane.values import value

MAIN = "main"
WORKTREE = "worktree"
CLONE = "clone"
SUBMODULE = "submodule"

BIG_FILE = "16m"  # from here on git streams a file instead of holding it in memory
LIMIT_SECONDS = 600.0  # for one pass over a big tree on a busy disk
_SMALL = 64 * 1024 * 1024
_SAFE_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@value
class UntrustedCheckout:
    """A checkout whose git directory may say anything.

    `git_dir` belongs to it alone; `home` is the git directory of the repository that keeps its rescues.
    """

    root: str
    git_dir: str
    kind: str
    home: str

    @property
    def has_own_objects(self) -> bool:
        """Whether its commits may be missing in the repository."""
        return self.kind in {CLONE, SUBMODULE}

    @property
    def common_dir(self) -> str:
        """The git directory that has its refs and excludes."""
        return self.git_dir if self.has_own_objects else self.home


def to_bytes(path: str) -> bytes:
    """Return a path as the file system has it; names need not be UTF-8."""
    return path.encode("utf-8", "surrogateescape")


def to_text(path: bytes) -> str:
    """Return a path as text that can be turned back, whatever its bytes."""
    return path.decode("utf-8", "surrogateescape")


def sealed_environment(**variables: str) -> dict[str, str]:
    """Return an environment in which git obeys only these variables and the settings of its git directory."""
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
    """Run git on the repository itself, with the user's settings but without hooks."""
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
    """Return what git prints on the repository itself.

    Raises:
        RepositoryError: git failed.
    """
    result = run_home_git(home, *arguments, stdin=stdin, **variables)
    if result.exit_code:
        raise git_failed(arguments, result)
    return result.stdout


def read_small(path: str, limit: int = _SMALL) -> bytes | None:
    """Return what a regular file holds; None for links, pipes and missing files."""
    try:
        handle = os.open(path, _SAFE_READ)
    except OSError:
        return None
    with open(handle, "rb") as file:
        return file.read(limit) if stat.S_ISREG(os.fstat(handle).st_mode) else None


def copy_index(source: str, target: str) -> None:
    """Copy an index with its time, by which git knows which entries are too young to be trusted.

    Raises:
        OSError: it cannot be read.
    """
    handle = os.open(source, _SAFE_READ)
    with open(handle, "rb") as file, open(target, "wb") as copy:
        before = os.fstat(handle)
        while chunk := file.read(1 << 20):
            copy.write(chunk)
    os.utime(target, ns=(before.st_atime_ns, before.st_mtime_ns))


def quote_alternate(path: str) -> str:
    """Return the path of an object store as git reads it from `alternates` and from its environment."""
    if not any(special in path for special in '\n":#'):
        return path
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def setting_line(key: str, text: str) -> str:
    """Return a setting as a config file has it; running `git config` for each would be slow."""
    section, _, rest = key.partition(".")
    middle, _, name = rest.rpartition(".")
    quoted = middle.replace("\\", "\\\\").replace('"', '\\"')
    heading = f'[{section} "{quoted}"]' if middle else f"[{section}]"
    content = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'{heading}\n\t{name} = "{content}"\n'


def read_all_refs(git_dir: str) -> dict[str, str]:
    """Return the refs of a repository, read from its files."""
    refs: dict[str, str] = {}
    packed = to_text(read_small(os.path.join(git_dir, "packed-refs")) or b"")
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
