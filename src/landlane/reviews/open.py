"""Opening a review: a task for each reviewer, all of them on one commit, and the claims kept meanwhile."""

from __future__ import annotations

from landlane.errors import NotAllowed, Stale
from landlane.patterns.pattern import alternatives_overlap, covers_alternative
from landlane.reviews.model import (
    APPROVED,
    GOING_ON,
    OUTDATED,
    REJECTED,
    ROLE,
    Review,
    Step,
    feedback_text,
    is_person,
    make_step,
    step_of,
)
from landlane.reviews.records import NOUN, blank_entry, opinions_of, review_from
from landlane.reviews.review_claims import end_holder, give_claims, keep_claims
from landlane.sessions.leases import require_live
from landlane.store import records
from landlane.tasks.add import Added, add_in
from landlane.tasks.model import ACTIVE, LONGEST_TITLE, REVIEW, REVIEW_KIND, NewTask, check_new
from landlane.tasks.records import REVIEW_LABEL, get_in, move_task, pattern_pairs, who, whole
from landlane.values import as_dict, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.tasks.model import Task


_MOST_ATTEMPTS = 3


def step_for(repo: Repository, task: Task, kind: str, changed: Sequence[str] = ()) -> Step | None:
    """The review that a task needs: as it says itself, or as the settings say for its kind and paths."""
    settings = repo.settings
    if task.kind == REVIEW_KIND:
        return None  # who reviews the reviewers?
    named = step_of(task.labels)
    if named is not None:
        has_decider = any(label.startswith("decider:") for label in task.labels)
        return (
            named
            if has_decider or not settings.review.decider
            else replace(named, decider=settings.review.decider)
        )
    if kind in settings.review.kinds or _touches(repo, task, changed):
        return make_step(settings.review.count, settings.review.reviewers, settings.review.decider)
    return None


def _touches(repo: Repository, task: Task, changed: Sequence[str]) -> bool:
    pattern_of = repo.git.pattern_of
    asked = [one for text in repo.settings.review.paths for one in pattern_of(text, "glob").alternatives]
    if not asked:
        return False
    declared = [
        one for text, kind in pattern_pairs(task.stored_paths) for one in pattern_of(text, kind).alternatives
    ]
    if any(alternatives_overlap(one, other) for one in asked for other in declared):
        return True
    paths = (pattern_of(path, "literal").alternatives[0] for path in changed)
    return any(covers_alternative(one, path) for path in paths for one in asked)


def begin_review(
    repo: Repository,
    session: Session | None,
    task_id: str,
    head: str,
    step: Step | None = None,
    base: str = "",
    change: str = "",
) -> Review:
    """Open the review of a task that was reported, on exactly this commit.

    Raises:
        NotAllowed: the task is in no state for that.
    """

    def work(tx: Transaction) -> Review:
        task = get_in(tx, task_id)
        asked = step or step_for(repo, task, task.kind) or make_step(1, (), "")
        return begin_review_in(tx, repo, session, task, head, asked, base=base, change=change)

    return repo.change(work)


def begin_review_in(
    tx: Transaction,
    repo: Repository,
    session: Session | None,
    task: Task,
    head: str,
    step: Step,
    *,
    base: str = "",
    change: str = "",
) -> Review:
    """The same inside a transaction that holds the task; one that is open on this commit is found again."""
    before = [review_from(one) for one in records.by_key(tx, NOUN, task.id)]
    for one in before:
        if one.state in GOING_ON:
            if one.head == head and one.attempt == task.attempt and task.state == REVIEW:
                return one
            outdate_in(tx, one, f"the work is at {head[:12] or 'another state'} now")
    review_id = records.next_id(tx, NOUN)
    review = Review(
        id=review_id,
        task=task.id,
        attempt=task.attempt,
        head=head,
        base=base,
        change=change,
        agent=task.owner,
        session=task.session,
        decider=step.decider,
        entries=[],
        opened_at=repo.store.wall_of(tx.now),
        round=1 + sum(one.state == REJECTED for one in before),
    )
    why = f"{review_id}: {_told(step)} at {head[:12] or 'the result'}"
    history = _earlier(before)
    entries = [
        blank_entry(name, _add_reviewer(tx, repo, session, task, review, name, at, history))
        for at, name in enumerate(step.reviewers, start=1)
    ]
    review = keep_claims(tx, repo, task, replace(review, entries=entries))
    move_task(
        tx,
        task,
        REVIEW,
        keep_owner=True,
        head=head,
        why=why,
        next_action=f"landlane review show {review_id}",
    )
    records.put(tx, NOUN, as_dict(review), "opened", session)
    tx.record(
        "task.reviewing", *who(session), {"task": task.id, "head": head, "why": why, "review": review_id}
    )
    tx.frees = True
    return review


def _told(step: Step) -> str:
    """Who looks at it, in words."""
    named = [name for name in step.reviewers if name]
    others = len(step.reviewers) - len(named)
    more = f"{others} {'other' if named else 'reviewer'}{'s' if others > 1 else ''}" if others else ""
    words = [*named, *([more] if more else [])]
    return f"{' and '.join(words)} look{'s' if len(step.reviewers) == 1 else ''}"


def _earlier(before: Sequence[Review]) -> str:
    """What earlier rounds said, for reviewers who come later."""
    told = [
        f"{one.id} rejected {one.head[:12]}:\n{feedback_text(one.id, opinions_of(one), 4000)}"
        for one in before
        if one.state == REJECTED
    ]
    return "\n\n".join(told[-_MOST_ATTEMPTS:])


def _add_reviewer(
    tx: Transaction,
    repo: Repository,
    session: Session | None,
    task: Task,
    review: Review,
    name: str,
    at: int,
    history: str,
) -> str:
    """A task for one who reviews: it reads that commit and nothing else, and changes nothing."""
    what = f"commit {review.head}" if review.head else f"the result of attempt {review.attempt}"
    since = f", which began at {review.base}" if review.base else ""
    body = (
        f"Review {what} of {task.id} ({task.title}), the work of {review.agent or 'an agent'}{since}.\n\n"
        f"{task.body}\n\n"
        'Answer with {"verdict": "approve" or "reject", "summary": "…", "findings":'
        ' [{"path": "…", "line": 1, "severity": "blocker|major|minor|note|praise", "text": "…"}]}:\n'
        f"landlane review give {review.id} --verdict approve|reject --summary '…' --findings FILE\n"
    )
    body += f"\nWhat was said of it before:\n\n{history}\n" if history else ""
    return add_task_in(tx, repo, session, review, f"Review {task.id}: {task.title}", body, name, f"{at}")


def add_task_in(
    tx: Transaction,
    repo: Repository,
    session: Session | None,
    review: Review,
    title: str,
    body: str,
    name: str,
    key: str,
) -> str:
    """Add a task for one whose verdict a review waits for."""
    labels = (f"{REVIEW_LABEL}{review.id}", *((f"agent:{name}",) if name and not is_person(name) else ()))
    new = NewTask(
        title=title[:LONGEST_TITLE],
        body=body[:60_000],
        kind=REVIEW_KIND,
        role=ROLE,
        key=f"review/{review.id}/{key}",
        labels=labels,
        parent=review.task,
        max_attempts=_MOST_ATTEMPTS,
        next_action=f"landlane review give {review.id}",
    )
    added = add_in(tx, repo, session, check_new(new), (), force=True)
    assert isinstance(added, Added)
    return added.task.id


def outdate_in(tx: Transaction, review: Review, why: str) -> Review:
    """Nobody needs this review any more; the tasks of its reviewers are dropped by whoever looks next."""
    end_holder(tx, review)
    now = replace(review, state=OUTDATED, is_settled=False, why=why, holder="", claims=())
    records.put(tx, NOUN, as_dict(now), "outdated")
    return now


def take_back(repo: Repository, session: Session, task_id: str) -> Task:
    """The author goes on with the work: the review is outdated, and the claims are the author's again.

    Raises:
        NotAllowed: it is not under review, or another's.
    """

    def work(tx: Transaction) -> Task:
        me = require_live(tx, session)
        task = get_in(tx, task_id)
        if task.state != REVIEW:
            raise NotAllowed(
                f"{task_id} is {task.state}, not under review",
                code="TASK_WRONG_STATE",
                hint=f"`landlane task show {task_id}` tells more",
                state=task.state,
            )
        if me.agent != task.owner:
            raise Stale(
                f"{task_id} is the work of {task.owner}, not of {me.agent}",
                code="TASK_NOT_YOURS",
                hint="give a verdict instead: landlane review give",
                holder=task.owner or None,
            )
        for one in [review_from(one) for one in records.by_key(tx, NOUN, task_id)]:
            if one.state in GOING_ON or (one.state == APPROVED and not one.is_settled):
                give_claims(tx, repo, one, me)
                outdate_in(tx, replace(one, holder="", claims=()), f"{me.agent} took the work back")
        adopt_in(tx, me, task, ACTIVE, why="", told=f"{me.agent} took the work back from review", head="")
        return whole(tx, get_in(tx, task_id))

    return repo.change(work)


def adopt_in(
    tx: Transaction,
    me: Session | None,
    task: Task,
    then: str,
    *,
    why: str,
    told: str,
    head: str,
    failures: int | None = None,
) -> None:
    """Move a reviewed task on, as the one session's that goes on with it, and write down all of that."""
    move_task(tx, task, then, keep_owner=True, why=why, head=head, failures=failures, next_action="")
    owner, session = (me.agent, me.id) if me is not None else ("", "")
    tx.run("task_own", task=task.id, owner=owner, session=session)
    facts: dict[str, object] = {"task": task.id, "why": told, "kept_why": why, "state": then, "head": head}
    facts |= {"owner": owner, "session": session, "attempt": task.attempt}
    facts["failures"] = task.failures if failures is None else failures
    tx.record("task.reviewed", *who(me), facts)
    tx.frees = True
