"""The preflight and the summary of a run as JSON."""

from __future__ import annotations

from landlane.error_json import failure_json
from landlane.landing.to_json import target_failure_json
from landlane.units import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.workers.json_types import RunSummaryJson, TaskReasonJson
    from landlane.workers.model import RunSummary, TaskReason
    from landlane.workers.preflight import Preflight


def summary_json(summary: RunSummary) -> RunSummaryJson:
    """Return the JSON form of a summary."""
    totals, failing = summary.totals, summary.failing
    return {
        "done": list(summary.done),
        "landed": list(summary.landed),
        "failed": [_reason_json(one) for one in summary.failed],
        "waiting_for_person": [_reason_json(one) for one in summary.waiting],
        "left": [_reason_json(one) for one in summary.left],
        "attempts": totals.attempts,
        "cost_usd": totals.cost_micros / 1_000_000,
        "unknown_costs": totals.unknown_costs,
        "seconds": round(summary.took_ms / 1000, 1),
        "paused": summary.paused or None,
        "stopped": summary.is_stopped,
        "rescues": list(summary.rescues),
        "target_failure": None if failing is None else target_failure_json(failing.failure),
    }


def _reason_json(one: TaskReason) -> TaskReasonJson:
    return {
        "task": one.task,
        "title": one.title,
        "state": one.state,
        "why": one.why,
        "inbox": one.id or None,
        "question": one.question or None,
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
