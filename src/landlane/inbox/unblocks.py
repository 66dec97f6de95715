"""Find the tasks that an answer lets go on."""

from __future__ import annotations

from landlane.tasks.model import DONE, OPEN
from landlane.tasks.records import id_sort_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from landlane.inbox.json_types import UnblockedJson
    from landlane.tasks.model import Task


def find_unblocked(tasks: Iterable[Task], task_id: str) -> list[UnblockedJson]:
    """Return the open tasks that wait for a task, each with what else it still waits for."""
    by_id = {task.id: task for task in tasks}
    waiting = (task for task in by_id.values() if task_id in task.after and task.state in OPEN)
    return [
        {"task": task.id, "title": task.title, "waits_for": unfinished(by_id, task, besides=task_id)}
        for task in sorted(waiting, key=lambda task: id_sort_key(task.id))
    ]


def unfinished(by_id: dict[str, Task], task: Task, besides: str = "") -> list[str]:
    """Return the tasks that a task waits for and that are not done, in order of their ids."""
    names = (name for name in task.after if name != besides and name in by_id and by_id[name].state != DONE)
    return sorted(names, key=id_sort_key)
