"""`landlane notify`: record new events once and send notifications."""

from __future__ import annotations

import os

from landlane.cli.command import stop_on_signals
from landlane.clock import parse_duration
from landlane.error_json import failure_json
from landlane.errors import LandlaneError, Malformed
from landlane.events.records import list_events
from landlane.events.to_json import event_json, event_line, notice_json
from landlane.events.watch import check_once
from landlane.events.watch import watch as watch_events
from landlane.git.target_settings import settings_in_force

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.events.model import RecordedEvent
    from landlane.events.watch import WatchResult
    from landlane.repository import Repository
    from landlane.settings.model import Settings


def notify(call: CommandCall, once: bool, interval: str, past: bool) -> int:
    """Check for events once or repeatedly."""
    interval_ms = parse_duration(interval, what="--interval") if interval else 0
    if interval and interval_ms <= 0:
        raise Malformed("--interval must be above zero", code="BAD_DURATION", hint="--interval 30s")
    if past:
        return _show_past(call)
    return _check_once(call) if once else _watch(call, interval_ms)


def _show_past(call: CommandCall) -> int:
    events = list_events(call.repo)
    lines = [event_line(event) for event in events]
    answer = {"ok": True, "events": [event_json(event) for event in events]}
    return call.terminal.answer(answer, "\n".join(lines) or "nothing was seen yet")


def _check_once(call: CommandCall) -> int:
    repo = call.repo
    # A workspace must not change where notifications go.
    result = check_once(repo, repo.settings, _body_of(repo))
    answer = {
        "ok": True,
        "events": [event_json(event) for event in result.events],
        "sent": [event_json(event) for event in result.sent],
        "unsent": [event_json(event) for event in result.unsent],
    }
    lines = [event_line(event) for event in result.events] or ["nothing new"]
    return call.terminal.answer(answer, "\n".join([*lines, *_unsent_lines(result)]))


def _body_of(repo: Repository) -> Callable[[RecordedEvent], dict[str, Any]]:
    name = os.path.basename(repo.home.root)

    def body_of(event: RecordedEvent) -> dict[str, Any]:
        return notice_json(event, name)

    return body_of


def _unsent_lines(result: WatchResult) -> list[str]:
    return [
        f"{event.id} was not sent to the {name}: {delivery['why']}"
        + ("; it will be tried again" if delivery["state"] == "new" else "")
        for event in result.unsent
        for name, delivery in event.channels.items()
        if delivery["why"]
    ]


def _watch(call: CommandCall, interval_ms: int) -> int:
    stop_on_signals()
    repo = call.repo

    def show(result: WatchResult) -> None:
        for event in result.events:
            call.terminal.line(event_json(event), event_line(event))
        for text in _unsent_lines(result):
            call.terminal.note(text)
        repo.settle()

    def settings() -> Settings:
        return settings_in_force(repo.checkout, is_person=repo.held.is_own).settings

    last_message = ""

    def report(error: LandlaneError) -> None:
        nonlocal last_message
        if error.message != last_message:  # once, not at every check
            if call.terminal.is_json:
                call.terminal.line(failure_json(error.code, error.message, error.hint), "")
            call.terminal.note(f"{error.message} [{error.code}]; it goes on")
        last_message = error.message

    call.terminal.note(f"watching {repo.home.root}; Ctrl-C ends it")
    try:
        watch_events(repo, settings, interval_ms, _body_of(repo), show, report)
    except KeyboardInterrupt:
        return 0
    return 0
