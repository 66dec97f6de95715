"""Events, the channels they are sent to, and when a failed sending is tried again.

Every event has a key that identifies its fact: two watchers that see the same fact record one event. Each
channel gets an event once. A sending that failed is repeated with growing delays, up to a limit. A sending
with an unknown result is not repeated, because the receiver could get the event twice.
"""

from __future__ import annotations

from enum import StrEnum
from fnmatch import fnmatchcase

from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


class EventKind(StrEnum):
    """The kinds of events; `settings/model.py` repeats them for the setting `notify.kinds`."""

    COMMITS = "commits"
    DEPENDENCIES = "dependencies"
    RED = "red"
    STALLED = "stalled"
    PAUSED = "paused"
    POOL = "pool"
    STALE_CLAIM = "stale-claim"
    DEAD_SESSION = "dead-session"
    GATE_WAITING = "gate-waiting"
    GATE_REMINDER = "gate-reminder"
    GATE_OVERDUE = "gate-overdue"
    HANDOFF_OVERDUE = "handoff-overdue"
    DEAD_LETTER = "dead-letter"
    NOTIFY_FAILED = "notify-failed"


class EventState(StrEnum):
    """Whether an event still has to be sent to a channel."""

    DUE = "due"
    SETTLED = "settled"


class Channel(StrEnum):
    """The ways in which an event leaves Landlane."""

    COMMAND = "command"
    WEBHOOK = "webhook"


class SendState(StrEnum):
    """How far sending one event to one channel is."""

    NEW = "new"  # waits for its first or next try
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"  # after the last try
    UNSURE = "unsure"  # its sender ended without recording a result


NEW, SENDING, SENT, FAILED, UNSURE = SendState
_PENDING = (NEW, SENDING)

# A slow sender can still record that it succeeded after its time was over.
_TRANSITIONS: Mapping[SendState, Sequence[SendState]] = {
    NEW: (SENDING,),
    SENDING: (NEW, SENT, FAILED, UNSURE),
    SENT: (),
    FAILED: (),
    UNSURE: (SENT,),
}

_FIRST_RETRY_MS = 2_000
_RETRY_FACTOR = 3
_MAX_RETRY_MS = 15 * 60_000
_MAX_TEXT_CHARS = 600

# Name patterns of the files that list dependencies.
_MANIFESTS = (
    *("package.json", "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock"),
    *("bun.lockb", "deno.json", "deno.lock", "pyproject.toml", "setup.cfg", "setup.py", "requirements*.txt"),
    *("requirements*.in", "poetry.lock", "uv.lock", "pdm.lock", "Pipfile", "Pipfile.lock", "environment.yml"),
    *("go.mod", "go.sum", "Cargo.toml", "Cargo.lock", "Gemfile", "Gemfile.lock", "composer.json"),
    *("composer.lock", "pom.xml", "build.gradle", "build.gradle.kts", "gradle.lockfile", "*.csproj"),
    *("packages.lock.json", "mix.exs", "mix.lock", "Package.swift", "Package.resolved", "pubspec.yaml"),
    *("pubspec.lock", "flake.lock", "conan.lock", "vcpkg.json"),
)


@value
class DetectedEvent:
    """A fact that a watcher found; every watcher gives the same fact the same `about`."""

    kind: EventKind
    about: str
    text: str
    facts: Mapping[str, Any]


def detected_event(kind: EventKind, key: str, text: str, facts: Mapping[str, Any]) -> DetectedEvent:
    """Return an event; `key` identifies the fact among those of its kind."""
    return DetectedEvent(kind=kind, about=f"{kind}:{key}", text=text, facts=facts)


@value
class RecordedEvent:
    """A recorded event and how far sending it is. Times are wall-clock milliseconds."""

    id: str
    about: str
    kind: str
    text: str
    facts: Mapping[str, Any]
    at: int
    state: str = EventState.SETTLED
    channels: Mapping[str, Mapping[str, Any]] = {}  # channel → {state, tries, next_at, until, why}

    def can_become(self, channel: str, state: SendState) -> bool:
        """Return whether the sending to a channel may change to another state."""
        return channel in self.channels and state in _TRANSITIONS[SendState(self.channels[channel]["state"])]

    def with_sending(self, channel: str, state: SendState, **changes: Any) -> RecordedEvent:
        """Return the event with another state of one sending; settled when no sending is pending.

        Raises:
            ValueError: the transition table does not have this change.
        """
        before = self.channels[channel]
        if not self.can_become(channel, state):
            raise ValueError(f"{self.id}: a sending that is {before['state']} cannot become {state}")
        channels = {**self.channels, channel: {**before, "state": state, **changes}}
        is_pending = any(sending["state"] in _PENDING for sending in channels.values())
        return replace(self, channels=channels, state=EventState.DUE if is_pending else EventState.SETTLED)


def new_event(detected: DetectedEvent, id: str, at: int, channels: Sequence[str]) -> RecordedEvent:
    """Return the event to record for a detected fact, to be sent to these channels."""
    sendings = {name: {"state": NEW, "tries": 0, "next_at": 0, "until": 0, "why": ""} for name in channels}
    return RecordedEvent(
        id=id,
        about=detected.about,
        kind=detected.kind,
        text=detected.text[:_MAX_TEXT_CHARS],
        facts=dict(detected.facts),
        at=at,
        state=EventState.DUE if sendings else EventState.SETTLED,
        channels=sendings,
    )


def is_due(event: RecordedEvent, channel: str, now: int) -> bool:
    """Return whether an event should be sent to a channel now."""
    sending = event.channels.get(channel, {})
    return sending.get("state") == NEW and int(sending["next_at"]) <= now


def is_abandoned(event: RecordedEvent, channel: str, now: int) -> bool:
    """Return whether the time of a sender is over and it did not record a result."""
    sending = event.channels.get(channel, {})
    return sending.get("state") == SENDING and int(sending["until"]) <= now


def after_failure(event: RecordedEvent, channel: str, why: str, now: int, max_tries: int) -> RecordedEvent:
    """Return the event after a failed try: scheduled for another try, or failed after the last one."""
    tries = int(event.channels[channel]["tries"])
    why = why[:_MAX_TEXT_CHARS]
    if tries >= max_tries:
        return event.with_sending(channel, FAILED, why=why, until=0)
    delay_ms = min(_FIRST_RETRY_MS * _RETRY_FACTOR ** max(tries - 1, 0), _MAX_RETRY_MS)
    return event.with_sending(channel, NEW, why=why, next_at=now + delay_ms, until=0)


def next_due_at(events: Sequence[RecordedEvent]) -> int:
    """Return the first instant at which a sending is due or counts as abandoned; 0 if none is pending."""
    instants = [
        int(sending["next_at"] if sending["state"] == NEW else sending["until"])
        for event in events
        for sending in event.channels.values()
        if sending["state"] in _PENDING
    ]
    return min(instants, default=0)


def changed_manifests(paths: Sequence[str]) -> list[str]:
    """Return the paths that are dependency manifests by their file names."""
    return [path for path in paths if any(fnmatchcase(path.rpartition("/")[2], name) for name in _MANIFESTS)]
