"""Landlane.landings."""

from __future__ import annotations

from landlane.landing.model import OPEN
from landlane.landing.records import list_landings
from landlane.landing.submit import submit_branch
from landlane.landing.wait import see_through

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.app.open import House
    from landlane.landing.model import Landing
    from landlane.sessions.model import Session


class Landings:
    """The way onto the target branch, as one session sees it."""

    def __init__(self, house: House, session: Callable[[], Session]) -> None:
        self._house = house
        self._session = session

    def submit(self, branch: str = "", *, task: str = "") -> Landing:
        """Enter a branch into the queue; from then on the entry holds the claims.

        Raises:
            NotAllowed: it is empty, its evidence is missing, or it changes what is not held.
        """
        house, site = self._house, self._house.site()
        shared = site.is_store_shared
        submitted = submit_branch(site, self._session(), house.witness(), branch, task, is_shared=shared)
        house.settle()
        return submitted.landing

    def wait(self, landing: str, on_stage: Callable[[str], None] = lambda _: None) -> Landing:
        """Run the queue, or watch whoever does, until an entry has ended; raises why if it cannot end.

        Raises:
            LandlaneError: the queue stopped before the entry had ended.
        """
        ended, stop = see_through(self._house.site(), self._session(), landing, on_stage)
        self._house.settle()
        if stop is not None and ended.state in ("queued", "testing"):
            raise stop
        return ended

    def list(self, *, ended: bool = False) -> list[Landing]:
        """What is on its way, or with `ended` everything that ever was."""
        return list_landings(self._house.context, () if ended else OPEN)
