"""Reviews for Python agents: `Landlane.reviews`."""

from __future__ import annotations

from landlane.api.session_view import SessionView
from landlane.reviews.close import adopt, list_reviews
from landlane.reviews.give_verdict import give_verdict
from landlane.reviews.open import withdraw_from_review
from landlane.reviews.records import get_review

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.api.task_values import Review, Task


class Reviews(SessionView):
    """Reviews of one repository, as one session sees them."""

    def get(self, name: str) -> Review:
        """Return a review by its id, or the newest of a task."""
        return self._public(get_review(self._repo, name))

    def list(self, *, with_all: bool = False) -> Sequence[Review]:
        """Return the open reviews, or all of them."""
        return self._settled(list_reviews(self._repo, with_all=with_all))

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
        review, listed = self.get(name).id, list(findings)
        return self._settled(
            give_verdict(
                self._repo,
                self._session,
                review,
                verdict=verdict,
                findings=listed,
                summary=summary,
                head=head,
            )
        )

    def withdraw(self, name: str) -> Task:
        """Withdraw your own work from review and continue with it."""
        return self._settled(withdraw_from_review(self._repo, self._session, self.get(name).task))

    def adopt(self, name: str) -> Task:
        """Take over approved work whose author is gone, with its claims, in order to land it unchanged."""
        return self._settled(adopt(self._repo, self._session, name))
