"""The worker process for a coding client: runs it unattended, and speaks the worker protocol for it.

    python -P -m landlane.clients.as_worker.main [OPTIONS] CLIENT [-- ARGUMENTS OF THE CLIENT]

It is the worker, and runs where a worker runs: in the sandbox. It reads one assignment, starts the client in
the assignment's folder, and reads the client's output. Heartbeats are sent only while the client shows signs
of life. At the end the change is committed or handed back as a patch, and everything that the client started
is ended.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from landlane.clients.as_worker.child import ClientChild, LifeSigns
from landlane.clients.as_worker.collect_changes import current_commit, ignore_files
from landlane.clients.as_worker.command import find_program
from landlane.clients.as_worker.failures import find_failure, is_rate_limit, read_wait
from landlane.clients.as_worker.hand_back import MOST_SUMMARY, hand_back_commit, hand_back_patch
from landlane.clients.as_worker.progress import RunProgress
from landlane.clients.as_worker.prompt import prompt_for
from landlane.clients.model import CLIENTS, WORKER_CLIENTS
from landlane.clients.registry import adapter_of
from landlane.clients.worker_adapter import StartOptions, WorkerAdapter, printable
from landlane.errors import LandlaneError
from landlane.protocol.worker.messages import Usage, WorkComplete
from landlane.values import value
from landlane.worker import Failure, Work, serve

_SUMMARY = "Run a coding client as a worker: the assignment on stdin, the worker protocol on stdout."
_QUIET_SECONDS = 600.0
_PATIENCE_SECONDS = 120.0
_GRACE_SECONDS = 3.0  # less than the supervisor gives us, so that our last message arrives
_PARTING_SECONDS = 1.0  # for processes that are left when the client has ended by itself
_MOST_PROGRESS = 20_000  # messages; after that, only heartbeats are sent
_LONGEST_PROGRESS = 1_000
_LONGEST_ACTIVITY = 200
_MOST_NOTES = 8_000


@value
class Options:
    """The command line; `words` are the client's own arguments."""

    client: str
    model: str = ""
    program: str = ""
    quiet: float = _QUIET_SECONDS
    patience: float = _PATIENCE_SECONDS
    grace: float = _GRACE_SECONDS
    words: tuple[str, ...] = ()


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve one assignment with the client that the arguments name; return the exit code."""
    options = _parse(sys.argv[1:] if arguments is None else arguments)
    try:
        adapter = adapter_of(options.client)
    except LandlaneError as error:
        sys.stderr.write(f"client_worker: {error.message}; {error.hint}\n")
        return 2
    attempt = _ClientAttempt(adapter, options)
    serve(attempt.run, beats_while=attempt.is_alive)
    return 0


def _parse(arguments: Sequence[str]) -> Options:
    words = list(arguments)
    at = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(prog="landlane.clients.as_worker.main", description=_SUMMARY)
    parser.add_argument("client", help=f"one of {', '.join(WORKER_CLIENTS)}")
    parser.add_argument("--model", default="", help="the model, as the client names it")
    parser.add_argument("--program", default="", help="the client's program, when it is not on the PATH")
    parser.add_argument(
        "--quiet",
        type=float,
        default=_QUIET_SECONDS,
        metavar="SECONDS",
        help="how long it may show no life before heartbeats end (%(default)g)",
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=_PATIENCE_SECONDS,
        metavar="SECONDS",
        help="how long it may try again by itself while the provider wants fewer requests (%(default)g)",
    )
    parser.add_argument(
        "--grace",
        type=float,
        default=_GRACE_SECONDS,
        metavar="SECONDS",
        help="between asking it to end and killing it (%(default)g)",
    )
    parsed: dict[str, Any] = vars(parser.parse_args(words[:at]))
    return Options(**parsed, words=tuple(words[at + 1 :]))


class _ClientAttempt:
    """One run of the client, from the assignment to its end."""

    def __init__(self, adapter: WorkerAdapter, options: Options) -> None:
        self._adapter = adapter
        self._options = options
        self._progress = RunProgress()
        self._life_signs: LifeSigns | None = None
        self._child: ClientChild | None = None
        self._is_stopped = False
        self._is_out_of_patience = False
        self._messages_sent = 0

    def is_alive(self) -> bool:
        """Return whether a heartbeat may be sent. Before and after the client runs, this process works."""
        life_signs = self._life_signs
        return life_signs is None or life_signs.are_recent()

    def run(self, work: Work) -> WorkComplete:
        """Do the work.

        Raises:
            Failure: the client failed, was stopped, or its change cannot be handed back.
        """
        signal.signal(signal.SIGTERM, self._stop)
        folder = work.assignment.folder
        with tempfile.TemporaryDirectory(prefix="landlane-client-", ignore_cleanup_errors=True) as scratch:
            try:
                base = work.assignment.base or current_commit(folder)
                if self._adapter.own_files:
                    ignore_files(folder, self._adapter.own_files)
                self._check_end(self._run_client(work, scratch))
                return self._hand_back(work, base)
            except Failure as failure:
                failure.notes = failure.notes or self._notes()
                raise
            except LandlaneError as error:
                reason = f"{error.message} ({error.hint})" if error.hint else error.message
                raise Failure(
                    printable(reason), retry=error.code != "NOT_INSTALLED", notes=self._notes()
                ) from error
            except OSError as error:
                raise Failure(printable(str(error)), notes=self._notes()) from error

    def _stop(self, _: int, __: object) -> None:
        self._is_stopped = True  # the loop checks it a few times a second

    def _run_client(self, work: Work, scratch: str) -> int:
        """Start the client, read its output to the end, and return its exit code."""
        child = self._start(work, scratch)
        exit_code = 0
        try:
            for is_error, line in child.read_lines(self._may_go_on):
                self._read_line(work, line, is_error=is_error)
        finally:
            self._life_signs = None
            is_ended_by_us = self._is_stopped or self._is_out_of_patience
            exit_code = child.end(self._options.grace if is_ended_by_us else _PARTING_SECONDS)
            for is_error, line in child.read_rest():
                self._read_line(work, line, is_error=is_error)
            child.close()
        return exit_code

    def _start(self, work: Work, scratch: str) -> ClientChild:
        adapter, options, assignment = self._adapter, self._options, work.assignment
        program = shutil.which(options.program) if options.program else find_program(adapter.name)
        if program is None:
            raise Failure(f"there is no program {options.program}", retry=False)
        prompt_file = os.path.join(scratch, "prompt.md")
        with open(prompt_file, "w", encoding="utf-8", errors="replace") as file:
            file.write(prompt_for(assignment))
        start = StartOptions(
            prompt_file=prompt_file,
            scratch=scratch,
            model=options.model,
            budget_usd=assignment.budget_usd,
            extra=options.words,
        )
        variables = {name: text for name, text in adapter.environment.items() if name not in os.environ}
        command = [program, *adapter.arguments(start)]
        with open(os.devnull if adapter.takes_prompt_file else prompt_file, "rb") as stdin:
            child = ClientChild(command, cwd=assignment.folder, environment=variables, stdin=stdin.fileno())
        self._child = child
        self._life_signs = LifeSigns(child, options.quiet, self._commands_since)
        return child

    def _commands_since(self) -> float | None:
        """Return since when a command of the client may be running; None if none may."""
        if self._adapter.reports_call_starts:
            return min(self._progress.calls.copy().values(), default=None)
        child = self._child
        return child.printed_at if child is not None and child.has_printed else None

    def _may_go_on(self) -> bool:
        since, retry = self._progress.retrying_since, self._progress.retry
        if since is not None and retry is not None:
            is_limited = is_rate_limit(f"{retry.word} {retry.text}", retry.status)
            if is_limited:
                self._is_out_of_patience = time.monotonic() - since >= self._options.patience
        return not self._is_stopped and not self._is_out_of_patience

    def _read_line(self, work: Work, line: str, *, is_error: bool) -> None:
        """Read one line of the client, and report its progress."""
        progress = self._progress
        read = self._adapter.read_errors if is_error else self._adapter.read_output
        if is_error:
            sys.stderr.write(f"{line}\n")
        before = progress.usage
        shown = [progress.update(event, time.monotonic()) for event in read(line)] if read else []
        work.usage = progress.usage
        text = "\n".join(part.strip() for part in shown if part.strip())
        if text:
            work.doing = " ".join(text.split())[:_LONGEST_ACTIVITY]
        if (text or progress.usage != before) and self._messages_sent < _MOST_PROGRESS:
            self._messages_sent += 1
            work.progress(text[:_LONGEST_PROGRESS] or _usage_text(progress.usage))

    def _check_end(self, exit_code: int) -> None:
        """Raise `Failure` unless the client did its work."""
        progress, child = self._progress, self._child
        assert child is not None
        if self._is_stopped:
            raise Failure("stopped by SIGTERM", code="stopped")
        if self._is_out_of_patience:
            text = progress.retry.text if progress.retry else ""
            title = CLIENTS[self._adapter.name].title
            reason = f"{title}: the provider wants fewer requests, again and again: {text}"
            wait = read_wait(text, time.time())
            raise Failure(reason, code="rate_limited", retry_after_seconds=wait)
        if exit_code or progress.failure is not None:
            stderr = bytes(child.stderr).decode("utf-8", "replace")
            raise find_failure(self._adapter, progress.failure, exit_code, stderr, now=time.time())

    def _notes(self) -> str | None:
        """Return the model's last words, for the next attempt."""
        return self._progress.last_text.strip()[-_MOST_NOTES:] or None

    def _hand_back(self, work: Work, base: str) -> WorkComplete:
        """Return the end of the work, with the change that the client made."""
        summary = self._progress.last_text.strip()[:MOST_SUMMARY] or work.assignment.title
        if work.assignment.may_commit:
            return hand_back_commit(work, base, summary, lambda: self._is_stopped)
        return hand_back_patch(work, base, summary)


def _usage_text(usage: Usage | None) -> str:
    """Return what was used so far, in words; what is unknown is left out."""
    known = usage or Usage()
    parts = [
        *([f"{known.input_tokens:,} tokens in"] if known.input_tokens is not None else []),
        *([f"{known.output_tokens:,} out"] if known.output_tokens is not None else []),
        *([f"${known.cost_usd:.4f}"] if known.cost_usd is not None else []),
    ]
    return f"so far {', '.join(parts) or 'nothing is known of its usage'}"


if __name__ == "__main__":
    raise SystemExit(main())
