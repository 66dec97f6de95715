"""Watching: events that happened once, what is told of them, and when telling somebody is tried again.

An event is known by what it is about: the same fact, seen again or by another watcher, is the same event.
Each receiver gets it once. A try that failed is made again, later and later, and given up in the end. A try
of which nobody knows how it went is not made again: whoever got it would get it twice.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


# What is to be sent: not yet, being sent now, got there, given up, or nobody knows.
NEW, SENDING, SENT, FAILED, UNSURE = "new", "sending", "sent", "failed", "unsure"
DUE, SETTLED = "due", "settled"  # of an event: something is yet to be sent, or nothing is
COMMAND, WEBHOOK = "command", "webhook"


_FIRST_MS = 2_000
_FACTOR = 3
_LONGEST_MS = 15 * 60_000
_LONGEST_TEXT = 600

# Files that say what a project depends on, by their names.
MANIFESTS = (
    *("package.json", "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock"),
    *("bun.lockb", "deno.json", "deno.lock", "pyproject.toml", "setup.cfg", "setup.py", "requirements*.txt"),
    *("requirements*.in", "poetry.lock", "uv.lock", "pdm.lock", "Pipfile", "Pipfile.lock", "environment.yml"),
    *("go.mod", "go.sum", "Cargo.toml", "Cargo.lock", "Gemfile", "Gemfile.lock", "composer.json"),
    *("composer.lock", "pom.xml", "build.gradle", "build.gradle.kts", "gradle.lockfile", "*.csproj"),
    *("packages.lock.json", "mix.exs", "mix.lock", "Package.swift", "Package.resolved", "pubspec.yaml"),
    *("pubspec.lock", "flake.lock", "conan.lock", "vcpkg.json"),
)


@value
class Fact:
    """Something a watcher sees; `about` is the same whoever sees it, and however often."""

    kind: str
    about: str
    text: str
    facts: Mapping[str, Any]


@value
class Event:
    """A fact that was written down, and how far telling of it is. Instants are the calendar's."""

    id: str
    about: str
    kind: str
    text: str
    facts: Mapping[str, Any]
    at: int
    state: str = SETTLED
    channels: Mapping[str, Mapping[str, Any]] = {}  # receiver → {state, tries, next_at, until, why}


def event_of(fact: Fact, id: str, at: int, channels: Sequence[str]) -> Event:
    """An event that is to be told to these receivers."""
    fresh = {name: {"state": NEW, "tries": 0, "next_at": 0, "until": 0, "why": ""} for name in channels}
    return Event(
        id=id,
        about=fact.about,
        kind=fact.kind,
        text=fact.text[:_LONGEST_TEXT],
        facts=dict(fact.facts),
        at=at,
        state=DUE if fresh else SETTLED,
        channels=fresh,
    )


def is_due(event: Event, channel: str, now: int) -> bool:
    """Whether an event is to be sent to a receiver now."""
    found = event.channels.get(channel, {})
    return found.get("state") == NEW and int(found["next_at"]) <= now


def is_abandoned(event: Event, channel: str, now: int) -> bool:
    """Whether somebody began to send it and never said how that went."""
    found = event.channels.get(channel, {})
    return found.get("state") == SENDING and int(found["until"]) <= now


def with_channel(event: Event, channel: str, **changes: Any) -> Event:
    """The event with this said of one receiver; settled when nothing is left to do for any."""
    channels = {**event.channels, channel: {**event.channels[channel], **changes}}
    is_open = any(one["state"] in (NEW, SENDING) for one in channels.values())
    return replace(event, channels=channels, state=DUE if is_open else SETTLED)


def after_failure(event: Event, channel: str, why: str, now: int, most_tries: int) -> Event:
    """The event after a try that is known to have failed: tried again later, or given up."""
    tries = int(event.channels[channel]["tries"])
    why = why[:_LONGEST_TEXT]
    if tries >= most_tries:
        return with_channel(event, channel, state=FAILED, why=why, until=0)
    wait = min(_FIRST_MS * _FACTOR ** max(tries - 1, 0), _LONGEST_MS)
    return with_channel(event, channel, state=NEW, why=why, next_at=now + wait, until=0)


def next_instant(events: Sequence[Event]) -> int:
    """The first instant at which something is to be sent, or given up for lost; 0 when there is none."""
    instants = [
        int(one["next_at"] if one["state"] == NEW else one["until"])
        for event in events
        for one in event.channels.values()
        if one["state"] in (NEW, SENDING)
    ]
    return min(instants, default=0)


def changed_manifests(paths: Sequence[str]) -> list[str]:
    """Those of these paths whose names say that they name dependencies."""
    return [path for path in paths if any(fnmatchcase(path.rpartition("/")[2], one) for one in MANIFESTS)]
