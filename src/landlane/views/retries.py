"""What a lineage has used of its budget, as JSON for programs and as lines for people."""

from __future__ import annotations

from landlane.clock import duration_text, rfc3339
from landlane.domain.retries import cap_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.domain.retries import Limits, Lineage
    from landlane.domain.tasks import Task


def lineage_json(
    task: Task, lineage: Lineage, limits: Limits, family: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    """The budget of a task's lineage, what of it is used, and who shares it."""
    until = lineage.held.get(task.id, 0)
    return {
        "lineage": lineage.id,
        "attempts": lineage.attempts,
        "max_attempts": cap_of(lineage, limits, task.max_attempts),
        "seconds": lineage.took_ms // 1000,
        "max_seconds": limits.time_ms // 1000,
        "cost_usd": lineage.cost_micros / 1_000_000,
        "unknown_costs": lineage.unknown_costs,
        "max_cost_usd": None if limits.cost_micros is None else limits.cost_micros / 1_000_000,
        "rounds": lineage.rounds,
        "stopped": lineage.stopped or lineage.parked.get(task.id) or None,
        "not_before": rfc3339(until) if until else None,
        "tasks": [{"id": name, "state": state} for name, state in family],
    }


def lineage_lines(row: dict[str, Any]) -> list[str]:
    """The same for a person; nothing while nothing was used."""
    lines: list[str] = []
    if row["attempts"] or row["seconds"] or row["stopped"]:
        used = f"{row['attempts']} of {row['max_attempts']} failed attempts"
        if row["seconds"]:
            used += f", {duration_text(row['seconds'] * 1000)} of {duration_text(row['max_seconds'] * 1000)}"
        if row["cost_usd"] or row["max_cost_usd"] is not None:
            most = f" of ${row['max_cost_usd']:.2f}" if row["max_cost_usd"] is not None else ""
            used += f", ${row['cost_usd']:.2f}{most}"
        used += f", {row['unknown_costs']} of unknown cost" if row["unknown_costs"] else ""
        lines.append(f"budget        {used}")
    lines += [f"stopped       {row['stopped']}"] if row["stopped"] else []
    lines += [f"held back     until {row['not_before']}"] if row["not_before"] else []
    if len(row["tasks"]) > 1:
        names = ", ".join(f"{one['id']} {one['state']}" for one in row["tasks"])
        lines.append(f"family        {names}")
    return lines
