"""Join a split task when enough of its branches are done; find and list split tasks.

The transaction that ends a branch checks, before it commits, whether the task can be joined. It locks the
fan-out first: of branches that end at the same moment one joins, and the others see that it did. Deadlines
are found by the next process that calls `settle_fans`.
"""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.fanout.model import (
    ABANDONED,
    DROP,
    JOINED,
    LONGEST_RESULT,
    NOT_STARTED,
    OPEN,
    BranchResult,
    Fan,
    decide_join,
    is_waiting_for,
    results_text,
)
from landlane.fanout.records import NOUN, branches_of, fans_in, fans_of_task, results_of
from landlane.store import records
from landlane.tasks.finish import drop_unneeded
from landlane.tasks.model import BLOCKED, FAILED, LONGEST_LINE, READY
from landlane.tasks.records import find_task, lock_task, move_task, unknown_task_error
from landlane.values import as_dict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Task


def settle_fan(tx: Transaction, repo: Repository, fan_id: str) -> None:
    """Join a fan-out if its branches allow it, inside the transaction that changed one of them."""
    document = records.lock(tx, NOUN, fan_id)
    if document is None or document["state"] != OPEN:
        return
    fan = Fan.from_document(document)
    branches = branches_of(tx, fan)  # after locking, so that the changes of others are visible
    now = repo.store.wall_of(tx.now)
    is_late = bool(fan.deadline_at) and now >= fan.deadline_at
    decision = decide_join(fan.policy, fan.need, branches, is_late=is_late)
    parent = lock_task(tx, fan.task)
    if parent.state != BLOCKED:
        why = f"{fan.task} is {parent.state}: it no longer waits for its parts"
        abandoned = fan.become(ABANDONED, is_settled=True, why=why, joined_at=now)
        records.put(tx, NOUN, as_dict(abandoned), "abandoned")
    elif decision is not None:
        has_rest = fan.rest == DROP and any(branch.state in NOT_STARTED for branch in branches)
        joined = fan.become(
            JOINED,
            is_settled=not has_rest,
            is_met=decision.is_met,
            why=decision.why,
            results=[{**as_dict(branch), "result": branch.result[:LONGEST_RESULT]} for branch in branches],
            joined_at=now,
        )
        records.put(tx, NOUN, as_dict(joined), "joined")
        _resume_task(tx, parent, joined, results_text(joined, branches, LONGEST_LINE))


def _resume_task(tx: Transaction, task: Task, fan: Fan, text: str) -> None:
    """Make a split task ready, or failed if the policy is not met; the journal gets the results."""
    facts: dict[str, object] = {"task": task.id, "why": text, "fan": fan.id, "state": BLOCKED}
    if is_waiting_for(task.why, fan.id):  # otherwise it was blocked by hand for another reason, too
        state = READY if fan.is_met else FAILED
        why = f"{fan.id} joined: {fan.why}"
        action = f"continue with the results of its parts: landlane task parts {fan.task}"
        move_task(tx, task, state, why=why, ready_at=tx.now, next_action=task.next_action or action)
        facts |= {"state": state, "kept_why": why}
        tx.has_freed = True
    tx.record("task.joined", "", "", facts)


def settle_fans(repo: Repository) -> int:
    """Join the fan-outs that are due, and drop branches that are not needed; return how many were due.

    Quick when there is nothing to do. Any number of processes may call it at any time.
    """
    due = 0
    for fan in repo.store.view(lambda snapshot: fans_in(snapshot, (OPEN, JOINED))):
        if fan.state == OPEN:
            if not repo.store.view(lambda snapshot, fan=fan: _is_due(snapshot, repo, fan)):
                continue
            repo.change(lambda tx, fan=fan: settle_fan(tx, repo, fan.id))
        due += 1
        document = repo.store.view(lambda snapshot, fan=fan: records.find(snapshot, NOUN, fan.id))
        if document is not None and document["state"] == JOINED and not document["is_settled"]:
            _drop_rest(repo, Fan.from_document(document))
    return due


def _is_due(snapshot: Snapshot, repo: Repository, fan: Fan) -> bool:
    is_late = bool(fan.deadline_at) and repo.store.wall_of(snapshot.now) >= fan.deadline_at
    if decide_join(fan.policy, fan.need, branches_of(snapshot, fan), is_late=is_late) is not None:
        return True
    task = find_task(snapshot, fan.task)
    return task is None or task.state != BLOCKED


def _drop_rest(repo: Repository, fan: Fan) -> None:
    """Drop the branches that are not started, each in a transaction of its own, so that locks are short."""

    def drop(tx: Transaction, task_id: str) -> None:
        task = lock_task(tx, task_id)
        if task.state in NOT_STARTED:
            drop_unneeded(tx, repo, task, f"{fan.id} was joined without it: {fan.why}")

    def settle(tx: Transaction) -> None:
        document = records.lock(tx, NOUN, fan.id)
        if document is not None and not document["is_settled"]:
            records.put(tx, NOUN, {**document, "is_settled": True}, "settled")

    for task_id in fan.children:
        repo.change(lambda tx, task_id=task_id: drop(tx, task_id))
    repo.change(settle)


def list_fans(repo: Repository, *, with_all: bool = False) -> list[Fan]:
    """Return the open fan-outs, or all of them."""
    settle_fans(repo)
    return repo.store.view(lambda snapshot: fans_in(snapshot, () if with_all else (OPEN,)))


def find_fan(repo: Repository, name: str) -> tuple[Fan, tuple[BranchResult, ...]]:
    """Return a fan-out by its id, or the newest of a task, with its results in order.

    Raises:
        Malformed: there is none.
    """

    def look(snapshot: Snapshot) -> tuple[Fan, tuple[BranchResult, ...]]:
        document = records.find(snapshot, NOUN, name)
        if document is None and name[:1] == "T" and find_task(snapshot, name) is None:
            raise unknown_task_error(snapshot, name)
        fans = fans_of_task(snapshot, name) if document is None else [Fan.from_document(document)]
        if not fans:
            raise Malformed(
                f"{name[:40]} was not split",
                code="UNKNOWN_FAN",
                hint="all split tasks: landlane task parts --all",
            )
        return fans[-1], results_of(snapshot, fans[-1])

    settle_fans(repo)
    return repo.store.view(look)
