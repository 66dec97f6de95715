"""The commands that end a task: done, fail."""

from __future__ import annotations

import os

from landlane.cli.arguments import read_file, read_versions
from landlane.cli.task_text import answer_task
from landlane.cli.terminal import in_one_line
from landlane.git.run import try_git_output
from landlane.landing.submit import fetch_task_commits
from landlane.tasks.change import fail_task
from landlane.tasks.evidence import change_digest, complete_task
from landlane.tasks.lineage import lineage_of
from landlane.tasks.model import DONE, FAILED, LANDING, LONGEST_BODY, READY, REVIEW, WAITING, WaitKind
from landlane.tasks.records import get_task
from landlane.tasks.text import evidence_lines, state_text
from landlane.tasks.to_json import completion_json, tasks_json
from landlane.units import count, join_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.tasks.json_types import TaskJson

_EVIDENCE_MISSING = 6  # the exit code


def done(call: CommandCall, task: str, result: str, expect: tuple[str, ...]) -> int:
    """Report a task as done and show how far that is verified."""
    repo = call.repo
    if repo.checkout.common_dir:
        fetch_task_commits(repo, task)
    completion = complete_task(
        repo,
        call.session(),
        task,
        result=_read_result(result),
        expect=read_versions(expect),
    )
    answer = completion_json(completion, repo)
    lines = [in_one_line(line) for line in evidence_lines(completion)]
    if not answer["ok"]:
        call.terminal.note("\n".join(lines))
        return call.terminal.refuse(answer, _EVIDENCE_MISSING)
    return call.terminal.answer(answer, "\n".join([*lines, *_result_lines(call, answer["task"])]))


def _result_lines(call: CommandCall, task: dict[str, Any]) -> list[str]:
    """Return what became of a task whose evidence is complete, and the next step."""
    name = in_one_line(f"{task['id']} {task['title']}")
    if task["state"] == DONE:
        return [f"✓ {name} is done"]
    waits = [one["id"] for one in task["waits_for"] if one["id"]]
    if task["state"] == LANDING:
        if waits:
            return [f"✓ {name} is verified; it is done when {join_words(waits)} lands"]
        branch = (
            []
            if try_git_output(call.repo.checkout, "branch", "--show-current") == task["branch"]
            else [task["branch"]]
        )
        land = call.command_text("land", *branch, "--wait")
        return [f"✓ {name} is verified; it is done when it lands", f"next: {land}"]
    state = "in review" if task["state"] == REVIEW else state_text(task["state"])
    return [f"✓ {name} is {state}{f' ({join_words(waits)})' if waits else ''}"]


def _read_result(name: str) -> str:
    if name and name != "-" and not os.path.exists(name):
        return name  # a short result may be given literally
    return read_file(name, "--result", LONGEST_BODY)


def fail(call: CommandCall, task: str, why: str, final: bool) -> int:
    """Give a task back with a report of what was learned."""
    session, repo = call.session(), call.repo
    change = change_digest(repo, task)
    failed = fail_task(repo, session, task, why, is_final=final, change=change)
    (item,) = tasks_json(repo, [failed])
    sentence, *more = _failure_lines(call, item)
    return answer_task(call, failed, sentence, *more)


def _failure_lines(call: CommandCall, task: TaskJson) -> list[str]:
    """Return what becomes of a task after a failed attempt."""
    name = f"{task['id']} {task['title']}"
    counted = f"{task['failures']} of {count(task['max_attempts'], 'attempt')} failed"
    if task["state"] == READY:
        return [f"{name} is ready again ({counted}); your reason goes to the next agent"]
    if task["state"] == WAITING:
        gate = "".join(f" ({one['id']})" for one in task["waits_for"] if one["kind"] == WaitKind.GATE)
        stopped = lineage_of(call.repo, get_task(call.repo, task["id"])).parked.get(task["id"], "")
        reason = stopped.partition(". Last: ")[0].removeprefix("it ") or "needs a decision"
        return [f"{name} {reason}; a person decides now{gate}"]
    retry = f"next: give it another round: {call.command_text('task', 'retry', task['id'])}"
    if task["state"] == FAILED:
        return [f"{name} is marked failed and is not tried again", retry]
    return [f"{name} is not tried again ({counted})", retry]
