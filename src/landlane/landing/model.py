"""Landings (the entries of a landing queue), their states, queues, and the reasons for a rejection."""

from __future__ import annotations

from enum import StrEnum

from landlane.errors import SettingsError
from landlane.values import as_dict, value

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
        return state in _TRANSITIONS[self]


QUEUED, TESTING, HELD, LANDED, BOUNCED, EJECTED = LandingState
OPEN = (QUEUED, TESTING, HELD)

# An ended entry can still land: the push of a runner that was stopped may arrive late.
_TRANSITIONS: Mapping[LandingState, Sequence[LandingState]] = {
    QUEUED: (TESTING, HELD, LANDED, BOUNCED, EJECTED),
    TESTING: (QUEUED, TESTING, HELD, LANDED, BOUNCED, EJECTED),
    HELD: (QUEUED, BOUNCED, EJECTED),
    LANDED: (),
    BOUNCED: (LANDED,),
    EJECTED: (LANDED,),
}

REBASE = "rebase"
SQUASH = "squash"

MAX_OUTPUT_CHARS = 8000  # of the output of a failing check: its end, where the error usually is
QUEUE_LEASE_MS = 60_000
_ENTRY_AGENT = "landing-"
_MAX_NAMED = 5


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
    base: str = ""
    tree: str = ""
    commit: str = ""
    reason: str = ""
    code: str = ""
    output: str = ""
    pair: str = ""  # the landed entry that it fails together with
    advice: str = ""  # what the author of a rejected entry should do
    gate: str = ""  # why a person must approve it; empty if no approval is needed
    approved_by: str = ""
    approved_head: str = ""
    flaky: list[str] = []  # noqa: RUF012 - never changed
    notes: list[str] = []  # noqa: RUF012 - never changed
    bounce_task: str = ""
    is_settled: bool = False
    is_integrated: bool = False
    ended_at: int = 0

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Landing:
        """Return the landing that a record describes."""
        fields: dict[str, Any] = {**document, "state": LandingState(document["state"])}
        return cls(**fields)

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

    def to_document(self) -> dict[str, object]:
        """Return the fields as they are stored in the queue's record."""
        return as_dict(self)


@value
class Queue:
    """The queue of a target branch: its last known tip, why it is paused, and the move in progress."""

    id: str
    target: str
    state: str = "running"  # or paused
    tip: str = ""
    reason: str = ""
    code: str = ""
    move: dict[str, Any] = {}  # noqa: RUF012 - never changed
    late: list[dict[str, Any]] = []  # noqa: RUF012 - moves of stopped runners whose push may still arrive
    tests: int = 0
    landed: int = 0

    @property
    def is_paused(self) -> bool:
        return self.state == "paused"

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


REJECTED = "REJECTED"  # the code of a rejection by a person


def conflict_rejection(branch: str, paths: Sequence[str], reasons: Sequence[str], output: str) -> Rejection:
    """It does not merge with the target branch."""
    named = name_some(paths)
    reason = f"it conflicts with {branch} in {named}"
    if reasons:
        reason += f": {'; '.join(reasons[:3])}"
    hint = f"landlane sync --update merge, mend {named}, commit, and land again"
    return Rejection(code="CONFLICT", reason=reason, hint=hint, output=output)


def role_rejection(forbidden: Mapping[str, str], role: str) -> Rejection:
    """It changes paths that the role of its author may not change."""
    hint = (
        "take these paths out of the branch, and land again; leave them to an agent of another role: "
        f"`landlane role show {role}` tells what this one does"
    )
    reason = f"{next(iter(forbidden.values()))} ({name_some(list(forbidden))})"
    output = "\n".join(f"{path}: {reason}" for path, reason in forbidden.items())
    return Rejection(code="ROLE_FORBIDS", reason=reason, hint=hint, output=output)


def person_rejection(person: str, why: str) -> Rejection:
    """A person decided against it."""
    hint = "read the reason, change the work, commit, and submit it again"
    return Rejection(code=REJECTED, reason=f"{person} rejected it: {why}", hint=hint)


def name_some(names: Sequence[str]) -> str:
    """Return the first names as text, with the number of those left out."""
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more


def entry_agent_name(landing_id: str) -> str:
    """Return the agent name under which a queue entry holds its claims."""
    return f"{_ENTRY_AGENT}{landing_id}"


def landing_id_of(agent: str) -> str:
    """Return the id of the entry that has this agent name; empty for other agents."""
    landing_id = agent.removeprefix(_ENTRY_AGENT)
    is_entry = landing_id != agent and landing_id[:1] == "L" and landing_id[1:].isdigit()
    return landing_id if is_entry else ""


def queue_lease_name(target: str) -> str:
    """Return the name of the lease under which the queue of a target branch is run."""
    return f"queue:{target}"


def first_half(count: int) -> int:
    """Return how many entries of a failing batch to try first: the larger half."""
    return (count + 1) // 2


def no_checks_error(branch: str = "", command: str = "") -> SettingsError:
    """`[landing] checks` is missing; `command` is a suggestion for it."""
    where = f" in the landlane.toml of {branch}" if branch else ""
    then = f"; and commit it on {branch}" if branch else ""
    return SettingsError(
        f"no checks are declared{where} for what lands",
        code="NO_CHECKS",
        hint=f'below [landing] in landlane.toml say: checks = ["{command or "make test"}"],'
        f" or checks = [] for none{then}",
    )
