"""Tasks as the JSON that every door answers with."""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.operations.task_rows import pattern_pairs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.domain.duplicates import Likeness
    from landlane.domain.evidence import Proof
    from landlane.domain.tasks import Lesson, Task
    from landlane.ports.store import Store


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


def likeness_json(one: Likeness) -> dict[str, Any]:
    """A task that looks like another."""
    return {"id": one.task, "title": one.title, "state": one.state, "score": one.score, "reason": one.reason}


def proof_json(proof: Proof) -> dict[str, Any]:
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
