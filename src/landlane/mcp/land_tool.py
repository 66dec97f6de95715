"""The tool `land`: submit, run in the background, and watch for as long as the client waits."""

from __future__ import annotations

import time

from landlane.app.repair_config import prepare_git
from landlane.error_json import failure_json
from landlane.landing.model import HELD, LANDED, OPEN, QUEUED, TESTING
from landlane.landing.records import get_landing
from landlane.landing.submit import submit_branch
from landlane.landing.to_json import landing_json
from landlane.resident.start import start_queue_runner
from landlane.tasks.records import get_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.landing.model import Landing
    from landlane.mcp.call import Call
    from landlane.repository import Repository


_LOOK_SECONDS = 0.5


def land(call: Call, branch: str = "", task: str = "") -> dict[str, Any]:
    """Submit a branch, or find it in the queue, and return its state after the wait."""
    repo, session = prepare_git(call.repo, call.report), call.session
    if task and not branch:  # the server may run in another checkout than the one with the work
        branch = get_task(repo, task).branch
    submitted = submit_branch(repo, session, branch, task)
    landing = submitted.landing
    if landing.state in (QUEUED, TESTING):
        _start_runner(call, repo)
        if call.wait_seconds:
            landing = _watch(call, repo, landing.id)
    return _landing_answer(landing, submitted.is_new)


def _start_runner(call: Call, repo: Repository) -> None:
    """Leave it to the resident, so that it continues after this call or the client has ended."""
    off = "" if repo.settings.landing.resident else "the settings let nothing run the queue in the background"
    problem = off or start_queue_runner(repo)
    if problem:
        call.report(f"{problem}; `landlane queue run --drain` lands it")


def _watch(call: Call, repo: Repository, landing_id: str) -> Landing:
    give_up_at = time.monotonic() + call.wait_seconds
    listener = repo.store.listen()
    reported = ""
    try:
        while True:
            landing = get_landing(repo, landing_id)
            stage = landing.stage or landing.state
            if stage != reported:
                call.report(f"{landing_id}: {stage}")
                reported = stage
            is_over = landing.state not in OPEN or landing.state == HELD
            if is_over or time.monotonic() >= give_up_at or call.is_given_up():
                return landing
            listener.wait(_LOOK_SECONDS)
    finally:
        listener.close()


def _landing_answer(landing: Landing, is_new: bool) -> dict[str, Any]:
    row = {key: item for key, item in landing_json(landing).items() if item not in (None, [], {})}
    found: dict[str, Any] = {"ok": True, "landing": row, "new": is_new}
    if landing.state in (QUEUED, TESTING):
        hint = "it is on its way: call land again with wait to hear how it went"
        return {**found, "hint": hint}
    if landing.state == LANDED:
        return found
    if landing.state == HELD:
        hint = f"only a person can decide: landlane gate approve {landing.id}. Go on with other work."
        return found | failure_json("WAITS_FOR_PERSON", f"{landing.id} {landing.reason}", hint)
    message = f"{landing.id} {landing.state}: {landing.reason}"
    return found | failure_json(
        landing.code or "BOUNCED", message, landing.advice or "fix it, commit, and land it again"
    )
