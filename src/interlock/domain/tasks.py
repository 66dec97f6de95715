"""Tasks: what a piece of work is, which states follow which, and in what order work is offered.

The order is one number that never has to be computed again: the instant from which a task waits, moved back
by an hour for each step of priority. All waiting tasks age alike, so the order among them never changes, and
every task, however unimportant, is some day the oldest.
"""

from __future__ import annotations

from interlock.domain.agents import check_label, check_text
from interlock.errors import Malformed, NotAllowed
from interlock.values import value

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

# What may follow what. Nothing else in the product changes a task's state.
TRANSITIONS: dict[str, frozenset[str]] = {
    READY: frozenset({ACTIVE, BLOCKED, WAITING, DROPPED}),
    BLOCKED: frozenset({READY, WAITING, DROPPED}),
    ACTIVE: frozenset({READY, BLOCKED, REPORTED, REVIEW, LANDING, WAITING, DONE, FAILED, DEAD, DROPPED}),
    REPORTED: frozenset({READY, ACTIVE, REVIEW, LANDING, WAITING, DONE, FAILED, DEAD, DROPPED}),
    REVIEW: frozenset({READY, LANDING, WAITING, DONE, FAILED, DEAD, DROPPED}),
    LANDING: frozenset({READY, WAITING, DONE, FAILED, DEAD, DROPPED}),
    WAITING: frozenset({READY, BLOCKED, ACTIVE, REPORTED, DONE, FAILED, DROPPED}),
    FAILED: frozenset({READY, DEAD, DROPPED}),
    DEAD: frozenset({READY, DROPPED}),
    DONE: frozenset(),
    DROPPED: frozenset(),
}

MOST_PATHS = 100
LONGEST_TITLE = 300
LONGEST_BODY = 64_000
_HOUR_MS = 3_600_000


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

    @property
    def branch(self) -> str:
        """Where the work of this attempt is committed."""
        return f"interlock/{self.id}-{self.attempt}/work"


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
    """The new task itself when it can be stored.

    Raises:
        Malformed: a field is empty, too long or out of range.
    """
    title = " ".join(check_text(task.title, "title", LONGEST_TITLE).split())
    if not title:
        raise Malformed(
            "a task needs a title", code="NO_TITLE", hint="interlock task add 'what is to be done'"
        )
    check_text(task.body, "body", LONGEST_BODY)
    check_text(task.check, "check", 4000)
    check_text(task.output, "output", 4000)
    for word, what in ((task.kind, "kind"), (task.role, "role")):
        if word:
            check_label(word, what)
    if task.key:
        check_text(task.key, "key", 200)
    if len(task.paths) > MOST_PATHS:
        raise Malformed(
            f"{len(task.paths)} paths for one task; {MOST_PATHS} are the most",
            code="TOO_MANY_PATTERNS",
            hint="name a folder or a glob that covers them",
        )
    if not -1000 <= task.priority <= 1000 or not 1 <= task.max_attempts <= 100:
        raise Malformed(
            "priority goes from -1000 to 1000, attempts from 1 to 100",
            code="OUT_OF_RANGE",
            hint="0 and 3 are the defaults",
        )
    return task


def find_loop(after: dict[str, tuple[str, ...]], start: str) -> tuple[str, ...]:
    """The ring of tasks that wait for each other through `start`, or nothing."""
    trail: list[str] = []
    seen: set[str] = set()

    def walk(task: str) -> bool:
        trail.append(task)
        for before in after.get(task, ()):
            if before == start:
                return True
            if before not in seen:
                seen.add(before)
                if walk(before):
                    return True
        trail.pop()
        return False

    return (*trail, start) if walk(start) else ()
