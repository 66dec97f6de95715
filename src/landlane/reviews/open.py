"""Open a review, withdraw work from it, and find the review that a task requires.

Each reviewer gets a task. During the review a session of its own holds the author's claims, so that the
work cannot change while it is judged.
"""

from __future__ import annotations

from landlane.claims.holder_sessions import end_holder, return_claims
from landlane.errors import NotAllowed, Stale
from landlane.patterns.pattern import alternatives_overlap
from landlane.reviews.model import (
    APPROVED,
    OUTDATED,
    PERSON,
    REJECTED,
    UNDECIDED,
    RequiredReview,
    Review,
    ReviewEntry,
    require_review,
    review_in_labels,
)
from landlane.reviews.reconcile import feedback_text
from landlane.reviews.records import next_review_id, put_review, reviews_of_task
from landlane.sessions.leases import lock_live_session, require_live
from landlane.sessions.model import SessionKind
from landlane.tasks.add import Added, add_task_in
from landlane.tasks.finish import move_claims_to_holder
from landlane.tasks.model import ACTIVE, LONGEST_TITLE, REVIEW, REVIEW_KIND, NewTask, check_new_task
from landlane.tasks.records import (
    REVIEW_LABEL,
    actor_of,
    lock_task,
    move_task,
    task_patterns,
    with_dependencies,
)
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.tasks.model import Task, TaskState


_ROLE = "review"
_MOST_ATTEMPTS = 3
_MOST_ROUNDS_SHOWN = 3


def find_required_review(
    repo: Repository, task: Task, kind: str, changed: Sequence[str] = ()
) -> RequiredReview | None:
    """Return the review that the labels of a task require, or the settings for its kind and paths."""
    if task.kind == REVIEW_KIND:
        return None  # reviews are not reviewed themselves
    settings = repo.settings.review
    if labelled := review_in_labels(task.labels, settings.decider):
        return labelled
    if kind in settings.kinds or _touches_reviewed_paths(repo, task, changed):
        return require_review(settings.count, settings.reviewers, settings.decider)
    return None


def _touches_reviewed_paths(repo: Repository, task: Task, changed: Sequence[str]) -> bool:
    globs = repo.settings.review.paths
    if any(repo.git.find_glob(globs, path) for path in changed):
        return True
    reviewed = [one for glob in globs for one in repo.git.pattern_of(glob, "glob").alternatives]
    declared = [one for pattern in task_patterns(repo, task) for one in pattern.alternatives] if globs else []
    return any(alternatives_overlap(one, other) for one in reviewed for other in declared)


def open_review(
    tx: Transaction,
    repo: Repository,
    session: Session | None,
    task: Task,
    head: str,
    required: RequiredReview,
    *,
    base: str = "",
    change: str = "",
) -> Review:
    """Open a review of exactly this commit, or return the one that is open; `task` is locked."""
    earlier = reviews_of_task(tx, task.id)
    for review in earlier:
        if review.state in UNDECIDED:
            if review.head == head and review.attempt == task.attempt and task.state == REVIEW:
                return review
            outdate(tx, review, f"the work is at {head[:12] or 'another state'} now")
    review = Review(
        id=next_review_id(tx),
        task=task.id,
        attempt=task.attempt,
        head=head,
        base=base,
        change=change,
        agent=task.owner,
        session=task.session,
        decider=required.decider,
        opened_at=repo.store.wall_of(tx.now),
        round=1 + sum(one.state == REJECTED for one in earlier),
    )
    body = _reviewer_instructions(task, review, _earlier_feedback(earlier))
    title = f"Review {task.id}: {task.title}"
    entries = tuple(
        add_reviewer(tx, repo, session, review, name, title=title, body=body, key=f"{at}")
        for at, name in enumerate(required.reviewers, start=1)
    )
    review = _hold_claims(tx, repo, task, replace(review, entries=entries))
    why = f"{review.id}: {_describe_reviewers(required)} at {head[:12] or 'the result'}"
    next_action = f"landlane review show {review.id}"
    move_task(tx, task, REVIEW, keep_owner=True, head=head, why=why, next_action=next_action)
    put_review(tx, review, "opened", session)
    facts = {"task": task.id, "head": head, "why": why, "review": review.id}
    tx.record("task.reviewing", *actor_of(session), facts)
    tx.has_freed = True
    return review


def _hold_claims(tx: Transaction, repo: Repository, task: Task, review: Review) -> Review:
    author = lock_live_session(tx, task.session) if task.session else None
    if author is None:
        return review
    holder, claims = move_claims_to_holder(
        tx,
        repo,
        author,
        task.id,
        name=review.id,
        kind=SessionKind.REVIEW,
        note=f"{review.id}: {task.id} of {author.agent} is under review",
    )
    return replace(review, holder=holder, claims=claims)


def _describe_reviewers(required: RequiredReview) -> str:
    names = [name for name in required.reviewers if name]
    others = len(required.reviewers) - len(names)
    if others:
        names.append(f"{others} {'other' if names else 'reviewer'}{'s' if others > 1 else ''}")
    return f"{' and '.join(names)} look{'s' if len(required.reviewers) == 1 else ''}"


def _earlier_feedback(earlier: Sequence[Review]) -> str:
    texts = [
        f"{review.id} rejected {review.head[:12]}:\n{feedback_text(review.id, review.opinions, 4000)}"
        for review in earlier
        if review.state == REJECTED
    ]
    return "\n\n".join(texts[-_MOST_ROUNDS_SHOWN:])


def _reviewer_instructions(task: Task, review: Review, earlier_feedback: str) -> str:
    what = f"commit {review.head}" if review.head else f"the result of attempt {review.attempt}"
    since = f", which began at {review.base}" if review.base else ""
    body = (
        f"Review {what} of {task.id} ({task.title}), the work of {review.agent or 'an agent'}{since}.\n\n"
        f"{task.body}\n\n"
        'Answer with {"verdict": "approve" or "reject", "summary": "…", "findings":'
        ' [{"path": "…", "line": 1, "severity": "blocker|major|minor|note|praise", "text": "…"}]}:\n'
        f"landlane review give {review.id} --verdict approve|reject --summary '…' --findings FILE\n"
    )
    return f"{body}\nWhat was said of it before:\n\n{earlier_feedback}\n" if earlier_feedback else body


def add_reviewer(
    tx: Transaction,
    repo: Repository,
    session: Session | None,
    review: Review,
    name: str,
    *,
    title: str,
    body: str,
    key: str,
) -> ReviewEntry:
    """Add the task of one reviewer or of the decider, and return its entry without a verdict."""
    agent_labels = (f"agent:{name}",) if name and name != PERSON else ()
    new = NewTask(
        title=title[:LONGEST_TITLE],
        body=body[:60_000],
        kind=REVIEW_KIND,
        role=_ROLE,
        key=f"review/{review.id}/{key}",
        labels=(f"{REVIEW_LABEL}{review.id}", *agent_labels),
        parent=review.task,
        max_attempts=_MOST_ATTEMPTS,
        next_action=f"landlane review give {review.id}",
    )
    added = add_task_in(tx, repo, session, check_new_task(new), (), force=True)
    assert isinstance(added, Added)
    return ReviewEntry(name=name, task=added.task.id)


def outdate(tx: Transaction, review: Review, why: str) -> None:
    """End a review without a result; `settle_reviews` drops the tasks of its reviewers later."""
    end_holder(tx, review.holder)
    outdated = review.become(OUTDATED, is_settled=False, why=why, holder="", claims=())
    put_review(tx, outdated, "outdated")


def withdraw_from_review(repo: Repository, session: Session, task_id: str) -> Task:
    """Return a task under review to its author with its claims; the review becomes outdated.

    Raises:
        NotAllowed: the task is not under review.
        Stale: it is the work of another agent.
    """

    def work(tx: Transaction) -> Task:
        author = require_live(tx, session)
        task = lock_task(tx, task_id)
        if task.state != REVIEW:
            raise NotAllowed(
                f"{task_id} is {task.state}, not under review",
                code="TASK_WRONG_STATE",
                hint=f"see why: landlane task show {task_id}",
                state=task.state,
            )
        if author.agent != task.owner:
            raise Stale(
                f"{task_id} is the work of {task.owner}, not of {author.agent}",
                code="TASK_NOT_YOURS",
                hint="give a verdict instead: landlane review give",
                holder=task.owner or None,
            )
        for review in reviews_of_task(tx, task_id):
            if review.state in UNDECIDED or (review.state == APPROVED and not review.is_settled):
                return_claims(tx, repo, review.holder, review.claims, author)
                outdate(tx, replace(review, holder=""), f"{author.agent} took the work back")
        return resume_task(tx, author, task, ACTIVE, f"{author.agent} took the work back from review")

    return repo.change(work)


def resume_task(
    tx: Transaction,
    owner: Session,
    task: Task,
    state: TaskState,
    reason: str,
    *,
    why: str = "",
    head: str = "",
) -> Task:
    """Move a reviewed task on and make the session its owner; `reason` goes to the journal."""
    move_task(tx, task, state, keep_owner=True, why=why, head=head, next_action="")
    ownership = {"owner": owner.agent, "session": owner.id}
    tx.run("task_own", task=task.id, **ownership)
    facts: dict[str, object] = {"task": task.id, "why": reason, "kept_why": why, "state": state, "head": head}
    facts |= {**ownership, "attempt": task.attempt, "failures": task.failures}
    tx.record("task.reviewed", *actor_of(owner), facts)
    tx.has_freed = True
    return with_dependencies(tx, lock_task(tx, task.id))
