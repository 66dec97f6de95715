"""The commands `number` and `number list`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import Desk


def number(desk: Desk, kind: str, **options: str) -> int:
    """Give the next number."""
    from landlane.state.numbers import give_number
    from landlane.state.to_json import number_json

    given = give_number(desk.house.context, desk.session(), kind, purpose=options["for"])
    answer = {"ok": True, **number_json(given)}
    desk.terminal.answer(answer, given.text)
    return 0


def numbers(desk: Desk, kind: str) -> int:
    """List every number of a kind."""
    from landlane.state.numbers import list_numbers
    from landlane.state.to_json import number_json

    desk.show_life()
    rows = [number_json(one) for one in list_numbers(desk.house.context, kind)]
    columns = ["text", "state", "agent", "for", "at"]
    cells = [[str(row[column] or "") for column in columns] for row in rows]
    title = f"{len(rows)} number{'' if len(rows) == 1 else 's'} given"
    desk.terminal.answer({"ok": True, "numbers": rows}, desk.terminal.table(title, columns, cells))
    return 0
