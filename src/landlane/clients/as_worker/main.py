"""The worker process for a coding client: runs it unattended, speaks the worker protocol for it.

    python -P -m landlane.clients.as_worker.main [OPTIONS] CLIENT [-- WORDS FOR THE CLIENT]

It is the worker, and runs where a worker runs: in the sandbox. It reads one assignment, starts the client
in the folder of it, and reads the client's own stream. Heartbeats flow only while the client shows life. At
the end the change is committed, or handed back as a patch, and nothing that the client started is left.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time

from landlane.clients.as_worker.child import ClientChild, Pulse
from landlane.clients.as_worker.collect_changes import commit_rest, copy_changed, head_of, ignore, patch_since
from landlane.clients.as_worker.failures import Outcome, is_limited, outcome_of, wait_told
from landlane.clients.as_worker.progress import RunProgress
from landlane.clients.as_worker.prompt import prompt_for
from landlane.clients.as_worker.registry import adapter_of, find_program
from landlane.clients.worker_adapter import (
    BY_ARGUMENT,
    BY_FILE,
    BY_STDIN,
    MOST_ARGUMENT_BYTES,
    StartOptions,
    clean,
)
from landlane.errors import LandlaneError
from landlane.protocol.worker.fields import COMPLETE, MOST_LINE_BYTES, TABLE
from landlane.protocol.worker.messages import Usage
from landlane.values import value
from landlane.worker import Failure, Work, serve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.clients.worker_adapter import WorkerAdapter
    from landlane.protocol.worker.messages import WorkComplete

_SUMMARY = "Run a coding client as a worker: the assignment on stdin, the worker protocol on stdout."
_QUIET_SECONDS = 600.0
_PATIENCE_SECONDS = 120.0
_GRACE_SECONDS = 3.0  # less than whoever ends us gives us, so that our last words are heard
_PARTING_SECONDS = 1.0  # for what the client left running when it had ended by itself
_MOST_PROGRESS = 20_000  # messages; what comes later shows as heartbeats only
_LONGEST_PROGRESS = 1_000
_LONGEST_DOING = 200
_MOST_SUMMARY = 16_000
_MOST_NOTES = 8_000
_LONGEST_TITLE = 200
_BESIDE_PATCH = 400_000  # bytes of a line that are left for everything but the patch


@value
class Options:
    """What the translator is told; `words` are the client's own."""

    client: str
    model: str = ""
    program: str = ""
    quiet: float = _QUIET_SECONDS
    patience: float = _PATIENCE_SECONDS
    grace: float = _GRACE_SECONDS
    words: tuple[str, ...] = ()


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve one assignment with the client that the arguments name; tells the exit code."""
    options = _read(sys.argv[1:] if arguments is None else arguments)
    try:
        adapter = adapter_of(options.client)
    except LandlaneError as error:
        sys.stderr.write(f"client_worker: {error.message}; {error.hint}\n")
        return 2
    attempt = _Attempt(adapter, options)
    serve(attempt.run, beats_while=attempt.shows_life)
    return 0


def _read(arguments: Sequence[str]) -> Options:
    words = list(arguments)
    at = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(prog="landlane.clients.as_worker.main", description=_SUMMARY)
    parser.add_argument("client", help="claude, codex, gemini, qwen, copilot, opencode, aider or gptme")
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
    found: dict[str, Any] = vars(parser.parse_args(words[:at]))
    return Options(**found, words=tuple(words[at + 1 :]))


class _Attempt:
    """One run of the client, from the assignment to its end."""

    def __init__(self, adapter: WorkerAdapter, options: Options) -> None:
        self._adapter = adapter
        self._options = options
        self._account = RunProgress()
        self._pulse: Pulse | None = None
        self._child: ClientChild | None = None
        self._is_stopped = False
        self._is_out_of_patience = False
        self._said = 0

    def shows_life(self) -> bool:
        """Whether a heartbeat may be sent. Before and after the client it is we who work."""
        pulse = self._pulse
        return pulse is None or pulse.beats()

    def run(self, work: Work) -> WorkComplete:
        """Do the work.

        Raises:
            Failure: the client failed, was stopped, or its change cannot be handed back.
        """
        signal.signal(signal.SIGTERM, self._stop)
        folder = work.assignment.folder
        with tempfile.TemporaryDirectory(prefix="landlane-client-", ignore_cleanup_errors=True) as scratch:
            try:
                base = work.assignment.base or head_of(folder)
                if self._adapter.leavings:
                    ignore(folder, self._adapter.leavings)
                exit_code = self._follow(work, scratch)
                self._judge(exit_code)
                return self._hand_back(work, base)
            except Failure as failure:
                failure.notes = failure.notes or self._notes()
                raise
            except LandlaneError as error:
                reason = f"{error.message} ({error.hint})" if error.hint else error.message
                raise Failure(
                    clean(reason), retry=error.code != "NOT_INSTALLED", notes=self._notes()
                ) from error
            except OSError as error:
                raise Failure(clean(str(error)), notes=self._notes()) from error

    def _stop(self, _: int, __: object) -> None:
        self._is_stopped = True  # the loop looks at it a few times a second

    # -------------------------------------------------------------------------------- running it

    def _follow(self, work: Work, scratch: str) -> int:
        """Start the client and read it to its end; tells its exit code."""
        child = self._start(work, scratch)
        exit_code = 0
        try:
            for is_trouble, line in child.listen(self._may_go_on):
                self._take(work, line, is_trouble=is_trouble)
        finally:
            self._pulse = None
            is_ended_by_us = self._is_stopped or self._is_out_of_patience
            exit_code = child.end(self._options.grace if is_ended_by_us else _PARTING_SECONDS)
            for is_trouble, line in child.last_words():
                self._take(work, line, is_trouble=is_trouble)
            child.close()
        return exit_code

    def _start(self, work: Work, scratch: str) -> ClientChild:
        adapter, options, assignment = self._adapter, self._options, work.assignment
        program = shutil.which(options.program) if options.program else find_program(adapter.name)
        if program is None:
            raise Failure(f"there is no program {options.program}", retry=False)
        prompt = prompt_for(assignment)
        prompt_file = os.path.join(scratch, "prompt.md")
        with open(prompt_file, "w", encoding="utf-8", errors="replace") as file:
            file.write(prompt)
        wish = StartOptions(
            prompt=_cut(prompt) if adapter.prompt_by == BY_ARGUMENT else "",
            prompt_file=prompt_file if adapter.prompt_by == BY_FILE else "",
            scratch=scratch,
            model=options.model,
            budget_usd=assignment.budget_usd,
            extra=options.words,
        )
        own = {name: text for name, text in adapter.environment.items() if name not in os.environ}
        with open(prompt_file if adapter.prompt_by == BY_STDIN else os.devnull, "rb") as stdin:
            self._child = child = ClientChild(
                [program, *adapter.words(wish)], cwd=assignment.folder, environment=own, stdin=stdin.fileno()
            )
        self._pulse = Pulse(child, options.quiet, self._commands_since)
        return child

    def _commands_since(self) -> float | None:
        """Since when a command of the client may be running, if one may."""
        if self._adapter.tells_calls:
            return min(self._account.calls.copy().values(), default=None)
        child = self._child
        return child.heard_at if child is not None and child.has_spoken else None

    def _may_go_on(self) -> bool:
        since, retry = self._account.retrying_since, self._account.retry
        if since is not None and retry is not None and is_limited(f"{retry.word} {retry.text}", retry.status):
            self._is_out_of_patience = time.monotonic() - since >= self._options.patience
        return not self._is_stopped and not self._is_out_of_patience

    def _take(self, work: Work, line: str, *, is_trouble: bool) -> None:
        """Read one line of the client, and tell what is to be told of it."""
        adapter, account = self._adapter, self._account
        read = adapter.read_trouble if is_trouble else adapter.read
        if is_trouble:
            sys.stderr.write(f"{line}\n")
        before = account.usage
        shown = [account.hear(event, time.monotonic()) for event in read(line)] if read else []
        work.usage = account.usage
        text = "\n".join(one.strip() for one in shown if one.strip())
        if text:
            work.doing = " ".join(text.split())[:_LONGEST_DOING]
        if (text or account.usage != before) and self._said < _MOST_PROGRESS:
            self._said += 1
            work.progress(text[:_LONGEST_PROGRESS] or _usage_text(account.usage))

    # ------------------------------------------------------------------------------ how it ended

    def _judge(self, exit_code: int) -> None:
        """Raise `Failure` unless the client did what it could."""
        account, child = self._account, self._child
        assert child is not None
        if self._is_stopped:
            raise Failure("told to end by SIGTERM", code="stopped", notes=self._notes())
        trouble = bytes(child.trouble).decode("utf-8", "replace")
        if self._is_out_of_patience:
            retry = account.retry
            told = retry.text if retry else ""
            reason = f"{self._adapter.title}: the provider wants fewer requests, again and again: {told}"
            outcome = Outcome(
                code="rate_limited", reason=reason, retry_after_seconds=wait_told(told, time.time())
            )
        elif exit_code or account.failure is not None:
            outcome = outcome_of(self._adapter, account.failure, exit_code, trouble, now=time.time())
        else:
            return
        raise Failure(
            outcome.reason,
            code=outcome.code,
            retry=outcome.retry,
            retry_after_seconds=outcome.retry_after_seconds,
            notes=self._notes(),
        )

    def _notes(self) -> str | None:
        """The model's last words, for whoever works on it next."""
        return self._account.last_text.strip()[-_MOST_NOTES:] or None

    def _hand_back(self, work: Work, base: str) -> WorkComplete:
        """The end, with the change that the client made."""
        assignment = work.assignment
        summary = self._account.last_text.strip()[:_MOST_SUMMARY] or assignment.title
        if assignment.may_commit:
            message = " ".join(assignment.title.split())[:_LONGEST_TITLE] or assignment.task
            head = commit_rest(assignment.folder, f"{message}\n")
            if self._is_stopped:
                raise Failure("told to end by SIGTERM", code="stopped")
            return work.complete(summary, commit=head if head and head != base else None)
        patch = patch_since(assignment.folder, base)
        if not patch.changed and not patch.deleted:
            return work.complete(summary)
        if patch.text is not None and _fits(patch.text):
            return work.complete(summary, patch=patch.text)
        if patch.deleted or not assignment.scratch:
            raise Failure(
                "the change is too large for a patch, or holds what is no text, and it cannot be handed back "
                "as files either: some are deleted, or there is no scratch folder",
                retry=False,
            )
        copy_changed(assignment.folder, assignment.scratch, patch.changed)
        return work.complete(summary, files=patch.changed)


def _fits(patch: str) -> bool:
    """Whether a patch can be said in one line."""
    if len(patch) > TABLE[COMPLETE]["patch"].most:
        return False
    return len(json.dumps(patch, ensure_ascii=False).encode()) <= MOST_LINE_BYTES - _BESIDE_PATCH


def _usage_text(usage: Usage | None) -> str:
    """What was used so far, in words; what nobody knows is left out."""
    known = usage or Usage()
    parts = [
        *([f"{known.input_tokens:,} tokens in"] if known.input_tokens is not None else []),
        *([f"{known.output_tokens:,} out"] if known.output_tokens is not None else []),
        *([f"${known.cost_usd:.4f}"] if known.cost_usd is not None else []),
    ]
    return f"so far {', '.join(parts) or 'nothing is known of its usage'}"


def _cut(prompt: str) -> str:
    """A prompt that fits into one word of a command line."""
    return prompt.encode("utf-8", "replace")[:MOST_ARGUMENT_BYTES].decode("utf-8", "ignore")


if __name__ == "__main__":
    raise SystemExit(main())
