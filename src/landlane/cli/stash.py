"""The commands that set changes aside and restore them: stash save, restore, list."""

from __future__ import annotations

from landlane.app.repair_config import prepare_git
from landlane.rescue.to_json import rescue_json
from landlane.workspaces import stash as stashes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import CommandCall


def save(call: CommandCall, message: str) -> int:
    """Set the changes of this checkout aside."""
    stash = stashes.save(prepare_git(call.repo), call.session(), message)
    return call.terminal.answer({"ok": True, "stash": rescue_json(stash)}, f"put aside as {stash.id}")


def restore(call: CommandCall, id: str) -> int:
    """Restore the changes that were set aside last."""
    stash, notes = stashes.restore(prepare_git(call.repo), call.session(), id)
    for note in notes:
        call.terminal.note(note)
    return call.terminal.answer(
        {"ok": True, "stash": rescue_json(stash), "notes": list(notes)}, f"restored {stash.id}"
    )


def list_all(call: CommandCall) -> int:
    """List what was set aside in this checkout."""
    items = [rescue_json(rescue) for rescue in stashes.list_stashes(call.repo.require_git())]
    rows = [{**item, "message": item["reason"]} for item in items]
    table = call.terminal.item_table(f"{len(items)} put aside here", rows, ["id", "at", "files", "message"])
    return call.terminal.answer({"ok": True, "stashes": items}, table)
