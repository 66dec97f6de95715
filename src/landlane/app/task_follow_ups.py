"""What follows when a task changes."""

from __future__ import annotations

from landlane.fanout.join import settle_fan, settle_fans
from landlane.gates.decide import expire_retry_gates, withdraw_task_gates
from landlane.gates.open import open_gate_in
from landlane.handoffs import transfer as handoffs
from landlane.reviews.close import settle_review, settle_reviews
from landlane.tasks.records import FAN_LABEL, REVIEW_LABEL
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from landlane.repository import Repository
    from landlane.store.interface import Transaction
    from landlane.tasks.model import Task


@value
class TaskFollowUps:
    """Implements `tasks.extensions.FollowUps` with fan-out, gates, handoffs and reviews."""

    def settle(self, tx: Transaction, repo: Repository, label: str) -> None:
        if label.startswith(FAN_LABEL):
            settle_fan(tx, repo, label.removeprefix(FAN_LABEL))
        elif label.startswith(REVIEW_LABEL):
            settle_review(tx, repo, label.removeprefix(REVIEW_LABEL))

    def settle_due(self, repo: Repository, nouns: Collection[str]) -> None:
        if "fan" in nouns:
            settle_fans(repo)
        if "review" in nouns:
            settle_reviews(repo)
        if "gate" in nouns:
            expire_retry_gates(repo)

    def leave_waiting(self, tx: Transaction, task: Task) -> None:
        withdraw_task_gates(tx, task)

    def drop(self, tx: Transaction, task: Task, why: str) -> None:
        handoffs.withdraw_in(tx, task.id, why)

    def ask_person(
        self,
        tx: Transaction,
        repo: Repository,
        task: Task,
        why: str,
        *,
        about: Mapping[str, Any],
        evidence: Mapping[str, Any],
    ) -> None:
        # No session waits for the answer: the task is in the queue again when it comes.
        open_gate_in(tx, repo, None, task=task, kind="approval", why=why, about=about, evidence=evidence)
