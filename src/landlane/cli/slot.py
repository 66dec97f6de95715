"""The commands for slots: slot take, list, free."""

from __future__ import annotations

from landlane.cli.command import heed_signals
from landlane.cli.parse_number import read_number
from landlane.cli.terminal import in_one_line
from landlane.clock import parse_duration
from landlane.state.slots import free as free_slot
from landlane.state.slots import list_slots, make_slot_request, take_slot
from landlane.state.to_json import slot_json, slot_outcome_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command_call import CommandCall
    from landlane.state.slot_kinds import SlotRefused


def take(call: CommandCall, kind: str, name: str, amount: str, wait: str) -> int:
    """Take a slot and show it, or show who holds it."""
    repo = call.repo
    request = make_slot_request(repo, kind, name=name, amount=read_number(amount, "--amount") or 0)
    wait_ms = parse_duration(wait, what="--wait")
    session = call.session()

    def on_wait(refused: SlotRefused) -> None:
        names = refused.waiters or [slot.agent for slot in refused.holders]
        call.terminal.note(f"waiting for {', '.join(dict.fromkeys(names)) or 'other programs'} …")

    if wait_ms > 0:
        heed_signals()
    outcome = take_slot(repo, session, request, wait_ms, on_wait)
    answer, code = slot_outcome_json(outcome, call.repo.store)
    if code and not call.terminal.is_json:
        _complain(call, answer)
    else:
        call.terminal.answer(answer, _slot_text(answer["slot"]) if not code else "")
    return code


def _slot_text(slot: dict[str, Any]) -> str:
    amount = f"amount {slot['amount']}, " if slot["place"] is None else ""
    return in_one_line(f"{slot['id']}  ({amount}token {slot['token']}, until {slot['until']})")


def _complain(call: CommandCall, answer: dict[str, Any]) -> None:
    call.terminal.complain(answer["message"], "", answer["code"])
    for slot in answer["holders"]:
        call.terminal.note(f"  {slot['holder']} holds {_slot_text(slot)}")
    call.terminal.note(f"hint: {answer['hint']}")


def list_all(call: CommandCall, kind: str) -> int:
    """List held slots."""
    call.show_life()
    items = [slot_json(slot, call.repo.store) for slot in list_slots(call.repo, kind)]
    columns = ["id", "holder", "name", "amount", "token", "until"]
    cells = [[str(item[column] or "") for column in columns] for item in items]
    title = f"{len(items)} slot{'' if len(items) == 1 else 's'} taken"
    call.terminal.answer({"ok": True, "slots": items}, call.terminal.table(title, columns, cells))
    return 0


def free(call: CommandCall, id: str) -> int:
    """Release a slot."""
    slot = free_slot(call.repo, call.session(), id)
    answer = {"ok": True, "freed": slot.id, "slot": slot_json(slot, call.repo.store)}
    call.terminal.answer(answer, f"freed {slot.id}")
    return 0
