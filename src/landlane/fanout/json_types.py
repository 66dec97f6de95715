"""The types of split tasks in JSON answers."""

from __future__ import annotations

from typing import TypedDict

from landlane.fanout.model import FanState
from landlane.json_time import Time


class PartResultJson(TypedDict):
    """One part of a split task, and its result."""

    task: str
    name: str
    state: str
    ok: bool
    over: bool
    result: str | None
    head: str | None
    why: str | None


class SplitTaskJson(TypedDict):
    """A split task; `met` is null until it is joined."""

    id: str
    task: str
    title: str | None
    state: FanState
    policy: str
    need: int
    rest: str
    met: bool | None
    why: str | None
    by: str
    branches: list[str]
    begun: Time
    deadline: Time | None
    joined: Time | None
    results: list[PartResultJson]
