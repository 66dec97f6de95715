"""Split a task into branches; `join.py` joins their results."""

from __future__ import annotations

from landlane.errors import Held, Malformed, NotAllowed
from landlane.fanout.model import DROP, KEEP, OPEN, Fan, read_policy, waiting_text
from landlane.fanout.records import NOUN, children_of, fans_of_task
from landlane.plans.add_tasks import add_branches, require_valid_plan
from landlane.sessions.leases import require_live
from landlane.store import records
from landlane.tasks.add import ADD_LOCK
from landlane.tasks.finish import release_claims
from landlane.tasks.lineage import allow_split_in
from landlane.tasks.model import ACTIVE, BLOCKED, READY, cycle_error, find_dependency_cycle
from landlane.tasks.records import (
    actor_of,
    all_dependencies,
    lock_task,
    move_task,
    require_owner,
    with_dependencies,
)
from landlane.text import list_some
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
class SplitTask:
    """A fan-out with its branches as they are now, and whether it is new."""

    fan: Fan
    tasks: tuple[Task, ...]
    is_new: bool


def split_task(
    repo: Repository,
    session: Session,
    task_id: str,
    plan: Plan,
    policy: str = "all",
    deadline_ms: int = 0,
    rest: str = DROP,
    also: Callable[[Transaction, SplitTask], object] = lambda _tx, _fanned: None,
) -> SplitTask:
    """Split a task into the branches of a plan; it waits for them, and its owner releases it.

    The same plan again, while the task waits, returns the same fan-out. `also` runs in the same transaction.

    Raises:
        Malformed: the plan or the policy cannot be used, or a branch would wait for the task itself.
        Stale: the task belongs to another session.
        Held: it already waits for other branches.
        NotAllowed: its state does not allow it.
    """
    checked = require_valid_plan(repo, plan)
    names = [task.name for task in plan.tasks if not task.is_ticked]
    if not names:
        raise Malformed("all of this plan is done", code="BAD_PLAN", hint="leave at least one box unticked")
    policy, need = read_policy(policy, len(names))
    if rest not in (DROP, KEEP):
        raise Malformed(
            f"--rest {rest[:40]} is not valid", code="BAD_REST", hint="use --rest drop or --rest keep"
        )

    def work(tx: Transaction) -> SplitTask:
        me = require_live(tx, session)
        for known in fans_of_task(tx, task_id, OPEN):
            _check_same_plan(known, plan)
            children = children_of(tx, known).values()
            tasks = tuple(with_dependencies(tx, child) for child in children)
            return SplitTask(fan=known, tasks=tasks, is_new=False)
        task = _lock_splittable(tx, me, task_id)
        fan_id = records.next_id(tx, NOUN)
        allow_split_in(tx, task.lineage, len(names))  # a planned split does not count as a retry loop
        added = add_branches(tx, repo, me, checked, task_id, fan_id)
        branch_ids = [branch.id for branch in added.tasks]
        _check_no_cycle(tx, task_id, branch_ids)
        now = repo.store.wall_of(tx.now)
        fan = Fan(
            id=fan_id,
            task=task_id,
            plan=plan.digest,
            title=plan.title,
            policy=policy,
            need=need,
            rest=rest,
            children=branch_ids,
            names=names,
            agent=me.agent,
            session=me.id,
            attempt=task.attempt,
            begun_at=now,
            deadline_at=now + deadline_ms if deadline_ms else 0,
        )
        records.put(tx, NOUN, as_dict(fan), "begun", me)
        _release_task(tx, me, task, fan)
        split = SplitTask(fan=fan, tasks=added.tasks, is_new=True)
        also(tx, split)
        return split

    return repo.change(work, areas=ADD_LOCK)


def _check_same_plan(fan: Fan, plan: Plan) -> None:
    if fan.plan != plan.digest:
        raise Held(
            f"{fan.task} is already split into {list_some(fan.children, 8)}",
            code="FAN_OPEN",
            hint=f"see where they stand: landlane task parts {fan.task}",
            holder=fan.agent,
        )


def _lock_splittable(tx: Transaction, me: Session, task_id: str) -> Task:
    task = lock_task(tx, task_id)
    if task.state == READY:
        return task
    if task.state == ACTIVE:
        return require_owner(tx, me, task_id, allow_worker=True)
    raise NotAllowed(
        f"{task_id} {task.title} is {task.state}; only a ready task or your own can be split",
        code="TASK_WRONG_STATE",
        hint=f"see where it stands: landlane task show {task_id}",
        state=task.state,
    )


def _check_no_cycle(tx: Snapshot, task_id: str, children: Sequence[str]) -> None:
    """Refuse a branch that waits, directly or indirectly, for the task that waits for it."""
    graph: dict[str, tuple[str, ...]] = {task_id: tuple(children)}
    for task, before in all_dependencies(tx):
        graph[task] = (*graph.get(task, ()), before)
    if cycle := find_dependency_cycle(graph, task_id):
        raise cycle_error(cycle)


def _release_task(tx: Transaction, me: Session, task: Task, fan: Fan) -> None:
    """Block the task and release its claims, so that its branches can claim the same paths."""
    why = waiting_text(fan)
    move_task(tx, task, BLOCKED, why=why)
    if task.session:
        release_claims(tx, task, "")
    facts: dict[str, object] = {"task": task.id, "why": why, "fan": fan.id, "branches": list(fan.children)}
    tx.record("task.split", *actor_of(me), {**facts, "before": task.state, "attempt": task.attempt})
    tx.has_freed = True
