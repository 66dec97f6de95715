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
        """The current version of a key; None when there is none."""
        return state.get_state(self._repo, key)

    def set(
        self, key: str, value: Any, *, expect: int | None = None, overwrite: bool = False
    ) -> State | StateStale:
        """Set a key that is new, or that stands at the version `expect`; with `overwrite`, in any case.

        Raises:
            Malformed: the key or the value cannot be used.
            NotAllowed: the settings let another write it, or say what it may become.
            Stale: the session is over.
        """
        outcome = state.set_state(self._repo, self._session(), key, value, expect=expect, is_any=overwrite)
        self._repo.settle()
        return outcome

    def append(self, key: str, value: Any, reducer: str = "") -> State:
        """Combine a value with what stands there: append, union, max, min, sum or merge.

        Raises:
            Malformed: the key or the value cannot be used, or the two cannot be combined.
            NotAllowed: the settings let another write it, or name another reducer.
            Stale: the session is over.
        """
        outcome = state.append_state(self._repo, self._session(), key, value, reducer=reducer)
        self._repo.settle()
        return outcome

    def list(self, prefix: str = "") -> tuple[State, ...]:
        """All keys that begin so, each at its current version."""
        return tuple(state.list_state(self._repo, prefix))

    def history(self, key: str) -> tuple[State, ...]:
        """The last versions of a key, the oldest first."""
        return tuple(state.state_history(self._repo, key))

    def watch(
        self, key: str, *, since: int | None = None, timeout: str | float | None = None
    ) -> State | None:
        """Wait until a key has a version above `since`, or above the current one; None when time was up."""
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
        """Take a slot, or say who holds it; it ends with the session, or when it is freed.

        Raises:
            Malformed: there is no such kind or name, or there will never be so much of it.
            Stale: the session is over.
        """
        repo = self._repo
        wish = slots.make_slot_request(repo, kind, name=name, amount=amount)
        outcome = slots.take_slot(repo, self._session(), wish, _milliseconds(wait, "wait"))
        self._repo.settle()
        return outcome

    def free(self, slot_id: str) -> Slot:
        """Give a slot back.

        Raises:
            Held: another session holds it.
            Stale: the session is over.
            LandlaneError: nobody holds it.
        """
        slot = slots.free(self._repo, self._session(), slot_id)
        self._repo.settle()
        return slot

    def list(self, kind: str = "") -> tuple[Slot, ...]:
        """All slots that are held."""
        return tuple(slots.list_slots(self._repo, kind))


class Numbers:
    """Numbers that nobody else gets."""

    def __init__(self, repo: Repository, session: Callable[[], Session]) -> None:
        self._repo = repo
        self._session = session

    def give(self, kind: str, *, purpose: str = "") -> Number:
        """The next number of a kind, above all that were given out and all that stand in git.

        Raises:
            Malformed: the kind or the purpose cannot be used.
            Stale: the session is over.
        """
        number = numbers.give_number(self._repo, self._session(), kind, purpose=purpose)
        self._repo.settle()
        return number

    def list(self, kind: str) -> tuple[Number, ...]:
        """Every number of a kind: used, pending or abandoned."""
        return tuple(numbers.list_numbers(self._repo, kind))


def _milliseconds(length: str | float, what: str) -> int:
    return parse_duration(length, what=what) if isinstance(length, str) else int(length * 1000)
