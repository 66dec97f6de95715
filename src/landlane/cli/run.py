"""The commands that run tasks with workers: run, worker."""

from __future__ import annotations

import os
import signal
import sys

from landlane.app.repair_config import prepare_git
from landlane.cli.plan import read_text
from landlane.cli.run_progress import RunView
from landlane.errors import Malformed
from landlane.plans.add_tasks import enter_plan
from landlane.plans.parse import read_plan
from landlane.platform.terminal import is_terminal
from landlane.processes.fork_server import ForkServer
from landlane.tasks.records import list_tasks
from landlane.workers.admit import check_can_run
from landlane.workers.model import RunRequest
from landlane.workers.orchestrator import Orchestrator
from landlane.workers.to_json import summary_json, summary_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command_call import CommandCall
    from landlane.cli.terminal import Terminal
    from landlane.workers.model import RunSummary


_MOST_WORKERS = 256
_OVER = ("done", "dropped", "dead")


def run(
    call: CommandCall,
    plan: str | None,
    workers: str,
    agent: str,
    until_empty: bool,
    force: bool,
    offline: bool,
) -> int:
    """Run the tasks of a plan, or all that are ready."""
    count = _count(call, workers)
    tasks = _enter(call, plan, force=force) if plan else frozenset[str]()
    request = RunRequest(workers=count, tasks=tasks, agent=agent, until_empty=until_empty, is_offline=offline)
    return _run(call, request)


def work(call: CommandCall, workers: str, agent: str, until_empty: bool, offline: bool) -> int:
    """Take tasks as they become ready."""
    count = _count(call, workers)
    return _run(
        call,
        RunRequest(
            workers=count, agent=agent, until_empty=until_empty, is_continuous=True, is_offline=offline
        ),
    )


def _count(call: CommandCall, workers: str) -> int:
    if not workers:
        return call.repo.settings.run.workers
    is_number = workers.isascii() and workers.isdigit() and len(workers) < 6
    if not is_number or not 1 <= int(workers) <= _MOST_WORKERS:
        raise Malformed(
            f"--workers must be a number from 1 to {_MOST_WORKERS}, not {workers[:20]!r}",
            code="OUT_OF_RANGE",
            hint="--workers 4",
        )
    return int(workers)


def _enter(call: CommandCall, plan: str, *, force: bool) -> frozenset[str]:
    """Add the tasks of a plan to the queue; running a plan again adds nothing twice."""
    read = read_plan(read_text(call, plan), os.path.basename(plan))
    entered = enter_plan(call.repo, call.session(), read, force=force)
    for name, similar in entered.skipped:
        others = ", ".join(f"{likeness.task} ({likeness.reason})" for likeness in similar[:3])
        call.terminal.note(f"{name} is not added: it looks like {others}; --force adds it")
    known = len(entered.tasks) - len(entered.added)
    call.terminal.note(
        f"{len(entered.added)} task{'s' if len(entered.added) != 1 else ''} added"
        + (f", {known} were there" if known else "")
    )
    return frozenset(task.id for task in entered.tasks)


def _run(call: CommandCall, request: RunRequest) -> int:
    repo = prepare_git(call.repo, call.terminal.note)
    call.session()
    tasks = [task for task in list_tasks(repo) if not request.tasks or task.id in request.tasks]
    check_can_run(repo, tasks, request)
    if not (request.is_continuous or request.tasks) and all(task.state in _OVER for task in tasks):
        call.terminal.note("there is nothing to do: landlane task add 'what is to be done' --path PATH")
    view = _show_run(call.terminal)
    common = {"folder": call.cwd, "is_json": call.terminal.is_json or view.is_live}
    fork_server = ForkServer([sys.executable, "-m", "landlane.cli.supervisor_server"], call.cwd, common)
    orchestrator = Orchestrator(repo, request, fork_server, view.on_event)
    _handle_signals(orchestrator)
    with view:
        summary = orchestrator.run(view.on_status)
    call.terminal.answer(
        {"ok": _exit_code(summary) == 0, **_failed(summary), "summary": summary_json(summary)},
        summary_text(summary),
    )
    return _exit_code(summary)


def _handle_signals(orchestrator: Orchestrator) -> None:
    """Ctrl-C once drains, twice stops; SIGTERM and SIGHUP stop. The view shows it."""

    def on_interrupt(_: int, __: object) -> None:
        # Nothing is printed here: the signal may have come in the middle of a line.
        if orchestrator.is_draining:
            orchestrator.stop()
        else:
            orchestrator.drain()

    def on_stop(_: int, __: object) -> None:
        orchestrator.stop()

    signal.signal(signal.SIGINT, on_interrupt)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # ignored on purpose, as by nohup
            signal.signal(number, on_stop)


def _exit_code(summary: RunSummary) -> int:
    if summary.is_stopped:
        return 1 if summary.left or summary.failed else 0
    if summary.failed or summary.paused or summary.left:
        return 1
    return 7 if summary.waiting else 0


def _failed(summary: RunSummary) -> dict[str, Any]:
    code = _exit_code(summary)
    if code == 0:
        return {}
    if code == 7:
        return {
            "code": "WAITS_FOR_PERSON",
            "message": f"{len(summary.waiting)} tasks wait for a person",
            "hint": "`landlane gate list` shows what is asked",
        }
    if summary.paused:
        return {
            "code": "RUN_PAUSED",
            "message": f"the pool is paused: {summary.paused}",
            "hint": "mend it, then run again; `landlane pool resume` where the pool was paused",
        }
    return {
        "code": "TASKS_LEFT",
        "message": f"{len(summary.failed)} tasks failed, {len(summary.left)} are left",
        "hint": "`landlane task show T` tells why; `landlane task retry T` tries again",
    }


def _show_run(terminal: Terminal) -> RunView:
    """Return a live view for a terminal, or a line-based view for a log."""
    if terminal.is_json or not is_terminal(sys.stderr):
        return RunView(terminal)
    from landlane.cli.run_live import LiveView  # noqa: PLC0415 - rich is slow to load

    return LiveView(terminal)
