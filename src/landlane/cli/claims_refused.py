"""What `claim` shows when paths are held: the refusal, and the line while it waits."""

from __future__ import annotations

import time
from shlex import quote

from landlane.claims.model import SessionKind
from landlane.claims.to_json import all_holders, holder_rows
from landlane.cli.table import format_table
from landlane.cli.terminal import in_one_line
from landlane.units import ordinal, running_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.claims.model import Refused
    from landlane.cli.command import CommandCall
    from landlane.cli.terminal import Terminal

_QUIET_SECONDS = 0.5  # a wait that is shorter shows nothing
_LONG_MS = 366 * 86_400_000


def refuse(
    call: CommandCall,
    refused: Refused,
    answer: dict[str, Any],
    code: int,
    typed: Mapping[str, str],
    options: Sequence[str],
) -> int:
    """Print why nothing was claimed: the sentence, who is in the way or in line, and what to do.

    `typed` has the patterns as they were typed, `options` the options that a hint repeats.
    """
    answer["hint"] = _hint(call, refused, answer, typed, options)
    return call.terminal.refuse(answer, code, _details(call, refused))


def _details(call: CommandCall, refused: Refused) -> list[str]:
    holders = all_holders(refused)
    if refused.code != "CLAIM_HELD":
        return []
    if len(holders) > 1:
        store = call.repo.store
        now = store.view(lambda snapshot: snapshot.now)
        rows = [[in_one_line(cell) for cell in row] for row in holder_rows(holders, store, now)]
        _, *lines = format_table([""] * len(rows[0]), rows).split("\n")
        return [f"  {line}" for line in lines]
    first = refused.refused[0]
    return [f"  waiting: {in_one_line(', '.join(first.waiting))}"] if first.waiting and holders else []


def _hint(
    call: CommandCall,
    refused: Refused,
    answer: dict[str, Any],
    typed: Mapping[str, str],
    options: Sequence[str],
) -> str:
    """Return the next step as a command, with the paths and `--as` as they were typed."""
    first = refused.refused[0]
    if refused.cycle:
        return answer["hint"]
    if refused.code == "WAIT_TIMED_OUT":
        return f"do something else first: {_command(call, 'next')}"
    if refused.free:
        free = [typed.get(pattern, pattern) for pattern in refused.free]
        return f"claim what is free: {_command(call, 'claim', *free, *options)}"
    is_lock_file = bool(first.holders) and not first.holders[0].claim.session
    if is_lock_file or (first.holders and first.holders[0].kind is SessionKind.GATE):
        return answer["hint"]
    reason = answer["hint"].partition(": ")[0]
    last = "--shared" if answer["hint"].endswith(" --shared") else "--wait"
    return f"{reason}: {_command(call, 'claim', *typed.values(), *options)} {last}"


def _command(call: CommandCall, *words: str) -> str:
    acting = ("--as", call.name) if call.name else ()
    folder = ("--repo", call.folder) if call.folder else ()
    return " ".join(["landlane", *map(quote, (*words, *acting, *folder))])


class WaitingLine:
    """The one line on stderr while a claim waits: replaced on a terminal, written once elsewhere."""

    def __init__(self, terminal: Terminal, wait_ms: int, typed: Mapping[str, str]) -> None:
        self._terminal = terminal
        self._wait_ms = wait_ms
        self._typed = typed
        self._began = time.monotonic()

    def begin(self, refused: Refused) -> None:
        """Say once what is waited for; a terminal shows it with the first update."""
        if not self._terminal.is_live:
            self._terminal.note(self._text(refused))

    def update(self, refused: Refused) -> None:
        """Show the place in line and the clock on a terminal."""
        if self._terminal.is_live and time.monotonic() - self._began > _QUIET_SECONDS:
            limit = f" of {running_time(self._wait_ms)}" if self._wait_ms < _LONG_MS else ""
            clock = f" ({running_time(refused.waited_ms)}{limit})"
            self._terminal.show_progress(self._text(refused) + clock)

    def end(self) -> None:
        """Remove the line."""
        self._terminal.show_progress("")

    def _text(self, refused: Refused) -> str:
        first = refused.refused[0]
        path = self._typed.get(first.pattern, first.pattern)
        holder = f"{first.holders[0].claim.agent} holds it" if first.holders else f"{first.holder} is next"
        return in_one_line(f"waiting for {path}: {holder}, you are {ordinal(first.position)} in line")
