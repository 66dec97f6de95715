"""Recorded cost for Python agents: `Landlane.usage`."""

from __future__ import annotations

from landlane.api.session_view import SessionView
from landlane.stats.calculate import period_of
from landlane.tasks.records import read_task
from landlane.usage.add import book
from landlane.usage.budget import why_over_budget
from landlane.usage.model import UsageEntry, read_money, read_tokens
from landlane.usage.totals import list_usage, totals_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from decimal import Decimal

    from landlane.usage.add import Booked
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
            UsageEntry(
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
        self._repo.settle()
        return booked

    def totals(self, since: str = "", until: str = "") -> Totals:
        """Return what was spent: `tasks` and `unattributed` add up to `grand`. Default period: all time."""
        return totals_of(self.list(since=since, until=until))

    def list(self, task: str = "", *, since: str = "", until: str = "") -> list[UsageEntry]:
        """Return the usage entries; for a task, its own and those that refer to it.

        Raises:
            Malformed: there is no such task, or the period cannot be read.
        """
        is_limited = since or until
        period = period_of(self._repo, since, until, default="all") if is_limited else None
        return list_usage(self._repo, period, task)

    def why_over_budget(self, task: str) -> str:
        """Return which budget of a task is used up, in words; empty when none is.

        Raises:
            Malformed: there is no such task.
        """
        found = self._repo.store.view(lambda snapshot: read_task(snapshot, task))
        return why_over_budget(self._repo, found)
