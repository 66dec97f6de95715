"""Finish a task: release or park its claims, and unblock the tasks that depend on it."""

from __future__ import annotations

from landlane.claims.holder_sessions import FOR_EVER_MS, begin_holder, drop_claims, give_claim
from landlane.claims.take import claims_of
from landlane.errors import NotAllowed
from landlane.sessions.leases import require_live
from landlane.state.keys import require_states, state_areas
from landlane.tasks.add import delete_signs
from landlane.tasks.model import (
    ACTIVE,
    BLOCKED,
    DONE,
    DROPPED,
    IN_PROGRESS,
    LONGEST_BODY,
    READY,
    REPORTED,
    cycle_error,
    find_dependency_cycle,
)
from landlane.tasks.records import (
    actor_of,
    all_dependencies,
    dependencies_of,
    lock_task,
    move_task,
    require_owner,
    tasks_of,
    with_dependencies,
)
from landlane.text import check_text
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.repository import Repository
    from landlane.sessions.model import Session, SessionKind
    from landlane.store.interface import Transaction
    from landlane.tasks.model import Task

_NO_KEYS: Mapping[str, int] = {}


def report_done(repo: Repository, session: Session, task_id: str, result: str = "") -> Task:
    """Report a task as done for its owner; it is `reported` until its evidence is verified.

    Raises:
        Stale: the task no longer belongs to this session.
    """
    check_text(result, "result", LONGEST_BODY)

    def work(tx: Transaction) -> Task:
        require_live(tx, session)
        task = require_owner(tx, session, task_id)
        if task.state == ACTIVE:
            move_task(
                tx, task, REPORTED, keep_owner=True, result=result, why="reported done, not verified yet"
            )
            tx.record("task.reported", *actor_of(session), {"task": task_id, "result": result})
        return with_dependencies(tx, lock_task(tx, task_id))

    return repo.change(work)


def finish_task(
    tx: Transaction,
    repo: Repository,
    task: Task,
    session: Session | None,
    *,
    head: str,
    evidence: Sequence[dict[str, object]],
) -> None:
    """End a task that is verified: release its claims and unblock the tasks that depend on it."""
    move_task(tx, task, DONE, keep_owner=True, head=head, next_action="")
    release_claims(tx, task, head)
    delete_signs(tx, repo, task)
    facts = {"task": task.id, "head": head, "result": task.result, "evidence": list(evidence)}
    tx.record("task.done", *actor_of(session), facts)
    unblock_dependents(tx, task.id)
    tx.has_freed = True


def drop_unneeded(tx: Transaction, repo: Repository, task: Task, why: str) -> None:
    """Drop a task whose result is not needed any more; a session that works on it is notified at its end."""
    move_task(tx, task, DROPPED, why=why)
    delete_signs(tx, repo, task)
    tx.record("task.dropped", "", "", {"task": task.id, "why": why, "before": task.state})
    tx.has_freed = True


def release_claims(tx: Transaction, task: Task, commit: str) -> None:
    """Release the claims that are held for a task."""
    claims = [claim for claim in claims_of(tx, task.session) if claim.task == task.id]
    drop_claims(tx, claims, commit)
    tx.has_freed = tx.has_freed or bool(claims)


def finish_without_evidence(
    repo: Repository, session: Session, task_id: str, result: str, expected: Mapping[str, int] = _NO_KEYS
) -> Task:
    """End a task of a kind that needs no evidence.

    Raises:
        Stale: the task no longer belongs to this session, or a key that it expects has another version.
    """
    check_text(result, "result", LONGEST_BODY)

    def work(tx: Transaction) -> Task:
        require_live(tx, session)
        require_states(tx, repo, expected)
        task = require_owner(tx, session, task_id)
        ended = replace(task, result=result or task.result)
        finish_task(tx, repo, ended, session, head="", evidence=())
        return with_dependencies(tx, replace(ended, state=DONE, head="", why="", next_action=""))

    return repo.change(work, areas=state_areas(expected))


def add_dependency(repo: Repository, author: Session | None, task_id: str, after: str) -> Task:
    """Make a task depend on another.

    Raises:
        Malformed: one of them is unknown, or they would wait for each other; the message names the cycle.
        NotAllowed: the task has already been taken, or the other was dropped.
    """

    def work(tx: Transaction) -> Task:
        before = lock_task(tx, after)  # first: ending a task locks it before its dependents, too
        task = lock_task(tx, task_id)
        if task.state not in (READY, BLOCKED):
            raise _not_allowed(f"{task_id} is {task.state} and can no longer wait for {after}", task.state)
        if before.state == DROPPED:
            raise _not_allowed(f"{after} was dropped, so {task_id} could never start", before.state)
        dependencies: dict[str, tuple[str, ...]] = {task_id: (after,)}
        for name, dependency in all_dependencies(tx):
            dependencies[name] = (*dependencies.get(name, ()), dependency)
        if cycle := find_dependency_cycle(dependencies, task_id):
            raise cycle_error(cycle)
        tx.run("task_after_add", task=task_id, after=after)
        waits = update_waits_for(tx, task_id)
        if waits and task.state == READY:
            move_task(tx, task, BLOCKED)
        tx.record("task.waits", *actor_of(author), {"task": task_id, "after": after})
        return with_dependencies(tx, lock_task(tx, task_id))

    return repo.change(work, areas={"//task-graph": True})


def _not_allowed(message: str, state: str) -> NotAllowed:
    return NotAllowed(message, code="TASK_WRONG_STATE", hint="landlane task list", state=state)


def update_waits_for(tx: Transaction, task_id: str) -> int:
    """Count the dependencies of a task that are not done, store the number and return it."""
    waits = sum(state != DONE for _, state in dependencies_of(tx, task_id))
    tx.run("task_set_waits", task=task_id, waits_for=waits)
    return waits


def unblock_dependents(tx: Transaction, task_id: str) -> None:
    """Unblock the tasks that waited for a task that is done."""
    for row in tx.all("tasks_behind", task=task_id):
        task = lock_task(tx, row["task"])
        # A task with a reason was blocked by hand.
        if not update_waits_for(tx, task.id) and task.state == BLOCKED and not task.why:
            move_task(tx, task, READY, ready_at=tx.now)
            tx.record("task.unblocked", "", "", {"task": task.id, "why": f"{task_id} is done"})


_CLAIM_FIELDS = ("pattern", "kind", "mode", "task", "note", "ttl_ms")  # needed to give a claim back


def move_claims_to_holder(
    tx: Transaction,
    repo: Repository,
    owner: Session,
    task_id: str,
    *,
    name: str,
    kind: SessionKind,
    note: str,
) -> tuple[str, list[dict[str, Any]]]:
    """Move an owner's claims for a task to a holder; return the holder's session, and the former claims.

    Claims for no task are moved as well, unless the owner has another task that they may be for.
    """
    has_other_task = any(task.id != task_id and task.state in IN_PROGRESS for task in tasks_of(tx, owner.id))
    claims = [
        claim
        for claim in claims_of(tx, owner.id)
        if claim.task == task_id or (not claim.task and not has_other_task)
    ]
    if not claims:
        return "", []
    holder = begin_holder(tx, owner, name, kind)
    drop_claims(tx, claims)
    for claim in claims:
        pattern = repo.git.pattern_of(claim.pattern, claim.kind)
        give_claim(tx, holder, pattern, claim.mode, FOR_EVER_MS, task=claim.task, note=note)
    return holder.id, [{name: getattr(claim, name) for name in _CLAIM_FIELDS} for claim in claims]
