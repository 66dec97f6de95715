"""The commands that describe a task: task add, task plan."""

from __future__ import annotations

from landlane.cli.parse_number import read_number
from landlane.cli.read_file import read_file
from landlane.cli.task_answers import answer_task, point_out
from landlane.reviews.model import check_step
from landlane.tasks.add import LooksAlike, add_task, declare_paths
from landlane.tasks.model import LONGEST_BODY, NewTask
from landlane.tasks.to_json import (
    similar_task_json,
    task_json,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command_call import CommandCall


def add(
    call: CommandCall,
    title: str,
    body: str,
    path: tuple[str, ...],
    after: tuple[str, ...],
    role: str,
    kind: str,
    output: str,
    priority: str,
    max_attempts: str,
    check: str,
    key: str,
    label: tuple[str, ...],
    parent: str,
    review: str,
    reviewer: tuple[str, ...],
    decider: str,
    next: str,
    force: bool,
) -> int:
    """Add a task, or show similar tasks."""
    new = NewTask(
        title=title,
        body=read_file(body, "--body", LONGEST_BODY),
        kind=kind,
        role=role,
        priority=_signed(priority, "--priority"),
        paths=path,
        after=after,
        max_attempts=read_number(max_attempts or "3", "--max-attempts") or 0,
        check=check,
        output=output,
        key=key,
        labels=(*label, *check_step(read_number(review, "--review") or 0, reviewer, decider)),
        parent=parent,
        next_action=next,
    )
    repo = call.repo
    outcome = add_task(repo, call.session(), new, force=force)
    if isinstance(outcome, LooksAlike):
        return point_out(call, outcome.similar)
    word = "added" if outcome.is_new else "was there already:"
    task = task_json(outcome.task, repo.store)
    why = f", {task['why']}" if task["why"] else ""
    similar = [similar_task_json(one) for one in outcome.similar]
    answer = {"ok": True, "task": task, "similar": similar, "new": outcome.is_new}
    call.terminal.answer(answer, f"{word} {task['id']} {task['title']} ({task['state']}{why})")
    return 0


def _signed(text: str, what: str) -> int:
    if text[:1] == "-":
        return -(read_number(text[1:], what) or 0)
    return read_number(text, what) or 0


def plan(call: CommandCall, task: str, paths: tuple[str, ...], force: bool) -> int:
    """Set what a task will change, or show similar tasks."""
    repo = call.repo
    patterns = [repo.git.pattern(text) for text in paths]
    outcome = declare_paths(repo, call.session(), task, patterns, force=force)
    if isinstance(outcome, LooksAlike):
        return point_out(call, outcome.similar)
    return answer_task(call, outcome.task)
