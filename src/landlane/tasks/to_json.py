"""Tasks, attempts, retry budgets and the worker pool as JSON, and as lines for people."""

from __future__ import annotations

from landlane.clock import duration_text, rfc3339
from landlane.tasks.records import pattern_pairs
from landlane.tasks.retry_rules import cap_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.store.interface import Store
    from landlane.tasks.duplicates import Likeness
    from landlane.tasks.evidence_model import Evidence
    from landlane.tasks.model import Attempt, Lesson, Task
    from landlane.tasks.retry_rules import Limits, Lineage
    from landlane.tasks.worker_pool import Pool


def task_paths(task: Task) -> tuple[str, ...]:
    """What a task says it will change."""
    return tuple(text for text, _ in pattern_pairs(task.stored_paths))


def task_json(task: Task, store: Store) -> dict[str, Any]:
    """A task as programs read it."""
    return {
        "id": task.id,
        "title": task.title,
        "body": task.body,
        "state": task.state,
        "owner": task.owner or None,
        "session": task.session or None,
        "kind": task.kind or None,
        "role": task.role or None,
        "priority": task.priority,
        "paths": list(task_paths(task)),
        "after": list(task.after),
        "attempt": task.attempt,
        "failures": task.failures,
        "lapses": task.lapses,
        "max_attempts": task.max_attempts,
        "lineage": task.lineage,
        "branch": task.branch if task.attempt else None,
        "head": task.head or None,
        "check": task.check or None,
        "output": task.output or None,
        "key": task.key or None,
        "labels": list(task.labels),
        "why": task.why or None,
        "next_action": task.next_action or None,
        "result": task.result or None,
        "created": rfc3339(store.wall_of(task.created_at)),
        "taken": rfc3339(store.wall_of(task.taken_at)) if task.taken_at else None,
    }


def similar_task_json(one: Likeness) -> dict[str, Any]:
    """A task that looks like another."""
    return {"id": one.task, "title": one.title, "state": one.state, "score": one.score, "reason": one.reason}


def evidence_json(proof: Evidence) -> dict[str, Any]:
    """One piece of evidence."""
    return {"name": proof.name, "seen": proof.is_seen, "found": proof.found, "hint": proof.hint or None}


def lesson_json(lesson: Lesson) -> dict[str, Any]:
    """What somebody who had the task before left behind."""
    return {
        "at": rfc3339(lesson.at),
        "kind": lesson.kind,
        "agent": lesson.agent or None,
        "attempt": lesson.attempt,
        "why": lesson.why,
    }


def attempt_json(attempt: Attempt) -> dict[str, Any]:
    """One attempt: who made it where, and what came of it. What it used is null where nobody knows."""
    return {
        "id": attempt.id,
        "task": attempt.task,
        "attempt": attempt.attempt,
        "agent": attempt.agent,
        "role": attempt.role,
        "client": attempt.client,
        "session": attempt.session,
        "machine": attempt.machine,
        "state": attempt.state,
        "started_at": rfc3339(attempt.started_at),
        "seen_at": rfc3339(attempt.seen_at) if attempt.seen_at else None,
        "ended_at": rfc3339(attempt.ended_at) if attempt.ended_at else None,
        "doing": attempt.doing,
        "code": attempt.code or None,
        "reason": attempt.reason or None,
        "outcome": attempt.outcome or None,
        "head": attempt.head or None,
        "usage": dict(attempt.usage) if attempt.usage is not None else None,
    }


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


def lineage_lines(lineage: dict[str, Any]) -> list[str]:
    """The same for a person; nothing while nothing was used."""
    lines: list[str] = []
    if lineage["attempts"] or lineage["seconds"] or lineage["stopped"]:
        used = f"{lineage['attempts']} of {lineage['max_attempts']} failed attempts"
        if lineage["seconds"]:
            most = duration_text(lineage["max_seconds"] * 1000)
            used += f", {duration_text(lineage['seconds'] * 1000)} of {most}"
        if lineage["cost_usd"] or lineage["max_cost_usd"] is not None:
            most = f" of ${lineage['max_cost_usd']:.2f}" if lineage["max_cost_usd"] is not None else ""
            used += f", ${lineage['cost_usd']:.2f}{most}"
        used += f", {lineage['unknown_costs']} of unknown cost" if lineage["unknown_costs"] else ""
        lines.append(f"budget        {used}")
    lines += [f"stopped       {lineage['stopped']}"] if lineage["stopped"] else []
    lines += [f"held back     until {lineage['not_before']}"] if lineage["not_before"] else []
    if len(lineage["tasks"]) > 1:
        names = ", ".join(f"{one['id']} {one['state']}" for one in lineage["tasks"])
        lines.append(f"family        {names}")
    return lines


def pool_json(pool: Pool) -> dict[str, Any]:
    """The pool as every door shows it."""
    return {
        "state": pool.state,
        "paused": pool.paused or None,
        "paused_at": rfc3339(pool.paused_at) if pool.paused_at else None,
        "paused_by": pool.paused_by or None,
        "failures": [
            {"task": one["task"], "reason": one["text"], "at": rfc3339(one["at"])} for one in pool.infra
        ],
        "admission": {
            kind: {"limit": one["limit"], "until": rfc3339(one["until"])}
            for kind, one in sorted(pool.admission.items())
        },
    }


def pool_lines(pool: Pool) -> list[str]:
    """The pool for a person."""
    lines = ["the pool starts work"]
    if pool.paused:
        by = f" by {pool.paused_by}" if pool.paused_by else ""
        lines = [f"the pool is paused{by} since {rfc3339(pool.paused_at)}: {pool.paused}"]
        lines.append("  mend it, then: landlane pool resume")
    lines += [f"  {one['task']} could not begin: {one['text']}" for one in pool.infra]
    lines += [
        f"  {kind}: at most {one['limit']} at once, and none before {rfc3339(one['until'])}"
        for kind, one in sorted(pool.admission.items())
    ]
    return lines
