"""The review that a task may require before it lands."""

from __future__ import annotations

from landlane.reviews import records
from landlane.reviews.model import RequiredReview
from landlane.reviews.open import find_required_review, open_review, withdraw_from_review
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
    """Implements `tasks.extensions.ReviewRules` with reviews."""

    def find_required(self, repo: Repository, task: Task, kind: str, changed: Sequence[str] = ()) -> object:
        return find_required_review(repo, task, kind, changed)

    def open(
        self,
        tx: Transaction,
        repo: Repository,
        session: Session | None,
        task: Task,
        head: str,
        required: object,
        *,
        base: str,
        change: str,
    ) -> None:
        assert isinstance(required, RequiredReview)  # what `find_required` returned
        open_review(tx, repo, session, task, head, required, base=base, change=change)

    def is_approved(self, snapshot: Snapshot, task: Task, head: str) -> bool:
        return records.is_approved(snapshot, task, head)

    def find_rejection(self, snapshot: Snapshot, task: Task, head: str) -> str:
        return records.find_rejection(snapshot, task, head)

    def withdraw(self, repo: Repository, session: Session, task_id: str) -> Task:
        return withdraw_from_review(repo, session, task_id)

    def review_of(self, repo: Repository, task: Task) -> str:
        return records.review_of_task(repo, task).id
