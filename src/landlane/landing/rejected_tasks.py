"""The tasks of rejected queue entries: returned to their authors, or new fix tasks for branches without one.

A branch has one lineage of fix tasks. Otherwise each rejection would begin a new retry budget, and a branch
that never lands would be tested forever. Once a person is asked about it, the branch waits for the answer.
"""

from __future__ import annotations

from landlane.errors import NotAllowed, Stale
from landlane.landing.model import BOUNCED
from landlane.landing.records import NOUN, read_landings
from landlane.store import records
from landlane.tasks.add import Added, add_task_in
from landlane.tasks.finish import drop_unneeded, release_claims
from landlane.tasks.lineage import forget_task_in, lock_lineage, put_lineage, why_stopped
from landlane.tasks.model import (
    BLOCKED,
    DEAD,
    FAILED,
    FINAL,
    LANDING,
    LONGEST_BODY,
    LONGEST_LINE,
    LONGEST_TITLE,
    READY,
    REPORTED,
    WAITING,
    NewTask,
)
from landlane.tasks.records import actor_of, find_task, lock_task, move_task
from landlane.tasks.retry import (
    decide_retry_in,
    end_attempt_in,
    hold_for_person_in,
    record_attempt_end,
    state_after,
)
from landlane.tasks.retry_rules import ABORT, ESCALATE, AttemptEnd
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.landing.model import Landing, Rejection
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Task
    from landlane.tasks.retry_rules import RetryDecision


_LANDED = "its branch has landed"
_MAX_MESSAGE_CHARS = 600


def return_task(
    tx: Transaction, repo: Repository, landing: Landing, author: Session | None, rejection: Rejection
) -> str:
    """Give the task of a rejected entry back, or add a fix task if it has none; return the task's id."""
    task = lock_task(tx, landing.task) if landing.task else None
    if task is None or task.attempt != landing.attempt or task.state not in (LANDING, REPORTED):
        return _add_fix_task(tx, repo, landing, author, rejection)
    end = AttemptEnd(code="bounced", feedback=_feedback(landing, rejection))
    # No backoff: the author fixes it in a workspace that still exists.
    decision = decide_retry_in(tx, repo, task, end, immediate_retries=task.max_attempts)
    is_authors = author is not None and task.session == author.id
    state = state_after(decision, REPORTED if is_authors else READY)
    why, hint = decision.why[:LONGEST_LINE], rejection.hint[:LONGEST_LINE]
    failures = task.failures + decision.is_failure
    if state == REPORTED and task.state == REPORTED:
        tx.run("task_set_why", task=task.id, why=why, next_action=hint)
        tx.run("task_set_failures", task=task.id, failures=failures)
    else:
        keep_owner = is_authors and state == REPORTED
        move_task(
            tx, task, state, why=why, keep_owner=keep_owner, failures=failures, head="", next_action=hint
        )
    record_attempt_end(
        tx, repo, (landing.agent, landing.session), task, end, decision, state, landing=landing.id
    )
    return task.id


def _feedback(landing: Landing, rejection: Rejection) -> str:
    """Return the reason and the end of the output, as much as fits."""
    text = f"{landing.id} bounced: {rejection.reason}"
    left = LONGEST_LINE - len(text) - 1
    has_room = rejection.output and left > 0
    return f"{text}\n{rejection.output[-left:]}" if has_room else text[:LONGEST_LINE]


def _add_fix_task(
    tx: Transaction, repo: Repository, landing: Landing, author: Session | None, rejection: Rejection
) -> str:
    """Add a task to fix a rejected branch, or count the rejection on the fix task that is still open."""
    feedback = _feedback(landing, rejection)
    hint = rejection.hint[:LONGEST_LINE]
    earlier = None if landing.task else _find_fix_task_of(tx, landing)
    if earlier is not None and earlier.state not in (*FINAL, DEAD, FAILED):
        _count_rejection(tx, repo, landing, lock_task(tx, earlier.id), feedback, hint)
        return earlier.id
    about = f" It was for {landing.task}." if landing.task else ""
    body = (
        f"{landing.id} (branch `{landing.branch}`, head {landing.head}) of {landing.agent} did not land on"
        f" {landing.target}.{about}\n\nWhy: {rejection.reason}\n\nWhat to do: {rejection.hint}\n"
    ) + (f"\nWhat was said, at its end:\n\n{rejection.output}\n" if rejection.output else "")
    new = NewTask(
        title=f"Fix {landing.branch}: {rejection.reason.splitlines()[0]}"[:LONGEST_TITLE],
        body=body[:LONGEST_BODY],
        paths=(),
        key=f"bounce/{landing.id}",
        parent=landing.task or (earlier.id if earlier is not None else ""),
        labels=("bounced", f"author={landing.agent}"[:64]),
        next_action=hint,
    )
    added = add_task_in(tx, repo, author, new, (), force=True, may_be_stopped=True)
    if not isinstance(added, Added):
        return ""
    stopped = why_stopped(tx, repo, added.task)
    if stopped and added.is_new:
        hold_for_person_in(tx, repo, added.task, f"{stopped}. Last: {rejection.reason}")
    elif not landing.task and added.is_new:
        _count_rejection(tx, repo, landing, added.task, feedback, hint)
    return added.task.id


def reopen_task(tx: Transaction, landing: Landing, author: Session | None, reason: str) -> None:
    """Give the task of an ejected entry back to its author, or make it available to others."""
    task = lock_task(tx, landing.task) if landing.task else None
    if task is None or task.attempt != landing.attempt or task.state != LANDING:
        return
    is_authors = author is not None and task.session == author.id
    why = f"{landing.id} was ejected: {reason}"[:LONGEST_LINE]
    move_task(tx, task, REPORTED if is_authors else READY, why=why, keep_owner=is_authors, head="")
    tx.record("task.doubted", *actor_of(author), {"task": task.id, "why": why, "attempt": task.attempt})


def fail_unsubmitted(repo: Repository, session: Session, verified: Task, end: AttemptEnd) -> RetryDecision:
    """End the attempt of a verified task that could not be submitted; the retry rules count it as failed.

    Raises:
        Stale: the task was submitted meanwhile, or is in another attempt.
    """

    def work(tx: Transaction) -> RetryDecision:
        task = lock_task(tx, verified.id)
        is_waiting = task.state == LANDING and task.attempt == verified.attempt
        if not is_waiting or any(landing.task == task.id for landing in read_landings(tx)):
            raise Stale(
                f"{task.id} goes on without {session.agent}: it is {task.state}",
                code="TASK_NOT_YOURS",
                hint=f"see where it stands: landlane task show {task.id}",
                state=task.state,
            )
        return end_attempt_in(tx, repo, session, task, end)

    return repo.change(work)


def _find_fix_task_of(snapshot: Snapshot, landing: Landing) -> Task | None:
    return _find_fix_task(snapshot, landing.branch, landing.target, landing.agent, landing.home)


def _find_fix_task(snapshot: Snapshot, branch: str, target: str, agent: str, home: str) -> Task | None:
    """Return the fix task of the last rejection of a branch, unless the branch has landed since."""
    for document in reversed(records.find_by_key(snapshot, NOUN, target, BOUNCED)):
        is_same = document["branch"] == branch and (document["agent"] == agent or document["home"] == home)
        if is_same and not document["task"] and document["bounce_task"]:
            task = find_task(snapshot, document["bounce_task"])
            return None if task is None or task.why.startswith(_LANDED) else task
    return None


def check_not_stopped(tx: Transaction, session: Session, branch: str, target: str, home: str) -> None:
    """Refuse a branch that was rejected so often that a person was asked about it.

    Raises:
        NotAllowed: the person has not answered yet, or answered no.
    """
    if session.is_person and not session.role:
        return
    task = _find_fix_task(tx, branch, target, session.agent, home)
    if task is not None and task.state in (WAITING, DEAD):
        raise NotAllowed(
            f"{branch} bounced too often: {task.why}"[:_MAX_MESSAGE_CHARS],
            code="LINEAGE_STOPPED",
            hint=f"a person looks (landlane task show {task.id}), then: landlane task retry {task.id}",
            task=task.id,
        )


def _count_rejection(
    tx: Transaction, repo: Repository, landing: Landing, task: Task, feedback: str, hint: str
) -> None:
    """Count one more rejection on a fix task; ask a person if the retry rules say so."""
    if task.state == WAITING:
        return  # a person is already asked
    # The same commit again is not an attempt to fix it, and may land when an outage is over: it is counted,
    # but its repeated feedback is not a sign that the work goes in circles.
    is_same_head = any(
        document["head"] == landing.head
        and document["id"] != landing.id
        and document["bounce_task"] == task.id
        for document in records.find_by_key(tx, NOUN, landing.target, BOUNCED)
    )
    end = AttemptEnd(code="bounced", feedback="" if is_same_head else feedback)
    # Failures of the fix task itself are not failures of the branch: only the lineage is charged.
    decision = decide_retry_in(tx, repo, replace(task, failures=0), end, immediate_retries=task.max_attempts)
    is_stopped = decision.outcome in (ESCALATE, ABORT)
    decision = replace(decision, outcome=ESCALATE if is_stopped else decision.outcome, is_failure=False)
    why = decision.why[:LONGEST_LINE]
    if is_stopped:
        move_task(tx, task, WAITING, why=why, next_action=hint)
        release_claims(tx, task, "")
    elif task.state == READY:
        tx.run("task_set_why", task=task.id, why=why, next_action=hint)
    state = WAITING if is_stopped else task.state
    record_attempt_end(
        tx, repo, (landing.agent, landing.session), task, end, decision, state, landing=landing.id
    )


def drop_fix_task(tx: Transaction, repo: Repository, landing: Landing) -> None:
    """Drop the fix task of a branch that landed, unless a worker has it."""
    found = None if landing.task else _find_fix_task_of(tx, landing)
    if found is None:
        return
    task = lock_task(tx, found.id)
    lineage = lock_lineage(tx, task.lineage)  # the branch landed: later failures are not repetitions
    put_lineage(tx, replace(lineage, feedback=(), attempts=0, stopped=""), "renewed")
    if task.state not in (READY, BLOCKED, WAITING, DEAD):
        return
    why = f"{_LANDED} as {landing.id}"
    forget_task_in(tx, task)
    drop_unneeded(tx, repo, task, why)
