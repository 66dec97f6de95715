"""Join packages that do not import each other: fills the extension points of sessions and tasks.

`make_context` is the only way to a context, so nothing runs with the extension points empty. The imports
stand inside the functions because most commands need none of these packages.
"""

from __future__ import annotations

from landlane.context import Context
from landlane.sessions import extensions as session_extensions
from landlane.sessions.leases import sweep
from landlane.tasks import extensions as task_extensions
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from landlane.claims.model import Claim
    from landlane.context import Processes, Repository, Secrets
    from landlane.sessions.model import Session
    from landlane.settings.model import Settings
    from landlane.store.interface import Change, Reading, Store
    from landlane.tasks.attempt_model import Attempt
    from landlane.tasks.model import Task


def make_context(
    *, store: Store, settings: Settings, repository: Repository, processes: Processes, secrets: Secrets
) -> Context:
    """Return the context of these parts, with all packages joined."""
    session_extensions.install(_Sessions())
    task_extensions.install(_Tasks())
    return Context(
        store=store,
        settings=settings,
        repository=repository,
        processes=processes,
        secrets=secrets,
        before_change=sweep,
        after_change=_after_change,
    )


def _after_change(tx: Change, context: Context) -> None:
    from landlane.tasks.on_change import settle_touched

    settle_touched(tx, context)


@value
class _Sessions:
    def check_role(self, settings: Settings, name: str) -> None:
        from landlane.roles.built_in import find_role

        find_role(settings, name)

    def keeps_lease(self, tx: Change, session_id: str) -> bool:
        from landlane.tasks.return_lapsed import waits_for_person

        return waits_for_person(tx, session_id)

    def on_end(self, tx: Change, session: Session, *, is_own_will: bool) -> None:
        from landlane.tasks.return_lapsed import return_tasks

        return_tasks(tx, session, is_own_will=is_own_will)


@value
class _FollowUps:
    def settle(self, tx: Change, context: Context, label: str) -> None:
        from landlane.tasks.rows import FAN_LABEL, REVIEW_LABEL

        if label.startswith(FAN_LABEL):
            from landlane.fanout.join import settle_fan_in

            settle_fan_in(tx, context, label.removeprefix(FAN_LABEL))
        elif label.startswith(REVIEW_LABEL):
            from landlane.reviews.close import settle_in

            settle_in(tx, context, label.removeprefix(REVIEW_LABEL))

    def settle_due(self, context: Context, nouns: Collection[str]) -> None:
        if "fan" in nouns:
            from landlane.fanout.join import settle_fans

            settle_fans(context)
        if "review" in nouns:
            from landlane.reviews.close import settle_reviews

            settle_reviews(context)

    def leave_waiting(self, tx: Change, task: Task) -> None:
        from landlane.gates.decide import withdraw_in

        withdraw_in(tx, task)

    def drop(self, tx: Change, task: Task, why: str) -> None:
        from landlane.handoffs.transfer import withdraw_in

        withdraw_in(tx, task.id, why)

    def ask_person(
        self,
        tx: Change,
        context: Context,
        task: Task,
        why: str,
        *,
        about: Mapping[str, Any],
        evidence: Mapping[str, Any],
    ) -> None:
        from landlane.gates.ask import open_gate_in

        # No session waits for the answer: the task is in the queue again when it comes.
        open_gate_in(tx, context, None, task=task, kind="approval", why=why, about=about, evidence=evidence)


@value
class _Offers:
    def reserved(self, tx: Change, context: Context, session: Session) -> tuple[set[str], set[str]]:
        from landlane.handoffs.transfer import may_have, waiting_in

        others: set[str] = set()
        if tx.all("records_in", noun="review", states=["open", "deciding"]):
            from landlane.reviews.give_verdict import not_to_take

            others = not_to_take(tx, session)
        holders: set[str] = set()
        for one in waiting_in(tx):
            if may_have(context, one, session, tx.now):
                holders.add(one.holder)
            else:
                others.add(one.task)
        return others, holders

    def addressed_to(self, tx: Change, context: Context, session: Session) -> list[str]:
        from landlane.handoffs.transfer import addressed_to
        from landlane.tasks.model import ANYBODY

        return [one.task for one in addressed_to(context, tx, session) if one.to != ANYBODY]

    def may_review(self, tx: Change, session: Session, task: Task) -> bool:
        from landlane.reviews.give_verdict import may_take

        return may_take(tx, session, task)

    def is_handed_over(self, tx: Change, task_id: str) -> bool:
        from landlane.handoffs.transfer import open_handoff

        return open_handoff(tx, task_id) is not None

    def accept(
        self, tx: Change, context: Context, session: Session, task: Task
    ) -> tuple[Task, tuple[Claim, ...]] | None:
        from landlane.handoffs.transfer import accept_if_offered

        return accept_if_offered(tx, context, session, task)


@value
class _Budgets:
    @property
    def booking_areas(self) -> Mapping[str, bool]:
        from landlane.usage.add import BOOKING

        return BOOKING

    def book(self, tx: Change, context: Context, attempt: Attempt) -> None:
        from landlane.usage.add import settle_in

        settle_in(tx, context, attempt)

    def why_over(self, reading: Reading, context: Context, task: Task) -> str:
        from landlane.usage.budget import over_in

        over = over_in(reading, context, task)
        return over.why if over is not None else ""

    def is_task_spent(self, reading: Reading, context: Context, task: Task) -> bool:
        from landlane.usage.budget import TASK, over_in

        over = over_in(reading, context, task)
        return over is not None and over.kind == TASK


@value
class _Reviews:
    def step_for(self, context: Context, task: Task, kind: str, changed: Sequence[str] = ()) -> object:
        from landlane.reviews.open import step_for

        return step_for(context, task, kind, changed)

    def begin(
        self,
        tx: Change,
        context: Context,
        session: Session | None,
        task: Task,
        head: str,
        step: object,
        *,
        base: str,
        change: str,
    ) -> None:
        from landlane.reviews.model import Step
        from landlane.reviews.open import begin_review_in

        assert isinstance(step, Step)  # what `step_for` returned
        begin_review_in(tx, context, session, task, head, step, base=base, change=change)

    def is_approved(self, reading: Reading, task: Task, head: str) -> bool:
        from landlane.reviews.records import is_approved

        return is_approved(reading, task, head)

    def rejection_of(self, reading: Reading, task: Task, head: str) -> str:
        from landlane.reviews.records import rejection_of

        return rejection_of(reading, task, head)

    def take_back(self, context: Context, session: Session, task_id: str) -> Task:
        from landlane.reviews.give_verdict import take_back

        return take_back(context, session, task_id)

    def review_of(self, context: Context, task: Task) -> str:
        from landlane.reviews.give_verdict import review_of_task

        return review_of_task(context, task).id


@value
class _Tasks:
    follow_ups: _FollowUps = _FollowUps()
    offers: _Offers = _Offers()
    budgets: _Budgets = _Budgets()
    reviews: _Reviews = _Reviews()
