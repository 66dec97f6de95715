"""A private git directory over a checkout, so that nothing in the checkout can make git run a command.

The settings of a checkout may name programs (a file monitor, filters, hooks), and an agent that works there
may have written them. So git never reads them. It gets a git directory of ours with the few settings that
decide how files are compared, an index of its own, and the object stores to read from. The checkout itself is
not changed, not even the times in its index.

`open_temporary` makes one that is used once; `snapshot_dir` keeps one from one snapshot to the next.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time

from landlane.errors import RepositoryError
from landlane.files import make_folder_beside, write_atomically
from landlane.git.run import GitResult, GitStream, git_failed, run_git
from landlane.git.untrusted_checkout import (
    BIG_FILE,
    LIMIT_SECONDS,
    SUBMODULE,
    UntrustedCheckout,
    copy_index,
    home_git_output,
    is_oid,
    quote_alternate,
    read_all_refs,
    read_small,
    run_home_git,
    sealed_environment,
    setting_line,
    to_bytes,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

_STALE_SECONDS = 3600.0
# These say how files are compared and which are ignored; none of them can name a program.
COMPARING_SETTINGS = (
    *("core.filemode", "core.symlinks", "core.ignorecase", "core.precomposeunicode", "core.excludesfile"),
    *("core.sharedrepository", "extensions.objectformat"),
)
_CONVERTING_SETTINGS = ("core.autocrlf", "core.eol", "core.attributesfile")
OWN_SETTINGS = {
    "core.bare": "false",
    "core.bigfilethreshold": BIG_FILE,
    "core.fsmonitor": "false",
    "core.hookspath": "/dev/null",
    "core.quotepath": "false",
    "core.logallrefupdates": "false",
    "gc.auto": "0",
    "uploadpack.allowfilter": "false",
}
# One pass over the data, little memory, and on the disk before anything that it saves is deleted.
_TEMPORARY_SETTINGS = {
    **OWN_SETTINGS,
    "core.fsync": "all",
    "core.compression": "1",
    "core.untrackedcache": "false",
    "fastimport.unpacklimit": "50",
}


class PrivateGitDir:
    """A git directory of ours over a checkout."""

    def __init__(self, checkout: UntrustedCheckout, folder: str, **variables: str) -> None:
        self.checkout = checkout
        self.home = checkout.home
        self.folder = folder
        self.index = self.path("index")
        self.settings: dict[str, str] = {}
        self.environment = sealed_environment(
            GIT_DIR=folder, GIT_WORK_TREE=checkout.root, GIT_INDEX_FILE=self.index, **variables
        )

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    @property
    def algorithm(self) -> str:
        """The hash that objects are named by."""
        return self.settings.get("extensions.objectformat", "sha1")

    @property
    def zero(self) -> str:
        """The id that stands for no object."""
        return "0" * (64 if self.algorithm == "sha256" else 40)

    def run(self, *arguments: str, stdin: bytes | None = None, **variables: str) -> GitResult:
        return run_git(
            *arguments,
            cwd=self.checkout.root,
            stdin=stdin,
            limit_seconds=LIMIT_SECONDS,
            environment={**self.environment, **variables},
        )

    def git_output(self, *arguments: str, stdin: bytes | None = None, **variables: str) -> str:
        """Return what git prints.

        Raises:
            RepositoryError: git failed.
        """
        result = self.run(*arguments, stdin=stdin, **variables)
        if result.exit_code:
            raise git_failed(arguments, result)
        return result.stdout

    def stream(self, *arguments: str) -> GitStream:
        return GitStream(*arguments, cwd=self.checkout.root, environment=self.environment)

    def kinds_of(self, oids: Iterable[str]) -> dict[str, tuple[str, int]]:
        """Return the type and size of each of these objects that exists."""
        wanted = sorted(set(oids))
        if not wanted:
            return {}
        asked = "\n".join(wanted).encode() + b"\n"
        listed = self.git_output("cat-file", "--batch-check", "--buffer", stdin=asked)
        fields = (line.split(" ") for line in listed.splitlines())
        return {oid: (kind, int(size)) for oid, kind, size in (some for some in fields if len(some) == 3)}

    def make_folders(self) -> None:
        for name in ("objects/info", "objects/pack", "refs", "info"):
            os.makedirs(self.path(name), exist_ok=True)

    def configure(self, kept: Sequence[str], own: Mapping[str, str], copied: Sequence[str]) -> None:
        """Write the config (the repository's settings and our own), the object stores, and copied files."""
        checkout = self.checkout
        listed = home_git_output(self.home, "config", "--list", "-z").split("\0")
        pairs = (entry.partition("\n") for entry in listed)
        self.settings = {name: text for name, _, text in pairs if name in kept}
        if checkout.kind == SUBMODULE:
            # Its hash may differ from that of the outer repository. With `--file` git only reads.
            config = os.path.join(checkout.git_dir, "config")
            words = ("config", "--no-includes", "--file", config, "--get", "extensions.objectformat")
            algorithm = run_home_git(self.home, *words).stdout.strip()
            self.settings["extensions.objectformat"] = algorithm or "sha1"
        write_atomically(self.path("config"), _config_text({**self.settings, **own}))
        stores = [] if checkout.kind == SUBMODULE else [os.path.join(self.home, "objects")]
        if checkout.has_own_objects:
            stores.append(os.path.join(checkout.git_dir, "objects"))
        alternates = b"".join(to_bytes(quote_alternate(store)) + b"\n" for store in stores)
        write_atomically(self.path("objects/info/alternates"), alternates)
        for name in copied:
            text = read_small(os.path.join(checkout.common_dir, name))
            if text is not None:
                write_atomically(self.path(name), text)
            else:
                remove_file(self.path(name))

    def copy_index(self) -> None:
        """Copy the checkout's index.

        Raises:
            RepositoryError: it cannot be read.
        """
        git_dir = self.checkout.git_dir
        shared = [name for name in os.listdir(git_dir) if name.startswith("sharedindex.")]
        for name in ("index", *shared):
            try:
                copy_index(os.path.join(git_dir, name), self.path(name))
            except FileNotFoundError:
                continue
            except OSError as error:
                raise RepositoryError(
                    f"the index {os.path.join(git_dir, name)} cannot be read: {error.strerror}",
                    code="RESCUE_UNREADABLE",
                    hint="make it readable, or remove it, and try again",
                ) from error
        if shared and os.path.exists(self.index):
            # A split index is useless without its other half, which would be gone when it is restored.
            before = os.stat(self.index)
            self.git_output("update-index", "--no-split-index")
            os.utime(self.index, ns=(before.st_atime_ns, before.st_mtime_ns))


class TemporaryGitDir(PrivateGitDir):
    """A private git directory that is used once, with the refs and HEAD that the checkout had."""

    def __init__(self, checkout: UntrustedCheckout, folder: str) -> None:
        super().__init__(checkout, folder)
        self.refs = read_all_refs(checkout.git_dir) if checkout.has_own_objects else {}
        self.branch, self.head = read_head(checkout)
        if not self.branch and not self.head:
            raise RepositoryError(
                f"the HEAD of {checkout.root} cannot be read",
                code="REPOSITORY_BROKEN",
                hint="`git fsck` and `git worktree repair` tell more",
            )
        self.make_folders()
        copied = ("info/exclude", "info/attributes", "shallow")
        self.configure((*COMPARING_SETTINGS, *_CONVERTING_SETTINGS), _TEMPORARY_SETTINGS, copied)
        write_atomically(self.path("HEAD"), f"{self.head or 'ref: refs/heads/unborn'}\n")
        if not checkout.has_own_objects:  # what is written must reach the repository itself
            self.environment["GIT_OBJECT_DIRECTORY"] = os.path.join(self.home, "objects")
        self.copy_index()

    def replace_index(self) -> None:
        """Replace an index that git cannot read by that of the commit; every file is compared then.

        Raises:
            RepositoryError: git cannot read the commit either.
        """
        remove_file(self.index)
        self.git_output("read-tree", self.head or "--empty")

    def write_refs(self, refs: Mapping[str, str]) -> None:
        """Replace the refs of this git directory."""
        lines = [f"{oid} {name}\n" for name, oid in sorted(refs.items())]
        write_atomically(self.path("packed-refs"), "# pack-refs with: sorted \n" + "".join(lines))


@contextlib.contextmanager
def open_temporary(checkout: UntrustedCheckout) -> Generator[TemporaryGitDir]:
    """Make a private git directory over a checkout, and remove it afterwards.

    Raises:
        RepositoryError: the checkout, its HEAD or its index cannot be read.
    """
    check_exists(checkout)
    parent = os.path.join(checkout.home, "landlane", "rescuing")
    os.makedirs(os.path.dirname(parent), mode=0o700, exist_ok=True)
    make_folder_beside(parent)
    _remove_stale(parent)
    folder = os.path.join(parent, f"{os.getpid()}-{time.time_ns()}")
    os.mkdir(folder, 0o700)
    lock = open_lock(folder)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield TemporaryGitDir(checkout, folder)
    finally:
        _remove_folder(folder)
        os.close(lock)


def check_exists(checkout: UntrustedCheckout) -> None:
    """Refuse a checkout whose folder or git directory is gone.

    Raises:
        RepositoryError: one of them is.
    """
    if not os.path.isdir(checkout.root) or not os.path.isdir(checkout.git_dir):
        raise RepositoryError(
            f"the checkout at {checkout.root} is gone, or its git directory is",
            code="CHECKOUT_GONE",
            hint="list the worktrees: git worktree list",
        )


def open_lock(folder: str) -> int:
    """Open the lock file of a private git directory."""
    return os.open(os.path.join(folder, "lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)


def remove_file(path: str) -> None:
    """Remove a file if it exists."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _remove_folder(path: str) -> None:
    import shutil  # noqa: PLC0415 - expensive, and hooks import this module

    shutil.rmtree(path, ignore_errors=True)


def _remove_stale(parent: str) -> None:
    """Remove the old directories that killed processes left behind."""
    for name in os.listdir(parent):
        folder = os.path.join(parent, name)
        with contextlib.suppress(OSError):
            if time.time() - os.stat(folder).st_mtime < _STALE_SECONDS:
                continue
            lock = open_lock(folder)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove_folder(folder)
            finally:
                os.close(lock)


def _config_text(settings: Mapping[str, str]) -> bytes:
    is_sha1 = settings.get("extensions.objectformat", "sha1") == "sha1"
    lines = [f"[core]\n\trepositoryformatversion = {0 if is_sha1 else 1}\n"]
    lines += (
        setting_line(name, text)
        for name, text in settings.items()
        if name != "extensions.objectformat" or not is_sha1
    )
    return to_bytes("".join(lines))


def read_head(checkout: UntrustedCheckout) -> tuple[str, str]:
    """Return the branch that a checkout is on, and its commit; each may be empty."""
    text = _read_text(os.path.join(checkout.git_dir, "HEAD"))
    if not text.startswith("ref:"):
        return "", text if is_oid(text) else ""
    branch = text.removeprefix("ref:").strip()
    loose = _read_text(os.path.join(checkout.common_dir, branch))
    if is_oid(loose):
        return branch, loose
    if checkout.has_own_objects:
        return branch, read_all_refs(checkout.git_dir).get(branch, "")
    words = ("rev-parse", "--verify", "--quiet", f"{branch}^{{commit}}")
    return branch, run_home_git(checkout.home, *words).stdout.strip()


def _read_text(path: str) -> str:
    return (read_small(path) or b"").decode("utf-8", "surrogateescape").strip()
