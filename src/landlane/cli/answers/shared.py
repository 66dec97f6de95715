"""The answers of the commands under "Shared things"."""

from __future__ import annotations

from typing import NotRequired

from landlane.cli.answers.base import Answer
from landlane.deploys.json_types import DeployJson, LiveDeployJson
from landlane.roles.json_types import RestrictionsJson, RoleJson
from landlane.rules.json_types import RuleJson, RulesReaderJson, RuleViolationsJson
from landlane.state.json_types import NumberJson, OnceRunJson, SlotJson, StateJson


class DeployAnswer(Answer, DeployJson):
    """The answer to `deploy`."""


class DeployHistoryAnswer(Answer):
    """The answer to `deploy history`; `live` is by target."""

    deploys: list[DeployJson]
    live: dict[str, LiveDeployJson]


class NumberAnswer(Answer, NumberJson):
    """The answer to `number`."""


class NumberListAnswer(Answer):
    """The answer to `number list`."""

    numbers: list[NumberJson]


class OnceAnswer(Answer, OnceRunJson):
    """The answer to `once`; `ran` is false if it had run before."""

    ran: bool


class RoleListAnswer(Answer):
    """The answer to `role list`."""

    roles: list[RoleJson]


class RoleShowAnswer(Answer, RestrictionsJson):
    """The answer to `role show`."""

    role: RoleJson
    client: NotRequired[str]


class RulesAckAnswer(Answer):
    """The answer to `rules ack`."""

    version: str
    agent: str
    session: str
    is_new: bool
    read_by: int
    sessions: int


class RulesReportAnswer(Answer):
    """The answer to `rules report`."""

    total: int
    rules: list[RuleViolationsJson]


class RulesShowAnswer(Answer):
    """The answer to `rules show`."""

    file: str
    version: str
    rules: list[RuleJson]
    sessions: list[RulesReaderJson]
    unread: int


class SlotFreeAnswer(Answer):
    """The answer to `slot free`."""

    freed: str
    slot: SlotJson


class SlotListAnswer(Answer):
    """The answer to `slot list`."""

    slots: list[SlotJson]


class SlotTakeAnswer(Answer):
    """The answer to `slot take`."""

    slot: SlotJson
    new: bool


class StateAppendAnswer(Answer, StateJson):
    """The answer to `state append`."""


class StateGetAnswer(Answer, StateJson):
    """The answer to `state get`."""


class StateHistoryAnswer(Answer):
    """The answer to `state history`."""

    versions: list[StateJson]


class StateListAnswer(Answer):
    """The answer to `state list`."""

    states: list[StateJson]


class StateCheckAnswer(Answer):
    """The answer to `state check`: the version of each key."""

    versions: dict[str, int]


class StateSet(Answer, StateJson):
    """The answer to `state set` of one key."""


class SeveralStatesSet(Answer):
    """The answer to `state set` of several keys."""

    states: list[StateJson]


StateSetAnswer = StateSet | SeveralStatesSet


class StateWatchAnswer(Answer, StateJson):
    """The answer to `state watch`."""
