"""Shared state, slots and numbers for Python agents: `Landlane.state`, `.slots`, `.numbers`."""

from __future__ import annotations

from landlane.clock import parse_duration
from landlane.state import keys as state
from landlane.state import numbers, slots
from landlane.state.key_rules import State, StateStale
from landlane.state.numbers import Number
from landlane.state.slot_kinds import Slot, SlotRefused, SlotTaken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from landlane.repository import Repository
    from landlane.sessions.model import Session


class SharedState:
    """Values under keys, each with a version, as one session sees them."""

    def __init__(self, repo: Repository, session: Callable[[], Session]) -> None:
        self._repo = repo
        self._session = session

    def get(self, key: str) -> State | None:
        """Return the current version of a key; None when there is none."""
        return state.get_state(self._repo, key)

    def set(
        self, key: str, value: Any, *, expect: int | None = None, overwrite: bool = False
    ) -> State | StateStale:
        """Set a key that is new or has the version `expect`; with `overwrite`, always.

        Raises:
            Malformed: the key or the value cannot be used.
            NotAllowed: the settings reserve it for another writer, or restrict its value.
            Stale: the session has ended.
        """
        outcome = state.set_state(self._repo, self._session(), key, value, expect=expect, is_any=overwrite)
        self._repo.settle()
        return outcome

    def append(self, key: str, value: Any, reducer: str = "") -> State:
        """Combine a value with the current one: append, union, max, min, sum or merge.

        Raises:
            Malformed: the key or the value cannot be used, or the two cannot be combined.
            NotAllowed: the settings reserve it for another writer, or require another reducer.
            Stale: the session has ended.
        """
        outcome = state.append_state(self._repo, self._session(), key, value, reducer=reducer)
        self._repo.settle()
        return outcome

    def list(self, prefix: str = "") -> tuple[State, ...]:
        """Return the keys with this prefix, each at its current version."""
        return tuple(state.list_state(self._repo, prefix))

    def history(self, key: str) -> tuple[State, ...]:
        """Return the last versions of a key, oldest first."""
        return tuple(state.state_history(self._repo, key))

    def watch(
        self, key: str, *, since: int | None = None, timeout: str | float | None = None
    ) -> State | None:
        """Wait until a key has a version above `since`, or above the current one; None on timeout."""
        timeout_ms = None if timeout is None else _milliseconds(timeout, "timeout")
        return state.watch_state(self._repo, key, since=since, timeout_ms=timeout_ms)


class Slots:
    """Ports, names and amounts that one session holds at a time."""

    def __init__(self, repo: Repository, session: Callable[[], Session]) -> None:
        self._repo = repo
        self._session = session

    def take(
        self, kind: str, *, name: str = "", amount: int = 1, wait: str | float = 0
    ) -> SlotTaken | SlotRefused:
        """Take a slot, or return who holds it; it ends with the session, or when it is freed.

        Raises:
            Malformed: there is no such kind or name, or the amount exceeds the total.
            Stale: the session has ended.
        """
        repo = self._repo
        request = slots.make_slot_request(repo, kind, name=name, amount=amount)
        outcome = slots.take_slot(repo, self._session(), request, _milliseconds(wait, "wait"))
        self._repo.settle()
        return outcome

    def free(self, slot_id: str) -> Slot:
        """Release a slot.

        Raises:
            Held: another session holds it.
            Stale: the session has ended.
            LandlaneError: it is not held.
        """
        slot = slots.free(self._repo, self._session(), slot_id)
        self._repo.settle()
        return slot

    def list(self, kind: str = "") -> tuple[Slot, ...]:
        """Return all held slots."""
        return tuple(slots.list_slots(self._repo, kind))


class Numbers:
    """Unique numbers."""

    def __init__(self, repo: Repository, session: Callable[[], Session]) -> None:
        self._repo = repo
        self._session = session

    def give(self, kind: str, *, purpose: str = "") -> Number:
        """Return the next number of a kind, above all allocated numbers and all in git.

        Raises:
            Malformed: the kind or the purpose cannot be used.
            Stale: the session has ended.
        """
        number = numbers.give_number(self._repo, self._session(), kind, purpose=purpose)
        self._repo.settle()
        return number

    def list(self, kind: str) -> tuple[Number, ...]:
        """Return every number of a kind: used, pending or abandoned."""
        return tuple(numbers.list_numbers(self._repo, kind))


def _milliseconds(length: str | float, what: str) -> int:
    return parse_duration(length, what=what) if isinstance(length, str) else int(length * 1000)
