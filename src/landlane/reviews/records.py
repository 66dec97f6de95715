"""Read reviews from the store and write them."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.reviews.model import APPROVED, REJECTED, Review
from landlane.store import records
from landlane.tasks.model import REVIEW
from landlane.tasks.records import REVIEW_LABEL, find_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Task


_NOUN = "review"


def put_review(tx: Transaction, review: Review, verb: str, session: Session | None = None) -> None:
    """Write a review and the journal entry about it."""
    records.put(tx, _NOUN, review.to_document(), verb, session)


def find_review(snapshot: Snapshot, review_id: str) -> Review | None:
    """Return a review, or None if there is none of this id."""
    document = records.find(snapshot, _NOUN, review_id) if review_id else None
    return Review.from_document(document) if document is not None else None


def lock_review(tx: Transaction, review_id: str) -> Review:
    """Return a review, locked until the transaction ends.

    Raises:
        Malformed: there is none of this id.
    """
    document = records.lock(tx, _NOUN, review_id)
    if document is None:
        raise unknown_review(review_id)
    return Review.from_document(document)


def reviews_in(snapshot: Snapshot, states: Sequence[str] = ()) -> list[Review]:
    """Return all reviews, or the unsettled ones in these states, oldest first."""
    return [Review.from_document(document) for document in records.find_all(snapshot, _NOUN, states)]


def reviews_of_task(snapshot: Snapshot, task_id: str) -> list[Review]:
    """Return the reviews of a task, newest last."""
    return [Review.from_document(document) for document in records.find_by_key(snapshot, _NOUN, task_id)]


def next_review_id(tx: Transaction) -> str:
    """Return an id that no review has had."""
    return records.next_id(tx, _NOUN)


def unknown_review(name: str) -> Malformed:
    """Return the error for a name that no review has."""
    return Malformed(
        f"no review {name[:40]}",
        code="UNKNOWN_REVIEW",
        hint="see all: landlane review list --all",
    )


def get_review(repo: Repository, name: str) -> Review:
    """Return a review by its id, or the newest of a task.

    Raises:
        Malformed: there is none.
    """

    def look(snapshot: Snapshot) -> Review | None:
        return find_review(snapshot, name) or next(reversed(reviews_of_task(snapshot, name)), None)

    review = repo.store.view(look)
    if review is None:
        raise unknown_review(name)
    return review


def is_approved(snapshot: Snapshot, task: Task, head: str) -> bool:
    """Return whether exactly this commit was approved; without a commit, the result of this attempt."""
    return any(
        review.state == APPROVED and review.head == head and (head or review.attempt == task.attempt)
        for review in reviews_of_task(snapshot, task.id)
    )


def find_rejection(snapshot: Snapshot, task: Task, head: str) -> str:
    """Return the id of the newest review that rejected exactly this commit; empty if none did."""
    rejections = [
        review.id
        for review in reviews_of_task(snapshot, task.id)
        if head and review.state == REJECTED and review.head == head
    ]
    return rejections[-1] if rejections else ""


def review_id_of(task: Task) -> str:
    """Return the id of the review that a reviewer's task belongs to; empty for other tasks."""
    return next(
        (label.removeprefix(REVIEW_LABEL) for label in task.labels if label.startswith(REVIEW_LABEL)), ""
    )


def review_of_task(repo: Repository, task: Task) -> Review:
    """Return the review that a reviewer's task belongs to.

    Raises:
        Malformed: it is not a reviewer's task.
    """
    return get_review(repo, review_id_of(task) or task.id)


def commit_under_review(repo: Repository, task: Task) -> str:
    """Return the commit that a reviewer's task is about; empty for other tasks, or without a commit."""
    review_id = review_id_of(task)
    return get_review(repo, review_id).head if review_id else ""


def approved_waiting(repo: Repository) -> list[Review]:
    """Return the approved reviews whose author is gone, so that another session has to land the work."""

    def look(snapshot: Snapshot) -> list[Review]:
        approved = [
            (review, find_task(snapshot, review.task)) for review in reviews_in(snapshot, (APPROVED,))
        ]
        return [review for review, task in approved if task is not None and task.state == REVIEW]

    return repo.store.view(look)
