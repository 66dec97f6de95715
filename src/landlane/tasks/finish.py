"""Finish a task: release or park its claims, and unblock the tasks that depend on it."""

from __future__ import annotations

from landlane.claims.holder_sessions import FOR_EVER_MS, begin_holder, drop_claims, give_claim
from landlane.claims.read import claims_of
from landlane.errors import NotAllowed
from landlane.sessions.leases import require_live
from landlane.tasks.add import forget_signs
from landlane.tasks.model import (
    ACTIVE,
    AT_WORK,
    BLOCKED,
    DONE,
    DROPPED,
    LONGEST_BODY,
    READY,
    REPORTED,
    find_loop,
    ring_error,
)
from landlane.tasks.records import (
    all_dependencies,
    dependencies_of,
    get_in,
    move_task,
    owned,
    tasks_of,
    who,
    whole,
)
from landlane.text import check_text
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.repository import Repository
    from landlane.sessions.model import Session, SessionKind
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Task


def report_done(repo: Repository, session: Session, task_id: str, result: str = "") -> Task:
    """The owner says it is done. Whether it is, evidence tells; until then it is `reported`.

    Raises:
        Stale: the task is not this session's any more.
    """
    check_text(result, "result", LONGEST_BODY)

    def work(tx: Transaction) -> Task:
        require_live(tx, session)
        task = owned(tx, session, task_id)
        if task.state == ACTIVE:
            move_task(tx, task, REPORTED, keep_owner=True, result=result, why="reported; not yet proved")
            tx.record("task.reported", *who(session), {"task": task_id, "result": result})
        return whole(tx, get_in(tx, task_id))

    return repo.change(work)


def finish(
    tx: Transaction,
    repo: Repository,
    task: Task,
    session: Session | None,
    *,
    head: str,
    evidence: Sequence[dict[str, object]],
) -> None:
    """A task is over and proved: release its claims and let those go on that waited for it."""
    move_task(tx, task, DONE, keep_owner=True, head=head, next_action="")
    release_claims(tx, task, head)
    forget_signs(tx, repo, task)
    facts = {"task": task.id, "head": head, "result": task.result, "evidence": list(evidence)}
    tx.record("task.done", *who(session), facts)
    unblock_dependents(tx, task.id)
    tx.frees = True


def release_claims(tx: Transaction, task: Task, commit: str) -> None:
    """Give back what is held for a task."""
    claims = [claim for claim in claims_of(tx, task.session) if claim.task == task.id]
    drop_claims(tx, claims, commit)
    tx.frees = tx.frees or bool(claims)


def finish_on_word(repo: Repository, session: Session, task_id: str, result: str) -> Task:
    """End a task of a kind that has nothing to show: its owner's word is all there is.

    Raises:
        Stale: the task is not this session's any more.
    """
    check_text(result, "result", LONGEST_BODY)

    def work(tx: Transaction) -> Task:
        require_live(tx, session)
        task = owned(tx, session, task_id)
        ended = replace(task, result=result or task.result)
        finish(tx, repo, ended, session, head="", evidence=())
        return whole(tx, replace(ended, state=DONE, head="", why="", next_action=""))

    return repo.change(work)


def add_dependency(repo: Repository, author: Session | None, task_id: str, after: str) -> Task:
    """Let a task wait for another.

    Raises:
        Malformed: one of them is unknown, or they would wait for each other; the ring is named.
        NotAllowed: the task is already under way, or the other was dropped.
    """

    def work(tx: Transaction) -> Task:
        before = get_in(tx, after)  # first: whoever ends it locks it before those behind it, too
        task = get_in(tx, task_id)
        if task.state not in (READY, BLOCKED):
            raise _too_late(f"{task_id} is {task.state}: it is too late to let it wait", task.state)
        if before.state == DROPPED:
            raise _too_late(f"{after} was dropped: {task_id} would wait for ever", before.state)
        ring = find_loop(_graph_with(tx, task_id, after), task_id)
        if ring:
            raise ring_error(ring)
        tx.run("task_after_add", task=task_id, after=after)
        waits = count_waits(tx, task_id)
        if waits and task.state == READY:
            move_task(tx, task, BLOCKED)
        tx.record("task.waits", *who(author), {"task": task_id, "after": after})
        return whole(tx, get_in(tx, task_id))

    return repo.change(work, areas={"//task-graph": True})


def _too_late(message: str, state: str) -> NotAllowed:
    return NotAllowed(message, code="TASK_WRONG_STATE", hint="let a new task wait instead", state=state)


def _graph_with(tx: Snapshot, task_id: str, after: str) -> dict[str, tuple[str, ...]]:
    graph: dict[str, tuple[str, ...]] = {task_id: (after,)}
    for task, before in all_dependencies(tx):
        graph[task] = (*graph.get(task, ()), before)
    return graph


def count_waits(tx: Transaction, task_id: str) -> int:
    """Count anew how many dependencies of a task are not done, and write it down."""
    waits = sum(state != DONE for _, state in dependencies_of(tx, task_id))
    tx.run("task_set_waits", task=task_id, waits_for=waits)
    return waits


def unblock_dependents(tx: Transaction, task_id: str) -> None:
    """Unblock the tasks that waited for a task that is done."""
    for row in tx.all("tasks_behind", task=task_id):
        task = get_in(tx, row["task"])
        # A reason of its own means that somebody blocked it by hand.
        if not count_waits(tx, task.id) and task.state == BLOCKED and not task.why:
            move_task(tx, task, READY, ready_at=tx.now)
            tx.record("task.unblocked", "", "", {"task": task.id, "why": f"{task_id} is done"})


_KEPT = ("pattern", "kind", "mode", "task", "note", "ttl_ms")  # how a claim was, before a holder had it


def keep_claims(
    tx: Transaction,
    repo: Repository,
    owner: Session,
    task_id: str,
    *,
    name: str,
    kind: SessionKind,
    note: str,
) -> tuple[str, list[dict[str, Any]]]:
    """Move what somebody holds for a task into a holder; tells the holder's session, and how each claim was.

    What was taken by hand for no task goes along, unless it may be for another task in hand.
    """
    has_more = any(task.id != task_id and task.state in AT_WORK for task in tasks_of(tx, owner.id))
    claims = [
        claim
        for claim in claims_of(tx, owner.id)
        if claim.task == task_id or (not claim.task and not has_more)
    ]
    if not claims:
        return "", []
    holder = begin_holder(tx, owner, name, kind)
    drop_claims(tx, claims)
    for claim in claims:
        pattern = repo.git.pattern_of(claim.pattern, claim.kind)
        give_claim(tx, holder, pattern, claim.mode, FOR_EVER_MS, task=claim.task, note=note)
    return holder.id, [{name: getattr(claim, name) for name in _KEPT} for claim in claims]
