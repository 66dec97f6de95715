"""The worker process for a plain command: the task as variables and a file, the result by its exit code.

    python -P -m landlane.clients.as_worker.plain_command -- COMMAND [ARGUMENTS]

It runs in the sandbox, speaks the worker protocol to the supervisor, and starts the command in the checkout
of the task. Exit code 0 means done: what changed in the checkout is the result. Any other exit code means
failed: standard error is the feedback for the next attempt. Lines on standard output are progress.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence

from landlane.clients.as_worker.child import ClientChild, LifeSigns
from landlane.clients.as_worker.collect_changes import current_commit, ignored_files
from landlane.clients.as_worker.hand_back import MOST_SUMMARY, hand_back_commit, hand_back_files
from landlane.clients.as_worker.prompt import prompt_for
from landlane.clients.worker_adapter import printable
from landlane.errors import LandlaneError
from landlane.protocol.worker.messages import WorkAssignment, WorkComplete
from landlane.units import exact_duration
from landlane.worker import Failure, Work, serve

_GRACE_SECONDS = 3.0  # less than the supervisor gives us, so that our last message arrives
_PARTING_SECONDS = 1.0  # for processes that are left when the command has ended by itself
_MOST_PROGRESS = 20_000  # messages; after that, only heartbeats are sent
_LONGEST_PROGRESS = 1_000
_LONGEST_ACTIVITY = 200
_FEEDBACK_LINES = 3
_LOOKS = 10  # for signs of life while the command may be silent


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve one assignment with the command after `--`; return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    command = words[words.index("--") + 1 :] if "--" in words else words
    if not command:
        sys.stderr.write("plain_command: give a command after --\n")
        return 2
    serve(_CommandAttempt(command).run)
    return 0


def variables_for(assignment: WorkAssignment, task_file: str) -> dict[str, str]:
    """Return the environment variables that describe a task."""
    return {
        "LANDLANE_TASK": assignment.task,
        "LANDLANE_TITLE": printable(assignment.title),
        "LANDLANE_BODY": printable(assignment.body or ""),
        "LANDLANE_PATHS": "\n".join(assignment.paths),
        "LANDLANE_CHECK": assignment.check or "",
        "LANDLANE_ATTEMPT": str(assignment.attempt),
        "LANDLANE_BASE": assignment.base or "",
        "LANDLANE_OUTPUT": printable(assignment.output or ""),
        "LANDLANE_NEXT_ACTION": printable(assignment.next_action or ""),
        "LANDLANE_RESULTS": printable("\n".join(assignment.results or ())),
        "LANDLANE_FEEDBACK": printable("\n".join(assignment.feedback or ())),
        "LANDLANE_RULES_VERSION": assignment.rules_version or "",
        "LANDLANE_TASK_FILE": task_file,
    }


class _CommandAttempt:
    """One run of the command, from the assignment to its end."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = tuple(command)
        self._is_stopped = False
        self._is_silent = False
        self._life_signs: LifeSigns | None = None
        self._look_at = 0.0
        self._look_seconds = 1.0
        self._last_line = ""
        self._messages_sent = 0

    def run(self, work: Work) -> WorkComplete:
        """Do the work.

        Raises:
            Failure: the command failed, was stopped, or its change cannot be returned.
        """
        signal.signal(signal.SIGTERM, self._stop)
        assignment = work.assignment
        with tempfile.TemporaryDirectory(prefix="landlane-task-", ignore_cleanup_errors=True) as scratch:
            try:
                base = assignment.base or current_commit(assignment.folder)
                self._run_command(work, scratch)
                summary = self._last_line[:MOST_SUMMARY] or assignment.title
                if assignment.may_commit:
                    return hand_back_commit(work, base, summary, lambda: self._is_stopped)
                ignored = ignored_files(assignment.folder, assignment.paths)
                return hand_back_files(work, base, summary, ignored)
            except LandlaneError as error:
                reason = f"{error.message} ({error.hint})" if error.hint else error.message
                raise Failure(printable(reason)) from error
            except OSError as error:
                raise Failure(printable(str(error))) from error

    def _stop(self, _: int, __: object) -> None:
        self._is_stopped = True  # the loop checks it a few times a second

    def _run_command(self, work: Work, scratch: str) -> None:
        """Run the command to its end; raise `Failure` unless it ended with exit code 0."""
        child = self._start(work, scratch)
        exit_code = 0
        try:
            for is_error, line in child.read_lines(self._may_go_on):
                self._read_line(work, line, is_error=is_error)
        finally:
            is_ended_by_us = self._is_stopped or self._is_silent
            exit_code = child.end(_GRACE_SECONDS if is_ended_by_us else _PARTING_SECONDS)
            for is_error, line in child.read_rest():
                self._read_line(work, line, is_error=is_error)
            child.close()
        if self._is_stopped:
            raise Failure("stopped by SIGTERM", code="stopped")
        if self._is_silent:
            limit = exact_duration(round(work.assignment.heartbeat_seconds * 1000))
            raise Failure(f"no output for {limit}", code="silent")
        if exit_code:
            stderr = bytes(child.stderr).decode("utf-8", "replace")
            raise Failure(_failure_text(exit_code, _in_checkout(stderr, work.assignment.folder)))

    def _start(self, work: Work, scratch: str) -> ClientChild:
        assignment = work.assignment
        task_file = os.path.join(scratch, "task.md")
        with open(task_file, "w", encoding="utf-8", errors="replace") as file:
            file.write(prompt_for(assignment))
        program = self._command[0]
        if os.sep in program:
            program = os.path.normpath(os.path.join(assignment.folder, program))
        if shutil.which(program) is None:
            why = "is not executable" if os.path.isfile(program) else "does not exist in the checkout"
            raise Failure(f"{self._command[0]} {why}", code="not_started")
        with open(task_file, "rb") as stdin:
            child = ClientChild(
                (program, *self._command[1:]),
                cwd=assignment.folder,
                environment=variables_for(assignment, task_file),
                stdin=stdin.fileno(),
            )
        self._life_signs = LifeSigns(child, assignment.heartbeat_seconds, lambda: None)
        self._look_seconds = assignment.heartbeat_seconds / _LOOKS
        return child

    def _may_go_on(self) -> bool:
        """Return whether the command may go on: it was not stopped, and it prints or computes."""
        now = time.monotonic()
        if now >= self._look_at and self._life_signs is not None:
            self._look_at = now + self._look_seconds
            self._is_silent = not self._life_signs.are_recent()
        return not self._is_stopped and not self._is_silent

    def _read_line(self, work: Work, line: str, *, is_error: bool) -> None:
        """Report a line of standard output as progress; pass standard error on."""
        if is_error:
            sys.stderr.write(f"{_in_checkout(line, work.assignment.folder)}\n")
            return
        text = printable(line).strip()
        if not text:
            return
        self._last_line = text
        work.doing = " ".join(text.split())[:_LONGEST_ACTIVITY]
        if self._messages_sent < _MOST_PROGRESS:
            self._messages_sent += 1
            work.progress(text[:_LONGEST_PROGRESS])


def _in_checkout(text: str, folder: str) -> str:
    """Return output with paths relative to the checkout: its temporary folder is gone by then."""
    return text.replace(f"{folder.rstrip(os.sep)}{os.sep}", "")


def _failure_text(exit_code: int, stderr: str) -> str:
    """Return how the command failed: its exit code or signal, and the end of its standard error."""
    how = f"exit {exit_code}"
    if exit_code < 0:
        try:
            how = f"ended by {signal.Signals(-exit_code).name}"
        except ValueError:
            how = f"ended by signal {-exit_code}"
    lines = [" ".join(line.split()) for line in stderr.splitlines() if line.strip()]
    return printable(": ".join([how, *([" / ".join(lines[-_FEEDBACK_LINES:])] if lines else [])]))


if __name__ == "__main__":
    raise SystemExit(main())
