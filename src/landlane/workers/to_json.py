"""The preflight and the summary of a run as JSON and as text."""

from __future__ import annotations

from landlane.error_json import failure_json
from landlane.units import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.workers.model import RunSummary
    from landlane.workers.preflight import Preflight


def summary_json(summary: RunSummary) -> dict[str, Any]:
    """Return the JSON form of a summary."""
    return {
        "done": list(summary.done),
        "failed": [{"task": task, "why": why} for task, why in summary.failed],
        "waiting_for_person": [{"task": task, "why": why} for task, why in summary.waiting],
        "left": [{"task": task, "why": why} for task, why in summary.left],
        "attempts": summary.totals.attempts,
        "cost_usd": round(summary.totals.cost_usd, 6),
        "unknown_costs": summary.totals.unknown_costs,
        "paused": summary.paused or None,
        "stopped": summary.is_stopped,
    }


def preflight_json(preflight: Preflight) -> dict[str, Any]:
    """Return the JSON form of a failed preflight; the fixes stand beside the problems, not in the hint."""
    failed = len(preflight.problems)
    checks = count(preflight.checks, "preflight check")
    return failure_json(
        "PREFLIGHT_FAILED",
        f"cannot start workers: {failed} of {checks} failed",
        "",
        problems=[
            {"message": problem.text, "fix": problem.fix, "lines": list(problem.lines)}
            for problem in preflight.problems
        ],
    )


def summary_text(summary: RunSummary) -> str:
    """Return a summary as a few lines of text."""
    totals = summary.totals
    attempts = f"{totals.attempts} attempt{'s' if totals.attempts != 1 else ''}"
    cost = f", {cost_text(totals.cost_usd, totals.unknown_costs)}" if totals.cost_usd else ""
    lines = [f"{len(summary.done)} done, {len(summary.failed)} failed, {attempts}{cost}"]
    for title, rows in (
        ("failed", summary.failed),
        ("waits for a person", summary.waiting),
        ("left", summary.left),
    ):
        lines += [f"  {task} {title}: {_shorten(why)}" for task, why in rows]
    if summary.paused:
        lines.append(f"nothing more begins: {summary.paused}; `landlane status` tells more")
    return "\n".join(lines)


def cost_text(cost_usd: float, unknown: int) -> str:
    """Return a cost, with the number of attempts whose cost is unknown."""
    return f"${cost_usd:.2f}" + (f" and {unknown} unknown" if unknown else "")


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 160 else line[:159] + "…"
