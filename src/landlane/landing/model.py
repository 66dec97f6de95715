"""Landings (the entries of a landing queue), their states, queues, and the reasons for a rejection."""

from __future__ import annotations

import json
import shlex
from enum import StrEnum

from landlane.errors import SettingsError
from landlane.ids import is_record_id
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


class LandingState(StrEnum):
    """The state of a queue entry."""

    QUEUED = "queued"
    TESTING = "testing"  # a queue runner merges and checks it
    HELD = "held"  # waits for a person to approve it
    LANDED = "landed"
    BOUNCED = "bounced"  # rejected: it conflicts, fails a check or is not allowed
    EJECTED = "ejected"  # taken out of the queue on request

    def can_become(self, state: LandingState) -> bool:
        """Return whether an entry in this state may change to another one."""
        return state in TRANSITIONS[self]


QUEUED, TESTING, HELD, LANDED, BOUNCED, EJECTED = LandingState
OPEN = (QUEUED, TESTING, HELD)

# `Landing.become` makes every change and checks it here. A held or ended entry can still land: the push of
# a runner that was stopped may arrive late.
TRANSITIONS: Mapping[LandingState, Sequence[LandingState]] = {
    QUEUED: (TESTING, HELD, LANDED, BOUNCED, EJECTED),
    TESTING: (QUEUED, TESTING, HELD, LANDED, BOUNCED, EJECTED),
    HELD: (QUEUED, LANDED, BOUNCED, EJECTED),
    LANDED: (),
    BOUNCED: (LANDED,),
    EJECTED: (LANDED,),
}

REBASE = "rebase"
SQUASH = "squash"

MAX_OUTPUT_CHARS = 8000  # of the output of a failing check: its end, where the error usually is
QUEUE_LEASE_MS = 60_000
_MAX_NAMED = 5


@value
class CheckRun:
    """One check of a landing: how it ended, how long it took, and the lines that show the failure."""

    name: str
    is_green: bool = True
    exit: int = 0
    ms: int = 0
    lines: list[str] = []  # noqa: RUF012 - never changed


@value
class Landing:
    """One entry of the queue. Times are wall-clock milliseconds."""

    id: str
    branch: str
    head: str
    target: str
    agent: str
    session: str
    holder: str  # the session that holds the claims of the entry while it is open
    state: LandingState
    submitted_at: int
    machine: str
    home: str
    subject: str = ""
    author: dict[str, str] = {}  # noqa: RUF012 - never changed; author of the head: name, mail, date
    role: str = ""  # of the submitting session: decides which paths the entry may change
    unidentified: list[str] = []  # noqa: RUF012 - never changed; commits without a known session
    task: str = ""
    attempt: int = 0
    paths: list[str] = []  # noqa: RUF012 - never changed
    stage: str = ""
    stage_at: int = 0  # when its running check started
    check: str = ""  # the check that is running
    checks: list[dict[str, Any]] = []  # noqa: RUF012 - never changed; those that ended, see `check_runs`
    tested_with: str = ""  # the first entry of its batch, if that is another one
    resolved: list[str] = []  # noqa: RUF012 - never changed; notes about files merged by their kind
    base: str = ""
    tree: str = ""
    commit: str = ""
    reason: str = ""
    code: str = ""
    output: str = ""
    pair: str = ""  # the landed entry that it fails together with
    pair_commit: str = ""  # the commit of the target that it fails together with
    advice: str = ""  # what the author of a rejected entry should do
    expects: dict[str, int] = {}  # noqa: RUF012 - never changed; versions of shared keys that it is based on
    gate: str = ""  # why a person must approve it; empty if no approval is needed
    approved_by: str = ""
    approved_head: str = ""
    flaky: list[str] = []  # noqa: RUF012 - never changed
    notes: list[str] = []  # noqa: RUF012 - never changed
    bounce_task: str = ""
    sandbox: str = ""  # what confined its checks, and what the settings opened to them
    is_settled: bool = False
    is_integrated: bool = False
    ended_at: int = 0

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Landing:
        """Return the landing that a record describes."""
        fields: dict[str, Any] = {**document, "state": LandingState(document["state"])}
        return cls(**fields)

    def become(self, state: LandingState, *, stage: str = "", **changes: object) -> Landing:
        """Return the entry after a change of its state.

        Raises:
            ValueError: `TRANSITIONS` does not allow the change.
        """
        if not self.state.can_become(state):
            raise ValueError(f"{self.id} is {self.state} and cannot become {state}")
        cleared = {"stage_at": 0, "check": "", "tested_with": ""}
        return replace(self, state=state, stage=stage, **{**cleared, **changes})

    @property
    def check_runs(self) -> list[CheckRun]:
        """The checks that ended."""
        return [CheckRun(**fields) for fields in self.checks]

    @property
    def is_open(self) -> bool:
        return self.state in OPEN

    @property
    def is_gated(self) -> bool:
        """Whether it waits for approval of exactly this head."""
        return bool(self.gate) and self.approved_head != self.head


@value
class TargetMove:
    """A move of the target branch: recorded before it is made, settled afterwards."""

    before: str
    after: str
    entries: list[str]
    commits: list[str]


@value
class TargetFailure:
    """The check that fails on the target itself. `since` is when that was first seen.

    `suspects` are the commits that came after the last one that passed, oldest first; `culprit` describes the
    first of them, or the failing commit itself if none is known to have passed.
    """

    commit: str
    check: str
    exit: int
    ms: int
    since: int
    reason: str
    output: str = ""
    lines: list[str] = []  # noqa: RUF012 - never changed
    suspects: list[str] = []  # noqa: RUF012 - never changed
    culprit: dict[str, str] = {}  # noqa: RUF012 - never changed; commit, subject, author, landing


class QueueState(StrEnum):
    """The state of the queue of a target branch."""

    RUNNING = "running"
    PAUSED = "paused"  # the target was rewound; a person resumes the queue


@value
class Queue:
    """The queue of a target branch: its last known tip, why it is paused, and the move in progress."""

    id: str
    target: str
    state: QueueState = QueueState.RUNNING
    tip: str = ""
    reason: str = ""
    code: str = ""
    move: dict[str, Any] = {}  # noqa: RUF012 - never changed
    late: list[dict[str, Any]] = []  # noqa: RUF012 - moves of stopped runners whose push may still arrive
    tests: int = 0
    landed: int = 0
    passing: str = ""  # the last commit of the target that passed its checks
    failing: dict[str, Any] = {}  # noqa: RUF012 - never changed; see `failure`
    durations: dict[str, list[int]] = {}  # noqa: RUF012 - never changed; of the last passing runs, by check
    recheck_before: int = 0  # saved failures from before are not believed: the target has recovered since

    @property
    def failure(self) -> TargetFailure | None:
        """Why the target itself fails its checks; None if it does not."""
        return TargetFailure(**self.failing) if self.failing else None

    @property
    def is_paused(self) -> bool:
        return self.state == QueueState.PAUSED

    @property
    def pending_move(self) -> TargetMove | None:
        """The move that was recorded and is not settled yet."""
        return TargetMove(**self.move) if self.move else None

    @property
    def late_moves(self) -> list[TargetMove]:
        return [TargetMove(**fields) for fields in self.late]

    def is_moving(self, landing_id: str) -> bool:
        """Return whether an entry is part of the move in progress."""
        return landing_id in self.move.get("entries", ())


@value
class Rejection:
    """Why an entry is rejected, and what its author can do about it."""

    code: str
    reason: str
    hint: str
    output: str = ""
    pair: str = ""
    pair_commit: str = ""
    checks: tuple[CheckRun, ...] = ()


REJECTED = "REJECTED"  # the code of a rejection by a person
# Why an entry waits that changes `[landing] checks`; once a person approves it, its own checks judge it.
NEW_CHECKS = "waits for a person: it has other [landing] checks, which then judge it"


def conflict_rejection(branch: str, paths: Sequence[str], reasons: Sequence[str], output: str) -> Rejection:
    """Return the rejection of an entry that does not merge with the target branch."""
    named = name_some(paths)
    reason = f"it conflicts with {branch} in {named}"
    if reasons:
        reason += f": {'; '.join(reasons[:3])}"
    hint = f"resolve {named}, commit and land again: landlane sync --update merge"
    return Rejection(code="CONFLICT", reason=reason, hint=hint, output=output)


def role_rejection(forbidden: Mapping[str, str], role: str) -> Rejection:
    """Return the rejection of an entry with paths that the role of its author may not change."""
    hint = (
        "undo these changes and land again, or leave them to another role; what this one may do: "
        f"landlane role show {role}"
    )
    reason = f"{next(iter(forbidden.values()))} ({name_some(list(forbidden))})"
    output = "\n".join(f"{path}: {reason}" for path, reason in forbidden.items())
    return Rejection(code="ROLE_FORBIDS", reason=reason, hint=hint, output=output)


def person_rejection(person: str, why: str) -> Rejection:
    """Return the rejection of an entry by a person."""
    hint = "change what the reason says, commit and land again"
    return Rejection(code=REJECTED, reason=f"{person} rejected it: {why}", hint=hint)


def name_some(names: Sequence[str]) -> str:
    """Return the first names as text, with the number of those left out."""
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more


def gated_path(gate: str) -> str:
    """Return the path in the reason of a held landing; empty if the reason names none."""
    _, changes, rest = gate.partition(" changes ")
    return rest.rpartition(" (")[0] if changes else ""


def new_checks(gate: str) -> str:
    """Return how an entry changes the checks, by the reason why it is held; empty for another reason."""
    return gate.removeprefix(f"{NEW_CHECKS}: ") if gate.startswith(NEW_CHECKS) else ""


def is_landing_id(agent: str) -> bool:
    """Return whether a queue entry holds its claims under this name: its id."""
    return agent[:1] == "L" and is_record_id(agent)


def queue_lease_name(target: str) -> str:
    """Return the name of the lease under which the queue of a target branch is run."""
    return f"queue:{target}"


def first_half(count: int) -> int:
    """Return how many entries of a failing batch to try first: the larger half."""
    return (count + 1) // 2


def no_checks_error(branch: str, command: str = "") -> SettingsError:
    """Return the error for missing `[landing] checks`, with a command to suggest."""
    value = shlex.quote(json.dumps([command or "make test"]))
    return SettingsError(
        f"landlane.toml on {branch} does not say how to test what lands",
        code="NO_CHECKS",
        hint=f"landlane config set landing.checks {value}",
    )
