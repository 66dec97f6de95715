"""The types of rules, their readers and violations in JSON answers."""

from __future__ import annotations

from typing import TypedDict

from landlane.json_time import Time


class RuleJson(TypedDict):
    """A rule for agents."""

    name: str
    text: str


class RulesReaderJson(TypedDict):
    """A session, and the version of the rules it has read."""

    agent: str
    session: str
    version: str | None
    how: str | None
    is_current: bool


class AgentCountJson(TypedDict):
    """How often an agent broke a rule."""

    agent: str | None
    count: int


class GuardCountJson(TypedDict):
    """How often a guard found a rule broken."""

    guard: str
    count: int


class RuleViolationsJson(TypedDict):
    """A rule that was broken: how often, by whom, and who found it."""

    rule: str
    count: int
    agents: list[AgentCountJson]
    guards: list[GuardCountJson]
    last_at: Time
    last: str


class CarriedRulesJson(TypedDict):
    """The version of the rules, and what of them is new to the session; null if it has read this version."""

    file: str
    version: str
    text: str | None
