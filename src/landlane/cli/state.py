"""The commands for versioned state: get, set, append, list, history, watch."""

from __future__ import annotations

import json

from landlane.cli.arguments import read_number, read_versions
from landlane.cli.command import stop_on_signals
from landlane.cli.table import empty_text
from landlane.cli.terminal import in_one_line
from landlane.clock import parse_duration, rfc3339
from landlane.error_json import failure_json
from landlane.errors import Malformed, TimedOut
from landlane.state.key_rules import StateStale, parse_value, value_text
from landlane.state.keys import (
    append_state,
    check_states,
    list_state,
    moved_error,
    need_state,
    set_states,
    state_history,
    watch_state,
)
from landlane.state.to_json import stale_json, state_json
from landlane.text import in_lines
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


def set_value(
    call: CommandCall,
    key: str,
    value: str,
    pairs: tuple[str, ...],
    expect: tuple[str, ...],
    any: bool,
    force: bool,
) -> int:
    """Set a key or several, or show the current value of one whose version differs."""
    words = [key, value, *pairs]
    if len(words) % 2:
        raise Malformed(
            f"{words[-1][:60]} has no value",
            code="BAD_CALL",
            hint="give a value for each key: landlane state set plan/a 1 plan/b 2",
        )
    changes = {one: parse_value(text) for one, text in zip(words[::2], words[1::2], strict=True)}
    bare = [text for text in expect if "=" not in text]  # the version of the only key
    if bare and (len(changes) > 1 or len(bare) > 1):
        raise Malformed(
            f"--expect {bare[0][:40]} does not say which key it is about",
            code="BAD_CALL",
            hint=f"name it: --expect {key}={bare[0][:40]}",
        )
    expected = read_versions([text for text in expect if text not in bare])
    if bare:
        expected[key] = read_number(bare[0], "--expect") or 0
    outcome = set_states(call.repo, call.session(), changes, expect=expected, is_any=any, is_forced=force)
    if isinstance(outcome, StateStale):
        return call.terminal.refuse(*stale_json(outcome))
    if len(outcome) == 1:
        return _confirm(call, outcome[0])
    lines = [in_one_line(f"✓ {one.key} = {value_text(one.value)} (version {one.version})") for one in outcome]
    answer = {"ok": True, "states": [state_json(one) for one in outcome]}
    versions = "\n".join(str(one.version) for one in outcome)
    return call.terminal.answer(answer, "\n".join(lines), quiet=versions)


def check(call: CommandCall, versions: tuple[str, ...]) -> int:
    """Show whether keys still have the versions that were read."""
    call.renew_session()
    expected = read_versions(versions, "state check")
    moved = check_states(call.repo, expected)
    if moved:
        error = moved_error(moved)
        items = [
            {"key": one.key, "expected": one.expected, "version": one.version, "value": one.value}
            for one in moved
        ]
        return call.terminal.refuse(
            failure_json(error.code, error.message, error.hint, moved=items), error.exit_code
        )
    text = "\n".join(f"✓ {key} is still at version {version}" for key, version in expected.items())
    return call.terminal.answer({"ok": True, "versions": expected}, in_lines(text))


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
