"""The answers of commands that failed or were refused.

`ClaimFailure` has what only `landlane claim` answers with. Every command that stops because of an error
answers with `Failure`.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from landlane.claims.json_types import CheckedPathJson, ClaimJson, HoldingJson, RefusalJson
from landlane.cli.answers.checkouts import SandboxPromise
from landlane.cli.answers.start import DemoFigures, DoctorSummary, InitStep, LeftFile
from landlane.deploys.json_types import DeployJson, NamedCommitJson, PositionJson, UpdateCheckJson
from landlane.deploys.update_checkout import UpdateMethod
from landlane.doctor.json_types import DoctorCheckJson
from landlane.gates.json_types import GateJson
from landlane.hooks.git_command.verb_rules import Reach
from landlane.json_time import Time
from landlane.landing.json_types import LandingJson
from landlane.plans.json_types import PlanJson
from landlane.state.json_types import MovedStateJson, OnceRunJson, SlotJson
from landlane.tasks.json_types import EvidenceJson, NothingReadyJson, SimilarTaskJson, TaskJson
from landlane.workers.json_types import PreflightProblemJson, RunSummaryJson


class OtherAgent(TypedDict):
    """Another agent in the same checkout, and its paths."""

    agent: str
    paths: list[str]


class RevertedPath(TypedDict):
    """A path that a commit would undo, and the commits that it would undo."""

    path: str
    commits: list[str]
    subject: str


class _Failed(TypedDict):
    ok: Literal[False]
    code: str
    message: str
    hint: str


class Failure(_Failed):
    """An error. Its `code` decides which of the optional fields it has."""

    attempt: NotRequired[int]
    attempts: NotRequired[list[int]]
    backend: NotRequired[str]
    branch: NotRequired[str]
    breach: NotRequired[str]
    commit: NotRequired[str]
    count: NotRequired[int]
    cycle: NotRequired[list[str]]
    example: NotRequired[str]
    excerpt: NotRequired[list[str]]
    expected: NotRequired[int]
    file: NotRequired[str]
    gate: NotRequired[str]
    given: NotRequired[str]
    handoff: NotRequired[str]
    hash: NotRequired[str]
    head: NotRequired[str]
    held: NotRequired[str]
    holder: NotRequired[str | None]
    key: NotRequired[str]
    known: NotRequired[list[str]]
    landing: NotRequired[str]
    line: NotRequired[int]
    lineage: NotRequired[str]
    lines: NotRequired[list[str]]
    live: NotRequired[str]
    machine: NotRequired[str]
    maximum: NotRequired[int]
    meant: NotRequired[str]
    missing: NotRequired[list[str]]
    name: NotRequired[str]
    nearest: NotRequired[str]
    others: NotRequired[list[OtherAgent]]
    output: NotRequired[str]
    owner: NotRequired[str]
    path: NotRequired[str]
    paths: NotRequired[list[str]]
    pattern: NotRequired[str]
    pid: NotRequired[int | None]
    place: NotRequired[str]
    problems: NotRequired[list[str]]
    processes: NotRequired[list[int]]
    remark: NotRequired[str]
    role: NotRequired[str]
    rule: NotRequired[str]
    schema: NotRequired[int]
    scoped_form: NotRequired[str]
    setting: NotRequired[str]
    state: NotRequired[str]
    step: NotRequired[str]
    target: NotRequired[str]
    task: NotRequired[str | None]
    undone: NotRequired[list[RevertedPath]]
    unknown: NotRequired[str]
    until: NotRequired[Time | None]
    verb: NotRequired[str]
    version: NotRequired[int | str]
    wanted: NotRequired[str]
    workspace: NotRequired[str]


class CheckFailure(_Failed):
    """Not every path may be changed; `holder` and `until` are about the first that is claimed."""

    paths: list[CheckedPathJson]
    holder: NotRequired[str]
    until: NotRequired[Time]


class ClaimFailure(_Failed):
    """Not everything can be claimed; `holders` are all claims in the way, `cycle` who waits for whom."""

    granted: list[ClaimJson]
    refused: list[RefusalJson]
    holders: list[HoldingJson]
    waiting: list[str]
    position: int
    cycle: NotRequired[list[str]]


class DemoFailure(_Failed):
    """The run with Landlane broke a promise."""

    ways: dict[str, DemoFigures]
    definitions: dict[str, str]
    folder: str | None


class BehindFailure(_Failed, PositionJson):
    """The checkout lacks commits of the target: the newest of them."""

    commits: list[NamedCommitJson]


class PositionFailure(_Failed, PositionJson):
    """The checkout could not be compared with the newest target, or not be updated."""


class ConflictingPath(TypedDict):
    """A path in conflict, and the commits of the target that changed it."""

    path: str
    commits: list[NamedCommitJson]


class ConflictFailure(_Failed, PositionJson):
    """The checkout and the target conflict in `count` paths."""

    conflicts: list[ConflictingPath]
    count: int


class NotLandedFailure(_Failed):
    """The commit is not on the target."""

    head: str
    tip: str
    ahead: int
    behind: int
    commits: list[NamedCommitJson]


class DeployedFailure(_Failed, DeployJson):
    """A deploy that was begun and failed."""


DeployFailure = DeployedFailure | BehindFailure | NotLandedFailure | PositionFailure


class DoctorFailure(_Failed):
    """Some checks failed; the message is about the first of them."""

    checks: list[DoctorCheckJson]
    summary: DoctorSummary
    report: NotRequired[str]


class DoneFailure(_Failed):
    """Evidence is missing."""

    task: TaskJson
    evidence: list[EvidenceJson]
    not_run: list[str]


class ExecFailure(_Failed):
    """The command ended with another exit code than 0."""

    exit: int
    agent: str
    role: str
    task: str | None
    workspace: str | None
    branch: str | None
    head: str | None
    rescue: str | None
    sandbox: str
    promises: list[SandboxPromise]


class GateAskFailure(_Failed):
    """The question is not answered yet, or was rejected or withdrawn."""

    gate: GateJson


class GitFailure(_Failed):
    """Git ended with another exit code than 0."""

    exit: int
    verb: NotRequired[str]
    reach: NotRequired[Reach]


class HandoffAcceptFailure(ClaimFailure):
    """The paths of the task are claimed."""

    task: None
    claims: list[ClaimJson]


class InitFailure(_Failed):
    """Nothing was changed, because the plan was not confirmed."""

    changed: list[str]
    clients: list[str]
    left: list[LeftFile]
    unprotected: list[str]
    plan: list[str]
    steps: list[InitStep]


class LandFailure(_Failed):
    """The branch was rejected, or waits for a person."""

    landing: LandingJson
    new: bool
    position: int | None


class LogFailure(_Failed):
    """The journal was changed; `entries` counts those that were read."""

    entries: int
    head: str
    trouble: list[str]


class NextFailure(_Failed, NothingReadyJson):
    """There is no task to take."""


class OnceFailure(_Failed, OnceRunJson):
    """The command failed, was killed before, or still runs."""

    ran: bool


class PlanCheckFailure(_Failed):
    """The plan has problems."""

    plan: PlanJson


class QueueRunFailure(_Failed):
    """The queue stopped; the landings that had been queued."""

    landings: list[LandingJson]


class UnfinishedRunFailure(_Failed):
    """Some tasks are not done."""

    summary: RunSummaryJson


class PreflightFailure(_Failed):
    """No worker was started."""

    problems: list[PreflightProblemJson]


RunFailure = UnfinishedRunFailure | PreflightFailure


class SlotTakeFailure(_Failed):
    """Not enough is free."""

    kind: str
    amount: int
    left: int
    holder: str | None
    until: Time | None
    holders: list[SlotJson]
    waiters: list[str]


class StateCheckFailure(_Failed):
    """Keys have moved from the versions that were read."""

    moved: list[MovedStateJson]


class StateSetFailure(_Failed):
    """The key is at another version; `version` is 0 if it does not exist."""

    key: str
    expected: int | None
    version: int
    value: Any
    agent: str | None
    at: Time | None


class UpdateFailure(_Failed, PositionJson):
    """The checkout was updated, and a check fails on it."""

    updated: UpdateMethod | None
    before: str
    checks: list[UpdateCheckJson]


SyncFailure = BehindFailure | UpdateFailure | ConflictFailure | PositionFailure


class TaskAddFailure(_Failed):
    """Other tasks look like the same work."""

    similar: list[SimilarTaskJson]


TaskEditFailure = TaskAddFailure
