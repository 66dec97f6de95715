"""Watch a repository: detect events, record the new ones and send them."""

from __future__ import annotations

import time

from landlane.errors import LandlaneError
from landlane.events.detect_in_git import record_target_events
from landlane.events.detect_in_store import record_store_events
from landlane.events.model import next_due_at
from landlane.events.records import due_events, reports_of
from landlane.events.send import send_due
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.events.model import RecordedEvent
    from landlane.repository import Repository
    from landlane.settings.model import Settings

_MIN_PAUSE_SECONDS = 0.05


@value
class WatchResult:
    """The new events of one check, and the events that were sent and not sent."""

    events: Sequence[RecordedEvent]
    sent: Sequence[RecordedEvent] = ()
    unsent: Sequence[RecordedEvent] = ()


def check_once(
    repo: Repository, settings: Settings, body_of: Callable[[RecordedEvent], dict[str, object]]
) -> WatchResult:
    """Check the target branch and the store for events once, and send what is due."""
    started_at = repo.wall_ms()
    events = _record_events(repo, settings)
    result = _send_due(repo, settings, body_of, started_at)
    return replace(result, events=[*events, *result.events])


def _record_events(repo: Repository, settings: Settings) -> list[RecordedEvent]:
    return [*record_target_events(repo, settings), *record_store_events(repo, settings)]


def _send_due(
    repo: Repository,
    settings: Settings,
    body_of: Callable[[RecordedEvent], dict[str, object]],
    started_at: int,
) -> WatchResult:
    """Send what is due; the events of the result report the sendings that failed since an instant."""
    sent, unsent = send_due(repo, settings, body_of)
    reports = [event for event in reports_of(repo, unsent) if event.at >= started_at]
    return WatchResult(events=reports, sent=sent, unsent=unsent)


def watch(
    repo: Repository,
    read_settings: Callable[[], Settings],
    interval_ms: int,
    body_of: Callable[[RecordedEvent], dict[str, object]],
    on_result: Callable[[WatchResult], None],
    on_error: Callable[[LandlaneError], None],
) -> None:
    """Check again and again until a signal ends it; the settings are read before each check.

    `on_result` is called twice per check: with the new events before they are sent, because sending takes
    time and a signal could end it, and then with the result of sending. A check that fails, for example
    while the settings are being saved, is reported to `on_error` and repeated.
    """
    settings = read_settings()
    while True:
        due_at = 0
        try:
            settings = read_settings()
            started_at = repo.wall_ms()
            on_result(WatchResult(events=_record_events(repo, settings)))
            on_result(_send_due(repo, settings, body_of, started_at))
            due_at = next_due_at(due_events(repo))
        except LandlaneError as error:
            on_error(error)
        pause_ms = interval_ms or settings.notify.interval_ms
        if due_at:  # a sending may be due before the next check
            pause_ms = min(pause_ms, max(due_at - repo.wall_ms(), 0))
        time.sleep(max(pause_ms / 1000, _MIN_PAUSE_SECONDS))
