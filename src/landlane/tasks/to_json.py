"""Tasks, attempts, retry budgets and the worker pool as JSON, and as lines for people."""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.error_json import failure_json
from landlane.tasks.model import FIXES_TARGET, assignee_of
from landlane.tasks.records import task_paths
from landlane.tasks.retry_rules import attempt_limit
from landlane.tasks.waits import dependency_waits, find_waits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.repository import Repository
    from landlane.settings.model import RetrySettings
    from landlane.store.interface import Store
    from landlane.tasks.duplicates import SimilarTask
    from landlane.tasks.evidence import Completion
    from landlane.tasks.json_types import (
        AttemptJson,
        EvidenceJson,
        LessonJson,
        LineageJson,
        NothingReadyJson,
        PoolJson,
        SimilarTaskJson,
        TaskJson,
        WaitJson,
    )
    from landlane.tasks.model import Attempt, Evidence, Lesson, Task, Wait
    from landlane.tasks.pick import NothingReady
    from landlane.tasks.retry_rules import Lineage
    from landlane.tasks.worker_pool import Pool


def task_json(task: Task, store: Store, waits: Sequence[Wait] | None = None) -> TaskJson:
    """Return the JSON form of a task; without `waits` it waits for its dependencies only."""
    waits = dependency_waits(task) if waits is None else waits
    return {
        "id": task.id,
        "title": task.title,
        "body": task.body,
        "state": task.state,
        "owner": task.owner or None,
        "session": task.session or None,
        "kind": task.kind or None,
        "role": task.role or None,
        "assigned_to": assignee_of(task.labels) or None,
        "fixes_target": FIXES_TARGET in task.labels,
        "priority": task.priority,
        "paths": list(task_paths(task)),
        "after": list(task.after),
        "attempt": task.attempt,
        "failures": task.failures,
        "lapses": task.lapses,
        "max_attempts": task.max_attempts,
        "tries": {"charged": task.tries, "limit": task.max_attempts},
        "waits_for": [wait_json(wait) for wait in waits],
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


def tasks_json(repo: Repository, tasks: Sequence[Task]) -> list[TaskJson]:
    """Return the JSON form of tasks, with everything that each waits for."""
    waits = find_waits(repo, tasks)
    return [task_json(task, repo.store, waits.get(task.id, ())) for task in tasks]


def wait_json(wait: Wait) -> WaitJson:
    """Return the JSON form of one thing that a task waits for."""
    return {
        "kind": wait.kind,
        "id": wait.id or None,
        "needs_person": wait.needs_person,
        "holder": wait.holder or None,
        "path": wait.path or None,
        "why": wait.why or None,
        "until": rfc3339(wait.until) if wait.until else None,
        "resets_at": rfc3339(wait.resets_at) if wait.resets_at else None,
    }


def similar_task_json(one: SimilarTask) -> SimilarTaskJson:
    """Return the JSON form of a task that looks like another."""
    return {"id": one.task, "title": one.title, "state": one.state, "score": one.score, "reason": one.reason}


def evidence_json(evidence: Evidence) -> EvidenceJson:
    """Return the JSON form of one piece of evidence."""
    return {
        "name": evidence.name,
        "seen": evidence.is_seen,
        "found": evidence.found,
        "hint": evidence.hint or None,
    }


def completion_json(completion: Completion, repo: Repository) -> dict[str, Any]:
    """Return the answer to a report that a task is done: what was verified, and what is missing."""
    task = completion.task
    (item,) = tasks_json(repo, [task])
    evidence = [evidence_json(one) for one in completion.evidence]
    facts = {"task": item, "evidence": evidence, "not_run": list(completion.not_run)}
    missing = completion.missing
    if missing is None:
        return {"ok": True, **facts}
    message = f"{task.id} {task.title} is not done: evidence is missing"
    return failure_json("EVIDENCE_MISSING", message, missing.hint, **facts)


def nothing_ready_json(
    nothing: NothingReady, held_up: Sequence[tuple[Task, Sequence[Wait]]], store: Store
) -> NothingReadyJson:
    """Return why there is no task to take, with the tasks that are ready except for one thing."""
    return {
        "held_back": [{"task": task, "until": rfc3339(until)} for task, until in nothing.held_back],
        "over_budget": [{"task": task, "why": why} for task, why in nothing.over_budget],
        "counts": nothing.counts,
        "held_up": list(nothing.held_up),
        "in_hand": list(nothing.in_hand),
        "waiting": [task_json(task, store, waits) for task, waits in held_up],
        "task": None,
        "claims": [],
    }


def lesson_json(lesson: Lesson) -> LessonJson:
    """Return the JSON form of what an earlier owner of a task left."""
    return {
        "at": rfc3339(lesson.at),
        "kind": lesson.kind,
        "agent": lesson.agent or None,
        "attempt": lesson.attempt,
        "why": lesson.why,
    }


def attempt_json(attempt: Attempt) -> AttemptJson:
    """Return the JSON form of an attempt; its usage is null while it is unknown."""
    return {
        "id": attempt.id,
        "task": attempt.task,
        "attempt": attempt.attempt,
        "agent": attempt.agent,
        "role": attempt.role,
        "client": attempt.client,
        "kind": attempt.kind or None,
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
        "resets_at": rfc3339(attempt.resets_at) if attempt.resets_at else None,
    }


def lineage_json(
    task: Task, lineage: Lineage, limits: RetrySettings, family: Sequence[tuple[str, str]]
) -> LineageJson:
    """Return the budget of a task's lineage, what is used of it, and the tasks that share it."""
    until = lineage.held.get(task.id, 0)
    return {
        "lineage": lineage.id,
        "attempts": lineage.attempts,
        "max_attempts": attempt_limit(lineage, limits, task.max_attempts),
        "seconds": lineage.took_ms // 1000,
        "max_seconds": limits.max_time_ms // 1000,
        "cost_usd": lineage.cost_micros / 1_000_000,
        "unknown_costs": lineage.unknown_costs,
        "max_cost_usd": None if limits.max_cost_micros is None else limits.max_cost_micros / 1_000_000,
        "rounds": lineage.rounds,
        "stopped": lineage.stopped or lineage.parked.get(task.id) or None,
        "not_before": rfc3339(until) if until else None,
        "tasks": [{"id": name, "state": state} for name, state in family],
    }


def pool_json(pool: Pool) -> PoolJson:
    """Return the JSON form of the worker pool."""
    return {
        "state": pool.state,
        "paused": pool.paused or None,
        "paused_at": rfc3339(pool.paused_at) if pool.paused_at else None,
        "paused_by": pool.paused_by or None,
        "pauses_landing": pool.pauses_landing,
        "failures": [
            {"task": one["task"], "reason": one["text"], "at": rfc3339(one["at"])} for one in pool.infra
        ],
        "admission": {
            kind: {
                "limit": one["limit"],
                "until": rfc3339(one["until"]),
                "resets_at": rfc3339(one["resets_at"]) if one.get("resets_at") else None,
            }
            for kind, one in sorted(pool.admission.items())
        },
    }
