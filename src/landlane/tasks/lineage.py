"""Lineages as the store knows them: what they have used, who of them waits, and who may give them more.

A lineage is a task with its retries, children and follow-ups. Without a record it has used nothing.
"""

from __future__ import annotations

from landlane.errors import NotAllowed
from landlane.roles.require_person import check_person
from landlane.store import records
from landlane.tasks.model import DEAD, DROPPED, FAILED, READY, STATES, WAITING
from landlane.tasks.records import lessons_in, not_for_that
from landlane.tasks.retry_rules import HELD, Lineage, forgotten, limits_of, renewed, with_held
from landlane.values import as_dict, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Lesson, Task


_NOUN = "lineage"
_GIVEN_UP = frozenset({WAITING, DEAD, FAILED, DROPPED})


def find_lineage(snapshot: Snapshot, lineage_id: str) -> Lineage:
    """A lineage as it stands; one of which nothing is written has used nothing."""
    document = records.find(snapshot, _NOUN, lineage_id)
    return Lineage(**document) if document else Lineage(id=lineage_id)


def lineage_of(repo: Repository, task: Task) -> Lineage:
    """The lineage of a task, as it stands."""
    return repo.store.view(lambda snapshot: find_lineage(snapshot, task.lineage))


def lineage_in(tx: Transaction, lineage_id: str) -> Lineage:
    """A lineage, held still until the transaction ends."""
    document = records.lock(tx, _NOUN, lineage_id)
    if document is None:  # two that write of it for the first time must not miss each other
        tx.lock_areas({f"//lineage:{lineage_id}": True})
        document = records.lock(tx, _NOUN, lineage_id)
    return Lineage(**document) if document else Lineage(id=lineage_id)


def put_lineage(tx: Transaction, lineage: Lineage, verb: str, session: Session | None = None) -> None:
    """Write a lineage as it is now."""
    records.put(tx, _NOUN, as_dict(lineage), verb, session)


def held_in(snapshot: Snapshot) -> dict[str, int]:
    """The tasks that are not to be offered before an instant of the calendar."""
    found: dict[str, int] = {}
    for document in records.all_of(snapshot, _NOUN, (HELD,)):
        found.update(document["held"])
    return found


def held_back(snapshot: Snapshot, task_ids: Iterable[str]) -> dict[str, int]:
    """Those of these tasks that are held back, each with the instant of the calendar until which."""
    held = held_in(snapshot)
    return {task_id: held[task_id] for task_id in task_ids if task_id in held}


def let_go_in(tx: Transaction, task: Task) -> None:
    """Somebody takes a task that was held back: its time has come."""
    lineage = lineage_in(tx, task.lineage)
    if task.id in lineage.held:
        held = {name: until for name, until in lineage.held.items() if name != task.id}
        records.put_quietly(tx, _NOUN, as_dict(with_held(lineage, held)))


def forget_in(tx: Transaction, task: Task) -> None:
    """A task of a lineage was dropped, or goes on by another way: it neither waits nor is asked about."""
    document = records.find(tx, _NOUN, task.lineage)
    if document is None:
        return
    lineage = lineage_in(tx, task.lineage)
    now = forgotten(lineage, task.id)
    if now != lineage:
        put_lineage(tx, now, "changed")


def renew_in(tx: Transaction, task: Task, session: Session | None = None) -> Lineage:
    """Give the lineage of a task a fresh budget; only a person may want that."""
    lineage = renewed(lineage_in(tx, task.lineage), task.id)
    put_lineage(tx, lineage, "renewed", session)
    tx.run("task_set_failures", task=task.id, failures=0)
    return lineage


def widen_in(tx: Transaction, lineage_id: str, count: int) -> None:
    """A planned split into so many tasks: they are no loop, and the lineage has room for them.

    The widest one counts, so that splitting again and again gives nothing.
    """
    lineage = lineage_in(tx, lineage_id)
    if count > lineage.width:
        put_lineage(tx, replace(lineage, width=count), "widened")


def check_room(tx: Transaction, repo: Repository, parent: Task) -> None:
    """Refuse another child or follow-up of a lineage that was stopped, or has too many of them.

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


def allow_again(tx: Transaction, task: Task, session: Session | None) -> None:
    """Let a task be tried again after it was given up; a person gives its lineage a fresh budget with that.

    Raises:
        NotAllowed: there is nothing to try again, or only a person may decide.
    """
    lineage = find_lineage(tx, task.lineage)
    is_parked = task.state == WAITING and task.id in lineage.parked
    is_held = task.state == READY and task.id in lineage.held
    if not (task.state in (DEAD, FAILED) or is_parked or is_held):
        words = "waits for a person's answer" if task.state == WAITING else "has nothing to try again"
        raise not_for_that(task, words)
    if session is not None and (is_parked or lineage.stopped):
        check_person(session)
    if not is_held and (session is None or (session.is_person and not session.role)):
        renew_in(tx, task, session)
    else:
        forget_in(tx, task)
    tx.frees = True


def _why_full(tx: Transaction, repo: Repository, lineage: Lineage, more: int = 0) -> str:
    most = limits_of(repo.settings).tasks + lineage.width
    count = len(tx.all("lineage_tasks", lineage=lineage.id)) - 1  # those below the first
    return f"{lineage.id} has {count} children and follow-ups, of {most}" if count + more > most else ""


def why_stopped(tx: Transaction, repo: Repository, task: Task) -> str:
    """Why a task that was just added is for a person first; empty when it is not."""
    if task.lineage == task.id:
        return ""
    lineage = find_lineage(tx, task.lineage)
    return lineage.stopped or _why_full(tx, repo, lineage)


# ------------------------------------------------------------------------------------------ history


def earlier_lessons(snapshot: Snapshot, task: Task) -> tuple[Lesson, ...]:
    """What those tasks of a lineage left behind that were given up: whoever follows them is told."""
    if task.lineage == task.id:
        return ()
    return family_lessons(snapshot, task, _GIVEN_UP)


def family_lessons(snapshot: Snapshot, task: Task, states: Collection[str] = STATES) -> tuple[Lesson, ...]:
    """What was said of the other tasks of a lineage that are in these states; each begins with the task."""
    return tuple(
        replace(lesson, why=f"{other}: {lesson.why}")
        for other, state in family_of(snapshot, task)
        if other != task.id and state in states
        for lesson in lessons_in(snapshot, other)
    )


def family_with_lessons(repo: Repository, task: Task) -> tuple[list[tuple[str, str]], tuple[Lesson, ...]]:
    """All tasks of a lineage with their states, and what was said of those others than this one."""

    def look(snapshot: Snapshot) -> tuple[list[tuple[str, str]], tuple[Lesson, ...]]:
        return family_of(snapshot, task), family_lessons(snapshot, task)

    return repo.store.view(look)


def family_of(snapshot: Snapshot, task: Task) -> list[tuple[str, str]]:
    """All tasks of a lineage, each with its state."""
    return [(row["id"], row["state"]) for row in snapshot.all("lineage_tasks", lineage=task.lineage)]
