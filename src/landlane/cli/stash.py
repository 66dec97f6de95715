"""The commands that put changes aside and bring them back: stash save, restore, list."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import Desk


def save(desk: Desk, message: str) -> int:
    """Put the changes of this checkout aside."""
    from landlane.rescue.to_json import rescue_json
    from landlane.workspaces.stash import save as put_aside

    stash = put_aside(desk.house.site(), desk.session(), message)
    desk.terminal.answer({"ok": True, "stash": rescue_json(stash)}, f"put aside as {stash.id}")
    return 0


def restore(desk: Desk, id: str) -> int:
    """Bring back what was put aside last here."""
    from landlane.rescue.to_json import rescue_json
    from landlane.workspaces.stash import restore as bring_back

    desk.session()
    stash, notes = bring_back(desk.house.site(), id)
    for note in notes:
        desk.terminal.note(note)
    desk.terminal.answer(
        {"ok": True, "stash": rescue_json(stash), "notes": list(notes)}, f"restored {stash.id}"
    )
    return 0


def list_all(desk: Desk) -> int:
    """Show what was put aside in this checkout."""
    from landlane.rescue.to_json import rescue_json
    from landlane.workspaces.stash import put_aside

    rows = [rescue_json(one) for one in put_aside(desk.house.site())]
    cells = [[str(row[name]) for name in ("id", "at", "files", "reason")] for row in rows]
    table = desk.terminal.table(f"{len(rows)} put aside here", ["id", "at", "files", "message"], cells)
    desk.terminal.answer({"ok": True, "stashes": rows}, table)
    return 0
