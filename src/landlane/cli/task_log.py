"""The command `task log`: the history of a task and the output of an attempt."""

from __future__ import annotations

import json

from landlane.cli.command import heed_signals
from landlane.cli.parse_number import read_number
from landlane.cli.terminal import in_one_line
from landlane.errors import Malformed
from landlane.journal.to_json import entry_json
from landlane.tasks.attempts import attempts_of
from landlane.tasks.model import RUNNING
from landlane.tasks.records import task_history
from landlane.tasks.to_json import attempt_json
from landlane.workers.attempt_log import follow_log, read_log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command_call import CommandCall
    from landlane.tasks.model import Attempt


def log(call: CommandCall, task: str, attempt: str, follow: bool) -> int:
    """Show the history of a task and the log of its newest or a given attempt."""
    call.show_life()
    repo = call.repo
    entries = [entry_json(entry) for entry in task_history(repo, task)]
    attempts = attempts_of(repo, task)
    wanted = _wanted(task, attempts, attempt)
    if follow:
        return _follow(call, task, wanted)
    found = _log_of(call, task, wanted)
    answer = {
        "ok": True,
        "entries": entries,
        "attempts": [attempt_json(one) for one in attempts],
        "log": found,
    }
    call.terminal.answer(answer, "\n".join([*map(_told, entries), *_log_text(found)]))
    return 0


def _told(entry: dict[str, Any]) -> str:
    facts = entry["data"]
    number = f"attempt {facts['attempt']}" if "attempt" in facts else ""
    detail = facts.get("why") or facts.get("title") or number
    line = f"{entry['at']}  {entry['kind']:<15} {entry['agent']:<12} {detail}"
    return in_one_line(line).rstrip()


def _wanted(task: str, attempts: list[Attempt], asked: str) -> Attempt | None:
    """Return the requested or newest attempt; None when there is none."""
    number = read_number(asked, "--attempt")
    if number is None:
        return attempts[-1] if attempts else None
    found = [attempt for attempt in attempts if attempt.attempt == number]
    if not found:
        known = ", ".join(str(attempt.attempt) for attempt in attempts) or "none yet"
        raise Malformed(
            f"{task} has no attempt {number} by a worker",
            code="UNKNOWN_ATTEMPT",
            hint=f"there are: {known}; `landlane run` makes them",
            attempts=[attempt.attempt for attempt in attempts],
        )
    return found[-1]


def _log_of(call: CommandCall, task: str, attempt: Attempt | None) -> dict[str, Any] | None:
    if attempt is None:
        return None
    repo = call.repo
    is_here = attempt.machine == repo.processes.machine
    found = read_log(repo.state_folder, task, attempt.attempt)
    return {
        "attempt": attempt.attempt,
        "machine": attempt.machine,
        "is_here": is_here,
        "lines": found.lines if found is not None else [],
        "left_out": found.left_out if found is not None else 0,
        "note": "" if found is not None else _why_none(is_here=is_here, machine=attempt.machine),
    }


def _why_none(*, is_here: bool, machine: str) -> str:
    if not is_here:
        return f"it ran on another machine ({machine}); its log is there, in the same repository"
    return "nothing was kept of it: it said nothing, or its log was among the oldest and went"


def _log_text(found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return []
    lines = [found["note"]] if found["note"] else found["lines"]
    return ["", f"attempt {found['attempt']}:", *(f"  {line}" for line in lines)]


def _follow(call: CommandCall, task: str, attempt: Attempt | None) -> int:
    """Print lines as they arrive until the attempt has ended; with --json, one object each."""
    if attempt is None:
        raise Malformed(
            f"nobody has been started on {task} yet",
            code="UNKNOWN_ATTEMPT",
            hint="`landlane run` starts workers; without --follow you see its history",
            attempts=[],
        )
    repo = call.repo
    if attempt.machine != repo.processes.machine:
        raise Malformed(
            f"attempt {attempt.attempt} of {task} runs on another machine: {attempt.machine}",
            code="ELSEWHERE",
            hint="follow it there, in the same repository",
            machine=attempt.machine,
        )

    def is_over() -> bool:
        now = [candidate for candidate in attempts_of(repo, task) if candidate.id == attempt.id]
        return not now or now[0].state != RUNNING

    heed_signals()
    for line in follow_log(repo.state_folder, task, attempt.attempt, is_over):
        document = {"attempt": attempt.attempt, "line": line}
        call.terminal.line(json.dumps(document, ensure_ascii=False) if call.terminal.is_json else line)
    return 0
