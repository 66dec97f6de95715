"""State, slots, numbers and runs as JSON."""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.state.once import Ran, RunCrashed
from landlane.state.slot_kinds import SlotRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.state.key_rules import State, StateStale
    from landlane.state.numbers import Number
    from landlane.state.once import Run, StillRunning
    from landlane.state.slot_kinds import Slot, SlotTaken
    from landlane.store.interface import Store

_MESSAGES = {
    "STATE_STALE": "the key stands at another version than you said",
    "SLOT_TAKEN": "others hold too much of it",
    "WAIT_TIMED_OUT": "it stayed taken for as long as you would wait",
}
_EXITS = {"STATE_STALE": 4, "SLOT_TAKEN": 3, "WAIT_TIMED_OUT": 5}
_SHOWN = 50  # a refusal for a large range names some of its holders


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


def slot_json(slot: Slot, store: Store) -> dict[str, Any]:
    """A slot as programs read it."""
    return {
        "id": slot.id,
        "kind": slot.kind,
        "place": slot.place or None,
        "port": int(slot.place) if slot.kind == "port" else None,
        "name": slot.name or None,
        "amount": slot.amount,
        "token": slot.token,
        "holder": slot.agent,
        "session": slot.session,
        "since": rfc3339(store.wall_of(slot.taken_at)),
        "until": rfc3339(store.wall_of(slot.until)),
    }


def slot_outcome_json(outcome: SlotTaken | SlotRefused, store: Store) -> tuple[dict[str, Any], int]:
    """The answer to `slot take`, and the exit code that goes with it."""
    if not isinstance(outcome, SlotRefused):
        return {"ok": True, "slot": slot_json(outcome.slot, store), "new": outcome.is_new}, 0
    first = outcome.holders[0] if outcome.holders else None
    answer: dict[str, Any] = {
        "ok": False,
        "code": outcome.code,
        "message": f"{outcome.kind}: {_MESSAGES[outcome.code]}: {_left(outcome)}",
        "hint": outcome.hint,
        "kind": outcome.kind,
        "amount": outcome.amount,
        "left": outcome.left,
        "holder": first.agent if first else None,
        "until": rfc3339(store.wall_of(first.until)) if first else None,
        "holders": [slot_json(slot, store) for slot in outcome.holders[:_SHOWN]],
        "waiters": list(outcome.waiters),
    }
    return answer, _EXITS[outcome.code]


def _left(outcome: SlotRefused) -> str:
    told = f"{outcome.left} of {outcome.size} left, {outcome.amount} wanted"
    if outcome.waiters:
        told += f", {len(outcome.waiters)} waiting before you"
    elif outcome.left >= outcome.amount:
        told += ", and what is left is in use by other programs or is another's"
    return told


def number_json(number: Number) -> dict[str, Any]:
    """A number as programs read it."""
    return {
        "kind": number.kind,
        "number": number.number,
        "text": number.text,
        "path": number.path or None,
        "agent": number.agent,
        "session": number.session,
        "for": number.purpose or None,
        "at": rfc3339(number.at),
        "state": number.state,
    }


def run_json(run: Run) -> dict[str, Any]:
    """A run of a command as programs read it."""
    return {
        "key": run.key,
        "run": run.run,
        "exit": run.exit_code,
        "agent": run.agent,
        "session": run.session,
        "command": run.command or None,
        "began": rfc3339(run.begun_at),
        "ended": rfc3339(run.done_at) if run.done_at is not None else None,
        "output": run.output,
    }


def once_json(outcome: Ran | RunCrashed | StillRunning) -> tuple[dict[str, Any], int]:
    """The answer to `once`, and its exit code: that of the command, where it is known."""
    run = outcome.run
    told = {**run_json(run), "ran": isinstance(outcome, Ran) and outcome.is_now}
    if isinstance(outcome, RunCrashed):
        return _crashed(run, told)
    if not isinstance(outcome, Ran):
        return _running(run, told)
    code = run.exit_code or 0
    if code:
        return {
            "ok": False,
            "code": "ONCE_FAILED",
            "message": f"{run.key} was run by {run.agent} and ended with {code}",
            "hint": "mend what it complains about, then run it with --again",
            **told,
        }, code
    return {"ok": True, **told}, 0


def _crashed(run: Run, told: dict[str, Any]) -> tuple[dict[str, Any], int]:
    return {
        "ok": False,
        "code": "ONCE_CRASHED",
        "message": f"{run.key} was begun by {run.agent}, whose process is gone: nobody knows how far it came",
        "hint": "look at what it left behind, then run it with --again",
        **told,
    }, 1


def _running(run: Run, told: dict[str, Any]) -> tuple[dict[str, Any], int]:
    return {
        "ok": False,
        "code": "ONCE_RUNNING",
        "message": f"{run.key} is still being run by {run.agent}",
        "hint": "wait longer, or do something else first",
        **told,
    }, 5
