"""One request for a page: who looks, at what, and what every page shows besides."""

from __future__ import annotations

from landlane.doctor.protection import read_protection
from landlane.inbox.items import find_waiting, list_items
from landlane.sessions.join import live_sessions
from landlane.status.activity import waiting_json
from landlane.status.headline import FAILING, read_headline, spent_text
from landlane.status.overview import read_overview
from landlane.status.troubles import trouble_lines
from landlane.tasks.worker_pool import get_pool
from landlane.web.marks import Colours, assign_colours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.inbox.json_types import InboxItemJson
    from landlane.repository import Repository
    from landlane.status.headline import Headline
    from landlane.status.json_types import WaitingJson
    from landlane.web.source import Source

SSH_KEY = "ssh-key"


class Visit:
    """What a request needs to know; facts that several parts of a page show are read once."""

    def __init__(
        self,
        *,
        source: Source,
        person: str,
        is_read_only: bool,
        parameters: Mapping[str, Any],
        query: Mapping[str, str],
        position: int,
    ) -> None:
        self.source = source
        self.person = person
        self.is_read_only = is_read_only
        self.parameters = parameters
        self.query = query
        self.position = position
        self.repo: Repository = source.repo
        self.now = self.repo.wall_ms()
        self._headline: Headline | None = None
        self._items: list[InboxItemJson] | None = None
        self._askers: dict[str, str] | None = None
        self._colours: Colours | None = None
        self._waiting: list[WaitingJson] | None = None

    @property
    def can_decide(self) -> bool:
        """Return whether this page has buttons that decide; not where an answer must be signed by a key."""
        proof = getattr(self.repo.settings.gates, "proof", "")
        return not self.is_read_only and proof != SSH_KEY

    @property
    def headline(self) -> Headline:
        """Return the headline, as in every command."""
        if self._headline is None:
            self._headline = read_headline(self.repo, self.person)
        return self._headline

    @property
    def items(self) -> Sequence[InboxItemJson]:
        """Return what waits for the person."""
        if self._items is None:
            self._items = list_items(self.repo, self.person)
        return self._items

    def asker_of(self, id: str) -> str:
        """Return the agent that an item of the inbox came from."""
        if self._askers is None:
            waiting = find_waiting(self.repo, self.person)
            self._askers = {
                one.id: one.agent for one in (*waiting.gates, *waiting.landings, *waiting.reviews)
            }
        return self._askers.get(id, "")

    @property
    def colours(self) -> Colours:
        """Return the colours of those who are active; the same on every part of a page."""
        if self._colours is None:
            sessions = [session.agent for session in live_sessions(self.repo)]
            self._colours = Colours(assign_colours(sessions))
        return self._colours

    @property
    def waiting(self) -> Sequence[WaitingJson]:
        """Return who waits for whom."""
        if self._waiting is None:
            self._waiting = waiting_json(self.repo)
        return self._waiting

    def _read_troubles(self) -> list[str]:
        """Return what keeps work from going on; the headline says whether there is anything."""
        headline = self.headline
        is_failing = headline.target_state == FAILING
        if not (is_failing or headline.is_paused or headline.is_queue_paused):
            return []
        return trouble_lines(self.repo, read_overview(self.repo), self.now)

    def frame(self) -> dict[str, Any]:
        """Return what every page shows: the status line, and what keeps work from going on."""
        headline = self.headline
        limit = headline.day_budget_micros
        left = None if limit is None or headline.has_unknown_cost else limit - headline.spent_micros
        has_money = bool(headline.spent_micros) or limit is not None
        return {
            "headline": headline,
            "spent": spent_text(headline) if has_money else "",
            "left_micros": left,
            "troubles": self._read_troubles(),
            "pool": get_pool(self.repo),
            "protection": read_protection(self.repo.state_folder),
            "colours": self.colours,
        }
