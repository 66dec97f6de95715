"""The commands that end a task: done, fail."""

from __future__ import annotations

import os

from landlane.cli.read_file import read_file
from landlane.cli.task_answers import answer_task
from landlane.cli.terminal import in_one_line
from landlane.landing.submit import fetch_task_commits
from landlane.tasks.change import fail_task
from landlane.tasks.evidence import change_digest, complete_task
from landlane.tasks.model import LONGEST_BODY
from landlane.tasks.to_json import (
    evidence_json,
    task_json,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command_call import CommandCall


def done(call: CommandCall, task: str, result: str) -> int:
    """Report a task as done and show how far that is verified."""
    repo = call.repo
    if repo.checkout.common_dir:
        fetch_task_commits(repo, task)
    completion = complete_task(
        repo,
        call.session(),
        task,
        result=_read_result(result),
        on_step=lambda name: call.terminal.note(f"looking at: {name}"),
    )
    item = task_json(completion.task, repo.store)
    evidence = [evidence_json(item) for item in completion.evidence]
    lines = [f"{item['id']} {item['title']}: {item['state']}"]
    lines += [
        in_one_line(f"  {'seen   ' if one['seen'] else 'MISSING'} {one['name']}: {one['found']}")
        for one in evidence
    ]
    lines += [f"  hint: {in_one_line(one['hint'])}" for one in evidence if one["hint"]]
    lines += [f"  next: {item['next_action']}"] if item["state"] == "landing" else []
    call.terminal.answer({"ok": True, "task": item, "evidence": evidence}, "\n".join(lines))
    return 0


def _read_result(name: str) -> str:
    if name and name != "-" and not os.path.exists(name):
        return name  # a short result may be given literally
    return read_file(name, "--result", LONGEST_BODY)


def fail(call: CommandCall, task: str, why: str, final: bool) -> int:
    """Give a task back with a report of what was learned."""
    session, repo = call.session(), call.repo
    change = change_digest(repo, task)
    return answer_task(call, fail_task(repo, session, task, why, is_final=final, change=change))
