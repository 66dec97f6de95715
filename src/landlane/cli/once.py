"""The command `once`."""

from __future__ import annotations

from landlane.cli.arguments import read_wait
from landlane.cli.command import stop_on_signals
from landlane.processes.passthrough import check_command, run_passthrough
from landlane.state.once import run_once
from landlane.state.to_json import once_json
from landlane.units import time_ago

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.cli.command import CommandCall
    from landlane.processes.child import ChildResult
    from landlane.state.once import OnceRun


def once(call: CommandCall, key: str, command: tuple[str, ...], again: bool, wait: str) -> int:
    """Run a command, or show how an earlier run ended; exit with the command's code."""
    cwd = call.cwd
    check_command(command, cwd)
    out = 2 if call.terminal.is_json else 1

    def runner(on_start: Callable[[int], None], on_tick: Callable[[], None]) -> ChildResult:
        return run_passthrough(command, cwd=cwd, out=out, err=2, on_start=on_start, on_tick=on_tick)

    def on_wait(run: OnceRun) -> None:
        call.terminal.note(f"waiting for {run.key}, which {run.agent} is running …")

    wait_ms = read_wait(wait) or None
    session = call.session()
    stop_on_signals()
    outcome = run_once(
        call.repo,
        session,
        key,
        command,
        runner,
        is_again=again,
        wait_ms=wait_ms,
        on_wait=on_wait,
    )
    now = call.wall_now()
    answer, code = once_json(outcome, command, now)
    if not answer["ok"] and not answer["ran"]:
        return call.terminal.refuse(answer, code)
    run = outcome.run
    if not answer["ran"] and not call.terminal.is_quiet:
        age = time_ago(run.done_at or run.begun_at, now)
        call.terminal.note(f"{key} already ran: by {run.agent}, {age}, exit {run.exit_code}")
    return call.terminal.answer(answer, code=code)
