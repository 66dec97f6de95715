"""What a task may cost."""

from __future__ import annotations

from landlane.usage.add import BOOKING, book_ended_attempt
from landlane.usage.budget import TASK, over_in
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from landlane.repository import Repository
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Attempt, Task


@value
class TaskBudgets:
    """Implements `tasks.extensions.Budgets` with usage."""

    @property
    def booking_areas(self) -> Mapping[str, bool]:
        return BOOKING

    def book(self, tx: Transaction, repo: Repository, attempt: Attempt) -> None:
        book_ended_attempt(tx, repo, attempt)

    def why_over(self, snapshot: Snapshot, repo: Repository, task: Task) -> str:
        over = over_in(snapshot, repo, task)
        return over.why if over is not None else ""

    def is_task_spent(self, snapshot: Snapshot, repo: Repository, task: Task) -> bool:
        over = over_in(snapshot, repo, task)
        return over is not None and over.kind == TASK
