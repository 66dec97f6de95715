"""The commands about saved work: rescue list, restore, take, drop."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import Desk


def list_all(desk: Desk) -> int:
    """Show what was saved: what, whose, when, how large."""
    from landlane.rescue.save import saved_work
    from landlane.rescue.to_json import rescue_json
    from landlane.workspaces.to_json import size_text

    rows = [rescue_json(one) for one in saved_work(desk.house.site())]
    columns = ["id", "agent", "task", "workspace", "at", "size", "files", "reason"]
    cells = [
        [str(row[name] if name != "size" else size_text(row["bytes"])) for name in columns] for row in rows
    ]
    title = f"{len(rows)} rescue{'' if len(rows) == 1 else 's'}"
    desk.terminal.answer({"ok": True, "rescues": rows}, desk.terminal.table(title, columns, cells))
    return 0


def restore(desk: Desk, id: str, into: str) -> int:
    """Bring saved work back."""
    from landlane.rescue.restore import restore as bring_back
    from landlane.rescue.to_json import rescue_json
    from landlane.workspaces.locate import workspaces_folder

    site = desk.house.site(desk.terminal.note)
    place = os.path.join(desk.cwd, into) if into else ""
    restored = bring_back(site, desk.session(), id, place, workspaces_folder(site))
    for note in restored.notes:
        desk.terminal.note(note)
    answer = {
        "ok": True,
        "rescue": rescue_json(restored.rescue),
        "path": restored.path,
        "notes": list(restored.notes),
    }
    desk.terminal.answer(answer, restored.path)
    return 0


def take(desk: Desk, why: str) -> int:
    """Save what exists only in this checkout."""
    from landlane.rescue.save import save_checkout

    site = desk.house.site()
    saved = save_checkout(site, desk.session(), site.here.root, why or "asked for")
    desk.terminal.answer({"ok": True, "rescue": saved or None}, saved or "nothing here exists only here")
    return 0


def drop(desk: Desk, id: str) -> int:
    """Forget saved work for good."""
    from landlane.rescue.save import discard_rescue as forget
    from landlane.rescue.to_json import rescue_json

    dropped = forget(desk.house.site(), desk.session(), id)
    desk.terminal.answer({"ok": True, "rescue": rescue_json(dropped)}, f"dropped {id}")
    return 0
