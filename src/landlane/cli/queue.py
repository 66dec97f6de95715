"""The commands that run and control the landing queue: queue run, eject, resume."""

from __future__ import annotations

from landlane.app.repair_config import prepare_git
from landlane.cli.command import heed_signals
from landlane.clock import parse_duration
from landlane.error_json import failure
from landlane.errors import LandlaneError, TimedOut
from landlane.landing.outcomes import eject_entry
from landlane.landing.queue import resume_queue
from landlane.landing.records import get_landing, list_landings
from landlane.landing.to_json import landing_json, queue_json
from landlane.landing.wait import serve_queue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command_call import CommandCall


def show_output(call: CommandCall, stop: LandlaneError) -> None:
    """Print the output of a check that failed on the target itself."""
    output = str(stop.facts.get("output", "")).rstrip()
    if output:
        call.terminal.note(output)


def run_queue(call: CommandCall, drain: bool, wait: str) -> int:
    """Run the queue until it is empty, or forever."""
    heed_signals()
    repo = prepare_git(call.repo, call.terminal.note)
    before = [landing.id for landing in list_landings(repo)]
    wait_ms = parse_duration(wait, what="--wait") if wait else 0
    stop = serve_queue(repo, call.caller_name(), is_drained=drain, wait_ms=wait_ms)
    ended = [landing_json(get_landing(repo, landing_id)) for landing_id in before]
    if isinstance(stop, TimedOut):
        raise stop
    answer: dict[str, Any] = {"ok": stop is None, "landings": ended}
    if stop is not None:
        answer |= failure(stop)
        if not call.terminal.is_json:
            show_output(call, stop)
            call.terminal.complain(stop.message, stop.hint, stop.code)
    lines = [
        f"{item['id']} {item['state']}" + (f": {item['reason']}" if item["reason"] else "") for item in ended
    ]
    call.terminal.answer(answer, "\n".join(lines) or "nothing to land")
    return stop.exit_code if stop is not None else 0


def eject(call: CommandCall, landing: str, why: str) -> int:
    """Remove an entry from the queue."""
    repo = call.repo.require_git()
    ended = eject_entry(repo, call.session(), landing, why or "taken out")
    call.terminal.answer(
        {"ok": True, "landing": landing_json(ended)}, f"{landing} is ejected; {ended.branch} stays"
    )
    return 0


def resume(call: CommandCall, why: str) -> int:
    """Resume the queue after a pause."""
    repo = call.repo.require_git()
    queue = resume_queue(repo, call.session(), why)
    call.terminal.answer({"ok": True, "queue": queue_json(queue)}, f"the queue goes on from {queue.tip[:12]}")
    return 0
