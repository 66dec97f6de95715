"""Steps for Python agents that may be killed: `Landlane.steps`, what was done already under which key."""

from __future__ import annotations

from landlane.state.steps import Step, find_step, keep_step

__all__ = ["Step", "Steps"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.repository import Repository
    from landlane.sessions.model import Session


class Steps:
    """What was done once, as one session sees it."""

    def __init__(self, repo: Repository, session: Callable[[], Session]) -> None:
        self._repo = repo
        self._session = session

    def get(self, key: str) -> Step | None:
        """What was done under a key; None when nothing was."""
        return find_step(self._repo, key)

    def keep(self, key: str, *, task: str = "", about: str = "", memo: str = "") -> Step:
        """Write down that something was done; keeping it again gives back the first.

        Handoffs, ends of attempts and fans take a `key` of their own: they and their step are one change.

        Raises:
            Malformed: the key or the memo cannot be kept.
            Stale: the session is over.
        """
        step = keep_step(self._repo, self._session(), key, task=task, about=about, memo=memo)
        self._repo.settle()
        return step
