"""The commands that show the landing queue: queue list, show."""

from __future__ import annotations

from landlane.app.repair_config import prepare_git
from landlane.cli.terminal import in_one_line
from landlane.git.target import find_target
from landlane.landing.after_landing import clean_up_here
from landlane.landing.model import OPEN
from landlane.landing.records import get_landing, get_queue, list_landings
from landlane.landing.to_json import conflicts_text, landing_json, queue_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command_call import CommandCall
    from landlane.repository import Repository


def list_all(call: CommandCall, all: bool, conflicts: bool) -> int:
    """Show the queue, or which open branches conflict."""
    repo = call.repo
    call.show_life()
    repo = prepare_git(repo, call.terminal.note)
    clean_up_here(repo)
    if conflicts:
        return _show_conflicts(call, repo)
    items = [landing_json(landing) for landing in list_landings(repo, () if all else OPEN)]
    queue = get_queue(repo, find_target(repo.home, repo.settings).branch)
    columns = ["id", "state", "agent", "task", "branch", "stage", "reason"]
    cells = [[str(item[name] or "") for name in columns] for item in items]
    under_way = sum(item["state"] in OPEN for item in items)
    title = f"{under_way} on the way to {queue.target}" + (
        f" (paused: {queue.reason})" if queue.reason else ""
    )
    answer = {"ok": True, "landings": items, "queue": queue_json(queue)}
    call.terminal.answer(answer, call.terminal.table(title, columns, cells))
    return 0


def _show_conflicts(call: CommandCall, repo: Repository) -> int:
    from landlane.landing.predict_conflicts import predict_conflicts  # noqa: PLC0415 - it loads all of landing

    found = predict_conflicts(repo)
    call.terminal.answer({"ok": True, **found}, conflicts_text(found))
    return 0


def show(call: CommandCall, landing: str) -> int:
    """Show one entry in full."""
    item = landing_json(get_landing(call.repo, landing))
    lines = [
        f"{key:<13} {in_one_line(str(item[key]))}"
        for key in item
        if item[key] not in (None, [], "") and key != "output"
    ]
    text = "\n".join(lines) + (f"\n\n{item['output']}" if item["output"] else "")
    call.terminal.answer({"ok": True, "landing": item}, text)
    return 0
