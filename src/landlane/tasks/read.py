"""Get, list and count tasks; history and lessons."""

from __future__ import annotations

from landlane.sessions.leases import sweep_if_due
from landlane.store.journal_chain import Entry
from landlane.tasks.model import Lesson, Task
from landlane.tasks.on_change import settle_due
from landlane.tasks.rows import all_dependencies, task_in, whole, with_after

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.repository import Repository
    from landlane.store.interface import Snapshot


# What tells the next owner something.
_LESSONS = frozenset(
    {
        *("task.failed", "task.returned", "task.doubted", "task.blocked", "task.retried", "task.answered"),
        *("task.joined", "task.reviewed"),
    }
)


def get_task(repo: Repository, task_id: str) -> Task:
    """A task by its id.

    Raises:
        Malformed: there is no such task.
    """

    def look(snapshot: Snapshot) -> Task:
        return whole(snapshot, task_in(snapshot, task_id))

    sweep_if_due(repo.store)
    return repo.store.view(look)


def list_tasks(repo: Repository, states: Sequence[str] = ()) -> list[Task]:
    """All tasks in the order in which they were added, or those in these states."""

    def look(snapshot: Snapshot) -> list[Task]:
        tasks = [Task.from_row(row) for row in snapshot.all("tasks_all")]
        state_of = {task.id: task.state for task in tasks}
        after: dict[str, list[tuple[str, str]]] = {}
        for task_id, before in all_dependencies(snapshot):
            after.setdefault(task_id, []).append((before, state_of[before]))
        return [
            with_after(task, after.get(task.id, ())) for task in tasks if not states or task.state in states
        ]

    sweep_if_due(repo.store)
    settle_due(repo)
    return repo.store.view(look)


def count_tasks(repo: Repository) -> dict[str, int]:
    """How many tasks are in each state that is not over."""
    rows = repo.store.view(lambda snapshot: snapshot.all("tasks_count"))
    return {row["state"]: row["tasks"] for row in rows}


def task_history(repo: Repository, task_id: str) -> list[Entry]:
    """Everything that happened to a task, in order.

    Raises:
        Malformed: there is no such task.
    """
    get_task(repo, task_id)
    return repo.store.view(lambda snapshot: history_in(snapshot, task_id))


def history_in(snapshot: Snapshot, task_id: str) -> list[Entry]:
    """Everything that happened to a task, in order, as one transaction sees it."""
    return [Entry.from_row(row) for row in snapshot.all("task_entries", task=task_id)]


def lessons_in(snapshot: Snapshot, task_id: str) -> tuple[Lesson, ...]:
    """What earlier owners, and those who looked at their work, left behind."""
    found: list[Lesson] = []
    attempt = 0
    for entry in history_in(snapshot, task_id):
        facts = entry.facts()
        attempt = facts["attempt"] if entry.kind == "task.taken" else attempt
        if entry.kind in _LESSONS and facts.get("why"):
            why = str(facts.get("feedback") or facts["why"])
            found.append(Lesson(at=entry.at, kind=entry.kind, agent=entry.agent, attempt=attempt, why=why))
    return tuple(found)


def lessons_of(repo: Repository, task_id: str) -> tuple[Lesson, ...]:
    """What earlier owners of a task left behind."""
    return repo.store.view(lambda snapshot: lessons_in(snapshot, task_id))


def links_of(repo: Repository, task_id: str) -> list[tuple[str, str]]:
    """The tasks that a task was found to look like, and why."""
    rows = repo.store.view(lambda snapshot: snapshot.all("task_links_of", task=task_id))
    return [(row["other"], row["reason"]) for row in rows]
