"""The commands about split tasks: task split, task parts."""

from __future__ import annotations

from landlane.cli.plan import load_plan
from landlane.cli.table import empty_text
from landlane.cli.terminal import in_one_line
from landlane.clock import parse_duration
from landlane.fanout import split as fans
from landlane.fanout.join import find_fan, list_fans
from landlane.fanout.model import OPEN
from landlane.fanout.to_json import condition_text, fan_json, fan_lines
from landlane.tasks.records import get_task
from landlane.tasks.to_json import task_json
from landlane.units import join_words
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import CommandCall


def split(call: CommandCall, task: str, plan: str, policy: str, deadline: str, rest: str) -> int:
    """Split a task into the branches of a plan."""
    planned = load_plan(call, plan)
    deadline_ms = parse_duration(deadline, what="--deadline") if deadline else 0
    repo = call.repo
    done = fans.split_task(repo, call.session(), task, planned, policy, deadline_ms, rest or "drop")
    tasks = [task_json(one, repo.store) for one in done.tasks]
    names = join_words([item["id"] for item in tasks])
    named = f"{done.fan.task} {get_task(repo, done.fan.task).title}"
    how = f"split {named} into {names}" if done.is_new else f"{named} is already split into {names}"
    condition = condition_text(done.fan, call.wall_now())
    lines = [
        in_one_line(f"✓ {how}; {done.fan.task} continues {condition}"),
        f"next: {call.command_text('run')}",
    ]
    answer = {"ok": True, "fan": fan_json(done.fan), "tasks": tasks, "new": done.is_new}
    return call.terminal.answer(answer, "\n".join(lines), quiet="\n".join(item["id"] for item in tasks))


def parts(call: CommandCall, task: str, all: bool) -> int:
    """Show the parts of a split task with their results in order, or list the tasks that were split."""
    call.renew_session()
    if not task:
        return _list(call, with_all=all)
    fan, branches = find_fan(call.repo, task)
    fan = replace(fan, title=get_task(call.repo, fan.task).title)
    text = "\n".join(map(in_one_line, fan_lines(fan, branches, call.wall_now())))
    return call.terminal.answer({"ok": True, "fan": fan_json(fan, branches)}, text)


def _list(call: CommandCall, *, with_all: bool) -> int:
    fans = list_fans(call.repo, with_all=with_all)
    now = call.wall_now()
    rows = [
        [
            f"{fan.task} {get_task(call.repo, fan.task).title}",
            fan.state,
            ", ".join(fan.children),
            condition_text(fan, now) if fan.state == OPEN else fan.why,
        ]
        for fan in fans
    ]
    table = call.terminal.table("", ["task", "state", "parts", "continues"], rows, cut="TASK")
    answer = {"ok": True, "fans": [fan_json(fan) for fan in fans]}
    return call.terminal.answer(answer, table or empty_text("split task"))
