"""What follows when a task moves that others wait for: joins of split tasks, ends of reviews.

It is settled at the end of the transaction that moved the task, when all tasks that it touches are held
already; so nobody waits in a circle, and there is no instant at which a crash could lose or repeat it.
"""

from __future__ import annotations

from landlane.tasks.rows import FAN_LABEL, REVIEW_LABEL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.context import Context
    from landlane.sessions.model import Session
    from landlane.store.interface import Change
    from landlane.tasks.model import Task


def settle_touched(tx: Change, context: Context) -> None:
    """Settle what hangs on the tasks that this transaction moved, and on what that moves in turn."""
    while tx.touched:
        label = next(iter(tx.touched))
        del tx.touched[label]
        if label.startswith(FAN_LABEL):
            from landlane.fanout.join import settle_fan_in  # noqa: PLC0415 - a circle otherwise

            settle_fan_in(tx, context, label.removeprefix(FAN_LABEL))
        elif label.startswith(REVIEW_LABEL):
            from landlane.reviews.close import settle_review_in  # noqa: PLC0415 - a circle otherwise

            settle_review_in(tx, context, label.removeprefix(REVIEW_LABEL))


def settle_due(context: Context) -> None:
    """Settle what no move of a task brings about: deadlines, and what a crash has left."""
    rows = context.store.view(lambda reading: reading.all("records_unsettled"))
    nouns = {row[0] for row in rows}
    if "fan" in nouns:
        from landlane.fanout.join import settle_fans  # noqa: PLC0415 - a circle otherwise

        settle_fans(context)
    if "review" in nouns:
        from landlane.reviews.close import settle_reviews  # noqa: PLC0415 - a circle otherwise

        settle_reviews(context)


def may_review(tx: Change, me: Session, task: Task) -> bool:
    """Whether a reviewer's task is for this session: not its own work, and not another's by name."""
    from landlane.reviews.give_verdict import may_take  # noqa: PLC0415 - a circle otherwise

    return may_take(tx, me, task)


def not_for(tx: Change, me: Session) -> set[str]:
    """The tasks of reviewers that are not for this session."""
    if not tx.all("records_in", noun="review", states=["open", "deciding"]):
        return set()
    from landlane.reviews.give_verdict import not_to_take  # noqa: PLC0415 - a circle otherwise

    return not_to_take(tx, me)
