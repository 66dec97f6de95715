"""The commands about versioned state: get, set, append, list, history, watch."""

from __future__ import annotations

from landlane.cli.parse_number import read_number
from landlane.cli.terminal import in_one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command import Desk
    from landlane.state.key_rules import State


_WIDEST = 60  # of a value in a table


def get(desk: Desk, key: str) -> int:
    """Show a key."""
    from landlane.errors import LandlaneError
    from landlane.state.keys import get_state

    desk.show_life()
    state = get_state(desk.house.context, key)
    if state is None:
        raise LandlaneError(
            f"there is no state under {key}",
            code="NO_STATE",
            hint="`landlane state list` shows what there is; `state set KEY VALUE` makes it",
            key=key,
            version=0,
        )
    return _show(desk, state)


def set_value(desk: Desk, key: str, value: str, expect: str, any: bool) -> int:
    """Set a key, or show what stands there instead."""
    from landlane.state.key_rules import StateStale, parse_value
    from landlane.state.keys import set_state
    from landlane.state.to_json import stale_json

    outcome = set_state(
        desk.house.context,
        desk.session(),
        key,
        parse_value(value),
        expect=read_number(expect, "--expect"),
        is_any=any,
    )
    if not isinstance(outcome, StateStale):
        return _show(desk, outcome)
    answer, code = stale_json(outcome)
    if desk.terminal.is_json:
        desk.terminal.answer(answer)
    else:
        desk.terminal.complain(answer["message"], answer["hint"], answer["code"])
    return code


def append(desk: Desk, key: str, value: str, **options: str) -> int:
    """Combine a value with what stands there."""
    from landlane.state.key_rules import parse_value
    from landlane.state.keys import append_state

    state = append_state(desk.house.context, desk.session(), key, parse_value(value), reducer=options["with"])
    return _show(desk, state)


def list_all(desk: Desk, prefix: str) -> int:
    """List keys."""
    from landlane.state.keys import list_state

    desk.show_life()
    return _table(desk, list_state(desk.house.context, prefix), "key")


def history(desk: Desk, key: str) -> int:
    """List the versions of a key."""
    from landlane.state.keys import state_history

    desk.show_life()
    return _table(desk, state_history(desk.house.context, key), "version")


def watch(desk: Desk, key: str, since: str, timeout: str) -> int:
    """Wait for a key to change."""
    from landlane.cli.command import heed_signals
    from landlane.clock import parse_duration
    from landlane.errors import TimedOut
    from landlane.state.keys import watch_state

    seen = read_number(since, "--since")
    timeout_ms = parse_duration(timeout, what="--timeout") if timeout else None
    desk.show_life()
    heed_signals()
    state = watch_state(desk.house.context, key, since=seen, timeout_ms=timeout_ms)
    if state is None:
        raise TimedOut(
            f"{key} did not change for as long as you would wait",
            code="WAIT_TIMED_OUT",
            hint="wait longer, or go on with what stands there: `landlane state get KEY`",
            key=key,
        )
    return _show(desk, state)


def _show(desk: Desk, state: State) -> int:
    from landlane.state.to_json import state_json

    text = f"{state.key} = {_shown(state.value)}  (version {state.version}, {state.agent})"
    desk.terminal.answer({"ok": True, **state_json(state)}, in_one_line(text))
    return 0


def _table(desk: Desk, states: list[State], what: str) -> int:
    from landlane.state.to_json import state_json

    rows = [state_json(state) for state in states]
    columns = ["key", "version", "value", "agent", "at"]
    cells = [[_cell(row, column) for column in columns] for row in rows]
    title = f"{len(rows)} {what}{'' if len(rows) == 1 else 's'}"
    answer = {"ok": True, "states" if what == "key" else "versions": rows}
    desk.terminal.answer(answer, desk.terminal.table(title, columns, cells))
    return 0


def _cell(row: dict[str, Any], column: str) -> str:
    if column != "value":
        return str(row[column])
    text = _shown(row[column])
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _shown(content: Any) -> str:
    import json

    return json.dumps(content, ensure_ascii=False)
