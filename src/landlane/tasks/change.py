"""Change a task by hand: fail, hand back, block, unblock, retry or drop it."""

from __future__ import annotations

from landlane.errors import NotAllowed
from landlane.sessions.leases import require_live
from landlane.tasks.add import delete_signs
from landlane.tasks.extensions import installed
from landlane.tasks.finish import release_claims, update_waits_for
from landlane.tasks.lineage import allow_retry, forget_task_in
from landlane.tasks.model import (
    BLOCKED,
    DEAD,
    DONE,
    DROPPED,
    FAILED,
    FINAL,
    READY,
    WAITING,
    check_reason,
)
from landlane.tasks.records import (
    actor_of,
    dependencies_of,
    lock_task,
    move_task,
    require_owner,
    with_dependencies,
    wrong_state_error,
)
from landlane.tasks.retry import end_attempt_in
from landlane.tasks.retry_rules import HANDED, AttemptEnd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.tasks.model import Task, TaskState


def fail_task(
    repo: Repository, session: Session, task_id: str, why: str, *, is_final: bool = False, change: str = ""
) -> Task:
    """End the attempt of an owner that gives up; the retry rules decide what happens to the task.

    `change` is a digest of the change that it made, if there is one.

    Raises:
        Stale: the task no longer belongs to this session.
        Malformed: the reason is empty or too long.
    """
    check_reason(why)

    def work(tx: Transaction) -> Task:
        require_live(tx, session)
        task = require_owner(tx, session, task_id)
        end = AttemptEnd(code="failed", feedback=why, change=change, may_retry=not is_final)
        # The first failure has an explanation, so another session may try at once.
        return end_attempt_in(tx, repo, session, task, end, immediate_retries=1, abort_state=abort_state).task

    abort_state = FAILED if is_final else DEAD
    return repo.change(work)


def block_task(repo: Repository, session: Session | None, task_id: str, why: str) -> Task:
    """Block a task, so that it is not offered; its owner loses it.

    Raises:
        Malformed: there is no such task, or no reason.
        NotAllowed: its state does not allow that.
    """
    check_reason(why)

    def work(tx: Transaction) -> Task:
        task = lock_task(tx, task_id)
        if task.state == WAITING:  # unblocking it would bypass the question
            raise wrong_state_error(task, "waits for a person's answer")
        return _move_by_hand(tx, repo, session, task, "task.blocked", BLOCKED, why)

    return repo.change(work)


def unblock_task(repo: Repository, session: Session | None, task_id: str) -> Task:
    """Unblock a task, and remove its dependencies that were dropped; it still waits for open ones.

    Raises:
        Malformed: there is no such task.
        NotAllowed: it is not blocked, or only by open dependencies.
    """

    def work(tx: Transaction) -> Task:
        task = lock_task(tx, task_id)
        if task.state != BLOCKED:
            raise wrong_state_error(task, "is not blocked")
        for before, state in dependencies_of(tx, task_id):
            if state == DROPPED:
                tx.run("task_after_drop", task=task_id, after=before)
        waits = update_waits_for(tx, task_id)
        if waits and not task.why:
            names = [before for before, state in dependencies_of(tx, task_id) if state != DONE]
            raise NotAllowed(
                f"{task_id} still waits for {', '.join(names)}",
                code="TASK_WAITS",
                hint=f"drop what it need not wait for: landlane task drop {names[0]} --why 'not needed'",
            )
        move_task(tx, task, BLOCKED if waits else READY, ready_at=tx.now)
        tx.record("task.unblocked", *actor_of(session), {"task": task_id, "why": "", "before": task.state})
        tx.has_freed = True
        return with_dependencies(tx, lock_task(tx, task_id))

    return repo.change(work)


def retry_task(repo: Repository, session: Session | None, task_id: str, why: str = "") -> Task:
    """Give a task that failed, died or was stopped more attempts; its history stays.

    A person also gives its lineage a new budget. Only a person may retry what was stopped.

    Raises:
        Malformed: there is no such task.
        NotAllowed: it is not in a state for that, or a person must decide.
    """

    def work(tx: Transaction) -> Task:
        task = lock_task(tx, task_id)
        allow_retry(tx, task, session)
        if task.state == READY:  # it only had to wait
            return with_dependencies(tx, task)
        return _move_by_hand(tx, repo, session, task, "task.retried", READY, why)

    return repo.change(work)


def drop_task(repo: Repository, session: Session | None, task_id: str, why: str) -> Task:
    """Drop a task for good.

    Raises:
        Malformed: there is no such task, or no reason.
        NotAllowed: it has already ended.
    """
    check_reason(why)

    def work(tx: Transaction) -> Task:
        return _move_by_hand(tx, repo, session, lock_task(tx, task_id), "task.dropped", DROPPED, why)

    return repo.change(work)


def _move_by_hand(
    tx: Transaction,
    repo: Repository,
    session: Session | None,
    task: Task,
    kind: str,
    new_state: TaskState,
    why: str,
) -> Task:
    count = 0 if kind == "task.retried" else None
    move_task(tx, task, new_state, why=why, failures=count, lapses=count)
    release_claims(tx, task, "")
    if new_state in FINAL:
        delete_signs(tx, repo, task)
        forget_task_in(tx, task)
        installed().follow_ups.drop(tx, task, f"{task.id} was dropped")
    tx.record(kind, *actor_of(session), {"task": task.id, "why": why, "before": task.state})
    tx.has_freed = True
    return with_dependencies(tx, lock_task(tx, task.id))


def hand_back(repo: Repository, session: Session, task_id: str, why: str) -> Task:
    """Return a task to the queue with what was learned; the attempt is not charged.

    Raises:
        Stale: the task no longer belongs to this session.
        Malformed: the reason is empty or too long.
    """
    check_reason(why)

    def work(tx: Transaction) -> Task:
        require_live(tx, session)
        task = require_owner(tx, session, task_id)
        end = AttemptEnd(code=HANDED, feedback=why)
        return end_attempt_in(tx, repo, session, task, end).task

    return repo.change(work)
