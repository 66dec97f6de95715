"""The command `watch`: record new events once and send notifications."""

from __future__ import annotations

import json
import os

from landlane.cli.command import heed_signals
from landlane.clock import parse_duration
from landlane.error_json import failed
from landlane.errors import LandlaneError, Malformed
from landlane.events import watch as watching
from landlane.events.records import list_events
from landlane.events.to_json import event_json, event_line, notice_json
from landlane.events.watch import look
from landlane.settings.load import read_settings
from landlane.workspaces.committed_settings import of_main_checkout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from landlane.cli.command_call import CommandCall
    from landlane.events.model import Event
    from landlane.repository import Repository
    from landlane.settings.model import Settings


def watch(call: CommandCall, once: bool, interval: str, past: bool) -> int:
    """Check for events once or repeatedly."""
    interval_ms = parse_duration(interval, what="--interval") if interval else 0
    if interval and interval_ms <= 0:
        raise Malformed("--interval must be above zero", code="BAD_DURATION", hint="--interval 30s")
    if past:
        return _show_past(call)
    return _look_once(call) if once else _go_on(call, interval_ms)


def _show_past(call: CommandCall) -> int:
    events = list_events(call.repo)
    lines = [event_line(event) for event in events]
    answer = {"ok": True, "events": [event_json(event) for event in events]}
    call.terminal.answer(answer, "\n".join(lines) or "nothing was seen yet")
    return 0


def _settings(repo: Repository) -> Settings:
    """Return the main checkout's settings; a workspace must not change where notifications go."""
    return of_main_checkout(repo)


def _look_once(call: CommandCall) -> int:
    repo = call.repo
    found = look(repo, _settings(repo), _body_of(repo))
    answer = {
        "ok": True,
        "events": [event_json(event) for event in found.events],
        "sent": [event_json(event) for event in found.sent],
        "unsent": [event_json(event) for event in found.unsent],
    }
    lines = [event_line(event) for event in found.events] or ["nothing new"]
    call.terminal.answer(answer, "\n".join([*lines, *_troubles(found)]))
    return 0


def _body_of(repo: Repository) -> Callable[[Event], dict[str, Any]]:
    name = os.path.basename(repo.home.root)

    def body_of(event: Event) -> dict[str, Any]:
        return notice_json(event, name)

    return body_of


def _troubles(found: Any) -> list[str]:
    return [
        f"{event.id} was not sent to the {name}: {delivery['why']}"
        + ("; it will be tried again" if delivery["state"] == "new" else "")
        for event in found.unsent
        for name, delivery in event.channels.items()
        if delivery["why"]
    ]


def _go_on(call: CommandCall, interval_ms: int) -> int:
    heed_signals()
    repo = call.repo

    def show(found: Any) -> None:
        for event in found.events:
            call.terminal.line(_line(event_json(event)) if call.terminal.is_json else event_line(event))
        for text in _troubles(found):
            call.terminal.note(text)
        repo.settle()

    last_message = ""

    def complain(error: LandlaneError) -> None:
        nonlocal last_message
        if error.message != last_message:  # once, not at every check
            if call.terminal.is_json:
                call.terminal.line(_line(failed(error.code, error.message, error.hint)))
            call.terminal.note(f"{error.message} [{error.code}]; it goes on")
        last_message = error.message

    call.terminal.note(f"watching {repo.home.root}; Ctrl-C ends it")
    try:
        watching.watch(
            repo, lambda: read_settings(repo.home.root), interval_ms, _body_of(repo), show, complain
        )
    except KeyboardInterrupt:
        return 0
    return 0


def _line(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False)
