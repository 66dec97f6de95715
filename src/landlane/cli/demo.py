"""The command `demo`: the same tasks in one checkout, in worktrees and with Landlane, compared in a table."""

from __future__ import annotations

import os
import sys
import tempfile

from landlane.cli.command import heed_signals
from landlane.cli.parse_number import read_number
from landlane.demo.measure import WAYS
from landlane.demo.run import FEWEST_AGENTS, MOST_AGENTS, answer_of, play, rows_of
from landlane.demo.sample_tasks import FEWEST_TASKS, MOST_TASKS
from landlane.demo.scratch import Stage
from landlane.errors import Malformed
from landlane.platform.terminal import is_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command_call import CommandCall


def demo(call: CommandCall, agents: str, seed: str, tasks: str, way: str, keep: bool, recount: str) -> int:
    """Run the three variants on scratch repositories, or evaluate an earlier demo again."""
    many = _within(agents, "--agents", FEWEST_AGENTS, MOST_AGENTS)
    count = _within(tasks, "--tasks", FEWEST_TASKS, MOST_TASKS)
    number = read_number(seed, "--seed") or 0
    if recount:
        return _count(call, os.path.join(call.cwd, recount))
    return _play(call, agents=many, tasks=count, seed=number, ways=_ways(way), is_kept=keep)


def _ways(text: str) -> tuple[str, ...]:
    if text and text not in WAYS:
        raise Malformed(
            f"--way must be one of {', '.join(WAYS)}, not {text[:20]!r}",
            code="BAD_CALL",
            hint="leave it out to see all three",
        )
    return (text,) if text else WAYS


def _within(text: str, what: str, least: int, most: int) -> int:
    number = read_number(text, what)
    if number is None or not least <= number <= most:
        raise Malformed(
            f"{what} must be a number from {least} to {most}, not {text[:20]!r}",
            code="BAD_NUMBER",
            hint=f"landlane demo {what} {most if what == '--tasks' else 8}",
        )
    return number


def _play(
    call: CommandCall, *, agents: int, tasks: int, seed: int, ways: tuple[str, ...], is_kept: bool
) -> int:
    heed_signals()
    is_watched = not call.terminal.is_json and is_terminal(sys.stderr)
    folder = os.path.realpath(tempfile.mkdtemp(prefix="landlane-demo-"))
    try:
        with Stage(folder, is_kept=is_kept, say=call.terminal.note, is_watched=is_watched) as stage:
            play(stage, agents=agents, seed=seed, tasks=tasks, ways=ways)
            call.terminal.note("\ncounting what is left …\n")
            return _count(call, folder, is_kept=is_kept)
    finally:
        if is_kept:
            shop = os.path.join(folder, ways[-1], "shop")
            call.terminal.note(f"\nkept in {folder}: {', '.join(f'{way}/shop' for way in ways)}")
            call.terminal.note(f"look around: cd {shop} && landlane task list && git log --graph --oneline")
            call.terminal.note(f"count again: landlane demo --recount {folder}")


def _count(call: CommandCall, folder: str, *, is_kept: bool = True) -> int:
    answer = answer_of(folder)
    head, rows = rows_of(answer)
    answer["folder"] = folder if is_kept else None
    call.terminal.answer(answer, call.terminal.table("", head, rows).lstrip("\n"))
    if not answer["ok"] and not call.terminal.is_json:
        call.terminal.complain(answer["message"], answer["hint"], answer["code"])
    return 0 if answer["ok"] else 1
