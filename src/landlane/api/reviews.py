"""Reviews for Python agents: `Landlane.reviews`."""

from __future__ import annotations

from landlane.fanout.model import Branch, Fan
from landlane.plans.model import Plan
from landlane.reviews import close as review_ends
from landlane.reviews import give_verdict as reviews
from landlane.reviews.model import Review
from landlane.tasks.model import Task

__all__ = ["Branch", "Fan", "Review", "Reviews"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from landlane.repository import Repository
    from landlane.sessions.model import Session

    Parts = str | Plan | Sequence[str | Mapping[str, Any]]


class Reviews:
    """Reviews of one repository, as one session sees them."""

    def __init__(self, repo: Repository, session: Callable[[], Session]) -> None:
        self._repo = repo
        self._session = session

    def get(self, name: str) -> Review:
        """Return a review by its id, or the newest of a task."""
        return reviews.get_review(self._repo, name)

    def list(self, *, with_all: bool = False) -> Sequence[Review]:
        """Return the open reviews, or all of them."""
        found = reviews.list_reviews(self._repo, with_all=with_all)
        self._repo.settle()
        return found

    def give(
        self,
        name: str,
        verdict: str,
        *,
        findings: Sequence[Mapping[str, Any]] = (),
        summary: str = "",
        head: str = "",
    ) -> Review:
        """Approve or reject exactly the commit that is under review.

        Raises:
            Malformed: the verdict does not match the contract.
            Stale: the review has ended, or is about another commit.
            NotAllowed: it is the caller's own work, or another reviewer is asked.
        """
        given = reviews.give_verdict(
            self._repo,
            self._session(),
            self.get(name).id,
            verdict=verdict,
            findings=list(findings),
            summary=summary,
            head=head,
        )
        self._repo.settle()
        return given

    def withdraw(self, name: str) -> Task:
        """Withdraw your own work from review and continue with it."""
        task = reviews.take_back(self._repo, self._session(), self.get(name).task)
        self._repo.settle()
        return task

    def adopt(self, name: str) -> Task:
        """Take over approved work whose author is gone, with its claims, in order to land it unchanged."""
        task = review_ends.adopt(self._repo, self._session(), name)
        self._repo.settle()
        return task
