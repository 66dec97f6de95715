"""What earlier attempts at a task left: their feedback and branches."""

from __future__ import annotations

from landlane.cli.terminal import in_one_line
from landlane.tasks.git_evidence import GitEvidence
from landlane.tasks.model import branch_of
from landlane.tasks.to_json import (
    lesson_json,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command_call import CommandCall
    from landlane.tasks.model import Lesson, Task


def earlier_attempts(
    call: CommandCall, task: Task, lessons: tuple[Lesson, ...], *, with_own: bool = False
) -> dict[str, Any]:
    """Return the feedback and the existing branches of earlier attempts."""
    attempts = range(1, task.attempt + with_own)
    branches = GitEvidence(call.repo).branches_among([branch_of(task.id, number) for number in attempts])
    return {"feedback": [lesson_json(one) for one in lessons], "branches": branches}


def earlier_lines(before: dict[str, Any], said: str, there: str) -> list[str]:
    """Return what earlier attempts left as lines of text."""
    lines = [
        f"{said}attempt {one['attempt']}, {one['agent'] or 'landlane'}: {in_one_line(one['why'])}"
        for one in before["feedback"]
    ]
    return lines + [f"{there}{branch}" for branch in before["branches"]]
