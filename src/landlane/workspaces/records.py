"""Workspaces as the store knows them: begun, open, closing, closed; each step one transaction.

What lies on the disk follows the record: it is written before anything is made, and changed to `closed` only
after everything is gone. Whoever finds one that was left half way, by a process that has ended, can go on.
"""

from __future__ import annotations

from landlane.errors import Held, Malformed, NotAllowed
from landlane.platform.process_identity import Process
from landlane.sessions.leases import end_if_gone, is_dead, require_live
from landlane.sessions.read import find_session
from landlane.store import records
from landlane.tasks.model import OVER, branch_of
from landlane.tasks.records import get_in, task_in
from landlane.values import as_dict, replace
from landlane.workspaces.model import CLOSED, CLOSING, FAILED, OPEN, OPENING, THERE, Workspace, folder_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Task


_NOUN = "workspace"
HALF_WAY = (OPENING, CLOSING)


def workspace_from(document: records.Document) -> Workspace:
    """A workspace from its record."""
    return Workspace(**document)


def list_workspaces(repo: Repository, *, with_closed: bool = False) -> list[Workspace]:
    """All workspaces that are there, or were."""
    states = () if with_closed else THERE
    found = repo.store.view(lambda snapshot: records.all_of(snapshot, _NOUN, states))
    return [workspace_from(document) for document in found]


def list_interrupted(repo: Repository) -> list[Workspace]:
    """The workspaces that somebody opens or closes just now, or was about to."""
    found = repo.store.view(lambda snapshot: records.all_of(snapshot, _NOUN, HALF_WAY))
    return [workspace_from(document) for document in found]


def find(repo: Repository, workspace_id: str) -> Workspace | None:
    """One workspace as it stands, if there is such a one."""
    document = repo.store.view(lambda snapshot: records.find(snapshot, _NOUN, workspace_id))
    return workspace_from(document) if document else None


def check_free(repo: Repository, session: Session, task_id: str) -> None:
    """Make sure that this session may have a workspace for a task, before anything is fetched for it.

    Raises:
        Held: another session is at work on the task.
        NotAllowed: the task is over.
    """

    def look(snapshot: Snapshot) -> None:
        task = task_in(snapshot, task_id)
        is_others = bool(task.session) and task.session != session.id
        if task.state in OVER or (is_others and _is_living(snapshot, repo, task.session)):
            raise _not_free(task)

    repo.store.view(look)


def begin(
    repo: Repository,
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

    def work(tx: Transaction) -> tuple[Workspace, bool]:
        require_live(tx, session)
        task = get_in(tx, task_id)
        _check_free(tx, repo, session, task)
        attempt = max(task.attempt, 1)
        for known in _of_task(tx, task_id):
            is_same = known.attempt == attempt and is_here(repo, known, home)
            if known.state in THERE and is_same:
                _check_left(tx, repo, known, session)
                return known, False
        taken = {workspace_from(one).path.rpartition("/")[2] for one in records.all_of(tx, _NOUN, THERE)}
        name = folder_name(task_id, session.agent, taken)
        made = Workspace(
            id=records.next_id(tx, _NOUN),
            task=task_id,
            attempt=attempt,
            agent=session.agent,
            session=session.id,
            machine=repo.processes.machine,
            home=home,
            kind=kind,
            path=place(name),
            branch=branch_of(task_id, attempt),
            state=OPENING,
            opened_at=wall_ms,
            process=as_dict(repo.processes.current()),
        )
        made = replace(made, **facts(made.branch))
        records.put(tx, _NOUN, as_dict(made), "begun", session)
        return made, True

    return repo.change(work, areas={"//workspaces": True})


def _check_free(tx: Transaction, repo: Repository, session: Session, task: Task) -> None:
    if task.state in OVER:
        raise _not_free(task)
    if not task.session or task.session == session.id:
        return
    if not end_if_gone(tx, task.session, repo.processes):
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


def _of_task(snapshot: Snapshot, task_id: str) -> list[Workspace]:
    return [workspace_from(document) for document in records.by_key(snapshot, _NOUN, task_id)]


def _check_left(tx: Transaction, repo: Repository, known: Workspace, session: Session) -> None:
    """One that is being closed will be nobody's; any other is its session's for as long as that lives."""
    if known.session == session.id or known.state == CLOSING:
        return
    if _is_living(tx, repo, known.session):
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


def adopt(repo: Repository, known: Workspace, session: Session) -> Workspace | None:
    """Take over the workspace of a session that has ended; nothing if it is another's by now."""

    def work(tx: Transaction) -> Workspace | None:
        require_live(tx, session)
        document = records.lock(tx, _NOUN, known.id)
        if document is None or (document["state"], document["session"]) != (OPEN, known.session):
            return None
        now = replace(workspace_from(document), session=session.id, agent=session.agent)
        records.put(tx, _NOUN, as_dict(now), "adopted", session)
        return now

    return repo.change(work)


def is_here(repo: Repository, workspace: Workspace, home: str) -> bool:
    """Whether a workspace belongs to this very clone on this very machine."""
    return workspace.machine == repo.processes.machine and workspace.home == home


def earlier(repo: Repository, task_id: str) -> list[Workspace]:
    """The workspaces in which this task was tried before, and that are closed."""
    return [one for one in repo.store.view(lambda r: _of_task(r, task_id)) if one.state in (CLOSED, FAILED)]


def change_state(
    repo: Repository, workspace: Workspace, verb: str, session: Session | None, **fields: object
) -> Workspace:
    """Write the next step of a workspace down.

    Raises:
        NotAllowed: it is not in the state in which the caller saw it.
    """

    def work(tx: Transaction) -> Workspace:
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

    return repo.change(work)


def take_over(repo: Repository, workspace: Workspace, state: str) -> Workspace | None:
    """Go on with what another process left half way, if that has ended; nothing if it is still at it."""

    def work(tx: Transaction) -> Workspace | None:
        document = records.lock(tx, _NOUN, workspace.id)
        if document is None or document["state"] not in HALF_WAY:
            return None
        now = workspace_from(document)
        if now.machine != repo.processes.machine or not _is_abandoned(tx, repo, now):
            return None
        now = replace(now, state=state, process=as_dict(repo.processes.current()))
        records.put_quietly(tx, _NOUN, as_dict(now))
        return now

    return repo.change(work)


def is_own(repo: Repository, workspace: Workspace) -> bool:
    """Whether this very process is making or removing it."""
    return workspace.process == as_dict(repo.processes.current())


def is_abandoned(repo: Repository, workspace: Workspace) -> bool:
    """Whether the process of this machine that was making or removing it has ended, or is this one."""
    return repo.store.view(lambda snapshot: _is_abandoned(snapshot, repo, workspace))


def _is_abandoned(snapshot: Snapshot, repo: Repository, workspace: Workspace) -> bool:
    process = workspace.process
    if not process:
        return True
    known = Process(**process)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    here = repo.processes.current()
    if known == here or repo.processes.is_gone(known):
        return True
    if known.boot_id != here.boot_id:
        # Nothing outlives a boot of its machine; but a boot known only by its minute may be this very one.
        return not (known.boot_id.startswith("started-") or here.boot_id.startswith("started-"))
    # Into another container one cannot look: whoever works there shows it by a session that lives.
    return known.namespace != here.namespace and not _is_living(snapshot, repo, workspace.session)


def is_held(repo: Repository, workspace: Workspace) -> bool:
    """Whether the session that has it still lives."""
    return repo.store.view(lambda snapshot: _is_living(snapshot, repo, workspace.session))


def _is_living(snapshot: Snapshot, repo: Repository, session_id: str) -> bool:
    session = find_session(snapshot, session_id)
    is_alive = session is not None and session.is_alive(snapshot.now)
    return is_alive and not is_dead(snapshot, session_id, repo.processes)


def unknown_workspace(text: str) -> Malformed:
    """There is no such workspace."""
    return Malformed(
        f"there is no workspace {text[:80]!r}",
        code="UNKNOWN_WORKSPACE",
        hint="`landlane workspace list` shows them; name one by its id, its task or its folder",
    )
