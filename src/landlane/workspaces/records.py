"""Workspaces as the store knows them: begun, open, closing, closed; each step one transaction.

What lies on the disk follows the record: it is written before anything is made, and changed to `closed` only
after everything is gone. Whoever finds one that was left half way, by a process that has ended, can go on.
"""

from __future__ import annotations

from landlane.claims.take import living
from landlane.errors import Held, Malformed, NotAllowed
from landlane.platform.process_identity import Process
from landlane.sessions.read import find_session
from landlane.store import records
from landlane.tasks.model import OVER, branch_of
from landlane.tasks.rows import get_in, task_in
from landlane.values import as_dict, replace
from landlane.workspaces.model import CLOSED, CLOSING, FAILED, OPEN, OPENING, THERE, Workspace, folder_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from landlane.context import Context
    from landlane.sessions.model import Session
    from landlane.store.interface import Change, Reading
    from landlane.tasks.model import Task


_NOUN = "workspace"
HALF_WAY = (OPENING, CLOSING)


def workspace_from(document: records.Document) -> Workspace:
    """A workspace from its record."""
    return Workspace(**document)


def list_workspaces(context: Context, *, with_closed: bool = False) -> list[Workspace]:
    """All workspaces that are there, or were."""
    states = () if with_closed else THERE
    found = context.store.view(lambda reading: records.all_of(reading, _NOUN, states))
    return [workspace_from(document) for document in found]


def list_half_way(context: Context) -> list[Workspace]:
    """The workspaces that somebody opens or closes just now, or was about to."""
    found = context.store.view(lambda reading: records.all_of(reading, _NOUN, HALF_WAY))
    return [workspace_from(document) for document in found]


def find(context: Context, workspace_id: str) -> Workspace | None:
    """One workspace as it stands, if there is such a one."""
    document = context.store.view(lambda reading: records.find(reading, _NOUN, workspace_id))
    return workspace_from(document) if document else None


def check_free(context: Context, session: Session, task_id: str) -> None:
    """Make sure that this session may have a workspace for a task, before anything is fetched for it.

    Raises:
        Held: another session is at work on the task.
        NotAllowed: the task is over.
    """

    def look(reading: Reading) -> None:
        task = task_in(reading, task_id)
        is_others = bool(task.session) and task.session != session.id
        if task.state in OVER or (is_others and _is_living(reading, context, task.session)):
            raise _not_free(task)

    context.store.view(look)


def begin(
    context: Context,
    session: Session,
    task_id: str,
    *,
    home: str,
    kind: str,
    place: Callable[[str], str],
    facts: Callable[[str], Mapping[str, object]],
    wall_ms: int,
) -> tuple[Workspace, bool]:
    """Enter a workspace that is about to be made, or find the one that is there; and whether it is new.

    `place` tells the path for a folder's name; names that lie there already are passed over. `facts` tells
    for its branch what else the record shall say. One that an ended session left is told as it stands: what
    is in it must be saved before `adopt`.

    Raises:
        Held: another session is at work on the task, or in its workspace.
        NotAllowed: the task is over.
    """

    def work(tx: Change) -> tuple[Workspace, bool]:
        living(tx, session)
        task = get_in(tx, task_id)
        _check_free(tx, context, session, task)
        attempt = max(task.attempt, 1)
        for known in _of_task(tx, task_id):
            is_same = known.attempt == attempt and is_here(context, known, home)
            if known.state in THERE and is_same:
                _check_left(tx, context, known, session)
                return known, False
        taken = {workspace_from(one).path.rpartition("/")[2] for one in records.all_of(tx, _NOUN, THERE)}
        name = folder_name(task_id, session.agent, taken)
        made = Workspace(
            id=records.next_id(tx, _NOUN),
            task=task_id,
            attempt=attempt,
            agent=session.agent,
            session=session.id,
            machine=context.processes.machine,
            home=home,
            kind=kind,
            path=place(name),
            branch=branch_of(task_id, attempt),
            state=OPENING,
            opened_at=wall_ms,
            process=as_dict(context.processes.current()),
        )
        made = replace(made, **facts(made.branch))
        records.put(tx, _NOUN, as_dict(made), "begun", session)
        return made, True

    return context.change(work, areas={"//workspaces": True})


def _check_free(tx: Change, context: Context, session: Session, task: Task) -> None:
    if task.state in OVER:
        raise _not_free(task)
    if not task.session or task.session == session.id:
        return
    from landlane.sessions.leases import end_if_gone  # noqa: PLC0415 - rarely needed

    if not end_if_gone(tx, task.session, context.processes):
        raise _not_free(task)


def _not_free(task: Task) -> NotAllowed | Held:
    if task.state in OVER:
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


def _of_task(reading: Reading, task_id: str) -> list[Workspace]:
    return [workspace_from(document) for document in records.by_key(reading, _NOUN, task_id)]


def _check_left(tx: Change, context: Context, known: Workspace, session: Session) -> None:
    """One that is being closed will be nobody's; any other is its session's for as long as that lives."""
    if known.session == session.id or known.state == CLOSING:
        return
    if _is_living(tx, context, known.session):
        raise held_by(known)


def held_by(workspace: Workspace) -> Held:
    """Another live session has the workspace."""
    return Held(
        f"{workspace.agent} is at work in {workspace.id}",
        code="WORKSPACE_HELD",
        hint=f"ask {workspace.agent} to close it; `landlane workspace close {workspace.id} --force` rescues"
        " everything and closes it anyway",
        holder=workspace.agent,
        task=workspace.task,
    )


def adopt(context: Context, known: Workspace, session: Session) -> Workspace | None:
    """Take over the workspace of a session that has ended; nothing if it is another's by now."""

    def work(tx: Change) -> Workspace | None:
        living(tx, session)
        document = records.lock(tx, _NOUN, known.id)
        if document is None or (document["state"], document["session"]) != (OPEN, known.session):
            return None
        now = replace(workspace_from(document), session=session.id, agent=session.agent)
        records.put(tx, _NOUN, as_dict(now), "adopted", session)
        return now

    return context.change(work)


def is_here(context: Context, workspace: Workspace, home: str) -> bool:
    """Whether a workspace belongs to this very clone on this very machine."""
    return workspace.machine == context.processes.machine and workspace.home == home


def earlier(context: Context, task_id: str) -> list[Workspace]:
    """The workspaces in which this task was tried before, and that are closed."""
    return [
        one for one in context.store.view(lambda r: _of_task(r, task_id)) if one.state in (CLOSED, FAILED)
    ]


def change_state(
    context: Context, workspace: Workspace, verb: str, session: Session | None, **fields: object
) -> Workspace:
    """Write the next step of a workspace down.

    Raises:
        NotAllowed: it is not in the state in which the caller saw it.
    """

    def work(tx: Change) -> Workspace:
        document = records.lock(tx, _NOUN, workspace.id)
        if document is None or document["state"] != workspace.state:
            raise NotAllowed(
                f"{workspace.id} is {document['state'] if document else 'gone'} by now",
                code="WORKSPACE_BUSY",
                hint="`landlane workspace list` shows how it stands",
            )
        now = replace(workspace_from(document), **fields)
        records.put(tx, _NOUN, as_dict(now), verb, session)
        return now

    return context.change(work)


def take_over(context: Context, workspace: Workspace, state: str) -> Workspace | None:
    """Go on with what another process left half way, if that has ended; nothing if it is still at it."""

    def work(tx: Change) -> Workspace | None:
        document = records.lock(tx, _NOUN, workspace.id)
        if document is None or document["state"] not in HALF_WAY:
            return None
        now = workspace_from(document)
        if now.machine != context.processes.machine or not _is_forsaken(tx, context, now):
            return None
        now = replace(now, state=state, process=as_dict(context.processes.current()))
        records.put_quietly(tx, _NOUN, as_dict(now))
        return now

    return context.change(work)


def is_own(context: Context, workspace: Workspace) -> bool:
    """Whether this very process is making or removing it."""
    return workspace.process == as_dict(context.processes.current())


def is_forsaken(context: Context, workspace: Workspace) -> bool:
    """Whether the process of this machine that was making or removing it has ended, or is this one."""
    return context.store.view(lambda reading: _is_forsaken(reading, context, workspace))


def _is_forsaken(reading: Reading, context: Context, workspace: Workspace) -> bool:
    process = workspace.process
    if not process:
        return True
    known = Process(**process)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    here = context.processes.current()
    if known == here or context.processes.is_gone(known):
        return True
    if known.boot_id != here.boot_id:
        # Nothing outlives a boot of its machine; but a boot known only by its minute may be this very one.
        return not (known.boot_id.startswith("started-") or here.boot_id.startswith("started-"))
    # Into another container one cannot look: whoever works there shows it by a session that lives.
    return known.namespace != here.namespace and not _is_living(reading, context, workspace.session)


def is_held(context: Context, workspace: Workspace) -> bool:
    """Whether the session that has it still lives."""
    return context.store.view(lambda reading: _is_living(reading, context, workspace.session))


def _is_living(reading: Reading, context: Context, session_id: str) -> bool:
    from landlane.sessions.leases import is_dead  # noqa: PLC0415

    session = find_session(reading, session_id)
    is_alive = session is not None and session.is_alive(reading.now)
    return is_alive and not is_dead(reading, session_id, context.processes)


def unknown_workspace(text: str) -> Malformed:
    """There is no such workspace."""
    return Malformed(
        f"there is no workspace {text[:80]!r}",
        code="UNKNOWN_WORKSPACE",
        hint="`landlane workspace list` shows them; name one by its id, its task or its folder",
    )
