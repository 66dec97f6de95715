"""Pick the next task: the first in order whose paths are free, taken together with its claims.

Ready tasks are read in order of rank, a page at a time, from an index. The declared paths of a task are
claimed like any other paths, in the same transaction. After the first refusal, the claims of other sessions
are remembered for the rest of the search, so that a thousand tasks behind one claimed folder are skipped
quickly.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right, insort
from heapq import merge
from itertools import islice

from landlane.claims.agent_locks import find_agent_locks
from landlane.claims.claim_paths import save_former_work
from landlane.claims.model import Claim, ClaimMode, Refused, Request
from landlane.claims.take import claims_near, claims_of_task, take_in
from landlane.patterns.pattern import Alternative, alternatives_overlap, ancestors, areas_of, below
from landlane.roles.model import Scope, forbidden, role_or_read_only, why_not_verb
from landlane.sessions.leases import end_if_gone, is_dead, require_live, touch
from landlane.tasks.extensions import installed, settle_due
from landlane.tasks.lineage import earlier_lessons, held_in, stop_holding_in
from landlane.tasks.model import ACTIVE, ASSIGNED, READY, REVIEW_KIND, Task, assignee_of, is_assigned_to
from landlane.tasks.records import (
    count_tasks,
    declared_patterns,
    find_task,
    lessons_in,
    read_task,
    take_ownership,
    tasks_of,
    with_dependencies,
)
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from landlane.claims.model import SavedWork
    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Listener, Snapshot, Transaction
    from landlane.tasks.model import Lesson


_FIRST_PAGE = 4  # usually one of the first tasks can be taken
_PAGE = 50
_MAX_NAMED = 10
_POLL_MS = 1000  # the end of a lease or of a back-off notifies no waiting process


@value
class Picked:
    """A task that the caller owns now, the claims on its paths, and what earlier owners left.

    `saved` is what a former holder of these paths left on them when its lease expired.
    """

    task: Task
    claims: tuple[Claim, ...]
    lessons: tuple[Lesson, ...] = ()
    is_resumed: bool = False
    saved: SavedWork | None = None


@value
class NothingReady:
    """There is no task to take: how many are in each open state, and which wait for paths that are held."""

    counts: dict[str, int]
    held_up: tuple[str, ...]
    in_hand: tuple[str, ...] = ()  # tasks that the caller already works on
    held_back: tuple[tuple[str, int], ...] = ()  # ready, but not before a wall-clock time
    over_budget: tuple[tuple[str, str], ...] = ()  # ready, but a budget is used up; each with the reason


def next_task(
    repo: Repository,
    session: Session,
    role: str = "",
    base: Callable[[], str] = lambda: "",
    *,
    wait_ms: int = 0,
) -> Picked | NothingReady:
    """Take the best ready task whose paths are free, and its paths; wait for one at most this long.

    What a former holder left on these paths is saved: `Picked.saved`.

    `base` returns the commit that the work starts from; earlier commits are not evidence of work.

    Raises:
        Stale: the session has ended.
    """
    # Listen before the first try, so that no task added in between is missed.
    listener = repo.store.listen() if wait_ms > 0 else None
    try:
        settle_due(repo)
        outcome = _try_to_pick(repo, session, role, base)
        deadline = _clock(repo) + wait_ms if listener is not None else 0
        while listener is not None and not isinstance(outcome, Picked) and _clock(repo) < deadline:
            _wait(repo, listener, deadline)
            touch(repo.store, session)  # a waiting session is alive
            settle_due(repo)
            if repo.store.view(lambda snapshot: _is_worth_trying(snapshot, repo, role or session.role)):
                outcome = _try_to_pick(repo, session, role, base)
    finally:
        if listener is not None:
            listener.close()
    if isinstance(outcome, Picked):
        return _with_saved_work(repo, session, outcome)
    return _nothing_ready(repo, session, outcome)


def _with_saved_work(repo: Repository, session: Session, picked: Picked) -> Picked:
    saved = save_former_work(repo, session, picked.claims)
    return picked if saved is None else replace(picked, saved=saved)


def _wait(repo: Repository, listener: Listener, deadline: int) -> None:
    """Wait until something was freed, or for one poll interval."""
    now = _clock(repo)
    until = min(now + _POLL_MS, deadline)
    while now < until and listener.wait((until - now) / 1000) == "entry":  # nothing was freed by that
        now = _clock(repo)


def _clock(repo: Repository) -> int:
    return repo.store.view(lambda snapshot: snapshot.now)


def _is_worth_trying(snapshot: Snapshot, repo: Repository, role: str) -> bool:
    """Return, without a lock, whether a task is ready, a lease is over or an owner is dead."""
    backing_off = _tasks_backing_off(snapshot, repo)
    return (
        any(task_id not in backing_off for task_id, _ in _ready_in_order(snapshot, role))
        or snapshot.one("lapse_due") is not None
        or any(is_dead(snapshot, row["session"], repo.processes) for row in snapshot.all("tasks_owners"))
    )


def _nothing_ready(repo: Repository, session: Session, held_up: list[str]) -> NothingReady:
    """Return why there is no task to take."""

    def look(snapshot: Snapshot) -> NothingReady:
        backing_off = _tasks_backing_off(snapshot, repo)
        over = _over_budget(snapshot, repo, held_up)
        return NothingReady(
            counts=counts,
            held_up=tuple([task_id for task_id in held_up if task_id not in over][:_MAX_NAMED]),
            over_budget=tuple(over.items())[:_MAX_NAMED],
            in_hand=tuple(task.id for task in _active_tasks(snapshot, session)),
            held_back=tuple(sorted(backing_off.items(), key=lambda item: item[1])[:_MAX_NAMED]),
        )

    counts = count_tasks(repo)
    return repo.store.view(look)


def _over_budget(snapshot: Snapshot, repo: Repository, task_ids: Iterable[str]) -> dict[str, str]:
    """Return those of these tasks that have no budget left, each with the reason."""
    why_over = installed().budgets.why_over
    tasks = (find_task(snapshot, task_id) for task_id in dict.fromkeys(task_ids))
    reasons = {task.id: why_over(snapshot, repo, task) for task in tasks if task is not None}
    return {task_id: why for task_id, why in reasons.items() if why}


def _active_tasks(snapshot: Snapshot, session: Session) -> list[Task]:
    """Return the tasks that a session works on, the one it took first first."""
    tasks = (task for task in tasks_of(snapshot, session.id) if task.state == ACTIVE)
    return sorted(tasks, key=lambda task: task.taken_at)


def resume_task(repo: Repository, session: Session) -> Picked | None:
    """Return the task that this session took and has not ended, for an agent that was started again.

    Raises:
        Stale: the session has ended.
    """

    def work(tx: Transaction) -> Picked | None:
        me = require_live(tx, session)
        task = next(iter(_active_tasks(tx, me)), None)
        if task is None:
            return None
        claims, lessons = tuple(claims_of_task(tx, me.id, task.id)), lessons_in(tx, task.id)
        return Picked(task=with_dependencies(tx, task), claims=claims, lessons=lessons, is_resumed=True)

    return repo.change(work)


def take_task(
    repo: Repository,
    session: Session,
    task_id: str,
    base: str,
    also: Callable[[Transaction, Task], None] = lambda _tx, _task: None,
    *,
    is_allowed: Callable[[Transaction], bool] = lambda _: True,
    areas: dict[str, bool] | None = None,
) -> Picked | None:
    """Take this task and its paths; None if it is not ready, its paths are held, or it is not allowed now.

    `is_allowed` is asked in the transaction, which locks `areas`; `also` runs in it with the task that was
    taken.

    Raises:
        Stale: the session has ended.
        Malformed: there is no such task.
    """

    def work(tx: Transaction) -> Picked | None:
        me = require_live(tx, session)
        task = read_task(tx, task_id)
        _check_role(me, task.role)
        if task.state != READY or not is_allowed(tx):
            return None
        picked = _TaskSearch(tx, repo, me, base).find_among({task_id: task.stored_paths})
        if picked is not None:
            also(tx, picked.task)
        return picked

    picked = repo.change(work, areas=areas)
    return picked if picked is None else _with_saved_work(repo, session, picked)


def _try_to_pick(
    repo: Repository, session: Session, role: str, base: Callable[[], str]
) -> Picked | list[str]:
    """Take a task, or return those that are ready except for their paths."""
    start = base()

    def work(tx: Transaction) -> Picked | list[str]:
        me = require_live(tx, session)
        _check_role(me, role)
        search = _TaskSearch(tx, repo, me, start)
        picked = search.find(role or me.role)
        if picked is None and _end_dead_owners(tx, repo, me):
            picked = _TaskSearch(tx, repo, me, start).find(role or me.role)
        return picked if picked is not None else search.held_up

    return repo.change(work)


def _check_role(me: Session, role: str) -> None:
    """Refuse tasks of another role than the session's own."""
    if me.role and role and role != me.role:
        raise forbidden(me.agent, me.role, f"a task for the role {role} is not for the role {me.role}")


def _end_dead_owners(tx: Transaction, repo: Repository, me: Session) -> bool:
    """End sessions with tasks whose processes have certainly ended; return whether there were any."""
    owners = [row["session"] for row in tx.all("tasks_owners") if row["session"] != me.id]
    ended = [owner for owner in owners if end_if_gone(tx, owner, repo.processes)]
    return bool(ended)


def _tasks_backing_off(snapshot: Snapshot, repo: Repository) -> dict[str, int]:
    """Return the tasks that wait after a failure, each with the wall-clock time until then."""
    held = held_in(snapshot)
    now = repo.store.wall_of(snapshot.now) if held else 0
    return {task_id: until for task_id, until in held.items() if until > now}


def _ready_in_order(snapshot: Snapshot, role: str) -> Iterator[tuple[str, str]]:
    """Yield the ready tasks for a role and those for every role, best first: (id, declared paths)."""
    for _, _, task_id, paths in merge(*(_ready_for(snapshot, one) for one in dict.fromkeys((role, "")))):
        yield task_id, paths


def _ready_for(snapshot: Snapshot, role: str) -> Iterator[tuple[int, int, str, str]]:
    """Yield the ready tasks of one role, page by page: (rank, length of the id, id, declared paths)."""
    rank, last, limit = -(2**62), "", _FIRST_PAGE
    while rows := snapshot.all("tasks_ready_after", role=role, rank=rank, id=last, limit=limit):
        for row in rows:
            last, rank = row["id"], row["rank"]
            yield rank, len(last), last, row["paths"]
        if len(rows) < limit:
            return
        limit = _PAGE


class _TaskSearch:
    """One search through the ready tasks, which takes the first that it can."""

    def __init__(self, tx: Transaction, repo: Repository, me: Session, base: str) -> None:
        self._tx = tx
        self._repo = repo
        self._me = me
        self._base = base
        self._held: dict[str, set[Alternative]] = {}  # known claims of others, by key
        self._held_keys: list[str] = []  # the same keys, sorted
        self._was_refused = False
        self._dead: dict[str, bool] = {}
        self._held_back = held_in(tx)
        self._backing_off = _tasks_backing_off(tx, repo) if self._held_back else {}
        self._offers = installed().offers
        # The tasks that are for others, and the sessions that hold claims for the caller.
        self._reserved, self._holders = self._offers.reserved(tx, repo, me)
        # The ready tasks that are for exactly this caller: id → role, declared paths.
        self._assigned: dict[str, tuple[str, str]] = {}
        for row in tx.all("tasks_assigned", pattern=f'%"{ASSIGNED}%'):
            assignee = assignee_of(json.loads(row["labels"]))
            if is_assigned_to(assignee, row["id"], me.agent, is_person=me.is_person):
                self._assigned[row["id"]] = row["role"], row["paths"]
            else:
                self._reserved.add(row["id"])
        role = role_or_read_only(repo.settings, me.role)
        self._scope = Scope(role, repo.settings) if role is not None else None
        self.held_up: list[str] = []
        for task in tasks_of(tx, me.id):
            # One session may work on several tasks, but not on one path for two of them.
            self._remember(self._alternatives(task.stored_paths))

    def find(self, role: str) -> Picked | None:
        """Take the first task that is available; tasks handed to the caller come before all others."""
        assigned = {
            task_id: paths
            for task_id, (wanted, paths) in self._assigned.items()
            if not role or wanted in (role, "")
        }
        handed = {**self._handed_to_me(role), **assigned}
        if handed and (picked := self.find_among(handed)) is not None:
            return picked
        ready = (task for task in _ready_in_order(self._tx, role) if task[0] not in handed)
        size = _FIRST_PAGE
        while page := dict(islice(ready, size)):
            picked = self.find_among(page)
            if picked is not None:
                return picked
            size = _PAGE
        return None

    def _handed_to_me(self, role: str) -> dict[str, str]:
        """Return the ready tasks that were handed to exactly this caller: id → declared paths."""
        addressed = self._offers.addressed_to(self._tx, self._repo, self._me)
        tasks = [find_task(self._tx, task_id) for task_id in addressed]
        return {
            task.id: task.stored_paths
            for task in tasks
            if task is not None and task.state == READY and task.role in (role, "")
        }

    def find_among(self, tasks: dict[str, str]) -> Picked | None:
        """Take the first of these tasks (id → declared paths) that no other session takes meanwhile."""
        tx = self._tx
        tasks = {
            task_id: stored
            for task_id, stored in tasks.items()
            if task_id not in self._reserved and task_id not in self._backing_off and self._is_in_role(stored)
        }
        while tasks:
            free = [task_id for task_id, stored in tasks.items() if not self._is_held(stored)]
            if self._was_refused and free:
                self._look_ahead([tasks[task_id] for task_id in free])
                free = [task_id for task_id in free if not self._is_held(tasks[task_id])]
            self.held_up += [task_id for task_id in tasks if task_id not in free]
            tx.set_savepoint()
            row = tx.one("task_lock_ready", ids=free) if free else None
            if row is None:
                return None
            task = Task.from_row(row)
            picked = self._take(task)
            if picked is not None:
                return picked
            tx.undo_to_savepoint()
            self._was_refused = True
            self.held_up.append(task.id)
            tasks = {task_id: tasks[task_id] for task_id in free if task_id != task.id}
        return None

    def _is_in_role(self, stored: str) -> bool:
        """Return whether the role of the caller, if it has one, may claim these declared paths."""
        scope = self._scope
        patterns = self._patterns(stored) if scope is not None else ()
        if scope is None or not patterns:
            return True
        return not why_not_verb(scope.role, "claim") and not any(map(scope.why_not_claimed, patterns))

    def _look_ahead(self, stored: Iterable[str]) -> None:
        """Remember all claims of others near these paths: after one refusal, more are likely."""
        alternatives = [alternative for paths in stored for alternative in self._alternatives(paths)]
        for claim in claims_near(self._tx, alternatives, self._me.id):
            is_others = claim.session != self._me.id and claim.session not in self._holders
            if is_others and not claim.is_over(self._tx.now) and not self._is_dead(claim.session):
                self._remember(claim.alternatives)

    def _is_dead(self, session: str) -> bool:
        """Return whether a session is about to be ended, so that its claims block no other session."""
        if session not in self._dead:
            self._dead[session] = is_dead(self._tx, session, self._repo.processes)
        return self._dead[session]

    def _patterns(self, stored: str) -> tuple[Pattern, ...]:
        pattern_of = self._repo.git.pattern_of
        return tuple(pattern_of(text, kind) for text, kind in declared_patterns(stored))

    def _alternatives(self, stored: str) -> list[Alternative]:
        return [alternative for pattern in self._patterns(stored) for alternative in pattern.alternatives]

    def _remember(self, alternatives: Iterable[Alternative]) -> None:
        for alternative in alternatives:
            if alternative.key not in self._held:
                insort(self._held_keys, alternative.key)
            self._held.setdefault(alternative.key, set()).add(alternative)

    def _is_held(self, stored: str) -> bool:
        """Return whether a known claim of others overlaps these declared paths."""
        return bool(self._held) and any(
            alternatives_overlap(alternative, held)
            for alternative in self._alternatives(stored)
            for key in self._held_near(alternative.key)
            for held in self._held[key]
        )

    def _held_near(self, key: str) -> list[str]:
        """Return the known keys between the root and this one, and below it."""
        low, high = below(key)
        near = [above for above in ancestors(key) if above in self._held]
        return near + self._held_keys[bisect_right(self._held_keys, low) : bisect_left(self._held_keys, high)]

    def _take(self, task: Task) -> Picked | None:
        tx, me = self._tx, self._me
        if task.kind == REVIEW_KIND and not self._offers.may_review(tx, me, task):
            return None
        if installed().budgets.why_over(tx, self._repo, task):
            return None
        if self._offers.is_handed_over(tx, task.id):  # checked again, because the task is locked only now
            accepted = self._offers.accept(tx, self._repo, me, task)
            if accepted is None:
                return None
            taken, claims = accepted
            return Picked(task=taken, claims=claims, lessons=lessons_in(tx, task.id))
        claims = self._claim(task)
        if claims is None:
            return None
        taken = take_ownership(tx, me, task, base=self._base)
        if task.id in self._held_back:
            stop_holding_in(tx, task)
        has_history = task.attempt or task.why or task.next_action
        lessons = (*earlier_lessons(tx, task), *(lessons_in(tx, task.id) if has_history else ()))
        return Picked(task=taken, claims=claims, lessons=lessons)

    def _claim(self, task: Task) -> tuple[Claim, ...] | None:
        """Claim the declared paths of a task; the claims end with the session, as its ownership does."""
        patterns = self._patterns(task.stored_paths)
        if not patterns:
            return ()
        if find_agent_locks(self._repo, patterns, self._tx):
            return None
        self._tx.lock_areas(areas_of(patterns))
        request = Request(patterns=patterns, mode=ClaimMode.EXCLUSIVE, ttl_ms=self._me.lease_ms, task=task.id)
        outcome = take_in(self._tx, self._repo, self._me, request)
        return None if isinstance(outcome, Refused) else outcome.granted
