"""The commands `number` and `number list`."""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.state.numbers import check_known_kind, give_number, list_numbers
from landlane.state.to_json import number_json
from landlane.units import time_ago

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import CommandCall
    from landlane.state.numbers import AllocatedNumber


def number(call: CommandCall, kind: str, for_: str, new: bool) -> int:
    """Allocate the next number and print it."""
    if not new:
        check_known_kind(call.repo, kind)  # before a session begins: a typo changes nothing
    given = give_number(call.repo, call.session(), kind, purpose=for_, is_new_kind=new)
    remark = f"for {given.path}" if call.terminal.is_verbose and given.path else ""
    return call.terminal.answer_value({"ok": True, **number_json(given)}, given.text, remark)


def list_all(call: CommandCall, kind: str) -> int:
    """List every number of a kind."""
    call.renew_session()
    check_known_kind(call.repo, kind, is_listing=True)
    found = list_numbers(call.repo, kind)
    rows = [_row(call, allocated) for allocated in found]
    columns = ["number", "state", "by", "for", "given"]
    text = call.terminal.table("", columns, rows, right=("NUMBER",), cut="FOR")
    answer = {"ok": True, "numbers": [number_json(allocated) for allocated in found]}
    quiet = "\n".join(allocated.text for allocated in found)
    return call.terminal.answer(answer, text or f"No {kind} numbers are given out.", quiet=quiet)


def _row(call: CommandCall, given: AllocatedNumber) -> list[str]:
    age = rfc3339(given.at) if call.terminal.is_verbose else time_ago(given.at, call.wall_now())
    return [given.text, given.state, given.agent, given.purpose, age]
