"""Splitting a task into branches and joining them: the task itself goes on, exactly once, with all that came.

A branch that ends looks, at the end of its own transaction, whether that was the one the join waited for. It
holds the fan still while it looks, so of branches that end at the same instant one joins, and the others see
that it did. What no branch brings about, such as a deadline, is found by whoever looks next; no process has
to stay for it.
"""

from __future__ import annotations

from landlane.claims.take import living
from landlane.errors import Held, Malformed, NotAllowed
from landlane.fanout.model import (
    ABANDONED,
    DROP,
    ENDED,
    JOINED,
    LONGEST_RESULT,
    OPEN,
    WAITING,
    Branch,
    Fan,
    check_rest,
    is_waiting_for,
    judge,
    read_policy,
    results_text,
    waiting_text,
)
from landlane.plans.add_tasks import checked_fit, enter_branches
from landlane.store import records
from landlane.tasks.add import ADDING, forget_signs
from landlane.tasks.change import owned, release_claims
from landlane.tasks.model import (
    ACTIVE,
    BLOCKED,
    DONE,
    DROPPED,
    FAILED,
    LONGEST_LINE,
    READY,
    find_loop,
    ring_error,
)
from landlane.tasks.retry import widen_in
from landlane.tasks.rows import get_in, move_task, task_from, unknown_task, who, whole
from landlane.values import as_dict, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.context import Context
    from landlane.plans.model import Plan
    from landlane.sessions.model import Session
    from landlane.store.interface import Change, Reading
    from landlane.tasks.model import Task

NOUN = "fan"
_UNSETTLED = (OPEN, JOINED)
_FAILED = ENDED - {DONE}


@value
class FannedOut:
    """A fan with its branches as they stand, and whether it is new."""

    fan: Fan
    tasks: tuple[Task, ...]
    is_new: bool


def fan_from(document: records.Document) -> Fan:
    """A fan from its record."""
    return Fan(**document)


# -------------------------------------------------------------------------------------------- splitting


def fan_out(
    context: Context,
    session: Session,
    task_id: str,
    plan: Plan,
    policy: str = "all",
    deadline_ms: int = 0,
    rest: str = DROP,
    also: Callable[[Change, FannedOut], object] = lambda _tx, _fanned: None,
) -> FannedOut:
    """Split a task into the branches that a plan names; it waits for them, and its owner lets go of it.

    The same plan again, while it waits, finds the same fan. What `also` writes is in the same transaction.

    Raises:
        Malformed: the plan or the policy cannot be used, or a branch would wait for the task itself.
        Stale: the task is another's.
        Held: it waits for another fan already.
        NotAllowed: it is in no state for that.
    """
    checked = checked_fit(context, plan)
    named = [task.name for task in plan.tasks if not task.is_ticked]
    if not named:
        raise Malformed("all of this plan is done", code="BAD_PLAN", hint="leave at least one box empty")
    kept_policy, need = read_policy(policy, len(named))
    check_rest(rest)

    def work(tx: Change) -> FannedOut:
        me = living(tx, session)
        there = _open_fan(tx, task_id)
        if there is not None:
            return FannedOut(fan=_same_plan(there, plan), tasks=_children(tx, there), is_new=False)
        task = _splittable(tx, me, task_id)
        fan_id = records.next_id(tx, NOUN)
        widen_in(tx, task.lineage, len(named))  # a planned split is no loop
        entered = enter_branches(tx, context, me, checked, task_id, fan_id)
        children = [one.id for one in entered.tasks]
        _refuse_ring(tx, task_id, children)
        now = context.store.wall_of(tx.now)
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

    return context.change(work, areas=ADDING)


def _open_fan(reading: Reading, task_id: str) -> Fan | None:
    return next((fan_from(one) for one in records.by_key(reading, NOUN, task_id, OPEN)), None)


def _same_plan(fan: Fan, plan: Plan) -> Fan:
    if fan.plan == plan.digest:
        return fan
    raise Held(
        f"{fan.task} waits for the branches of {fan.id} already",
        code="FAN_OPEN",
        hint=f"`landlane fan show {fan.id}` tells how far they are",
        holder=fan.agent,
    )


def _splittable(tx: Change, me: Session, task_id: str) -> Task:
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


def _refuse_ring(tx: Reading, task_id: str, children: Sequence[str]) -> None:
    """Refuse a branch that waits for the task which waits for it, also around corners."""
    graph: dict[str, tuple[str, ...]] = {task_id: tuple(children)}
    for one, other in tx.all("task_after_all"):
        graph[one] = (*graph.get(one, ()), other)
    ring = find_loop(graph, task_id)
    if ring:
        raise ring_error(ring)


def _let_go(tx: Change, me: Session, task: Task, fan: Fan) -> None:
    """The owner lets go in the same step: the task waits, and its paths are free for its branches."""
    why = waiting_text(fan.id, fan.children)
    move_task(tx, task, BLOCKED, why=why)
    if task.session:
        release_claims(tx, task, "")
    facts: dict[str, object] = {"task": task.id, "why": why, "fan": fan.id, "branches": list(fan.children)}
    tx.record("task.split", *who(me), {**facts, "before": task.state, "attempt": task.attempt})
    tx.frees = True


# -------------------------------------------------------------------------------------------- joining


def settle_fan_in(tx: Change, context: Context, fan_id: str) -> None:
    """Join a fan if it is time, inside a transaction that holds still whatever made it so."""
    document = records.lock(tx, NOUN, fan_id)
    if document is None or document["state"] != OPEN:
        return
    fan = fan_from(document)
    branches = _branches(tx, fan)  # behind the lock: whoever held it before has committed
    now = context.store.wall_of(tx.now)
    is_late = bool(fan.deadline_at) and now >= fan.deadline_at
    found = judge(fan.policy, fan.need, branches, is_late=is_late)
    parent = get_in(tx, fan.task)
    if parent.state != BLOCKED:
        why = f"{fan.task} is {parent.state}: it no longer waits for its branches"
        ended = replace(fan, state=ABANDONED, is_settled=True, why=why, joined_at=now)
        records.put(tx, NOUN, as_dict(ended), "abandoned")
    elif found is not None:
        results = [{**as_dict(one), "result": one.result[:LONGEST_RESULT]} for one in branches]
        has_rest = fan.rest == DROP and any(one.state in WAITING for one in branches)
        joined = replace(
            fan,
            state=JOINED,
            is_settled=not has_rest,
            is_met=found.is_met,
            why=found.why,
            results=results,
            joined_at=now,
        )
        records.put(tx, NOUN, as_dict(joined), "joined")
        _go_on(tx, parent, joined, branches)


def _go_on(tx: Change, parent: Task, fan: Fan, branches: Sequence[Branch]) -> None:
    """The task goes on with all that came; or fails with it, when that is not enough."""
    text = results_text(fan, branches, LONGEST_LINE)
    if not is_waiting_for(parent.why, fan.id):  # somebody blocked it for another reason, which stays
        tx.record("task.joined", "", "", {"task": parent.id, "why": text, "fan": fan.id, "state": BLOCKED})
        return
    then = READY if fan.is_met else FAILED
    why = f"{fan.id} joined: {fan.why}"
    action = f"go on with what the branches brought: landlane fan show {fan.id}"
    move_task(tx, parent, then, why=why, ready_at=tx.now, next_action=parent.next_action or action)
    facts = {"task": parent.id, "why": text, "fan": fan.id, "state": then, "kept_why": why}
    tx.record("task.joined", "", "", facts)
    tx.frees = True


def settle_fans(context: Context) -> int:
    """Join what is due, and drop what nobody has begun and nobody needs; tells how many fans that were.

    Quick when there is nothing to do. Any number of processes may call it at any time.
    """
    found = [fan_from(one) for one in context.store.view(lambda it: records.all_of(it, NOUN, _UNSETTLED))]
    due = [
        fan
        for fan in found
        if fan.state == JOINED or context.store.view(lambda reading, fan=fan: _is_due(reading, context, fan))
    ]
    for fan in due:
        if fan.state == OPEN:
            context.change(lambda tx, fan=fan: settle_fan_in(tx, context, fan.id))
        document = context.store.view(lambda reading, fan=fan: records.find(reading, NOUN, fan.id))
        if document is not None and document["state"] == JOINED and not document["is_settled"]:
            _drop_rest(context, fan_from(document))
    return len(due)


def _is_due(reading: Reading, context: Context, fan: Fan) -> bool:
    if fan.deadline_at and context.store.wall_of(reading.now) >= fan.deadline_at:
        return True
    row = reading.one("task_get", task=fan.task)
    is_over = judge(fan.policy, fan.need, _branches(reading, fan), is_late=False) is not None
    return is_over or row is None or row[4] != BLOCKED


def _drop_rest(context: Context, fan: Fan) -> None:
    """Drop the branches that nobody has begun; each by itself, so that nobody who ends one has to wait."""
    why = f"{fan.id} was joined without it: {fan.why}"

    def drop(tx: Change, task_id: str) -> None:
        task = get_in(tx, task_id)
        if task.state in WAITING:
            move_task(tx, task, DROPPED, why=why)
            forget_signs(tx, context, task)
            tx.record("task.dropped", "", "", {"task": task_id, "why": why, "before": task.state})

    def settle(tx: Change) -> None:
        document = records.lock(tx, NOUN, fan.id)
        if document is not None and not document["is_settled"]:
            records.put(tx, NOUN, {**document, "is_settled": True}, "settled")

    for task_id in fan.children:
        context.change(lambda tx, task_id=task_id: drop(tx, task_id))
    context.change(settle)


# -------------------------------------------------------------------------------------------- looking


def _children(reading: Reading, fan: Fan) -> tuple[Task, ...]:
    rows = reading.all("tasks_among", ids=list(fan.children))
    found = {row[0]: task_from(row) for row in rows}
    return tuple(whole(reading, found[one]) for one in fan.children if one in found)


def _branches(reading: Reading, fan: Fan) -> tuple[Branch, ...]:
    tasks = {row[0]: task_from(row) for row in reading.all("tasks_among", ids=list(fan.children))}
    tasks = {one: whole(reading, task) if task.state == BLOCKED else task for one, task in tasks.items()}
    stuck = _stuck(reading, list(tasks.values()))
    return tuple(
        Branch(
            task=one,
            name=name,
            state=tasks[one].state,
            result=tasks[one].result,
            head=tasks[one].head,
            why=tasks[one].why,
            is_stuck=one in stuck,
        )
        for one, name in zip(fan.children, fan.names, strict=True)
    )


def _stuck(reading: Reading, tasks: Sequence[Task]) -> set[str]:
    """Those that wait for one that ended without being done, or for one that does."""
    found: set[str] = set()
    blocked = {task.id: reading.all("task_after_of", task=task.id) for task in tasks if task.state == BLOCKED}
    while True:
        more = {
            task_id
            for task_id, befores in blocked.items()
            if task_id not in found and any(before in found or state in _FAILED for before, state in befores)
        }
        if not more:
            return found
        found |= more


def results_of(reading: Reading, fan: Fan) -> tuple[Branch, ...]:
    """All results and failures in the order of the plan: as the join was given them, or as they are now."""
    if fan.state == JOINED:
        return tuple(Branch(**one) for one in fan.results)
    return _branches(reading, fan)


def list_fans(context: Context, *, with_all: bool = False) -> list[Fan]:
    """The fans that are open, or all of them."""
    settle_fans(context)
    states = () if with_all else (OPEN,)
    return [fan_from(one) for one in context.store.view(lambda it: records.all_of(it, NOUN, states))]


def find_fan(context: Context, name: str) -> tuple[Fan, tuple[Branch, ...]]:
    """A fan by its id, or the newest of a task, with its results in order.

    Raises:
        Malformed: there is none.
    """

    def look(reading: Reading) -> tuple[Fan, tuple[Branch, ...]]:
        document = records.find(reading, NOUN, name)
        if document is None:
            if name[:1] == "T" and reading.one("task_get", task=name) is None:
                raise unknown_task(name)
            document = next(reversed(records.by_key(reading, NOUN, name)), None)
        if document is None:
            raise Malformed(
                f"{name[:40]!r} was not split",
                code="UNKNOWN_FAN",
                hint="`landlane fan list --all` shows all",
            )
        fan = fan_from(document)
        return fan, results_of(reading, fan)

    settle_fans(context)
    return context.store.view(look)
