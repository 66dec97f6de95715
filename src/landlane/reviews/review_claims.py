"""The claims of work under review: held by the review, so that nobody changes what is being judged."""

from __future__ import annotations

from landlane.claims import holder_sessions as holders
from landlane.claims.read import claims_of
from landlane.sessions.leases import end_if_gone, end_session
from landlane.sessions.model import SessionKind
from landlane.sessions.notices import add_notice, has_notices
from landlane.sessions.read import lock_live_session
from landlane.tasks.finish import keep_claims as keep_task_claims
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.reviews.model import Review
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.tasks.model import Task


def living_author(tx: Transaction, repo: Repository, session: str) -> Session | None:
    """A session that is not over, and whose processes have not provably ended."""
    if not session or end_if_gone(tx, session, repo.processes):
        return None
    author = lock_live_session(tx, session)
    return author if author is not None and author.is_alive(tx.now) else None


def keep_claims(tx: Transaction, repo: Repository, task: Task, review: Review) -> Review:
    """Move what the author holds for a task into a session of the review, remembering how it was."""
    author = lock_live_session(tx, task.session) if task.session else None
    if author is None:
        return review
    holder, kept = keep_task_claims(
        tx,
        repo,
        author,
        task.id,
        name=f"review-{review.id}",
        kind=SessionKind.REVIEW,
        note=f"{review.id}: {task.id} of {author.agent} is under review",
    )
    return replace(review, holder=holder, claims=kept) if holder else review


def give_claims(tx: Transaction, repo: Repository, review: Review, heir: Session) -> None:
    """Give what a review holds to whoever goes on with the work; its lease begins anew."""
    end_holder(tx, review, heir.id)
    holders.give_kept(tx, repo, review.claims, heir)
    tx.frees = True


def end_holder(tx: Transaction, review: Review, heir: str = "") -> None:
    """Free what a review holds, and end its session; what it should have heard goes to the heir."""
    holder = lock_live_session(tx, review.holder) if review.holder else None
    if holder is None:
        return
    for notice in has_notices(tx, review.holder) if heir else ():
        add_notice(tx, heir, str(notice["text"]))
    holders.drop_claims(tx, claims_of(tx, review.holder))
    end_session(tx, holder, "session.left", {})
    tx.frees = True
