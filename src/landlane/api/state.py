"""Shared state for Python agents: `Landlane.state`, `.slots`, `.numbers` and `.steps`."""

from __future__ import annotations

from landlane.api.session_view import Duration, SessionView, milliseconds
from landlane.state import keys as state
from landlane.state import numbers, slots
from landlane.state.steps import find_step, record_step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.api.shared_values import (
        AllocatedNumber,
        CompletedStep,
        Slot,
        SlotRefused,
        SlotTaken,
        State,
        StateStale,
    )


class SharedState(SessionView):
    """Values under keys, each with a version, as one session sees them."""

    def get(self, key: str) -> State | None:
        """Return the current version of a key; None when there is none."""
        return self._public(state.get_state(self._repo, key))

    def set(
        self, key: str, value: Any, *, expect: int | None = None, overwrite: bool = False
    ) -> State | StateStale:
        """Set a key that is new or has the version `expect`; with `overwrite`, always.

        Raises:
            Malformed: the key or the value cannot be used.
            NotAllowed: the settings reserve it for another writer, or restrict its value.
            Stale: the session has ended.
        """
        return self._settled(
            state.set_state(self._repo, self._session, key, value, expect=expect, is_any=overwrite)
        )

    def set_all(
        self, values: Mapping[str, Any], *, expect: Mapping[str, int] | None = None, overwrite: bool = False
    ) -> tuple[State, ...] | StateStale:
        """Set several keys in one transaction: all of them, or none.

        Each key in `expect` must still have this version; a changed key without one must be new, unless
        `overwrite`.

        Raises:
            Malformed: a key or a value cannot be used.
            NotAllowed: the settings reserve a key for another writer, or restrict its value.
            Stale: the session has ended.
        """
        return self._settled(
            state.set_states(self._repo, self._session, values, expect=expect or {}, is_any=overwrite)
        )

    def check(self, expect: Mapping[str, int]) -> tuple[StateStale, ...]:
        """Return the keys that do not have the expected version any more, all from one moment."""
        return self._public(tuple(state.check_states(self._repo, expect)))

    def append(self, key: str, value: Any, reducer: str = "") -> State:
        """Combine a value with the current one: append, union, max, min, sum or merge.

        Raises:
            Malformed: the key or the value cannot be used, or the two cannot be combined.
            NotAllowed: the settings reserve it for another writer, or require another reducer.
            Stale: the session has ended.
        """
        return self._settled(state.append_state(self._repo, self._session, key, value, reducer=reducer))

    def list(self, prefix: str = "") -> tuple[State, ...]:
        """Return the keys with this prefix, each at its current version."""
        return self._public(tuple(state.list_state(self._repo, prefix)))

    def history(self, key: str) -> tuple[State, ...]:
        """Return the last versions of a key, oldest first."""
        return self._public(tuple(state.state_history(self._repo, key)))

    def watch(self, key: str, *, since: int | None = None, timeout: Duration | None = None) -> State | None:
        """Wait until a key has a version above `since`, or above the current one; None on timeout."""
        timeout_ms = None if timeout is None else milliseconds(timeout, "timeout")
        found = state.watch_state(self._repo, key, since=since, timeout_ms=timeout_ms)
        return self._public(found)


class Slots(SessionView):
    """Ports, names and amounts that one session holds at a time."""

    def take(
        self, kind: str, *, name: str = "", amount: int = 1, wait: Duration = 0
    ) -> SlotTaken | SlotRefused:
        """Take a slot, or return who holds it; it ends with the session, or when it is freed.

        Raises:
            Malformed: there is no such kind or name, or the amount exceeds the total.
            Stale: the session has ended.
        """
        repo = self._repo
        request = slots.make_slot_request(repo, kind, name=name, amount=amount)
        return self._settled(slots.take_slot(repo, self._session, request, milliseconds(wait, "wait")))

    def free(self, slot_id: str) -> Slot:
        """Release a slot.

        Raises:
            Held: another session holds it.
            Stale: the session has ended.
            LandlaneError: it is not held.
        """
        return self._settled(slots.free(self._repo, self._session, slot_id))

    def list(self, kind: str = "") -> tuple[Slot, ...]:
        """Return all held slots."""
        return self._public(tuple(slots.list_slots(self._repo, kind)))


class Numbers(SessionView):
    """Unique numbers."""

    def give(self, kind: str, *, purpose: str = "", new: bool = False) -> AllocatedNumber:
        """Return the next number of a kind, above all allocated numbers and all in git.

        A kind that is neither in the settings nor used before is refused, unless it is `new`.

        Raises:
            Malformed: the kind is unknown, or the kind or the purpose cannot be used.
            Stale: the session has ended.
        """
        given = numbers.give_number(self._repo, self._session, kind, purpose=purpose, is_new_kind=new)
        return self._settled(given)

    def list(self, kind: str) -> tuple[AllocatedNumber, ...]:
        """Return every number of a kind: used, pending or abandoned."""
        return self._public(tuple(numbers.list_numbers(self._repo, kind)))


class Steps(SessionView):
    """Completed steps, as one session sees them."""

    def get(self, key: str) -> CompletedStep | None:
        """Return the step that was done under a key; None when there is none."""
        return self._public(find_step(self._repo, key))

    def keep(self, key: str, *, task: str = "", about: str = "", memo: str = "") -> CompletedStep:
        """Record that something was done; recording it again returns the first record.

        Handoffs, ends of attempts and fans take their own `key`: they and their step are one transaction.

        Raises:
            Malformed: the key or the memo cannot be stored.
            Stale: the session has ended.
        """
        return self._settled(record_step(self._repo, self._session, key, task=task, about=about, memo=memo))
