"""Answers that show a task or a refusal."""

from __future__ import annotations

from landlane.cli.terminal import in_one_line
from landlane.tasks.to_json import (
    similar_task_json,
    task_json,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command_call import CommandCall
    from landlane.tasks.duplicates import Likeness
    from landlane.tasks.model import Task


def point_out(call: CommandCall, similar: tuple[Likeness, ...]) -> int:
    """Refuse a task because others look like the same work; return the exit code."""
    first = similar[0]
    answer: dict[str, Any] = {
        "ok": False,
        "code": "TASK_SIMILAR",
        "message": f"{first.task} looks like the same work: {first.title}",
        "hint": f"work on {first.task}, or add it all the same with --force",
        "similar": [similar_task_json(one) for one in similar],
    }
    refuse(call, answer)
    for other in similar:
        call.terminal.note(f"  {other.task} ({other.state}, {other.score:.2f}): {in_one_line(other.reason)}")
    return 3


def refuse(call: CommandCall, answer: dict[str, Any]) -> None:
    """Answer with a refusal."""
    call.terminal.answer(answer, "")
    if not call.terminal.is_json:
        call.terminal.complain(answer["message"], answer["hint"], answer["code"])


def answer_task(call: CommandCall, task: Task) -> int:
    """Answer with the current task."""
    item = task_json(task, call.repo.store)
    why = f", {item['why']}" if item["why"] else ""
    text = in_one_line(f"{item['id']} {item['title']}: {item['state']}{why}")
    call.terminal.answer({"ok": True, "task": item}, text)
    return 0
