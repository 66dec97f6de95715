"""The commands for saved work: rescue list, show, restore, take, drop."""

from __future__ import annotations

import os

from landlane.app.repair_config import prepare_git
from landlane.cli.table import empty_text
from landlane.rescue.list_changes import list_rescued_changes
from landlane.rescue.refs import get_rescue, list_rescues
from landlane.rescue.save import discard_rescue, save_checkout
from landlane.rescue.to_json import rescue_json, rescued_change_json
from landlane.tasks.records import task_titles
from landlane.text import home_path
from landlane.units import byte_size, count, time_ago
from landlane.workspaces.restore_saved import restore_saved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.rescue.json_types import RescuedChangeJson
    from landlane.rescue.refs import Rescue


def list_all(call: CommandCall) -> int:
    """List saved work, the newest first, with where it comes from and why it was saved."""
    rescues = list_rescues(call.repo.require_git().common_dir)
    items = _with_titles(call, rescues)
    if not items:
        return call.terminal.answer({"ok": True, "rescues": []}, empty_text("rescue"))
    columns = ["rescue", "saved", "from", "files", "size", "why"]
    now = call.wall_now()
    rows = [
        [
            item["id"],
            time_ago(rescue.at, now),
            _origin(item),
            str(rescue.files),
            byte_size(rescue.bytes),
            item["reason"],
        ]
        for rescue, item in reversed(list(zip(rescues, items, strict=True)))
    ]
    table = call.terminal.table("", columns, rows, right=("FILES", "SIZE"), cut="FROM")
    ids = "\n".join(rescue.id for rescue in reversed(rescues))
    return call.terminal.answer({"ok": True, "rescues": items}, table, quiet=ids)


def _with_titles(call: CommandCall, rescues: list[Rescue]) -> list[dict[str, Any]]:
    items = [rescue_json(rescue) for rescue in rescues]
    titles = task_titles(call.repo, [item["task"] or "" for item in items])
    return [{**item, "task_title": titles.get(item["task"] or "")} for item in items]


def _origin(item: dict[str, Any]) -> str:
    """Return the task that saved work belongs to, or else its checkout."""
    if item["task"]:
        return f"{item['task']} {item['task_title'] or ''}".rstrip()
    return f"{home_path(item['root'])} ({item['agent']})" if item["agent"] else home_path(item["root"])


def show(call: CommandCall, id: str) -> int:
    """Show the files of saved work, compared with the commit it is based on."""
    home = call.repo.require_git().common_dir
    rescue = get_rescue(home, id)
    (item,) = _with_titles(call, [rescue])
    changes = [rescued_change_json(change) for change in list_rescued_changes(home, rescue)]
    when = item["at"] if call.terminal.is_verbose else time_ago(rescue.at, call.wall_now())
    lines = [f"{rescue.id} saved {when} from {_origin(item)}{_worker(item)}: {item['reason']}"]
    width = max([len(change["path"]) for change in changes], default=0)
    lines += [f"  {change['change']:<7}  {change['path']:<{width}}   {_sizes(change)}" for change in changes]
    if rescue.commits:
        lines.append(f"  {count(rescue.commits, 'commit')} that no branch contains")
    lines += [f"  {note}" for note in rescue.notes]
    lines.append(f"next: landlane rescue restore {rescue.id}")
    return call.terminal.answer({"ok": True, "rescue": item, "changes": changes}, "\n".join(lines))


def _worker(item: dict[str, Any]) -> str:
    """Return who made the changes, and in which attempt at the task."""
    if not item["task"] or not item["agent"]:
        return ""
    attempt = f", attempt {item['attempt']}" if item["attempt"] else ""
    return f" ({item['agent']}{attempt})"


def _sizes(change: RescuedChangeJson) -> str:
    if change["added"] is None:
        return "binary"
    parts = [f"{sign}{change[name]}" for sign, name in (("+", "added"), ("−", "removed")) if change[name]]
    return " ".join(parts) or "empty"


def restore(call: CommandCall, id: str, into: str) -> int:
    """Restore saved work."""
    repo = prepare_git(call.repo, call.terminal.note)
    target = os.path.join(call.cwd, into) if into else ""
    restored = restore_saved(repo, call.session(), id, target)
    answer = {
        "ok": True,
        "rescue": rescue_json(restored.rescue),
        "path": restored.path,
        "notes": list(restored.notes),
    }
    files = count(restored.rescue.files, "file")
    lines = [f"✓ restored {files} to {home_path(restored.path)}", *(f"! {note}" for note in restored.notes)]
    return call.terminal.answer(answer, "\n".join(lines), quiet=restored.path)


def take(call: CommandCall, why: str) -> int:
    """Save uncommitted and unpushed work of this checkout."""
    repo = call.repo.require_git()
    saved = save_checkout(repo, call.session(), repo.checkout.root, why or "saved by hand")
    if not saved:
        text = "Nothing to save: everything in this checkout is committed on a branch."
        return call.terminal.answer({"ok": True, "rescue": None}, text)
    text = f"✓ saved as {saved}; the checkout is unchanged\nnext: landlane rescue show {saved}"
    return call.terminal.answer({"ok": True, "rescue": saved}, text, quiet=saved)


def drop(call: CommandCall, id: str) -> int:
    """Delete saved work permanently."""
    dropped = discard_rescue(call.repo.require_git(), call.session(), id)
    return call.terminal.answer({"ok": True, "rescue": rescue_json(dropped)}, f"✓ deleted {dropped.id}")
