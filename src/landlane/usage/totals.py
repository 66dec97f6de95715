"""List and add up usage by task, lineage, run and day."""

from __future__ import annotations

from landlane.store import records
from landlane.tasks.records import read_task
from landlane.usage.model import (
    Total,
    UsageEntry,
    add_up,
    add_up_by,
    attempt_key,
    day_of,
    days_between,
    usage_id,
)
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from landlane.repository import Repository
    from landlane.store.interface import Snapshot
    from landlane.usage.model import UsageEntry
    from landlane.usage.period import Period


NOUN = "usage"

_MOST_DAYS = 400  # for longer periods all bookings are read


@value
class Totals:
    """What was spent: `tasks` or `lineages`, together with `unattributed`, add up to `grand`."""

    grand: Total
    unattributed: Total
    tasks: Mapping[str, Total]
    lineages: Mapping[str, Total]


def entries_in(snapshot: Snapshot, period: Period | None = None) -> list[UsageEntry]:
    """Return all entries, or those of a period, ordered by time."""
    days: list[str] = []
    if period is not None and period.until - period.since < _MOST_DAYS * 86_400_000:
        days = days_between(period.since, period.until)
    found = (UsageEntry.from_document(document) for document in records.find_all(snapshot, NOUN, days))
    kept = [entry for entry in found if period is None or period.has(entry.at)]
    return sorted(kept, key=lambda entry: (entry.at, entry.id))


def list_usage(repo: Repository, period: Period | None = None, task: str = "") -> list[UsageEntry]:
    """Return the entries in order; for a task, its own and those that refer to it.

    Raises:
        Malformed: there is no such task.
    """

    def look(snapshot: Snapshot) -> list[UsageEntry]:
        if task:
            read_task(snapshot, task)
        found = entries_in(snapshot, period)
        return [entry for entry in found if task in (entry.task, *entry.links)] if task else found

    return repo.store.view(look)


def totals_of(entries: Iterable[UsageEntry]) -> Totals:
    """Return the sums of these entries by task and by lineage."""
    listed = list(entries)
    attributed = [entry for entry in listed if entry.task or entry.lineage]
    return Totals(
        grand=add_up(listed),
        unattributed=add_up(entry for entry in listed if not entry.task and not entry.lineage),
        tasks=add_up_by(attributed, lambda entry: entry.task or entry.lineage),
        lineages=add_up_by(attributed, lambda entry: entry.lineage or entry.task),
    )


def cost_of_attempt(repo: Repository, attempt_id: str) -> int | None:
    """Return the cost of an attempt in millionths of a US dollar; None when it is unknown."""
    booking = usage_id(attempt_key(attempt_id))
    found = repo.store.view(lambda snapshot: records.find(snapshot, NOUN, booking))
    return UsageEntry.from_document(found).cost_micros if found is not None else None


def spent_today(repo: Repository) -> Total:
    """Return what was spent since midnight UTC."""

    def look(snapshot: Snapshot) -> Total:
        return add_up(of_day(snapshot, day_of(repo.store.wall_of(snapshot.now))))

    return repo.store.view(look)


def of_lineage(snapshot: Snapshot, lineage: str) -> list[UsageEntry]:
    """Return the usage of a lineage."""
    return [UsageEntry.from_document(document) for document in records.find_by_key(snapshot, NOUN, lineage)]


def of_run(snapshot: Snapshot, run: str) -> list[UsageEntry]:
    """Return the usage of a run."""
    return [entry for entry in entries_in(snapshot) if entry.run == run]


def of_day(snapshot: Snapshot, day: str) -> list[UsageEntry]:
    """Return the usage of a day."""
    return [UsageEntry.from_document(document) for document in records.find_all(snapshot, NOUN, [day])]
