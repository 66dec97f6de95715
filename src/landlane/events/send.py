"""Send events to a command, on its standard input, or to a webhook.

A sender claims the sending in the store first, so that several watchers send each event once. The result is
unknown if a watcher is killed while it sends: that is reported, and the event is not sent again.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import threading
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from landlane.events.model import SENT, Channel, is_abandoned, is_due
from landlane.events.records import claim_sending, due_events, end_sending, settle_abandoned
from landlane.processes.child import Child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.events.model import RecordedEvent
    from landlane.repository import Repository
    from landlane.settings.model import Settings

_MAX_OUTPUT_BYTES = 400


def send_due(
    repo: Repository, settings: Settings, body_of: Callable[[RecordedEvent], dict[str, object]]
) -> tuple[list[RecordedEvent], list[RecordedEvent]]:
    """Send all due events; return the events that were sent and those that were not.

    `body_of` returns the JSON body that receivers get.
    """
    sent: list[RecordedEvent] = []
    unsent: list[RecordedEvent] = []
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
    event: RecordedEvent,
    channel: str,
    body_of: Callable[[RecordedEvent], dict[str, object]],
) -> RecordedEvent | None:
    claimed = claim_sending(repo, event.id, channel, settings.notify.limit_ms)
    if claimed is None:
        return None
    body = json.dumps(body_of(claimed), ensure_ascii=False, separators=(",", ":")) + "\n"
    failure = _SENDERS[Channel(channel)](repo, settings, claimed, body.encode("utf-8", "replace"))
    return end_sending(repo, event.id, channel, failure, settings.notify.tries)


def _send_to_command(repo: Repository, settings: Settings, event: RecordedEvent, body: bytes) -> str:
    """Run the command with the event on its standard input; return why it failed, or an empty text."""
    without = [name for name in os.environ if name.startswith(("LANDLANE_", "GIT_"))]
    words = ["/bin/sh", "-c", settings.notify.command]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as stdin:
        stdin.write(body)
        stdin.seek(0)
        streams = (stdin.fileno(), output.fileno(), output.fileno())
        try:
            child = Child(words, cwd=repo.home.root, without=without, streams=streams)
        except OSError as error:
            return f"it could not be started: {error.strerror}"
        ended = child.wait(settings.notify.limit_ms / 1000)
        if ended.has_timed_out:
            return f"it took longer than {settings.notify.limit_ms / 1000:g} s"
        if not ended.exit_code:
            return ""
        output.seek(0, os.SEEK_END)
        output.seek(max(output.tell() - _MAX_OUTPUT_BYTES, 0))
        tail = output.read(_MAX_OUTPUT_BYTES).decode("utf-8", "replace").replace("\0", "\ufffd").strip()
        return f"it ended with {ended.exit_code}" + (f": {tail}" if tail else "")


def _send_to_webhook(repo: Repository, settings: Settings, event: RecordedEvent, body: bytes) -> str:
    """Post the event without following redirects; return why it failed, or an empty text for a 2xx status."""
    seconds = settings.notify.limit_ms / 1000
    parts = urlsplit(settings.notify.webhook)
    connection_type = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    is_late = threading.Event()
    try:
        connection = connection_type(parts.hostname or "", parts.port, timeout=seconds)
    except (ValueError, HTTPException) as error:
        return f"{settings.notify.webhook} cannot be used: {error}"

    def abort() -> None:
        is_late.set()
        with contextlib.suppress(OSError):
            if connection.sock is not None:  # the timeout of the socket alone would never end a slow trickle
                connection.sock.shutdown(2)

    timer = threading.Timer(seconds, abort)
    timer.daemon = True
    timer.start()
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    # The same key for every try, so that a receiver can recognise a repeated event.
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


_SENDERS = {Channel.COMMAND: _send_to_command, Channel.WEBHOOK: _send_to_webhook}
