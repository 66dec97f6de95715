"""How a review ends: approved for its commit, sent back to the author, decided by another, or outdated.

All of it happens at the end of the transaction that brought the last verdict. A rejection goes through the
same judge as every other way back into the queue, so that a writer and a reviewer that never agree stop.
"""

from __future__ import annotations

from landlane.errors import NotAllowed
from landlane.gates.ask import open_gate_in
from landlane.reviews.model import (
    APPROVED,
    DECIDING,
    GOING_ON,
    OPEN,
    OUTDATED,
    PERSON,
    REJECTED,
    Review,
    feedback_text,
    is_person,
    judge,
)
from landlane.reviews.open import (
    add_task_in,
    adopt_in,
    outdate_in,
)
from landlane.reviews.records import (
    NOUN,
    blank_entry,
    get_review,
    is_over_in,
    opinions_of,
    review_from,
    unknown_review,
)
from landlane.reviews.review_claims import end_holder, give_claims, living_author
from landlane.reviews.verdict_model import APPROVE, REJECT
from landlane.sessions.leases import require_live
from landlane.sessions.notices import add_notice
from landlane.store import records
from landlane.tasks.add import forget_signs
from landlane.tasks.finish import finish
from landlane.tasks.model import (
    ACTIVE,
    DROPPED,
    LONGEST_LINE,
    OVER,
    READY,
    REPORTED,
    REVIEW,
    WAITING,
)
from landlane.tasks.records import find_task, get_in, move_task, whole
from landlane.tasks.retry import end_attempt_in
from landlane.tasks.retry_rules import AttemptEnd
from landlane.values import as_dict, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Task


_GATE_KIND = "approval"
_MOST_WHY = 1_500


def settle_in(tx: Transaction, repo: Repository, review_id: str) -> None:
    """End a review if all is said, inside a transaction that holds still whatever made it so."""
    document = records.find(tx, NOUN, review_id)
    if document is None or document["state"] not in GOING_ON:
        return
    task = get_in(tx, document["task"])
    review = review_from(records.lock(tx, NOUN, review_id) or document)
    if review.state not in GOING_ON or task.state == WAITING:
        return  # somebody was quicker, or a person is asked about the task first
    if task.state != REVIEW or task.attempt != review.attempt:
        outdate_in(tx, review, f"{task.id} is {task.state}: nobody waits for this review")
    elif review.state == OPEN:
        _judge(tx, repo, task, review)
    else:
        _decide(tx, repo, task, review)


def _judge(tx: Transaction, repo: Repository, task: Task, review: Review) -> None:
    missing = [entry for entry in review.entries if not entry["verdict"]]
    is_over = all(is_over_in(tx, entry) for entry in missing)
    found = judge(opinions_of(review), missing=len(missing), is_over=is_over)
    if found is None:
        return
    if found.state == DECIDING:
        contradictions = [as_dict(one) for one in found.contradictions]
        review = replace(review, contradictions=contradictions, why=found.why)
        _ask_decider(tx, repo, task, review, review.decider)
    else:
        _end(tx, repo, task, review, is_yes=found.state == APPROVED, by="")


def _ask_decider(tx: Transaction, repo: Repository, task: Task, review: Review, decider: str) -> None:
    """Put a review before the one who decides: a task for an agent, with a gate for a person."""
    said = feedback_text(review.id, opinions_of(review), 6_000)
    what = f"commit {review.head}" if review.head else f"the result of attempt {review.attempt}"
    body = (
        f"The reviewers of {what} of {task.id} ({task.title}) do not agree: {review.why}\n\n"
        f"What they said:\n\n{said}\n\nDecide, with a reason:\n"
        f"landlane review give {review.id} --verdict approve|reject --summary '…'\n"
    )
    name = PERSON if is_person(decider) else decider
    title = f"Decide on {task.id}: {task.title}"
    task_id = add_task_in(tx, repo, None, review, title, body, name, f"decision/{name}")
    decision = blank_entry(decider, task_id)
    review = replace(review, state=DECIDING, decision=decision, decider=decider)
    if is_person(decider):
        about = {"task": task.id, "review": review.id, "head": review.head}
        why = f"Let {task.id} ({task.title}) go on? Its reviewers do not agree: {review.why}"
        gate = open_gate_in(
            tx,
            repo,
            None,
            task=get_in(tx, task_id),
            kind=_GATE_KIND,
            why=why[:_MOST_WHY],
            about=about,
            evidence={"said": said},
        )
        review = replace(review, gate=gate.id)
    records.put(tx, NOUN, as_dict(review), "disputed")
    told = review.gate or task_id
    why = f"{review.id}: the reviewers do not agree; {decider} decides ({told})"
    tx.run("task_set_why", task=task.id, why=why, next_action=f"landlane review show {review.id}")
    tx.frees = True


def _decide(tx: Transaction, repo: Repository, task: Task, review: Review) -> None:
    """The decider has said something, or never will."""
    decision = dict(review.decision or {})
    if decision.get("verdict"):
        _end(tx, repo, task, review, is_yes=decision["verdict"] == APPROVE, by=str(decision["by"]))
        return
    gate = records.find(tx, "gate", review.gate) if review.gate else None
    if gate is not None and gate["state"] in ("approved", "rejected"):
        is_yes = gate["state"] == "approved"
        decision |= {"verdict": APPROVE if is_yes else REJECT, "by": gate["answered_by"]}
        decision |= {"summary": gate["answer"], "at": gate["answered_at"]}
        _drop_in(tx, repo, str(decision["task"]), f"{gate['answered_by']} decided at {review.gate}")
        _end(tx, repo, task, replace(review, decision=decision), is_yes=is_yes, by=gate["answered_by"])
    elif is_over_in(tx, decision):
        _ask_decider(tx, repo, task, replace(review, gate=""), PERSON)


def _end(tx: Transaction, repo: Repository, task: Task, review: Review, *, is_yes: bool, by: str) -> None:
    now = replace(review, ended_at=repo.store.wall_of(tx.now))
    names = by or ", ".join(str(one["by"]) for one in review.entries if one["by"])
    if is_yes:
        _approve(tx, repo, task, replace(now, state=APPROVED), names)
    else:
        _reject(tx, repo, task, replace(now, state=REJECTED), names)


def _author(tx: Transaction, repo: Repository, review: Review) -> Session | None:
    """Who goes on with the work: its author, unless that is gone, or was a worker that ends with its word."""
    if any(one["session"] == review.session for one in records.by_key(tx, "attempt", review.task)):
        return None
    return living_author(tx, repo, review.session)


def _approve(tx: Transaction, repo: Repository, task: Task, review: Review, names: str) -> None:
    """The task goes on with exactly this commit: to its author, or to whoever adopts it."""
    told = f"{review.id} approved {review.head[:12] or 'the result'} ({names})"
    if not review.head:
        end_holder(tx, review)
        records.put(tx, NOUN, as_dict(replace(review, is_settled=True, why=told, holder="")), "approved")
        evidence: list[dict[str, object]] = [{"name": "review", "is_seen": True, "found": told, "hint": ""}]
        finish(tx, repo, task, None, head="", evidence=evidence)
        return
    author = _author(tx, repo, review)
    if author is None:
        why = f"{told}; its author is gone: landlane review adopt {review.id}"
        tx.run("task_set_why", task=task.id, why=why, next_action=f"landlane review adopt {review.id}")
        records.put(tx, NOUN, as_dict(replace(review, why=told)), "approved")
        tx.frees = True
        return
    give_claims(tx, repo, review, author)
    adopt_in(tx, author, task, REPORTED, why=f"{told}; not landed yet", told=told, head=review.head)
    records.put(tx, NOUN, as_dict(replace(review, is_settled=True, why=told, holder="")), "approved")
    add_notice(tx, author.id, f"{told}: land it with `landlane land {task.branch}`")


def _reject(tx: Transaction, repo: Repository, task: Task, review: Review, names: str) -> None:
    """Back to the author with all that was said, if it may try again."""
    said = feedback_text(review.task, opinions_of(review), LONGEST_LINE - 100)
    text = f"the review rejected it\n{said}"  # no ids here: what is said twice must be the same twice
    author = _author(tx, repo, review)
    end = AttemptEnd(
        task=task.id,
        attempt=task.attempt,
        code="rejected",
        feedback=text,
        change=review.change or review.head,
        is_progress=True,
    )
    # Who lives goes on where it was: the same attempt, the same branch.
    decision = end_attempt_in(
        tx,
        repo,
        author,
        replace(task, head=""),
        end,
        grace=0 if author is None else task.failures + 1,
        retry_state=ACTIVE if author is not None else READY,
        keep_owner=author is not None,
    )
    if author is not None and decision.task.state == ACTIVE:
        give_claims(tx, repo, review, author)
        add_notice(tx, author.id, f"{task.id} is yours again: {text}"[:LONGEST_LINE])
    else:
        end_holder(tx, review)
    why = f"rejected by {names}; {decision.outcome}"
    records.put(
        tx, NOUN, as_dict(replace(review, is_settled=True, why=why, holder="", claims=())), "rejected"
    )


# --------------------------------------------------------------------------------------------- clean-up


def _drop_in(tx: Transaction, repo: Repository, task_id: str, why: str) -> None:
    """Drop a reviewer's task that nobody needs any more; one that is at work on it hears of it at its end."""
    task = get_in(tx, task_id)
    if task.state not in OVER:
        move_task(tx, task, DROPPED, why=why)
        forget_signs(tx, repo, task)
        tx.record("task.dropped", "", "", {"task": task_id, "why": why, "before": task.state})
        tx.frees = True


def settle_all(repo: Repository, found: Sequence[Review]) -> int:
    """Settle what no move of a reviewer's task brings about; tells how many reviews that were."""
    settled = 0
    for review in found:
        if review.state == OUTDATED:
            _drop_reviewers(repo, review)
            settled += 1
        elif review.state == APPROVED:
            settled += repo.change(lambda tx, review=review: _forget_adopted(tx, review.id))
        elif _is_due(repo, review):
            repo.change(lambda tx, review=review: settle_in(tx, repo, review.id))
            settled += 1
    return settled


def _is_due(repo: Repository, review: Review) -> bool:
    def look(snapshot: Snapshot) -> bool:
        task = find_task(snapshot, review.task)
        if task is None or task.state not in (REVIEW, WAITING):
            return True
        left = [entry for entry in review.entries if not entry["verdict"]]
        if review.state == DECIDING:
            gate = records.find(snapshot, "gate", review.gate) if review.gate else None
            is_answered = gate is not None and gate["state"] in ("approved", "rejected")
            return is_answered or is_over_in(snapshot, review.decision or left[0])
        return all(is_over_in(snapshot, entry) for entry in left)

    return repo.store.view(look)


def _drop_reviewers(repo: Repository, review: Review) -> None:
    entries = [*review.entries, *([review.decision] if review.decision else [])]
    for entry in entries:
        repo.change(lambda tx, entry=entry: _drop_in(tx, repo, entry["task"], f"{review.id}: {review.why}"))

    def settle(tx: Transaction) -> None:
        document = records.lock(tx, NOUN, review.id)
        if document is not None and not document["is_settled"]:
            records.put(tx, NOUN, {**document, "is_settled": True}, "settled")

    repo.change(settle)


def _forget_adopted(tx: Transaction, review_id: str) -> bool:
    """What was approved and waits for somebody to land it, though its task went another way."""
    document = records.find(tx, NOUN, review_id)
    if document is None or document["is_settled"]:
        return False
    task = get_in(tx, document["task"])
    if task.state in (REVIEW, WAITING) and task.attempt == document["attempt"]:
        return False
    review = review_from(records.lock(tx, NOUN, review_id) or document)
    end_holder(tx, review)
    records.put(tx, NOUN, as_dict(replace(review, is_settled=True, holder="", claims=())), "settled")
    return True


def adopt(repo: Repository, session: Session, name: str) -> Task:
    """Take over work that was approved after its author had gone, with its claims, to land it as it is.

    Raises:
        Malformed: there is no such review.
        NotAllowed: nothing waits there to be adopted.
    """
    settle_reviews(repo)
    known = get_review(repo, name)

    def work(tx: Transaction) -> Task:
        me = require_live(tx, session)
        task = get_in(tx, known.task)
        document = records.lock(tx, NOUN, known.id)
        if document is None:
            raise unknown_review(name)
        review = review_from(document)
        if review.state != APPROVED or review.is_settled or task.state != REVIEW:
            raise NotAllowed(
                f"{review.id} is {review.state}, and {task.id} is {task.state}: there is nothing to adopt",
                code="NOTHING_TO_ADOPT",
                hint="`landlane review list` shows what waits",
                state=review.state,
            )
        told = f"{me.agent} adopts {task.id}, approved at {review.head[:12]}"
        give_claims(tx, repo, review, me)
        adopt_in(tx, me, task, REPORTED, why=f"{review.why}; not landed yet", told=told, head=review.head)
        records.put(tx, NOUN, as_dict(replace(review, is_settled=True, holder="")), "adopted", me)
        return whole(tx, get_in(tx, task.id))

    return repo.change(work)


def settle_reviews(repo: Repository) -> int:
    """Settle what a deadline or a crash has left; quick when there is nothing to do."""
    found = repo.store.view(lambda it: records.all_of(it, NOUN, (*GOING_ON, OUTDATED, APPROVED)))
    if not found:
        return 0
    return settle_all(repo, [review_from(one) for one in found])
