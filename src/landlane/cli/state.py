"""The commands for versioned state: get, set, append, list, history, watch."""

from __future__ import annotations

import json

from landlane.cli.arguments import read_number
from landlane.cli.command import stop_on_signals
from landlane.cli.table import empty_text
from landlane.cli.terminal import in_one_line
from landlane.clock import parse_duration, rfc3339
from landlane.errors import TimedOut
from landlane.state.key_rules import StateStale, parse_value, value_text
from landlane.state.keys import append_state, list_state, need_state, set_state, state_history, watch_state
from landlane.state.to_json import stale_json, state_json
from landlane.units import time_ago

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import CommandCall
    from landlane.state.key_rules import State


_WIDEST = 60  # of a value in a table


def get(call: CommandCall, key: str) -> int:
    """Print the value of a key."""
    call.renew_session()
    return _print_value(call, need_state(call.repo, key))


def set_value(call: CommandCall, key: str, value: str, expect: str, any: bool) -> int:
    """Set a key, or show its current value if the version differs."""
    outcome = set_state(
        call.repo,
        call.session(),
        key,
        parse_value(value),
        expect=read_number(expect, "--expect"),
        is_any=any,
    )
    if isinstance(outcome, StateStale):
        return call.terminal.refuse(*stale_json(outcome))
    return _confirm(call, outcome)


def append(call: CommandCall, key: str, value: str, with_: str) -> int:
    """Combine a value with the current one."""
    return _confirm(call, append_state(call.repo, call.session(), key, parse_value(value), reducer=with_))


def list_all(call: CommandCall, prefix: str) -> int:
    """List keys."""
    call.renew_session()
    states = list_state(call.repo, prefix)
    rows = [[state.key, *_cells(call, state)] for state in states]
    text = call.terminal.table("", _columns(call, "key"), rows, right=("VERSION",), cut="VALUE")
    answer = {"ok": True, "states": [state_json(state) for state in states]}
    return call.terminal.answer(answer, text or empty_text("key"), quiet=_names(states))


def history(call: CommandCall, key: str) -> int:
    """List the versions of a key."""
    call.renew_session()
    states = state_history(call.repo, key)
    rows = [_cells(call, state) for state in states]
    text = call.terminal.table("", _columns(call), rows, right=("VERSION",), cut="VALUE")
    answer = {"ok": True, "versions": [state_json(state) for state in states]}
    return call.terminal.answer(answer, text or f"No versions of {key}.")


def watch(call: CommandCall, key: str, since: str, timeout: str) -> int:
    """Wait for a key to change, and print its value."""
    version = read_number(since, "--since")
    timeout_ms = parse_duration(timeout, what="--timeout") if timeout else None
    call.renew_session()
    stop_on_signals()
    state = watch_state(call.repo, key, since=version, timeout_ms=timeout_ms)
    if state is None:
        raise TimedOut(
            f"{key} did not change within {timeout}",
            code="WAIT_TIMED_OUT",
            hint=f"see what it is now: landlane state get {key}",
            key=key,
        )
    return _print_value(call, state)


def _print_value(call: CommandCall, state: State) -> int:
    remark = f"version {state.version}, by {state.agent}, {time_ago(state.at, call.wall_now())}"
    if call.terminal.is_verbose:
        remark = f"version {state.version}, by {state.agent} ({state.session}), {rfc3339(state.at)}"
    return call.terminal.answer_value({"ok": True, **state_json(state)}, value_text(state.value), remark)


def _confirm(call: CommandCall, state: State) -> int:
    text = in_one_line(f"✓ {state.key} = {value_text(state.value)} (version {state.version})")
    return call.terminal.answer({"ok": True, **state_json(state)}, text, quiet=str(state.version))


def _columns(call: CommandCall, *first: str) -> list[str]:
    return [*first, "value", "version", "by", *(["session"] if call.terminal.is_verbose else []), "set"]


def _cells(call: CommandCall, state: State) -> list[str]:
    text = json.dumps(state.value, ensure_ascii=False)
    short = text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
    if call.terminal.is_verbose:
        return [text, str(state.version), state.agent, state.session, rfc3339(state.at)]
    return [short, str(state.version), state.agent, time_ago(state.at, call.wall_now())]


def _names(states: list[State]) -> str:
    return "\n".join(state.key for state in states)
