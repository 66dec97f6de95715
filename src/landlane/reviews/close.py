"""End a review: approved for its commit, rejected, decided by the decider, or outdated.

This happens at the end of the transaction that brought the last verdict. A rejection is subject to the same
retry rules as a failed attempt, so an author and a reviewer that never agree are stopped.
"""

from __future__ import annotations

from landlane.claims.holder_sessions import end_holder, return_claims
from landlane.errors import NotAllowed
from landlane.gates.model import ANSWERED, APPROVAL
from landlane.gates.model import APPROVED as GATE_APPROVED
from landlane.gates.open import open_gate_in
from landlane.gates.records import find_gate
from landlane.reviews.model import (
    APPROVE,
    APPROVED,
    DECIDING,
    OPEN,
    OUTDATED,
    PERSON,
    REJECT,
    REJECTED,
    UNDECIDED,
    Review,
    ReviewEntry,
)
from landlane.reviews.open import add_reviewer, outdate, resume_task
from landlane.reviews.reconcile import feedback_text, judge
from landlane.reviews.records import find_review, get_review, lock_review, put_review, reviews_in
from landlane.sessions.leases import end_if_gone, lock_live_session, require_live
from landlane.sessions.notices import add_notice
from landlane.store import records
from landlane.tasks.finish import drop_unneeded, finish_task
from landlane.tasks.model import (
    ACTIVE,
    FINAL,
    FINISHED,
    LONGEST_LINE,
    REPORTED,
    REVIEW,
    WAITING,
)
from landlane.tasks.records import find_task, lock_task
from landlane.tasks.retry import end_attempt_in
from landlane.tasks.retry_rules import AttemptEnd
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.gates.model import Gate
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Task


_LONGEST_QUESTION = 1_500


def settle_review(tx: Transaction, repo: Repository, review_id: str) -> None:
    """End a review if no further verdict can come, inside the transaction that caused this."""
    review = find_review(tx, review_id)
    if review is None or review.state not in UNDECIDED:
        return
    task = lock_task(tx, review.task)
    review = lock_review(tx, review_id)
    if review.state not in UNDECIDED or task.state == WAITING:
        return  # another transaction has ended it, or a person is asked about the task first
    if task.state != REVIEW or task.attempt != review.attempt:
        outdate(tx, review, f"{task.id} is {task.state}: this review is no longer needed")
    elif review.state == OPEN:
        _judge(tx, repo, task, review)
    else:
        _apply_decision(tx, repo, task, review)


def _has_ended(snapshot: Snapshot, entry: ReviewEntry) -> bool:
    """Return whether the task of a reviewer has ended, so that it gives no verdict any more."""
    task = find_task(snapshot, entry.task)
    return task is None or task.state in FINISHED


def _judge(tx: Transaction, repo: Repository, task: Task, review: Review) -> None:
    if not all(_has_ended(tx, entry) for entry in review.awaited):
        return
    judgement = judge(review.opinions, missing=len(review.awaited))
    if judgement.state == DECIDING:
        review = replace(review, contradictions=judgement.contradictions, why=judgement.why)
        _ask_decider(tx, repo, task, review, review.decider)
    else:
        _end(tx, repo, task, review, is_approved=judgement.state == APPROVED)


def _ask_decider(tx: Transaction, repo: Repository, task: Task, review: Review, decider: str) -> None:
    """Add a task for the decider; for a person, also a gate."""
    opinions = feedback_text(review.id, review.opinions, 6_000)
    what = f"commit {review.head}" if review.head else f"the result of attempt {review.attempt}"
    body = (
        f"The reviewers of {what} of {task.id} ({task.title}) do not agree: {review.why}\n\n"
        f"What they said:\n\n{opinions}\n\nDecide, with a reason:\n"
        f"landlane review give {review.id} --verdict approve|reject --summary '…'\n"
    )
    title = f"Decide on {task.id}: {task.title}"
    decision = add_reviewer(
        tx, repo, None, review, decider, title=title, body=body, key=f"decision/{decider}"
    )
    gate_id = ""
    if decider == PERSON:
        why = f"Let {task.id} ({task.title}) go on? Its reviewers do not agree: {review.why}"
        gate_id = open_gate_in(
            tx,
            repo,
            None,
            task=lock_task(tx, decision.task),
            kind=APPROVAL,
            why=why[:_LONGEST_QUESTION],
            about={"task": task.id, "review": review.id, "head": review.head},
            evidence={"said": opinions},
        ).id
    review = review.become(DECIDING, decision=decision, decider=decider, gate=gate_id)
    put_review(tx, review, "disputed")
    why = f"{review.id}: the reviewers do not agree; {decider} decides ({gate_id or decision.task})"
    tx.run("task_set_why", task=task.id, why=why, next_action=f"landlane review show {review.id}")
    tx.has_freed = True


def _find_answered_gate(snapshot: Snapshot, review: Review) -> Gate | None:
    gate = find_gate(snapshot, review.gate)
    return gate if gate is not None and gate.state in ANSWERED else None


def _apply_decision(tx: Transaction, repo: Repository, task: Task, review: Review) -> None:
    """End the review as the decider decided; ask a person if the decider has ended."""
    decision = review.decision
    assert decision is not None  # a review that is being decided has a decider
    if decision.verdict is not None:
        _end(tx, repo, task, review, is_approved=decision.verdict == APPROVE, by=decision.by)
    elif gate := _find_answered_gate(tx, review):
        is_approved = gate.state == GATE_APPROVED
        decision = replace(
            decision,
            verdict=APPROVE if is_approved else REJECT,
            by=gate.answered_by,
            summary=gate.answer,
            at=gate.answered_at,
        )
        _drop_task(tx, repo, decision.task, f"{gate.answered_by} decided at {review.gate}")
        review = replace(review, decision=decision)
        _end(tx, repo, task, review, is_approved=is_approved, by=gate.answered_by)
    elif _has_ended(tx, decision):
        _ask_decider(tx, repo, task, review, PERSON)


def _end(
    tx: Transaction, repo: Repository, task: Task, review: Review, *, is_approved: bool, by: str = ""
) -> None:
    ended = review.become(APPROVED if is_approved else REJECTED, ended_at=repo.store.wall_of(tx.now))
    names = by or ", ".join(entry.by for entry in review.entries if entry.by)
    (_approve if is_approved else _reject)(tx, repo, task, ended, names)


def _find_author(tx: Transaction, repo: Repository, review: Review) -> Session | None:
    """Return the session that continues the work: the author's, if it is alive and not a worker's.

    The session of a worker ends when the worker has reported.
    """
    attempts = records.find_by_key(tx, "attempt", review.task)
    if not review.session or any(attempt["session"] == review.session for attempt in attempts):
        return None
    if end_if_gone(tx, review.session, repo.processes):
        return None
    author = lock_live_session(tx, review.session)
    return author if author is not None and author.is_alive(tx.now) else None


def _approve(tx: Transaction, repo: Repository, task: Task, review: Review, names: str) -> None:
    """Return the task to its author to land exactly this commit; without an author it waits to be adopted."""
    why = f"{review.id} approved {review.head[:12] or 'the result'} ({names})"
    review = replace(review, why=why)
    settled = replace(review, is_settled=True, holder="")
    if not review.head:
        end_holder(tx, review.holder)
        put_review(tx, settled, "approved")
        evidence: dict[str, object] = {"name": "review", "is_seen": True, "found": why, "hint": ""}
        finish_task(tx, repo, task, None, head="", evidence=[evidence])
    elif author := _find_author(tx, repo, review):
        return_claims(tx, repo, review.holder, review.claims, author)
        resume_task(tx, author, task, REPORTED, why, why=f"{why}; not landed yet", head=review.head)
        put_review(tx, settled, "approved")
        add_notice(tx, author.id, f"{why}: land it with `landlane land {task.branch}`")
    else:
        adopt_command = f"landlane review adopt {review.id}"
        task_why = f"{why}; its author is gone: {adopt_command}"
        tx.run("task_set_why", task=task.id, why=task_why, next_action=adopt_command)
        put_review(tx, review, "approved")
        tx.has_freed = True


def _reject(tx: Transaction, repo: Repository, task: Task, review: Review, names: str) -> None:
    """Return the task to its author with the feedback, if the retry rules allow another attempt."""
    # The feedback has no ids, so that the retry rules recognise the same feedback a second time.
    feedback = f"the review rejected it\n{feedback_text(review.task, review.opinions, LONGEST_LINE - 100)}"
    author = _find_author(tx, repo, review)
    end = AttemptEnd(code="rejected", feedback=feedback, change=review.change or review.head)
    # An author that is alive continues the same attempt on the same branch.
    decision = end_attempt_in(
        tx,
        repo,
        author,
        replace(task, head=""),
        end,
        immediate_retries=0 if author is None else task.failures + 1,
        keep_owner=author is not None,
    )
    if author is not None and decision.task.state == ACTIVE:
        return_claims(tx, repo, review.holder, review.claims, author)
        add_notice(tx, author.id, f"{task.id} is yours again: {feedback}"[:LONGEST_LINE])
    else:
        end_holder(tx, review.holder)
    why = f"rejected by {names}; {decision.outcome}"
    put_review(tx, replace(review, is_settled=True, why=why, holder="", claims=()), "rejected")


def _drop_task(tx: Transaction, repo: Repository, task_id: str, why: str) -> None:
    task = lock_task(tx, task_id)
    if task.state not in FINAL:
        drop_unneeded(tx, repo, task, why)


def settle_reviews(repo: Repository) -> None:
    """Settle the reviews that a deadline or a crash has left; quick when there are none."""
    for review in repo.store.view(lambda snapshot: reviews_in(snapshot, (*UNDECIDED, OUTDATED, APPROVED))):
        if review.state == OUTDATED:
            _drop_reviewers(repo, review)
        elif review.state == APPROVED:
            repo.change(lambda tx, review=review: _release_if_task_moved_on(tx, review))
        elif repo.store.view(lambda snapshot, review=review: _is_due(snapshot, review)):
            repo.change(lambda tx, review=review: settle_review(tx, repo, review.id))


def _is_due(snapshot: Snapshot, review: Review) -> bool:
    task = find_task(snapshot, review.task)
    return (
        task is None
        or task.state not in (REVIEW, WAITING)
        or _find_answered_gate(snapshot, review) is not None
        or all(_has_ended(snapshot, entry) for entry in review.awaited)
    )


def _drop_reviewers(repo: Repository, review: Review) -> None:
    """Drop the tasks of an outdated review, each in a transaction of its own, then settle it."""
    for entry in review.all_entries:
        repo.change(lambda tx, entry=entry: _drop_task(tx, repo, entry.task, f"{review.id}: {review.why}"))

    def settle(tx: Transaction) -> None:
        current = lock_review(tx, review.id)
        if not current.is_settled:
            put_review(tx, replace(current, is_settled=True), "settled")

    repo.change(settle)


def _release_if_task_moved_on(tx: Transaction, review: Review) -> None:
    """Settle a review whose approved work waits to be adopted, if its task has moved on without it."""
    task = lock_task(tx, review.task)
    if task.state in (REVIEW, WAITING) and task.attempt == review.attempt:
        return
    review = lock_review(tx, review.id)
    if not review.is_settled:
        end_holder(tx, review.holder)
        put_review(tx, replace(review, is_settled=True, holder="", claims=()), "settled")


def adopt(repo: Repository, session: Session, name: str) -> Task:
    """Take over approved work whose author is gone, with its claims, in order to land it unchanged.

    Raises:
        Malformed: there is no such review.
        NotAllowed: the review has no work that waits to be adopted.
    """
    settle_reviews(repo)
    found = get_review(repo, name)

    def work(tx: Transaction) -> Task:
        me = require_live(tx, session)
        task = lock_task(tx, found.task)
        review = lock_review(tx, found.id)
        if review.state != APPROVED or review.is_settled or task.state != REVIEW:
            raise NotAllowed(
                f"{review.id} is {review.state}, and {task.id} is {task.state}: there is nothing to adopt",
                code="NOTHING_TO_ADOPT",
                hint="`landlane review list` shows what waits",
                state=review.state,
            )
        return_claims(tx, repo, review.holder, review.claims, me)
        reason = f"{me.agent} adopts {task.id}, approved at {review.head[:12]}"
        why = f"{review.why}; not landed yet"
        adopted = resume_task(tx, me, task, REPORTED, reason, why=why, head=review.head)
        put_review(tx, replace(review, is_settled=True, holder=""), "adopted", me)
        return adopted

    return repo.change(work)


def list_reviews(repo: Repository, *, with_all: bool = False) -> list[Review]:
    """Return the reviews that are open, being decided or wait to be adopted; or all of them."""
    settle_reviews(repo)
    states = () if with_all else (*UNDECIDED, APPROVED)
    return repo.store.view(lambda snapshot: reviews_in(snapshot, states))
