"""The command `exec`: run a command as an agent in its sandbox."""

from __future__ import annotations

import os
import signal

from landlane.app.repair_config import prepare_git
from landlane.cli.command import Stopped
from landlane.error_json import failure_json
from landlane.exec.execute import execute as run
from landlane.exec.model import ExecRequest, StopSignal
from landlane.processes.passthrough import check_command
from landlane.sandbox.model import GuaranteeState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.exec.model import ExecResult
    from landlane.sandbox.model import Guarantee


def execute(call: CommandCall, command: tuple[str, ...], role: str, name: str, task: str) -> int:
    """Run the command in a sandbox and return its exit code."""
    terminal = call.terminal
    check_command(command, call.cwd)
    has_terminal = not terminal.is_json and os.isatty(0) and os.isatty(1)
    stop = StopSignal(has_terminal=has_terminal)
    _handle_signals(stop)
    repo = prepare_git(call.repo, terminal.note)
    caller = call.session()

    def on_start(held: Sequence[Guarantee], backend: str) -> None:
        missing = [promise.text() for promise in held if promise.state == GuaranteeState.OPEN]
        terminal.note(f"sandbox: {backend}" + (f"; not held here: {'; '.join(missing)}" if missing else ""))

    request = ExecRequest(
        role=role,
        command=command,
        agent=name,
        task=task,
        stdout=2 if terminal.is_json else 1,
        has_terminal=has_terminal,
    )
    done = run(repo, caller, request, on_start, stop)
    if done.stopped_by:
        raise Stopped(done.stopped_by)
    code = done.exit_code if done.exit_code >= 0 else 128 - done.exit_code
    if done.head and not done.is_task_over:
        terminal.note(
            f"not landed: {done.head[:12]} on {done.branch}; to go on: "
            f"`landlane workspace open {done.task}`, then `git merge {done.branch}` there"
        )
    return terminal.answer(_result_json(done, role, code), code=code)


def _handle_signals(stop: StopSignal) -> None:
    """End on a signal, but not while the run is being cleaned up."""

    def handle(number: int, _: object) -> None:
        if stop.receive(number):
            raise Stopped(number)

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is not signal.SIG_IGN:  # ignored on purpose, as by nohup
            signal.signal(number, handle)


def _result_json(done: ExecResult, role: str, code: int) -> dict[str, Any]:
    answer = {
        "ok": True,
        "exit": code,
        "agent": done.agent,
        "role": role,
        "task": done.task or None,
        "workspace": done.workspace or None,
        "branch": done.branch or None,
        "head": done.head or None,
        "rescue": done.rescue or None,
        "sandbox": done.backend,
        "promises": [
            {"name": one.promise, "state": one.state, "by": one.by or None, "why": one.why or None}
            for one in done.guarantees
        ],
    }
    if code:
        hint = "its output says why; what the sandbox forbids: landlane role show ROLE"
        answer |= failure_json("COMMAND_FAILED", f"the command ended with exit code {code}", hint)
    return answer
