"""Watching: look often, write down what is new, tell those outside of it, and change nothing else."""

from __future__ import annotations

import time

from landlane.errors import LandlaneError
from landlane.events.detect_in_git import observe_target
from landlane.events.detect_in_store import observe
from landlane.events.model import next_instant
from landlane.events.records import due_events, reports_of
from landlane.events.send import send_due
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.events.model import Event
    from landlane.repository import Repository
    from landlane.settings.model import Settings

_SHORTEST_SECONDS = 0.05


@value
class Look:
    """What one look came to: what was new, what was told to somebody outside, and what was not."""

    events: Sequence[Event]
    sent: Sequence[Event] = ()
    unsent: Sequence[Event] = ()


def look(repo: Repository, settings: Settings, body_of: Callable[[Event], dict[str, object]]) -> Look:
    """Look once at the target branch and at the store, and send what is due."""
    began_at = repo.wall_ms()
    events = _see(repo, settings)
    told = _tell(repo, settings, body_of, began_at)
    return replace(told, events=[*events, *told.events])


def _see(repo: Repository, settings: Settings) -> list[Event]:
    """What is new at the target branch and in the store; it is written down."""
    return [*observe_target(repo, settings), *observe(repo, settings)]


def _tell(
    repo: Repository, settings: Settings, body_of: Callable[[Event], dict[str, object]], began_at: int
) -> Look:
    """Send what is due; its events are those that report what could not be sent since an instant."""
    sent, unsent = send_due(repo, settings, body_of)
    reports = [event for event in reports_of(repo, unsent) if event.at >= began_at]
    return Look(events=reports, sent=sent, unsent=unsent)


def watch(
    repo: Repository,
    read_settings: Callable[[], Settings],
    interval_ms: int,
    body_of: Callable[[Event], dict[str, object]],
    on_look: Callable[[Look], None],
    on_trouble: Callable[[LandlaneError], None],
) -> None:
    """Look again and again until a signal ends it; the settings are read anew each time.

    `on_look` is called twice for each look: with what is new before it is sent, since sending takes its time
    and who is ended meanwhile would never say it, and then with what came of sending. A look that fails, as
    when somebody is just saving the settings, is told and made again.
    """
    settings = read_settings()
    while True:
        due = 0
        try:
            settings = read_settings()
            began_at = repo.wall_ms()
            on_look(Look(events=_see(repo, settings)))
            on_look(_tell(repo, settings, body_of, began_at))
            due = next_instant(due_events(repo))
        except LandlaneError as error:
            on_trouble(error)
        rest_ms = interval_ms or settings.notify.interval_ms
        if due:  # a try that is due before the next look would be
            rest_ms = min(rest_ms, max(due - repo.wall_ms(), 0))
        time.sleep(max(rest_ms / 1000, _SHORTEST_SECONDS))
