"""What follows when a task moves that others wait for: joins of split tasks, ends of reviews.

It is settled at the end of the transaction that moved the task, when all tasks that it touches are locked
already. So there is no lock cycle, and no moment at which a crash could lose or repeat it.
"""

from __future__ import annotations

from landlane.tasks.extensions import installed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.store.interface import Transaction


def settle_touched(tx: Transaction, repo: Repository) -> None:
    """Settle what depends on the tasks that this transaction moved, and on what that moves in turn."""
    follow_ups = installed().follow_ups
    while tx.touched:
        label = next(iter(tx.touched))
        del tx.touched[label]
        follow_ups.settle(tx, repo, label)


def settle_due(repo: Repository) -> None:
    """Settle what no move of a task brings about: deadlines, and what a crash has left."""
    nouns = {row["noun"] for row in repo.store.view(lambda snapshot: snapshot.all("records_unsettled"))}
    if nouns:
        installed().follow_ups.settle_due(repo, nouns)
