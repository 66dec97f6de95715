"""Connect packages that do not import each other: fill the extension points of sessions and tasks.

`assemble_repository` is the only way to a repository, so nothing runs with empty extension points. Most
commands need none of these packages, so each group of extensions is imported on first use.
"""

from __future__ import annotations

from landlane.app.plain_files import update_files
from landlane.repository import Repository
from landlane.sessions import extensions as session_extensions
from landlane.sessions.leases import sweep
from landlane.tasks.extensions import install
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.git.repository import GitRepository
    from landlane.repository import Processes, Secrets
    from landlane.sessions.extensions import SessionExtensions
    from landlane.settings.model import Settings
    from landlane.store.interface import Store, Transaction
    from landlane.tasks.extensions import Budgets, FollowUps, Offers, Reviews


def assemble_repository(
    *, settings: Settings, store: Store, git: GitRepository, processes: Processes, secrets: Secrets
) -> Repository:
    """Return the opened repository, with all packages connected."""
    session_extensions.install(_load_session_extensions)
    install(_Tasks())
    return Repository(
        settings=settings,
        store=store,
        git=git,
        checkout=git.checkout,
        processes=processes,
        secrets=secrets,
        before_change=sweep,
        after_change=_after_change,
        update_files=update_files,
    )


def _after_change(tx: Transaction, repo: Repository) -> None:
    from landlane.tasks.extensions import settle_touched  # noqa: PLC0415 - only changes of tasks need it

    settle_touched(tx, repo)


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
