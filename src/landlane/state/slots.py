"""Slots: take, wait for and free ports, names and amounts; each ends with its session.

A request is checked in one transaction for each kind. Waiters share one queue with
claims and are served in order for each kind, so that small requests never starve a large one.
"""

from __future__ import annotations

import shlex

from landlane.errors import Held, LandlaneError
from landlane.ids import token_of
from landlane.patterns.pattern import Alternative
from landlane.sessions.leases import end_if_gone, free_slot, is_dead, require_live, sweep_if_due
from landlane.sessions.model import ClaimMode, Slot
from landlane.sessions.wait_queue import Blocker, QueuedWait, QueueEntry
from landlane.state.slot_kinds import (
    DEFAULT_NAME,
    SlotRefused,
    SlotTaken,
    SlotWaiter,
    check_slot_request,
    choose_place,
    is_place,
    known_kinds,
    slot_id,
    workspace_id,
)
from landlane.units import exact_duration
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.state.slot_kinds import SlotRequest
    from landlane.store.interface import Snapshot, Transaction
    from landlane.store.journal_chain import JournalEntry


def make_slot_request(repo: Repository, kind: str, *, name: str = "", amount: int = 1) -> SlotRequest:
    """Return a valid request of a caller in this checkout.

    Raises:
        Malformed: there is no such kind or name, or there will never be so much of it.
    """
    workspace = workspace_id(repo.processes.machine, repo.git.root)
    kinds = known_kinds(repo.settings.slots)
    return check_slot_request(kinds, kind, name=name, amount=amount, workspace=workspace)


def take_slot(
    repo: Repository,
    session: Session,
    request: SlotRequest,
    wait_ms: int = 0,
    on_wait: Callable[[SlotRefused], None] | None = None,
) -> SlotTaken | SlotRefused:
    """Take a slot, waiting for it if necessary; `on_wait` is called once with what is waited for.

    Raises:
        Stale: the session is over.
    """
    if wait_ms <= 0:
        return repo.change(lambda tx: _take_in(tx, repo, session, request, None), areas=_areas(request))
    return _SlotWait(repo, session, request).run(wait_ms, on_wait)


def _areas(request: SlotRequest) -> dict[str, bool]:
    # The root is locked shared, as for claims: moving the store locks it exclusively.
    return {"": False, _queue_key(request.kind.name): True}


def _queue_key(kind: str) -> str:
    """Return the key of the queue for a kind; no claim can have it."""
    return f"///slot:{kind}"


class _SlotWait(QueuedWait):
    """One session's wait for a slot."""

    def __init__(self, repo: Repository, session: Session, request: SlotRequest) -> None:
        super().__init__(repo, session, _areas(request))
        self._request = request

    def attempt(self, tx: Transaction) -> SlotTaken | SlotRefused:
        return _take_in(tx, self.repo, self.session, self._request, self.ticket)

    def is_final(self, outcome: Any) -> bool:
        return isinstance(outcome, SlotTaken)

    def is_repeatable(self) -> bool:
        return bool(self._request.name or self._request.place)  # a nameless amount would be taken twice

    def last_attempt(self, tx: Transaction) -> SlotTaken | SlotRefused:
        outcome = self.attempt(tx)
        if isinstance(outcome, SlotTaken):
            return outcome
        hint = f"see who holds it: landlane slot list {self._request.kind.name}"
        return replace(outcome, code="WAIT_TIMED_OUT", hint=hint)

    def queue_entry(self) -> QueueEntry:
        kind = self._request.kind.name
        wanted = Alternative(key=_queue_key(kind), rest=self._request.place or None)
        return QueueEntry(mode=ClaimMode.EXCLUSIVE, task="", wanted=((wanted, f"slot:{kind}"),))

    def find_blocker(self, snapshot: Snapshot) -> Blocker | None:
        request = self._request
        ahead = [
            waiter for waiter in _ahead(snapshot, request, self.ticket) if not _can_pass(waiter, request)
        ]
        if ahead:
            living = [one.session for one in ahead if not self.is_dead(snapshot, one.session)]
            return Blocker(session=living[-1]) if living else None
        slots = [slot for slot in _slots_in(snapshot, request.kind.name) if not slot.is_free(snapshot.now)]
        if request.kind.has_places:
            is_full = len(slots) >= request.kind.size or request.place in {slot.place for slot in slots}
        else:
            is_full = sum(slot.amount for slot in slots) + request.amount > request.kind.capacity
        living = [slot for slot in slots if not self.is_dead(snapshot, slot.session)] if is_full else []
        if not living:
            return None
        return Blocker(session=living[0].session, ends_at=min(slot.until for slot in living))


def _take_in(
    tx: Transaction, repo: Repository, session: Session, request: SlotRequest, ticket: int | None
) -> SlotTaken | SlotRefused:
    """Check and take inside a transaction; `ticket` is the caller's place in the queue, if it has one."""
    me = require_live(tx, session)
    while True:
        slots = _slots_in_use(tx, request.kind.name)
        own = _find_own(slots, me.id, request)
        if own is not None:
            return SlotTaken(slot=own, is_new=False)
        ahead = _ahead(tx, request, ticket)
        place = _find_place(tx, repo, request, slots, ahead)
        if place is not None:
            return SlotTaken(slot=_take(tx, me, request, place))
        holders = [slot for slot in slots if not request.place or slot.place == request.place]
        others = [slot for slot in holders if slot.session != me.id and slot.freed_at is None]
        gone = [slot for slot in others if end_if_gone(tx, slot.session, repo.processes)]
        if not gone:
            return _refuse(request, holders, slots, ahead, tx.now)


def all_slots(snapshot: Snapshot) -> list[Slot]:
    """Return all slots, also freed ones that are in use until they expire."""
    return [Slot.from_row(row) for row in snapshot.all("slots_all")]


def _slots_in(snapshot: Snapshot, kind: str) -> list[Slot]:
    return [Slot.from_row(row) for row in snapshot.all("slots_in", kind=kind)]


def _slots_in_use(tx: Transaction, kind: str) -> list[Slot]:
    """Return the slots of a kind that are in use; the others are removed."""
    in_use: list[Slot] = []
    for slot in _slots_in(tx, kind):
        if slot.is_in_use(tx.now):
            in_use.append(slot)
        else:
            tx.run("slot_drop", token=slot.token)
    return in_use


def _find_own(slots: Sequence[Slot], session: str, request: SlotRequest) -> Slot | None:
    """Return the slot that the session got for this request before, if it still holds it."""
    wanted = (request.name, request.workspace, request.amount)
    for slot in slots:
        is_same = bool(request.name) and (slot.name, slot.workspace, slot.amount) == wanted
        is_there = bool(request.place) and slot.place == request.place
        if slot.session == session and slot.freed_at is None and (is_same or is_there):
            return slot
    return None


def _ahead(snapshot: Snapshot, request: SlotRequest, ticket: int | None) -> list[SlotWaiter]:
    """Return the waiters that have waited longer for this kind."""
    rows = snapshot.all("slot_waiters", key=_queue_key(request.kind.name))
    waiters = [SlotWaiter.from_row(row) for row in rows]
    return [waiter for waiter in waiters if ticket is None or waiter.ticket < ticket]


def _can_pass(waiter: SlotWaiter, request: SlotRequest) -> bool:
    """Return whether the waiter wants a certain place, and the request does not need that one."""
    return waiter.place is not None and waiter.place != request.place


def _find_place(
    tx: Transaction,
    repo: Repository,
    request: SlotRequest,
    slots: Sequence[Slot],
    ahead: Sequence[SlotWaiter],
) -> str | None:
    """Return the place to take, empty for an amount; None if the request cannot be granted now."""
    kind = request.kind
    if any(not _can_pass(waiter, request) for waiter in ahead):
        return None
    if not kind.has_places:
        return "" if sum(slot.amount for slot in slots) + request.amount <= kind.capacity else None
    taken = [*(slot.place for slot in slots), *(waiter.place or "" for waiter in ahead)]
    known = {"kind": kind.name, "workspace": request.workspace, "name": request.name}
    row = tx.one("slot_place_get", **known)
    remembered = row["place"] if row is not None else ""
    others = [row["place"] for row in tx.all("slot_places_of", kind=kind.name)]

    def is_usable(place: str) -> bool:
        return kind.ports is None or repo.processes.is_port_free(int(place))

    place = choose_place(request, taken, remembered, others, is_usable)
    if place and not request.place and not is_place(kind, remembered):
        tx.run("slot_place_set", place=place, **known)
    return place or None


def _take(tx: Transaction, me: Session, request: SlotRequest, place: str) -> Slot:
    (number,) = tx.next_numbers(1)
    kind, token = request.kind, token_of(tx.epoch, number)
    facts = {
        "slot": slot_id(kind.name, place, number),
        "kind": kind.name,
        "place": place,
        "name": request.name,
        "workspace": request.workspace,
        "amount": request.amount,
        "token": token,
        "per_ms": kind.per_ms,
    }
    _add(tx, facts, me.id)
    tx.record("slot.taken", me.agent, me.id, facts, number)
    return next(slot for slot in _slots_in(tx, kind.name) if slot.token == token)


def _add(tx: Transaction, facts: dict[str, Any], session: str) -> None:
    columns = {name: facts[name] for name in ("token", "kind", "place", "name", "workspace", "amount")}
    until = tx.now + facts["per_ms"] if facts["per_ms"] else None
    tx.run("slot_add", id=facts["slot"], session=session, taken_at=tx.now, until=until, **columns)


def _refuse(
    request: SlotRequest,
    holders: Sequence[Slot],
    slots: Sequence[Slot],
    ahead: Sequence[SlotWaiter],
    now: int,
) -> SlotRefused:
    kind = request.kind
    used = len(slots) if kind.has_places else sum(slot.amount for slot in slots)
    waiters = tuple(waiter.agent for waiter in ahead if not _can_pass(waiter, request))
    if kind.per_ms is not None and holders and not waiters:
        free_in = exact_duration(min(slot.until for slot in holders) - now)
        hint = f"some of it is free again in {free_in}: {_command(request)} --wait"
    else:
        hint = f"wait for it: {_command(request)} --wait"
    return SlotRefused(
        kind=kind.name,
        amount=request.amount,
        left=max(kind.size - used, 0),
        size=kind.size,
        holders=tuple(holders),
        waiters=waiters,
        hint=hint,
    )


def _command(request: SlotRequest) -> str:
    """Return the command that makes this request."""
    words = ["landlane", "slot", "take", request.kind.name]
    if request.name not in ("", DEFAULT_NAME):
        words += ["--name", request.name]
    if not request.kind.has_places:
        words += ["--amount", str(request.amount)]
    return shlex.join(words)


def list_slots(repo: Repository, kind: str = "") -> list[Slot]:
    """Return the slots that are held, oldest first."""
    sweep_if_due(repo.store)

    def look(snapshot: Snapshot) -> list[Slot]:
        slots = _slots_in(snapshot, kind) if kind else all_slots(snapshot)
        return [slot for slot in slots if slot.is_in_use(snapshot.now) and slot.freed_at is None]

    return repo.store.view(look)


def count_in_use(repo: Repository) -> dict[str, int]:
    """Return how much of each kind is in use, without the slots of dead sessions, which can be taken."""

    def look(snapshot: Snapshot) -> dict[str, int]:
        used: dict[str, int] = {}
        for slot in all_slots(snapshot):
            is_left = slot.expires_at is None and is_dead(snapshot, slot.session, repo.processes)
            if slot.is_in_use(snapshot.now) and not is_left:
                used[slot.kind] = used.get(slot.kind, 0) + slot.amount
        return used

    sweep_if_due(repo.store)
    return repo.store.view(look)


def return_unused(repo: Repository, session: Session, slots: Sequence[Slot]) -> None:
    """Free slots that were taken but not used, so that even an expiry does not keep them in use.

    Raises:
        Stale: the session is over.
    """

    def work(tx: Transaction) -> None:
        me = require_live(tx, session)
        for slot in slots:
            if tx.run("slot_drop", token=slot.token):
                facts = {name: getattr(slot, name) for name in ("kind", "place", "amount", "token")}
                facts |= {"slot": slot.id, "reason": "not used", "is_timed": False}
                tx.record("slot.freed", me.agent, me.id, facts)
                tx.has_freed = True

    repo.change(work, areas={"": False})


def free(repo: Repository, session: Session, slot_id: str) -> Slot:
    """Free a slot and return it.

    Raises:
        Held: another session holds it.
        LandlaneError: no session holds it.
        Stale: the session is over.
    """

    def work(tx: Transaction) -> Slot:
        me = require_live(tx, session)
        slots = [
            slot
            for slot in all_slots(tx)
            if slot.id == slot_id and slot.is_in_use(tx.now) and slot.freed_at is None
        ]
        own = next((slot for slot in slots if slot.session == me.id), None)
        if own is not None:
            free_slot(tx, me, own, "freed")
            return own
        if slots:
            holder = slots[0].agent
            raise Held(
                f"{slot_id} is held by {holder}, and only {holder} can free it",
                code="SLOT_TAKEN",
                hint="see when it ends: landlane slot list",
                holder=holder,
                until_at=slots[0].until,
            )
        raise LandlaneError(
            f"no slot {slot_id[:80]} is leased",
            code="NOT_HELD",
            hint="landlane slot list",
        )

    return repo.change(work, areas={"": False})


def replay_slot(tx: Transaction, entry: JournalEntry) -> None:
    """Apply a journal entry about a slot to a store that is being rebuilt."""
    facts = entry.facts()
    if entry.kind == "slot.freed":
        tx.run("slot_give_up" if facts["is_timed"] else "slot_drop", token=facts["token"])
        return
    _add(tx, facts, entry.session)
    if facts["place"]:
        tx.run("slot_place_set", **{name: facts[name] for name in ("kind", "workspace", "name", "place")})
