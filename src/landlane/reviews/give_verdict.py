"""Give a verdict on a commit, and decide which sessions may give one.

Each reviewer has a task of its own. A verdict ends that task, and the same transaction settles the review
with the last one (`close.py`). Locks are taken in this order: the reviewer's task, the reviewed task, the
review.
"""

from __future__ import annotations

import json

from landlane.errors import NotAllowed, Stale
from landlane.reviews.model import DECIDING, OPEN, PERSON, UNDECIDED, Review, ReviewEntry, is_asked
from landlane.reviews.read_verdict import bad_verdict, read_opinion, verdict_fields
from landlane.reviews.records import (
    find_review,
    get_review,
    lock_review,
    put_review,
    review_id_of,
    review_of_task,
    reviews_in,
    unknown_review,
)
from landlane.sessions.leases import find_ancestors, require_live
from landlane.sessions.worker_sessions import find_supervisor
from landlane.tasks.finish import finish_task
from landlane.tasks.model import IN_PROGRESS, READY
from landlane.tasks.records import lock_task, take_ownership
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.protocol.worker.messages import WorkComplete
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Task


def give_verdict(
    repo: Repository,
    session: Session,
    review_id: str,
    *,
    verdict: object,
    findings: object = (),
    summary: object = "",
    head: str = "",
) -> Review:
    """Give the verdict of a reviewer or of the decider on the commit; the last verdict ends the review.

    `head` is the beginning of the commit that was looked at.

    Raises:
        Malformed: there is no such review, or the verdict does not match the contract.
        Stale: the review has ended, or is about another commit.
        NotAllowed: it is the caller's own work, or the caller is not asked.
    """
    opinion = read_opinion(session.agent, verdict, findings, summary)

    def work(tx: Transaction) -> None:
        me = require_live(tx, session)
        review = find_review(tx, review_id)
        if review is None:
            raise unknown_review(review_id)
        _check_may_judge(tx, review, me, head)
        entry = _find_entry_for(tx, review, me)
        task = lock_task(tx, entry.task)
        if task.state == READY:
            task = take_ownership(tx, me, task)
        lock_task(tx, review.task)
        review = lock_review(tx, review_id)
        _check_may_judge(tx, review, me, head)
        answered = replace(
            entry,
            verdict=opinion.verdict,
            by=me.agent,
            session=me.id,
            summary=opinion.summary,
            findings=opinion.findings,
            at=repo.store.wall_of(tx.now),
        )
        put_review(tx, _with_entry(review, answered), "judged", me)
        fields = answered.to_document()
        result = {name: fields[name] for name in ("verdict", "summary", "findings")}
        judged = replace(task, result=json.dumps(result, ensure_ascii=False)[:60_000])
        evidence: dict[str, object] = {
            "name": "verdict",
            "is_seen": True,
            "found": opinion.verdict,
            "hint": "",
        }
        finish_task(tx, repo, judged, me, head="", evidence=[evidence])

    repo.change(work)
    return get_review(repo, review_id)


def _check_may_judge(tx: Transaction, review: Review, session: Session, head: str) -> None:
    if review.state not in UNDECIDED:
        raise Stale(
            f"{review.id} is {review.state}: it wants no verdict any more",
            code="REVIEW_OVER",
            hint=f"see how it ended: landlane review show {review.id}",
            state=review.state,
        )
    if head and not review.head.startswith(head):
        raise Stale(
            f"{review.id} is of {review.head[:12] or 'a result'}, not of {head[:12]}",
            code="HEAD_MOVED",
            hint=f"look at it again: git show {review.head[:12]}",
        )
    if _is_author(tx, review, session):
        raise NotAllowed(
            f"{review.id} is of {session.agent}'s own work",
            code="OWN_REVIEW",
            hint="another agent has to review it",
        )
    if review.gate:
        raise NotAllowed(
            f"{review.id} waits for a person to decide",
            code="WAITS_FOR_PERSON",
            hint=f"a person answers it: landlane gate show {review.gate}",
        )
    if review.state == OPEN and any(entry.by == session.agent for entry in review.entries):
        raise NotAllowed(
            f"{session.agent} has given its verdict on {review.id}",
            code="VERDICT_GIVEN",
            hint="one verdict for each reviewer; a new commit gets a new review",
        )


def _is_author(snapshot: Snapshot, review: Review, session: Session) -> bool:
    """Return whether the reviewed work is of this session, or of one that it is a subagent of."""
    return session.agent == review.agent or review.session in (
        session.id,
        *find_ancestors(snapshot, session.id),
    )


def may_take(snapshot: Snapshot, session: Session, task: Task) -> bool:
    """Return whether a reviewer's task may go to a session."""
    review = find_review(snapshot, review_id_of(task))
    return review is None or task.id not in _tasks_closed_to(snapshot, review, session)


def tasks_not_for(snapshot: Snapshot, session: Session) -> set[str]:
    """Return the reviewers' tasks that may not go to a session."""
    reviews = reviews_in(snapshot, UNDECIDED)
    return {task_id for review in reviews for task_id in _tasks_closed_to(snapshot, review, session)}


def _tasks_closed_to(snapshot: Snapshot, review: Review, session: Session) -> set[str]:
    """Return the tasks of a review for others: not for the author, nor for a second verdict of one agent."""
    if _is_author(snapshot, review, session):
        return {entry.task for entry in review.all_entries}
    has_answered = any(entry.by == session.agent for entry in review.entries)
    return {
        entry.task
        for entry in review.all_entries
        if not is_asked(entry.name, session.agent) or (has_answered and entry is not review.decision)
    }


def _find_entry_for(tx: Transaction, review: Review, session: Session) -> ReviewEntry:
    """Return the entry for a session's verdict: its own task, else a free one, by name first."""
    supervisor = find_supervisor(tx, session.id)
    free: list[ReviewEntry] = []
    for entry in review.awaited:
        task = lock_task(tx, entry.task)
        if task.state in IN_PROGRESS and task.session in (session.id, supervisor):
            return entry
        is_for_person = entry.name == PERSON and session.is_person
        if task.state == READY and (is_for_person or is_asked(entry.name, session.agent)):
            free.append(entry)
    if free:
        return min(free, key=lambda entry: not entry.name)
    names = ", ".join(dict.fromkeys(entry.name for entry in review.awaited if entry.name))
    raise NotAllowed(
        f"{review.id} asks {names or 'others'} for a verdict",
        code="NOT_A_REVIEWER",
        hint="`landlane next --role review` gives you a review of your own",
        holder=names or None,
    )


def _with_entry(review: Review, answered: ReviewEntry) -> Review:
    if review.state == DECIDING:
        return replace(review, decision=answered)
    entries = tuple(answered if entry.task == answered.task else entry for entry in review.entries)
    return replace(review, entries=entries)


def take_verdict(repo: Repository, session: Session, task: Task, message: WorkComplete) -> Review:
    """Give the verdict that a worker ended with: in the fields of its message, or as JSON in the summary.

    Raises:
        Malformed: there is no verdict, or it does not match the contract.
        Stale: the review has ended, or is about another commit.
    """
    if message.verdict is not None:
        fields: dict[str, Any] = {
            "verdict": message.verdict,
            "findings": message.findings,
            "summary": message.summary,
        }
    else:
        fields = {"verdict": None} | _verdict_in_text(message.summary)
    return give_verdict(repo, session, review_of_task(repo, task).id, **fields)


def _verdict_in_text(text: str) -> dict[str, Any]:
    start, end = text.find("{"), text.rfind("}")
    try:
        return verdict_fields(json.loads(text[start : end + 1]))
    except (ValueError, RecursionError):
        raise bad_verdict("the reviewer gave no verdict") from None
