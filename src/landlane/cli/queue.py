"""The commands for the landing queue: queue list, run, show, eject, resume."""

from __future__ import annotations

from landlane.app.repair_config import prepare_git
from landlane.clock import parse_duration
from landlane.errors import LandlaneError, TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command import CommandCall


def show_output(call: CommandCall, stop: LandlaneError) -> None:
    """What a check said of the target itself."""
    said = str(stop.facts.get("output", "")).rstrip()
    if said:
        call.terminal.note(said)


def run_queue(call: CommandCall, drain: bool, wait: str) -> int:
    """Run the queue until it is empty, or for ever."""
    from landlane.cli.command import heed_signals
    from landlane.error_json import failure
    from landlane.landing.records import get_landing, list_landings
    from landlane.landing.to_json import landing_json
    from landlane.landing.wait import run_until

    heed_signals()
    repo = prepare_git(call.repo, call.terminal.note)
    before = [one.id for one in list_landings(repo)]
    wait_ms = parse_duration(wait, what="--wait") if wait else 0
    stop = run_until(repo, call.caller_name(), is_drained=drain, wait_ms=wait_ms)
    ended = [landing_json(get_landing(repo, landing_id)) for landing_id in before]
    if isinstance(stop, TimedOut):
        raise stop
    answer: dict[str, Any] = {"ok": stop is None, "landings": ended}
    if stop is not None:
        answer |= failure(stop)
        if not call.terminal.is_json:
            show_output(call, stop)
            call.terminal.complain(stop.message, stop.hint, stop.code)
    lines = [f"{one['id']} {one['state']}" + (f": {one['reason']}" if one["reason"] else "") for one in ended]
    call.terminal.answer(answer, "\n".join(lines) or "nothing to land")
    return stop.exit_code if stop is not None else 0


def list_all(call: CommandCall, all: bool, conflicts: bool) -> int:
    """Show the queue, or which open branches conflict."""
    from landlane.git.target import find_target
    from landlane.landing.after_landing import settle_here
    from landlane.landing.model import OPEN
    from landlane.landing.records import get_queue, list_landings
    from landlane.landing.to_json import landing_json, queue_json

    repo = call.repo
    call.show_life()
    repo = prepare_git(repo, call.terminal.note)
    settle_here(repo)
    if conflicts:
        return _show_conflicts(call, repo)
    items = [landing_json(one) for one in list_landings(repo, () if all else OPEN)]
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


def _show_conflicts(call: CommandCall, repo: Any) -> int:
    from landlane.landing.predict_conflicts import foresee
    from landlane.landing.to_json import conflicts_text

    found = foresee(repo)
    call.terminal.answer({"ok": True, **found}, conflicts_text(found))
    return 0


def show(call: CommandCall, landing: str) -> int:
    """Show one entry whole."""
    from landlane.cli.terminal import in_one_line
    from landlane.landing.records import get_landing
    from landlane.landing.to_json import landing_json

    item = landing_json(get_landing(call.repo, landing))
    lines = [
        f"{key:<13} {in_one_line(str(item[key]))}"
        for key in item
        if item[key] not in (None, [], "") and key != "output"
    ]
    text = "\n".join(lines) + (f"\n\n{item['output']}" if item["output"] else "")
    call.terminal.answer({"ok": True, "landing": item}, text)
    return 0


def eject(call: CommandCall, landing: str, why: str) -> int:
    """Take an entry out of the queue."""
    from landlane.landing.queue_control import eject as take_out
    from landlane.landing.to_json import landing_json

    repo = call.repo.require_git()
    ended = take_out(repo, call.session(), landing, why or "taken out")
    call.terminal.answer(
        {"ok": True, "landing": landing_json(ended)}, f"{landing} is ejected; {ended.branch} stays"
    )
    return 0


def resume(call: CommandCall, why: str) -> int:
    """Go on after a pause."""
    from landlane.landing.queue_control import resume as go_on
    from landlane.landing.to_json import queue_json

    repo = call.repo.require_git()
    queue = go_on(repo, call.session(), why)
    call.terminal.answer({"ok": True, "queue": queue_json(queue)}, f"the queue goes on from {queue.tip[:12]}")
    return 0
