"""Join a split task when enough of its branches are done; drop the rest.

A branch that ends looks, at the end of its own transaction, whether the join waited for it. It locks the
fan-out while it looks: of branches that end at the same moment one joins, and the others see that it did.
What no branch brings about, such as a deadline, is found by the next process that looks.
"""

from __future__ import annotations

from landlane.fanout.model import (
    ABANDONED,
    DROP,
    JOINED,
    LONGEST_RESULT,
    OPEN,
    WAITING,
    Branch,
    Fan,
    is_waiting_for,
    judge,
    results_text,
)
from landlane.fanout.records import NOUN, branches_of, fan_from
from landlane.store import records
from landlane.tasks.add import forget_signs
from landlane.tasks.model import (
    BLOCKED,
    DROPPED,
    FAILED,
    LONGEST_LINE,
    READY,
)
from landlane.tasks.records import find_task, get_in, move_task
from landlane.values import as_dict, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.repository import Repository
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Task


_UNSETTLED = (OPEN, JOINED)


def settle_fan_in(tx: Transaction, repo: Repository, fan_id: str) -> None:
    """Join a fan if it is time, inside a transaction that holds still whatever made it so."""
    document = records.lock(tx, NOUN, fan_id)
    if document is None or document["state"] != OPEN:
        return
    fan = fan_from(document)
    branches = branches_of(tx, fan)  # behind the lock: whoever held it before has committed
    now = repo.store.wall_of(tx.now)
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


def _go_on(tx: Transaction, parent: Task, fan: Fan, branches: Sequence[Branch]) -> None:
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


def settle_fans(repo: Repository) -> int:
    """Join what is due, and drop what nobody has begun and nobody needs; tells how many fans that were.

    Quick when there is nothing to do. Any number of processes may call it at any time.
    """
    found = [fan_from(one) for one in repo.store.view(lambda it: records.all_of(it, NOUN, _UNSETTLED))]
    due = [
        fan
        for fan in found
        if fan.state == JOINED or repo.store.view(lambda snapshot, fan=fan: _is_due(snapshot, repo, fan))
    ]
    for fan in due:
        if fan.state == OPEN:
            repo.change(lambda tx, fan=fan: settle_fan_in(tx, repo, fan.id))
        document = repo.store.view(lambda snapshot, fan=fan: records.find(snapshot, NOUN, fan.id))
        if document is not None and document["state"] == JOINED and not document["is_settled"]:
            _drop_rest(repo, fan_from(document))
    return len(due)


def _is_due(snapshot: Snapshot, repo: Repository, fan: Fan) -> bool:
    if fan.deadline_at and repo.store.wall_of(snapshot.now) >= fan.deadline_at:
        return True
    task = find_task(snapshot, fan.task)
    is_over = judge(fan.policy, fan.need, branches_of(snapshot, fan), is_late=False) is not None
    return is_over or task is None or task.state != BLOCKED


def _drop_rest(repo: Repository, fan: Fan) -> None:
    """Drop the branches that nobody has begun; each by itself, so that nobody who ends one has to wait."""
    why = f"{fan.id} was joined without it: {fan.why}"

    def drop(tx: Transaction, task_id: str) -> None:
        task = get_in(tx, task_id)
        if task.state in WAITING:
            move_task(tx, task, DROPPED, why=why)
            forget_signs(tx, repo, task)
            tx.record("task.dropped", "", "", {"task": task_id, "why": why, "before": task.state})

    def settle(tx: Transaction) -> None:
        document = records.lock(tx, NOUN, fan.id)
        if document is not None and not document["is_settled"]:
            records.put(tx, NOUN, {**document, "is_settled": True}, "settled")

    for task_id in fan.children:
        repo.change(lambda tx, task_id=task_id: drop(tx, task_id))
    repo.change(settle)
