"""The numbers of a period, from the journal, what was booked, and who stands in line now."""

from __future__ import annotations

from landlane.domain.periods import read_period
from landlane.domain.stats import measure
from landlane.operations.journal import read_entries
from landlane.operations.spending import entries_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.domain.periods import Period
    from landlane.domain.stats import Stats
    from landlane.domain.usage import UsageEntry
    from landlane.operations.context import Context
    from landlane.ports.store import Reading


def stats(context: Context, period: Period) -> Stats:
    """All numbers of a period."""
    store = context.store
    entries = read_entries(context)

    def look(reading: Reading) -> tuple[list[UsageEntry], list[int], int]:
        # Whoever has not been heard of for a while stands there no more; what it waited is told with its end.
        line = [row for row in reading.all("waiters_all") if row[6] > reading.now]
        first = {row[0]: reading.all("waiter_paths_of", ticket=row[0])[:1] for row in line}
        since = [row[5] for row in line if first[row[0]] and not str(first[row[0]][0][0]).startswith("//")]
        return entries_in(reading, period), [store.wall_of(at) for at in since], store.wall_of(reading.now)

    booked, waiting_since, now = store.view(look)
    return measure(period, entries, booked, waiting_since, now)


def period_of(context: Context, since: str = "", until: str = "", default: str = "7d") -> Period:
    """A period as people write it, seen from now.

    Raises:
        Malformed: it cannot be read.
    """
    store = context.store
    return read_period(since, until, store.wall_of(store.view(lambda reading: reading.now)), default)
