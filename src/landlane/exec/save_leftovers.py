"""Save what a command leaves in its throwaway clone and its scratch folder, before both are removed.

What it changed in the clone, and files that it put into its scratch folder to return them, become one rescue.
All its processes have ended by then, so the files do not change any more. Links are not followed.
"""

from __future__ import annotations

import os
import tempfile

from landlane.git.remove_checkout import is_folder
from landlane.git.run import resolve_revision, try_git_output
from landlane.git.snapshot import changes_between, take_snapshot
from landlane.git.worktree_files import TreeWriter
from landlane.rescue.save import locate_checkout, save_checkout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.repository import Repository
    from landlane.store.interface import Actor

CLONE_FOLDER = "checkout"  # the throwaway clone, in the scratch folder
# What programs keep there for themselves: temporary files, homes, settings of clients.
_PRIVATE = frozenset((CLONE_FOLDER, "tmp", "home", "run", "clients"))
_PATCH = "change.patch"
_MOVED_PREFIX = "left-in-scratch-"  # in the clone: files of the scratch folder


def save_leftovers(
    repo: Repository,
    session: Actor | None,
    scratch: str,
    *,
    base: str,
    reason: str,
    task: str = "",
    attempt: int = 0,
    without: Sequence[str] = (),
    has_scratch: bool = True,
    patch: str = "",
) -> str:
    """Save what was changed since `base` and return the rescue; empty when nothing was.

    `without` are files or folders that were taken over already. With `has_scratch`, the files in the scratch
    folder are saved as well, and so is a patch that was returned and not used.

    Raises:
        RepositoryError: it cannot be saved; nothing may be removed then.
        StoreError: the store is not available; the same holds.
    """
    clone = os.path.join(scratch, CLONE_FOLDER)
    if not is_folder(clone):
        return ""
    if patch:
        with TreeWriter(scratch) as writer:
            writer.replace(_PATCH, iter([patch.encode("utf-8", "surrogateescape")]), 0o600)
    if has_scratch or patch:
        _move_into_clone(scratch, clone)
    place = locate_checkout(repo, clone)
    before = (
        resolve_revision(repo.home, f"{base}^{{tree}}")
        if base
        else try_git_output(repo.home, "hash-object", "-t", "tree", "/dev/null")
    )
    changed = [one.path for one in changes_between(place, before, take_snapshot(place))]
    if all(any(path == one or path.startswith(f"{one}/") for one in without) for path in changed):
        return ""
    return save_checkout(repo, session, place, reason, force=True, task=task, attempt=attempt)


def _move_into_clone(scratch: str, clone: str) -> None:
    """Move the files of the scratch folder into a new folder of the clone, so that they are saved with it."""
    names = [name for name in os.listdir(scratch) if name not in _PRIVATE]
    if not names:
        return
    folder = tempfile.mkdtemp(prefix=_MOVED_PREFIX, dir=clone)  # new, so it is no link that leads elsewhere
    for name in names:
        os.rename(os.path.join(scratch, name), os.path.join(folder, name))
