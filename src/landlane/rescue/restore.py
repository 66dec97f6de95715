"""Restore a rescue into a clean or new checkout."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os

from landlane.errors import Held, Malformed, RepositoryError
from landlane.git import create_checkout as checkouts
from landlane.git.discovery import HOME_POINTER
from landlane.git.remove_checkout import find_git_dir, is_folder, remove_checkout
from landlane.git.run import run_git, try_git_output
from landlane.git.untrusted_checkout import CLONE, UntrustedCheckout, home_git_output
from landlane.platform.file_users import processes_in
from landlane.rescue.refs import FORM, RESCUE_REFS, Rescue, get_rescue
from landlane.rescue.restore_checkout import (
    RescueReader,
    RestoreTarget,
    restore_files,
    restore_index,
    restore_section,
    restore_submodules,
)
from landlane.rescue.save import locate_checkout, save_checkout
from landlane.rescue.scan_checkout import KEPT_REFS, find_unsaved_work
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.store.interface import Actor

_DETACHED = "rescue-"
_NEW, _EXISTING = "new", "existing"
_REFS_WITH_RESCUES = (*KEPT_REFS, RESCUE_REFS.rstrip("/"))


@value
class RestoredFiles:
    """The branch that HEAD is on after a restore, and notes about what could not be restored."""

    branch: str
    notes: tuple[str, ...]


def restore_rescue(rescue_id: str, into: UntrustedCheckout, *, only_changes: bool = False) -> RestoredFiles:
    """Make a clean checkout what the rescued one was: working tree, index, HEAD, operation in progress.

    With `only_changes` only files and index are restored, into a checkout that is on the same commit without
    changes: its refs, stash and submodules may be newer. The caller has checked that it is clean.

    Raises:
        RepositoryError: there is no such rescue.
    """
    rescue = get_rescue(into.home, rescue_id)
    target = RestoreTarget(into, [])
    with RescueReader(into.home, rescue.commit) as reader:
        contents = json.loads(reader.read_all("contents.json"))
        if contents["form"] != FORM:
            raise RepositoryError(
                f"the rescue {rescue_id} was made by another version of landlane",
                code="RESCUE_FORM",
                hint="restore it with the version that made it, or a newer one",
            )
        outer, *inner = contents["sections"]
        if into.kind == CLONE:
            _copy_objects(target, rescue.commit)
        branch = ""
        if only_changes:
            restore_index(target, outer, reader)
            restore_files(target, outer, reader)
        else:
            branch = restore_section(target, outer, reader)
            restore_submodules(target, inner, reader)
    return RestoredFiles(branch=branch, notes=(*rescue.notes, *target.notes))


def _copy_objects(target: RestoreTarget, commit: str) -> None:
    """Copy what only the rescue keeps into a clone, so that the rescue can be dropped."""
    listed = home_git_output(target.home, "for-each-ref", "--format=%(objectname)", *KEPT_REFS).split()
    folders = home_git_output(target.home, "ls-tree", "--name-only", commit, "staged", "trees").split()
    asked = [f"{commit}^@", *(f"{commit}:{folder}" for folder in folders), "--not", *listed]
    pack = os.path.join(target.checkout.git_dir, "objects", "pack", "pack")
    words = ("pack-objects", "--quiet", "--revs", "--non-empty", pack)
    target.git_output(*words, stdin="\n".join(asked).encode() + b"\n")


@value
class Restored:
    """Where a rescue was restored, and notes about what could not be."""

    rescue: Rescue
    path: str
    notes: tuple[str, ...]


def restore(repo: Repository, session: Actor, rescue_id: str, into: str, folder: str) -> Restored:
    """Restore a rescue into a clean checkout, or into a new one below `folder`.

    Raises:
        RepositoryError: there is no such rescue, or the checkout has work of its own.
    """
    rescue = get_rescue(repo.common_dir, rescue_id)
    path = os.path.realpath(into) if into else os.path.join(folder, f"{_DETACHED}{rescue_id}")
    with _RestoreMark(repo, rescue_id, path) as mark:
        if mark.is_interrupted:
            _save_interrupted(repo, session, rescue, path, is_new=mark.was_new)
        if not into:
            _remove_leftover(repo, rescue, path)
        is_there = os.path.lexists(path)
        if is_there and not into:
            raise _path_taken(path)
        if is_there and not mark.is_interrupted:
            _prepare_checkout(repo, rescue, path)
        mark.write(is_new=not is_there)
        is_new = not is_there and _make_folder(repo, path)
        if not is_new and not into:
            raise _path_taken(path)
        try:
            if is_new:
                _add_checkout(repo, rescue, path)
            restored = restore_rescue(rescue_id, locate_checkout(repo, path))
        except BaseException:
            if is_new:  # a partial restore would look complete, and be in the way of the next try
                with contextlib.suppress(RepositoryError, OSError):
                    remove_checkout(repo.home, path)
            raise
    facts = {"rescue": rescue_id, "path": path}
    repo.change(lambda tx: tx.record("rescue.restored", session.agent, session.id, facts))
    return Restored(rescue=rescue, path=path, notes=restored.notes)


class _RestoreMark:
    """A file that names the path of a restore while it runs, so that one that was killed can be repeated.

    Its lock tells a running restore from an interrupted one.
    """

    def __init__(self, repo: Repository, rescue_id: str, path: str) -> None:
        folder = os.path.join(repo.state_folder, "restoring")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._path = path
        self._id = rescue_id
        self._name = os.path.join(folder, rescue_id)
        self._file = -1
        self._is_written = False
        self.is_interrupted = self.was_new = False

    def _lock(self) -> bool:
        """Open and lock the file; return False if the process that had the lock has deleted it meanwhile."""
        self._file = os.open(self._name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_current = os.path.samestat(os.fstat(self._file), os.stat(self._name))
        except FileNotFoundError:
            is_current = False
        except BlockingIOError as error:
            os.close(self._file)
            raise Held(
                f"another process is restoring {self._id}",
                code="RESCUE_BUSY",
                hint=f"try again when it has ended: landlane rescue restore {self._id}",
            ) from error
        if not is_current:
            os.close(self._file)
        return is_current

    def __enter__(self) -> _RestoreMark:
        while not self._lock():
            pass
        kind, _, path = os.pread(self._file, 65536, 0).decode("utf-8", "surrogateescape").partition(" ")
        self.is_interrupted = path == self._path
        self.was_new = kind == _NEW
        return self

    def write(self, *, is_new: bool) -> None:
        """Record that the restore begins, and whether it creates the checkout."""
        text = f"{_NEW if is_new else _EXISTING} {self._path}".encode("utf-8", "surrogateescape")
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, text, 0)
        os.fsync(self._file)
        self._is_written = True

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        is_half_done = self._is_written or self.is_interrupted
        if kind is None or not is_half_done or not os.path.lexists(self._path):
            os.unlink(self._name)
        os.close(self._file)


def _save_interrupted(repo: Repository, session: Actor, rescue: Rescue, path: str, *, is_new: bool) -> None:
    """Save what is in a checkout where a restore was interrupted; remove it if the restore has made it."""
    if not is_folder(path):
        return
    names = os.listdir(path)
    if find_git_dir(repo.home, path) and names != [".git"]:
        checkout = locate_checkout(repo, path)
        if find_unsaved_work(checkout, kept_refs=_REFS_WITH_RESCUES):
            save_checkout(repo, session, checkout, f"restoring {rescue.id} was interrupted")
    elif names not in ([], [".git"]):
        return  # not a checkout, so not from us
    if is_new:
        remove_checkout(repo.home, path)


def _prepare_checkout(repo: Repository, rescue: Rescue, path: str) -> None:
    """Move an existing checkout to the commit of a rescue.

    Raises:
        RepositoryError: it has work of its own, which a restored rescue would overwrite.
    """
    if rescue.head and _read_head(path) != rescue.head:
        _check_out(repo, path, rescue.head)
    check_clean(locate_checkout(repo, path))


def check_clean(checkout: UntrustedCheckout) -> None:
    """Check that a checkout has nothing that a restored rescue would overwrite.

    Raises:
        RepositoryError: it has work of its own.
    """
    if find_unsaved_work(checkout, kept_refs=_REFS_WITH_RESCUES):
        raise RepositoryError(
            f"{checkout.root} has work of its own, which a restored rescue would overwrite",
            code="RESTORE_NOT_CLEAN",
            hint="restore into a fresh workspace, or commit and clean this one",
        )


def _path_taken(path: str) -> Malformed:
    return Malformed(
        f"{path} already exists",
        code="PATH_TAKEN",
        hint="name another folder with --into, or remove that one",
    )


def _make_folder(repo: Repository, path: str) -> bool:
    """Create an empty folder; return False when it exists.

    Of two processes that restore at once, only the one that made the folder removes it.
    """
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


def _remove_leftover(repo: Repository, rescue: Rescue, path: str) -> None:
    """Remove what an earlier restore left at its path, if it is not in use and has no work of its own."""
    if os.path.islink(path) or not os.path.isdir(path) or processes_in(path):
        return
    git_dir = find_git_dir(repo.home, path)
    is_clone = is_folder(os.path.join(path, ".git"))
    if is_clone and not os.path.isfile(os.path.join(git_dir, HOME_POINTER)):
        return
    names = os.listdir(path)
    has_nothing = not names
    if names == [".git"] and git_dir and not os.path.lexists(os.path.join(git_dir, "index")):
        has_nothing = _read_head(path) in {"", rescue.head}  # interrupted before its files were written
    if not has_nothing and git_dir:
        try:
            has_nothing = not find_unsaved_work(locate_checkout(repo, path), kept_refs=_REFS_WITH_RESCUES)
        except RepositoryError:
            return
    if has_nothing:
        remove_checkout(repo.home, path)


def _add_checkout(repo: Repository, rescue: Rescue, path: str) -> None:
    """Create a checkout at the commit that the rescued work was based on."""
    if rescue.kind == CLONE or not rescue.head:
        checkouts.add_detached_clone(repo.home, path, rescue.head, rescue.ref)
    else:
        checkouts.add_detached_worktree(repo.home, path, rescue.head)
    if rescue.head:
        checkouts.write_files(path)


def _read_head(path: str) -> str:
    return run_git("rev-parse", "--verify", "--quiet", "HEAD^{commit}", cwd=path).stdout.strip()


def _check_out(repo: Repository, path: str, head: str) -> None:
    """Move a clean checkout to the commit that the rescued work was based on."""
    checkout = locate_checkout(repo, path)
    if find_unsaved_work(checkout):
        raise RepositoryError(
            f"{path} has work of its own, which must not be mixed with what comes back",
            code="CHECKOUT_DIRTY",
            hint="commit it or put it aside (landlane stash save), or restore into a new folder with --into",
        )
    if checkout.kind == CLONE and not try_git_output(checkouts.clone_at(path), "cat-file", "-t", head):
        run_git("fetch", "--quiet", "--no-tags", "home", head, cwd=path)
    moved = run_git("checkout", "--quiet", "--detach", head, cwd=path)
    if moved.exit_code:
        raise RepositoryError(
            f"{path} cannot go to {head[:12]}: {moved.stderr[-300:]}",
            code="GIT_FAILED",
            hint="restore elsewhere: --into",
        )
