"""The commands that run tasks with workers: run, run pause, run resume."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time

from landlane.app.repair_config import prepare_git
from landlane.cli.plan import add_plan_of
from landlane.cli.run_progress import LiveView, RunView
from landlane.cli.table import align
from landlane.cli.terminal import cut_width, in_one_line
from landlane.error_json import failure_json
from landlane.errors import Malformed
from landlane.landing.model import QUEUED, TESTING
from landlane.landing.records import list_landings
from landlane.processes.fork_server import ForkServer
from landlane.tasks.attempts import running_attempts
from landlane.tasks.model import check_reason
from landlane.tasks.records import list_tasks
from landlane.tasks.to_json import pool_json
from landlane.tasks.worker_pool import get_pool, pause_pool, resume_pool
from landlane.units import count, join_words, running_time
from landlane.values import replace
from landlane.workers.admit import check_can_run
from landlane.workers.agents import find_agent, with_command
from landlane.workers.model import RunRequest
from landlane.workers.orchestrator import Orchestrator
from landlane.workers.preflight import check_before_run
from landlane.workers.to_json import preflight_json, summary_json
from landlane.workers.to_text import (
    failing_target_lines,
    next_step,
    paused_text,
    preflight_text,
    resumed_text,
    stopped_text,
    summary_headline,
    summary_rows,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.cli.terminal import Terminal
    from landlane.workers.model import RunSummary
    from landlane.workers.preflight import Preflight


_MOST_WORKERS = 256
_USUAL_WORKERS = 4  # of a run, where the settings give no number
_SHOWN_AFTER_SECONDS = 0.5
_PLAN_ENDINGS = (".md", ".toml", ".yaml", ".yml", ".json")


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
    if plan:
        _check_is_plan(call, plan)
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


def _check_is_plan(call: CommandCall, plan: str) -> None:
    """Refuse a script or a task in place of a plan; the hint is what was probably meant."""
    path = os.path.join(call.cwd, plan)
    if os.path.isfile(path) and os.access(path, os.X_OK) and not plan.endswith(_PLAN_ENDINGS):
        program = plan if os.sep in plan else f"./{plan}"
        raise Malformed(
            f"{plan} is a program, not a plan",
            code="BAD_CALL",
            hint=f"let it do the ready tasks: landlane run -- {shlex.quote(program)}",
        )
    if plan[:1] in "Tt" and plan[1:].isdigit() and not os.path.exists(path):
        raise Malformed(
            f"run takes a plan, not a task; it runs all that are ready, {plan.upper()} as well if it is",
            code="BAD_CALL",
            hint=f"see where it stands: landlane task show {plan.upper()}",
        )


def pause(call: CommandCall, why: str, all: bool) -> int:
    """Start no new attempts; with --all, land and deploy nothing, either."""
    if not why.strip():
        command = f"landlane run pause{' --all' if all else ''} --why 'release freeze'"
        raise Malformed("pausing needs a reason, which others see", code="NO_REASON", hint=command)
    pool = pause_pool(call.repo, call.session(), check_reason(why), pauses_landing=all)
    running = list(dict.fromkeys(attempt.task for attempt in running_attempts(call.repo)))
    landings = [landing.id for landing in list_landings(call.repo, (QUEUED, TESTING))] if all else []
    text = paused_text(pool, running, landings)
    return call.terminal.answer({"ok": True, "pool": pool_json(pool), "running": running}, text)


def resume(call: CommandCall) -> int:
    """Start attempts again."""
    session, before = call.session(), get_pool(call.repo)
    pool = resume_pool(call.repo, session)
    return call.terminal.answer({"ok": True, "pool": pool_json(pool)}, resumed_text(before))


def _read_count(call: CommandCall, workers: str) -> int:
    most = call.repo.settings.run.workers
    if not workers:
        return most or _USUAL_WORKERS
    is_number = workers.isascii() and workers.isdigit() and len(workers) < 6
    if not is_number or not 1 <= int(workers) <= _MOST_WORKERS:
        raise Malformed(
            f"--workers must be a number from 1 to {_MOST_WORKERS}, not {workers[:20]}",
            code="OUT_OF_RANGE",
            hint="for example",
            given=workers,
            example="4",
        )
    if most is not None and int(workers) > most:
        call.terminal.note(f"at most {most} workers run in this repository: [run] workers")
    return int(workers)


def _add_plan_tasks(call: CommandCall, plan: str, *, force: bool) -> frozenset[str]:
    """Add the tasks of a plan to the queue; running a plan again adds nothing twice."""
    added = add_plan_of(call, plan, force=force)
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
    clock = _PreflightClock(call.terminal)
    preflight = check_before_run(repo, tasks, request, clock.on_check, clock.on_tick)
    call.terminal.live(lambda: "")
    if preflight.problems:
        return _refuse_start(call.terminal, preflight)
    view = _make_view(call)
    if preflight.checks and not call.terminal.is_quiet:
        view.note(preflight_text(preflight, request.workers, is_live=isinstance(view, LiveView)))
    common = {"folder": call.cwd, "command": list(request.command)}
    fork_server = ForkServer([sys.executable, "-P", "-m", "landlane.cli.supervisor_server"], call.cwd, common)
    orchestrator = Orchestrator(repo, request, fork_server, view.on_event)
    _handle_signals(orchestrator)
    with view:
        summary = orchestrator.run(view.on_status)
    return _answer_summary(call.terminal, summary)


def _answer_summary(terminal: Terminal, summary: RunSummary) -> int:
    """Answer with the counts, the exceptions with their commands, the money and the next step."""
    code = _exit_code(summary)
    answer = _refusal(summary, code) if code else {"ok": True}
    if stopped := stopped_text(summary):
        terminal.note(stopped)
    document = {**answer, "summary": summary_json(summary)}
    if not _count_tasks(summary):
        text = "No tasks are ready.\nnext: landlane task add 'what is to be done' --path PATH"
        return terminal.answer(document, text, code)
    if not summary.totals.attempts and len(summary.done) == _count_tasks(summary):
        return terminal.answer(document, f"Nothing to do: {join_words(summary.done)} already done.", code)
    lines = [summary_headline(summary)]
    if summary.done and len(summary.done) < _count_tasks(summary) and not summary.is_stopped:
        lines.append(f"  ✓ {', '.join(summary.done)}")
    rows = [[in_one_line(cell) for cell in row] for row in summary_rows(summary)]
    lines += align(rows, cut=1, width=cut_width(), gap="   ")
    if summary.failing is not None:
        lines += [in_one_line(f"  {line}") for line in failing_target_lines(summary.failing)]
    if step := next_step(summary):
        lines.append(f"next: {step}")
    return terminal.answer(document, "\n".join(lines), code, quiet="\n".join(summary.done))


def _count_tasks(summary: RunSummary) -> int:
    return len(summary.done) + len(summary.failed) + len(summary.waiting) + len(summary.left)


class _PreflightClock:
    """Shows on a terminal which check runs before workers start, and for how long."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._began = time.monotonic()
        self._check = ""
        self._estimate = ""

    def on_check(self, name: str, branch: str, estimate_ms: int | None) -> None:
        """Begin with a check."""
        self._began = time.monotonic()
        self._check = f"{name} on {branch}"
        self._estimate = f" of about {running_time(estimate_ms)}" if estimate_ms else ""

    def on_tick(self) -> None:
        """Show the running check, after half a second."""
        took = time.monotonic() - self._began
        if self._check and took >= _SHOWN_AFTER_SECONDS:
            clock = running_time(round(took * 1000))
            self._terminal.live(lambda: f"preflight: {self._check} ({clock}{self._estimate})")


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
        return 130
    if summary.waiting:
        return 7
    return 1 if summary.failed or summary.paused or summary.left else 0


def _refusal(summary: RunSummary, code: int) -> dict[str, Any]:
    step = next_step(summary)
    if code == 130:
        return failure_json("INTERRUPTED", f"stopped: {summary_headline(summary)}", step or "landlane run")
    if code == 7:
        message = f"{count(len(summary.waiting), 'task')} waiting for a person"
        return failure_json("WAITS_FOR_PERSON", message, step)
    if summary.paused:
        return failure_json("RUN_PAUSED", f"workers are paused: {summary.paused}", "landlane run resume")
    first = (*summary.failed, *summary.left)[0]
    message = f"not all tasks are done: {summary_headline(summary)}"
    return failure_json("TASKS_LEFT", message, step or f"landlane task show {first.task}")


def _make_view(call: CommandCall) -> RunView:
    """Return a live view for a terminal, or a line-based view for a log."""
    is_live = call.terminal.is_live and os.environ.get("TERM") != "dumb"
    return (LiveView if is_live else RunView)(call.terminal, call.repo.wall_ms)
