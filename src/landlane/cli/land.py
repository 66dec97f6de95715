"""The command `land`."""

from __future__ import annotations

import shlex
import time

from landlane.app.repair_config import prepare_git
from landlane.cli.arguments import read_versions, read_wait
from landlane.cli.command import stop_on_signals
from landlane.error_json import failure_json
from landlane.errors import LandlaneError
from landlane.landing.model import BOUNCED, EJECTED, HELD, LANDED
from landlane.landing.queue import has_new_entries, wait_for_landing
from landlane.landing.submit import submit_branch
from landlane.landing.target_status import view_queue
from landlane.landing.to_json import landing_json
from landlane.landing.to_text import (
    about,
    ended_hint,
    ended_message,
    landed_text,
    landing_title,
    running_line,
    stage_lines,
)
from landlane.resident.start import start_queue_runner, start_server
from landlane.tasks.records import find_task
from landlane.text import list_some
from landlane.units import count, ordinal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.landing.model import Landing
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.tasks.model import Task


_MOST_SHOWN = 5
_RESIDENT_SECONDS = 30.0  # interval at which it is made sure that there is a resident

_OWN_COMMANDS = ("land", "next", "sync")  # what they do depends on who calls; they end a hint
_EXIT_CODES = {LANDED: 0, BOUNCED: 1, EJECTED: 1, HELD: 7}


def land(call: CommandCall, branch: str, task: str, wait: str, expect: tuple[str, ...]) -> int:
    """Submit a branch; with --wait, wait until its landing has ended."""
    wait_ms = read_wait(wait)
    repo = prepare_git(call.repo, call.terminal.note)
    session = call.session()
    submitted = submit_branch(repo, session, branch, task, expect=read_versions(expect))
    landing, stop = submitted.landing, None
    progress = _Progress(call, repo, landing)
    if landing.state == HELD:
        progress.show(landing)
    elif wait_ms and landing.state != LANDED:
        landing, stop = _wait(call, repo, session, progress, wait_ms)
    elif landing.state != LANDED:
        _leave_to_resident(call, repo)
    if stop is not None and landing.state not in _EXIT_CODES:
        stop.hint = _with_name(call, stop.hint)
        raise stop
    return _answer(call, repo, landing, branch, is_new=submitted.is_new)


def _answer(call: CommandCall, repo: Repository, landing: Landing, branch: str, *, is_new: bool) -> int:
    view = view_queue(repo)
    eta = view.estimates.get(landing.id)
    code = _EXIT_CODES.get(landing.state, 0)
    answer: dict[str, Any] = {"ok": True, "landing": landing_json(landing, eta), "new": is_new}
    answer["position"] = view.position(landing.id) or None
    if code:
        task = _find_task(repo, landing.bounce_task or landing.task)
        message, hint = ended_message(landing, task), _with_name(call, ended_hint(landing))
        answer |= failure_json(landing.code or _default_code(landing), message, hint)
        if landing.state == HELD:
            return call.terminal.refuse(answer, code)
        call.terminal.note(f"{message} [{answer['code']}]\nhint: {hint}")
        return call.terminal.answer(answer, code=code)
    if landing.state == LANDED:
        text = _landed_text(landing)
    else:
        place = [ordinal(answer["position"])] if answer["position"] else []
        where = ", ".join([*place, *([about(eta)] if eta is not None else [])])
        text = f"✓ {landing.id} is queued to land on {landing.target}" + (f" ({where})" if where else "")
        text += _unidentified_text(landing) + f"\nnext: {_wait_command(call, branch)}"
    return call.terminal.answer(answer, text, quiet=landing.commit or landing.id)


def _default_code(landing: Landing) -> str:
    return "WAITS_FOR_PERSON" if landing.state == HELD else "BOUNCED"


def _with_name(call: CommandCall, hint: str) -> str:
    """Return a hint whose command acts for the same agent as this one."""
    is_own = any(f"landlane {verb}" in hint for verb in _OWN_COMMANDS)
    return f"{hint} --as {shlex.quote(call.name)}" if is_own and call.name else hint


def _wait_command(call: CommandCall, branch: str) -> str:
    words = ["landlane", "land", *([branch] if branch else []), "--wait"]
    words += ["--as", call.name] if call.name else []
    words += ["--repo", call.folder] if call.folder else []
    return shlex.join(words)


def _landed_text(landing: Landing) -> str:
    lines = [landed_text(landing), *(f"  {note}" for note in landing.notes)]
    if landing.flaky:
        lines.append(f"! flaky: {', '.join(landing.flaky)} failed first and passed when run again")
    return "\n".join(lines) + _unidentified_text(landing)


def _unidentified_text(landing: Landing) -> str:
    """Return a line that lists commits without a known session."""
    commits = [commit[:8] for commit in landing.unidentified]
    if not commits:
        return ""
    named = list_some(commits, _MOST_SHOWN)
    return f"\n! {count(len(commits), 'commit')} without a known agent: {named}"


def _find_task(repo: Repository, task_id: str) -> Task | None:
    return repo.store.view(lambda snapshot: find_task(snapshot, task_id)) if task_id else None


class _Progress:
    """Prints each stage of a landing once, and on a terminal the clock of the running check."""

    def __init__(self, call: CommandCall, repo: Repository, landing: Landing) -> None:
        self._call = call
        self._repo = repo
        self.landing_id = landing.id
        self._title = f"{landing_title(landing, _find_task(repo, landing.task))} → {landing.target}"
        self._checks = view_queue(repo).checks
        self._shown: list[str] = []
        self._resident_at = 0.0

    def show(self, landing: Landing) -> None:
        """Print what is new, and keep a resident running: it takes over if this process is killed."""
        if self._repo.settings.landing.resident and time.monotonic() >= self._resident_at:
            self._resident_at = time.monotonic() + _RESIDENT_SECONDS
            start_server(self._repo.state_folder)
        lines = [self._title, *stage_lines(landing, self._checks)]
        # A landing that is merged again begins with other stages.
        known = len(self._shown) if lines[: len(self._shown)] == self._shown else 1
        if lines[known:]:
            self._call.terminal.note("\n".join(lines[known:]))
            self._shown = lines
        self._call.terminal.live(lambda: running_line(landing, view_queue(self._repo)))


def _wait(
    call: CommandCall, repo: Repository, session: Session, progress: _Progress, wait_ms: int
) -> tuple[Landing, LandlaneError | None]:
    """Run the queue, or watch the process that runs it, until the landing has ended."""
    stop_on_signals()
    ended = wait_for_landing(
        repo, session, progress.landing_id, lambda _: None, on_look=progress.show, wait_ms=wait_ms
    )
    call.terminal.live(lambda: "")
    if has_new_entries(repo):  # others submitted while this process ran the queue
        _leave_to_resident(call, repo)
    return ended


def _leave_to_resident(call: CommandCall, repo: Repository) -> None:
    if repo.settings.landing.resident:
        trouble = start_queue_runner(repo)
        if trouble:
            call.terminal.note(f"! {trouble}; to land it: landlane queue run --drain")
