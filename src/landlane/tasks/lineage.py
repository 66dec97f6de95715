"""Read and change lineages: what they have used, which of their tasks wait, and who may give them more.

A lineage is a task with its retries, children and follow-ups. Without a record it has used nothing.
"""

from __future__ import annotations

from landlane.errors import NotAllowed
from landlane.roles.require_person import check_person
from landlane.store import records
from landlane.tasks.model import DEAD, DROPPED, FAILED, READY, WAITING, TaskState
from landlane.tasks.records import lessons_in, wrong_state_error
from landlane.tasks.retry_rules import Lineage, LineageState, with_new_budget, without_task
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Lesson, Task


_NOUN = "lineage"
_ABANDONED = frozenset({WAITING, DEAD, FAILED, DROPPED})


def find_lineage(snapshot: Snapshot, lineage_id: str) -> Lineage:
    """Return a lineage; one without a record has used nothing."""
    document = records.find(snapshot, _NOUN, lineage_id)
    return Lineage.from_document(document) if document else Lineage(id=lineage_id)


def lineage_of(repo: Repository, task: Task) -> Lineage:
    """Return the lineage of a task."""
    return repo.store.view(lambda snapshot: find_lineage(snapshot, task.lineage))


def lock_lineage(tx: Transaction, lineage_id: str) -> Lineage:
    """Lock a lineage until the transaction ends, and return it."""
    document = records.lock(tx, _NOUN, lineage_id)
    if document is None:  # two transactions may be about to write its first record
        tx.lock_areas({f"//lineage:{lineage_id}": True})
        document = records.lock(tx, _NOUN, lineage_id)
    return Lineage.from_document(document) if document else Lineage(id=lineage_id)


def put_lineage(tx: Transaction, lineage: Lineage, verb: str, session: Session | None = None) -> None:
    """Write a lineage and its journal entry."""
    records.put(tx, _NOUN, lineage.to_document(), verb, session)


def held_in(snapshot: Snapshot) -> dict[str, int]:
    """Return the tasks that are held back, each with the wall-clock time until then."""
    held: dict[str, int] = {}
    for document in records.find_all(snapshot, _NOUN, (LineageState.HELD,)):
        held.update(document["held"])
    return held


def stop_holding_in(tx: Transaction, task: Task) -> None:
    """Forget that a task was held back, because a session takes it."""
    lineage = lock_lineage(tx, task.lineage)
    if task.id in lineage.held:
        held = {name: until for name, until in lineage.held.items() if name != task.id}
        records.put_without_entry(tx, _NOUN, replace(lineage, held=held).to_document())


def forget_task_in(tx: Transaction, task: Task) -> None:
    """Forget a task that was dropped or goes on in another way: it neither waits nor is a person asked."""
    document = records.find(tx, _NOUN, task.lineage)
    if document is None:
        return
    lineage = lock_lineage(tx, task.lineage)
    now = without_task(lineage, task.id)
    if now != lineage:
        put_lineage(tx, now, "changed")


def renew_in(tx: Transaction, task: Task, session: Session | None = None) -> Lineage:
    """Give the lineage of a task a new budget; callers check that a person asks for it."""
    lineage = with_new_budget(lock_lineage(tx, task.lineage), task.id)
    put_lineage(tx, lineage, "renewed", session)
    tx.run("task_set_failures", task=task.id, failures=0)
    return lineage


def allow_split_in(tx: Transaction, lineage_id: str, count: int) -> None:
    """Allow a lineage the tasks and attempts of a planned split.

    Only the widest split counts, so splitting repeatedly gives no more room.
    """
    lineage = lock_lineage(tx, lineage_id)
    if count > lineage.width:
        put_lineage(tx, replace(lineage, width=count), "widened")


def check_room(tx: Transaction, repo: Repository, parent: Task) -> None:
    """Refuse another child or follow-up in a lineage that was stopped or has too many of them.

    Raises:
        NotAllowed: a person must look at it first.
    """
    lineage = find_lineage(tx, parent.lineage)
    why = lineage.stopped or lineage.parked.get(parent.id, "")
    if why:
        parked = parent.id if parent.id in lineage.parked else next(iter(lineage.parked), parent.lineage)
        raise NotAllowed(
            f"no more tasks below {parent.id}: {why}"[:600],
            code="LINEAGE_STOPPED",
            hint=f"a person looks (landlane task show {parked}) and decides: landlane task retry {parked}",
            lineage=parent.lineage,
        )
    full = _why_full(tx, repo, lineage, more=1)
    if full:
        raise NotAllowed(
            full,
            code="LINEAGE_FULL",
            hint="finish or retry what is there; `[retries] max_tasks` in landlane.toml allows more",
            lineage=parent.lineage,
        )


def allow_retry(tx: Transaction, task: Task, session: Session | None) -> None:
    """Allow another attempt at a failed task; a person gives its lineage a new budget with that.

    Raises:
        NotAllowed: there is nothing to try again, or only a person may decide.
    """
    lineage = find_lineage(tx, task.lineage)
    is_parked = task.state == WAITING and task.id in lineage.parked
    is_held = task.state == READY and task.id in lineage.held
    if not (task.state in (DEAD, FAILED) or is_parked or is_held):
        words = "waits for a person's answer" if task.state == WAITING else "has nothing to try again"
        raise wrong_state_error(task, words)
    if session is not None and (is_parked or lineage.stopped):
        check_person(session)
    if not is_held and (session is None or (session.is_person and not session.role)):
        renew_in(tx, task, session)
    else:
        forget_task_in(tx, task)
    tx.has_freed = True


def _why_full(tx: Transaction, repo: Repository, lineage: Lineage, more: int = 0) -> str:
    most = repo.settings.retries.max_tasks + lineage.width
    count = len(tx.all("lineage_tasks", lineage=lineage.id)) - 1  # those below the first
    return f"{lineage.id} has {count} children and follow-ups, of {most}" if count + more > most else ""


def why_stopped(tx: Transaction, repo: Repository, task: Task) -> str:
    """Return why a person must look at a new task first; empty when that is not necessary."""
    if task.lineage == task.id:
        return ""
    lineage = find_lineage(tx, task.lineage)
    return lineage.stopped or _why_full(tx, repo, lineage)


def earlier_lessons(snapshot: Snapshot, task: Task) -> tuple[Lesson, ...]:
    """Return the lessons of the abandoned tasks of a lineage, for the tasks that follow them."""
    if task.lineage == task.id:
        return ()
    return family_lessons(snapshot, task, _ABANDONED)


def family_lessons(
    snapshot: Snapshot, task: Task, states: Collection[str] = tuple(TaskState)
) -> tuple[Lesson, ...]:
    """Return the lessons of the other tasks of a lineage in these states; each begins with the task's id."""
    return tuple(
        replace(lesson, why=f"{other}: {lesson.why}")
        for other, state in family_of(snapshot, task)
        if other != task.id and state in states
        for lesson in lessons_in(snapshot, other)
    )


def family_with_lessons(repo: Repository, task: Task) -> tuple[list[tuple[str, str]], tuple[Lesson, ...]]:
    """Return all tasks of a lineage with their states, and the lessons of the other tasks."""

    def look(snapshot: Snapshot) -> tuple[list[tuple[str, str]], tuple[Lesson, ...]]:
        return family_of(snapshot, task), family_lessons(snapshot, task)

    return repo.store.view(look)


def family_of(snapshot: Snapshot, task: Task) -> list[tuple[str, str]]:
    """Return all tasks of a lineage, each with its state."""
    return [(row["id"], row["state"]) for row in snapshot.all("lineage_tasks", lineage=task.lineage)]
