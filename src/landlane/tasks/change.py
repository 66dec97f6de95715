"""Change a task by hand: fail, hand back, block, unblock, retry or drop it."""

from __future__ import annotations

from landlane.errors import NotAllowed
from landlane.sessions.leases import require_live
from landlane.tasks.add import forget_signs
from landlane.tasks.extensions import installed
from landlane.tasks.finish import count_waits, release_claims
from landlane.tasks.lineage import allow_again, forget_in
from landlane.tasks.model import (
    BLOCKED,
    DEAD,
    DONE,
    DROPPED,
    FAILED,
    OVER,
    READY,
    WAITING,
    check_reason,
)
from landlane.tasks.records import dependencies_of, get_in, move_task, not_for_that, owned, who, whole
from landlane.tasks.retry import end_attempt_in
from landlane.tasks.retry_rules import HANDED, AttemptEnd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.tasks.model import Task


def fail_task(
    repo: Repository, session: Session, task_id: str, why: str, *, is_final: bool = False, change: str = ""
) -> Task:
    """The owner gives up: back into the queue with what was learned, or to a person when that would not help.

    `change` is by what the change that it made is known again, if there is one.

    Raises:
        Stale: the task is not this session's any more.
        Malformed: there is no reason, or one that cannot be stored.
    """
    check_reason(why)

    def work(tx: Transaction) -> Task:
        require_live(tx, session)
        task = owned(tx, session, task_id)
        end = AttemptEnd(
            task=task_id,
            attempt=task.attempt,
            code="failed",
            feedback=why,
            change=change,
            may_retry=not is_final,
        )
        # Who gives up says why: another may try at once. From the second time on there is a pause.
        return end_attempt_in(tx, repo, session, task, end, grace=1, abort_state=abort_state).task

    abort_state = FAILED if is_final else DEAD
    return repo.change(work)


def block_task(repo: Repository, session: Session | None, task_id: str, why: str) -> Task:
    """Keep a task from being offered; whoever is at work on it loses it.

    Raises:
        Malformed: there is no such task, or no reason.
        NotAllowed: it is in no state for that.
    """
    check_reason(why)

    def work(tx: Transaction) -> Task:
        task = get_in(tx, task_id)
        if task.state == WAITING:  # unblocked again, it would be on its way without an answer
            raise not_for_that(task, "waits for a person's answer")
        return _move_by_hand(tx, repo, session, task, "task.blocked", BLOCKED, why)

    return repo.change(work)


def unblock_task(repo: Repository, session: Session | None, task_id: str) -> Task:
    """Take a block away. Dependencies that were dropped are forgotten with it; open ones are waited for.

    Raises:
        Malformed: there is no such task.
        NotAllowed: it is not blocked, or by nothing but open dependencies.
    """

    def work(tx: Transaction) -> Task:
        task = get_in(tx, task_id)
        if task.state != BLOCKED:
            raise not_for_that(task, "is not blocked")
        for before, state in dependencies_of(tx, task_id):
            if state == DROPPED:
                tx.run("task_after_drop", task=task_id, after=before)
        waits = count_waits(tx, task_id)
        if waits and not task.why:
            names = [before for before, state in dependencies_of(tx, task_id) if state != DONE]
            raise NotAllowed(
                f"{task_id} still waits for {', '.join(names)}",
                code="TASK_WAITS",
                hint="finish these first, or drop them and unblock it then",
            )
        move_task(tx, task, BLOCKED if waits else READY, ready_at=tx.now)
        tx.record("task.unblocked", *who(session), {"task": task_id, "why": "", "before": task.state})
        tx.frees = True
        return whole(tx, get_in(tx, task_id))

    return repo.change(work)


def retry_task(repo: Repository, session: Session | None, task_id: str, why: str = "") -> Task:
    """Give a task that failed, died or was stopped another round of attempts; its history stays.

    A person gives its lineage a fresh budget with it, and only a person answers for what was stopped.

    Raises:
        Malformed: there is no such task.
        NotAllowed: it is not in a state for that, or a person must decide.
    """

    def work(tx: Transaction) -> Task:
        task = get_in(tx, task_id)
        allow_again(tx, task, session)
        if task.state == READY:  # it was held back, and need not wait any longer
            return whole(tx, task)
        return _move_by_hand(tx, repo, session, task, "task.retried", READY, why)

    return repo.change(work)


def drop_task(repo: Repository, session: Session | None, task_id: str, why: str) -> Task:
    """Give a task up for good.

    Raises:
        Malformed: there is no such task, or no reason.
        NotAllowed: it is over already.
    """
    return _change(repo, session, task_id, "task.dropped", DROPPED, check_reason(why))


def _change(repo: Repository, session: Session | None, task_id: str, kind: str, then: str, why: str) -> Task:
    def work(tx: Transaction) -> Task:
        return _move_by_hand(tx, repo, session, get_in(tx, task_id), kind, then, why)

    return repo.change(work)


def _move_by_hand(
    tx: Transaction, repo: Repository, session: Session | None, task: Task, kind: str, then: str, why: str
) -> Task:
    fresh = 0 if kind == "task.retried" else None
    move_task(tx, task, then, why=why, failures=fresh, lapses=fresh)
    release_claims(tx, task, "")
    if then in OVER:
        forget_signs(tx, repo, task)
        forget_in(tx, task)
        installed().follow_ups.drop(tx, task, f"{task.id} was dropped")
    tx.record(kind, *who(session), {"task": task.id, "why": why, "before": task.state})
    tx.frees = True
    return whole(tx, get_in(tx, task.id))


def hand_back(repo: Repository, session: Session, task_id: str, why: str) -> Task:
    """The owner lets another go on: back into the queue with what was found out, and no attempt is charged.

    Raises:
        Stale: the task is not this session's any more.
        Malformed: there is no reason, or one that cannot be stored.
    """
    check_reason(why)

    def work(tx: Transaction) -> Task:
        require_live(tx, session)
        task = owned(tx, session, task_id)
        end = AttemptEnd(task=task_id, attempt=task.attempt, code=HANDED, feedback=why)
        return end_attempt_in(tx, repo, session, task, end).task

    return repo.change(work)
