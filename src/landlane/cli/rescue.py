"""The commands for saved work: rescue list, restore, take, drop."""

from __future__ import annotations

import os

from landlane.app.repair_config import prepare_git
from landlane.rescue.restore import restore as bring_back
from landlane.rescue.save import discard_rescue as forget
from landlane.rescue.save import save_checkout, saved_work
from landlane.rescue.to_json import rescue_json
from landlane.workspaces.locate import workspaces_folder
from landlane.workspaces.to_json import size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command_call import CommandCall


def list_all(call: CommandCall) -> int:
    """List saved work with its owner, time and size."""
    items = [rescue_json(rescue) for rescue in saved_work(call.repo.require_git())]
    columns = ["id", "agent", "task", "workspace", "at", "size", "files", "reason"]
    cells = [
        [str(item[name] if name != "size" else size_text(item["bytes"])) for name in columns]
        for item in items
    ]
    title = f"{len(items)} rescue{'' if len(items) == 1 else 's'}"
    call.terminal.answer({"ok": True, "rescues": items}, call.terminal.table(title, columns, cells))
    return 0


def restore(call: CommandCall, id: str, into: str) -> int:
    """Restore saved work."""
    repo = prepare_git(call.repo, call.terminal.note)
    place = os.path.join(call.cwd, into) if into else ""
    restored = bring_back(repo, call.session(), id, place, workspaces_folder(repo))
    for note in restored.notes:
        call.terminal.note(note)
    answer = {
        "ok": True,
        "rescue": rescue_json(restored.rescue),
        "path": restored.path,
        "notes": list(restored.notes),
    }
    call.terminal.answer(answer, restored.path)
    return 0


def take(call: CommandCall, why: str) -> int:
    """Save uncommitted and unpushed work of this checkout."""
    repo = call.repo.require_git()
    saved = save_checkout(repo, call.session(), repo.checkout.root, why or "asked for")
    call.terminal.answer({"ok": True, "rescue": saved or None}, saved or "nothing here exists only here")
    return 0


def drop(call: CommandCall, id: str) -> int:
    """Delete saved work permanently."""
    dropped = forget(call.repo.require_git(), call.session(), id)
    call.terminal.answer({"ok": True, "rescue": rescue_json(dropped)}, f"dropped {id}")
    return 0
