"""Cost and metrics for Python agents: `Landlane.usage` and `Landlane.stats`."""

from __future__ import annotations

from landlane.stats import calculate as stats_operations
from landlane.tasks.records import task_in
from landlane.usage import add as usage_operations
from landlane.usage.add import Booked, Totals
from landlane.usage.model import Total, UsageEntry, read_money, read_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from decimal import Decimal

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.stats.metrics import Stats
    from landlane.usage.period import Period


__all__ = ["Booked", "Total", "Totals", "Usage", "UsageEntry", "measure"]


class Usage:
    """The cost recorded in one repository, as one session sees it."""

    def __init__(self, repo: Repository, session: Callable[[], Session]) -> None:
        self._repo = repo
        self._session = session

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
        session = self._session()
        booked = usage_operations.book_exactly(
            self._repo,
            key=key,
            task=task,
            attempt=attempt,
            agent=session.agent,
            client=client,
            model=model,
            input_tokens=read_tokens(input_tokens, "input_tokens"),
            output_tokens=read_tokens(output_tokens, "output_tokens"),
            cost_micros=None if cost_usd is None else read_money(cost_usd, "cost_usd"),
            session=session,
        )
        self._repo.settle()
        return booked

    def totals(self, since: str = "", until: str = "") -> Totals:
        """Return what was spent: `tasks` and `unattributed` add up to `grand`. Default period: all time."""
        return usage_operations.totals_of(self.list(since=since, until=until))

    def list(self, task: str = "", *, since: str = "", until: str = "") -> list[UsageEntry]:
        """Return the usage entries; for a task, its own and those that refer to it.

        Raises:
            Malformed: there is no such task, or the period cannot be read.
        """
        return usage_operations.list_usage(self._repo, self._period(since, until), task)

    def why_over_budget(self, task: str) -> str:
        """Return which budget of a task is used up, in words; empty when none is.

        Raises:
            Malformed: there is no such task.
        """
        repo = self._repo
        found = repo.store.view(lambda snapshot: task_in(snapshot, task))
        return usage_operations.why_over_budget(repo, found)

    def _period(self, since: str, until: str) -> Period | None:
        if not since and not until:
            return None
        return stats_operations.period_of(self._repo, since, until, default="all")


def measure(repo: Repository, since: str, until: str) -> Stats:
    """Return the metrics of a period.

    Raises:
        Malformed: the period cannot be read.
    """
    return stats_operations.stats(repo, stats_operations.period_of(repo, since, until))
