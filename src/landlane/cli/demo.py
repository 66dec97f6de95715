"""The command `demo`: the same tasks in one checkout, in worktrees and with Landlane, compared in a table."""

from __future__ import annotations

import os
import sys
import tempfile

from landlane.cli.arguments import read_number
from landlane.cli.command import stop_on_signals
from landlane.cli.table import format_table
from landlane.demo.measure import WAYS
from landlane.demo.run import FEWEST_AGENTS, MOST_AGENTS, demo_json, run_demo, table_rows
from landlane.demo.sample_tasks import FEWEST_TASKS, MOST_TASKS
from landlane.demo.scratch import DemoRun
from landlane.errors import Malformed
from landlane.platform.terminal import is_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import CommandCall


def demo(call: CommandCall, agents: str, seed: str, tasks: str, way: str, keep: bool, recount: str) -> int:
    """Run the three variants on scratch repositories, or evaluate an earlier demo again."""
    agent_count = _read_within(agents, "--agents", FEWEST_AGENTS, MOST_AGENTS)
    task_count = _read_within(tasks, "--tasks", FEWEST_TASKS, MOST_TASKS)
    number = read_number(seed, "--seed") or 0
    if recount:
        return _count(call, os.path.join(call.cwd, recount))
    return _run(call, agents=agent_count, tasks=task_count, seed=number, ways=_read_ways(way), is_kept=keep)


def _read_ways(text: str) -> tuple[str, ...]:
    if text and text not in WAYS:
        raise Malformed(
            f"--way must be one of {', '.join(WAYS)}, not {text[:20]!r}",
            code="BAD_CALL",
            hint="leave it out to see all three",
        )
    return (text,) if text else WAYS


def _read_within(text: str, what: str, least: int, most: int) -> int:
    number = read_number(text, what)
    if number is None or not least <= number <= most:
        raise Malformed(
            f"{what} must be a number from {least} to {most}, not {text[:20]!r}",
            code="BAD_NUMBER",
            hint=f"landlane demo {what} {most if what == '--tasks' else 8}",
        )
    return number


def _run(
    call: CommandCall, *, agents: int, tasks: int, seed: int, ways: tuple[str, ...], is_kept: bool
) -> int:
    stop_on_signals()
    has_terminal = not call.terminal.is_json and is_terminal(sys.stderr)
    folder = os.path.realpath(tempfile.mkdtemp(prefix="landlane-demo-"))
    try:
        with DemoRun(folder, is_kept=is_kept, report=call.terminal.note, has_terminal=has_terminal) as run:
            run_demo(run, agents=agents, seed=seed, tasks=tasks, ways=ways)
            call.terminal.note("\nMeasuring the results …\n")
            return _count(call, folder, is_kept=is_kept)
    finally:
        if is_kept:
            shop = os.path.join(folder, ways[-1], "shop")
            call.terminal.note(f"\nkept in {folder}: {', '.join(f'{way}/shop' for way in ways)}")
            call.terminal.note(
                f"look around: cd {shop} && landlane task list --all && git log --graph --oneline"
            )
            call.terminal.note(f"measure again: landlane demo --recount {folder}")


def _count(call: CommandCall, folder: str, *, is_kept: bool = True) -> int:
    answer = demo_json(folder)
    head, rows = table_rows(answer)
    answer["folder"] = folder if is_kept else None
    call.terminal.answer(answer, format_table(head, rows, right=head[1:]))
    if not answer["ok"] and not call.terminal.is_json:
        call.terminal.print_error(answer["message"], answer["hint"], answer["code"])
    return 0 if answer["ok"] else 1
