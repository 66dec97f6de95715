"""The command that lets a task be tried again, and what `task show` tells of its lineage's budget."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.main import Desk
    from landlane.tasks.model import Task


def retry(desk: Desk, task: str, why: str) -> int:
    """Give a task another round of attempts; what was stopped, only a person at a terminal lets go on."""
    from landlane.cli.task import answer_task
    from landlane.tasks.change import check_reason, get_task, retry_task
    from landlane.tasks.lineage import lineage_of
    from landlane.tasks.model import DEAD, FAILED

    context = desk.house.context
    found = get_task(context, task)
    lineage = lineage_of(context, found)
    session = desk.session()
    if found.id in lineage.parked or (lineage.stopped and found.state in (DEAD, FAILED)):
        from landlane.cli.person import person_at

        session = person_at(desk)
    return answer_task(desk, retry_task(context, session, task, check_reason(why) if why.strip() else ""))


def budget_of(desk: Desk, task: Task) -> tuple[dict[str, Any], list[str], list[dict[str, Any]]]:
    """What the lineage of a task has used, as JSON and in lines, and what was said of the others in it."""
    from landlane.tasks.lineage import family_with_lessons, lineage_of
    from landlane.tasks.retry_rules import limits_of
    from landlane.tasks.to_json import lesson_json, lineage_json, lineage_lines

    context = desk.house.context
    family, others = family_with_lessons(context, task)
    row = lineage_json(task, lineage_of(context, task), limits_of(context.settings), family)
    return row, lineage_lines(row), [lesson_json(one) for one in others]
