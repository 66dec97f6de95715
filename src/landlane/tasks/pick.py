"""Pick the next task: the best one whose paths are free, taken together with its claims.

Ready tasks are walked in their order, a page at a time, along an index; nothing else is looked at. What a
task declares is judged like any claim, in the same transaction. Once a task was refused, what others hold is
remembered for the rest of the walk, so that a thousand tasks behind one held folder are passed over quickly.
"""

from __future__ import annotations

from landlane.claims.read import claims_of_task
from landlane.roles.model import forbidden
from landlane.sessions.leases import end_if_gone, is_dead, require_live, touch
from landlane.tasks.extensions import installed, settle_due
from landlane.tasks.model import ACTIVE, READY, Task
from landlane.tasks.offer import Picked, TaskSearch, backing_off, ready_in_order
from landlane.tasks.records import (
    count_tasks,
    find_task,
    lessons_in,
    task_in,
    tasks_of,
    whole,
)
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Listener, Snapshot, Transaction
    from landlane.tasks.model import Task


_MOST_NAMED = 10


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
        walk = TaskSearch(tx, repo, me, start)
        picked = walk.find(role or me.role)
        if picked is None and _bury_the_dead(tx, repo, me):
            picked = TaskSearch(tx, repo, me, start).find(role or me.role)
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
        picked = TaskSearch(tx, repo, me, base).take_one(task_id, task.stored_paths)
        if picked is not None and also is not None:
            also(tx, picked.task)
        return picked

    return repo.change(work)


def _bury_the_dead(tx: Transaction, repo: Repository, me: Session) -> bool:
    """End sessions with tasks whose processes have provably ended; tells whether there were any."""
    owners = [row["session"] for row in tx.all("tasks_owners") if row["session"] != me.id]
    ended = [owner for owner in owners if end_if_gone(tx, owner, repo.processes)]
    return bool(ended)


_LOOK_MS = 1000  # a lease that runs out wakes nobody


def wait_for_task(
    repo: Repository, session: Session, role: str, wait_ms: int, base: Callable[[], str] = lambda: ""
) -> Picked | NothingReady:
    """Take the best task, waiting for one at most so long.

    Raises:
        Stale: the session is over.
    """
    if wait_ms <= 0:
        return next_task(repo, session, role, base)
    listener = repo.store.listen()  # before looking, so that nothing added in between is missed
    try:
        return _wait(repo, session, role, wait_ms, base, listener)
    finally:
        listener.close()


def _wait(
    repo: Repository,
    session: Session,
    role: str,
    wait_ms: int,
    base: Callable[[], str],
    listener: Listener,
) -> Picked | NothingReady:
    settle_due(repo)
    outcome = try_to_pick(repo, session, role, base)
    now = _clock(repo)
    deadline = now + wait_ms
    while not isinstance(outcome, Picked):
        if now >= deadline:
            return nothing_ready(repo, session, outcome)
        now = _sleep(repo, listener, min(now + _LOOK_MS, deadline))
        touch(repo.store, session)  # who waits is alive
        settle_due(repo)  # a deadline wakes nobody
        if repo.store.view(lambda snapshot: _is_worth_trying(snapshot, repo, role or session.role)):
            outcome = try_to_pick(repo, session, role, base)
    return outcome


def _sleep(repo: Repository, listener: Listener, until: int) -> int:
    """Until something was freed or the time is up; tells the time then."""
    now = _clock(repo)
    while now < until and listener.wait((until - now) / 1000) == "entry":  # nothing was freed by that
        now = _clock(repo)
    return _clock(repo)


def _clock(repo: Repository) -> int:
    return repo.store.view(lambda snapshot: snapshot.now)


def _is_worth_trying(snapshot: Snapshot, repo: Repository, role: str) -> bool:
    """A cheap look without a lock: something is ready, or a lease is over, or an owner is dead."""
    not_yet = backing_off(snapshot, repo)
    return (
        any(task_id not in not_yet for task_id, _ in ready_in_order(snapshot, role))
        or snapshot.one("lapse_due") is not None
        or any(is_dead(snapshot, row["session"], repo.processes) for row in snapshot.all("tasks_owners"))
    )
