"""Offer ready tasks in order, and take the first whose paths are free together with its claims.

Ready tasks are read in order of rank, a page at a time, from an index. The declared paths of a task are
claimed like any other paths, in the same transaction. After the first refusal, the claims of other sessions
are remembered for the rest of the search, so that a thousand tasks behind one claimed folder are skipped
quickly.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from itertools import islice

from landlane.claims.model import Claim, ClaimMode, Refused, Request
from landlane.claims.read import claims_near
from landlane.claims.take import take_in
from landlane.patterns.pattern import Alternative, alternatives_overlap, ancestors, areas_of, below
from landlane.roles.built_in import bound_by
from landlane.roles.model import Scope, why_not_verb
from landlane.sessions.leases import is_dead
from landlane.tasks.extensions import installed
from landlane.tasks.lineage import earlier_lessons, held_in, let_go_in
from landlane.tasks.model import ACTIVE, READY, REVIEW_KIND, Task
from landlane.tasks.records import (
    find_task,
    lessons_in,
    pattern_pairs,
    tasks_of,
    who,
    whole,
)
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Lesson, Task


FIRST_PAGE = 4  # usually one of the first tasks can be taken
PAGE = 50


@value
class Picked:
    """A task that is the caller's now, the claims on its paths, and what earlier owners left behind."""

    task: Task
    claims: tuple[Claim, ...]
    lessons: tuple[Lesson, ...] = ()
    is_resumed: bool = False


def backing_off(snapshot: Snapshot, repo: Repository) -> dict[str, int]:
    """The tasks whose time has not come after a failure, each with the instant at which it does."""
    held = held_in(snapshot)
    now = repo.store.wall_of(snapshot.now) if held else 0
    return {task_id: until for task_id, until in held.items() if until > now}


def ready_in_order(snapshot: Snapshot, role: str) -> Iterator[tuple[str, str]]:
    """The ready tasks for a role and those for everybody, best first: (id, declared paths)."""
    lines = [_line(snapshot, one) for one in dict.fromkeys((role, ""))]
    heads = [next(line, None) for line in lines]
    while any(head is not None for head in heads):
        best = min((head for head in heads if head is not None), key=lambda head: head[:3])
        at = heads.index(best)
        heads[at] = next(lines[at], None)
        yield best[2], best[3]


def _line(snapshot: Snapshot, role: str) -> Iterator[tuple[int, int, str, str]]:
    """The ready tasks of one role: (rank, length of the id, id, declared paths), page by page."""
    rank, last, limit = -(2**62), "", FIRST_PAGE
    while rows := snapshot.all("tasks_ready_after", role=role, rank=rank, id=last, limit=limit):
        for row in rows:
            last, rank = row["id"], row["rank"]
            yield rank, len(last), last, row["paths"]
        if len(rows) < limit:
            return
        limit = PAGE


class TaskSearch:
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
        size = FIRST_PAGE
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
