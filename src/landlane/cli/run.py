"""The commands that run tasks with workers: run, run pause, run resume."""

from __future__ import annotations

import shlex
import signal
import sys

from landlane.app.repair_config import prepare_git
from landlane.cli.plan import load_plan
from landlane.cli.run_progress import RunView
from landlane.cli.terminal import in_one_line
from landlane.error_json import failure_json
from landlane.errors import Malformed
from landlane.plans.add_tasks import add_plan
from landlane.platform.terminal import is_terminal
from landlane.processes.fork_server import ForkServer
from landlane.roles.model import forbidden
from landlane.tasks.model import check_reason
from landlane.tasks.records import list_tasks
from landlane.tasks.to_json import pool_json, pool_lines
from landlane.tasks.worker_pool import pause_pool, resume_pool
from landlane.units import count
from landlane.values import replace
from landlane.workers.admit import check_can_run
from landlane.workers.agents import find_agent, with_command
from landlane.workers.model import RunRequest
from landlane.workers.orchestrator import Orchestrator
from landlane.workers.preflight import check_before_run
from landlane.workers.to_json import preflight_json, summary_json, summary_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.cli.terminal import Terminal
    from landlane.sessions.model import Session
    from landlane.tasks.worker_pool import Pool
    from landlane.workers.model import RunSummary
    from landlane.workers.preflight import Preflight


_MOST_WORKERS = 256
_OVER = ("done", "dropped", "dead")


def run(
    call: CommandCall,
    plan: str | None,
    command: tuple[str, ...],
    workers: str,
    agent: str,
    forever: bool,
    until_empty: bool,
    force: bool,
    offline: bool,
) -> int:
    """Run the tasks of a plan, or all that are ready; with --forever, also those that become ready later."""
    if plan and forever:
        raise Malformed(
            "--forever takes tasks from the queue, not from a plan",
            code="BAD_CALL",
            hint=f"landlane run {shlex.quote(plan)}",
        )
    if command and agent:
        raise Malformed(
            "give --agent or a command after --, not both",
            code="BAD_CALL",
            hint=f"landlane run -- {shlex.join(command)}",
        )
    request = RunRequest(
        workers=_read_count(call, workers),
        tasks=_add_plan_tasks(call, plan, force=force) if plan else frozenset[str](),
        agent=agent,
        command=command,
        until_empty=until_empty,
        is_continuous=forever,
        is_offline=offline,
    )
    return _run(call, request)


def pause(call: CommandCall, why: str) -> int:
    """Start no new attempts."""
    return _answer_pool(call, pause_pool(call.repo, _decider(call), check_reason(why)))


def resume(call: CommandCall) -> int:
    """Start attempts again."""
    return _answer_pool(call, resume_pool(call.repo, _decider(call)))


def _decider(call: CommandCall) -> Session:
    """Return the caller's session; refuse one with a role, which must not control the other workers."""
    session = call.session()
    if session.role:
        raise forbidden(session.agent, session.role, "no role decides about the whole pool")
    return session


def _answer_pool(call: CommandCall, pool: Pool) -> int:
    lines = [in_one_line(line) for line in pool_lines(pool)]
    return call.terminal.answer({"ok": True, "pool": pool_json(pool)}, "\n".join(lines))


def _read_count(call: CommandCall, workers: str) -> int:
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


def _add_plan_tasks(call: CommandCall, plan: str, *, force: bool) -> frozenset[str]:
    """Add the tasks of a plan to the queue; running a plan again adds nothing twice."""
    added = add_plan(call.repo, call.session(), load_plan(call, plan, "run"), force=force)
    for name, similar in added.skipped:
        others = ", ".join(f"{likeness.task} ({likeness.reason})" for likeness in similar[:3])
        call.terminal.note(f"{name} is not added: it looks like {others}; --force adds it")
    known = len(added.tasks) - len(added.added)
    there = f", {known} were there" if known else ""
    call.terminal.note(f"{count(len(added.added), 'task')} added{there}")
    return frozenset(task.id for task in added.tasks)


def _run(call: CommandCall, request: RunRequest) -> int:
    repo = prepare_git(call.repo, call.terminal.note)
    call.session()
    if request.command:
        settings, name = with_command(repo.settings, request.command)
        repo, request = replace(repo, settings=settings), replace(request, agent=name)
    tasks = [task for task in list_tasks(repo) if not request.tasks or task.id in request.tasks]
    if request.agent:
        find_agent(repo.settings, request.agent)
    check_can_run(repo, tasks, request)
    preflight = check_before_run(repo, tasks, request, lambda name: _note_check(call.terminal, name))
    if preflight.problems:
        return _refuse_start(call.terminal, preflight)
    if not (request.is_continuous or request.tasks) and all(task.state in _OVER for task in tasks):
        call.terminal.note("there is nothing to do: landlane task add 'what is to be done' --path PATH")
    view = _make_view(call.terminal)
    is_json = call.terminal.is_json or view.is_live
    common = {"folder": call.cwd, "is_json": is_json, "command": list(request.command)}
    fork_server = ForkServer([sys.executable, "-m", "landlane.cli.supervisor_server"], call.cwd, common)
    orchestrator = Orchestrator(repo, request, fork_server, view.on_event)
    _handle_signals(orchestrator)
    with view:
        summary = orchestrator.run(view.on_status)
    code = _exit_code(summary)
    answer = _refusal(summary, code) if code else {"ok": True}
    return call.terminal.answer({**answer, "summary": summary_json(summary)}, summary_text(summary), code)


def _note_check(terminal: Terminal, name: str) -> None:
    """Say on a terminal which check runs before workers start."""
    if is_terminal(sys.stderr):
        terminal.note(f"preflight: {in_one_line(name)} on the target branch")


def _refuse_start(terminal: Terminal, preflight: Preflight) -> int:
    """Answer with what failed before any worker was started."""
    details: list[str] = []
    for problem in preflight.problems:
        details.append(f"  ✗ {in_one_line(problem.text)}")
        details += [f"      {in_one_line(line)}" for line in problem.lines]
        details.append(f"    fix: {in_one_line(problem.fix)}")
    return terminal.refuse(preflight_json(preflight), 1, details)


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


def _refusal(summary: RunSummary, code: int) -> dict[str, Any]:
    if code == 7:
        message = f"{len(summary.waiting)} tasks wait for a person"
        return failure_json("WAITS_FOR_PERSON", message, "`landlane gate list` shows what is asked")
    if summary.paused:
        hint = "mend it, then run again; `landlane run resume` where the pool was paused"
        return failure_json("RUN_PAUSED", f"the pool is paused: {summary.paused}", hint)
    message = f"{len(summary.failed)} tasks failed, {len(summary.left)} are left"
    hint = "`landlane task show T` tells why; `landlane task retry T` tries again"
    return failure_json("TASKS_LEFT", message, hint)


def _make_view(terminal: Terminal) -> RunView:
    """Return a live view for a terminal, or a line-based view for a log."""
    if terminal.is_json or not is_terminal(sys.stderr):
        return RunView(terminal)
    from landlane.cli.run_live import LiveView  # noqa: PLC0415 - rich is slow to load

    return LiveView(terminal)
