"""Taking the next task: the best one whose paths are free, together with its paths, or waiting for one.

Ready tasks are walked in their order, a page at a time, along an index; nothing else is looked at. What a
task declares is judged like any claim, in the same transaction. A pattern that was found in the way once is
remembered for the rest of the walk, so that a thousand tasks behind one held folder cost one look at the
claims.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort

from interlock.domain.claims import EXCLUSIVE, Claim, Refused, Request, areas_of
from interlock.domain.patterns import Branch, ancestors, below, branches_overlap
from interlock.operations.claims import living, take_in
from interlock.operations.leases import end_if_gone, is_dead, touch
from interlock.operations.task_rows import pattern_pairs, task_from, who, whole
from interlock.operations.tasks import count_tasks, lessons_in
from interlock.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from interlock.domain.agents import Session
    from interlock.domain.patterns import Pattern
    from interlock.domain.tasks import Lesson, Task
    from interlock.operations.context import Context
    from interlock.ports.store import Change, Listener, Reading

_PAGE = 50
_LOOK_MS = 1000  # a lease that runs out wakes nobody
_MOST_NAMED = 10


@value
class Picked:
    """A task that is the caller's now, the claims on its paths, and what earlier owners left behind."""

    task: Task
    claims: tuple[Claim, ...]
    lessons: tuple[Lesson, ...] = ()


@value
class NothingReady:
    """There is no task to take: how many there are in each state, and which wait for paths that are held."""

    counts: dict[str, int]
    held_up: tuple[str, ...]


def next_task(
    context: Context, session: Session, role: str = "", base: Callable[[], str] = lambda: ""
) -> Picked | NothingReady:
    """Take the best ready task whose paths are free, and its paths with it.

    `base` tells the commit that the work starts from; what is there already is no evidence of work.

    Raises:
        Stale: the session is over.
    """
    outcome = _try(context, session, role, base)
    return outcome if isinstance(outcome, Picked) else _nothing(context, outcome)


def _nothing(context: Context, held_up: list[str]) -> NothingReady:
    return NothingReady(counts=count_tasks(context), held_up=tuple(held_up[:_MOST_NAMED]))


def _try(context: Context, session: Session, role: str, base: Callable[[], str]) -> Picked | list[str]:
    """Take a task, or tell which would be ready but for their paths."""
    start = base()

    def work(tx: Change) -> Picked | list[str]:
        me = living(tx, session)
        walk = _Walk(tx, context, me, start)
        picked = walk.find(role or me.role)
        if picked is None and _bury_the_dead(tx, context, me):
            picked = _Walk(tx, context, me, start).find(role or me.role)
        return picked if picked is not None else walk.held_up

    return context.change(work)


def _bury_the_dead(tx: Change, context: Context, me: Session) -> bool:
    """End sessions with tasks whose processes have provably ended; tells whether there were any."""
    owners = [row[0] for row in tx.all("tasks_owners") if row[0] != me.id]
    ended = [owner for owner in owners if end_if_gone(tx, owner, context.processes)]
    return bool(ended)


class _Walk:
    """One walk along the ready tasks."""

    def __init__(self, tx: Change, context: Context, me: Session, start: str) -> None:
        self._tx = tx
        self._context = context
        self._me = me
        self._start = start
        self._in_the_way: dict[str, list[Branch]] = {}
        self._keys: list[str] = []  # the same keys, sorted
        self.held_up: list[str] = []
        for row in tx.all("tasks_of_session", session=me.id):
            # One session may be at work on several tasks, but not on one path for two of them.
            self._remember(branch for one in self._patterns(row[8]) for branch in one.branches)

    def find(self, role: str) -> Picked | None:
        """The first task that can be had."""
        for task_id, stored in ready_in_order(self._tx, role):
            patterns = self._patterns(stored)
            if not self._is_in_the_way(patterns):
                picked = self._take(task_id, patterns)
                if picked is not None:
                    return picked
            self.held_up.append(task_id)
        return None

    def _patterns(self, stored: str) -> tuple[Pattern, ...]:
        pattern_of = self._context.repository.pattern_of
        return tuple(pattern_of(text, kind) for text, kind in pattern_pairs(stored))

    def _remember(self, branches: Iterable[Branch]) -> None:
        for branch in branches:
            if branch.key not in self._in_the_way:
                insort(self._keys, branch.key)
            self._in_the_way.setdefault(branch.key, []).append(branch)

    def _is_in_the_way(self, patterns: Sequence[Pattern]) -> bool:
        """Whether something that is known to be held overlaps."""
        return bool(self._in_the_way) and any(
            branches_overlap(branch, held)
            for one in patterns
            for branch in one.branches
            for key in self._keys_near(branch.key)
            for held in self._in_the_way[key]
        )

    def _keys_near(self, key: str) -> list[str]:
        """The known keys on the way from the root to this one, and below it."""
        low, high = below(key)
        near = [up for up in ancestors(key) if up in self._in_the_way]
        return near + self._keys[bisect_right(self._keys, low) : bisect_left(self._keys, high)]

    def _take(self, task_id: str, patterns: tuple[Pattern, ...]) -> Picked | None:
        tx = self._tx
        tx.hold()
        row = tx.one("task_lock_ready", task=task_id)
        claims = self._claim(task_id, patterns) if row is not None else None
        if row is None or claims is None:
            tx.let_go()
            return None
        attempt = task_from(row).attempt + 1
        tx.run("task_take", task=task_id, owner=self._me.agent, session=self._me.id)
        facts: dict[str, object] = {"task": task_id, "attempt": attempt, "base": self._start}
        tx.record("task.taken", *who(self._me), facts)
        found = tx.one("task_get", task=task_id)
        assert found is not None
        lessons = lessons_in(tx, task_id) if attempt > 1 else ()
        return Picked(task=whole(tx, task_from(found)), claims=claims, lessons=lessons)

    def _claim(self, task_id: str, patterns: tuple[Pattern, ...]) -> tuple[Claim, ...] | None:
        """Claims on what a task declares, which end with the session, as the task does."""
        if not patterns:
            return ()
        self._tx.lock_areas(areas_of(patterns))
        request = Request(patterns=patterns, mode=EXCLUSIVE, ttl_ms=self._me.lease_ms, task=task_id)
        outcome = take_in(self._tx, self._context, self._me, request)
        if not isinstance(outcome, Refused):
            return outcome.granted
        for refusal in outcome.refused:
            held = self._tx.all("claims_of", session=refusal.session)
            self._remember(Branch(key=row[0], rest=row[1]) for row in held if row[3] == refusal.held)
        return None


def ready_in_order(reading: Reading, role: str) -> Iterator[tuple[str, str]]:
    """The ready tasks for a role and those for everybody, best first: (id, declared paths)."""
    lines = [_line(reading, one) for one in dict.fromkeys((role, ""))]
    heads = [next(line, None) for line in lines]
    while any(head is not None for head in heads):
        best = min((head for head in heads if head is not None), key=lambda head: head[:3])
        at = heads.index(best)
        heads[at] = next(lines[at], None)
        yield best[2], best[3]


def _line(reading: Reading, role: str) -> Iterator[tuple[int, int, str, str]]:
    """The ready tasks of one role: (rank, length of the id, id, declared paths), page by page."""
    rank, last = -(2**62), ""
    while rows := reading.all("tasks_ready_after", role=role, rank=rank, id=last, limit=_PAGE):
        for task_id, rank, paths in rows:
            yield rank, len(task_id), task_id, paths
        last = rows[-1][0]


def wait_for_task(
    context: Context, session: Session, role: str, wait_ms: int, base: Callable[[], str] = lambda: ""
) -> Picked | NothingReady:
    """Take the best task, waiting for one at most so long.

    Raises:
        Stale: the session is over.
    """
    if wait_ms <= 0:
        return next_task(context, session, role, base)
    listener = context.store.listen()  # before looking, so that nothing added in between is missed
    try:
        return _wait(context, session, role, wait_ms, base, listener)
    finally:
        listener.close()


def _wait(
    context: Context,
    session: Session,
    role: str,
    wait_ms: int,
    base: Callable[[], str],
    listener: Listener,
) -> Picked | NothingReady:
    outcome = _try(context, session, role, base)
    now = _clock(context)
    deadline = now + wait_ms
    while not isinstance(outcome, Picked):
        if now >= deadline:
            return _nothing(context, outcome)
        now = _sleep(context, listener, min(now + _LOOK_MS, deadline))
        touch(context.store, session)  # who waits is alive
        if context.store.view(lambda reading: _is_worth_trying(reading, context, role or session.role)):
            outcome = _try(context, session, role, base)
    return outcome


def _sleep(context: Context, listener: Listener, until: int) -> int:
    """Until something was freed or the time is up; tells the time then."""
    now = _clock(context)
    while now < until and listener.wait((until - now) / 1000) == "entry":  # nothing was freed by that
        now = _clock(context)
    return _clock(context)


def _clock(context: Context) -> int:
    return context.store.view(lambda reading: reading.now)


def _is_worth_trying(reading: Reading, context: Context, role: str) -> bool:
    """A cheap look without a lock: something is ready, or a lease is over, or an owner is dead."""
    return (
        next(ready_in_order(reading, role), None) is not None
        or reading.one("lapse_due") is not None
        or any(is_dead(reading, row[0], context.processes) for row in reading.all("tasks_owners"))
    )
