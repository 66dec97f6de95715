"""Answers that show a task, and what earlier attempts at it left."""

from __future__ import annotations

from landlane.cli.terminal import in_one_line
from landlane.tasks.git_evidence import GitEvidence
from landlane.tasks.model import branch_of
from landlane.tasks.text import attempt_text, state_text
from landlane.tasks.to_json import lesson_json, tasks_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.claims.json_types import ClaimJson
    from landlane.cli.command import CommandCall
    from landlane.tasks.model import Lesson, Task


def answer_task(call: CommandCall, task: Task, done: str = "", *more: str) -> int:
    """Answer with a task and a sentence that says what was done; by default, its state."""
    (item,) = tasks_json(call.repo, [task])
    text = in_one_line(f"✓ {done or f'{task.id} {task.title} is {state_text(task.state)}'}")
    return call.terminal.answer({"ok": True, "task": item}, "\n".join([text, *more]))


def earlier_attempts(
    call: CommandCall, task: Task, lessons: tuple[Lesson, ...], *, with_own: bool = False
) -> dict[str, Any]:
    """Return the feedback and the existing branches of earlier attempts."""
    attempts = range(1, task.attempt + with_own)
    branches = GitEvidence(call.repo).branches_among([branch_of(task.id, number) for number in attempts])
    return {"feedback": [lesson_json(one) for one in lessons], "branches": branches}


def feedback_lines(feedback: list[dict[str, Any]], prefix: str) -> list[str]:
    """Return the feedback of earlier attempts as lines of text; further lines are indented."""
    lines: list[str] = []
    for one in feedback:
        first, *more = one["why"].splitlines() or [""]
        lines.append(f"{prefix}attempt {one['attempt']}, {one['agent'] or 'landlane'}: {in_one_line(first)}")
        lines += [f"{' ' * len(prefix)}{in_one_line(line)}" for line in more if line.strip()]
    return lines


def picked_lines(task: Task, claims: Sequence[ClaimJson]) -> list[str]:
    """Return a task that the caller owns now, its claims, its check and its branch, as lines of text."""
    lines = [f"✓ {task.id} {task.title} is yours ({attempt_text(task)})"]
    lines += [f"  claimed  {', '.join(claim['pattern'] for claim in claims)}"] if claims else []
    lines += [f"  check    {task.check}"] if task.check else []
    lines += [f"  branch   {task.branch}"]
    return [in_one_line(line) for line in lines]
