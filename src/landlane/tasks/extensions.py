"""What other packages add to tasks: what follows a change, who is offered a task, budgets and reviews.

Gates, handoffs, reviews, fan-out and usage are above tasks, so tasks do not import them. `app/open.py`
installs one object with their functions; tests of tasks may install another.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any, Protocol

    from landlane.claims.model import Claim
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Attempt, Task, Wait
else:
    Protocol = object


class FollowUps(Protocol):
    """What follows when a task changes."""

    def settle(self, tx: Transaction, repo: Repository, label: str) -> None:
        """Settle what waits for a task with this label: a split task, or a review."""
        ...

    def settle_due(self, repo: Repository, nouns: Collection[str]) -> None:
        """Settle open records of these nouns after a deadline or a crash."""
        ...

    def leave_waiting(self, tx: Transaction, task: Task) -> None:
        """Withdraw the question that a task waited for."""
        ...

    def drop(self, tx: Transaction, task: Task, why: str) -> None:
        """Withdraw the handoff of a task that is dropped."""
        ...

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
        """Ask a person whether the task may be tried again."""
        ...


class Offers(Protocol):
    """Who may be offered a task."""

    def reserved(self, tx: Transaction, repo: Repository, session: Session) -> tuple[set[str], set[str]]:
        """Return the tasks that are for others, and the sessions that hold claims for this one."""
        ...

    def addressed_to(self, tx: Transaction, repo: Repository, session: Session) -> list[str]:
        """Return the tasks that were handed to exactly this session."""
        ...

    def may_review(self, tx: Transaction, session: Session, task: Task) -> bool:
        """Return whether a reviewer's task is for this session."""
        ...

    def is_handed_over(self, tx: Transaction, task_id: str) -> bool:
        """Return whether a task waits to be accepted."""
        ...

    def accept(
        self, tx: Transaction, repo: Repository, session: Session, task: Task
    ) -> tuple[Task, tuple[Claim, ...]] | None:
        """Accept a task that was handed over, with its claims; None when this session may not."""
        ...


class Budgets(Protocol):
    """What tasks may cost."""

    @property
    def booking_areas(self) -> Mapping[str, bool]:
        """The areas that a transaction locks before it books an attempt."""
        ...

    def book(self, tx: Transaction, repo: Repository, attempt: Attempt) -> None:
        """Book an attempt that has ended."""
        ...

    def why_over(self, snapshot: Snapshot, repo: Repository, task: Task) -> str:
        """Return which budget of a task is used up; empty when none is."""
        ...

    def is_task_spent(self, snapshot: Snapshot, repo: Repository, task: Task) -> bool:
        """Return whether the task's own budget is used up, not only that of a run or a day."""
        ...


class ReviewRules(Protocol):
    """The review that a task may need before it lands."""

    def find_required(self, repo: Repository, task: Task, kind: str, changed: Sequence[str] = ()) -> object:
        """Return the review that a task requires, or None."""
        ...

    def open(
        self,
        tx: Transaction,
        repo: Repository,
        session: Session | None,
        task: Task,
        head: str,
        required: object,
        *,
        base: str,
        change: str,
    ) -> None:
        """Open a review of exactly this commit."""
        ...

    def is_approved(self, snapshot: Snapshot, task: Task, head: str) -> bool:
        """Return whether reviewers approved exactly this commit."""
        ...

    def find_rejection(self, snapshot: Snapshot, task: Task, head: str) -> str:
        """Return the review that rejected exactly this commit; empty when none did."""
        ...

    def withdraw(self, repo: Repository, session: Session, task_id: str) -> Task:
        """Take a task out of review again."""
        ...

    def review_of(self, repo: Repository, task: Task) -> str:
        """Return the review that a reviewer's task belongs to."""
        ...


class Waits(Protocol):
    """What tasks wait for in the packages above."""

    def find(
        self, snapshot: Snapshot, repo: Repository, tasks: Collection[str]
    ) -> Mapping[str, Sequence[Wait]]:
        """Return the questions, reviews, landings, handoffs and parts that these tasks wait for."""
        ...

    def is_given_up(self, snapshot: Snapshot, task: Task) -> bool:
        """Return whether a person decided that a task that failed is not tried again."""
        ...


class TaskExtensions(Protocol):
    """Everything that tasks need from the packages above them."""

    @property
    def follow_ups(self) -> FollowUps: ...

    @property
    def offers(self) -> Offers: ...

    @property
    def budgets(self) -> Budgets: ...

    @property
    def reviews(self) -> ReviewRules: ...

    @property
    def waits(self) -> Waits: ...


_installed: list[TaskExtensions] = []


def install(extensions: TaskExtensions) -> None:
    """Use these extensions in this process from now on."""
    _installed[:] = [extensions]


def installed() -> TaskExtensions:
    """Return the extensions that `app/open.py` has installed."""
    assert _installed, "no extensions: open the repository with landlane.app.open.assemble_repository"
    return _installed[0]


def settle_touched(tx: Transaction, repo: Repository) -> None:
    """Settle what depends on the tasks that this transaction moved, and on what that moves in turn."""
    follow_ups = installed().follow_ups
    while tx.touched:
        label = next(iter(tx.touched))
        del tx.touched[label]
        follow_ups.settle(tx, repo, label)


def settle_due(repo: Repository) -> None:
    """Settle what no change of a task triggers: deadlines, and what a crash left open."""
    nouns: set[str] = {
        row["noun"] for row in repo.store.view(lambda snapshot: snapshot.all("records_unsettled"))
    }
    if repo.settings.retries.answer_ms is not None:  # questions that wait for an answer have a deadline
        nouns.add("gate")
    if nouns:
        installed().follow_ups.settle_due(repo, nouns)
