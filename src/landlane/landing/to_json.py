"""The public JSON form of landings, queues and the target, and the text form of predicted conflicts."""

from __future__ import annotations

from landlane.clock import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.landing.json_types import (
        CheckRunJson,
        LandingJson,
        QueueJson,
        TargetFailureJson,
        TargetStatusJson,
    )
    from landlane.landing.model import CheckRun, Landing, Queue, TargetFailure
    from landlane.landing.target_status import TargetStatus


def landing_json(landing: Landing, eta_ms: int | None = None) -> LandingJson:
    """Return the JSON form of a queue entry; `eta_ms` is the estimated time until it lands."""
    return {
        "id": landing.id,
        "state": landing.state,
        "branch": landing.branch,
        "head": landing.head,
        "target": landing.target,
        "commit": landing.commit or None,
        "agent": landing.agent,
        "session": landing.session,
        "role": landing.role or None,
        "task": landing.task or None,
        "subject": landing.subject,
        "paths": landing.paths,
        "stage": landing.stage or None,
        "base": landing.base or None,
        "reason": landing.reason or None,
        "code": landing.code or None,
        "output": landing.output or None,
        "pair": landing.pair or None,
        "advice": landing.advice or None,
        "gate": landing.gate or None,
        "approved_by": landing.approved_by or None,
        "unidentified": landing.unidentified,
        "flaky": landing.flaky,
        "sandbox": landing.sandbox or None,
        "notes": landing.notes,
        "bounce_task": landing.bounce_task or None,
        "submitted_at": rfc3339(landing.submitted_at),
        "ended_at": rfc3339(landing.ended_at) if landing.ended_at else None,
        "checks": [check_json(run) for run in landing.check_runs],
        "check": landing.check or None,
        "check_started_at": rfc3339(landing.stage_at) if landing.stage_at else None,
        "tested_with": landing.tested_with or None,
        "pair_commit": landing.pair_commit or None,
        "eta_seconds": None if eta_ms is None else round(eta_ms / 1000),
    }


def check_json(run: CheckRun) -> CheckRunJson:
    """Return the JSON form of a check that ended."""
    return {
        "name": run.name,
        "state": "passed" if run.is_green else "failed",
        "exit": run.exit,
        "seconds": round(run.ms / 1000, 1),
        "lines": run.lines,
    }


def target_json(status: TargetStatus) -> TargetStatusJson:
    """Return the JSON form of the state of a target branch."""
    return {
        "branch": status.branch,
        "state": status.state,
        "tip": status.tip or None,
        "passing": status.passing or None,
        "failure": None if status.failure is None else target_failure_json(status.failure),
        "waiting": status.waiting,
    }


def target_failure_json(failure: TargetFailure) -> TargetFailureJson:
    """Return the JSON form of why a target fails its checks."""
    culprit = failure.culprit
    return {
        "commit": failure.commit,
        "check": failure.check,
        "exit": failure.exit,
        "seconds": round(failure.ms / 1000, 1),
        "since": rfc3339(failure.since),
        "reason": failure.reason,
        "lines": failure.lines,
        "output": failure.output,
        "suspects": failure.suspects,
        "culprit": {
            "commit": culprit["commit"],
            "subject": culprit["subject"],
            "author": culprit["author"],
            "landing": culprit["landing"] or None,
        },
    }


def queue_json(queue: Queue) -> QueueJson:
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
