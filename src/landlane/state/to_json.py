"""Versioned state as the JSON that every door answers with."""

from __future__ import annotations

from landlane.clock import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.state.key_rules import State, StateStale

_MESSAGES = {"STATE_STALE": "the key stands at another version than you said"}
_EXITS = {"STATE_STALE": 4}


def state_json(state: State) -> dict[str, Any]:
    """A version of a key as programs read it."""
    return {
        "key": state.key,
        "value": state.value,
        "version": state.version,
        "agent": state.agent,
        "session": state.session,
        "at": rfc3339(state.at),
        "reducer": state.reducer or None,
    }


def stale_json(stale: StateStale) -> tuple[dict[str, Any], int]:
    """The answer to a write that came too late, and its exit code."""
    stands = f"it stands at {stale.version}, written by {stale.agent}" if stale.version else "it is not there"
    answer = {
        "ok": False,
        "code": stale.code,
        "message": f"{stale.key}: {_MESSAGES[stale.code]}: {stands}",
        "hint": stale.hint,
        "key": stale.key,
        "expected": stale.expected,
        "version": stale.version,
        "value": stale.value,
        "agent": stale.agent or None,
        "at": rfc3339(stale.at) if stale.version else None,
    }
    return answer, _EXITS[stale.code]
