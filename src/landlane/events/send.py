"""Telling of events outside: a command that reads one on its input, or an address that it is posted to.

Who sends has claimed the sending in the store before. So two watchers send each event once, and one that is
killed in the middle leaves a sending of which nobody knows how it went: it is reported, and not made again.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import threading
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from landlane.events.model import COMMAND, SENT, WEBHOOK, is_abandoned, is_due
from landlane.events.records import claim_sending, due_events, end_sending, settle_abandoned
from landlane.processes.child import Child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.events.model import Event
    from landlane.repository import Repository
    from landlane.settings.model import Settings

_MOST_SAID = 400


def send_due(
    repo: Repository, settings: Settings, body_of: Callable[[Event], dict[str, object]]
) -> tuple[list[Event], list[Event]]:
    """Send what is due; tells what got there, and what did not.

    `body_of` gives an event the form in which everybody gets it.
    """
    sent: list[Event] = []
    unsent: list[Event] = []
    for event in due_events(repo):
        for channel in event.channels:
            now = repo.wall_ms()
            if is_abandoned(event, channel, now):
                ended = settle_abandoned(repo, event.id, channel)
                unsent += [ended] if ended is not None else []
            elif is_due(event, channel, now):
                ended = _send(repo, settings, event, channel, body_of)
                if ended is not None:
                    (sent if ended.channels[channel]["state"] == SENT else unsent).append(ended)
    return sent, unsent


def _send(
    repo: Repository,
    settings: Settings,
    event: Event,
    channel: str,
    body_of: Callable[[Event], dict[str, object]],
) -> Event | None:
    claimed = claim_sending(repo, event.id, channel, settings.notify.limit_ms)
    if claimed is None:
        return None
    body = json.dumps(body_of(claimed), ensure_ascii=False, separators=(",", ":")) + "\n"
    trouble = _TELL[channel](repo, settings, claimed, body.encode("utf-8", "replace"))
    return end_sending(repo, event.id, channel, trouble, settings.notify.tries)


def _tell_command(repo: Repository, settings: Settings, event: Event, body: bytes) -> str:
    """Run the command with the event on its input; tells what went wrong."""
    without = [name for name in os.environ if name.startswith(("LANDLANE_", "GIT_"))]
    words = ["/bin/sh", "-c", settings.notify.command]
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as given:
        given.write(body)
        given.seek(0)
        streams = (given.fileno(), said.fileno(), said.fileno())
        try:
            child = Child(words, cwd=repo.home.root, without=without, streams=streams)
        except OSError as error:
            return f"it could not be started: {error.strerror}"
        ended = child.wait(settings.notify.limit_ms / 1000)
        if ended.has_timed_out:
            return f"it took longer than {settings.notify.limit_ms / 1000:g} s"
        if not ended.exit_code:
            return ""
        said.seek(0, os.SEEK_END)
        said.seek(max(said.tell() - _MOST_SAID, 0))
        tail = said.read(_MOST_SAID).decode("utf-8", "replace").replace("\0", "\ufffd").strip()
        return f"it ended with {ended.exit_code}" + (f": {tail}" if tail else "")


def _tell_webhook(repo: Repository, settings: Settings, event: Event, body: bytes) -> str:
    """Post the event; only an answer of 2xx counts. Redirections are not followed."""
    seconds = settings.notify.limit_ms / 1000
    parts = urlsplit(settings.notify.webhook)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    is_late = threading.Event()
    try:
        connection = kind(parts.hostname or "", parts.port, timeout=seconds)
    except (ValueError, HTTPException) as error:
        return f"{settings.notify.webhook} cannot be used: {error}"

    def cut_off() -> None:
        is_late.set()
        with contextlib.suppress(OSError):
            if connection.sock is not None:  # also one that answers a letter at a time
                connection.sock.shutdown(2)

    timer = threading.Timer(seconds, cut_off)
    timer.daemon = True
    timer.start()
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    # The same for every try, so that a receiver can tell a second one from another event.
    headers = {"Content-Type": "application/json", "User-Agent": "landlane", "Idempotency-Key": event.id}
    try:
        connection.request("POST", path, body, headers)
        status = connection.getresponse().status
    except (OSError, HTTPException, ValueError) as error:
        late = f"no answer within {seconds:g} s"
        return late if is_late.is_set() or isinstance(error, TimeoutError) else f"no answer: {error}"[:300]
    finally:
        timer.cancel()
        connection.close()
    return "" if 200 <= status < 300 else f"it answered {status}"


_TELL = {COMMAND: _tell_command, WEBHOOK: _tell_webhook}
