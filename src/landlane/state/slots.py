"""Slots: taking, waiting in line for and freeing ports, names and amounts; each ends with its session.

Judging is one transaction for each kind. A waiter's ticket stands in the same line as those for claims;
behind a ticket nobody of the same kind is served, so that small requests never starve a large one.
"""

from __future__ import annotations

from landlane.claims.take import living
from landlane.errors import Held, LandlaneError
from landlane.sessions.leases import end_if_gone, free_slot, is_dead, sweep_if_due
from landlane.sessions.model import HeldSlot
from landlane.sessions.wait_queue import Place
from landlane.state.slot_kinds import (
    Slot,
    SlotRefused,
    SlotTaken,
    SlotWaiter,
    choose_place,
    id_of,
    is_place,
    known_kinds,
    make_wish,
    workspace_id,
)
from landlane.store.fencing_tokens import token_of
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.state.slot_kinds import Wish
    from landlane.store.interface import Snapshot, Transaction
    from landlane.store.journal_chain import Entry


def wish_for(repo: Repository, kind: str, *, name: str = "", amount: int = 1) -> Wish:
    """What a caller in this checkout asks for.

    Raises:
        Malformed: there is no such kind or name, or there will never be so much of it.
    """
    workspace = workspace_id(repo.processes.machine, repo.git.root)
    kinds = known_kinds(repo.settings.slots)
    return make_wish(kinds, kind, name=name, amount=amount, workspace=workspace)


def take_slot(
    repo: Repository,
    session: Session,
    wish: Wish,
    wait_ms: int = 0,
    on_wait: Callable[[SlotRefused], None] | None = None,
) -> SlotTaken | SlotRefused:
    """Take a slot, waiting in line for it at most so long; `on_wait` hears once what is waited for.

    Raises:
        Stale: the session is over.
    """
    if wait_ms <= 0:
        return repo.change(lambda tx: _take_in(tx, repo, session, wish, None), areas=_areas(wish))
    listener = repo.store.listen()  # before looking, so that nothing freed in between is missed
    try:
        return _SlotPlace(repo, session, listener, wait_ms, on_wait).waiting_for(wish).stand()
    finally:
        listener.close()


def _areas(wish: Wish) -> dict[str, bool]:
    # The root is locked shared, as for claims: who moves the whole store away takes it alone.
    return {"": False, _line(wish.kind.name): True}


def _line(kind: str) -> str:
    """The key under which waiters for a kind stand in line; three slashes: no claim can have it."""
    return f"///slot:{kind}"


class _SlotPlace(Place):
    """One caller's place in line for a kind."""

    _wish: Wish

    def waiting_for(self, wish: Wish) -> _SlotPlace:
        self._wish = wish
        return self

    def judge(self, tx: Transaction) -> SlotTaken | SlotRefused:
        return _take_in(tx, self.repo, self.session, self._wish, self.ticket)

    def has_ended(self, outcome: Any) -> bool:
        return isinstance(outcome, SlotTaken)

    def may_ask_twice(self) -> bool:
        return bool(self._wish.name or self._wish.place)  # others look all the same

    def timed_out(self, outcome: Any) -> SlotRefused:
        return replace(outcome, code="WAIT_TIMED_OUT")

    def wishes(self) -> tuple[str, str, list[tuple[str, str | None, str]]]:
        kind = self._wish.kind.name
        return "exclusive", "", [(_line(kind), self._wish.place or None, f"slot:{kind}")]

    def areas(self) -> dict[str, bool]:
        return _areas(self._wish)

    def ends(self, outcome: Any) -> list[int]:
        return [slot.until for slot in outcome.holders]

    def blockers(self, snapshot: Snapshot) -> set[str]:
        """Who is in the way of the head of the line; whoever stands behind another waits for that one."""
        wish = self._wish
        ahead = [waiter for waiter in _ahead(snapshot, wish, self.ticket) if not _is_beside(waiter, wish)]
        if ahead:
            return {waiter.session for waiter in ahead}
        slots = [slot for slot in _slots_in(snapshot, wish.kind.name) if not slot.is_free(snapshot.now)]
        if wish.kind.has_places:
            is_full = len(slots) >= wish.kind.size or wish.place in {slot.place for slot in slots}
        else:
            is_full = sum(slot.amount for slot in slots) + wish.amount > wish.kind.capacity
        return {slot.session for slot in slots} if is_full else set()


def _take_in(
    tx: Transaction, repo: Repository, session: Session, wish: Wish, ticket: int | None
) -> SlotTaken | SlotRefused:
    """Judge and take inside a transaction; `ticket` is the caller's place in line, if it has one."""
    me = living(tx, session)
    while True:
        slots = _used_slots(tx, wish.kind.name)
        own = _own(slots, me.id, wish)
        if own is not None:
            return SlotTaken(slot=Slot.of(own), is_new=False)
        ahead = _ahead(tx, wish, ticket)
        place, fits = _find(tx, repo, wish, slots, ahead)
        if fits:
            return SlotTaken(slot=_take(tx, me, wish, place))
        holders = [slot for slot in slots if not wish.place or slot.place == wish.place]
        gone = [
            slot
            for slot in holders
            if slot.session != me.id
            and slot.freed_at is None
            and end_if_gone(tx, slot.session, repo.processes)
        ]
        if not gone:
            return _refusal(wish, holders, slots, ahead, tx.now)


def _slots_in(snapshot: Snapshot, kind: str) -> list[HeldSlot]:
    return [HeldSlot.from_row(row) for row in snapshot.all("slots_in", kind=kind)]


def _used_slots(tx: Transaction, kind: str) -> list[HeldSlot]:
    """Return the slots of a kind that are in use; the others are removed."""
    slots = _slots_in(tx, kind)
    for slot in slots:
        if not slot.is_used(tx.now):
            tx.run("slot_drop", token=slot.token)
    return [slot for slot in slots if slot.is_used(tx.now)]


def _own(slots: Sequence[HeldSlot], session: str, wish: Wish) -> HeldSlot | None:
    """The slot that this wish was granted before, if its session still holds it."""
    wanted = (wish.name, wish.workspace, wish.amount)
    for slot in slots:
        is_same = bool(wish.name) and (slot.name, slot.workspace, slot.amount) == wanted
        is_there = bool(wish.place) and slot.place == wish.place
        if slot.session == session and slot.freed_at is None and (is_same or is_there):
            return slot
    return None


def _ahead(snapshot: Snapshot, wish: Wish, ticket: int | None) -> list[SlotWaiter]:
    """Who has waited longer for this kind."""
    waiters = [SlotWaiter.from_row(row) for row in snapshot.all("slot_waiters", key=_line(wish.kind.name))]
    return [waiter for waiter in waiters if ticket is None or waiter.ticket < ticket]


def _is_beside(waiter: SlotWaiter, wish: Wish) -> bool:
    """Whether a waiter wants one certain place, and this wish can do without that."""
    return waiter.place is not None and waiter.place != wish.place


def _find(
    tx: Transaction, repo: Repository, wish: Wish, slots: Sequence[HeldSlot], ahead: Sequence[SlotWaiter]
) -> tuple[str, bool]:
    """The place to take, and whether the wish can be granted at all."""
    if any(not _is_beside(waiter, wish) for waiter in ahead):
        return "", False
    if not wish.kind.has_places:
        return "", sum(slot.amount for slot in slots) + wish.amount <= wish.kind.capacity
    taken = [*(slot.place for slot in slots), *(waiter.place or "" for waiter in ahead)]
    known = {"kind": wish.kind.name, "workspace": wish.workspace, "name": wish.name}
    remembered = tx.one("slot_place_get", **known)
    others = [row["place"] for row in tx.all("slot_places_of", kind=wish.kind.name)]
    before = remembered["place"] if remembered else ""

    def is_usable(place: str) -> bool:
        return wish.kind.ports is None or repo.processes.is_port_free(int(place))

    place = choose_place(wish, taken, before, others, is_usable)
    if place and not wish.place and not is_place(wish.kind, before):
        tx.run("slot_place_set", place=place, **known)
    return place, bool(place)


def _take(tx: Transaction, me: Session, wish: Wish, place: str) -> Slot:
    (number,) = tx.next_numbers(1)
    token = token_of(tx.epoch, number)
    kind = wish.kind
    slot = Slot(
        id=id_of(kind.name, place, number),
        kind=kind.name,
        place=place,
        name=wish.name,
        amount=wish.amount,
        token=token,
        session=me.id,
        agent=me.agent,
        taken_at=tx.now,
        until=tx.now + kind.per_ms if kind.per_ms else me.lease_ends_at,
    )
    facts = {
        "slot": slot.id,
        "kind": slot.kind,
        "place": slot.place,
        "name": slot.name,
        "amount": slot.amount,
        "token": token,
        "workspace": wish.workspace,
        "per_ms": kind.per_ms,
    }
    _store(tx, facts, me.id)
    tx.record("slot.taken", me.agent, me.id, facts, number)
    return slot


def _store(tx: Transaction, facts: dict[str, Any], session: str) -> None:
    columns = {name: facts[name] for name in ("token", "kind", "place", "name", "workspace", "amount")}
    until = tx.now + facts["per_ms"] if facts["per_ms"] else None
    tx.run("slot_add", id=facts["slot"], session=session, taken_at=tx.now, until=until, **columns)


def _refusal(
    wish: Wish,
    holders: Sequence[HeldSlot],
    slots: Sequence[HeldSlot],
    ahead: Sequence[SlotWaiter],
    now: int,
) -> SlotRefused:
    kind = wish.kind
    used = len(slots) if kind.has_places else sum(slot.amount for slot in slots)
    waiters = tuple(waiter.agent for waiter in ahead if not _is_beside(waiter, wish))
    if waiters:
        hint = f"{waiters[0]} has waited longer; stand in line with --wait, or ask for another kind"
    elif kind.per_ms is not None and holders:
        left = (min(slot.until for slot in holders) - now + 999) // 1000
        hint = f"some of it comes back in {left}s: --wait {left}s"
    else:
        hint = "stand in line with --wait 10m, or free one of your own: `landlane slot list`"
    return SlotRefused(
        kind=kind.name,
        amount=wish.amount,
        left=max(kind.size - used, 0),
        size=kind.size,
        holders=tuple(Slot.of(slot) for slot in holders),
        waiters=waiters,
        hint=hint,
    )


def list_slots(repo: Repository, kind: str = "") -> list[Slot]:
    """All slots that are held, in the order of their grants."""
    sweep_if_due(repo.store)

    def look(snapshot: Snapshot) -> list[Slot]:
        slots = _slots_in(snapshot, kind) if kind else all_slots(snapshot)
        return [Slot.of(slot) for slot in slots if slot.is_used(snapshot.now) and slot.freed_at is None]

    return repo.store.view(look)


def all_slots(snapshot: Snapshot) -> list[HeldSlot]:
    """Return all slots, also freed ones that are used up until their time is over."""
    return [HeldSlot.from_row(row) for row in snapshot.all("slots_all")]


def in_use(repo: Repository) -> dict[str, int]:
    """How much of each kind is not to be had now; what counts by time counts on when its user is gone.

    What the dead hold is passed over: whoever asks for it next takes it from them.
    """

    def look(snapshot: Snapshot) -> dict[str, int]:
        used: dict[str, int] = {}
        for slot in all_slots(snapshot):
            is_left = slot.expires_at is None and is_dead(snapshot, slot.session, repo.processes)
            if slot.is_used(snapshot.now) and not is_left:
                used[slot.kind] = used.get(slot.kind, 0) + slot.amount
        return used

    sweep_if_due(repo.store)
    return repo.store.view(look)


def put_back(repo: Repository, session: Session, slots: Sequence[Slot]) -> None:
    """Put back what was taken and not used: also of what counts by time, nothing was used up.

    Raises:
        Stale: the session is over.
    """

    def work(tx: Transaction) -> None:
        me = living(tx, session)
        for slot in slots:
            if tx.run("slot_drop", token=slot.token):
                facts = {name: getattr(slot, name) for name in ("kind", "place", "amount", "token")}
                facts |= {"slot": slot.id, "reason": "not used", "is_timed": False}
                tx.record("slot.freed", me.agent, me.id, facts)
                tx.frees = True

    repo.change(work, areas={"": False})


def free(repo: Repository, session: Session, slot_id: str) -> Slot:
    """Give a slot back.

    Raises:
        Held: another session holds it.
        LandlaneError: nobody holds it.
        Stale: the session is over.
    """

    def work(tx: Transaction) -> Slot:
        me = living(tx, session)
        slots = [
            slot
            for slot in all_slots(tx)
            if slot.id == slot_id and slot.is_used(tx.now) and slot.freed_at is None
        ]
        mine = next((slot for slot in slots if slot.session == me.id), None)
        if mine is not None:
            free_slot(tx, me, mine, "freed")
            return Slot.of(mine)
        if slots:
            slot = slots[0]
            raise Held(
                f"{slot_id} is held by {slot.agent}",
                code="SLOT_TAKEN",
                hint=f"only {slot.agent} can free it; it ends with that session",
                holder=slot.agent,
                until_at=slot.until,
            )
        raise LandlaneError(
            f"nobody holds the slot {slot_id[:80]!r}",
            code="NOT_HELD",
            hint="`landlane slot list` shows the ids of what is held",
        )

    return repo.change(work, areas={"": False})


def follow_slot(tx: Transaction, entry: Entry) -> None:
    """Do again what an entry of the journal tells."""
    facts = entry.facts()
    if entry.kind == "slot.freed":
        tx.run("slot_give_up" if facts["is_timed"] else "slot_drop", token=facts["token"])
        return
    _store(tx, facts, entry.session)
    if facts["place"]:
        known = {name: facts[name] for name in ("kind", "workspace", "name", "place")}
        tx.run("slot_place_set", **known)
