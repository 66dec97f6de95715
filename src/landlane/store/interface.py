"""The interface of a store: transactions, snapshots, the journal, and notifications."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from landlane.clock import Clock
    from landlane.patterns.pattern import Alternative, Pattern
    from landlane.store.journal_chain import JournalEntry
    from landlane.store.wake import WakeReason
    from landlane.values import Row

T = TypeVar("T")


class Actor(Protocol):
    """A session, as the journal names it."""

    @property
    def id(self) -> str: ...

    @property
    def agent(self) -> str: ...


class Snapshot(Protocol):
    """One consistent state of the store, read through named statements."""

    @property
    def now(self) -> int:
        """The store's time of this snapshot."""
        ...

    def one(self, statement: str, /, **parameters: object) -> Row | None:
        """Return the first row, if there is any."""
        ...

    def all(self, statement: str, /, **parameters: object) -> list[Row]:
        """Return all rows."""
        ...

    def near(
        self, statement: str, alternatives: Sequence[Alternative], session: str = "", **parameters: object
    ) -> list[Row]:
        """Return the rows of `claims_near` and its like that may overlap these alternatives."""
        ...


class Transaction(Snapshot, Protocol):
    """One transaction. What it runs and records takes effect together, or not at all."""

    epoch: int
    has_lapsed: bool
    has_waiters: bool
    has_freed: bool  # set it to wake waiters after the commit
    freed: set[str]  # claims and tickets that ended, by their keys: who watches one is woken after the commit
    touched: dict[str, None]  # fans and reviews whose tasks changed; they are settled before the commit

    def run(self, statement: str, /, **parameters: object) -> int:
        """Run a statement that changes rows, and return their number."""
        ...

    def lock_areas(self, areas: Mapping[str, bool]) -> None:
        """Lock areas until the transaction ends, or until `undo_to_savepoint`."""
        ...

    def set_savepoint(self) -> None:
        """Set a savepoint for `undo_to_savepoint`, where the database locks row by row."""
        ...

    def undo_to_savepoint(self) -> None:
        """Undo everything since `set_savepoint`, and release the locks taken since."""
        ...

    def next_numbers(self, count: int) -> list[int]:
        """Return the numbers of the next journal entries of this transaction."""
        ...

    def continue_numbers(self) -> None:
        """Number the next entry above all others; for a transaction that has imported entries."""
        ...

    def record(
        self, kind: str, agent: str, session: str, facts: dict[str, Any], number: int | None = None
    ) -> None:
        """Add an entry to the journal."""
        ...


class Listener(Protocol):
    """Waits for changes of the store."""

    def wait(self, timeout_seconds: float) -> WakeReason:
        """Sleep until something happens or the time is over, and return which."""
        ...

    def watch(self, key: str) -> None:
        """Wake up only when this claim or ticket ends; for an empty key, whenever something happens."""
        ...

    def close(self) -> None: ...


@value
class QuickGrant:
    """Claims that were granted without the usual check, because nothing else was near.

    There is one token for each pattern; `seen_at` is the session's last sign of life before.
    """

    tokens: list[int]
    granted_at: int
    seen_at: int


class Store(Protocol):
    """Where the state lives."""

    @property
    def is_shared(self) -> bool:
        """Whether other clones may use the store, too."""
        ...

    @property
    def activity_folder(self) -> str:
        """Where the sessions leave signs of life as files; empty for a store on a server."""
        ...

    @property
    def repository(self) -> str:
        """The id of the repository whose state this is."""
        ...

    @property
    def clock(self) -> Clock:
        """The clock of this machine."""
        ...

    def change(
        self,
        work: Callable[[Transaction], T],
        *,
        areas: Mapping[str, bool] | None = None,
        is_durable: bool = True,
        wait_ms: int | None = None,
    ) -> T:
        """Run `work` in one transaction and return its result.

        `work` may run again if the database asks for it, so it must only change what the transaction covers.
        `areas` are locked first (key → exclusively). With `is_durable=False` a power cut may undo it.
        `wait_ms` limits how long to wait for other writers, instead of the settings.
        """
        ...

    def view(self, look: Callable[[Snapshot], T]) -> T:
        """Run `look` on one consistent state and return its result."""
        ...

    def take_uncontested(
        self, session: Actor, patterns: Sequence[Pattern], mode: str, ttl_ms: int, task: str, note: str
    ) -> QuickGrant | None:
        """Grant claims in one round trip if nothing else is near; None if the usual check is needed."""
        ...

    def entries(self, after: int, limit: int = 1000) -> list[JournalEntry]:
        """Return the sealed entries behind a position, in order."""
        ...

    def last_entry(self) -> JournalEntry | None:
        """Return the newest sealed entry."""
        ...

    def stop_writers(self, tx: Transaction) -> None:
        """Block other writers until the transaction ends."""
        ...

    def find_damage(self) -> str:
        """Read everything and return what is damaged; empty if nothing is."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return what people want to know about the store: its kind, place and size."""
        ...

    def listen(self) -> Listener:
        """Start to listen for changes."""
        ...

    def wall_of(self, at: int) -> int:
        """Return the calendar time of an instant of the store."""
        ...

    def close(self) -> None: ...
