"""Looking at a checkout through a git directory of our own, so that nothing in it can make git run a command.

A checkout's own settings may name programs (a file monitor, filters, hooks), and whoever worked there may
have written them. So git is never pointed at them: it is given a *shadow*, a git directory made for the
occasion, with the few settings that say how files are compared, a copy of the checkout's index, and the object
stores to read from. Looking changes nothing in the checkout, not even times in its index.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time

from interlock.errors import RepositoryError
from interlock.git.run import Output, Stream, git_failed, run_git
from interlock.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping

MAIN = "main"
WORKTREE = "worktree"
CLONE = "clone"
SUBMODULE = "submodule"

LIMIT_SECONDS = 600.0  # for one reading of a big tree on a busy disk
_SMALL = 64 * 1024 * 1024
_STALE_SECONDS = 3600.0
_HEX = frozenset("0123456789abcdef")
# What says how files are compared and which are ignored; nothing here can name a program.
_TAKEN_OVER = (
    "core.filemode",
    "core.symlinks",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.autocrlf",
    "core.eol",
    "core.excludesfile",
    "core.attributesfile",
    "core.sharedrepository",
    "extensions.objectformat",
)
# One pass over the data, little memory, and on the disk before anything that it saves is deleted.
_OURS = {
    "core.bare": "false",
    "core.fsync": "all",
    "core.compression": "1",
    "core.bigfilethreshold": "16m",
    "core.untrackedcache": "false",
    "core.fsmonitor": "false",
    "core.hookspath": "/dev/null",
    "core.quotepath": "false",
    "core.logallrefupdates": "false",
    "fastimport.unpacklimit": "50",
    "gc.auto": "0",
    "uploadpack.allowfilter": "false",
}


@value
class Place:
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


def run_home(home: str, *arguments: str, stdin: bytes | None = None, **variables: str) -> Output:
    """Run git on the home repository itself, with the user's settings but without hooks."""
    return run_git(
        *("-c", "core.hooksPath=/dev/null", "-c", "core.fsync=all", "-c", "gc.auto=0", "--git-dir", home),
        *arguments,
        cwd=home,
        stdin=stdin,
        limit_seconds=LIMIT_SECONDS,
        variables=variables,
    )


def told_home(home: str, *arguments: str, stdin: bytes | None = None, **variables: str) -> str:
    """What git answers on the home repository, where nothing but an answer will do.

    Raises:
        RepositoryError: git refused.
    """
    found = run_home(home, *arguments, stdin=stdin, **variables)
    if found.exit_code:
        raise git_failed(arguments, found)
    return found.text


def read_small(path: str, limit: int = _SMALL) -> bytes | None:
    """What an ordinary file holds; nothing for links, pipes and what is not there."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(handle, "rb") as file:
        return file.read(limit) if stat.S_ISREG(os.fstat(handle).st_mode) else None


class Shadow:
    """A git directory of ours over somebody's checkout."""

    def __init__(self, home: str, place: Place, folder: str) -> None:
        self.home = home
        self.place = place
        self.folder = folder
        self.settings: dict[str, str] = {}
        self.refs: dict[str, str] = read_refs(place.git_dir) if place.has_own_objects else {}
        self.branch, self.head = _read_head(home, place, self.refs)
        self.environment = sealed_environment(
            GIT_DIR=folder, GIT_WORK_TREE=place.root, GIT_INDEX_FILE=os.path.join(folder, "index")
        )

    @property
    def algorithm(self) -> str:
        """The name of the hash that objects are named by."""
        return self.settings.get("extensions.objectformat", "sha1")

    @property
    def zero(self) -> str:
        """The name that stands for no object."""
        return "0" * (64 if self.algorithm == "sha256" else 40)

    @property
    def index(self) -> str:
        """The copy of the checkout's index; there may be none."""
        return os.path.join(self.folder, "index")

    def run(self, *arguments: str, stdin: bytes | None = None) -> Output:
        return run_git(
            *arguments,
            cwd=self.place.root,
            stdin=stdin,
            limit_seconds=LIMIT_SECONDS,
            environment=self.environment,
        )

    def told(self, *arguments: str, stdin: bytes | None = None) -> str:
        """What git answers, where nothing but an answer will do.

        Raises:
            RepositoryError: git refused.
        """
        found = self.run(*arguments, stdin=stdin)
        if found.exit_code:
            raise git_failed(arguments, found)
        return found.text

    def stream(self, *arguments: str) -> Stream:
        return Stream(*arguments, cwd=self.place.root, environment=self.environment)

    def kinds_of(self, oids: Iterable[str]) -> dict[str, tuple[str, int]]:
        """The type and size of each of these objects that is there."""
        wanted = sorted(set(oids))
        if not wanted:
            return {}
        asked = "\n".join(wanted).encode() + b"\n"
        found = self.told("cat-file", "--batch-check", "--buffer", stdin=asked)
        rows = (line.split(" ") for line in found.splitlines())
        return {row[0]: (row[1], int(row[2])) for row in rows if len(row) == 3}

    def write_refs(self, refs: Mapping[str, str]) -> None:
        """Make these the refs of the shadow."""
        lines = [f"{oid} {name}\n" for name, oid in sorted(refs.items())]
        with open(os.path.join(self.folder, "packed-refs"), "w", encoding="utf-8") as file:
            file.write("# pack-refs with: sorted \n" + "".join(lines))


@contextlib.contextmanager
def open_shadow(home: str, place: Place) -> Generator[Shadow]:
    """A shadow over a checkout, for as long as it is looked at.

    Raises:
        RepositoryError: what the checkout says of itself cannot be read.
    """
    room = os.path.join(home, "interlock", "rescuing")
    os.makedirs(room, exist_ok=True)
    _sweep(room)
    folder = tempfile.mkdtemp(dir=room)
    lock = os.open(os.path.join(folder, "lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shadow = Shadow(home, place, folder)
        _furnish(shadow)
        yield shadow
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _sweep(room: str) -> None:
    """Remove what killed processes left behind: shadows that are old and that nobody holds."""
    for name in os.listdir(room):
        folder = os.path.join(room, name)
        with contextlib.suppress(OSError):
            if time.time() - os.stat(folder).st_mtime < _STALE_SECONDS:
                continue
            lock = os.open(os.path.join(folder, "lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _furnish(shadow: Shadow) -> None:
    folder, place = shadow.folder, shadow.place
    for name in ("objects/info", "objects/pack", "refs", "info"):
        os.makedirs(os.path.join(folder, name))
    shadow.settings = _settings(shadow.home, place)
    with open(os.path.join(folder, "HEAD"), "w", encoding="utf-8") as file:
        file.write(f"{shadow.head or 'ref: refs/heads/unborn'}\n")
    with open(os.path.join(folder, "config"), "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(_config_text(shadow.settings))
    if place.has_own_objects:
        stores = [os.path.join(place.git_dir, "objects")]
        if place.kind == CLONE:
            stores.append(os.path.join(shadow.home, "objects"))
        with open(os.path.join(folder, "objects", "info", "alternates"), "wb") as file:
            file.write(b"".join(to_bytes(quoted_store(store)) + b"\n" for store in stores))
    else:
        shadow.environment["GIT_OBJECT_DIRECTORY"] = os.path.join(shadow.home, "objects")
    _copy_index(shadow)
    common = place.git_dir if place.has_own_objects else shadow.home
    for source, name in ((common, "info/exclude"), (common, "shallow")):
        text = read_small(os.path.join(source, name))
        if text is not None:
            with open(os.path.join(folder, name), "wb") as file:
                file.write(text)


def _copy_index(shadow: Shadow) -> None:
    """Copy the index with its time: by it git knows which entries are too young to be trusted."""
    git_dir = shadow.place.git_dir
    shared = [name for name in os.listdir(git_dir) if name.startswith("sharedindex.")]
    for name in ("index", *shared):
        source = os.path.join(git_dir, name)
        with contextlib.suppress(FileNotFoundError):
            handle = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(handle, "rb") as file, open(os.path.join(shadow.folder, name), "wb") as copy:
                was = os.fstat(handle)
                shutil.copyfileobj(file, copy)
            os.utime(os.path.join(shadow.folder, name), ns=(was.st_atime_ns, was.st_mtime_ns))
    if shared and os.path.exists(shadow.index):
        # A split index means nothing without its other half, which would be gone when it is restored.
        was = os.stat(shadow.index)
        shadow.told("update-index", "--no-split-index")
        os.utime(shadow.index, ns=(was.st_atime_ns, was.st_mtime_ns))


def _settings(home: str, place: Place) -> dict[str, str]:
    found = told_home(home, "config", "--list", "-z").split("\0")
    pairs = (entry.partition("\n") for entry in found)
    settings = {name: text for name, _, text in pairs if name in _TAKEN_OVER}
    if place.kind == SUBMODULE:
        # Its objects may be named otherwise than those at home. With `--file` git only reads.
        config = os.path.join(place.git_dir, "config")
        asked = ("config", "--no-includes", "--file", config, "--get", "extensions.objectformat")
        settings["extensions.objectformat"] = run_home(home, *asked).text.strip() or "sha1"
    return settings


def _config_text(settings: dict[str, str]) -> str:
    is_plain = settings.get("extensions.objectformat", "sha1") == "sha1"
    lines = [f"[core]\n\trepositoryformatversion = {0 if is_plain else 1}\n"]
    for name, text in {**settings, **_OURS}.items():
        if name == "extensions.objectformat" and is_plain:
            continue
        section, _, key = name.partition(".")
        escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        lines.append(f'[{section}]\n\t{key} = "{escaped}"\n')
    return "".join(lines)


def quoted_store(path: str) -> str:
    """The path of an object store as git reads it from `alternates` and from its environment."""
    if not any(odd in path for odd in '\n":#'):
        return path
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _read_head(home: str, place: Place, refs: Mapping[str, str]) -> tuple[str, str]:
    """The branch a checkout is on, and its commit; either may be empty."""
    text = (read_small(os.path.join(place.git_dir, "HEAD")) or b"").decode("utf-8", "surrogateescape").strip()
    if not text.startswith("ref:"):
        if not is_oid(text):
            raise RepositoryError(
                f"the HEAD of {place.root} cannot be read",
                code="REPOSITORY_BROKEN",
                hint="`git fsck` and `git worktree repair` tell more",
            )
        return "", text
    branch = text.removeprefix("ref:").strip()
    if place.has_own_objects:
        return branch, refs.get(branch, "")
    return branch, run_home(home, "rev-parse", "--verify", "--quiet", f"{branch}^{{commit}}").text.strip()


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
