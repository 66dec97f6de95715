"""The landing queue for Python agents: `Landlane.landings`."""

from __future__ import annotations

from landlane.api.session_view import SessionView
from landlane.app.repair_config import prepare_git
from landlane.landing.model import OPEN, QUEUED, TESTING
from landlane.landing.queue import wait_for_landing
from landlane.landing.records import list_landings
from landlane.landing.submit import submit_branch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from landlane.api.task_values import Landing


class Landings(SessionView):
    """The landing queue, as one session sees it."""

    def submit(self, branch: str = "", *, task: str = "", expect: Mapping[str, int] | None = None) -> Landing:
        """Submit a branch to the queue; from then on the landing holds the claims.

        `expect` are the versions of shared keys that it is based on; it does not land if one has moved.

        Raises:
            Stale: a key has another version.
            NotAllowed: it is empty, its evidence is missing, or it changes unclaimed paths.
        """
        submitted = submit_branch(prepare_git(self._repo), self._session, branch, task, expect=expect)
        return self._settled(submitted.landing)

    def wait(self, landing: str, on_stage: Callable[[str], None] = lambda _: None) -> Landing:
        """Run the queue, or watch the process that runs it, until a landing has ended.

        The landing is true if it landed.

        Raises:
            LandlaneError: the queue stopped before the entry had ended.
        """
        waited = wait_for_landing(prepare_git(self._repo), self._session, landing, on_stage)
        ended, stop = waited
        public = self._settled(ended)
        if stop is not None and ended.state in (QUEUED, TESTING):
            raise stop
        return public

    def list(self, *, ended: bool = False) -> list[Landing]:
        """Return the queued landings, or with `ended` all of them."""
        return self._public(list_landings(self._repo, () if ended else OPEN))
