"""Join packages that do not import each other: fills the extension points of sessions and tasks.

`make_context` is the only way to a context, so nothing runs with the extension points empty. Most commands
need none of these packages, so each group of extensions is imported when it is first used.
"""

from __future__ import annotations

from landlane.context import Context
from landlane.sessions import extensions as session_extensions
from landlane.sessions.leases import sweep
from landlane.tasks import extensions as task_extensions
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.context import Processes, Repository, Secrets
    from landlane.sessions.extensions import SessionExtensions
    from landlane.settings.model import Settings
    from landlane.store.interface import Change, Store
    from landlane.tasks.extensions import Budgets, FollowUps, Offers, Reviews


def make_context(
    *, store: Store, settings: Settings, repository: Repository, processes: Processes, secrets: Secrets
) -> Context:
    """Return the context of these parts, with all packages joined."""
    session_extensions.install(_load_session_extensions)
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
    from landlane.tasks.on_change import settle_touched  # noqa: PLC0415 - only changes of tasks need it

    settle_touched(tx, context)


def _load_session_extensions() -> SessionExtensions:
    from landlane.app.session_extensions import Sessions  # noqa: PLC0415 - few commands need it

    return Sessions()


@value
class _Tasks:
    @property
    def follow_ups(self) -> FollowUps:
        from landlane.app.task_follow_ups import TaskFollowUps  # noqa: PLC0415 - few commands need it

        return TaskFollowUps()

    @property
    def offers(self) -> Offers:
        from landlane.app.task_offers import TaskOffers  # noqa: PLC0415 - few commands need it

        return TaskOffers()

    @property
    def budgets(self) -> Budgets:
        from landlane.app.task_budgets import TaskBudgets  # noqa: PLC0415 - few commands need it

        return TaskBudgets()

    @property
    def reviews(self) -> Reviews:
        from landlane.app.task_reviews import TaskReviews  # noqa: PLC0415 - few commands need it

        return TaskReviews()
