"""Values of the library: tasks, attempts, fans, handoffs, gates, reviews and landings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from landlane.api.results import Failure, Outcome, Record, Success
from landlane.errors import LandlaneError, NotAllowed, TimedOut, WaitsForPerson
from landlane.gates.model import GateState
from landlane.landing.model import LandingState
from landlane.values import value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta
    from typing import Any

    from landlane.api.claim_values import Claim
    from landlane.claims.model import SavedWork
    from landlane.fanout.model import FanState
    from landlane.gates.model import GateKind
    from landlane.handoffs.model import HandoffState
    from landlane.reviews.model import Contradiction, ReviewFinding, ReviewState, ReviewVerdict
    from landlane.tasks.duplicates import SimilarTask
    from landlane.tasks.model import Evidence, TaskState
    from landlane.tasks.retry_rules import RetryOutcome
    from landlane.tasks.worker_pool import PoolState


@value
class Task(Record):
    """A task of the queue. `tries` counts the attempts that are charged, `attempt` all of them."""

    id: str
    title: str
    state: TaskState
    owner: str
    session: str
    body: str
    kind: str
    role: str
    priority: int
    paths: tuple[str, ...]
    after: tuple[str, ...]
    open_after: tuple[str, ...]
    attempt: int
    tries: int
    failures: int
    lapses: int
    max_attempts: int
    lineage: str
    branch: str
    head: str
    check: str
    output: str
    key: str
    labels: tuple[str, ...]
    why: str
    next_action: str
    result: str
    created_at: datetime
    taken_at: datetime | None


@value
class Lesson(Record):
    """What an earlier owner of a task reported."""

    at: datetime
    kind: str
    agent: str
    attempt: int
    why: str


@value
class Added(Success):
    """A task in the queue, and those that look like it."""

    task: Task
    similar: tuple[SimilarTask, ...]
    is_new: bool


@value
class LooksAlike(Failure):
    """Nothing was added, because this work seems to be in the queue already."""

    code: str
    message: str
    hint: str
    similar: tuple[SimilarTask, ...]

    def error(self) -> LandlaneError:
        """Return the error that `unwrap()` raises."""
        return LandlaneError(self.message, code=self.code, hint=self.hint)


@value
class AddedPlan(Record):
    """The tasks of a plan, those of them that are new, and titles skipped as duplicates."""

    tasks: tuple[Task, ...]
    added: tuple[Task, ...]
    skipped: tuple[tuple[str, tuple[SimilarTask, ...]], ...]


@value
class Imported(Record):
    """The result of an import: tasks added, items already known, and titles skipped as duplicates."""

    added: tuple[Task, ...]
    known: int
    skipped: tuple[tuple[str, tuple[SimilarTask, ...]], ...]


@value
class Picked(Success):
    """A task that the caller owns now, the claims on its paths, and what earlier owners left.

    `saved` is what a former holder of these paths left on them when its lease expired.
    """

    task: Task
    claims: tuple[Claim, ...]
    lessons: tuple[Lesson, ...]
    is_resumed: bool
    saved: SavedWork | None


@value
class NothingReady(Failure):
    """There is no task to take: how many are in each open state, and what the others wait for.

    `held_up` wait for paths that are held, `held_back` for a time, `over_budget` for money; `in_hand` are
    tasks that the caller already works on.
    """

    code: str
    message: str
    hint: str
    counts: Mapping[str, int]
    held_up: tuple[str, ...]
    in_hand: tuple[str, ...]
    held_back: tuple[tuple[str, datetime], ...]
    over_budget: tuple[tuple[str, str], ...]

    def error(self) -> TimedOut:
        """Return the error that `unwrap()` raises."""
        return TimedOut(self.message, code=self.code, hint=self.hint)


@value
class Completion(Outcome):
    """A task after it was reported done, with the evidence that was verified; false if some is missing."""

    task: Task
    evidence: tuple[Evidence, ...]
    not_run: tuple[str, ...]

    @property
    def missing(self) -> Evidence | None:
        """The first evidence that is missing."""
        return next((item for item in self.evidence if not item.is_seen), None)

    def error(self) -> NotAllowed | None:
        """Return the error that `unwrap()` raises if evidence is missing."""
        if self.missing is None:
            return None
        message = f"{self.task.id} {self.task.title} is not done: {self.missing.found}"
        return NotAllowed(message, code="EVIDENCE_MISSING", hint=self.missing.hint)


@value
class Decision(Record):
    """What was decided after an attempt ended, the task afterwards, and when it may be tried again."""

    outcome: RetryOutcome
    task: Task
    why: str
    not_before: datetime | None


@value
class Lineage(Record):
    """What a task has used, with its retries, children and follow-ups."""

    id: str
    attempts: int
    limit: int
    lapses: int
    took: timedelta
    cost_micros: int
    unknown_costs: int
    width: int
    rounds: int
    stopped: str
    parked: Mapping[str, str]
    held: Mapping[str, datetime]


@value
class Pool(Record):
    """The worker pool: whether workers are started, and who paused it."""

    state: PoolState
    paused: str
    paused_at: datetime | None
    paused_by: str


@value
class Fan(Record):
    """A split task and its branches."""

    id: str
    task: str
    title: str
    state: FanState
    policy: str
    need: int
    rest: str
    children: Sequence[str]
    names: Sequence[str]
    agent: str
    session: str
    attempt: int
    begun_at: datetime
    deadline_at: datetime | None
    joined_at: datetime | None
    is_met: bool
    why: str
    results: Sequence[Mapping[str, Any]]


@value
class SplitTask(Record):
    """A fan, and the tasks of its branches."""

    fan: Fan
    tasks: tuple[Task, ...]
    is_new: bool


@value
class Handoff(Record):
    """A handoff of a task: product, context, constraints and next step, and what became of it."""

    id: str
    task: str
    lineage: str
    state: HandoffState
    sender: str
    session: str
    to: str
    attempt: int
    maximum: int
    product: str
    context: str
    constraints: Sequence[str]
    next: str
    blockers: Sequence[str]
    assumptions: Sequence[str]
    fields: Mapping[str, Any]
    taken: Mapping[str, Any]
    digest: str
    sent_at: datetime
    until: datetime
    accepted_by: str
    accepted_at: datetime | None
    why: str


@value
class Accepted(Success):
    """A handed-off task that the caller owns now, with its claims."""

    task: Task
    handoff: Handoff
    claims: tuple[Claim, ...]


@value
class Gate(Outcome):
    """One question to a person; true once it is approved."""

    id: str
    task: str
    kind: GateKind
    state: GateState
    why: str
    about: Mapping[str, Any]
    agent: str
    session: str
    risk: int
    attempt: int
    evidence: Mapping[str, Any]
    asked_at: datetime
    answered_at: datetime | None
    answered_by: str
    answer: str
    is_resumed: bool

    def error(self) -> LandlaneError | None:
        """Return `WaitsForPerson` while there is no answer, `NotAllowed` if it was rejected or withdrawn."""
        if self.state is GateState.APPROVED:
            return None
        if self.state is GateState.WAITING:
            hint = f"a person answers it; wait for that: gates.wait({self.id!r}, '10m')"
            return WaitsForPerson(f"{self.id} waits for a person", code="WAITS_FOR_PERSON", hint=hint)
        answer = f": {self.answer}" if self.answer else ""
        message = f"{self.id} was {self.state} by {self.answered_by}{answer}"
        code = "GATE_REJECTED" if self.state is GateState.REJECTED else "GATE_WITHDRAWN"
        return NotAllowed(
            message, code=code, hint=f"do it another way; what was said: gates.get({self.id!r})"
        )


@value
class ReviewEntry(Record):
    """One reviewer, its task, and its verdict once it is given."""

    name: str
    task: str
    verdict: ReviewVerdict | None
    by: str
    session: str
    summary: str
    findings: tuple[ReviewFinding, ...]
    at: datetime | None


@value
class Review(Record):
    """The review of one commit of a task."""

    id: str
    task: str
    state: ReviewState
    attempt: int
    round: int
    head: str
    base: str
    agent: str
    session: str
    decider: str
    entries: tuple[ReviewEntry, ...]
    decision: ReviewEntry | None
    contradictions: tuple[Contradiction, ...]
    gate: str
    why: str
    opened_at: datetime
    ended_at: datetime | None


_STOPPED = (LandingState.HELD, LandingState.BOUNCED, LandingState.EJECTED)


@value
class Landing(Outcome):
    """One branch on its way onto the target; false if it was bounced or ejected, or waits for a person."""

    id: str
    branch: str
    head: str
    target: str
    state: LandingState
    agent: str
    session: str
    role: str
    task: str
    attempt: int
    subject: str
    paths: Sequence[str]
    stage: str
    check: str
    checks: Sequence[Mapping[str, Any]]
    base: str
    commit: str
    code: str
    reason: str
    output: str
    advice: str
    gate: str
    approved_by: str
    flaky: Sequence[str]
    notes: Sequence[str]
    bounce_task: str
    submitted_at: datetime
    ended_at: datetime | None

    def error(self) -> LandlaneError | None:
        """Return `WaitsForPerson` for a held landing, `LandlaneError` for one that did not land."""
        if self.state not in _STOPPED:
            return None
        message = f"{self.id} is {self.state}" + (f": {self.reason}" if self.reason else "")
        if self.state is LandingState.HELD:
            return WaitsForPerson(message, code=self.code or "WAITS_FOR_PERSON", hint=self.advice)
        return LandlaneError(message, code=self.code or "BOUNCED", hint=self.advice)
