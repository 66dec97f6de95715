"""The commands about split tasks: fanout, fan list, fan show."""

from __future__ import annotations

import os

from landlane.cli.plan import read_text
from landlane.cli.terminal import in_one_line
from landlane.clock import parse_duration
from landlane.errors import NotAllowed
from landlane.fanout import split as fans
from landlane.fanout.read import find_fan, list_fans
from landlane.fanout.to_json import fan_json, fan_text
from landlane.plans.parse import read_plan
from landlane.tasks.to_json import task_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command_call import CommandCall
    from landlane.plans.model import Plan


def fan_out(call: CommandCall, task: str, plan: str, policy: str, deadline: str, rest: str) -> int:
    """Split a task into the branches of a plan."""
    read = read_plan(read_text(call, plan), os.path.basename(plan))
    _refuse_checks(call, read)
    deadline_ms = parse_duration(deadline, what="--deadline") if deadline else 0
    repo = call.repo
    done = fans.fan_out(repo, call.session(), task, read, policy, deadline_ms, rest or "drop")
    tasks = [task_json(one, repo.store) for one in done.tasks]
    count = f"{len(tasks)} branch{'' if len(tasks) == 1 else 'es'}"
    word = "waits for" if done.is_new else "waits already for"
    lines = [f"{done.fan.id}: {done.fan.task} {word} {count} ({done.fan.policy})"]
    lines += [in_one_line(f"  {item['id']} {item['title']} ({item['state']})") for item in tasks]
    answer = {"ok": True, "fan": fan_json(done.fan), "tasks": tasks, "new": done.is_new}
    call.terminal.answer(answer, "\n".join(lines))
    return 0


def _refuse_checks(call: CommandCall, plan: Plan) -> None:
    """Refuse check commands from a sandboxed caller: they would run outside the sandbox."""
    odd = next((task.name for task in plan.tasks if task.check), "")
    if odd and getattr(call, "state_folder", ""):
        raise NotAllowed(
            f"the check of {odd[:80]!r} would run outside the sandbox",
            code="NOT_IN_SANDBOX",
            hint="leave the checks out, or ask who started you to split the task",
        )


def show(call: CommandCall, id: str) -> int:
    """Show a fan with its results and failures in order."""
    call.show_life()
    fan, branches = find_fan(call.repo, id)
    text = "\n".join(in_one_line(line) for line in fan_text(fan, branches).split("\n"))
    call.terminal.answer({"ok": True, "fan": fan_json(fan, branches)}, text)
    return 0


def list_all(call: CommandCall, all: bool) -> int:
    """Show the open fans, or all."""
    call.show_life()
    items = [fan_json(fan) for fan in list_fans(call.repo, with_all=all)]
    columns = ["id", "task", "state", "policy", "branches", "deadline", "why"]
    cells = [
        [", ".join(item[column]) if column == "branches" else str(item[column] or "") for column in columns]
        for item in items
    ]
    title = f"{len(items)} split task{'' if len(items) == 1 else 's'}"
    call.terminal.answer({"ok": True, "fans": items}, call.terminal.table(title, columns, cells))
    return 0
