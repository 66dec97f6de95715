"""The records of workspaces, changed in one transaction each.

A record is written before anything is created on disk, and becomes `closed` only after everything is removed.
So any process can finish what a process that has ended began.
"""

from __future__ import annotations

import os

from landlane.errors import Held, NotAllowed
from landlane.platform.process import Process
from landlane.sessions.leases import end_if_gone, find_session, is_dead, require_live
from landlane.store import records
from landlane.tasks.model import FINAL, branch_of
from landlane.tasks.records import lock_task, read_task
from landlane.values import as_dict, replace
from landlane.workspaces.model import (
    CLOSED,
    CLOSING,
    FAILED,
    IN_TRANSITION,
    ON_DISK,
    OPEN,
    OPENING,
    Workspace,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Task
    from landlane.workspaces.model import WorkspaceKind, WorkspaceState


_NOUN = "workspace"


def list_workspaces(repo: Repository, states: Sequence[WorkspaceState] = ON_DISK) -> list[Workspace]:
    """Return the workspaces of all machines in these states; without states, all that ever existed."""
    documents = repo.store.view(lambda snapshot: records.find_all(snapshot, _NOUN, states))
    return [Workspace.from_document(document) for document in documents]


def list_local(repo: Repository, states: Sequence[WorkspaceState] = ON_DISK) -> list[Workspace]:
    """Return the workspaces of this clone on this machine."""
    return [workspace for workspace in list_workspaces(repo, states) if is_local(repo, workspace)]


def list_open(repo: Repository) -> list[Workspace]:
    """Return the open workspaces of this clone on this machine whose folders exist."""
    return [workspace for workspace in list_local(repo, (OPEN,)) if os.path.isdir(workspace.path)]


def is_local(repo: Repository, workspace: Workspace) -> bool:
    """Return whether a workspace belongs to this clone on this machine."""
    return workspace.machine == repo.processes.machine and workspace.home == repo.common_dir


def find(repo: Repository, workspace_id: str) -> Workspace | None:
    """Return one workspace, or None."""
    document = repo.store.view(lambda snapshot: records.find(snapshot, _NOUN, workspace_id))
    return Workspace.from_document(document) if document else None


def list_ended(repo: Repository, task_id: str) -> list[Workspace]:
    """Return the closed and failed workspaces of earlier attempts at a task."""
    of_task = repo.store.view(lambda snapshot: _list_of_task(snapshot, task_id))
    return [workspace for workspace in of_task if workspace.state in (CLOSED, FAILED)]


def _list_of_task(snapshot: Snapshot, task_id: str) -> list[Workspace]:
    return [Workspace.from_document(document) for document in records.find_by_key(snapshot, _NOUN, task_id)]


def check_task_available(repo: Repository, session: Session, task_id: str) -> None:
    """Check that the session may have a workspace for a task, before anything is fetched for it.

    Raises:
        Held: another session works on the task.
        NotAllowed: the task has ended.
    """

    def check(snapshot: Snapshot) -> None:
        task = read_task(snapshot, task_id)
        is_foreign = bool(task.session) and task.session != session.id
        if task.state in FINAL or (is_foreign and _is_live(snapshot, repo, task.session)):
            raise _task_unavailable(task)

    repo.store.view(check)


def begin(
    repo: Repository,
    session: Session,
    task_id: str,
    kind: WorkspaceKind,
    *,
    free_path: Callable[[str, set[str]], str],
    base_fields: Callable[[str], Mapping[str, object]],
) -> tuple[Workspace, bool]:
    """Record a workspace that is about to be created, or return the one that exists; and whether it is new.

    `free_path` returns an unused path for a folder name and the names in use; `base_fields` returns the
    fields of the record that depend on its branch. The workspace of an ended session is returned as it is:
    save what is in it before calling `adopt`.

    Raises:
        Held: another session works on the task or in its workspace.
        NotAllowed: the task has ended.
    """

    def work(tx: Transaction) -> tuple[Workspace, bool]:
        require_live(tx, session)
        task = lock_task(tx, task_id)
        is_free = not task.session or task.session == session.id
        if task.state in FINAL or not (is_free or end_if_gone(tx, task.session, repo.processes)):
            raise _task_unavailable(task)
        attempt = max(task.attempt, 1)
        for known in _list_of_task(tx, task_id):
            if known.state in ON_DISK and known.attempt == attempt and is_local(repo, known):
                # One that is being closed will belong to no session; any other belongs to its live session.
                is_theirs = known.session != session.id and known.state != CLOSING
                if is_theirs and _is_live(tx, repo, known.session):
                    raise held_by(known)
                return known, False
        taken = {os.path.basename(document["path"]) for document in records.find_all(tx, _NOUN, ON_DISK)}
        branch = branch_of(task_id, attempt)
        new = Workspace(
            id=records.next_id(tx, _NOUN),
            task=task_id,
            attempt=attempt,
            agent=session.agent,
            session=session.id,
            machine=repo.processes.machine,
            home=repo.common_dir,
            kind=kind,
            path=free_path(f"{task_id}-{session.agent}", taken),
            branch=branch,
            state=OPENING,
            opened_at=repo.store.wall_of(tx.now),
            process=as_dict(repo.processes.current()),
        )
        new = replace(new, **base_fields(branch))
        records.put(tx, _NOUN, as_dict(new), "begun", session)
        return new, True

    return repo.change(work, areas={"//workspaces": True})


def _task_unavailable(task: Task) -> NotAllowed | Held:
    if task.state in FINAL:
        return NotAllowed(
            f"{task.id} is {task.state}",
            code="TASK_WRONG_STATE",
            hint="add a new task for what is left to do",
            state=task.state,
        )
    return Held(
        f"{task.owner} is at work on {task.id}",
        code="TASK_HELD",
        hint="`landlane next` gives you another task",
        holder=task.owner,
        task=task.id,
    )


def held_by(workspace: Workspace) -> Held:
    """Return the error for a workspace that belongs to another live session."""
    return Held(
        f"{workspace.agent} is at work in {workspace.id}",
        code="WORKSPACE_HELD",
        hint=f"ask {workspace.agent} to close it; `landlane workspace close {workspace.id} --force` rescues"
        " everything and closes it anyway",
        holder=workspace.agent,
        task=workspace.task,
    )


def adopt(repo: Repository, known: Workspace, session: Session) -> Workspace | None:
    """Give the workspace of an ended session to this one; None if it is another session's by now."""

    def work(tx: Transaction) -> Workspace | None:
        require_live(tx, session)
        document = records.lock(tx, _NOUN, known.id)
        if document is None or (document["state"], document["session"]) != (OPEN, known.session):
            return None
        adopted = replace(Workspace.from_document(document), session=session.id, agent=session.agent)
        records.put(tx, _NOUN, as_dict(adopted), "adopted", session)
        return adopted

    return repo.change(work)


def update(
    repo: Repository, workspace: Workspace, verb: str, session: Session | None, **fields: object
) -> Workspace:
    """Change fields of a workspace and write the journal entry with this verb.

    Raises:
        NotAllowed: it is not in the state in which the caller read it.
    """

    def work(tx: Transaction) -> Workspace:
        document = records.lock(tx, _NOUN, workspace.id)
        if document is None or document["state"] != workspace.state:
            raise NotAllowed(
                f"{workspace.id} is {document['state'] if document else 'gone'} by now",
                code="WORKSPACE_BUSY",
                hint="`landlane workspace list` shows how it stands",
            )
        updated = Workspace.from_document(document).updated(**fields)
        records.put(tx, _NOUN, as_dict(updated), verb, session)
        return updated

    return repo.change(work)


def take_over(repo: Repository, workspace: Workspace) -> Workspace | None:
    """Register this process to finish an opening or closing whose process has ended; None if it has not."""

    def work(tx: Transaction) -> Workspace | None:
        document = records.lock(tx, _NOUN, workspace.id)
        if document is None or document["state"] not in IN_TRANSITION:
            return None
        current = Workspace.from_document(document)
        if current.machine != repo.processes.machine or not _is_abandoned(tx, repo, current):
            return None
        current = replace(current, process=as_dict(repo.processes.current()))
        records.put_without_entry(tx, _NOUN, as_dict(current))
        return current

    return repo.change(work)


def is_in_this_process(repo: Repository, workspace: Workspace) -> bool:
    """Return whether this very process opens or closes it."""
    return workspace.process == as_dict(repo.processes.current())


def is_abandoned(repo: Repository, workspace: Workspace) -> bool:
    """Return whether the process that opened or closed it has ended, or is this one."""
    return repo.store.view(lambda snapshot: _is_abandoned(snapshot, repo, workspace))


def _is_abandoned(snapshot: Snapshot, repo: Repository, workspace: Workspace) -> bool:
    if not workspace.process:
        return True
    known = Process(**workspace.process)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    here = repo.processes.current()
    if known == here or repo.processes.is_gone(known):
        return True
    if known.boot_id != here.boot_id:
        # No process survives a reboot. But a boot id that is only a start time may mean this very boot.
        return not (known.boot_id.startswith("started-") or here.boot_id.startswith("started-"))
    # Processes of another container cannot be seen from here; its session shows whether it is still alive.
    return known.namespace != here.namespace and not _is_live(snapshot, repo, workspace.session)


def is_held(repo: Repository, workspace: Workspace) -> bool:
    """Return whether the session of a workspace is alive."""
    return repo.store.view(lambda snapshot: _is_live(snapshot, repo, workspace.session))


def _is_live(snapshot: Snapshot, repo: Repository, session_id: str) -> bool:
    session = find_session(snapshot, session_id)
    is_alive = session is not None and session.is_alive(snapshot.now)
    return is_alive and not is_dead(snapshot, session_id, repo.processes)
