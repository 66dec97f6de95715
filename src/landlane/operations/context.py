"""What every operation is given: the store, the settings, the repository and the machine it runs on."""

from __future__ import annotations

from landlane.operations.leases import sweep
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    from landlane.config import Settings
    from landlane.ports.repository import Processes, Repository, Secrets
    from landlane.ports.store import Change, Store

    T = TypeVar("T")


@value
class Context:
    """The parts that bootstrap has joined."""

    store: Store
    settings: Settings
    repository: Repository
    processes: Processes
    secrets: Secrets

    def change(self, work: Callable[[Change], T], *, areas: Mapping[str, bool] | None = None) -> T:
        """One durable transaction, after what has lapsed was swept away in it.

        What follows from the moves of tasks for those that were split or are under review is part of it.
        """

        def after_sweeping(tx: Change) -> T:
            if tx.has_lapsed:
                sweep(tx)
            result = work(tx)
            if tx.touched:
                from landlane.operations.consequences import settle_touched  # noqa: PLC0415 - few have any

                settle_touched(tx, self)
            return result

        return self.store.change(after_sweeping, areas=areas)
