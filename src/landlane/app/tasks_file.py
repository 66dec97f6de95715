"""What the file tasks.json beside the store shows: the open tasks."""

from __future__ import annotations

from landlane.tasks.model import OPEN
from landlane.tasks.read import list_tasks
from landlane.tasks.to_json import task_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.repository import Repository


def open_tasks(repo: Repository) -> list[dict[str, Any]]:
    """Return the entries of tasks.json."""
    return [task_json(task, repo.store) for task in list_tasks(repo, tuple(OPEN))]
