"""Steps for Python agents that may be killed: `Landlane.steps`, what was already done, by key."""

from __future__ import annotations

from landlane.state.steps import Step, find_step, keep_step

__all__ = ["Step", "Steps"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.repository import Repository
    from landlane.sessions.model import Session


class Steps:
    """Completed steps, as one session sees them."""

    def __init__(self, repo: Repository, session: Callable[[], Session]) -> None:
        self._repo = repo
        self._session = session

    def get(self, key: str) -> Step | None:
        """Return the step that was done under a key; None when there is none."""
        return find_step(self._repo, key)

    def keep(self, key: str, *, task: str = "", about: str = "", memo: str = "") -> Step:
        """Record that something was done; recording it again returns the first record.

        Handoffs, ends of attempts and fans take their own `key`: they and their step are one transaction.

        Raises:
            Malformed: the key or the memo cannot be stored.
            Stale: the session has ended.
        """
        step = keep_step(self._repo, self._session(), key, task=task, about=about, memo=memo)
        self._repo.settle()
        return step
