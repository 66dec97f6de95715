"""The answers of the commands under "Look"."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from landlane.claims.json_types import HoldingJson
from landlane.cli.answers.base import Answer
from landlane.journal.json_types import EntryJson, SentenceEntryJson
from landlane.stats.json_types import PeriodJson, StatsJson
from landlane.usage.json_types import ImportedJson, TotalJson, TotalsJson, UsageJson


class LastChange(TypedDict):
    """The last commit that changed a path."""

    commit: str
    author: str
    at: str
    subject: str
    agent: str
    session: str | None
    task: str | None
    tokens: list[int]


class Budgets(TypedDict):
    """The budgets of the settings."""

    task_usd: float | None
    run_usd: float | None
    day_usd: float | None


class ClaimsAnswer(Answer):
    """The answer to `claims`."""

    claims: list[HoldingJson]


class LogEntriesAnswer(Answer):
    """The answer to `log`."""

    entries: list[SentenceEntryJson]


class VerifiedLogAnswer(Answer):
    """The answer to `log --verify`."""

    entries: int
    head: str
    trouble: list[str]


LogAnswer = LogEntriesAnswer | VerifiedLogAnswer


class PeriodStatsAnswer(Answer, StatsJson):
    """The answer to `stats`; `weeks` are this week and those before, unless a period was given."""

    weeks: NotRequired[list[PeriodJson]]


class StatsDefinitionsAnswer(Answer):
    """The answer to `stats --define`."""

    definitions: dict[str, str]


StatsAnswer = PeriodStatsAnswer | StatsDefinitionsAnswer


class UsageAddAnswer(Answer):
    """The answer to `usage add`."""

    usage: UsageJson
    is_new: bool
    differs: bool


class UsageAnswer(Answer, TotalsJson):
    """The answer to `usage`; `groups` with --by."""

    budgets: Budgets
    by: NotRequired[str]
    groups: NotRequired[dict[str, TotalJson]]


class UsageImportAnswer(Answer, ImportedJson):
    """The answer to `usage import`."""


class UsageListAnswer(Answer):
    """The answer to `usage list`."""

    usage: list[UsageJson]
    total: TotalJson
    elsewhere: list[UsageJson]


class WhoAnswer(Answer):
    """The answer to `who`; `waiting` are agents."""

    path: str
    claims: list[HoldingJson]
    waiting: list[str]
    last_entry: EntryJson | None
    last_change: LastChange | None
