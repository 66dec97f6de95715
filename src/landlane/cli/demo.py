"""The demo: the same tasks in one checkout, in worktrees and with Landlane, and one table at the end."""

from __future__ import annotations

import os
import sys
import tempfile

from landlane.cli.parse_number import read_number
from landlane.errors import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import Desk


def demo(desk: Desk, agents: str, seed: str, tasks: str, way: str, keep: bool, recount: str) -> int:
    """Play the three ways on scratch repositories, or count anew what an earlier demo left."""
    from landlane.demo.run import FEWEST_AGENTS, MOST_AGENTS
    from landlane.demo.sample_tasks import FEWEST_TASKS, MOST_TASKS

    many = _within(agents, "--agents", FEWEST_AGENTS, MOST_AGENTS)
    count = _within(tasks, "--tasks", FEWEST_TASKS, MOST_TASKS)
    number = read_number(seed, "--seed") or 0
    if recount:
        return _count(desk, os.path.join(desk.cwd, recount))
    return _play(desk, agents=many, tasks=count, seed=number, ways=_ways(way), is_kept=keep)


def _ways(text: str) -> tuple[str, ...]:
    from landlane.demo.measure import WAYS

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


def _play(desk: Desk, *, agents: int, tasks: int, seed: int, ways: tuple[str, ...], is_kept: bool) -> int:
    from landlane.cli.command import heed_signals
    from landlane.demo.run import play
    from landlane.demo.scratch import Stage
    from landlane.platform.terminal import is_terminal

    heed_signals()
    is_watched = not desk.terminal.is_json and is_terminal(sys.stderr)
    folder = os.path.realpath(tempfile.mkdtemp(prefix="landlane-demo-"))
    try:
        with Stage(folder, is_kept=is_kept, say=desk.terminal.note, is_watched=is_watched) as stage:
            play(stage, agents=agents, seed=seed, tasks=tasks, ways=ways)
            desk.terminal.note("\ncounting what is left …\n")
            return _count(desk, folder, is_kept=is_kept)
    finally:
        if is_kept:
            shop = os.path.join(folder, ways[-1], "shop")
            desk.terminal.note(f"\nkept in {folder}: {', '.join(f'{way}/shop' for way in ways)}")
            desk.terminal.note(f"look around: cd {shop} && landlane task list && git log --graph --oneline")
            desk.terminal.note(f"count again: landlane demo --recount {folder}")


def _count(desk: Desk, folder: str, *, is_kept: bool = True) -> int:
    from landlane.demo.run import answer_of, rows_of

    answer = answer_of(folder)
    head, rows = rows_of(answer)
    answer["folder"] = folder if is_kept else None
    desk.terminal.answer(answer, desk.terminal.table("", head, rows).lstrip("\n"))
    if not answer["ok"] and not desk.terminal.is_json:
        desk.terminal.complain(answer["message"], answer["hint"], answer["code"])
    return 0 if answer["ok"] else 1
