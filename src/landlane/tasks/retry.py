"""End an attempt: record it, apply the retry rules, move its task, in one transaction.

Every way back into the queue goes through the same judge: an agent that gives up, a worker that failed, a
landing that bounced, a review that rejected. So no loop goes round without being counted.
"""

from __future__ import annotations

import os

from landlane.sessions.leases import require_live
from landlane.sessions.read import find_live_session
from landlane.tasks.extensions import installed
from landlane.tasks.finish import release_claims
from landlane.tasks.lineage import (
    earlier_lessons,
    held_back,
    lineage_in,
    lineage_of,
    put_lineage,
    renew_in,
    widen_in,
)
from landlane.tasks.model import ACTIVE, DEAD, LONGEST_BODY, LONGEST_LINE, READY, REVIEW, WAITING
from landlane.tasks.records import get_in, lessons_in, move_task, owned, who, whole
from landlane.tasks.retry_rules import (
    ABORT,
    ESCALATE,
    HANDED,
    LOST,
    RATE_LIMITED,
    STOPPED,
    TASK_OVER_BUDGET,
    AttemptEnd,
    Decision,
    Verdict,
    judge,
    limits_of,
)
from landlane.tasks.worker_pool import note_infrastructure_in
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.tasks.model import Task


__all__ = ["end_attempt", "end_attempt_in", "held_back", "judge_in", "lineage_of", "renew_in", "widen_in"]

_MOST_HISTORY = 12_000  # characters of what a person is shown of a lineage's history


def end_attempt(
    repo: Repository,
    session: Session,
    task_id: str,
    end: AttemptEnd,
    *,
    chance: float | None = None,
    back_to_owner: bool = False,
    grace: int = 0,
    also: Callable[[Transaction, Decision], object] = lambda _tx, _decision: None,
) -> Decision:
    """An attempt is over and the task is not: book it, decide, move the task and release its claims.

    A task in review is anybody's to send back: `back_to_owner` gives it to its author if that lives.
    `grace` failures are not waited for. What `also` writes is in the same transaction.

    Raises:
        Stale: the task is not this session's any more.
    """

    def work(tx: Transaction) -> Decision:
        require_live(tx, session)
        task = get_in(tx, task_id)
        if task.state != REVIEW:
            task = owned(tx, session, task_id)
        keeps = back_to_owner and _lives(tx, task)
        decision = end_attempt_in(
            tx,
            repo,
            session,
            task,
            end,
            chance=chance,
            grace=grace,
            retry_state=ACTIVE if keeps and task.state != ACTIVE else READY,
            keep_owner=keeps and task.state != ACTIVE,
        )
        also(tx, decision)
        return decision

    return repo.change(work)


def _lives(tx: Transaction, task: Task) -> bool:
    return bool(task.session) and find_live_session(tx, task.session) is not None


def end_attempt_in(
    tx: Transaction,
    repo: Repository,
    session: Session | None,
    task: Task,
    end: AttemptEnd,
    *,
    chance: float | None = None,
    grace: int = 0,
    retry_state: str = READY,
    abort_state: str = DEAD,
    keep_owner: bool = False,
) -> Decision:
    """The same inside a transaction; `retry_state` and `keep_owner` say where a retry begins."""
    verdict = judge_in(tx, repo, task, end, chance=chance, grace=grace)
    then = state_after(verdict, retry_state, abort_state)
    keeps = keep_owner and then == retry_state
    move_task(
        tx,
        task,
        then,
        why=verdict.why[:LONGEST_LINE],
        keep_owner=keeps,
        failures=task.failures + verdict.is_failure,
        lapses=task.lapses + verdict.is_lapse,
    )
    if not keeps:
        release_claims(tx, task, "")
    tell_end(tx, repo, who(session), task, end, verdict, then)
    tx.frees = True
    after = whole(tx, get_in(tx, task.id))
    return Decision(outcome=verdict.outcome, task=after, why=verdict.why, not_before=verdict.not_before)


def judge_in(
    tx: Transaction,
    repo: Repository,
    task: Task,
    end: AttemptEnd,
    *,
    chance: float | None = None,
    grace: int = 0,
) -> Verdict:
    """Book an end to its lineage, and say what is to follow."""
    now = repo.store.wall_of(tx.now)
    end = _storable(end)
    is_excused = False
    if end.is_infrastructure:
        said = end.feedback or end.code
        is_excused = bool(note_infrastructure_in(tx, repo, task.id, said, end.kind).paused)
    lineage = lineage_in(tx, task.lineage)
    share = int.from_bytes(os.urandom(4)) / 2**32 if chance is None else chance
    limits = limits_of(repo.settings)
    if end.code not in (STOPPED, RATE_LIMITED, HANDED, *LOST) and installed().budgets.is_task_spent(
        tx, repo, task
    ):
        end = replace(end, code=TASK_OVER_BUDGET)  # it may have spent the last of it unseen
    verdict = judge(lineage, task, end, limits, now=now, chance=share, grace=grace, is_excused=is_excused)
    put_lineage(tx, verdict.lineage, "booked")
    return verdict


def _storable(end: AttemptEnd) -> AttemptEnd:
    """How an attempt ended, without what no database takes: a worker may have said anything."""
    said = end.feedback[:LONGEST_BODY].replace("\0", "").encode("utf-8", "replace").decode("utf-8")
    return end if said == end.feedback else replace(end, feedback=said)


def state_after(verdict: Verdict, retry_state: str = READY, abort_state: str = DEAD) -> str:
    """The state of the task that a verdict is about."""
    return {ESCALATE: WAITING, ABORT: abort_state}.get(verdict.outcome, retry_state)


def tell_end(
    tx: Transaction,
    repo: Repository,
    by: tuple[str, str],
    task: Task,
    end: AttemptEnd,
    verdict: Verdict,
    then: str,
    **more: object,
) -> None:
    """Write down how an attempt ended, and ask a person where that is what follows."""
    end = _storable(end)
    why = verdict.why[:LONGEST_LINE]
    facts: dict[str, object] = {"task": task.id, "why": why, "attempt": task.attempt, "state": then}
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


def ask_person_in(tx: Transaction, repo: Repository, task: Task, verdict: Verdict) -> None:
    """Open a gate for a task that gets no further attempt: a person sees the history, and decides."""
    lineage = verdict.lineage
    about = {
        "retries": task.id,
        "lineage": task.lineage,
        "attempts": lineage.attempts,
        "round": lineage.rounds,
    }
    history = "\n".join(
        f"attempt {one.attempt}, {one.agent or 'landlane'}: {one.why}"
        for one in (*earlier_lessons(tx, task), *lessons_in(tx, task.id))
    )
    why = f"{task.id} stopped after attempt {task.attempt}: {verdict.why}"
    installed().follow_ups.ask_person(
        tx,
        repo,
        get_in(tx, task.id),
        f"Try it again? {why}"[:1500],
        about=about,
        evidence={"history": history[-_MOST_HISTORY:]},
    )


def park_in(tx: Transaction, repo: Repository, task: Task, why: str) -> None:
    """A task that is new, in a lineage that gets nothing more: it is there, and waits for a person."""
    lineage = lineage_in(tx, task.lineage)
    lineage = replace(lineage, parked={**lineage.parked, task.id: why[:400]})
    put_lineage(tx, lineage, "parked")
    move_task(tx, task, WAITING, why=why[:LONGEST_LINE])
    facts = {"task": task.id, "why": why[:LONGEST_LINE], "attempt": task.attempt, "state": WAITING}
    tx.record("task.failed", "", "", facts)
    verdict = Verdict(outcome=ESCALATE, lineage=lineage, why=why)
    ask_person_in(tx, repo, task, verdict)
