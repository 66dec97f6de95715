"""Who may be offered a task that was handed over or is under review."""

from __future__ import annotations

from landlane.handoffs import transfer
from landlane.tasks.model import ANYBODY
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.claims.model import Claim
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.tasks.model import Task


@value
class TaskOffers:
    """Implements `tasks.extensions.Offers` with handoffs and reviews."""

    def reserved(self, tx: Transaction, repo: Repository, session: Session) -> tuple[set[str], set[str]]:
        others: set[str] = set()
        if tx.all("records_in", noun="review", states=["open", "deciding"]):
            others = _review_rules().tasks_not_for(tx, session)
        holders: set[str] = set()
        for one in transfer.waiting_in(tx):
            if transfer.is_offered_to(repo, one, session, tx.now):
                holders.add(one.holder)
            else:
                others.add(one.task)
        return others, holders

    def addressed_to(self, tx: Transaction, repo: Repository, session: Session) -> list[str]:
        return [one.task for one in transfer.addressed_to(repo, tx, session) if one.to != ANYBODY]

    def may_review(self, tx: Transaction, session: Session, task: Task) -> bool:
        return _review_rules().may_take(tx, session, task)

    def is_handed_over(self, tx: Transaction, task_id: str) -> bool:
        return transfer.open_handoff(tx, task_id) is not None

    def accept(
        self, tx: Transaction, repo: Repository, session: Session, task: Task
    ) -> tuple[Task, tuple[Claim, ...]] | None:
        return transfer.accept_if_offered(tx, repo, session, task)


def _review_rules():
    from landlane.reviews import give_verdict  # noqa: PLC0415 - few tasks are reviewed

    return give_verdict
