"""Tasks between rows and values, and the one place where a task's state is written."""

from __future__ import annotations

import json

from interlock.domain.journal import Entry
from interlock.domain.tasks import READY, Task, check_transition, rank_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interlock.ports.store import Change, Row


def task_from(row: Row) -> Task:
    """A task from its row; what it waits for is asked separately."""
    return Task(
        id=row[0],
        title=row[1],
        body=row[2],
        kind=row[3],
        state=row[4],
        role=row[5],
        priority=row[6],
        rank=row[7],
        stored_paths=row[8],
        owner=row[9],
        session=row[10],
        attempt=row[11],
        failures=row[12],
        lapses=row[13],
        max_attempts=row[14],
        lineage=row[15],
        check=row[16],
        output=row[17],
        key=row[18] or "",
        labels=tuple(json.loads(row[19])) if row[19] != "[]" else (),
        why=row[20],
        next_action=row[21],
        head=row[22],
        result=row[23],
        waits_for=row[24],
        created_at=row[25],
        ready_at=row[26],
        taken_at=row[27],
    )


def pattern_pairs(stored: str) -> list[tuple[str, str]]:
    """The declared patterns as (text, kind)."""
    return [(text, kind) for text, kind in json.loads(stored)] if stored != "[]" else []


def entry_of(row: Row) -> Entry:
    """An entry of the journal from its row."""
    position, number, at, kind, agent, session, data, sealed = row
    return Entry(
        position=position,
        number=number,
        at=at,
        kind=kind,
        agent=agent,
        session=session,
        data=data,
        hash=sealed,
    )


def move_task(
    tx: Change,
    task: Task,
    then: str,
    *,
    why: str = "",
    keep_owner: bool = False,
    failures: int | None = None,
    lapses: int | None = None,
    head: str | None = None,
    result: str | None = None,
    ready_at: int | None = None,
    next_action: str | None = None,
) -> None:
    """Give a task another state. Nothing else writes it.

    Raises:
        NotAllowed: there is no way from the one state to the other.
    """
    check_transition(task.id, task.state, then)
    since = task.ready_at if ready_at is None else ready_at
    tx.run(
        "task_move",
        task=task.id,
        state=then,
        why=why,
        next_action=task.next_action if next_action is None else next_action,
        owner=task.owner if keep_owner else "",
        session=task.session if keep_owner else "",
        failures=task.failures if failures is None else failures,
        lapses=task.lapses if lapses is None else lapses,
        head=task.head if head is None else head,
        result=task.result if result is None else result,
        # A task that comes back keeps its age: whoever waited long is not sent to the end of the line.
        rank=task.rank if then != READY else min(task.rank, rank_of(since, task.priority)),
        ready_at=since,
        max_attempts=task.max_attempts,
    )
