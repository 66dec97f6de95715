"""Slots: taking, waiting in line for and freeing ports, names and amounts; each ends with its session.

Judging is one transaction for each kind. A waiter's ticket stands in the same line as those for claims;
behind a ticket nobody of the same kind is served, so that small requests never starve a large one.
"""

from __future__ import annotations

from landlane.claims.take import living
from landlane.errors import Held, LandlaneError
from landlane.sessions.leases import end_if_gone, free_slot, is_dead, sweep_if_due
from landlane.sessions.wait_queue import Place
from landlane.state.slot_kinds import (
    Slot,
    SlotRefused,
    SlotTaken,
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

    from landlane.context import Context
    from landlane.sessions.model import Session
    from landlane.state.slot_kinds import Wish
    from landlane.store.interface import Change, Reading, Row
    from landlane.store.journal_chain import Entry


def wish_for(context: Context, kind: str, *, name: str = "", amount: int = 1) -> Wish:
    """What a caller in this checkout asks for.

    Raises:
        Malformed: there is no such kind or name, or there will never be so much of it.
    """
    workspace = workspace_id(context.processes.machine, context.repository.root)
    kinds = known_kinds(context.settings.slots)
    return make_wish(kinds, kind, name=name, amount=amount, workspace=workspace)


def take_slot(
    context: Context,
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
        return context.change(lambda tx: _take_in(tx, context, session, wish, None), areas=_areas(wish))
    listener = context.store.listen()  # before looking, so that nothing freed in between is missed
    try:
        return _SlotPlace(context, session, listener, wait_ms, on_wait).waiting_for(wish).stand()
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

    def judge(self, tx: Change) -> SlotTaken | SlotRefused:
        return _take_in(tx, self.context, self.session, self._wish, self.ticket)

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

    def blockers(self, reading: Reading) -> set[str]:
        """Who is in the way of the head of the line; whoever stands behind another waits for that one."""
        wish = self._wish
        ahead = [row for row in _ahead(reading, wish, self.ticket) if not _is_beside(row, wish)]
        if ahead:
            return {row[1] for row in ahead}
        rows = [row for row in reading.all("slots_in", kind=wish.kind.name) if _is_held(row, reading.now)]
        if wish.kind.has_places:
            is_full = len(rows) >= wish.kind.size or wish.place in {row[3] for row in rows}
        else:
            is_full = sum(row[6] for row in rows) + wish.amount > wish.kind.capacity
        return {row[7] for row in rows} if is_full else set()


def _take_in(
    tx: Change, context: Context, session: Session, wish: Wish, ticket: int | None
) -> SlotTaken | SlotRefused:
    """Judge and take inside a transaction; `ticket` is the caller's place in line, if it has one."""
    me = living(tx, session)
    while True:
        rows = _live_rows(tx, wish.kind.name)
        own = _own(rows, me.id, wish)
        if own is not None:
            return SlotTaken(slot=slot_from(own), is_new=False)
        ahead = _ahead(tx, wish, ticket)
        place, fits = _find(tx, context, wish, rows, ahead)
        if fits:
            return SlotTaken(slot=_take(tx, me, wish, place))
        holders = [row for row in rows if not wish.place or row[3] == wish.place]
        gone = [
            row
            for row in holders
            if row[7] != me.id and row[11] is None and end_if_gone(tx, row[7], context.processes)
        ]
        if not gone:
            return _refusal(wish, holders, rows, ahead, tx.now)


def _live_rows(tx: Change, kind: str) -> list[Row]:
    """What counts of a kind now; what is over is cleared away."""
    rows = tx.all("slots_in", kind=kind)
    for row in rows:
        if not _counts(row, tx.now):
            tx.run("slot_drop", token=row[0])
    return [row for row in rows if _counts(row, tx.now)]


def _counts(row: Row, now: int) -> bool:
    """Whether a slot is held or not back yet: one that counts by time ends with its time, whoever took it."""
    return row[10] > now if row[10] is not None else row[14] is None


def _is_held(row: Row, now: int) -> bool:
    """As `_counts`, but a session whose lease is over holds nothing, swept away or not."""
    return _counts(row, now) and (row[10] is not None or row[12] + row[13] > now)


def _own(rows: Sequence[Row], session: str, wish: Wish) -> Row | None:
    """The slot that this wish was granted before, if its session still holds it."""
    wanted = (session, wish.name, wish.workspace, wish.amount)
    for row in rows:
        is_same = bool(wish.name) and (row[7], row[4], row[5], row[6]) == wanted
        is_there = bool(wish.place) and (row[7], row[3]) == (session, wish.place)
        if row[11] is None and (is_same or is_there):
            return row
    return None


def _ahead(reading: Reading, wish: Wish, ticket: int | None) -> list[Row]:
    """Who has waited longer for this kind."""
    rows = reading.all("slot_waiters", key=_line(wish.kind.name))
    return [row for row in rows if ticket is None or row[0] < ticket]


def _is_beside(waiter: Row, wish: Wish) -> bool:
    """Whether a waiter wants one certain place, and this wish can do without that."""
    return waiter[3] is not None and waiter[3] != wish.place


def _find(
    tx: Change, context: Context, wish: Wish, rows: Sequence[Row], ahead: Sequence[Row]
) -> tuple[str, bool]:
    """The place to take, and whether the wish can be granted at all."""
    if any(not _is_beside(row, wish) for row in ahead):
        return "", False
    if not wish.kind.has_places:
        return "", sum(row[6] for row in rows) + wish.amount <= wish.kind.capacity
    taken = [*(row[3] for row in rows), *(row[3] for row in ahead)]
    known = {"kind": wish.kind.name, "workspace": wish.workspace, "name": wish.name}
    remembered = tx.one("slot_place_get", **known)
    others = [row[0] for row in tx.all("slot_places_of", kind=wish.kind.name)]
    before = remembered[0] if remembered else ""

    def is_usable(place: str) -> bool:
        return wish.kind.ports is None or context.processes.is_port_free(int(place))

    place = choose_place(wish, taken, before, others, is_usable)
    if place and not wish.place and not is_place(wish.kind, before):
        tx.run("slot_place_set", place=place, **known)
    return place, bool(place)


def _take(tx: Change, me: Session, wish: Wish, place: str) -> Slot:
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
        until=tx.now + kind.per_ms if kind.per_ms else me.seen_at + me.lease_ms,
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


def _store(tx: Change, facts: dict[str, Any], session: str) -> None:
    columns = {name: facts[name] for name in ("token", "kind", "place", "name", "workspace", "amount")}
    until = tx.now + facts["per_ms"] if facts["per_ms"] else None
    tx.run("slot_add", id=facts["slot"], session=session, taken_at=tx.now, until=until, **columns)


def _refusal(
    wish: Wish, holders: Sequence[Row], rows: Sequence[Row], ahead: Sequence[Row], now: int
) -> SlotRefused:
    kind = wish.kind
    used = len(rows) if kind.has_places else sum(row[6] for row in rows)
    slots = tuple(slot_from(row) for row in holders)
    waiters = tuple(row[2] for row in ahead if not _is_beside(row, wish))
    if waiters:
        hint = f"{waiters[0]} has waited longer; stand in line with --wait, or ask for another kind"
    elif kind.per_ms is not None and slots:
        left = (min(slot.until for slot in slots) - now + 999) // 1000
        hint = f"some of it comes back in {left}s: --wait {left}s"
    else:
        hint = "stand in line with --wait 10m, or free one of your own: `landlane slot list`"
    return SlotRefused(
        kind=kind.name,
        amount=wish.amount,
        left=max(kind.size - used, 0),
        size=kind.size,
        holders=slots,
        waiters=waiters,
        hint=hint,
    )


def list_slots(context: Context, kind: str = "") -> list[Slot]:
    """All slots that are held, in the order of their grants."""
    sweep_if_due(context.store)

    def look(reading: Reading) -> list[Slot]:
        rows = reading.all("slots_in", kind=kind) if kind else reading.all("slots_all")
        return [slot_from(row) for row in rows if _counts(row, reading.now) and row[11] is None]

    return context.store.view(look)


def in_use(context: Context) -> dict[str, int]:
    """How much of each kind is not to be had now; what counts by time counts on when its user is gone.

    What the dead hold is passed over: whoever asks for it next takes it from them.
    """

    def look(reading: Reading) -> dict[str, int]:
        used: dict[str, int] = {}
        for row in reading.all("slots_all"):
            is_left = row[10] is None and is_dead(reading, row[7], context.processes)
            if _counts(row, reading.now) and not is_left:
                used[row[2]] = used.get(row[2], 0) + row[6]
        return used

    sweep_if_due(context.store)
    return context.store.view(look)


def put_back(context: Context, session: Session, slots: Sequence[Slot]) -> None:
    """Put back what was taken and not used: also of what counts by time, nothing was used up.

    Raises:
        Stale: the session is over.
    """

    def work(tx: Change) -> None:
        me = living(tx, session)
        for slot in slots:
            if tx.run("slot_drop", token=slot.token):
                facts = {name: getattr(slot, name) for name in ("kind", "place", "amount", "token")}
                facts |= {"slot": slot.id, "reason": "not used", "is_timed": False}
                tx.record("slot.freed", me.agent, me.id, facts)
                tx.frees = True

    context.change(work, areas={"": False})


def free(context: Context, session: Session, slot_id: str) -> Slot:
    """Give a slot back.

    Raises:
        Held: another session holds it.
        LandlaneError: nobody holds it.
        Stale: the session is over.
    """

    def work(tx: Change) -> Slot:
        me = living(tx, session)
        rows = [row for row in tx.all("slots_all") if row[1] == slot_id and _counts(row, tx.now)]
        rows = [row for row in rows if row[11] is None]
        mine = [row for row in rows if row[7] == me.id]
        if mine:
            slot = slot_from(mine[0])
            free_slot(tx, me, _as_held(mine[0]), "freed")
            return slot
        if rows:
            slot = slot_from(rows[0])
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

    return context.change(work, areas={"": False})


def _as_held(row: Row) -> Row:
    """A row of `slots_in` in the form of `slots_of`."""
    return row[0], row[1], row[2], row[3], row[6], row[10]


def slot_from(row: Row) -> Slot:
    """A slot from its row. Without a time of its own it lives as long as its session."""
    return Slot(
        id=row[1],
        kind=row[2],
        place=row[3],
        name=row[4],
        amount=row[6],
        token=row[0],
        session=row[7],
        agent=row[8],
        taken_at=row[9],
        until=row[10] if row[10] is not None else row[12] + row[13],
    )


def follow_slot(tx: Change, entry: Entry) -> None:
    """Do again what an entry of the journal tells."""
    facts = entry.facts()
    if entry.kind == "slot.freed":
        tx.run("slot_give_up" if facts["is_timed"] else "slot_drop", token=facts["token"])
        return
    _store(tx, facts, entry.session)
    if facts["place"]:
        known = {name: facts[name] for name in ("kind", "workspace", "name", "place")}
        tx.run("slot_place_set", **known)
