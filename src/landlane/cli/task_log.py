"""`landlane task log`: what happened to a task, and what its workers printed."""

from __future__ import annotations

from landlane.cli.arguments import read_number
from landlane.cli.command import stop_on_signals
from landlane.cli.terminal import in_one_line
from landlane.clock import parse_rfc3339
from landlane.errors import LandlaneError, Malformed
from landlane.journal.sentences import entry_line, is_for_people
from landlane.journal.to_json import entry_json
from landlane.tasks.attempts import attempts_of
from landlane.tasks.model import AttemptState
from landlane.tasks.records import get_task, task_history
from landlane.tasks.to_json import attempt_json
from landlane.units import clock_time, count, day_name
from landlane.workers.attempt_log import follow_log, read_log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.store.journal_chain import JournalEntry
    from landlane.tasks.model import Attempt, Task

_STAMP = len("2026-01-31T12:00:00Z")


def log(call: CommandCall, task: str, attempt: str, follow: bool) -> int:
    """Show the history of a task and the log of its newest or a given attempt."""
    call.renew_session()
    repo = call.repo
    found = get_task(repo, task)
    attempts = attempts_of(repo, found.id)
    wanted = _find_attempt(call, found.id, attempts, attempt)
    if follow:
        return _follow_log(call, found.id, wanted)
    history = task_history(repo, found.id)
    output = _read_log(call, wanted) if wanted is not None else None
    lines = [in_one_line(f"{found.id} {found.title}"), *_history_lines(call, history, found)]
    if output is not None and wanted is not None:
        lines += ["", in_one_line(f"Attempt {wanted.attempt} by {wanted.agent}"), *_log_lines(output)]
    answer = {"ok": True, "entries": list(map(entry_json, history))}
    answer |= {"attempts": [attempt_json(one) for one in attempts], "log": output}
    is_running = wanted is not None and wanted.state == AttemptState.RUNNING
    if is_running:
        lines += ["", f"next: {call.command_text('task', 'log', found.id, '--follow')}"]
    return call.terminal.answer(answer, "\n".join(lines))


def _history_lines(call: CommandCall, history: Sequence[JournalEntry], task: Task) -> Iterator[str]:
    """Yield the entries under their days; bookkeeping only with -v."""
    now, day = call.wall_now(), ""
    for entry in history:
        if not call.terminal.is_verbose and not is_for_people(entry):
            continue
        if (name := day_name(entry.at, now)) != day:
            day = name
            yield day[:1].upper() + day[1:]
        yield in_one_line(f"  {entry_line(entry, {task.id: task.title}, has_seconds=True)}")


def _log_lines(output: dict[str, Any]) -> list[str]:
    if output["note"]:
        return [f"  {output['note']}"]
    return [in_one_line(f"  {_local(line)}") for line in output["lines"]]


def _local(line: str) -> str:
    """Return a line of a log with its time as the local time of day."""
    stamp = line[:_STAMP]
    try:
        return f"{clock_time(parse_rfc3339(stamp), has_seconds=True)} {line[_STAMP:].lstrip(' ')}"
    except (LandlaneError, ValueError):
        return f"{'':<9}{line.lstrip(' ')}" if line.startswith(" " * _STAMP) else line


def _find_attempt(
    call: CommandCall, task: str, attempts: Sequence[Attempt], number_text: str
) -> Attempt | None:
    """Return the requested or newest attempt; None when there is none."""
    number = read_number(number_text, "--attempt")
    if number is None:
        return attempts[-1] if attempts else None
    matching = [attempt for attempt in attempts if attempt.attempt == number]
    if not matching:
        made = count(len(attempts), "attempt")
        raise Malformed(
            f"no worker made attempt {number} of {task}; workers made {made}",
            code="UNKNOWN_ATTEMPT",
            hint=f"see all attempts: {call.command_text('task', 'show', task)}",
            attempts=[attempt.attempt for attempt in attempts],
        )
    return matching[-1]


def _read_log(call: CommandCall, attempt: Attempt) -> dict[str, Any]:
    repo = call.repo
    is_here = attempt.machine == repo.processes.machine
    log = read_log(repo.state_folder, attempt.task, attempt.attempt)
    note = ""
    if log is None:
        note = (
            "No log: the worker printed nothing, or the log was old and has been removed."
            if is_here
            else f"The log is on another machine ({attempt.machine}), in the same repository."
        )
    return {
        "attempt": attempt.attempt,
        "machine": attempt.machine,
        "is_here": is_here,
        "lines": log.lines if log is not None else [],
        "left_out": log.left_out if log is not None else 0,
        "note": note,
    }


def _follow_log(call: CommandCall, task: str, attempt: Attempt | None) -> int:
    """Print lines as they arrive until the attempt has ended; with --json, one object each."""
    if attempt is None:
        raise Malformed(
            f"no worker has been started on {task} yet",
            code="UNKNOWN_ATTEMPT",
            hint=f"see its history: {call.command_text('task', 'log', task)}",
            attempts=[],
        )
    repo = call.repo
    if attempt.machine != repo.processes.machine:
        raise Malformed(
            f"attempt {attempt.attempt} of {task} runs on another machine: {attempt.machine}",
            code="ELSEWHERE",
            hint=f"see what it does: {call.command_text('task', 'show', task)}",
            machine=attempt.machine,
        )

    def is_over() -> bool:
        running = (one.id for one in attempts_of(repo, task) if one.state == AttemptState.RUNNING)
        return attempt.id not in running

    stop_on_signals()
    for line in follow_log(repo.state_folder, task, attempt.attempt, is_over):
        call.terminal.line({"attempt": attempt.attempt, "line": line}, in_one_line(_local(line)))
    return 0
