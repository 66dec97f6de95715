"""The answers of the commands under "Start"."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from landlane.claims.json_types import ClaimJson, WaiterJson
from landlane.cli.answers.base import Answer
from landlane.doctor.json_types import DoctorCheckJson
from landlane.gates.json_types import GateJson
from landlane.inbox.json_types import InboxItemJson
from landlane.landing.json_types import LandingJson
from landlane.sessions.json_types import ListedSessionJson, SessionJson
from landlane.state.json_types import SlotJson
from landlane.status.json_types import HeadlineJson, LandingRowJson, MoneyJson, WaitingJson, WorkingJson
from landlane.tasks.json_types import AttemptJson, PoolJson
from landlane.usage.json_types import BudgetedTotalJson
from landlane.workspaces.json_types import WorkspaceJson


class JournalPosition(TypedDict):
    """The position of the last entry of the journal."""

    position: int


class NextStep(TypedDict):
    """A command to run next, and why."""

    command: str
    why: str


class RemainingState(TypedDict):
    """What `init --undo` leaves in place."""

    state: str | None
    entries: int
    workspaces: int
    branches: int
    workspace_paths: list[str]
    branch_names: list[str]
    saved: int
    git_settings: list[str]


class KeptThing(TypedDict):
    """What `init --undo --purge` leaves, and why."""

    kind: str
    name: str
    why: str


class DemoFigures(TypedDict):
    """The figures of one mode of the demo."""

    tasks: int
    landed: int
    lost: int
    conflicts: int
    duplicates: int
    red_seconds: float
    stale_deploys: int
    green_at_end: bool
    seconds: float


class LeftFile(TypedDict):
    """A file that `init` leaves alone, and why."""

    path: str
    why: str


class InitStep(TypedDict):
    """A change that `init` plans; the diff is null if it is not to one file."""

    verb: str
    path: str
    why: str
    diff: str | None


class DoctorSummary(TypedDict):
    """One line each about what `doctor` has found to say about."""

    clients: NotRequired[str]
    git: NotRequired[str]
    sandbox: NotRequired[str]
    store: NotRequired[str]
    extras: NotRequired[str]


class DemoAnswer(Answer):
    """The answer to `demo`."""

    ways: dict[str, DemoFigures]
    definitions: dict[str, str]
    folder: str | None


class DoctorAnswer(Answer):
    """The answer to `doctor`."""

    checks: list[DoctorCheckJson]
    summary: DoctorSummary
    report: NotRequired[str]


class InitAnswer(Answer):
    """The answer to `init`: with `notes` once it was applied, with `plan` and `steps` for --dry-run."""

    changed: list[str]
    clients: list[str]
    left: list[LeftFile]
    unprotected: list[str]
    notes: NotRequired[list[str]]
    remaining: NotRequired[RemainingState]
    purged: NotRequired[list[str]]
    kept: NotRequired[list[KeptThing]]
    plan: NotRequired[list[str]]
    steps: NotRequired[list[InitStep]]


class WithoutRepositoryAnswer(Answer):
    """The answer outside of a repository."""

    state: Literal["no_repository"]
    repository: None
    next: list[NextStep]


class WithoutStateAnswer(Answer):
    """The answer in a repository without state; `installed` are coding clients."""

    state: Literal["state_missing", "not_set_up"]
    repository: str
    installed: NotRequired[list[str]]
    next: list[NextStep]


class SituationAnswer(Answer):
    """The answer in a repository with state."""

    state: Literal[
        "target_red",
        "queue_paused",
        "pool_paused",
        "waits_for_person",
        "not_set_up",
        "tasks_ready",
        "working",
        "nothing_to_do",
    ]
    repository: str
    headline: HeadlineJson
    you: str | None
    set_up: bool
    clients: list[str]
    tasks: dict[str, int]
    yours: list[str]
    ready: list[str]
    dead: list[str]
    gates: list[str]
    sessions: int
    claims: int
    attempts: int
    landings: int
    pool_paused: str | None
    queue_paused: str | None
    target_red: str | None
    inbox: list[InboxItemJson]
    next: list[NextStep]


OverviewAnswer = WithoutRepositoryAnswer | WithoutStateAnswer | SituationAnswer


class StatusAnswer(Answer):
    """The answer to `status`."""

    repository: str
    headline: HeadlineJson
    overview: str
    troubles: list[str]
    inbox: list[InboxItemJson]
    working: list[WorkingJson]
    landing: list[LandingRowJson]
    waiting: list[WaitingJson]
    money: MoneyJson
    you: SessionJson | None
    sessions: list[ListedSessionJson]
    claims: list[ClaimJson]
    waiters: list[WaiterJson]
    workspaces: list[WorkspaceJson]
    landings: list[LandingJson]
    slots: list[SlotJson]
    attempts: list[AttemptJson]
    pool: PoolJson
    gates: list[GateJson]
    spent_today: BudgetedTotalJson
    dead_letters: int
    notices: list[str]
    journal: JournalPosition


class UiStoppedAnswer(Answer):
    """The answer to `ui --stop`."""

    running: Literal[False]
    ended: bool


class UiRunningAnswer(Answer):
    """The page runs: its one-time link, or with --link its address and a one-time code."""

    running: Literal[True]
    url: str
    code: NotRequired[str]
    host: str
    port: int
    read_only: bool


UiAnswer = UiRunningAnswer | UiStoppedAnswer
