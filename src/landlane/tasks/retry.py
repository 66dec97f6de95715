"""End an attempt: record it, apply the retry rules, move its task, in one transaction.

Every way back into the queue goes through the same rules: an agent that gives up, a worker that failed, a
rejected landing, a rejecting review. So every loop is counted.
"""

from __future__ import annotations

import os

from landlane.sessions.leases import require_live
from landlane.tasks.extensions import installed
from landlane.tasks.finish import release_claims
from landlane.tasks.lineage import earlier_lessons, lock_lineage, put_lineage
from landlane.tasks.model import ACTIVE, DEAD, LONGEST_BODY, LONGEST_LINE, READY, REVIEW, WAITING
from landlane.tasks.records import (
    actor_of,
    lessons_in,
    lock_task,
    move_task,
    require_owner,
    with_dependencies,
)
from landlane.tasks.retry_rules import (
    ABORT,
    ESCALATE,
    HANDED,
    LOST_CODES,
    RATE_LIMITED,
    STOPPED,
    TASK_OVER_BUDGET,
    AttemptEnd,
    RetryDecision,
    RetryVerdict,
    decide_retry,
)
from landlane.tasks.worker_pool import note_infrastructure_in
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.tasks.model import Task, TaskState


_MOST_QUESTION = 400
_MOST_HISTORY = 12_000  # characters of what a person is shown of a lineage's history


def end_attempt(
    repo: Repository,
    session: Session,
    task_id: str,
    end: AttemptEnd,
    *,
    immediate_retries: int = 0,
    also: Callable[[Transaction, RetryDecision], object] = lambda _tx, _decision: None,
) -> RetryDecision:
    """End an attempt that did not finish its task: record it, decide, move the task, release its claims.

    A task in review may be ended by any session. `also` runs in the same transaction.

    Raises:
        Stale: the task no longer belongs to this session.
    """

    def work(tx: Transaction) -> RetryDecision:
        require_live(tx, session)
        task = lock_task(tx, task_id)
        if task.state != REVIEW:
            task = require_owner(tx, session, task_id)
        decision = end_attempt_in(tx, repo, session, task, end, immediate_retries=immediate_retries)
        also(tx, decision)
        return decision

    return repo.change(work)


def end_attempt_in(
    tx: Transaction,
    repo: Repository,
    session: Session | None,
    task: Task,
    end: AttemptEnd,
    *,
    immediate_retries: int = 0,
    abort_state: TaskState = DEAD,
    keep_owner: bool = False,
) -> RetryDecision:
    """End an attempt inside a transaction; with `keep_owner`, a retry stays with the owner."""
    retry_state = ACTIVE if keep_owner else READY
    verdict = decide_retry_in(tx, repo, task, end, immediate_retries=immediate_retries)
    new_state = state_after(verdict, retry_state, abort_state)
    keeps_owner = keep_owner and new_state == retry_state
    move_task(
        tx,
        task,
        new_state,
        why=verdict.why[:LONGEST_LINE],
        keep_owner=keeps_owner,
        failures=task.failures + verdict.is_failure,
        lapses=task.lapses + verdict.is_lapse,
    )
    if not keeps_owner:
        release_claims(tx, task, "")
    record_attempt_end(tx, repo, actor_of(session), task, end, verdict, new_state)
    tx.has_freed = True
    after = with_dependencies(tx, lock_task(tx, task.id))
    return RetryDecision(outcome=verdict.outcome, task=after, why=verdict.why, not_before=verdict.not_before)


def decide_retry_in(
    tx: Transaction, repo: Repository, task: Task, end: AttemptEnd, *, immediate_retries: int = 0
) -> RetryVerdict:
    """Record the end of an attempt in its lineage, and return what follows."""
    end = _storable(end)
    is_pool_paused = False
    if end.is_infrastructure:
        why = end.feedback or end.code
        is_pool_paused = note_infrastructure_in(tx, repo, task.id, why, end.kind).is_paused
    lineage = lock_lineage(tx, task.lineage)
    is_charged = end.code not in (STOPPED, RATE_LIMITED, HANDED, *LOST_CODES)
    if is_charged and installed().budgets.is_task_spent(tx, repo, task):
        end = replace(end, code=TASK_OVER_BUDGET)  # the attempt may have used the rest of it
    limits = repo.settings.retries
    if installed().waits.is_given_up(tx, task):  # a person has decided already
        limits = replace(limits, last="fail")
    verdict = decide_retry(
        lineage,
        task,
        end,
        limits,
        now=repo.store.wall_of(tx.now),
        chance=_random_share(),
        immediate_retries=immediate_retries,
        is_pool_paused=is_pool_paused,
    )
    put_lineage(tx, verdict.lineage, "booked")
    return verdict


def _random_share() -> float:
    """Return a number from 0 to 1, without the cost of importing `random`."""
    return int.from_bytes(os.urandom(4)) / 2**32


def _storable(end: AttemptEnd) -> AttemptEnd:
    """Return the end without characters that a database refuses: feedback may be any text."""
    text = end.feedback[:LONGEST_BODY].replace("\0", "").encode("utf-8", "replace").decode("utf-8")
    return end if text == end.feedback else replace(end, feedback=text)


def state_after(
    verdict: RetryVerdict, retry_state: TaskState = READY, abort_state: TaskState = DEAD
) -> TaskState:
    """Return the state of a task after a verdict."""
    return {ESCALATE: WAITING, ABORT: abort_state}.get(verdict.outcome, retry_state)


def record_attempt_end(
    tx: Transaction,
    repo: Repository,
    by: tuple[str, str],
    task: Task,
    end: AttemptEnd,
    verdict: RetryVerdict,
    new_state: TaskState,
    **more: object,
) -> None:
    """Write the journal entry for the end of an attempt, and ask a person if the verdict says so."""
    end = _storable(end)
    why = verdict.why[:LONGEST_LINE]
    facts: dict[str, object] = {"task": task.id, "why": why, "attempt": task.attempt, "state": new_state}
    facts |= {"code": end.code} if end.code else {}
    facts |= {"feedback": end.feedback[:LONGEST_BODY]} if end.feedback and end.feedback != why else {}
    facts |= {"not_before": verdict.not_before} if verdict.not_before else {}
    if verdict.is_failure or verdict.outcome in (ESCALATE, ABORT):
        facts |= {"failures": task.failures + verdict.is_failure, "lapses": task.lapses + verdict.is_lapse}
        tx.record("task.failed", *by, facts | more)
    else:
        facts |= {"lapses": task.lapses + verdict.is_lapse, "handed": not verdict.is_lapse}
        tx.record("task.returned", *by, facts | more)
    if verdict.outcome == ESCALATE:
        ask_person_in(tx, repo, task, verdict)


def ask_person_in(tx: Transaction, repo: Repository, task: Task, verdict: RetryVerdict) -> None:
    """Open a gate for a task that gets no further attempt; it shows the history to a person."""
    lineage = verdict.lineage
    about = {
        "retries": task.id,
        "lineage": task.lineage,
        "attempts": lineage.attempts,
        "round": lineage.rounds,
    }
    history = "\n".join(
        f"attempt {lesson.attempt}, {lesson.agent or 'landlane'}: {lesson.why}"
        for lesson in (*earlier_lessons(tx, task), *lessons_in(tx, task.id))
    )
    installed().follow_ups.ask_person(
        tx,
        repo,
        lock_task(tx, task.id),
        _retry_question(task, verdict),
        about=about,
        evidence={"title": task.title, "history": history[-_MOST_HISTORY:]},
    )


def _retry_question(task: Task, verdict: RetryVerdict) -> str:
    """Return the question in one line: `T5 failed twice the same way: retry?`; the history has the output."""
    stopped = " ".join(verdict.why.partition(". Last: ")[0].split())[:_MOST_QUESTION]
    if stopped.startswith("it "):
        stopped = f"{task.id} {stopped.removeprefix('it ')}"
    return f"{stopped}: retry?"


def hold_for_person_in(tx: Transaction, repo: Repository, task: Task, why: str) -> None:
    """Let a new task wait for a person, because its lineage gets no further attempts."""
    lineage = lock_lineage(tx, task.lineage)
    lineage = replace(lineage, parked={**lineage.parked, task.id: why[:400]})
    put_lineage(tx, lineage, "parked")
    move_task(tx, task, WAITING, why=why[:LONGEST_LINE])
    facts = {"task": task.id, "why": why[:LONGEST_LINE], "attempt": task.attempt, "state": WAITING}
    tx.record("task.failed", "", "", facts)
    verdict = RetryVerdict(outcome=ESCALATE, lineage=lineage, why=why)
    ask_person_in(tx, repo, task, verdict)
