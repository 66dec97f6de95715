"""The public JSON form of landings, queues and the target, and the text form of predicted conflicts."""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.values import as_dict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.landing.model import CheckRun, Landing, Queue
    from landlane.landing.target_status import TargetStatus


_LANDING_FIELDS = (
    *("id", "state", "branch", "head", "target", "commit", "agent", "session", "role", "task", "subject"),
    *("paths", "stage", "base", "reason", "code", "output", "pair", "advice", "gate", "approved_by"),
    *("unidentified", "flaky", "notes", "bounce_task", "submitted_at", "ended_at"),
)
_OPTIONAL_FIELDS = (
    *("commit", "role", "task", "stage", "base", "reason", "code", "output", "pair", "advice", "gate"),
    *("approved_by", "bounce_task"),
)


def landing_json(landing: Landing, eta_ms: int | None = None) -> dict[str, Any]:
    """Return the JSON form of a queue entry; `eta_ms` is the estimated time until it lands."""
    fields = as_dict(landing)
    document = {name: fields[name] for name in _LANDING_FIELDS}
    document |= {name: fields[name] or None for name in _OPTIONAL_FIELDS}
    document["submitted_at"] = rfc3339(landing.submitted_at)
    document["ended_at"] = rfc3339(landing.ended_at) if landing.ended_at else None
    document["checks"] = [check_json(run) for run in landing.check_runs]
    document["check"] = landing.check or None
    document["check_started_at"] = rfc3339(landing.stage_at) if landing.stage_at else None
    document["tested_with"] = landing.tested_with or None
    document["pair_commit"] = landing.pair_commit or None
    document["eta_seconds"] = None if eta_ms is None else round(eta_ms / 1000)
    return document


def check_json(run: CheckRun) -> dict[str, Any]:
    """Return the JSON form of a check that ended."""
    return {
        "name": run.name,
        "state": "passed" if run.is_green else "failed",
        "exit": run.exit,
        "seconds": round(run.ms / 1000, 1),
        "lines": run.lines,
    }


def target_json(status: TargetStatus) -> dict[str, Any]:
    """Return the JSON form of the state of a target branch."""
    failure = status.failure
    document: dict[str, Any] = {
        "branch": status.branch,
        "state": status.state,
        "tip": status.tip or None,
        "passing": status.passing or None,
        "failure": None,
        "waiting": status.waiting,
    }
    if failure is not None:
        document["failure"] = {
            "commit": failure.commit,
            "check": failure.check,
            "exit": failure.exit,
            "seconds": round(failure.ms / 1000, 1),
            "since": rfc3339(failure.since),
            "reason": failure.reason,
            "lines": failure.lines,
            "output": failure.output,
            "suspects": failure.suspects,
            "culprit": {**failure.culprit, "landing": failure.culprit["landing"] or None},
        }
    return document


def queue_json(queue: Queue) -> dict[str, Any]:
    """Return the JSON form of a queue."""
    return {
        "target": queue.target,
        "state": queue.state,
        "tip": queue.tip or None,
        "reason": queue.reason or None,
        "code": queue.code or None,
        "tests": queue.tests,
        "landed": queue.landed,
    }


def conflicts_text(prediction: Mapping[str, Any]) -> str:
    """Return predicted conflicts as text."""
    named = {
        entry["branch"]: f"{entry['branch']} ({entry['landing']})" if entry["landing"] else entry["branch"]
        for entry in prediction["branches"]
    }
    if not named:
        return f"No open branches for {prediction['target']}."
    lines: list[str] = []
    for pair in prediction["conflicts"]:
        other = named.get(pair["other"], pair["other"])
        lines.append(f"{named[pair['one']]} and {other} conflict in {', '.join(pair['paths'])}")
    for file in prediction["hot"]:
        how = f", merged as {file['class']}" if file["class"] else ""
        lines.append(f"hot: {file['path']} ({file['branches']} branches, {file['conflicts']} conflicts{how})")
    lines = lines or ["No conflicts."]
    return "\n".join([*lines, "order: " + " ".join(named[branch] for branch in prediction["order"])])
