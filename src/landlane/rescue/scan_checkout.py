"""Scan a checkout for what would be lost with it: files, an unfinished operation, commits, submodules."""

from __future__ import annotations

import contextlib
import os
import re

from landlane.errors import RepositoryError
from landlane.git.discovery import checkout_at
from landlane.git.private_git_dir import TemporaryGitDir, open_temporary
from landlane.git.untrusted_checkout import (
    CLONE,
    MAIN,
    SUBMODULE,
    UntrustedCheckout,
    quote_alternate,
    read_small,
    run_home_git,
)
from landlane.rescue.find_unsaved import find_unsaved
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

STASH = "refs/stash"
KEPT_REFS = ("refs/heads", "refs/remotes", "refs/tags")
_HEAD_LOG = "logs/HEAD"
_STATE_FILES = (
    "HEAD",
    "ORIG_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "AUTO_MERGE",
    "SQUASH_MSG",
)
_STATE_PREFIXES = ("MERGE_", "BISECT_", "NOTES_MERGE_")
_STATE_FOLDERS = (
    "rebase-merge",
    "rebase-apply",
    "sequencer",
    "refs/bisect",
    "refs/worktree",
    "refs/rewritten",
)
_OTHER_FILES = ("info/sparse-checkout", "config.worktree", _HEAD_LOG, "logs/refs/stash")
_OID = re.compile(rb"(?<![0-9a-f])(?:[0-9a-f]{64}|[0-9a-f]{40})(?![0-9a-f])")


@value
class UnsavedWork:
    """What a checkout has that is nowhere else, as counts."""

    modified: int
    staged: int
    untracked: int
    deleted: int
    operation: str
    unpushed_commits: int
    stash_entries: int
    dirty_submodules: int

    @property
    def has_changes(self) -> bool:
        """Whether its own files or its index differ from HEAD; submodules are checkouts of their own."""
        return bool(self.modified or self.staged or self.untracked or self.deleted)

    def __bool__(self) -> bool:
        """Whether anything would be lost; empty folders do not count."""
        return bool(
            self.has_changes
            or self.operation
            or self.unpushed_commits
            or self.stash_entries
            or self.dirty_submodules
        )


class CheckoutScan:
    """A scan of a checkout and of its submodules; `path` is the path in the outermost checkout."""

    def __init__(self, private: TemporaryGitDir, path: str, gitlink: str) -> None:
        self.private = private
        self.path = path
        self.gitlink = gitlink
        self.unsaved = find_unsaved(private)
        self.state = read_state(private)
        self.submodules: list[CheckoutScan] = []
        self.notes: list[str] = []

    def commits(self) -> list[str]:
        """Return the commits of HEAD, own refs and the stash."""
        wanted = [self.private.head, *(oid for _, oid in self.state.refs), *self.state.stashed]
        kinds = self.private.kinds_of(oid for oid in wanted if oid)
        return [oid for oid in wanted if kinds.get(oid, ("", 0))[0] in {"commit", "tag"}]

    def logged_commits(self) -> list[str]:
        """Return the commits that reflogs and files such as ORIG_HEAD name; in a clone also loose ones."""
        kinds = self.private.kinds_of((*self.state.logged, *self.state.mentioned))
        return [oid for oid, (kind, _) in kinds.items() if kind == "commit"]

    def is_dirty(self) -> bool:
        """Return whether a submodule has anything that its remote and the outer commit do not have."""
        unsaved = self.unsaved
        if unsaved.modified or unsaved.staged or unsaved.untracked or unsaved.removed:
            return True
        if self.private.head != self.gitlink or self.state.operation:
            return True
        missing = find_missing_commits(self.private, self.commits())
        return missing is None or bool(missing) or any(inner.is_dirty() for inner in self.submodules)


@contextlib.contextmanager
def scan_checkout(checkout: UntrustedCheckout, path: str = "", gitlink: str = "") -> Generator[CheckoutScan]:
    """Scan a checkout with all its submodules.

    Raises:
        RepositoryError: something in it cannot be read.
    """
    with contextlib.ExitStack() as stack:
        scan = CheckoutScan(stack.enter_context(open_temporary(checkout)), path, gitlink)
        for inner, oid in scan.unsaved.submodules:
            submodule = _find_submodule(checkout, inner)
            if isinstance(submodule, UntrustedCheckout):
                full = f"{path}/{inner}" if path else inner
                scan.submodules.append(stack.enter_context(scan_checkout(submodule, full, oid)))
            elif submodule:
                scan.notes.append(submodule)
        yield scan


def _find_submodule(checkout: UntrustedCheckout, path: str) -> UntrustedCheckout | str | None:
    """Return the submodule at a path, if it is initialised; or why it is not scanned."""
    root = os.path.join(checkout.root, path)
    if os.path.realpath(root) != os.path.join(os.path.realpath(checkout.root), path):
        return f"{path}: a link stands where the submodule was"
    try:
        inner = checkout_at(root)
    except RepositoryError as error:
        return f"{path}: {error.message}"
    if inner is None:
        return None
    # A `.git` file can point anywhere; only a git directory of this repository is used.
    owners = [os.path.realpath(owner) for owner in (checkout.git_dir, checkout.home, root)]
    if not any(inner.git_dir.startswith(owner.rstrip("/") + "/") for owner in owners):
        return f"{path}: its git directory lies outside of the repository"
    return UntrustedCheckout(root=root, git_dir=inner.git_dir, kind=SUBMODULE, home=checkout.home)


def count_unsaved(scan: CheckoutScan, kept_refs: Sequence[str] = KEPT_REFS) -> UnsavedWork:
    """Return the result of a scan."""
    commits = scan.commits()
    if scan.private.checkout.kind != MAIN:  # the main checkout stays, and so does its reflog
        commits += scan.logged_commits()
    missing = find_missing_commits(scan.private, commits, kept_refs)
    return UnsavedWork(
        modified=scan.unsaved.modified,
        staged=scan.unsaved.staged,
        untracked=scan.unsaved.untracked,
        deleted=scan.unsaved.removed,
        operation=scan.state.operation,
        # A damaged history cannot be counted; treat it as work that would be lost.
        unpushed_commits=1 if missing is None else len(missing),
        stash_entries=len(scan.state.stashed),
        dirty_submodules=sum(inner.is_dirty() for inner in scan.submodules),
    )


def find_unsaved_work(checkout: UntrustedCheckout, *, kept_refs: Sequence[str] = KEPT_REFS) -> UnsavedWork:
    """Return what would be lost with a checkout; the result is true when there is anything.

    Commits that a ref below `kept_refs` leads to are safe.

    Raises:
        RepositoryError: something in the checkout cannot be read.
    """
    with scan_checkout(checkout) as scan:
        return count_unsaved(scan, kept_refs)


@value
class GitDirState:
    """The files that matter in a checkout's git directory, the refs that only it has, and the ids in them."""

    operation: str
    files: tuple[tuple[str, bytes], ...]
    refs: tuple[tuple[str, str], ...]
    mentioned: tuple[str, ...]
    logged: tuple[str, ...]
    stashed: tuple[str, ...]


def is_state_path(path: str) -> bool:
    """Return whether a path within a git directory is one that a rescue may restore."""
    parts = path.split("/")
    if any(part in {"", ".", ".."} for part in parts):
        return False
    is_top = len(parts) == 1 and (path in _STATE_FILES or path.startswith(_STATE_PREFIXES))
    return is_top or path in _OTHER_FILES or path.startswith(tuple(f"{name}/" for name in _STATE_FOLDERS))


def operation_in_progress(git_dir: str) -> str:
    """Return the name of the unfinished operation of a checkout, if any."""

    def has(name: str) -> bool:
        return os.path.lexists(os.path.join(git_dir, name))

    if has("rebase-apply"):
        return "am" if has("rebase-apply/applying") else "rebase"
    for marker, name in (
        ("rebase-merge", "rebase"),
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
        ("sequencer/todo", "cherry-pick"),
        ("BISECT_START", "bisect"),
    ):
        if has(marker):
            return name
    return ""


def read_state(private: TemporaryGitDir) -> GitDirState:
    """Read the state in a checkout's git directory."""
    checkout = private.checkout
    files = {
        path: text
        for path in _list_state(checkout)
        if (text := read_small(os.path.join(checkout.git_dir, path))) is not None
    }
    refs = _own_refs(private) if checkout.has_own_objects else {}
    texts = [text for path, text in files.items() if path not in {"config.worktree", _HEAD_LOG}]
    mentioned = {oid.decode() for text in texts for oid in _OID.findall(text)} - {private.zero}
    logged = {oid.decode() for oid in _OID.findall(files.get(_HEAD_LOG, b""))}
    if checkout.kind == CLONE:  # its other reflogs and its objects go with it
        logged |= set(_read_branch_logs(checkout.git_dir)) | set(_loose_objects(checkout.git_dir))
    logged.discard(private.zero)
    log = files.get("logs/refs/stash", b"") if checkout.has_own_objects else b""
    stashed = [line.split(b" ")[1].decode() for line in log.splitlines() if line.count(b" ") > 1]
    if not stashed and STASH in refs:
        stashed = [refs[STASH]]
    return GitDirState(
        operation=operation_in_progress(checkout.git_dir),
        files=tuple(files.items()),
        refs=tuple(sorted(refs.items())),
        mentioned=tuple(sorted(mentioned)),
        logged=tuple(sorted(logged - mentioned)),
        stashed=tuple(stashed),
    )


def _read_branch_logs(git_dir: str) -> Iterator[str]:
    """Return the ids in all reflogs of a clone except that of HEAD."""
    for folder, _, names in os.walk(os.path.join(git_dir, "logs", "refs")):
        for name in names:
            text = read_small(os.path.join(folder, name))
            yield from (oid.decode() for oid in _OID.findall(text or b""))


def _loose_objects(git_dir: str) -> Iterator[str]:
    """Return the objects that a clone has outside of packs, such as a commit of a stash that was dropped."""
    objects = os.path.join(git_dir, "objects")
    for folder in os.listdir(objects) if os.path.isdir(objects) else ():
        inside = os.path.join(objects, folder)
        if len(folder) == 2 and os.path.isdir(inside):
            yield from (folder + name for name in os.listdir(inside) if len(name) in (38, 62))


def _list_state(checkout: UntrustedCheckout) -> Iterator[str]:
    for name in sorted(os.listdir(checkout.git_dir)):
        if name in _STATE_FILES or name.startswith(_STATE_PREFIXES):
            yield name
    for name in _OTHER_FILES:
        # Only clones and submodules have a stash of their own.
        if name != "logs/refs/stash" or checkout.has_own_objects:
            yield name
    for folder in _STATE_FOLDERS:
        for inside, _, names in os.walk(os.path.join(checkout.git_dir, folder)):
            for name in sorted(names):
                yield os.path.relpath(os.path.join(inside, name), checkout.git_dir)


def _own_refs(private: TemporaryGitDir) -> dict[str, str]:
    """Return the refs of a clone or submodule that the repository lacks, or has elsewhere."""
    known: dict[str, str] = {}
    if private.checkout.kind == CLONE:
        listed = run_home_git(private.home, "for-each-ref", "--format=%(objectname) %(refname)").stdout
        known = {name: oid for oid, _, name in (line.partition(" ") for line in listed.splitlines())}
    foreign = ("refs/remotes/", "refs/landlane/", "refs/bisect/", "refs/worktree/", "refs/rewritten/")
    return {
        name: oid
        for name, oid in private.refs.items()
        if known.get(name) != oid and not name.startswith(foreign)
    }


def find_missing_commits(
    private: TemporaryGitDir,
    commits: Iterable[str],
    kept: Sequence[str] = KEPT_REFS,
    without: str = "",
    *known: str,
) -> list[str] | None:
    """Return the history of these commits that no kept ref contains; None when a commit is damaged.

    The ref `without` keeps nothing; `known` are commits that are safe.
    """
    wanted = list(dict.fromkeys(commits))
    if not wanted:
        return []
    arguments = ["rev-list", "--stdin", "--not", *known]
    if private.checkout.kind == SUBMODULE:
        # The commits of a remote-tracking ref are also in the remote.
        remote = {oid for name, oid in private.refs.items() if name.startswith("refs/remotes/")}
        wanted += [f"^{oid}" for oid in remote]
        result = private.run(*arguments, stdin="\n".join(wanted).encode() + b"\n")
    else:
        for prefix in kept:
            arguments += [*([f"--exclude={without}"] if without else []), f"--glob={prefix}"]
        variables: dict[str, str] = {}
        if private.checkout.has_own_objects:
            store = quote_alternate(os.path.join(private.checkout.git_dir, "objects"))
            variables["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = store
        stdin = "\n".join(wanted).encode() + b"\n"
        result = run_home_git(private.home, *arguments, stdin=stdin, **variables)
    return None if result.exit_code else result.stdout.split()
