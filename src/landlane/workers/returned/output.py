"""Bringing home the output of a task, which is in no commit: from a worker's scratch to where it belongs.

A worker in a sandbox writes in its scratch alone. What its task names as output is copied from there into
the checkout of whoever runs it, file by file, each whole or not at all. Nothing else can be brought this way:
what git keeps has to land.
"""

from __future__ import annotations

import os
import stat

from landlane.claims.check import find_covering
from landlane.errors import NotAllowed
from landlane.git.run import run_in
from landlane.git.worktree_files import TreeReader, TreeWriter, default_modes, is_inside
from landlane.roles.enforce import refuse_paths
from landlane.roles.model import Scope
from landlane.sessions.leases import renew_session
from landlane.values import replace
from landlane.workers.returned.apply import unsafe
from landlane.workers.returned.check import Returner, watched
from landlane.workers.returned.commit import check_still_ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.repository import Repository
    from landlane.roles.model import Role
    from landlane.sessions.model import Session
    from landlane.tasks.model import Task

_PIECE = 1024 * 1024


def bring_output(
    repo: Repository, session: Session, task: Task, role: Role, files: Sequence[str], scratch: str
) -> None:
    """Copy the output of a task from a worker's scratch into the checkout, in place of an earlier one.

    Raises:
        NotAllowed: a file is not the task's output, is kept in git, is protected, or is not to be had.
        Held: another session holds its path.
        Stale: the task is not the session's any more.
    """
    renew_session(repo.store, session)
    who = Returner(repo=repo, session=session, task=task, role=role)
    paths = sorted(set(files))
    with watched(who), TreeReader(repo.checkout.root) as there, TreeReader(scratch) as reader:
        for path in paths:
            _check_place(task, path, there)
            _check_file(path, reader)
    _check_role(who, paths)
    _check_git(repo, task, paths)
    _check_claims(repo, session, paths)
    check_still_ours(who)
    with TreeReader(scratch) as reader, TreeWriter(repo.checkout.root) as writer:
        for path in paths:
            _copy(path, reader, writer)


def _check_place(task: Task, path: str, there: TreeReader) -> None:
    """Refuse what is not the task's output, and what lies behind a link: that may lead anywhere."""
    output = task.output.removeprefix("./").rstrip("/")
    if not is_inside(output) or not is_inside(path):
        bad = path if is_inside(output) else task.output
        raise unsafe(f"{bad} is no path inside the repository", [bad])
    if path != output and not path.startswith(f"{output}/"):
        raise _unfit(f"{path} is not the output of {task.id}", path, f"return {output}, or what is below it")
    above = os.path.dirname(path)
    while above:
        seen = there.lstat(above)
        if seen is not None and not stat.S_ISDIR(seen.st_mode):
            raise unsafe(f"{path} is behind {above}, which is no folder", [path])
        above = os.path.dirname(above)
    seen = there.lstat(path)
    if seen is not None and not stat.S_ISREG(seen.st_mode):
        raise unsafe(f"{path} is there, and is no ordinary file", [path])


def _check_file(path: str, reader: TreeReader) -> None:
    seen = reader.lstat(path)
    if seen is None or not stat.S_ISREG(seen.st_mode):
        raise _unfit(
            f"{path} is listed, and is no file in the scratch folder",
            path,
            "put it there under the same path",
        )


def _check_role(who: Returner, paths: Sequence[str]) -> None:
    """A role that writes nothing may make any output but protected files; others keep to what they write."""
    role = who.role
    judged = replace(role, writes=("**",), may_change_protected=False) if role.is_read_only else role
    scope = Scope(judged, who.repo.settings)
    refused = {path: reason for path in paths if (reason := scope.why_not(path))}
    if refused:
        refuse_paths(who.repo, who.session, role.name, refused, guard="hand-in")


def _check_git(repo: Repository, task: Task, paths: Sequence[str]) -> None:
    if not repo.checkout.common_dir:
        return
    words = ("--literal-pathspecs", "ls-files", "-z", "--", *paths)
    kept = [name for name in run_in(repo.checkout, *words).stdout.split("\0") if name]
    if kept:
        raise _unfit(
            f"{kept[0]} is kept in git, and {task.id} is of a kind that commits nothing",
            kept[0],
            "what git keeps has to land: add the task with --kind code",
        )


def _check_claims(repo: Repository, session: Session, paths: Sequence[str]) -> None:
    for path in paths:
        try:
            find_covering(repo, session, [path])
        except NotAllowed:
            continue  # nobody holds it; that the task names it is enough


def _copy(path: str, reader: TreeReader, writer: TreeWriter) -> None:
    handle = reader.open(path)
    if handle is None:
        raise _unfit(f"{path} went away", path, "leave it there until the work has ended")
    with open(handle, "rb") as file:
        _, program, plain = default_modes()
        mode = program if os.fstat(handle).st_mode & 0o100 else plain
        writer.replace(path, iter(lambda: file.read(_PIECE), b""), mode)


def _unfit(what: str, path: str, hint: str) -> NotAllowed:
    return NotAllowed(what, code="CHANGE_UNFIT", hint=hint, paths=[path])
