"""Runs in the forms that people and programs read: what they came to, and how they stand."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.workers.model import RunSummary


def summary_json(summary: RunSummary) -> dict[str, Any]:
    """What a run came to."""
    return {
        "done": list(summary.done),
        "failed": [{"task": task, "why": why} for task, why in summary.failed],
        "waiting_for_person": [{"task": task, "why": why} for task, why in summary.persons],
        "left": [{"task": task, "why": why} for task, why in summary.left],
        "attempts": summary.attempts,
        "cost_usd": round(summary.cost_usd, 6),
        "unknown_costs": summary.unknown_costs,
        "paused": summary.paused or None,
        "stopped": summary.is_stopped,
    }


def summary_text(summary: RunSummary) -> str:
    """The same in a few lines."""
    attempts = f"{summary.attempts} attempt{'s' if summary.attempts != 1 else ''}"
    money = cost_text(summary.cost_usd, summary.unknown_costs) if summary.cost_usd else ""
    lines = [f"{len(summary.done)} done, {len(summary.failed)} failed, {attempts}{money and f', {money}'}"]
    for title, rows in (
        ("failed", summary.failed),
        ("waits for a person", summary.persons),
        ("left", summary.left),
    ):
        lines += [f"  {task} {title}: {_first(why)}" for task, why in rows]
    if summary.paused:
        lines.append(f"nothing more begins: {summary.paused}; `landlane pool show` tells more")
    return "\n".join(lines)


def cost_text(cost_usd: float, unknown: int) -> str:
    """What it cost, as far as anybody knows."""
    return f"${cost_usd:.2f}" + (f" and {unknown} unknown" if unknown else "")


def _first(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 160 else line[:159] + "…"
