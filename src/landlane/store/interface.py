"""What operations need from a store: whole changes, readings, and waking each other."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from landlane.clock import Clock
    from landlane.patterns.pattern import Alternative, Pattern
    from landlane.store.journal_chain import Entry
    from landlane.values import Row

T = TypeVar("T")


class Actor(Protocol):
    """Who acts, as the journal names it: a session."""

    @property
    def id(self) -> str:
        """The id of the session."""
        ...

    @property
    def agent(self) -> str:
        """The name of its agent."""
        ...


class ClaimRequest(Protocol):
    """What a store has to know of a request for claims, to grant it without judging."""

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """What is asked for."""
        ...

    @property
    def mode(self) -> str:
        """Exclusive or shared."""
        ...

    @property
    def ttl_ms(self) -> int:
        """How long the claims are asked for."""
        ...

    @property
    def task(self) -> str:
        """The task they are for; may be empty."""
        ...

    @property
    def note(self) -> str:
        """What others are shown."""
        ...

    @property
    def is_partial(self) -> bool:
        """Whether some of the claims are enough."""
        ...


class Snapshot(Protocol):
    """One consistent look at the store, through named statements."""

    @property
    def now(self) -> int:
        """The store's time at this look."""
        ...

    def one(self, statement: str, /, **parameters: object) -> Row | None:
        """The first row, if there is any."""
        ...

    def all(self, statement: str, /, **parameters: object) -> list[Row]:
        """All rows."""
        ...

    def near(self, statement: str, branches: Sequence[Alternative], session: str) -> list[Row]:
        """Rows that could overlap these branches: `claims_near` or `waiters_near`."""
        ...


class Transaction(Snapshot, Protocol):
    """One transaction. What it runs and records happens together, or not at all."""

    epoch: int
    has_lapsed: bool
    has_waiters: bool
    frees: bool  # set it when waiters should look again
    touched: dict[str, None]  # fans and reviews whose tasks moved: what follows is settled at the end

    def run(self, statement: str, /, **parameters: object) -> int:
        """Run a statement that changes rows, and tell how many."""
        ...

    def lock_areas(self, areas: Mapping[str, bool]) -> None:
        """Keep what is named from changing until the transaction ends, or until `let_go`."""
        ...

    def hold(self) -> None:
        """Mark a point that `let_go` goes back to, where the database locks row by row."""
        ...

    def let_go(self) -> None:
        """Undo everything since `hold`, and let go of the locks taken since."""
        ...

    def next_numbers(self, count: int) -> list[int]:
        """The numbers that the next entries of this transaction will bear."""
        ...

    def record(
        self, kind: str, agent: str, session: str, facts: dict[str, Any], number: int | None = None
    ) -> None:
        """Write an entry of the journal."""
        ...


class Listener(Protocol):
    """Hears that the store has changed."""

    def wait(self, timeout_seconds: float) -> str:
        """Sleep until something happened: `freed`, `entry`, or nothing within the time."""
        ...

    def close(self) -> None:
        """Stop listening."""
        ...


class Uncontested(Protocol):
    """A grant that needed no judging."""

    @property
    def tokens(self) -> list[int]:
        """One for each pattern."""
        ...

    @property
    def granted_at(self) -> int:
        """When it was granted."""
        ...

    @property
    def seen_at(self) -> int:
        """The session's last sign of life before."""
        ...


class Store(Protocol):
    """Where the state lives."""

    @property
    def is_shared(self) -> bool:
        """Whether other clones may use the store, too."""
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
        """Run `work` in one transaction and give back its result.

        `work` may run again when the store asks for it, so it must have no effect but through the change.
        `areas` names what must not change meanwhile (key → alone); `is_durable=False` may be forgotten by a
        power cut; `wait_ms` is for those who would rather do without than wait as long as the settings allow.
        """
        ...

    def view(self, look: Callable[[Snapshot], T]) -> T:
        """Run `look` on one consistent state."""
        ...

    def take_uncontested(self, session: str, agent: str, request: ClaimRequest) -> Uncontested | None:
        """Grant at once if nothing lies near, where that saves time; nothing means: judge."""
        ...

    def entries(self, after: int, limit: int = 1000) -> list[Entry]:
        """Sealed entries behind a position, in order."""
        ...

    def last_entry(self) -> Entry | None:
        """The newest sealed entry."""
        ...

    def listen(self) -> Listener:
        """Begin to hear of changes."""
        ...

    def wall_of(self, at: int) -> int:
        """The calendar's instant for an instant of the store."""
        ...

    def stop_writers(self, tx: Transaction) -> None:
        """Keep all others from writing until the transaction ends."""
        ...

    def find_damage(self) -> str:
        """Read everything and return what is damaged; empty if nothing is."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return what people want to know about the store: its kind, place and size."""
        ...

    def close(self) -> None:
        """Close the store."""
        ...
