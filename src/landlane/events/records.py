"""Events as the store knows them: written once whoever saw them, and each sending claimed before it is made.

A watcher changes nothing else: it does not even end what has lapsed, which is for those who work.
"""

from __future__ import annotations

from landlane.events.kinds import NOTIFY_FAILED
from landlane.events.model import (
    DUE,
    NEW,
    SENDING,
    SENT,
    UNSURE,
    Event,
    Fact,
    after_failure,
    event_of,
    is_abandoned,
    is_due,
    with_channel,
)
from landlane.store import records
from landlane.values import as_dict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.repository import Repository
    from landlane.settings.model import Settings
    from landlane.store.interface import Snapshot, Transaction


NOUN = "event"
_SEEN = "seen"  # the state of the records that say how far watchers have looked
_ALONE = {"//events": True}
_SLACK_MS = 30_000  # beyond its limit, for a sender on a busy machine


def list_events(repo: Repository, state: str = "") -> list[Event]:
    """All events in the order in which they were seen, or those of which something is yet to be sent."""
    found = repo.store.view(lambda snapshot: records.all_of(snapshot, NOUN, (state,) if state else ()))
    return [Event(**document) for document in found if document["state"] != _SEEN]


def marks_in(snapshot: Snapshot, name: str) -> dict[str, Any]:
    """How far watchers have looked at something; empty when nobody has."""
    return records.find(snapshot, NOUN, f"seen:{name}") or {}


def channels_of(settings: Settings, kind: str) -> list[str]:
    """Who is told of an event of this kind."""
    if settings.notify.kinds and kind not in settings.notify.kinds:
        return []
    known = {"command": settings.notify.command, "webhook": settings.notify.webhook}
    return [name for name, text in known.items() if text]


def write_facts(repo: Repository, settings: Settings, facts: Sequence[Fact]) -> list[Event]:
    """Write down those of these facts that are new; tells them."""
    unknown = repo.store.view(lambda snapshot: [fact for fact in facts if not _is_known(snapshot, fact)])
    if not unknown:
        return []
    return repo.store.change(lambda tx: _write(tx, repo, settings, unknown), areas=_ALONE)


def write_moved(
    repo: Repository,
    settings: Settings,
    name: str,
    before: dict[str, Any],
    after: dict[str, Any],
    facts: Sequence[Fact],
) -> list[Event]:
    """Write down facts of what has happened since the last look, and how far that goes now.

    Nothing is written when another watcher has looked that far meanwhile.
    """

    def work(tx: Transaction) -> list[Event]:
        if marks_in(tx, name) != before:
            return []
        document = {**after, "id": f"seen:{name}", "about": f"seen:{name}", "state": _SEEN}
        if facts:
            records.put(tx, NOUN, document, "seen")
        else:  # nothing happened that anybody is told of
            records.put_quietly(tx, NOUN, document)
        return _write(tx, repo, settings, facts)

    return repo.store.change(work, areas=_ALONE)


def _is_known(snapshot: Snapshot, fact: Fact) -> bool:
    return bool(records.by_key(snapshot, NOUN, fact.about))


def _write(tx: Transaction, repo: Repository, settings: Settings, facts: Sequence[Fact]) -> list[Event]:
    written: list[Event] = []
    now = repo.store.wall_of(tx.now)
    for fact in facts:
        if _is_known(tx, fact):
            continue
        event = event_of(fact, records.next_id(tx, NOUN), now, channels_of(settings, fact.kind))
        records.put(tx, NOUN, as_dict(event), "seen")
        written.append(event)
    return written


# ------------------------------------------------------------------------------------------ sending


def due_events(repo: Repository) -> list[Event]:
    """The events of which something is yet to be sent."""
    return list_events(repo, DUE)


def claim_sending(repo: Repository, event_id: str, channel: str, limit_ms: int) -> Event | None:
    """Take the sending of an event to a receiver in hand; nothing when somebody else has, or it is not due.

    Only who got it here sends. A crash after this leaves it in hand until its time is over; then nobody knows
    whether it got there, and it is not sent again.
    """

    def work(tx: Transaction) -> Event | None:
        event, now = _locked(tx, event_id), repo.store.wall_of(tx.now)
        if event is None or not is_due(event, channel, now):
            return None
        tries = int(event.channels[channel]["tries"]) + 1
        taken = with_channel(event, channel, state=SENDING, tries=tries, until=now + limit_ms + _SLACK_MS)
        records.put(tx, NOUN, as_dict(taken), "sending", None, channel=channel)
        return taken

    return repo.store.change(work, areas=_ALONE)


def _locked(tx: Transaction, event_id: str) -> Event | None:
    document = records.lock(tx, NOUN, event_id)
    return Event(**document) if document is not None and document["state"] != _SEEN else None


def end_sending(repo: Repository, event_id: str, channel: str, trouble: str, most_tries: int) -> Event | None:
    """Write down how a sending went; `trouble` is empty when the receiver has it."""

    def work(tx: Transaction) -> Event | None:
        event, now = _locked(tx, event_id), repo.store.wall_of(tx.now)
        if event is None or event.channels[channel]["state"] not in (SENDING, UNSURE):
            return event
        if not trouble:
            ended, verb = with_channel(event, channel, state=SENT, why="", until=0), "sent"
        elif event.channels[channel]["state"] == UNSURE:
            return event  # it was counted as lost already
        else:
            ended = after_failure(event, channel, trouble, now, most_tries)
            verb = "postponed" if ended.channels[channel]["state"] == NEW else "failed"
        records.put(tx, NOUN, as_dict(ended), verb, None, channel=channel)
        if verb == "failed":
            _report(tx, repo, ended, channel, f"could not be sent after {most_tries} tries: {trouble}")
        return ended

    return repo.store.change(work, areas=_ALONE)


def settle_abandoned(repo: Repository, event_id: str, channel: str) -> Event | None:
    """Give up a sending whose sender never said how it went: sending again could tell somebody twice."""

    def work(tx: Transaction) -> Event | None:
        event, now = _locked(tx, event_id), repo.store.wall_of(tx.now)
        if event is None or not is_abandoned(event, channel, now):
            return None
        why = "its sender ended before it could say whether it got there"
        ended = with_channel(event, channel, state=UNSURE, why=why, until=0)
        records.put(tx, NOUN, as_dict(ended), "unsure", None, channel=channel)
        _report(tx, repo, ended, channel, why)
        return ended

    return repo.store.change(work, areas=_ALONE)


def reports_of(repo: Repository, events: Sequence[Event]) -> list[Event]:
    """The events that tell of these that they could not be sent."""
    keys = dict.fromkeys(f"{NOTIFY_FAILED}:{event.id}:{name}" for event in events for name in event.channels)
    found = repo.store.view(lambda snapshot: [records.by_key(snapshot, NOUN, key) for key in keys])
    return [Event(**document) for documents in found for document in documents]


def _report(tx: Transaction, repo: Repository, event: Event, channel: str, why: str) -> None:
    """An event about what nobody was told of; it is sent to nobody itself."""
    fact = Fact(
        kind=NOTIFY_FAILED,
        about=f"{NOTIFY_FAILED}:{event.id}:{channel}",
        text=f"{event.id} ({event.kind}) and the {channel}: {why}",
        facts={"event": event.id, "channel": channel, "why": why[:500]},
    )
    if not _is_known(tx, fact):
        made = event_of(fact, records.next_id(tx, NOUN), repo.store.wall_of(tx.now), ())
        records.put(tx, NOUN, as_dict(made), "seen")
