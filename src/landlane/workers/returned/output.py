"""Copy files that a worker returned out of its scratch folder: the output of a task, or work to be saved.

A sandboxed worker writes only in its scratch folder. The files that its task names as output are copied into
the checkout of the run, each of them atomically. Files that git tracks cannot be returned this way: they have
to land. Work that could not be committed, for instance because the store stayed unavailable, is saved in the
state folder.
"""

from __future__ import annotations

import os
import stat

from landlane.claims.check import find_covering
from landlane.errors import NotAllowed
from landlane.files import is_inside
from landlane.git.run import run_in
from landlane.git.worktree_files import TreeReader, TreeWriter, default_modes
from landlane.roles.enforce import refuse_paths
from landlane.sessions.leases import renew_session
from landlane.workers.returned.apply import unsafe_change
from landlane.workers.returned.check import ReturnedWork, check_still_ours, scope_of_output, watch_violations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.protocol.worker.messages import WorkComplete
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.tasks.model import Task

SAVED_FOLDER = "returned"  # in the state folder; only a person removes it
_PATCH, _FILES = "change.patch", "files"
_READ_BYTES = 1024 * 1024


def copy_output(work: ReturnedWork) -> None:
    """Copy the output of a task from the scratch folder into the checkout, replacing an earlier one.

    Raises:
        NotAllowed: a file is not the task's output, is tracked by git, is protected, or is missing.
        Held: another session holds its path.
        Stale: the task is not the session's any more.
    """
    repo, task = work.repo, work.task
    renew_session(repo.store, work.session)
    paths = sorted(set(work.message.files or ()))
    with (
        watch_violations(work),
        TreeReader(repo.checkout.root) as checkout,
        TreeReader(work.scratch) as scratch,
    ):
        for path in paths:
            _check_target(task, path, checkout)
            _check_source(path, scratch)
    scope = scope_of_output(work)
    refused = {path: reason for path in paths if (reason := scope.why_not(path))}
    if refused:
        refuse_paths(repo, work.session, work.role.name, refused, guard="hand-in")
    _check_untracked(repo, task, paths)
    _check_claims(repo, work.session, paths)
    check_still_ours(work)
    _, executable, plain = default_modes()
    with TreeReader(work.scratch) as scratch, TreeWriter(repo.checkout.root) as writer:
        for path in paths:
            descriptor = scratch.open(path)
            if descriptor is None:
                raise _unfit(f"{path} went away", path, "leave it there until the work has ended")
            _copy(descriptor, path, writer, executable, plain)


def _check_target(task: Task, path: str, checkout: TreeReader) -> None:
    """Refuse a path outside the task's output, and one behind a link, which may lead anywhere."""
    output = task.output.removeprefix("./").rstrip("/")
    if not is_inside(output) or not is_inside(path):
        outside = path if is_inside(output) else task.output
        raise unsafe_change(f"{outside} is not a path inside the repository", [outside])
    if path != output and not path.startswith(f"{output}/"):
        raise _unfit(f"{path} is not the output of {task.id}", path, f"return {output}, or what is below it")
    folder = os.path.dirname(path)
    while folder:
        status = checkout.lstat(folder)
        if status is not None and not stat.S_ISDIR(status.st_mode):
            raise unsafe_change(f"{path} is behind {folder}, which is not a folder", [path])
        folder = os.path.dirname(folder)
    status = checkout.lstat(path)
    if status is not None and not stat.S_ISREG(status.st_mode):
        raise unsafe_change(f"{path} exists and is not a regular file", [path])


def _check_source(path: str, scratch: TreeReader) -> None:
    status = scratch.lstat(path)
    if status is None or not stat.S_ISREG(status.st_mode):
        raise _unfit(
            f"{path} is listed, but is not a file in the scratch folder",
            path,
            "put it there under the same path",
        )


def _check_untracked(repo: Repository, task: Task, paths: Sequence[str]) -> None:
    if not repo.checkout.common_dir:
        return
    words = ("--literal-pathspecs", "ls-files", "-z", "--", *paths)
    tracked = [name for name in run_in(repo.checkout, *words).stdout.split("\0") if name]
    if tracked:
        raise _unfit(
            f"{tracked[0]} is kept in git, and {task.id} is of a kind that commits nothing",
            tracked[0],
            "what git keeps has to land: add the task with --kind code",
        )


def _check_claims(repo: Repository, session: Session, paths: Sequence[str]) -> None:
    for path in paths:
        try:
            find_covering(repo, session, [path])
        except NotAllowed:
            continue  # an unclaimed path is allowed: the task names it


def _copy(descriptor: int, target: str, writer: TreeWriter, executable: int, plain: int) -> None:
    with open(descriptor, "rb") as file:
        mode = executable if os.fstat(descriptor).st_mode & 0o100 else plain
        writer.replace(target, iter(lambda: file.read(_READ_BYTES), b""), mode)


def _unfit(what: str, path: str, hint: str) -> NotAllowed:
    return NotAllowed(what, code="CHANGE_UNFIT", hint=hint, paths=[path])


def save_returned(state: str, task: Task, message: WorkComplete, scratch: str) -> str:
    """Save a returned patch or files in the state folder; return the folder, or "" if nothing was returned.

    Raises:
        OSError: they cannot be written.
        RepositoryError: they cannot be read.
    """
    if not message.patch and not message.files:
        return ""
    folder = os.path.join(state, SAVED_FOLDER, f"{task.id}-{task.attempt}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with TreeWriter(folder) as writer:
        if message.patch:
            writer.replace(_PATCH, iter([message.patch.encode("utf-8", "surrogateescape")]), 0o600)
        with TreeReader(scratch) as reader:
            for path in filter(is_inside, sorted(set(message.files or ()))):
                _save_file(path, reader, writer)
    return folder


def _save_file(path: str, reader: TreeReader, writer: TreeWriter) -> None:
    """Save one file or link; a path that is neither is left out."""
    target = f"{_FILES}/{path}"
    descriptor = reader.open(path)
    if descriptor is None:
        link = reader.read_link(path)
        if link is not None:
            writer.link(target, link)
    elif stat.S_ISREG(os.fstat(descriptor).st_mode):
        _copy(descriptor, target, writer, 0o700, 0o600)
    else:
        os.close(descriptor)
