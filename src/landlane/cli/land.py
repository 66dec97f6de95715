"""The command `land`."""

from __future__ import annotations

from landlane.app.repair_config import prepare_git
from landlane.cli.command import heed_signals
from landlane.cli.queue import show_output
from landlane.errors import LandlaneError
from landlane.landing.submit import submit_branch
from landlane.landing.to_json import landing_json
from landlane.landing.wait import has_new_entries, wait_for_landing
from landlane.resident.start import start_queue_runner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command_call import CommandCall
    from landlane.landing.model import Landing
    from landlane.repository import Repository
    from landlane.sessions.model import Session


_MOST_SHOWN = 5

_MEANT = {"landed": 0, "bounced": 1, "ejected": 1, "held": 7}


def land(call: CommandCall, branch: str, task: str, wait: bool) -> int:
    """Submit a branch; with --wait, wait until its landing has ended."""
    repo = call.repo
    repo = prepare_git(repo, call.terminal.note)
    session = call.session()
    submitted = submit_branch(repo, session, branch, task)
    landing, stop = submitted.landing, None
    if wait and landing.state != "held":
        landing, stop = _see_through(call, repo, session, landing)
    elif landing.state != "held":
        _leave_to_resident(call, repo)
    code = _MEANT.get(landing.state, 0)
    if stop is not None and landing.state not in _MEANT:
        show_output(call, stop)
        raise stop
    answer: dict[str, Any] = {"ok": code == 0, "landing": landing_json(landing), "new": submitted.is_new}
    if code:
        answer |= _refusal(landing)
        if not call.terminal.is_json:
            call.terminal.complain(answer["message"], answer["hint"], answer["code"])
            if landing.output:
                call.terminal.note(landing.output)
    call.terminal.answer(answer, _in_words(landing))
    return code


def _refusal(landing: Landing) -> dict[str, Any]:
    if landing.state == "held":
        hint = f"a person decides with `landlane gate approve {landing.id}`"
        return {"code": "WAITS_FOR_PERSON", "message": f"{landing.id} {landing.reason}", "hint": hint}
    task = f"; `landlane task show {landing.bounce_task}` tells more" if landing.bounce_task else ""
    return {
        "code": landing.code or "BOUNCED",
        "message": f"{landing.id} {landing.state}: {landing.reason}",
        "hint": f"{landing.advice or 'land it again'}{task}",
    }


def _in_words(landing: Landing) -> str:
    if landing.state == "landed":
        notes = "".join(f"\n{note}" for note in landing.notes)
        flaky = f"\nflaky: {', '.join(landing.flaky)}" if landing.flaky else ""
        nameless = _nameless(landing)
        return f"{landing.id} landed on {landing.target} as {landing.commit[:12]}{flaky}{notes}{nameless}"
    return f"{landing.id} is {landing.state} ({landing.branch} at {landing.head[:12]}){_nameless(landing)}"


def _nameless(landing: Landing) -> str:
    """Return a line that lists commits without a known session."""
    shown = ", ".join(commit[:12] for commit in landing.unidentified[:_MOST_SHOWN])
    more = len(landing.unidentified) - _MOST_SHOWN
    return f"\nunidentified: {shown}{f' and {more} more' if more > 0 else ''}" if shown else ""


def _see_through(
    call: CommandCall, repo: Repository, session: Session, landing: Landing
) -> tuple[Landing, LandlaneError | None]:
    """Run the queue, or watch the process that runs it, until the landing has ended."""
    heed_signals()
    seen = wait_for_landing(
        repo, session, landing.id, lambda stage: call.terminal.note(f"{landing.id}: {stage}")
    )
    if has_new_entries(repo):  # others submitted while this process ran the queue
        _leave_to_resident(call, repo)
    return seen


def _leave_to_resident(call: CommandCall, repo: Repository) -> None:
    if repo.settings.landing.resident:
        trouble = start_queue_runner(repo)
        if trouble:
            call.terminal.note(f"{trouble}; `landlane queue run --drain` lands it")
