"""The command `once`."""

from __future__ import annotations

from landlane.cli.command import heed_signals
from landlane.clock import parse_duration
from landlane.processes.passthrough import check_command, run_passthrough
from landlane.state.once import run_once
from landlane.state.to_json import once_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command_call import CommandCall
    from landlane.state.once import Run


def once(call: CommandCall, key: str, command: tuple[str, ...], again: bool, wait: str) -> int:
    """Run a command, or show how an earlier run ended; exit with the command's code."""
    cwd = call.cwd
    check_command(command, cwd)
    out = 2 if call.terminal.is_json else 1

    def runner(on_start: Any, on_tick: Any) -> Any:
        return run_passthrough(command, cwd=cwd, out=out, err=2, on_start=on_start, on_tick=on_tick)

    def on_wait(run: Run) -> None:
        call.terminal.note(f"waiting for {run.agent}, who runs {run.key} …")

    wait_ms = parse_duration(wait, what="--wait") if wait else None
    session = call.session()
    heed_signals()
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
    answer, code = once_json(outcome)
    if call.terminal.is_json:
        call.terminal.answer(answer)
    elif not answer["ok"] and not answer["ran"]:
        call.terminal.complain(answer["message"], answer["hint"], answer["code"])
    elif not answer["ran"]:
        call.terminal.note(f"{key} was run before, by {answer['agent']}; exit {answer['exit']}")
    return code
