"""Slots: leased things that are no files, what kinds there are, and which of them a request can have.

A kind is of one of three forms. *Ports* are numbers in a range that must be free on the machine, too.
*Names* are a fixed list, each held by one at a time. A *capacity* is shared out in amounts that add up; with
a period, what was used comes back when the period is over, and not before.
"""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.ids import digest
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from landlane.sessions.model import HeldSlot
    from landlane.settings.model import SlotSettings
    from landlane.values import Row

PORT = "port"
FIRST_PORT, LAST_PORT = 20_000, 29_999
DEFAULT_NAME = "default"
_LONGEST_NAME = 64


@value
class Kind:
    """What can be taken of one kind: a range of ports, a list of names, or amounts up to a capacity."""

    name: str
    ports: tuple[int, int] | None = None
    names: tuple[str, ...] = ()
    capacity: int = 0
    per_ms: int | None = None

    @property
    def has_places(self) -> bool:
        """Whether each slot is a thing of its own, and not just an amount."""
        return not self.capacity

    @property
    def size(self) -> int:
        """How much there is in all."""
        if self.ports:
            return self.ports[1] - self.ports[0] + 1
        return len(self.names) or self.capacity


@value
class Wish:
    """What a session asks for."""

    kind: Kind
    name: str
    amount: int
    workspace: str

    @property
    def place(self) -> str:
        """The one place that will do; empty when any will."""
        return self.name if self.name in self.kind.names else ""


@value
class Slot:
    """A slot that is held. `place` is the port or the name; empty where only amounts count."""

    id: str
    kind: str
    place: str
    name: str
    amount: int
    token: int
    session: str
    agent: str
    taken_at: int
    until: int

    @classmethod
    def of(cls, held: HeldSlot) -> Slot:
        return cls(
            id=held.id,
            kind=held.kind,
            place=held.place,
            name=held.name,
            amount=held.amount,
            token=held.token,
            session=held.session,
            agent=held.agent,
            taken_at=held.taken_at,
            until=held.until,
        )


@value
class SlotWaiter:
    """A session that waits for a slot of a kind; `place` is set if no other will do."""

    ticket: int
    session: str
    agent: str
    place: str | None

    @classmethod
    def from_row(cls, row: Row) -> SlotWaiter:
        return cls(**row)


@value
class SlotTaken:
    """The wish is granted; `is_new` is false when the session held it already."""

    slot: Slot
    is_new: bool = True


@value
class SlotRefused:
    """Nothing was taken: who holds it, who has waited longer, how much is left, and what to do instead."""

    kind: str
    amount: int
    left: int
    size: int
    holders: tuple[Slot, ...]
    waiters: tuple[str, ...]
    hint: str
    code: str = "SLOT_TAKEN"


def known_kinds(settings: Mapping[str, SlotSettings]) -> dict[str, Kind]:
    """All kinds by name: ports, which are always there, and those of the settings."""
    kinds = {PORT: Kind(name=PORT, ports=(FIRST_PORT, LAST_PORT))}
    for name, known in settings.items():
        kinds[name] = Kind(
            name=name,
            ports=known.range or (FIRST_PORT, LAST_PORT) if name == PORT else None,
            names=known.names,
            capacity=known.capacity,
            per_ms=known.per_ms,
        )
    return kinds


def make_wish(kinds: dict[str, Kind], kind: str, *, name: str, amount: int, workspace: str) -> Wish:
    """A wish that could be granted one day.

    Raises:
        Malformed: there is no such kind or name, or there will never be so much of it.
    """
    found = kinds.get(kind)
    if found is None:
        raise Malformed(
            f"there are no slots of the kind {kind[:40]!r}",
            code="UNKNOWN_KIND",
            hint=f"known: {', '.join(sorted(kinds))}; more in [slots] of landlane.toml",
            known=sorted(kinds),
        )
    if name and (len(name) > _LONGEST_NAME or not name.isprintable() or not name.isascii()):
        raise Malformed(
            f"{name[:40]!r} cannot name a slot",
            code="BAD_SLOT_NAME",
            hint=f"use 1 to {_LONGEST_NAME} printable ASCII characters",
        )
    if found.names and name and name not in found.names:
        raise Malformed(
            f"there is no {kind} called {name!r}",
            code="UNKNOWN_SLOT",
            hint=f"known: {', '.join(found.names)}; without --name you get any that is free",
        )
    most = 1 if found.has_places else found.capacity
    if not 1 <= amount <= most:
        raise Malformed(
            f"an amount of {amount} cannot be had of {kind}; 1 to {most} can",
            code="AMOUNT_OUT_OF_RANGE",
            hint="ask several times, under different names" if found.has_places else "ask for less",
        )
    # Each call for an amount is one more, unless it has a name; a port or a name is the workspace's own.
    named = name or (DEFAULT_NAME if found.has_places else "")
    return Wish(kind=found, name=named, amount=amount, workspace=workspace)


def workspace_id(machine: str, root: str) -> str:
    """What tells one checkout from every other, without saying where it lies."""
    return digest(f"{machine}\0{root}")[:16]


def choose_place(
    wish: Wish,
    taken: Iterable[str],
    remembered: str,
    others: Iterable[str],
    is_usable: Callable[[str], bool],
) -> str:
    """A place that is free, or nothing: the one wanted, the one had before, then one that nobody had before.

    `others` are places that other workspaces had and will ask for again: only the last resort.
    """
    held = set(taken)
    if wish.place:
        return wish.place if wish.place not in held else ""
    known = set(others) - {remembered}
    first = [remembered] if is_place(wish.kind, remembered) else []
    fresh = (place for place in _places(wish) if place not in known)
    last = (place for place in _places(wish) if place in known)
    for group in (first, fresh, last):
        for place in group:
            if place not in held and is_usable(place):
                return place
    return ""


def is_place(kind: Kind, place: str) -> bool:
    """Whether a kind still has this place; the settings may have changed since it was remembered."""
    if kind.ports:
        return place.isdigit() and kind.ports[0] <= int(place) <= kind.ports[1]
    return place in kind.names


def _places(wish: Wish) -> Iterator[str]:
    """All places of a kind in the order in which this workspace tries them.

    Where it begins depends on the workspace: two repositories on one machine seldom try the same port.
    """
    if not wish.kind.ports:
        yield from wish.kind.names
        return
    low, high = wish.kind.ports
    size = high - low + 1
    start = int(digest(f"{wish.workspace}\0{wish.name}")[:12], 16) % size
    for step in range(size):
        yield str(low + (start + step) % size)


def id_of(kind: str, place: str, number: int) -> str:
    """What a slot is called: by its place, or by its number where it is just an amount."""
    return f"{kind}:{place or number}"
