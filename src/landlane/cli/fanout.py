"""The commands about split tasks: task split, task parts."""

from __future__ import annotations

from landlane.cli.plan import load_plan
from landlane.cli.terminal import in_one_line
from landlane.clock import parse_duration
from landlane.errors import NotAllowed
from landlane.fanout import split as fans
from landlane.fanout.join import find_fan, list_fans
from landlane.fanout.to_json import fan_json, fan_text
from landlane.tasks.to_json import task_json
from landlane.units import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import CommandCall
    from landlane.plans.model import Plan


def split(call: CommandCall, task: str, plan: str, policy: str, deadline: str, rest: str) -> int:
    """Split a task into the branches of a plan."""
    planned = load_plan(call, plan)
    _refuse_checks(call, planned)
    deadline_ms = parse_duration(deadline, what="--deadline") if deadline else 0
    repo = call.repo
    done = fans.split_task(repo, call.session(), task, planned, policy, deadline_ms, rest or "drop")
    tasks = [task_json(one, repo.store) for one in done.tasks]
    count = f"{len(tasks)} branch{'' if len(tasks) == 1 else 'es'}"
    word = "waits for" if done.is_new else "waits already for"
    lines = [f"{done.fan.id}: {done.fan.task} {word} {count} ({done.fan.policy})"]
    lines += [in_one_line(f"  {item['id']} {item['title']} ({item['state']})") for item in tasks]
    answer = {"ok": True, "fan": fan_json(done.fan), "tasks": tasks, "new": done.is_new}
    return call.terminal.answer(answer, "\n".join(lines))


def _refuse_checks(call: CommandCall, plan: Plan) -> None:
    """Refuse check commands from a sandboxed caller: they would run outside the sandbox."""
    checked = next((task.name for task in plan.tasks if task.check), "")
    if checked and call.is_sandboxed:
        raise NotAllowed(
            f"the check of {checked[:80]!r} would run outside the sandbox",
            code="NOT_IN_SANDBOX",
            hint="leave the checks out, or ask who started you to split the task",
        )


def parts(call: CommandCall, task: str, all: bool) -> int:
    """Show the parts of a split task with their results in order, or list the tasks that were split."""
    call.renew_session()
    if not task:
        return _list(call, with_all=all)
    fan, branches = find_fan(call.repo, task)
    text = "\n".join(in_one_line(line) for line in fan_text(fan, branches).split("\n"))
    return call.terminal.answer({"ok": True, "fan": fan_json(fan, branches)}, text)


def _list(call: CommandCall, *, with_all: bool) -> int:
    items = [fan_json(fan) for fan in list_fans(call.repo, with_all=with_all)]
    columns = ["id", "task", "state", "policy", "branches", "deadline", "why"]
    return call.terminal.answer_items(count(len(items), "split task"), "fans", items, columns)
