"""Where an undertaking takes place: the context, the checkout one stands in, and its repository."""

from __future__ import annotations

from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.config import Settings
    from landlane.git.layout import Checkout
    from landlane.operations.context import Context


@value
class Site:
    """`here` is the checkout of the caller; `home` the repository that the state belongs to.

    Mostly they share one git directory; a workspace that is a clone has one of its own. `tell` hears what a
    watching person may want to know meanwhile.
    """

    context: Context
    here: Checkout
    home: Checkout
    tell: Callable[[str], None] = lambda _: None

    @property
    def settings(self) -> Settings:
        """The settings of the checkout one stands in."""
        return self.context.settings

    @property
    def common_dir(self) -> str:
        """The git directory that all worktrees of the repository share."""
        return self.home.common_dir

    def wall_ms(self) -> int:
        """Now, by the calendar, as the store sees it."""
        store = self.context.store
        return store.wall_of(store.view(lambda reading: reading.now))
