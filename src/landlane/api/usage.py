"""Recorded cost for Python agents: `Landlane.usage`."""

from __future__ import annotations

from landlane.api.session_view import SessionView, Since, period_text
from landlane.stats.calculate import period_of
from landlane.tasks.records import read_task
from landlane.usage.add import book
from landlane.usage.budget import why_over_budget
from landlane.usage.model import UsageEntry as StoredEntry
from landlane.usage.model import read_money, read_tokens
from landlane.usage.totals import list_usage, totals_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from decimal import Decimal

    from landlane.api.shared_values import Booked, UsageEntry
    from landlane.usage.totals import Totals


class Usage(SessionView):
    """The cost recorded in one repository, as one session sees it."""

    def book(
        self,
        key: str,
        *,
        task: str = "",
        cost_usd: float | str | Decimal | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        model: str = "",
        client: str = "",
        attempt: int = 0,
    ) -> Booked:
        """Record usage, once per key; without a task it is unattributed, without a cost it is unknown.

        Raises:
            Malformed: there is no such task, or an amount is invalid.
        """
        session = self._session
        booked = book(
            self._repo,
            StoredEntry(
                key=key,
                task=task,
                attempt=attempt,
                agent=session.agent,
                client=client,
                model=model,
                input_tokens=read_tokens(input_tokens, "input_tokens"),
                output_tokens=read_tokens(output_tokens, "output_tokens"),
                cost_micros=None if cost_usd is None else read_money(cost_usd, "cost_usd"),
            ),
            session,
        )
        return self._settled(booked)

    def totals(self, since: Since = "", until: str | datetime = "") -> Totals:
        """Return what was spent: `tasks` and `unattributed` add up to `grand`. Default period: all time."""
        return totals_of(self._entries("", since, until))

    def list(self, task: str = "", *, since: Since = "", until: str | datetime = "") -> list[UsageEntry]:
        """Return the usage entries; for a task, its own and those that refer to it.

        Raises:
            Malformed: there is no such task, or the period cannot be read.
        """
        return self._public(self._entries(task, since, until))

    def _entries(self, task: str, since: Since, until: str | datetime) -> Sequence[StoredEntry]:
        period = None
        if since or until:
            period = period_of(self._repo, period_text(since), period_text(until), default="all")
        return list_usage(self._repo, period, task)

    def why_over_budget(self, task: str) -> str:
        """Return which budget of a task is used up, in words; empty when none is.

        Raises:
            Malformed: there is no such task.
        """
        found = self._repo.store.view(lambda snapshot: read_task(snapshot, task))
        return why_over_budget(self._repo, found)
