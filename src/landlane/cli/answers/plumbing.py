"""The answers of the commands under "Plumbing"."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from landlane.claims.json_types import ClaimJson
from landlane.cli.answers.base import Answer
from landlane.events.json_types import EventJson
from landlane.hooks.git_command.verb_rules import Reach
from landlane.rescue.json_types import RescueJson
from landlane.rules.json_types import CarriedRulesJson
from landlane.sessions.json_types import OwnSessionJson
from landlane.workspaces.json_types import BreachJson, MisplacedChangeJson


class CompletionCandidate(TypedDict):
    """What the last word may become."""

    word: str
    text: str


class EndedSession(TypedDict):
    """A session that ended."""

    agent: str
    id: str


_From = TypedDict("_From", {"from": str})


class MovedChange(_From):
    """A change that was moved from one checkout to another."""

    path: str
    workspace: str
    to: str


class CheckoutRescue(TypedDict):
    """The rescue with a checkout as it was."""

    checkout: str
    rescue: str


class MovedStore(TypedDict):
    """What was moved; nothing was if `is_followed`, because the state was there already."""

    place: str
    entries: int
    claims: int
    sessions: int
    epoch: int
    is_followed: bool


class AdoptedStore(TypedDict):
    """The store and the repository that are used from now on."""

    place: str
    repository: str
    ignore_case: bool
    changed: list[str]


class RebuiltStore(TypedDict):
    """What was rebuilt; `kept` is the old file, `unreadable` counts lines of the journal."""

    entries: int
    claims: int
    sessions: int
    epoch: int
    kept: str
    unreadable: int


class Setting(_From):
    """A setting, as text; `below` is the value in landlane.toml that this clone replaces."""

    key: str
    value: str
    below: NotRequired[str]


class StoreDescription(TypedDict):
    """Where the state is stored and how much there is; only SQLite has a size."""

    kind: str
    place: str
    bytes: NotRequired[int]
    repository: str
    folder: str
    claims: int
    sessions: int
    entries: int
    epoch: NotRequired[str]
    schema: NotRequired[str]
    store_id: NotRequired[str]
    written_by: NotRequired[str]


class CandidatesAnswer(Answer):
    """The answer to `completion SHELL WORDS`."""

    candidates: list[CompletionCandidate]


class CompletionScriptAnswer(Answer):
    """The answer to `completion SHELL`."""

    shell: str
    script: str


CompletionAnswer = CandidatesAnswer | CompletionScriptAnswer


class ConfigGetAnswer(Answer, Setting):
    """The answer to `config get`."""


class ConfigListAnswer(Answer):
    """The answer to `config list`."""

    settings: list[Setting]


class ConfigSetAnswer(Answer):
    """The answer to `config set`."""

    key: str
    value: str
    file: str


class GitAnswer(Answer):
    """The answer to `git`; `verb` and `reach` are absent in a sandbox."""

    exit: int
    verb: NotRequired[str]
    reach: NotRequired[Reach]


class HelpAnswer(Answer):
    """The answer to `help`."""

    help: str


class JoinAnswer(Answer):
    """The answer to `join`."""

    session: OwnSessionJson
    new: bool
    rules: CarriedRulesJson | None


class LeaveAnswer(Answer):
    """The answer to `leave`."""

    released: list[str]
    session: EndedSession


class _FixedBreachAnswer(Answer):
    breach: BreachJson
    paths: list[str]
    workspace: str | None


class MisplacedAcceptAnswer(_FixedBreachAnswer):
    """The answer to `misplaced accept`."""


class MisplacedListAnswer(Answer):
    """The answer to `misplaced list`."""

    strays: list[MisplacedChangeJson]
    breaches: list[BreachJson]


class MovedBreachAnswer(_FixedBreachAnswer):
    """The answer to `misplaced move` of an unauthorized write."""


class MovedChangesAnswer(Answer):
    """The answer to `misplaced move` of paths."""

    moved: list[MovedChange]
    rescues: list[CheckoutRescue]


MisplacedMoveAnswer = MovedChangesAnswer | MovedBreachAnswer


class MisplacedUndoAnswer(_FixedBreachAnswer):
    """The answer to `misplaced undo`."""


class PastEventsAnswer(Answer):
    """The answer to `notify --past`."""

    events: list[EventJson]


class CheckedEventsAnswer(Answer):
    """The answer to `notify --once`."""

    events: list[EventJson]
    sent: list[EventJson]
    unsent: list[EventJson]


NotifyAnswer = PastEventsAnswer | CheckedEventsAnswer


class RenewAnswer(Answer):
    """The answer to `renew`."""

    renewed: list[str]
    claims: list[ClaimJson]


class StashListAnswer(Answer):
    """The answer to `stash list`."""

    stashes: list[RescueJson]


class StashRestoreAnswer(Answer):
    """The answer to `stash restore`."""

    stash: RescueJson
    notes: list[str]


class StashSaveAnswer(Answer):
    """The answer to `stash save`."""

    stash: RescueJson


class StoreAdoptAnswer(Answer):
    """The answer to `store adopt`."""

    adopted: AdoptedStore


class StoreInfoAnswer(Answer):
    """The answer to `store info`."""

    store: StoreDescription


class StoreMoveAnswer(Answer):
    """The answer to `store move`."""

    moved: MovedStore
    hint: str | None


class StoreRebuildAnswer(Answer):
    """The answer to `store rebuild`."""

    rebuilt: RebuiltStore
