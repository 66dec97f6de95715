"""Tasks, attempts and evidence: fields and states, the order of tasks, and which evidence a task needs.

The order is a number that never has to be computed again: the time since which a task waits, moved back by an
hour for each step of priority. All waiting tasks age alike, so their order never changes, and every task,
however low its priority, becomes the oldest some day.
"""

from __future__ import annotations

import json
from enum import StrEnum
from heapq import heappop, heappush

from landlane.claims.model import find_cycle
from landlane.errors import Malformed, NotAllowed, SettingsError
from landlane.files import is_inside
from landlane.text import check_label, check_text
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.values import Row


class TaskState(StrEnum):
    """The state of a task; `TRANSITIONS` lists the changes."""

    READY = "ready"
    BLOCKED = "blocked"
    ACTIVE = "active"
    REPORTED = "reported"  # its owner says that it is done; the evidence is not verified yet
    REVIEW = "review"
    LANDING = "landing"
    WAITING = "waiting_for_person"
    DONE = "done"
    FAILED = "failed"
    DEAD = "dead"  # out of attempts
    DROPPED = "dropped"


READY, BLOCKED, ACTIVE, REPORTED, REVIEW, LANDING, WAITING, DONE, FAILED, DEAD, DROPPED = TaskState
FINAL = frozenset({DONE, DROPPED})
FINISHED = FINAL | {FAILED, DEAD}  # no session works on it unless it is retried
OPEN = frozenset(TaskState) - FINAL - {DEAD}
IN_PROGRESS = frozenset({ACTIVE, REPORTED})  # returned to the queue when the session of the owner ends

# `records.move_task` and `records.take_ownership` make every change, and check it here.
TRANSITIONS: Mapping[TaskState, frozenset[TaskState]] = {
    READY: frozenset({ACTIVE, BLOCKED, WAITING, DEAD, DROPPED}),
    BLOCKED: frozenset({BLOCKED, READY, ACTIVE, WAITING, FAILED, DEAD, DROPPED}),
    ACTIVE: frozenset({READY, BLOCKED, REPORTED, REVIEW, LANDING, WAITING, DONE, FAILED, DEAD, DROPPED}),
    REPORTED: frozenset({READY, ACTIVE, REVIEW, LANDING, WAITING, DONE, FAILED, DEAD, DROPPED}),
    REVIEW: frozenset({READY, ACTIVE, REPORTED, LANDING, WAITING, DONE, FAILED, DEAD, DROPPED}),
    LANDING: frozenset({READY, REPORTED, WAITING, DONE, FAILED, DEAD, DROPPED}),
    WAITING: frozenset({READY, BLOCKED, ACTIVE, REPORTED, REVIEW, LANDING, DONE, FAILED, DEAD, DROPPED}),
    FAILED: frozenset({READY, DEAD, DROPPED}),
    DEAD: frozenset({READY, DROPPED}),
    DONE: frozenset(),
    DROPPED: frozenset(),
}

ANYBODY = "anybody"  # the receiver of a handoff that any session may accept
REVIEW_KIND = "review"  # the kind of a task in which a reviewer judges the work of another task
ASSIGNED = "assigned:"  # begins the label with the agent or person that a task is for
PERSON = "person"  # the assignee or receiver that stands for people; `person:NAME` is one of them
FIXES_TARGET = "fixes-target"  # the label of a task that repairs a target branch that fails its checks

_HOUR_MS = 3_600_000
MOST_PATHS = 100
MOST_AFTER = 1000
MOST_LABELS = 50
LONGEST_TITLE = 300
LONGEST_BODY = 64_000
LONGEST_LINE = 4000


@value
class Task:
    """A task of the queue."""

    id: str
    title: str
    body: str
    kind: str
    state: TaskState
    role: str
    priority: int
    rank: int
    stored_paths: str  # JSON; `declared_patterns` reads it
    owner: str
    session: str
    attempt: int
    failures: int
    lapses: int
    max_attempts: int
    lineage: str
    check: str
    output: str
    key: str
    labels: tuple[str, ...]
    why: str
    next_action: str
    head: str
    result: str
    waits_for: int
    created_at: int
    ready_at: int
    taken_at: int
    after: tuple[str, ...] = ()
    open_after: tuple[str, ...] = ()  # those of its dependencies that are not done

    @classmethod
    def from_row(cls, row: Row) -> Task:
        """Return a task without its dependencies, which are in another table."""
        columns: dict[str, Any] = {**row}
        columns["stored_paths"] = columns.pop("paths")
        columns["check"] = columns.pop("check_command")
        columns["state"] = TaskState(row["state"])
        columns["key"] = row["key"] or ""
        columns["labels"] = tuple(json.loads(row["labels"])) if row["labels"] != "[]" else ()
        return cls(**columns)

    @property
    def branch(self) -> str:
        """The branch that the current attempt commits to."""
        return branch_of(self.id, self.attempt)

    @property
    def tries(self) -> int:
        """The attempts that count: failed ones, and the present or successful one."""
        return self.failures + bool(self.owner and self.state not in (READY, BLOCKED, FAILED, DEAD, DROPPED))


@value
class NewTask:
    """A task to be added."""

    title: str
    body: str = ""
    kind: str = ""
    role: str = ""
    priority: int = 0
    paths: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    max_attempts: int = 3
    check: str = ""
    output: str = ""
    key: str = ""
    labels: tuple[str, ...] = ()
    parent: str = ""
    next_action: str = ""
    gate: str = ""  # what a person is asked before anyone takes it


@value
class Lesson:
    """What the next owner of a task should know: why an earlier attempt ended, or what was said about it."""

    at: int
    kind: str
    agent: str
    attempt: int
    why: str


def assignee_of(labels: Sequence[str]) -> str:
    """Return the agent or person that a task is for; empty if it is for everyone."""
    return next((one.removeprefix(ASSIGNED) for one in labels if one.startswith(ASSIGNED)), "")


def assign_labels(labels: Sequence[str], assignee: str) -> tuple[str, ...]:
    """Return labels with another assignee; an empty one removes it."""
    others = [label for label in labels if not label.startswith(ASSIGNED)]
    return (*others, *([f"{ASSIGNED}{assignee}"] if assignee else []))


def check_assignee(name: str) -> str:
    """Return the name of an agent, or `person:NAME`, that a task is to be for.

    Raises:
        Malformed: it is not a valid name.
    """
    check_label(name.replace(":", "-", 1) if is_for_person(name) else name, "assignee")
    return name


def is_for_person(receiver: str) -> bool:
    """Return whether a task or a handoff for this receiver is for a person, never for an agent."""
    return receiver == PERSON or receiver.startswith(f"{PERSON}:")


def is_assigned_to(assignee: str, task_id: str, agent: str, *, is_person: bool) -> bool:
    """Return whether a session may take a task with this assignee: by its name, or as a kind of worker."""
    if not assignee:
        return True
    if is_for_person(assignee):
        return is_person
    return assignee == agent or agent.partition(".")[0] == f"{assignee}-{task_id}"


def is_open_fix(task: Task) -> bool:
    """Return whether a task is to repair the target branch, and is not finished."""
    return FIXES_TARGET in task.labels and task.state not in FINISHED


def branch_of(task_id: str, attempt: int) -> str:
    """Return the branch of one attempt at a task."""
    return f"landlane/{task_id}-{attempt}/work"


def returned_branch_of(task_id: str, attempt: int) -> str:
    """Return the branch for work that came back after the task had gone to another owner."""
    return f"landlane/{task_id}-{attempt}/returned"


def rank_of(ready_at: int, priority: int) -> int:
    """Return the position of a task in the order; lower comes first."""
    return ready_at - priority * _HOUR_MS


def check_transition(task_id: str, state: TaskState, new_state: TaskState) -> None:
    """Refuse a change of state that the table does not have.

    Raises:
        NotAllowed: the task cannot change from the one state to the other.
    """
    if new_state not in TRANSITIONS[state]:
        possible = ", ".join(sorted(TRANSITIONS[state]))
        raise NotAllowed(
            f"{task_id} is {state} and cannot become {new_state}",
            code="TASK_WRONG_STATE",
            hint=f"it can become {possible}" if possible else f"landlane task show {task_id}",
            state=state,
        )


def check_new_task(task: NewTask) -> NewTask:
    """Return a new task in the form in which it is stored: a title in one line, no duplicates in lists.

    Raises:
        Malformed: a field is empty, too long or out of range.
    """
    title = " ".join(check_text(task.title, "title", LONGEST_TITLE).split())
    if not title or not title.isprintable():
        raise Malformed(
            "a task needs a title in plain text" if title else "a task needs a title",
            code="NO_TITLE",
            hint="landlane task add 'What to do'",
        )
    check_text(task.body, "body", LONGEST_BODY)
    for text, what in ((task.check, "check"), (task.output, "output"), (task.next_action, "next action")):
        check_text(text, what, LONGEST_LINE)
    check_text(task.key, "key", 200)
    for word, what in ((task.kind, "kind"), (task.role, "role")):
        if word:
            check_label(word, what)
    for label in task.labels:
        check_label(label, "label")
    _check_counts(task)
    if task.output and not is_inside(task.output.removeprefix("./").rstrip("/")):
        raise Malformed(
            f"{task.output} is not a path inside the repository, so no task can write it",
            code="PATH_OUTSIDE",
            hint=f"name a path below the root, such as --output {task.output.rpartition('/')[2] or 'out'}",
        )
    _check_range(task.priority, "the priority", -1000, 1000)
    _check_range(task.max_attempts, "the number of attempts", 1, 100)
    if title == task.title and not task.after and not task.labels:
        return task
    return replace(task, title=title, after=_once(task.after), labels=_once(task.labels))


def _check_range(number: int, what: str, least: int, most: int) -> None:
    if not least <= number <= most:
        raise Malformed(
            f"{what} goes from {least} to {most}, not to {number}"
            if number > most
            else f"{what} goes from {least} to {most}; {number} is too small",
            code="OUT_OF_RANGE",
            hint="the nearest that is allowed",
            given=str(number),
            example=str(min(max(number, least), most)),
        )


def _check_counts(task: NewTask) -> None:
    limits = ((task.paths, "paths", MOST_PATHS), (task.after, "dependencies", MOST_AFTER))
    for items, what, most in (*limits, (task.labels, "labels", MOST_LABELS)):
        if len(items) > most:
            raise Malformed(
                f"{len(items):,} {what} are too many for one task; at most {most:,} are allowed",
                code="TOO_MANY_PATTERNS" if what == "paths" else "TOO_MANY",
                hint="name a folder or a glob that covers them" if what == "paths" else "split the task",
            )


def _once(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))


def find_dependency_cycle(after: Mapping[str, tuple[str, ...]], start: str) -> tuple[str, ...]:
    """Return the cycle of dependencies that goes through `start`; empty when there is none."""
    return find_cycle(start, lambda task: after.get(task, ()))


def dependency_order(after: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return these tasks, each after its dependencies, otherwise in the given order.

    Raises:
        Malformed: some tasks depend on each other; the message names the cycle.
    """
    open_count = {task: sum(before in after for before in befores) for task, befores in after.items()}
    dependents: dict[str, list[str]] = {}
    for task, befores in after.items():
        for before in befores:
            dependents.setdefault(before, []).append(task)
    position = {task: at for at, task in enumerate(after)}
    free = [(position[task], task) for task in after if not open_count[task]]  # a heap
    order: list[str] = []
    while free:
        _, task = heappop(free)
        order.append(task)
        for dependent in dependents.get(task, ()):
            open_count[dependent] -= 1
            if not open_count[dependent]:
                heappush(free, (position[dependent], dependent))
    if len(order) < len(after):
        cycles = (find_dependency_cycle(after, task) for task in after if open_count[task])
        raise cycle_error(next(cycle for cycle in cycles if cycle))
    return order


def cycle_error(cycle: tuple[str, ...]) -> Malformed:
    """Return the error for tasks that would wait for each other."""
    return Malformed(
        f"these tasks would wait for each other: {' → '.join(cycle)}",
        code="TASK_CYCLE",
        hint="remove one of these dependencies",
        cycle=list(cycle),
    )


def check_reason(why: str) -> str:
    """Return a reason that was given for a change.

    Raises:
        Malformed: it is empty or too long.
    """
    if not why.strip():
        raise Malformed("a reason is missing", code="NO_REASON", hint="add --why 'a sentence for others'")
    return check_text(why, "reason", LONGEST_LINE)


class AttemptState(StrEnum):
    """The state of an attempt."""

    RUNNING = "running"
    ENDED = "ended"


class AttemptOutcome(StrEnum):
    """What became of an attempt."""

    NONE = ""  # it runs, or its supervisor ended without a report
    NOT_TAKEN = "not taken"  # another session has the task, or a path it changes
    NOT_STARTED = "waits"  # something it needs is not available now
    DONE = "done"
    LANDING = "landing"
    REVIEW = "review"
    WAITING = "waiting"  # for a person
    RETRY = "retry"
    ESCALATE = "escalate"
    ABORT = "abort"
    RETURNED = "returned"  # back to the queue, and not counted as an attempt
    LOST = "lost"  # the task belongs to another session now
    KILLED = "killed"


# `attempts.change_attempt` makes every change, and checks it here. An attempt that has ended never changes.
ATTEMPT_TRANSITIONS: Mapping[AttemptState, frozenset[AttemptState]] = {
    AttemptState.RUNNING: frozenset(AttemptState),
    AttemptState.ENDED: frozenset(),
}


@value
class Attempt:
    """One attempt at a task. Times are wall-clock milliseconds."""

    id: str
    task: str
    attempt: int
    lineage: str
    agent: str
    role: str
    client: str  # the coding client, or `command` for a custom worker
    session: str
    machine: str
    keeper: Mapping[str, Any]  # the process that supervises it
    started_at: int
    orchestrator: str = ""  # that started it
    run: str = ""  # the record of its processes
    state: AttemptState = AttemptState.RUNNING
    seen_at: int = 0  # when it was last active
    ended_at: int = 0
    doing: str = ""
    code: str = ""  # why it failed, in one word; empty when it did not
    reason: str = ""
    outcome: AttemptOutcome = AttemptOutcome.NONE
    head: str = ""
    usage: Mapping[str, Any] | None = None  # unknown is not zero
    log: str = ""
    kind: str = ""  # the agent as the settings name it; `agent` is its session
    resets_at: int = 0  # when the provider's limit that ended it is over, as the provider said

    @property
    def provider(self) -> str:
        """The name for a provider's limit: the coding client, or the agent of a custom worker."""
        return self.client if self.client != "command" or not self.kind else self.kind

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Attempt:
        """Return the attempt that a record describes."""
        fields: dict[str, Any] = {**document, "state": AttemptState(document["state"])}
        fields["outcome"] = AttemptOutcome(fields["outcome"])
        return cls(**fields)


class EvidenceKind(StrEnum):
    """What a task must show before it is done; the order is that of verification."""

    COMMIT = "commit"  # a commit on the task's branch
    PATHS = "paths"  # the changed paths are inside the task's claims and declared paths
    CHECK = "check"  # the task's check passes on exactly that commit
    OUTPUT = "output"  # the task's output file exists and is not empty
    VERDICT = "verdict"  # the reviewer has given a verdict


COMMIT, PATHS, CHECK, OUTPUT, VERDICT = EvidenceKind
BUILT_IN: dict[str, tuple[str, ...]] = {
    "code": (COMMIT, PATHS, CHECK),
    "output": (OUTPUT, CHECK),
    "chore": (CHECK,),
    "review": (VERDICT,),
}


@value
class Evidence:
    """One piece of evidence, present or missing."""

    name: str
    is_seen: bool
    found: str
    hint: str = ""


def effective_kind(kind: str, *, has_output: bool, is_in_git: bool) -> str:
    """Return the kind of a task; the default depends on its output and on whether there is git."""
    return kind or ("output" if has_output else "code" if is_in_git else "chore")


def required_evidence(kind: str, kinds: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the evidence that a task of this kind needs; `kinds` are those of the settings.

    Raises:
        SettingsError: the kind is not defined.
    """
    known = {**BUILT_IN, **kinds}
    if kind not in known:
        raise SettingsError(
            f"unknown kind of task {kind}",
            code="UNKNOWN_KIND",
            hint=f"use {', '.join(sorted(known))}, or define it under [tasks.evidence] in landlane.toml",
        )
    return known[kind]


class WaitKind(StrEnum):
    """The kinds of things that a task waits for."""

    TASK = "task"  # another task must be done first
    GATE = "gate"
    REVIEW = "review"
    LANDING = "landing"
    HANDOFF = "handoff"  # it is kept for the agent that it was handed to
    CLAIM = "claim"  # another session holds one of its paths
    LIMIT = "limit"  # a provider's usage limit
    RETRY = "retry"  # it failed, and is offered again later
    WORKER = "worker"  # as many workers run as may run at once
    BUDGET = "budget"  # it may not cost more
    BLOCKED = "blocked"  # it was blocked by hand
    DECISION = "decision"  # it failed, and a person retries or drops it


@value
class Wait:
    """One thing that a task waits for."""

    kind: WaitKind
    id: str = ""
    needs_person: bool = False
    holder: str = ""  # an agent, or a coding client
    path: str = ""
    why: str = ""
    until: int = 0  # in wall-clock milliseconds
    resets_at: int = 0  # when a provider's limit ends, if the provider said so; `until` also has our back-off
