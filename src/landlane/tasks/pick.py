"""Pick the next task: the best one whose paths are free, taken together with its claims.

Ready tasks are walked in their order, a page at a time, along an index; nothing else is looked at. What a
task declares is judged like any claim, in the same transaction. Once a task was refused, what others hold is
remembered for the rest of the walk, so that a thousand tasks behind one held folder are passed over quickly.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from itertools import islice

from landlane.claims.model import Claim, ClaimMode, Refused, Request
from landlane.claims.read import claims_near, claims_of_task
from landlane.claims.take import take_in
from landlane.patterns.pattern import Alternative, alternatives_overlap, ancestors, areas_of, below
from landlane.roles.built_in import bound_by
from landlane.roles.model import Scope, forbidden, why_not_verb
from landlane.sessions.leases import end_if_gone, is_dead, require_live
from landlane.tasks.extensions import installed
from landlane.tasks.lineage import earlier_lessons, held_in, let_go_in
from landlane.tasks.model import ACTIVE, READY, REVIEW_KIND, Task
from landlane.tasks.offer_order import FIRST_LOOK, PAGE, ready_in_order
from landlane.tasks.on_change import settle_due
from landlane.tasks.read import count_tasks, lessons_in
from landlane.tasks.rows import (
    find_task,
    pattern_pairs,
    task_in,
    tasks_of,
    who,
    whole,
)
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Lesson, Task


_MOST_NAMED = 10


@value
class Picked:
    """A task that is the caller's now, the claims on its paths, and what earlier owners left behind."""

    task: Task
    claims: tuple[Claim, ...]
    lessons: tuple[Lesson, ...] = ()
    is_resumed: bool = False


@value
class NothingReady:
    """There is no task to take: how many are in each open state, and which wait for paths that are held."""

    counts: dict[str, int]
    held_up: tuple[str, ...]
    in_hand: tuple[str, ...] = ()  # what the caller is at work on anyway
    held_back: tuple[tuple[str, int], ...] = ()  # ready, but not before an instant of the calendar
    over_budget: tuple[tuple[str, str], ...] = ()  # ready, but their money is used up; each with the reason


def next_task(
    repo: Repository, session: Session, role: str = "", base: Callable[[], str] = lambda: ""
) -> Picked | NothingReady:
    """Take the best ready task whose paths are free, and its paths with it.

    `base` tells the commit that the work starts from; what is there already is no evidence of work.

    Raises:
        Stale: the session is over.
    """
    settle_due(repo)
    outcome = try_to_pick(repo, session, role, base)
    return outcome if isinstance(outcome, Picked) else nothing_ready(repo, session, outcome)


def nothing_ready(repo: Repository, session: Session, held_up: list[str]) -> NothingReady:
    """Say why there is no task to take."""
    counts = count_tasks(repo)
    in_hand = repo.store.view(lambda snapshot: [task.id for task in _in_hand(snapshot, session)])
    waiting = repo.store.view(lambda snapshot: backing_off(snapshot, repo))
    over = repo.store.view(lambda snapshot: _over_budget(snapshot, repo, held_up))
    return NothingReady(
        counts=counts,
        held_up=tuple([name for name in held_up if name not in over][:_MOST_NAMED]),
        over_budget=tuple(over.items())[:_MOST_NAMED],
        in_hand=tuple(in_hand),
        held_back=tuple(sorted(waiting.items(), key=lambda one: one[1])[:_MOST_NAMED]),
    )


def _over_budget(snapshot: Snapshot, repo: Repository, task_ids: Iterable[str]) -> dict[str, str]:
    """Those of these tasks whose money is used up, each with the reason."""
    tasks = [find_task(snapshot, task_id) for task_id in dict.fromkeys(task_ids)]
    found = (
        (task.id, installed().budgets.why_over(snapshot, repo, task)) for task in tasks if task is not None
    )
    return {task_id: why for task_id, why in found if why}


def backing_off(snapshot: Snapshot, repo: Repository) -> dict[str, int]:
    """The tasks whose time has not come after a failure, each with the instant at which it does."""
    held = held_in(snapshot)
    now = repo.store.wall_of(snapshot.now) if held else 0
    return {task_id: until for task_id, until in held.items() if until > now}


def _in_hand(snapshot: Snapshot, session: Session) -> list[Task]:
    """What a session is at work on, the longest in hand first."""
    tasks = (task for task in tasks_of(snapshot, session.id) if task.state == ACTIVE)
    return sorted(tasks, key=lambda task: task.taken_at)


def resume_task(repo: Repository, session: Session) -> Picked | None:
    """What this session took and has not ended: an agent that was started anew goes on with it.

    Raises:
        Stale: the session is over.
    """

    def work(tx: Transaction) -> Picked | None:
        me = require_live(tx, session)
        for task in _in_hand(tx, me):
            claims = claims_of_task(tx, me.id, task.id)
            lessons = lessons_in(tx, task.id)
            return Picked(task=whole(tx, task), claims=tuple(claims), lessons=lessons, is_resumed=True)
        return None

    return repo.change(work)


def try_to_pick(repo: Repository, session: Session, role: str, base: Callable[[], str]) -> Picked | list[str]:
    """Take a task, or tell which would be ready but for their paths."""
    start = base()

    def work(tx: Transaction) -> Picked | list[str]:
        me = require_live(tx, session)
        _check_wanted(me, role)
        walk = _Walk(tx, repo, me, start)
        picked = walk.find(role or me.role)
        if picked is None and _bury_the_dead(tx, repo, me):
            picked = _Walk(tx, repo, me, start).find(role or me.role)
        return picked if picked is not None else walk.held_up

    return repo.change(work)


def _check_wanted(me: Session, role: str) -> None:
    """Refuse to hand somebody the work of another role than its own."""
    if me.role and role and role != me.role:
        raise forbidden(me.agent, me.role, f"a task for the role {role} is not for the role {me.role}")


def take_task(
    repo: Repository,
    session: Session,
    task_id: str,
    base: str,
    also: Callable[[Transaction, Task], None] | None = None,
) -> Picked | None:
    """Take one certain task if it is ready, and its paths with it; nothing if it is not, or they are held.

    `also` is done in the same transaction with what was taken: nobody ever sees the one without the other.

    Raises:
        Stale: the session is over.
        Malformed: there is no such task.
    """

    def work(tx: Transaction) -> Picked | None:
        me = require_live(tx, session)
        task = task_in(tx, task_id)
        _check_wanted(me, task.role)
        if task.state != READY:
            return None
        picked = _Walk(tx, repo, me, base).take_one(task_id, task.stored_paths)
        if picked is not None and also is not None:
            also(tx, picked.task)
        return picked

    return repo.change(work)


def _bury_the_dead(tx: Transaction, repo: Repository, me: Session) -> bool:
    """End sessions with tasks whose processes have provably ended; tells whether there were any."""
    owners = [row["session"] for row in tx.all("tasks_owners") if row["session"] != me.id]
    ended = [owner for owner in owners if end_if_gone(tx, owner, repo.processes)]
    return bool(ended)


class _Walk:
    """One walk along the ready tasks."""

    def __init__(self, tx: Transaction, repo: Repository, me: Session, start: str) -> None:
        self._tx = tx
        self._repo = repo
        self._me = me
        self._start = start
        self._in_the_way: dict[str, set[Alternative]] = {}
        self._keys: list[str] = []  # the same keys, sorted
        self._is_crowded = False
        self._dead: dict[str, bool] = {}
        self._held = held_in(tx)
        self._not_yet = backing_off(tx, repo) if self._held else {}
        self._offers = installed().offers
        self._keepers: set[str] = set()  # what they hold for the caller is not in its way
        self._others: set[str] | None = None
        role = bound_by(repo.settings, me.role)
        self._scope = Scope(role, repo.settings) if role is not None else None
        self.held_up: list[str] = []
        for task in tasks_of(tx, me.id):
            # One session may be at work on several tasks, but not on one path for two of them.
            self._remember(
                branch for pattern in self._patterns(task.stored_paths) for branch in pattern.alternatives
            )

    def find(self, role: str) -> Picked | None:
        """The first task that can be had; what was handed to the caller goes before everything else."""
        handed = self._handed(role)
        if handed and (picked := self._find_among(handed)) is not None:
            return picked
        ready = (one for one in ready_in_order(self._tx, role) if one[0] not in handed)
        size = FIRST_LOOK
        while some := dict(islice(ready, size)):
            picked = self._find_among(some)
            if picked is not None:
                return picked
            size = PAGE
        return None

    def _handed(self, role: str) -> dict[str, str]:
        """The ready tasks that wait for exactly this caller: id → declared paths."""
        addressed = self._offers.addressed_to(self._tx, self._repo, self._me)
        tasks = [find_task(self._tx, task_id) for task_id in addressed]
        return {
            task.id: task.stored_paths
            for task in tasks
            if task is not None and task.state == READY and task.role in (role, "")
        }

    def take_one(self, task_id: str, stored: str) -> Picked | None:
        """This task, if it can be had."""
        return self._find_among({task_id: stored})

    def _find_among(self, some: dict[str, str]) -> Picked | None:
        """The first of these tasks (id → declared paths) that can be had: others may be taking them, too."""
        tx = self._tx
        others = self._for_others()
        some = {
            task_id: stored
            for task_id, stored in some.items()
            if task_id not in others and task_id not in self._not_yet and self._is_in_role(stored)
        }
        while some:
            free = [task_id for task_id, stored in some.items() if not self._is_in_the_way(stored)]
            if self._is_crowded and free:
                self._look_ahead([some[task_id] for task_id in free])
                free = [task_id for task_id in free if not self._is_in_the_way(some[task_id])]
            self.held_up += [task_id for task_id in some if task_id not in free]
            tx.hold()
            row = tx.one("task_lock_ready", ids=free) if free else None
            if row is None:
                return None
            task = Task.from_row(row)
            picked = self._take(task)
            if picked is not None:
                return picked
            tx.let_go()
            self._is_crowded = True
            self.held_up.append(task.id)
            some = {task_id: some[task_id] for task_id in free if task_id != task.id}
        return None

    def _for_others(self) -> set[str]:
        """The tasks that were handed to somebody else, or that the caller has declined."""
        if self._others is None:
            self._others, self._keepers = self._offers.reserved(self._tx, self._repo, self._me)
        return self._others

    def _is_in_role(self, stored: str) -> bool:
        """Whether the role of the caller, if it has one, may take and change what a task declares."""
        scope = self._scope
        patterns = self._patterns(stored) if scope is not None else ()
        if scope is None or not patterns:
            return True
        return not why_not_verb(scope.role, "claim") and not any(map(scope.why_not_claimed, patterns))

    def _look_ahead(self, stored: Iterable[str]) -> None:
        """Remember all that others hold near these paths: where one was in the way, more will be."""
        branches = [
            branch for one in stored for pattern in self._patterns(one) for branch in pattern.alternatives
        ]
        for claim in claims_near(self._tx, branches, self._me.id):
            is_others = claim.session != self._me.id and claim.session not in self._keepers
            if is_others and not claim.is_over(self._tx.now) and not self._is_dead(claim.session):
                self._remember(claim.alternatives)

    def _is_dead(self, session: str) -> bool:
        """Whether judging would end this session: then what it holds is in nobody's way."""
        if session not in self._dead:
            self._dead[session] = is_dead(self._tx, session, self._repo.processes)
        return self._dead[session]

    def _patterns(self, stored: str) -> tuple[Pattern, ...]:
        pattern_of = self._repo.git.pattern_of
        return tuple(pattern_of(text, kind) for text, kind in pattern_pairs(stored))

    def _remember(self, branches: Iterable[Alternative]) -> None:
        for branch in branches:
            if branch.key not in self._in_the_way:
                insort(self._keys, branch.key)
            self._in_the_way.setdefault(branch.key, set()).add(branch)

    def _is_in_the_way(self, stored: str) -> bool:
        """Whether something that is known to be held overlaps these declared paths."""
        return bool(self._in_the_way) and any(
            alternatives_overlap(branch, held)
            for one in self._patterns(stored)
            for branch in one.alternatives
            for key in self._keys_near(branch.key)
            for held in self._in_the_way[key]
        )

    def _keys_near(self, key: str) -> list[str]:
        """The known keys on the way from the root to this one, and below it."""
        low, high = below(key)
        near = [up for up in ancestors(key) if up in self._in_the_way]
        return near + self._keys[bisect_right(self._keys, low) : bisect_left(self._keys, high)]

    def _take(self, task: Task) -> Picked | None:
        if task.kind == REVIEW_KIND and not self._offers.may_review(self._tx, self._me, task):
            return None
        if installed().budgets.why_over(self._tx, self._repo, task):
            return None
        if self._offers.is_handed_over(self._tx, task.id):  # again: the task is locked only now
            return self._accept(task)
        claims = self._claim(task)
        if claims is None:
            return None
        tx = self._tx
        tx.run("task_take", task=task.id, owner=self._me.agent, session=self._me.id)
        if task.id in self._held:
            let_go_in(tx, task)
        facts: dict[str, object] = {"task": task.id, "attempt": task.attempt + 1, "base": self._start}
        tx.record("task.taken", *who(self._me), facts)
        taken = replace(
            whole(tx, task),
            state=ACTIVE,
            owner=self._me.agent,
            session=self._me.id,
            attempt=task.attempt + 1,
            taken_at=tx.now,
            why="",
        )
        is_known = task.attempt or task.why or task.next_action
        lessons = (*earlier_lessons(tx, task), *(lessons_in(tx, task.id) if is_known else ()))
        return Picked(task=taken, claims=claims, lessons=lessons)

    def _accept(self, task: Task) -> Picked | None:
        """Go on with what was handed over: its content is part of the answer, and so is acknowledged."""
        accepted = self._offers.accept(self._tx, self._repo, self._me, task)
        if accepted is None:
            return None
        taken, claims = accepted
        return Picked(task=taken, claims=claims, lessons=lessons_in(self._tx, task.id))

    def _claim(self, task: Task) -> tuple[Claim, ...] | None:
        """Claims on what a task declares, which end with the session, as the task does."""
        patterns = self._patterns(task.stored_paths)
        if not patterns:
            return ()
        self._tx.lock_areas(areas_of(patterns))
        request = Request(patterns=patterns, mode=ClaimMode.EXCLUSIVE, ttl_ms=self._me.lease_ms, task=task.id)
        outcome = take_in(self._tx, self._repo, self._me, request)
        return None if isinstance(outcome, Refused) else outcome.granted
