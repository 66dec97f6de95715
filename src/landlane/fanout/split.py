"""Split a task into branches; fanout/join.py joins their results."""

from __future__ import annotations

from landlane.errors import Held, Malformed, NotAllowed
from landlane.fanout.model import (
    DROP,
    OPEN,
    Fan,
    check_rest,
    read_policy,
    waiting_text,
)
from landlane.fanout.records import NOUN, children_of, fan_from
from landlane.plans.add_tasks import checked_fit, enter_branches
from landlane.sessions.leases import require_live
from landlane.store import records
from landlane.tasks.add import ADDING
from landlane.tasks.finish import release_claims
from landlane.tasks.model import (
    ACTIVE,
    BLOCKED,
    READY,
    find_loop,
    ring_error,
)
from landlane.tasks.records import all_dependencies, get_in, move_task, owned, who
from landlane.tasks.retry import widen_in
from landlane.values import as_dict, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.plans.model import Plan
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Task


@value
class FannedOut:
    """A fan with its branches as they stand, and whether it is new."""

    fan: Fan
    tasks: tuple[Task, ...]
    is_new: bool


# -------------------------------------------------------------------------------------------- splitting


def fan_out(
    repo: Repository,
    session: Session,
    task_id: str,
    plan: Plan,
    policy: str = "all",
    deadline_ms: int = 0,
    rest: str = DROP,
    also: Callable[[Transaction, FannedOut], object] = lambda _tx, _fanned: None,
) -> FannedOut:
    """Split a task into the branches that a plan names; it waits for them, and its owner lets go of it.

    The same plan again, while it waits, finds the same fan. What `also` writes is in the same transaction.

    Raises:
        Malformed: the plan or the policy cannot be used, or a branch would wait for the task itself.
        Stale: the task is another's.
        Held: it waits for another fan already.
        NotAllowed: it is in no state for that.
    """
    checked = checked_fit(repo, plan)
    named = [task.name for task in plan.tasks if not task.is_ticked]
    if not named:
        raise Malformed("all of this plan is done", code="BAD_PLAN", hint="leave at least one box empty")
    kept_policy, need = read_policy(policy, len(named))
    check_rest(rest)

    def work(tx: Transaction) -> FannedOut:
        me = require_live(tx, session)
        there = _open_fan(tx, task_id)
        if there is not None:
            return FannedOut(fan=_same_plan(there, plan), tasks=children_of(tx, there), is_new=False)
        task = _splittable(tx, me, task_id)
        fan_id = records.next_id(tx, NOUN)
        widen_in(tx, task.lineage, len(named))  # a planned split is no loop
        entered = enter_branches(tx, repo, me, checked, task_id, fan_id)
        children = [one.id for one in entered.tasks]
        _refuse_ring(tx, task_id, children)
        now = repo.store.wall_of(tx.now)
        fan = Fan(
            id=fan_id,
            task=task_id,
            plan=plan.digest,
            title=plan.title,
            policy=kept_policy,
            need=need,
            rest=rest,
            children=children,
            names=named,
            agent=me.agent,
            session=me.id,
            attempt=task.attempt,
            begun_at=now,
            deadline_at=now + deadline_ms if deadline_ms else 0,
        )
        records.put(tx, NOUN, as_dict(fan), "begun", me)
        _let_go(tx, me, task, fan)
        fanned = FannedOut(fan=fan, tasks=entered.tasks, is_new=True)
        also(tx, fanned)
        return fanned

    return repo.change(work, areas=ADDING)


def _open_fan(snapshot: Snapshot, task_id: str) -> Fan | None:
    return next((fan_from(one) for one in records.by_key(snapshot, NOUN, task_id, OPEN)), None)


def _same_plan(fan: Fan, plan: Plan) -> Fan:
    if fan.plan == plan.digest:
        return fan
    raise Held(
        f"{fan.task} waits for the branches of {fan.id} already",
        code="FAN_OPEN",
        hint=f"`landlane fan show {fan.id}` tells how far they are",
        holder=fan.agent,
    )


def _splittable(tx: Transaction, me: Session, task_id: str) -> Task:
    task = get_in(tx, task_id)
    if task.state == READY:
        return task
    if task.state == ACTIVE:
        return owned(tx, me, task_id, by_hands=True)
    raise NotAllowed(
        f"{task_id} is {task.state}: it cannot be split now",
        code="TASK_WRONG_STATE",
        hint="a task is split while it is ready, or by its owner",
        state=task.state,
    )


def _refuse_ring(tx: Snapshot, task_id: str, children: Sequence[str]) -> None:
    """Refuse a branch that waits for the task which waits for it, also around corners."""
    graph: dict[str, tuple[str, ...]] = {task_id: tuple(children)}
    for task, before in all_dependencies(tx):
        graph[task] = (*graph.get(task, ()), before)
    ring = find_loop(graph, task_id)
    if ring:
        raise ring_error(ring)


def _let_go(tx: Transaction, me: Session, task: Task, fan: Fan) -> None:
    """The owner lets go in the same step: the task waits, and its paths are free for its branches."""
    why = waiting_text(fan.id, fan.children)
    move_task(tx, task, BLOCKED, why=why)
    if task.session:
        release_claims(tx, task, "")
    facts: dict[str, object] = {"task": task.id, "why": why, "fan": fan.id, "branches": list(fan.children)}
    tx.record("task.split", *who(me), {**facts, "before": task.state, "attempt": task.attempt})
    tx.frees = True


# -------------------------------------------------------------------------------------------- joining


# -------------------------------------------------------------------------------------------- looking
