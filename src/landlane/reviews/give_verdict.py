"""Reviews: verdicts on one commit by reviewers at the same time; with the last one the review is settled.

Each reviewer has a task of its own. A verdict ends it, and at the end of the same transaction the review is
judged: approved, rejected, or put before its decider. Whoever locks several of these takes the reviewer's
task first, then the reviewed one, then the review.
"""

from __future__ import annotations

import json

from landlane.errors import NotAllowed, Stale
from landlane.reviews.close import settle_reviews
from landlane.reviews.model import APPROVED, DECIDING, GOING_ON, OPEN, Review, is_meant
from landlane.reviews.open import begin_review, begin_review_in, step_for, take_back
from landlane.reviews.records import (
    NOUN,
    get_review,
    is_approved,
    opinions_of,
    review_from,
    unknown_review,
)
from landlane.reviews.verdict_model import Opinion, bad_verdict, make_opinion, read_opinion
from landlane.sessions.leases import require_live
from landlane.sessions.read import find_ancestors
from landlane.sessions.worker_sessions import keeper_of
from landlane.store import records
from landlane.tasks.finish import finish
from landlane.tasks.model import AT_WORK, READY, REVIEW
from landlane.tasks.records import REVIEW_LABEL, find_task, get_in, who
from landlane.values import as_dict, replace

__all__ = [
    "approved_waiting",
    "begin_review",
    "begin_review_in",
    "commit_under_review",
    "get_review",
    "give_verdict",
    "is_approved",
    "is_author",
    "list_reviews",
    "opinions_of",
    "review_of_task",
    "step_for",
    "take_back",
    "take_verdict",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
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
    verdict: str,
    findings: object = (),
    summary: str = "",
    head: str = "",
    reviewer: str = "",
) -> Review:
    """A reviewer, or the decider, says what it thinks of the commit; with the last verdict the review ends.

    `head` is the beginning of the commit that was looked at.

    Raises:
        Malformed: there is no such review, or the verdict does not keep to the contract.
        Stale: the review is over, or of another commit.
        NotAllowed: it is the author's own work, or the caller is not asked.
    """
    opinion = make_opinion(reviewer or session.agent, verdict, findings, summary)

    def work(tx: Transaction) -> Review:
        me = require_live(tx, session)
        known = records.find(tx, NOUN, review_id)
        if known is None:
            raise unknown_review(review_id)
        review = _judgeable(tx, review_from(known), me, head)
        entry = _entry_for(tx, review, me)
        task = _take_if_free(tx, me, get_in(tx, entry["task"]))
        get_in(tx, review.task)
        review = _judgeable(tx, review_from(records.lock(tx, NOUN, review_id) or known), me, head)
        _refuse_second(review, me)
        given = {**entry, "verdict": opinion.verdict, "by": me.agent, "session": me.id}
        given |= {"summary": opinion.summary, "findings": [as_dict(one) for one in opinion.findings]}
        given["at"] = repo.store.wall_of(tx.now)
        review = _with(review, given)
        records.put(tx, NOUN, as_dict(review), "judged", me)
        told = {"verdict": opinion.verdict, "summary": opinion.summary, "findings": given["findings"]}
        ended = replace(task, result=json.dumps(told, ensure_ascii=False)[:60_000])
        proof: dict[str, object] = {"name": "verdict", "is_seen": True, "found": opinion.verdict, "hint": ""}
        finish(tx, repo, ended, me, head="", evidence=[proof])
        return review

    repo.change(work)
    return get_review(repo, review_id)


def _judgeable(tx: Transaction, review: Review, me: Session, head: str) -> Review:
    if review.state not in GOING_ON:
        raise Stale(
            f"{review.id} is {review.state}: it wants no verdict any more",
            code="REVIEW_OVER",
            hint=f"`landlane review show {review.id}` tells how it ended",
            state=review.state,
        )
    if head and not review.head.startswith(head):
        raise Stale(
            f"{review.id} is of {review.head[:12] or 'a result'}, not of {head[:12]}",
            code="HEAD_MOVED",
            hint=f"look at it again: git show {review.head[:12]}",
        )
    if is_author(tx, review, me):
        raise NotAllowed(
            f"{review.id} is of {me.agent}'s own work",
            code="OWN_REVIEW",
            hint="somebody else has to judge it",
        )
    return review


def is_author(snapshot: Snapshot, review: Review, me: Session) -> bool:
    """Whether a session made the work that is reviewed, or is a subagent of who did."""
    return me.agent == review.agent or review.session in (me.id, *find_ancestors(snapshot, me.id))


def may_take(snapshot: Snapshot, me: Session, task: Task) -> bool:
    """Whether a reviewer's task may go to a session: not the author, and whoever is named if somebody is.

    One verdict for each: who gave one already is not asked again.
    """
    name = _review_id(task)
    document = records.find(snapshot, NOUN, name) if name else None
    return document is None or task.id not in _closed_to(snapshot, review_from(document), me)


def not_to_take(snapshot: Snapshot, me: Session) -> set[str]:
    """All tasks of reviewers that may not go to a session."""
    found = [review_from(one) for one in records.all_of(snapshot, NOUN, GOING_ON)]
    return {task_id for review in found for task_id in _closed_to(snapshot, review, me)}


def _closed_to(snapshot: Snapshot, review: Review, me: Session) -> set[str]:
    entries = list(review.entries)
    has_said = any(entry["by"] == me.agent for entry in entries)
    closed = {entry["task"] for entry in entries if has_said or not is_meant(entry["name"], me.agent)}
    if review.decision and not is_meant(review.decision["name"], me.agent):
        closed.add(review.decision["task"])
    is_own = is_author(snapshot, review, me)
    return {entry["task"] for entry in (*entries, review.decision or entries[0])} if is_own else closed


def _review_id(task: Task) -> str:
    return next(
        (label.removeprefix(REVIEW_LABEL) for label in task.labels if label.startswith(REVIEW_LABEL)), ""
    )


def _entry_for(tx: Transaction, review: Review, me: Session) -> dict[str, Any]:
    """The place where this session's verdict belongs."""
    if review.state == DECIDING:
        decision = review.decision or {}
        if review.gate:
            raise NotAllowed(
                f"{review.id} waits for a person to decide",
                code="WAITS_FOR_PERSON",
                hint=f"a person answers it: landlane gate show {review.gate}",
            )
        if decision and _may_fill(tx, decision, me):
            return dict(decision)
        raise _not_asked(review, [str(decision.get("name", ""))])
    _refuse_second(review, me)
    left = [dict(entry) for entry in review.entries if not entry["verdict"]]
    taken = [entry for entry in left if _has_in_hand(tx, get_in(tx, entry["task"]), me)]
    free = [entry for entry in left if _may_fill(tx, entry, me)]
    if not taken and not free:
        raise _not_asked(review, [str(entry["name"]) for entry in left])
    return (taken or sorted(free, key=lambda entry: not entry["name"]))[0]


def _refuse_second(review: Review, me: Session) -> None:
    if review.state != DECIDING and any(entry["by"] == me.agent for entry in review.entries):
        raise NotAllowed(
            f"{me.agent} has given its verdict on {review.id}",
            code="VERDICT_GIVEN",
            hint="one verdict for each reviewer; a new commit gets a new review",
        )


def _may_fill(tx: Transaction, entry: Any, me: Session) -> bool:
    task = get_in(tx, entry["task"])
    is_free = task.state == READY and is_meant(entry["name"], me.agent)
    return is_free or _has_in_hand(tx, task, me)


def _has_in_hand(tx: Transaction, task: Task, me: Session) -> bool:
    """Whether a session is at work on a task, or is the worker of who is."""
    return task.state in AT_WORK and task.session in (me.id, keeper_of(tx, me.id))


def _not_asked(review: Review, names: Sequence[str]) -> NotAllowed:
    named = ", ".join(dict.fromkeys(name for name in names if name))
    return NotAllowed(
        f"{review.id} asks {named or 'others'} for a verdict",
        code="NOT_A_REVIEWER",
        hint="`landlane next --role review` gives you a review of your own",
        holder=named or None,
    )


def _take_if_free(tx: Transaction, me: Session, task: Task) -> Task:
    """Whoever judges without having taken the task takes it with the verdict."""
    if task.state != READY:
        return task
    tx.run("task_take", task=task.id, owner=me.agent, session=me.id)
    tx.record("task.taken", *who(me), {"task": task.id, "attempt": task.attempt + 1, "base": ""})
    return get_in(tx, task.id)


def _with(review: Review, given: dict[str, Any]) -> Review:
    if review.state == DECIDING:
        return replace(review, decision=given)
    entries = [given if entry["task"] == given["task"] else entry for entry in review.entries]
    return replace(review, entries=entries)


def take_verdict(repo: Repository, session: Session, task: Task, said: WorkComplete) -> Review:
    """What a worker that reviewed has said at its end: a verdict in its fields, or as JSON in its summary.

    Raises:
        Malformed: there is no verdict, or one that does not keep to the contract.
        Stale: the review is over, or of another commit.
    """
    review = review_of_task(repo, task)
    if said.verdict is not None:
        opinion = make_opinion(session.agent, said.verdict, said.findings or (), said.summary)
    else:
        opinion = _opinion_in(said.summary)
    return give_verdict(
        repo,
        session,
        review.id,
        verdict=opinion.verdict,
        findings=opinion.findings,
        summary=opinion.summary,
    )


def _opinion_in(text: str) -> Opinion:
    start, end = text.find("{"), text.rfind("}")
    try:
        return read_opinion(json.loads(text[start : end + 1]))
    except (ValueError, RecursionError):
        raise bad_verdict("the reviewer gave no verdict") from None


def review_of_task(repo: Repository, task: Task) -> Review:
    """The review that a reviewer's task is part of.

    Raises:
        Malformed: it is no such task.
    """
    return get_review(repo, _review_id(task) or task.id)


def commit_under_review(repo: Repository, task: Task) -> str:
    """The commit that a reviewer's task is about; nothing for other tasks, and where there is none."""
    name = _review_id(task)
    return get_review(repo, name).head if name else ""


def list_reviews(repo: Repository, *, with_all: bool = False) -> list[Review]:
    """The reviews that go on, or all of them."""
    settle_reviews(repo)
    states = () if with_all else (OPEN, DECIDING, APPROVED)
    return [review_from(one) for one in repo.store.view(lambda it: records.all_of(it, NOUN, states))]


def approved_waiting(repo: Repository) -> list[Review]:
    """What was approved after its author had gone: somebody has to adopt it, and land it."""

    def look(snapshot: Snapshot) -> list[Review]:
        found = [review_from(one) for one in records.all_of(snapshot, NOUN, (APPROVED,))]
        tasks = [find_task(snapshot, review.task) for review in found]
        return [
            review
            for review, task in zip(found, tasks, strict=True)
            if task is not None and task.state == REVIEW
        ]

    return repo.store.view(look)
