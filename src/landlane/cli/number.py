"""The commands `number` and `number list`."""

from __future__ import annotations

from landlane.state.numbers import give_number, list_numbers
from landlane.state.to_json import number_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command_call import CommandCall


def number(call: CommandCall, kind: str, **options: str) -> int:
    """Allocate the next number."""
    given = give_number(call.repo, call.session(), kind, purpose=options["for"])
    answer = {"ok": True, **number_json(given)}
    call.terminal.answer(answer, given.text)
    return 0


def numbers(call: CommandCall, kind: str) -> int:
    """List every number of a kind."""
    call.show_life()
    items = [number_json(allocated) for allocated in list_numbers(call.repo, kind)]
    columns = ["text", "state", "agent", "for", "at"]
    cells = [[str(item[column] or "") for column in columns] for item in items]
    title = f"{len(items)} number{'' if len(items) == 1 else 's'} given"
    call.terminal.answer({"ok": True, "numbers": items}, call.terminal.table(title, columns, cells))
    return 0
