"""Tasks: what a piece of work is, which states follow which, and in what order work is offered.

The order is one number that never has to be computed again: the instant from which a task waits, moved back
by an hour for each step of priority. All waiting tasks age alike, so the order among them never changes, and
every task, however unimportant, is some day the oldest.
"""

from __future__ import annotations

import json
from heapq import heappop, heappush

from landlane.claims.model import find_cycle
from landlane.errors import Malformed, NotAllowed
from landlane.text import check_label, check_text
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.values import Row


READY = "ready"
BLOCKED = "blocked"
ACTIVE = "active"
REPORTED = "reported"
REVIEW = "review"
LANDING = "landing"
WAITING = "waiting_for_person"
DONE = "done"
FAILED = "failed"
DEAD = "dead"
DROPPED = "dropped"

STATES = (READY, BLOCKED, ACTIVE, REPORTED, REVIEW, LANDING, WAITING, DONE, FAILED, DEAD, DROPPED)
OPEN = frozenset({READY, BLOCKED, ACTIVE, REPORTED, REVIEW, LANDING, WAITING, FAILED})
OVER = frozenset({DONE, DROPPED})
AT_WORK = frozenset({ACTIVE, REPORTED})  # its owner has it in hand, and gives it back by vanishing

# What may follow what. Nothing else in the product changes a task's state.
TRANSITIONS: dict[str, frozenset[str]] = {
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

_HOUR_MS = 3_600_000
MOST_PATHS = 100
MOST_AFTER = 1000
MOST_LABELS = 50
LONGEST_TITLE = 300
LONGEST_BODY = 64_000
LONGEST_LINE = 4000


@value
class Task:
    """A piece of work as it stands."""

    id: str
    title: str
    body: str
    kind: str
    state: str
    role: str
    priority: int
    rank: int
    stored_paths: str
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

    @classmethod
    def from_row(cls, row: Row) -> Task:
        """Return a task without its dependencies, which are in another table."""
        return cls(
            id=row["id"],
            title=row["title"],
            body=row["body"],
            kind=row["kind"],
            state=row["state"],
            role=row["role"],
            priority=row["priority"],
            rank=row["rank"],
            stored_paths=row["paths"],
            owner=row["owner"],
            session=row["session"],
            attempt=row["attempt"],
            failures=row["failures"],
            lapses=row["lapses"],
            max_attempts=row["max_attempts"],
            lineage=row["lineage"],
            check=row["check_command"],
            output=row["output"],
            key=row["key"] or "",
            labels=tuple(json.loads(row["labels"])) if row["labels"] != "[]" else (),
            why=row["why"],
            next_action=row["next_action"],
            head=row["head"],
            result=row["result"],
            waits_for=row["waits_for"],
            created_at=row["created_at"],
            ready_at=row["ready_at"],
            taken_at=row["taken_at"],
        )

    @property
    def branch(self) -> str:
        """Where the work of this attempt is committed."""
        return branch_of(self.id, self.attempt)


@value
class NewTask:
    """What somebody asks for."""

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


@value
class Lesson:
    """What somebody who had the task before left behind for the next one."""

    at: int
    kind: str
    agent: str
    attempt: int
    why: str


def branch_of(task_id: str, attempt: int) -> str:
    """The branch of one attempt at a task."""
    return f"landlane/{task_id}-{attempt}/work"


def returned_branch_of(task_id: str, attempt: int) -> str:
    """Where that lies which a worker returned after the task had gone elsewhere; nobody works on it."""
    return f"landlane/{task_id}-{attempt}/returned"


def rank_of(ready_at: int, priority: int) -> int:
    """Where a task stands in the order: lower comes first."""
    return ready_at - priority * _HOUR_MS


def check_transition(task_id: str, now: str, then: str) -> None:
    """Refuse a change of state that has no meaning.

    Raises:
        NotAllowed: the task cannot go from the one state to the other.
    """
    if then not in TRANSITIONS[now]:
        possible = ", ".join(sorted(TRANSITIONS[now])) or "nothing: it is over"
        raise NotAllowed(
            f"{task_id} is {now} and cannot become {then}",
            code="TASK_WRONG_STATE",
            hint=f"from {now} it can become {possible}",
            state=now,
        )


def check_new(task: NewTask) -> NewTask:
    """The new task in the form in which it is stored: a title in one line, nothing named twice.

    Raises:
        Malformed: a field is empty, too long or out of range.
    """
    title = " ".join(check_text(task.title, "title", LONGEST_TITLE).split())
    if not title or not title.isprintable():
        raise Malformed(
            "a task needs a title in plain text" if title else "a task needs a title",
            code="NO_TITLE",
            hint="landlane task add 'what is to be done'",
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
    if not -1000 <= task.priority <= 1000 or not 1 <= task.max_attempts <= 100:
        raise Malformed(
            "priority goes from -1000 to 1000, attempts from 1 to 100",
            code="OUT_OF_RANGE",
            hint="0 and 3 are the defaults",
        )
    if title == task.title and not task.after and not task.labels:
        return task
    return replace(task, title=title, after=_once(task.after), labels=_once(task.labels))


def _check_counts(task: NewTask) -> None:
    limits = ((task.paths, "paths", MOST_PATHS), (task.after, "dependencies", MOST_AFTER))
    for items, what, most in (*limits, (task.labels, "labels", MOST_LABELS)):
        if len(items) > most:
            raise Malformed(
                f"{len(items)} {what} for one task; {most} are the most",
                code="TOO_MANY_PATTERNS" if what == "paths" else "TOO_MANY",
                hint="name a folder or a glob that covers them" if what == "paths" else "split the task",
            )


def _once(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))


def find_loop(after: Mapping[str, tuple[str, ...]], start: str) -> tuple[str, ...]:
    """The ring of tasks that wait for each other through `start`, or nothing."""
    return find_cycle(start, lambda task: after.get(task, ()))


def in_order(after: Mapping[str, tuple[str, ...]]) -> list[str]:
    """All of these tasks, each behind those it waits for; otherwise in the order given.

    Raises:
        Malformed: some wait for each other; the ring is named.
    """
    left = {task: sum(before in after for before in befores) for task, befores in after.items()}
    behind: dict[str, list[str]] = {}
    for task, befores in after.items():
        for before in befores:
            behind.setdefault(before, []).append(task)
    place = {task: at for at, task in enumerate(after)}
    free = [(place[task], task) for task in after if not left[task]]
    found: list[str] = []
    while free:  # a heap: of those that are free, the first in the order given
        _, task = heappop(free)
        found.append(task)
        for waiting in behind.get(task, ()):
            left[waiting] -= 1
            if not left[waiting]:
                heappush(free, (place[waiting], waiting))
    if len(found) < len(after):
        rings = (find_loop(after, task) for task in after if left[task])
        raise ring_error(next(ring for ring in rings if ring))
    return found


def ring_error(ring: tuple[str, ...]) -> Malformed:
    """These tasks would wait for each other."""
    return Malformed(
        f"these tasks would wait for each other: {' → '.join(ring)}",
        code="TASK_CYCLE",
        hint="take one of these dependencies away",
        cycle=list(ring),
    )


def check_reason(why: str) -> str:
    """A reason that somebody else can learn from.

    Raises:
        Malformed: it is empty or too long.
    """
    if not why.strip():
        raise Malformed("say why", code="NO_REASON", hint="--why 'a sentence for whoever comes next'")
    return check_text(why, "reason", LONGEST_LINE)


ANYBODY = "anybody"  # the receiver of a handoff that any session may accept
REVIEW_KIND = "review"  # of a task in which a reviewer judges the work of another task
BRANCH_ENDED = frozenset({DONE, FAILED, DEAD, DROPPED})  # states in which the branch of a split task is over


RUNNING = "running"

ENDED = "ended"


@value
class Attempt:
    """One try. Instants are the calendar's, in milliseconds; `orchestrator` is what started it."""

    id: str
    task: str
    attempt: int
    lineage: str
    agent: str
    role: str
    client: str  # the coding client, or `command` for a worker of one's own
    session: str
    machine: str
    keeper: Mapping[str, Any]  # the process that looks after it
    started_at: int
    orchestrator: str = ""
    run: str = ""  # the record of its processes
    state: str = RUNNING
    seen_at: int = 0  # the last sign of life
    ended_at: int = 0
    doing: str = ""
    code: str = ""  # why it failed, in a word; empty when it did not
    reason: str = ""
    outcome: str = ""  # what became of the task: landing, done, review, retry, escalate, abort, returned
    head: str = ""
    usage: Mapping[str, Any] | None = None  # unknown is not zero
    log: str = ""
