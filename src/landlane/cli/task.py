"""The commands for tasks: task list, show, import, after, block, unblock, drop."""

from __future__ import annotations

from landlane.cli.read_file import read_file
from landlane.cli.task_answers import answer_task
from landlane.cli.task_attempts import earlier_attempts, earlier_lines
from landlane.cli.terminal import in_one_line
from landlane.errors import Malformed
from landlane.tasks.change import block_task, drop_task, unblock_task
from landlane.tasks.checklist import as_checklist
from landlane.tasks.extensions import settle_due
from landlane.tasks.finish import add_dependency
from landlane.tasks.import_checklist import import_checklist
from landlane.tasks.lineage import family_with_lessons, lineage_of
from landlane.tasks.model import STATES
from landlane.tasks.records import get_task, lessons_of, links_of, list_tasks
from landlane.tasks.retry_rules import limits_of
from landlane.tasks.to_json import (
    lesson_json,
    lineage_json,
    lineage_lines,
    similar_task_json,
    task_json,
    task_paths,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command_call import CommandCall
    from landlane.tasks.model import Task


_LONGEST_LIST = 8_000_000


def list_all(call: CommandCall, state: tuple[str, ...], label: str, markdown: bool) -> int:
    """List tasks as a table, as JSON, or as a checklist."""
    for name in state:
        if name not in STATES:
            raise Malformed(
                f"{name[:40]!r} is no state", code="UNKNOWN_STATE", hint=f"one of {', '.join(STATES)}"
            )
    repo = call.repo
    call.show_life()
    found = [task for task in list_tasks(repo, state) if not label or label in task.labels]
    if markdown and not call.terminal.is_json:
        call.terminal.answer({}, as_checklist((task, task_paths(task)) for task in found).rstrip("\n"))
        return 0
    items = [task_json(task, repo.store) for task in found]
    columns = ["id", "state", "owner", "priority", "attempt", "title", "why"]
    cells = [[str(item[column] if item[column] is not None else "") for column in columns] for item in items]
    title = f"{len(items)} task{'' if len(items) == 1 else 's'}"
    call.terminal.answer({"ok": True, "tasks": items}, call.terminal.table(title, columns, cells))
    return 0


def import_list(call: CommandCall, file: str, force: bool) -> int:
    """Import a checklist as tasks."""
    repo = call.repo
    text = read_file(file, "the checklist", _LONGEST_LIST)
    outcome = import_checklist(repo, call.session(), text, force=force)
    added = [task_json(task, repo.store) for task in outcome.added]
    skipped: list[dict[str, Any]] = [
        {"title": title, "similar": [similar_task_json(one) for one in similar]}
        for title, similar in outcome.skipped
    ]
    lines = [f"added {task['id']} {task['title']}" for task in added]
    lines += [
        f"skipped {one['title']}: looks like {one['similar'][0]['id']} (--force adds it)" for one in skipped
    ]
    answer = {"ok": True, "tasks": added, "known": outcome.known, "skipped": skipped}
    call.terminal.answer(answer, "\n".join(lines) or "nothing new")
    return 0


def show(call: CommandCall, task: str) -> int:
    """Show one task in full."""
    repo = call.repo
    call.show_life()
    settle_due(repo)
    found = get_task(repo, task)
    item = task_json(found, repo.store)
    links = [{"id": other, "reason": reason} for other, reason in links_of(repo, task)]
    before = earlier_attempts(call, found, lessons_of(repo, task), with_own=True)
    lines = [f"{key:<13} {in_one_line(str(item[key]))}" for key in item if item[key] not in (None, [], "")]
    lines += [f"looks like    {link['id']}: {in_one_line(link['reason'])}" for link in links]
    retries, budget, others = budget_of(call, found)
    lines += [in_one_line(line) for line in budget]
    lines += earlier_lines(before, "feedback      ", "work there    ")
    lines += earlier_lines({"feedback": others, "branches": []}, "of its family ", "")
    answer = {"ok": True, "task": item, "similar": links, **before, "retries": retries}
    call.terminal.answer({**answer, "family_feedback": others}, "\n".join(lines))
    return 0


def after(call: CommandCall, task: str, before: str) -> int:
    """Make a task wait for another."""
    return answer_task(call, add_dependency(call.repo, call.session(), task, before))


def block(call: CommandCall, task: str, why: str) -> int:
    """Block a task."""
    return answer_task(call, block_task(call.repo, call.session(), task, why))


def unblock(call: CommandCall, task: str) -> int:
    """Unblock a task."""
    return answer_task(call, unblock_task(call.repo, call.session(), task))


def drop(call: CommandCall, task: str, why: str) -> int:
    """Drop a task permanently."""
    return answer_task(call, drop_task(call.repo, call.session(), task, why))


def budget_of(call: CommandCall, task: Task) -> tuple[dict[str, Any], list[str], list[dict[str, Any]]]:
    """Return the usage of a task's lineage as JSON and lines, with the reports on its other tasks."""
    repo = call.repo
    family, others = family_with_lessons(repo, task)
    item = lineage_json(task, lineage_of(repo, task), limits_of(repo.settings), family)
    return item, lineage_lines(item), [lesson_json(lesson) for lesson in others]
