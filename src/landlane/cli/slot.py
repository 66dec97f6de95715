"""The commands for slots: slot take, list, free."""

from __future__ import annotations

from landlane.cli.parse_number import read_number
from landlane.cli.terminal import in_one_line
from landlane.clock import parse_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command import Desk
    from landlane.state.slot_kinds import SlotRefused


def take(desk: Desk, kind: str, name: str, amount: str, wait: str) -> int:
    """Take a slot and show it, or show who is in the way."""
    from landlane.state.slots import take_slot, wish_for
    from landlane.state.to_json import slot_outcome_json

    context = desk.house.context
    wish = wish_for(context, kind, name=name, amount=read_number(amount, "--amount") or 0)
    wait_ms = parse_duration(wait, what="--wait")
    session = desk.session()

    def on_wait(refused: SlotRefused) -> None:
        names = refused.waiters or [slot.agent for slot in refused.holders]
        desk.terminal.note(f"waiting for {', '.join(dict.fromkeys(names)) or 'other programs'} …")

    if wait_ms > 0:
        from landlane.cli.command import heed_signals

        heed_signals()
    outcome = take_slot(context, session, wish, wait_ms, on_wait)
    answer, code = slot_outcome_json(outcome, desk.house.store)
    if code and not desk.terminal.is_json:
        _complain(desk, answer)
    else:
        desk.terminal.answer(answer, _slot_text(answer["slot"]) if not code else "")
    return code


def _slot_text(slot: dict[str, Any]) -> str:
    amount = f"amount {slot['amount']}, " if slot["place"] is None else ""
    return in_one_line(f"{slot['id']}  ({amount}token {slot['token']}, until {slot['until']})")


def _complain(desk: Desk, answer: dict[str, Any]) -> None:
    desk.terminal.complain(answer["message"], "", answer["code"])
    for slot in answer["holders"]:
        desk.terminal.note(f"  {slot['holder']} holds {_slot_text(slot)}")
    desk.terminal.note(f"hint: {answer['hint']}")


def list_all(desk: Desk, kind: str) -> int:
    """List what is held."""
    from landlane.state.slots import list_slots
    from landlane.state.to_json import slot_json

    desk.show_life()
    rows = [slot_json(slot, desk.house.store) for slot in list_slots(desk.house.context, kind)]
    columns = ["id", "holder", "name", "amount", "token", "until"]
    cells = [[str(row[column] or "") for column in columns] for row in rows]
    title = f"{len(rows)} slot{'' if len(rows) == 1 else 's'} taken"
    desk.terminal.answer({"ok": True, "slots": rows}, desk.terminal.table(title, columns, cells))
    return 0


def free(desk: Desk, id: str) -> int:
    """Give a slot back."""
    from landlane.state.slots import free as free_slot
    from landlane.state.to_json import slot_json

    slot = free_slot(desk.house.context, desk.session(), id)
    answer = {"ok": True, "freed": slot.id, "slot": slot_json(slot, desk.house.store)}
    desk.terminal.answer(answer, f"freed {slot.id}")
    return 0
