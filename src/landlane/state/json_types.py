"""The types of shared state, slots, numbers and runs in JSON answers."""

from __future__ import annotations

from typing import Any, TypedDict

from landlane.json_time import Time
from landlane.state.numbers import NumberState


class StateJson(TypedDict):
    """One version of a key; the value is any JSON."""

    key: str
    value: Any
    version: int
    agent: str
    session: str
    at: Time
    reducer: str | None


class SlotJson(TypedDict):
    """A slot that is held."""

    id: str
    kind: str
    place: str | None
    port: int | None
    name: str | None
    amount: int
    token: int
    holder: str
    session: str
    since: Time
    until: Time


_Purpose = TypedDict("_Purpose", {"for": str | None})


class MovedStateJson(TypedDict):
    """A key that has another version than the one that was read; 0 if it does not exist."""

    key: str
    expected: int
    version: int
    value: Any


class NumberJson(_Purpose):
    """A number that was given out."""

    kind: str
    number: int
    text: str
    path: str | None
    agent: str
    session: str
    at: Time
    state: NumberState


class OnceRunJson(TypedDict):
    """A command that is run once per key; its exit code is null while it runs."""

    key: str
    run: int
    exit: int | None
    agent: str
    session: str
    command: str | None
    began: Time
    ended: Time | None
    output: str
