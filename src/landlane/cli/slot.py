"""The commands for slots: slot take, list, free."""

from __future__ import annotations

from landlane.cli.arguments import read_number, read_wait
from landlane.cli.command import stop_on_signals
from landlane.clock import rfc3339
from landlane.state.slots import free as free_slot
from landlane.state.slots import list_slots, make_slot_request, take_slot
from landlane.state.to_json import slot_json, slot_outcome_json
from landlane.units import join_words, time_left

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.sessions.model import Slot
    from landlane.state.slot_kinds import SlotRefused


def take(call: CommandCall, kind: str, name: str, amount: str, wait: str) -> int:
    """Take a slot and print it, or show who holds it."""
    repo = call.repo
    request = make_slot_request(repo, kind, name=name, amount=read_number(amount, "--amount") or 0)
    wait_ms = read_wait(wait)
    session = call.session()

    def on_wait(refused: SlotRefused) -> None:
        names = refused.waiters or [slot.agent for slot in refused.holders]
        call.terminal.note(f"waiting for {join_words(list(dict.fromkeys(names))) or 'other programs'} …")

    if wait_ms > 0:
        stop_on_signals()
    outcome = take_slot(repo, session, request, wait_ms, on_wait)
    answer, code = slot_outcome_json(outcome, call.repo.store)
    if code:
        return call.terminal.refuse(answer, code)
    slot = answer["slot"]
    remark = f"{slot['id']}, token {slot['token']}, until {slot['until']}" if call.terminal.is_verbose else ""
    return call.terminal.answer_value(answer, _value(slot), remark)


def _value(slot: dict[str, Any]) -> str:
    """Return what a script needs: the port, the name, or the id of an amount, with which it is freed."""
    return slot["place"] or slot["id"]


def list_all(call: CommandCall, kind: str) -> int:
    """List leased slots."""
    call.renew_session()
    slots = list_slots(call.repo, kind)
    columns = ["id", "holder", "name", "amount", "ends", *(["token"] if call.terminal.is_verbose else [])]
    rows = [_row(call, slot) for slot in slots]
    text = call.terminal.table("", columns, rows, right=("AMOUNT", "TOKEN"), cut="NAME")
    answer = {"ok": True, "slots": [slot_json(slot, call.repo.store) for slot in slots]}
    quiet = "\n".join(slot.id for slot in slots)
    return call.terminal.answer(answer, text or "No slots are leased.", quiet=quiet)


def _row(call: CommandCall, slot: Slot) -> list[str]:
    until = call.repo.store.wall_of(slot.until)
    amount = "" if slot.place else str(slot.amount)
    if call.terminal.is_verbose:
        return [slot.id, slot.agent, slot.name, amount, rfc3339(until), str(slot.token)]
    return [slot.id, slot.agent, slot.name, amount, time_left(until - call.wall_now())]


def free(call: CommandCall, id: str) -> int:
    """Free a slot."""
    slot = free_slot(call.repo, call.session(), id)
    answer = {"ok": True, "freed": slot.id, "slot": slot_json(slot, call.repo.store)}
    return call.terminal.answer(answer, f"✓ freed {slot.id}", quiet="")
