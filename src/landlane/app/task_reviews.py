"""The review that a task may need before it lands."""

from __future__ import annotations

from landlane.reviews import give_verdict, records
from landlane.reviews import open as opening
from landlane.reviews.model import Step
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Task


@value
class TaskReviews:
    """Implements `tasks.extensions.Reviews` with reviews."""

    def step_for(self, repo: Repository, task: Task, kind: str, changed: Sequence[str] = ()) -> object:
        return opening.step_for(repo, task, kind, changed)

    def begin(
        self,
        tx: Transaction,
        repo: Repository,
        session: Session | None,
        task: Task,
        head: str,
        step: object,
        *,
        base: str,
        change: str,
    ) -> None:
        assert isinstance(step, Step)  # what `step_for` returned
        opening.begin_review_in(tx, repo, session, task, head, step, base=base, change=change)

    def is_approved(self, snapshot: Snapshot, task: Task, head: str) -> bool:
        return records.is_approved(snapshot, task, head)

    def rejection_of(self, snapshot: Snapshot, task: Task, head: str) -> str:
        return records.rejection_of(snapshot, task, head)

    def take_back(self, repo: Repository, session: Session, task_id: str) -> Task:
        return give_verdict.take_back(repo, session, task_id)

    def review_of(self, repo: Repository, task: Task) -> str:
        return give_verdict.review_of_task(repo, task).id
