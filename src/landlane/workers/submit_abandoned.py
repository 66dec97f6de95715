"""Land approved work whose author is gone."""

from __future__ import annotations

from landlane.errors import LandlaneError, StoreError
from landlane.landing.role_check import lander_role
from landlane.landing.submit import submit_branch, why_out_of_reach
from landlane.reviews.close import adopt
from landlane.reviews.give_verdict import approved_waiting
from landlane.sessions.join import join, leave
from landlane.tasks.read import get_task
from landlane.tasks.retry import end_attempt
from landlane.tasks.retry_rules import AttemptEnd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.context import Site
    from landlane.reviews.model import Review
    from landlane.sessions.model import Session
    from landlane.tasks.evidence_model import Witness


def land_approved(site: Site, witness: Witness, *, is_shared: bool) -> list[str]:
    """Submit everything that was approved and that nobody goes on with; tells what was done.

    Any number of processes may call it: one of them gets each of these.

    Raises:
        StoreError: the store is not to be had.
    """
    return [_land(site, witness, review, is_shared=is_shared) for review in approved_waiting(site.context)]


def _land(site: Site, witness: Witness, review: Review, *, is_shared: bool) -> str:
    context = site.context
    if why := why_out_of_reach(site, review.head):
        return f"{review.task} was approved at {review.head[:12]}, which is not here: {why}"
    task = get_task(context, review.task)
    here = context.processes.current()
    joined = join(
        context,
        f"lands-{review.id}",
        role=lander_role(site.settings, task),
        process=here,
        may_choose_role=True,
    )
    session = joined.session
    try:
        task = adopt(context, session, review.id)
        return _submit(site, session, witness, review, task.branch, is_shared=is_shared)
    except StoreError:
        raise
    except LandlaneError as error:
        return f"{review.id}: {error.message}"  # somebody was quicker, or it went another way
    finally:
        leave(context, session)


def _submit(
    site: Site, session: Session, witness: Witness, review: Review, branch: str, *, is_shared: bool
) -> str:
    try:
        landing = submit_branch(site, session, witness, branch, review.task, is_shared=is_shared).landing
    except StoreError:
        raise
    except LandlaneError as error:
        told = f"{error.code}: {error.message}. {error.hint}"
        end = AttemptEnd(
            task=review.task,
            attempt=review.attempt,
            code="not_submitted",
            feedback=told[:3500],
            change=review.change or review.head,
            is_progress=True,
        )
        end_attempt(site.context, session, review.task, end)
        return f"{review.task} was approved, and cannot land: {told}"
    return f"{review.task} was approved at {review.head[:12]}, and lands as {landing.id}"
