"""Format state, slots, numbers and runs as JSON."""

from __future__ import annotations

import json
import shlex

from landlane.clock import rfc3339
from landlane.error_json import failure_json
from landlane.state.once import RunCrashed, RunEnded
from landlane.state.slot_kinds import SlotRefused
from landlane.text import list_some
from landlane.units import count, time_ago

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.sessions.model import Slot
    from landlane.state.json_types import NumberJson, OnceRunJson, SlotJson, StateJson
    from landlane.state.key_rules import State, StateStale
    from landlane.state.numbers import AllocatedNumber
    from landlane.state.once import OnceRun, StillRunning
    from landlane.state.slot_kinds import SlotTaken
    from landlane.store.interface import Store

_EXITS = {"STATE_STALE": 4, "SLOT_TAKEN": 3, "WAIT_TIMED_OUT": 5}
_MAX_HOLDERS = 50  # in the answer to a refused request for a large range
_MAX_NAMED = 3  # holders in a message
_WIDEST = 60  # characters of a value in a message


def state_json(state: State) -> StateJson:
    """Return a version of a key as JSON."""
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
    """Return the answer to a write with an outdated version, and its exit code."""
    if stale.version:
        age = time_ago(stale.at, stale.now or stale.at)
        quoted = json.dumps(stale.value, ensure_ascii=False)
        shown = quoted if len(quoted) <= _WIDEST else quoted[: _WIDEST - 1] + "…"
        wanted = "; set it with --expect" if stale.expected is None else f", not {stale.expected}"
        message = f"{stale.key} is at version {stale.version} ({shown}, by {stale.agent}, {age}){wanted}"
    else:
        message = f"{stale.key} does not exist, so it is not at version {stale.expected}"
    facts = {
        "key": stale.key,
        "expected": stale.expected,
        "version": stale.version,
        "value": stale.value,
        "agent": stale.agent or None,
        "at": rfc3339(stale.at) if stale.version else None,
    }
    return failure_json(stale.code, message, stale.hint, **facts), _EXITS[stale.code]


def slot_json(slot: Slot, store: Store) -> SlotJson:
    """Return a slot as JSON."""
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
    """Return the answer to `slot take` and its exit code."""
    if not isinstance(outcome, SlotRefused):
        return {"ok": True, "slot": slot_json(outcome.slot, store), "new": outcome.is_new}, 0
    first = outcome.holders[0] if outcome.holders else None
    still = " still" if outcome.code == "WAIT_TIMED_OUT" else ""
    message = f"{outcome.kind}{still} has {_availability(outcome)}"
    facts: dict[str, Any] = {
        "kind": outcome.kind,
        "amount": outcome.amount,
        "left": outcome.left,
        "holder": first.agent if first else None,
        "until": rfc3339(store.wall_of(first.until)) if first else None,
        "holders": [slot_json(slot, store) for slot in outcome.holders[:_MAX_HOLDERS]],
        "waiters": list(outcome.waiters),
    }
    return failure_json(outcome.code, message, outcome.hint, **facts), _EXITS[outcome.code]


def _availability(outcome: SlotRefused) -> str:
    parts = [f"{outcome.left} of {outcome.size} free"]
    if outcome.holders:
        parts.append(", ".join(_holdings(outcome)))
    if outcome.waiters:
        parts.append(f"{list_some(outcome.waiters, _MAX_NAMED)} waited longer")
    elif outcome.left >= outcome.amount:
        parts.append("the free ones are in use by other programs")
    return "; ".join(parts)


def _holdings(outcome: SlotRefused) -> list[str]:
    """Return who holds how much, or which places."""
    held: dict[str, list[Slot]] = {}
    for slot in outcome.holders:
        held.setdefault(slot.agent, []).append(slot)
    names = list(held)[:_MAX_NAMED]
    texts = [f"{name} holds {_amount(held[name])}" for name in names]
    others = len(held) - len(names)
    return [*texts, *([f"{count(others, 'other')} hold the rest"] if others else [])]


def _amount(slots: list[Slot]) -> str:
    places = [slot.place for slot in slots if slot.place]
    return list_some(places, _MAX_NAMED) if places else str(sum(slot.amount for slot in slots))


def number_json(number: AllocatedNumber) -> NumberJson:
    """Return a number as JSON."""
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


def run_json(run: OnceRun) -> OnceRunJson:
    """Return a run of a command as JSON."""
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


def once_json(
    outcome: RunEnded | RunCrashed | StillRunning, command: Sequence[str], now: int
) -> tuple[dict[str, Any], int]:
    """Return the answer to `once COMMAND` and its exit code: that of the command, if it ran now."""
    words = shlex.join(command)
    run = outcome.run
    facts = {**run_json(run), "ran": isinstance(outcome, RunEnded) and outcome.is_now}
    if isinstance(outcome, RunCrashed):
        started = time_ago(run.begun_at, now)
        message = f"{run.key} was started by {run.agent} {started} and killed before it finished"
        hint = f"check what it left behind, then: landlane once {run.key} --again -- {words}"
        return failure_json("ONCE_CRASHED", message, hint, **facts), 1
    if not isinstance(outcome, RunEnded):
        message = f"{run.key} is still running (started by {run.agent} {time_ago(run.begun_at, now)})"
        hint = f"wait until it ends: landlane once {run.key} --wait -- {words}"
        return failure_json("ONCE_RUNNING", message, hint, **facts), 5
    if run.exit_code:
        ago = time_ago(run.done_at or run.begun_at, now)
        again = f"landlane once {run.key} --again -- {words}"
        is_now = outcome.is_now
        message = f"{run.key} failed {ago} ({run.agent}, exit {run.exit_code}) and is not run again"
        message = f"{run.key} failed (exit {run.exit_code})" if is_now else message
        return failure_json("ONCE_FAILED", message, again, **facts), run.exit_code if is_now else 1
    return {"ok": True, **facts}, 0
