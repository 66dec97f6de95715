"""The commands for versioned state: get, set, append, list, history, watch."""

from __future__ import annotations

import json

from landlane.cli.command import heed_signals
from landlane.cli.parse_number import read_number
from landlane.cli.terminal import in_one_line
from landlane.clock import parse_duration
from landlane.errors import LandlaneError, TimedOut
from landlane.state.key_rules import StateStale, parse_value
from landlane.state.keys import append_state, get_state, list_state, set_state, state_history, watch_state
from landlane.state.to_json import stale_json, state_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command_call import CommandCall
    from landlane.state.key_rules import State


_WIDEST = 60  # of a value in a table


def get(call: CommandCall, key: str) -> int:
    """Show a key."""
    call.show_life()
    state = get_state(call.repo, key)
    if state is None:
        raise LandlaneError(
            f"there is no state under {key}",
            code="NO_STATE",
            hint="`landlane state list` shows what there is; `state set KEY VALUE` makes it",
            key=key,
            version=0,
        )
    return _show(call, state)


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
    if not isinstance(outcome, StateStale):
        return _show(call, outcome)
    answer, code = stale_json(outcome)
    if call.terminal.is_json:
        call.terminal.answer(answer)
    else:
        call.terminal.complain(answer["message"], answer["hint"], answer["code"])
    return code


def append(call: CommandCall, key: str, value: str, **options: str) -> int:
    """Combine a value with the current one."""
    state = append_state(call.repo, call.session(), key, parse_value(value), reducer=options["with"])
    return _show(call, state)


def list_all(call: CommandCall, prefix: str) -> int:
    """List keys."""
    call.show_life()
    return _table(call, list_state(call.repo, prefix), "key")


def history(call: CommandCall, key: str) -> int:
    """List the versions of a key."""
    call.show_life()
    return _table(call, state_history(call.repo, key), "version")


def watch(call: CommandCall, key: str, since: str, timeout: str) -> int:
    """Wait for a key to change."""
    seen = read_number(since, "--since")
    timeout_ms = parse_duration(timeout, what="--timeout") if timeout else None
    call.show_life()
    heed_signals()
    state = watch_state(call.repo, key, since=seen, timeout_ms=timeout_ms)
    if state is None:
        raise TimedOut(
            f"{key} did not change for as long as you would wait",
            code="WAIT_TIMED_OUT",
            hint="wait longer, or go on with what stands there: `landlane state get KEY`",
            key=key,
        )
    return _show(call, state)


def _show(call: CommandCall, state: State) -> int:
    text = f"{state.key} = {_shown(state.value)}  (version {state.version}, {state.agent})"
    call.terminal.answer({"ok": True, **state_json(state)}, in_one_line(text))
    return 0


def _table(call: CommandCall, states: list[State], what: str) -> int:
    items = [state_json(state) for state in states]
    columns = ["key", "version", "value", "agent", "at"]
    cells = [[_cell(item, column) for column in columns] for item in items]
    title = f"{len(items)} {what}{'' if len(items) == 1 else 's'}"
    answer = {"ok": True, "states" if what == "key" else "versions": items}
    call.terminal.answer(answer, call.terminal.table(title, columns, cells))
    return 0


def _cell(item: dict[str, Any], column: str) -> str:
    if column != "value":
        return str(item[column])
    text = _shown(item[column])
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _shown(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False)
