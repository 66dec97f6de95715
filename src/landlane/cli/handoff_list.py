"""`landlane handoff list`: handoffs waiting to be accepted."""

from __future__ import annotations

from landlane.cli.terminal import in_one_line
from landlane.handoffs.records import list_handoffs
from landlane.handoffs.to_json import handoff_json, handoff_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command_call import CommandCall


def list_all(call: CommandCall, all: bool) -> int:
    """List handoffs."""
    call.show_life()
    found = list_handoffs(call.repo, with_settled=all)
    now = call.wall_now()
    cells = [[in_one_line(cell) for cell in handoff_row(handoff, now)] for handoff in found]
    title = f"{len(found)} handoff{'' if len(found) == 1 else 's'}"
    table = call.terminal.table(title, ["id", "task", "from", "to", "standing", "next"], cells)
    call.terminal.answer({"ok": True, "handoffs": [handoff_json(handoff) for handoff in found]}, table)
    return 0
