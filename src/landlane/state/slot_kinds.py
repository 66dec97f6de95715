"""Kinds of slots, requests for them, and which place a request gets.

A kind has one of three forms. *Ports* are numbers in a range that must also be free on the machine. *Names*
are a fixed list, each held by one session at a time. A *capacity* is shared out in amounts; with a period, an
amount becomes available again when its period is over, and not before.
"""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.ids import digest
from landlane.text import nearest_word
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from landlane.sessions.model import Slot
    from landlane.settings.model import SlotSettings
    from landlane.values import Row

PORT = "port"
FIRST_PORT, LAST_PORT = 20_000, 29_999
DEFAULT_NAME = "default"
_LONGEST_NAME = 64


@value
class SlotKind:
    """What there is of one kind: a range of ports, a list of names, or a capacity."""

    name: str
    ports: tuple[int, int] | None = None
    names: tuple[str, ...] = ()
    capacity: int = 0
    per_ms: int | None = None

    @property
    def has_places(self) -> bool:
        """Whether each slot is a port or a name, and not just an amount."""
        return not self.capacity

    @property
    def size(self) -> int:
        """How much there is in total."""
        if self.ports:
            return self.ports[1] - self.ports[0] + 1
        return len(self.names) or self.capacity


@value
class SlotRequest:
    """A request for one slot."""

    kind: SlotKind
    name: str
    amount: int
    workspace: str

    @property
    def place(self) -> str:
        """The only acceptable place; empty if any will do."""
        return self.name if self.name in self.kind.names else ""


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
    """The request was granted; `is_new` is False if the session held it already."""

    slot: Slot
    is_new: bool = True


@value
class SlotRefused:
    """Nothing was taken: the holders, the waiters ahead, how much is left, and what to do instead."""

    kind: str
    amount: int
    left: int
    size: int
    holders: tuple[Slot, ...]
    waiters: tuple[str, ...]
    hint: str
    code: str = "SLOT_TAKEN"


def known_kinds(settings: Mapping[str, SlotSettings]) -> dict[str, SlotKind]:
    """Return all kinds by name: ports, which always exist, and those in the settings."""
    kinds = {PORT: SlotKind(name=PORT, ports=(FIRST_PORT, LAST_PORT))}
    for name, known in settings.items():
        kinds[name] = SlotKind(
            name=name,
            ports=known.range or (FIRST_PORT, LAST_PORT) if name == PORT else None,
            names=known.names,
            capacity=known.capacity,
            per_ms=known.per_ms,
        )
    return kinds


def check_slot_request(
    kinds: dict[str, SlotKind], kind: str, *, name: str, amount: int, workspace: str
) -> SlotRequest:
    """Return a request that could be granted at some time.

    Raises:
        Malformed: there is no such kind or name, or there will never be so much of it.
    """
    found = kinds.get(kind)
    if found is None:
        raise Malformed(
            f"no slots of kind {kind[:40]}; there are {', '.join(sorted(kinds))}",
            code="UNKNOWN_KIND",
            hint=f"landlane slot take {nearest_word(kind, kinds) or PORT}",
            known=sorted(kinds),
        )
    if name and (len(name) > _LONGEST_NAME or not name.isprintable() or not name.isascii()):
        raise Malformed(
            f'"{name[:40]}" cannot be the name of a slot; use up to {_LONGEST_NAME} ASCII characters',
            code="BAD_SLOT_NAME",
            hint=f"for example: landlane slot take {kind} --name web",
        )
    if found.names and name and name not in found.names:
        raise Malformed(
            f"no {kind} is named {name}; there are {', '.join(found.names)}",
            code="UNKNOWN_SLOT",
            hint=f"any free one: landlane slot take {kind}",
        )
    most = 1 if found.has_places else found.capacity
    if not 1 <= amount <= most:
        raise Malformed(
            f"{amount} of {kind} can never be leased at once; use 1 to {most}",
            code="AMOUNT_OUT_OF_RANGE",
            hint=f"landlane slot take {kind}" + ("" if found.has_places else f" --amount {most}"),
        )
    # A nameless request for an amount takes a new one each time; a port or a name belongs to the workspace.
    named = name or (DEFAULT_NAME if found.has_places else "")
    return SlotRequest(kind=found, name=named, amount=amount, workspace=workspace)


def workspace_id(machine: str, root: str) -> str:
    """Return an id of a checkout that does not reveal its path."""
    return digest(f"{machine}\0{root}")[:16]


def choose_place(
    request: SlotRequest,
    taken: Iterable[str],
    remembered: str,
    others: Iterable[str],
    is_usable: Callable[[str], bool],
) -> str:
    """Return a free place: the one wanted, the one remembered, or else one that no workspace had before.

    `others` are places that other workspaces had and will want again: they come last. Empty if none is free.
    """
    held = set(taken)
    if request.place:
        return request.place if request.place not in held else ""
    known = set(others) - {remembered}
    first = [remembered] if is_place(request.kind, remembered) else []
    fresh = (place for place in _places(request) if place not in known)
    last = (place for place in _places(request) if place in known)
    for group in (first, fresh, last):
        for place in group:
            if place not in held and is_usable(place):
                return place
    return ""


def is_place(kind: SlotKind, place: str) -> bool:
    """Return whether a kind has this place; the settings may have changed since it was remembered."""
    if kind.ports:
        return place.isdigit() and kind.ports[0] <= int(place) <= kind.ports[1]
    return place in kind.names


def _places(request: SlotRequest) -> Iterator[str]:
    """Yield all places of a kind in the order in which this workspace tries them.

    The start depends on the workspace, so that two repositories on a machine seldom try the same port.
    """
    if not request.kind.ports:
        yield from request.kind.names
        return
    low, high = request.kind.ports
    size = high - low + 1
    start = int(digest(f"{request.workspace}\0{request.name}")[:12], 16) % size
    for step in range(size):
        yield str(low + (start + step) % size)


def slot_id(kind: str, place: str, number: int) -> str:
    """Return the id of a slot: with its place, or with a number if it is an amount."""
    return f"{kind}:{place or number}"
