"""Restore a rescue into a clean or new checkout."""

from __future__ import annotations

import contextlib
import json
import os

from landlane.errors import Malformed, RepositoryError
from landlane.git import create_checkout as checkouts
from landlane.git.discovery import HOME_POINTER
from landlane.git.remove_checkout import find_git_dir, is_folder, remove_checkout
from landlane.git.run import run_git, try_git_output
from landlane.git.untrusted_checkout import CLONE, UntrustedCheckout, home_git_output
from landlane.platform.file_users import processes_in
from landlane.rescue.at_risk import find_unsaved_work
from landlane.rescue.git_state import KEPT_REFS
from landlane.rescue.refs import FORM, RESCUE_REFS, Rescue, get_rescue
from landlane.rescue.restore_checkout import (
    RescueReader,
    RestoreTarget,
    restore_files,
    restore_index,
    restore_section,
)
from landlane.rescue.restore_submodules import restore_submodules
from landlane.rescue.save import locate_checkout
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.git.untrusted_checkout import UntrustedCheckout
    from landlane.repository import Repository
    from landlane.store.interface import Actor


@value
class RestoredFiles:
    """What was brought back, and what could not be."""

    id: str
    root: str
    head: str
    branch: str
    files: int
    notes: tuple[str, ...]


def restore_rescue(
    home: str, rescue_id: str, into: UntrustedCheckout, *, only_changes: bool = False
) -> RestoredFiles:
    """Make a clean checkout what the rescued one was: working tree, index, HEAD, operation in progress.

    With `only_changes` just files and index come back, into a checkout of which the caller knows that it
    stands on the same commit without changes: its refs, stash and submodules have gone on since.

    Raises:
        RepositoryError: there is no such rescue, or the checkout has work of its own.
    """
    rescue = get_rescue(home, rescue_id)
    if not only_changes and find_unsaved_work(home, into, kept_refs=(*KEPT_REFS, RESCUE_REFS.rstrip("/"))):
        raise RepositoryError(
            f"{into.root} has work of its own, which a restored rescue would overwrite",
            code="RESTORE_NOT_CLEAN",
            hint="restore into a fresh workspace, or commit and clean this one",
        )
    with RescueReader(home, rescue.commit) as blobs:
        contents = json.loads(b"".join(blobs.read("contents.json")))
        if contents["form"] != FORM:
            raise RepositoryError(
                f"the rescue {rescue_id} was made by another version of landlane",
                code="RESCUE_FORM",
                hint="restore it with the version that made it, or a newer one",
            )
        outer, *inner = contents["sections"]
        target = RestoreTarget(home, into)
        if into.kind == CLONE:
            _make_independent(target, rescue.commit)
        if only_changes:
            branch = ""
            restore_index(target, outer, blobs)
            restore_files(target, outer, blobs)
        else:
            branch = restore_section(target, outer, blobs)
        if inner and not only_changes:
            # Few checkouts have submodules.
            restore_submodules(target, inner, blobs)
    return RestoredFiles(
        id=rescue_id,
        root=into.root,
        head=rescue.head,
        branch=branch,
        files=sum(len(section["files"]) for section in contents["sections"]),
        notes=(*rescue.notes, *target.notes),
    )


def _make_independent(target: RestoreTarget, commit: str) -> None:
    """Give a clone its own copy of what only the rescue keeps, so that dropping the rescue harms nobody."""
    listed = home_git_output(target.home, "for-each-ref", "--format=%(objectname)", *KEPT_REFS).split()
    folders = home_git_output(target.home, "ls-tree", "--name-only", commit, "staged", "trees").split()
    asked = [f"{commit}^@", *(f"{commit}:{folder}" for folder in folders), "--not", *listed]
    store = os.path.join(target.place.git_dir, "objects", "pack", "pack")
    target.git_output(
        "pack-objects", "--quiet", "--revs", "--non-empty", store, stdin="\n".join(asked).encode() + b"\n"
    )


_DETACHED = "rescue-"


@value
class Restored:
    """Where saved work is now, and what could not be as it was."""

    rescue: Rescue
    path: str
    notes: tuple[str, ...]


def restore(repo: Repository, session: Actor, rescue_id: str, into: str, folder: str) -> Restored:
    """Bring saved work back into a clean checkout, or into a new one below `folder`.

    Raises:
        RepositoryError: there is no such rescue, or the checkout has work of its own.
    """
    rescue = get_rescue(repo.common_dir, rescue_id)
    path = os.path.realpath(into) if into else os.path.join(folder, f"{_DETACHED}{rescue_id}")
    if not into:
        _clear_leftover(repo, rescue, path)
    is_new = _take_path(repo, path)
    if not is_new and not into:
        raise Malformed(
            f"{path} is there already",
            code="PATH_TAKEN",
            hint="name another folder with --into, or remove that one",
        )
    try:
        if is_new:
            _make_room(repo, rescue, path)
        elif _head_of(path) != rescue.head and rescue.head:
            _go_to(repo, path, rescue.head)
        restored = restore_rescue(repo.common_dir, rescue_id, locate_checkout(repo, path))
    except BaseException:
        if is_new:  # half of it would look like all of it, and would be in the way of the next try
            with contextlib.suppress(RepositoryError, OSError):
                remove_checkout(repo.home, path)
        raise
    repo.change(
        lambda tx: tx.record(
            "rescue.restored", session.agent, session.id, {"rescue": rescue_id, "path": path}
        )
    )
    return Restored(rescue=rescue, path=path, notes=tuple(restored.notes))


def _take_path(repo: Repository, path: str) -> bool:
    """Make an empty folder, so that of two who restore at once only one takes away what it made."""
    if not os.path.lexists(path) and find_git_dir(repo.home, path):
        raise RepositoryError(
            f"git still knows a worktree at {path}, whose folder is gone",
            code="PATH_TAKEN",
            hint="name another folder with --into, or let git forget it: git worktree prune",
        )
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        os.mkdir(path)
    except FileExistsError:
        return False
    return True


def _clear_leftover(repo: Repository, rescue: Rescue, path: str) -> None:
    """Remove what an earlier restoring left at its own place, if nobody is there and nothing is at stake."""
    if os.path.islink(path) or not os.path.isdir(path) or processes_in(path):
        return
    git_dir = find_git_dir(repo.home, path)
    is_clone = is_folder(os.path.join(path, ".git"))
    if is_clone and not os.path.isfile(os.path.join(git_dir, HOME_POINTER)):
        return
    names = os.listdir(path)
    has_nothing = not names
    if names == [".git"] and git_dir and not os.path.lexists(os.path.join(git_dir, "index")):
        has_nothing = _head_of(path) in {"", rescue.head}  # it was cut off before its files were written
    if not has_nothing and git_dir:
        try:
            kept = (*KEPT_REFS, RESCUE_REFS.rstrip("/"))
            has_nothing = not find_unsaved_work(repo.common_dir, locate_checkout(repo, path), kept_refs=kept)
        except RepositoryError:
            return
    if has_nothing:
        remove_checkout(repo.home, path)


def _make_room(repo: Repository, rescue: Rescue, path: str) -> None:
    """A fresh checkout at the commit that the saved work was based on."""
    if rescue.kind == CLONE or not rescue.head:
        checkouts.add_detached_clone(repo.home, path, rescue.head, rescue.ref)
    else:
        checkouts.add_detached_worktree(repo.home, path, rescue.head)
    if rescue.head:
        checkouts.write_files(path)


def _head_of(path: str) -> str:
    found = run_git("rev-parse", "--verify", "--quiet", "HEAD^{commit}", cwd=path)
    return found.stdout.strip()


def _go_to(repo: Repository, path: str, head: str) -> None:
    """Stand a clean checkout on the commit that the saved work was based on."""
    place = locate_checkout(repo, path)
    if find_unsaved_work(repo.common_dir, place):
        raise RepositoryError(
            f"{path} has work of its own, which must not be mixed with what comes back",
            code="CHECKOUT_DIRTY",
            hint="commit it or put it aside (landlane stash save), or restore into a new folder with --into",
        )
    if place.kind == CLONE and not try_git_output(checkouts.clone_at(path), "cat-file", "-t", head):
        run_git("fetch", "--quiet", "--no-tags", "home", head, cwd=path)
    found = run_git("checkout", "--quiet", "--detach", head, cwd=path)
    if found.exit_code:
        raise RepositoryError(
            f"{path} cannot go to {head[:12]}: {found.stderr[-300:]}",
            code="GIT_FAILED",
            hint="restore elsewhere: --into",
        )
