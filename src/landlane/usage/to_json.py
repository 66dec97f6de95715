"""JSON of usage entries, totals and budgets; unknown values are null."""

from __future__ import annotations

from landlane.clock import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from landlane.usage.import_records import ImportResult
    from landlane.usage.json_types import ImportedJson, TotalJson, TotalsJson, UsageJson
    from landlane.usage.model import Total, UsageEntry
    from landlane.usage.totals import Totals


def usage_json(entry: UsageEntry) -> UsageJson:
    """Return a usage entry as JSON."""
    return {
        "id": entry.id,
        "key": entry.key,
        "at": rfc3339(entry.at),
        "task": entry.task or None,
        "lineage": entry.lineage or None,
        "attempt": entry.attempt or None,
        "agent": entry.agent or None,
        "client": entry.client or None,
        "model": entry.model or None,
        "input_tokens": entry.input_tokens,
        "output_tokens": entry.output_tokens,
        "cost_usd": dollars(entry.cost_micros),
        "cost_micros": entry.cost_micros,
        "known_by": entry.how or None,
        "is_least": entry.is_least,
        "is_final": entry.is_final,
        "links": list(entry.links),
    }


def total_json(total: Total) -> TotalJson:
    """Return a sum as JSON. `cost_usd` is null when no cost is known; `unknown` counts such entries."""
    is_unknown = total.entries > 0 and total.unknown == total.entries
    cost = None if is_unknown else total.cost_micros
    return {
        "cost_usd": dollars(cost),
        "cost_micros": cost,
        "is_least": not total.is_known,
        "entries": total.entries,
        "unknown": total.unknown,
        "input_tokens": total.input_tokens,
        "output_tokens": total.output_tokens,
        "unknown_tokens": total.unknown_tokens,
    }


def totals_json(totals: Totals) -> TotalsJson:
    """Return what was spent per task, unattributed and in total."""
    return {
        "total": total_json(totals.grand),
        "unattributed": total_json(totals.unattributed),
        "tasks": _each(totals.tasks),
        "lineages": _each(totals.lineages),
    }


def imported_json(imported: ImportResult) -> ImportedJson:
    """Return the result of an import."""
    return {
        "booked": imported.booked,
        "known": imported.known,
        "differing": imported.differing,
        "unattributed": imported.unattributed,
        "unknown_tasks": list(imported.unknown_tasks),
        "total": total_json(imported.total),
    }


def dollars(micros: int | None) -> float | None:
    """Return an amount as a number; `cost_micros` is exact."""
    return None if micros is None else micros / 1_000_000


def _each(totals: Mapping[str, Total]) -> dict[str, TotalJson]:
    return {name: total_json(total) for name, total in totals.items()}
