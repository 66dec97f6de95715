"""Reviews between records and values, and what can be told of them."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.reviews.model import APPROVED, REJECTED, Review
from landlane.reviews.verdict_model import Opinion, read_findings
from landlane.store import records
from landlane.tasks.model import BRANCH_ENDED
from landlane.tasks.records import find_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.repository import Repository
    from landlane.store.interface import Snapshot
    from landlane.tasks.model import Task


NOUN = "review"


def review_from(document: records.Document) -> Review:
    """A review from its record."""
    return Review(**document)


def unknown_review(name: str) -> Malformed:
    """There is no such review."""
    return Malformed(
        f"there is no review {name[:40]!r}",
        code="UNKNOWN_REVIEW",
        hint="`landlane review list --all` shows all",
    )


def blank_entry(name: str, task_id: str) -> dict[str, Any]:
    """The place for a verdict that is not given yet."""
    given = {"verdict": "", "by": "", "session": "", "summary": ""}
    return {"name": name, "task": task_id, **given, "findings": [], "at": 0}


def is_approved(snapshot: Snapshot, task: Task, head: str) -> bool:
    """Whether exactly this was approved: the commit or, where there is none, the result of this attempt."""
    return any(
        one["state"] == APPROVED and one["head"] == head and (head or one["attempt"] == task.attempt)
        for one in records.by_key(snapshot, NOUN, task.id)
    )


def rejection_of(snapshot: Snapshot, task: Task, head: str) -> str:
    """The review that rejected exactly this commit; empty when none did."""
    found = [
        one["id"]
        for one in records.by_key(snapshot, NOUN, task.id)
        if head and one["state"] == REJECTED and one["head"] == head
    ]
    return found[-1] if found else ""


def get_review(repo: Repository, name: str) -> Review:
    """A review by its id, or the newest of a task.

    Raises:
        Malformed: there is none.
    """

    def look(snapshot: Snapshot) -> records.Document | None:
        return records.find(snapshot, NOUN, name) or next(
            reversed(records.by_key(snapshot, NOUN, name)), None
        )

    document = repo.store.view(look)
    if document is None:
        raise unknown_review(name)
    return review_from(document)


def opinions_of(review: Review) -> list[Opinion]:
    """What was said so far, in the order of the reviewers, and the decision last."""
    given = [*review.entries, *([review.decision] if review.decision else [])]
    return [
        Opinion(
            source=str(one["by"] or one["name"]),
            verdict=str(one["verdict"]),
            findings=read_findings(one["findings"]),
            summary=str(one["summary"]),
        )
        for one in given
        if one["verdict"]
    ]


def is_over_in(tx: Snapshot, entry: Any) -> bool:
    """Whether a reviewer's task has ended, so that no verdict will come of it."""
    task = find_task(tx, entry["task"])
    return task is None or task.state in BRANCH_ENDED
