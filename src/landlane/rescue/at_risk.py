"""What would be lost if a checkout were deleted now: files, a half-done operation, commits, submodules."""

from __future__ import annotations

import contextlib
import os

from landlane.errors import RepositoryError
from landlane.git.discovery import checkout_at
from landlane.git.private_dir.temporary import open_shadow
from landlane.git.untrusted_checkout import SUBMODULE, UntrustedCheckout
from landlane.rescue.find_unsaved import find_unsaved
from landlane.rescue.git_state import KEPT_REFS, commits_missing_at, read_state
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from landlane.git.private_dir.temporary import Shadow
    from landlane.rescue.find_unsaved import UnsavedFiles
    from landlane.rescue.git_state import GitDirState


@value
class UnsavedWork:
    """What a checkout has that is nowhere else."""

    modified: int
    staged: int
    untracked: int
    deleted: int
    operation: str
    unpushed_commits: int
    stash_entries: int
    dirty_submodules: int
    empty_folders: int

    @property
    def has_operation_in_progress(self) -> bool:
        """Whether a merge, rebase or the like is half done."""
        return bool(self.operation)

    @property
    def has_changes(self) -> bool:
        """Whether its own files or its index differ from HEAD; submodules are checkouts of their own."""
        return bool(self.modified or self.staged or self.untracked or self.deleted)

    def __bool__(self) -> bool:
        """Whether anything would be lost. Empty folders alone are no work."""
        counts = (self.modified, self.staged, self.untracked, self.deleted, self.unpushed_commits)
        return bool(self.operation or any(counts) or self.stash_entries or self.dirty_submodules)


class CheckoutScan:
    """One look at a checkout and, below it, at its submodules; `path` is where it lies in the outermost."""

    def __init__(self, shadow: Shadow, path: str, gitlink: str) -> None:
        self.shadow = shadow
        self.path = path
        self.gitlink = gitlink
        self.survey: UnsavedFiles = find_unsaved(shadow)
        self.state: GitDirState = read_state(shadow)
        self.submodules: list[CheckoutScan] = []
        self.notes: list[str] = []

    def commits(self) -> list[str]:
        """The commits that HEAD, own refs and the stash stand on."""
        wanted = [self.shadow.head, *(oid for _, oid in self.state.refs), *self.state.stashed]
        found = self.shadow.kinds_of(oid for oid in wanted if oid)
        return [oid for oid in wanted if found.get(oid, ("", 0))[0] in {"commit", "tag"}]

    def is_dirty(self) -> bool:
        """Whether a submodule has anything that its remote and the outer commit do not have."""
        seen = self.survey
        is_touched = seen.modified or seen.staged or seen.untracked or seen.removed
        is_moved = self.shadow.head != self.gitlink
        lone = commits_missing_at(self.shadow, self.commits())
        return bool(
            is_touched
            or is_moved
            or self.state.operation
            or lone is None
            or lone
            or any(inner.is_dirty() for inner in self.submodules)
        )


@contextlib.contextmanager
def scan_checkout(
    home: str, place: UntrustedCheckout, path: str = "", gitlink: str = ""
) -> Generator[CheckoutScan]:
    """Look at a checkout with all its submodules.

    Raises:
        RepositoryError: something in it cannot be read.
    """
    with contextlib.ExitStack() as stack:
        look = CheckoutScan(stack.enter_context(open_shadow(home, place)), path, gitlink)
        for inner, oid in look.survey.submodules:
            found = _submodule_at(home, place, inner)
            if isinstance(found, UntrustedCheckout):
                full = f"{path}/{inner}" if path else inner
                look.submodules.append(stack.enter_context(scan_checkout(home, found, full, oid)))
            elif found:
                look.notes.append(found)
        yield look


def _submodule_at(home: str, place: UntrustedCheckout, path: str) -> UntrustedCheckout | str | None:
    """The submodule at a path, if it is initialised; or why it is not looked at."""
    root = os.path.join(place.root, path)
    if os.path.realpath(root) != os.path.join(os.path.realpath(place.root), path):
        return f"{path}: a link stands where the submodule was"
    try:
        found = checkout_at(root)
    except RepositoryError as error:
        return f"{path}: {error.message}"
    if found is None:
        return None
    # A `.git` file can point anywhere; only what belongs to this repository is looked into.
    owners = [os.path.realpath(owner) for owner in (place.git_dir, home, root)]
    if not any(found.git_dir.startswith(owner.rstrip("/") + "/") for owner in owners):
        return f"{path}: its git directory lies outside of the repository"
    return UntrustedCheckout(root=root, git_dir=found.git_dir, kind=SUBMODULE)


def count_unsaved(
    look: CheckoutScan, kept_refs: Sequence[str] = KEPT_REFS, lost_refs: Sequence[str] = ()
) -> UnsavedWork:
    """What a look has found."""
    missing = commits_missing_at(look.shadow, look.commits(), kept_refs, lost_refs)
    return UnsavedWork(
        modified=look.survey.modified,
        staged=look.survey.staged,
        untracked=look.survey.untracked,
        deleted=look.survey.removed,
        operation=look.state.operation,
        # A damaged history cannot be counted; something is at stake for sure.
        unpushed_commits=1 if missing is None else len(missing),
        stash_entries=len(look.state.stashed),
        dirty_submodules=sum(inner.is_dirty() for inner in look.submodules),
        empty_folders=len(look.survey.empty_folders),
    )


def find_unsaved_work(
    home: str,
    place: UntrustedCheckout,
    *,
    kept_refs: Sequence[str] = KEPT_REFS,
    lost_refs: Sequence[str] = (),
) -> UnsavedWork:
    """What would be lost with a checkout, as a value that is true when there is anything.

    A commit that a ref below `kept_refs` leads to is safe, unless that ref is one of `lost_refs`, which are
    about to be deleted.

    Raises:
        RepositoryError: something in the checkout cannot be read.
    """
    with scan_checkout(home, place) as look:
        return count_unsaved(look, kept_refs, lost_refs)
