"""The review that a task may need before it lands."""

from __future__ import annotations

from landlane.reviews import give_verdict, records
from landlane.reviews import open as opening
from landlane.reviews.model import Step
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.context import Context
    from landlane.sessions.model import Session
    from landlane.store.interface import Change, Reading
    from landlane.tasks.model import Task


@value
class TaskReviews:
    """Implements `tasks.extensions.Reviews` with reviews."""

    def step_for(self, context: Context, task: Task, kind: str, changed: Sequence[str] = ()) -> object:
        return opening.step_for(context, task, kind, changed)

    def begin(
        self,
        tx: Change,
        context: Context,
        session: Session | None,
        task: Task,
        head: str,
        step: object,
        *,
        base: str,
        change: str,
    ) -> None:
        assert isinstance(step, Step)  # what `step_for` returned
        opening.begin_review_in(tx, context, session, task, head, step, base=base, change=change)

    def is_approved(self, reading: Reading, task: Task, head: str) -> bool:
        return records.is_approved(reading, task, head)

    def rejection_of(self, reading: Reading, task: Task, head: str) -> str:
        return records.rejection_of(reading, task, head)

    def take_back(self, context: Context, session: Session, task_id: str) -> Task:
        return give_verdict.take_back(context, session, task_id)

    def review_of(self, context: Context, task: Task) -> str:
        return give_verdict.review_of_task(context, task).id
