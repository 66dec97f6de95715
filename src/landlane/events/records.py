"""Record events in the store: each fact once, and each sending claimed before it starts.

A watcher writes nothing else. It does not even end expired leases; sessions that work on the repository do.
"""

from __future__ import annotations

from landlane.events.model import (
    NEW,
    SENDING,
    SENT,
    UNSURE,
    Channel,
    DetectedEvent,
    EventKind,
    EventState,
    RecordedEvent,
    after_failure,
    detected_event,
    is_abandoned,
    is_due,
    new_event,
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
_SEEN = "seen"  # the state of the records that hold the progress of the watchers
_EXCLUSIVE = {"//events": True}
_SLACK_MS = 30_000  # added to the limit of a sender, for a busy machine


def list_events(repo: Repository, state: str = "") -> list[RecordedEvent]:
    """Return the events in the order in which they were recorded, optionally only those in one state."""
    found = repo.store.view(lambda snapshot: records.find_all(snapshot, NOUN, (state,) if state else ()))
    return [RecordedEvent(**document) for document in found if document["state"] != _SEEN]


def read_progress(snapshot: Snapshot, source: str) -> dict[str, Any]:
    """Return how far watchers have read a source; empty before the first check."""
    return records.find(snapshot, NOUN, f"seen:{source}") or {}


def _channels_for(settings: Settings, kind: str) -> list[str]:
    """Return the channels that get events of this kind."""
    if settings.notify.kinds and kind not in settings.notify.kinds:
        return []
    configured = {Channel.COMMAND: settings.notify.command, Channel.WEBHOOK: settings.notify.webhook}
    return [channel for channel, receiver in configured.items() if receiver]


def record_new(
    repo: Repository, settings: Settings, detected: Sequence[DetectedEvent]
) -> list[RecordedEvent]:
    """Record the facts that are not recorded yet, and return their events."""
    unknown = repo.store.view(lambda snapshot: [fact for fact in detected if not _is_known(snapshot, fact)])
    if not unknown:
        return []
    return repo.store.change(lambda tx: _write(tx, repo, settings, unknown), areas=_EXCLUSIVE)


def record_progress(
    repo: Repository,
    settings: Settings,
    source: str,
    before: dict[str, Any],
    after: dict[str, Any],
    detected: Sequence[DetectedEvent],
) -> list[RecordedEvent]:
    """Record facts together with the new progress in their source, and return their events.

    Nothing is written if another watcher has changed the progress since `before` was read.
    """

    def work(tx: Transaction) -> list[RecordedEvent]:
        if read_progress(tx, source) != before:
            return []
        document = {**after, "id": f"seen:{source}", "about": f"seen:{source}", "state": _SEEN}
        if detected:
            records.put(tx, NOUN, document, "seen")
        else:  # progress alone needs no journal entry
            records.put_without_entry(tx, NOUN, document)
        return _write(tx, repo, settings, detected)

    return repo.store.change(work, areas=_EXCLUSIVE)


def _is_known(snapshot: Snapshot, fact: DetectedEvent) -> bool:
    return bool(records.find_by_key(snapshot, NOUN, fact.about))


def _write(
    tx: Transaction, repo: Repository, settings: Settings, detected: Sequence[DetectedEvent]
) -> list[RecordedEvent]:
    written: list[RecordedEvent] = []
    now = repo.store.wall_of(tx.now)
    for fact in detected:
        if _is_known(tx, fact):
            continue
        event = new_event(fact, records.next_id(tx, NOUN), now, _channels_for(settings, fact.kind))
        records.put(tx, NOUN, as_dict(event), "seen")
        written.append(event)
    return written


def due_events(repo: Repository) -> list[RecordedEvent]:
    """Return the events that still have to be sent to a channel."""
    return list_events(repo, EventState.DUE)


def claim_sending(repo: Repository, event_id: str, channel: str, limit_ms: int) -> RecordedEvent | None:
    """Claim the sending of an event to a channel; return None if it is not due or another sender has it.

    Only the sender that got the event may send it. If it crashes, the result is unknown when its time is
    over, and the event is not sent again.
    """

    def work(tx: Transaction) -> RecordedEvent | None:
        event, now = _lock_event(tx, event_id), repo.store.wall_of(tx.now)
        if event is None or not is_due(event, channel, now):
            return None
        tries = int(event.channels[channel]["tries"]) + 1
        claimed = event.with_sending(channel, SENDING, tries=tries, until=now + limit_ms + _SLACK_MS)
        records.put(tx, NOUN, as_dict(claimed), "sending", None, channel=channel)
        return claimed

    return repo.store.change(work, areas=_EXCLUSIVE)


def _lock_event(tx: Transaction, event_id: str) -> RecordedEvent | None:
    document = records.lock(tx, NOUN, event_id)
    return RecordedEvent(**document) if document is not None and document["state"] != _SEEN else None


def end_sending(
    repo: Repository, event_id: str, channel: str, failure: str, max_tries: int
) -> RecordedEvent | None:
    """Record the result of a sending; `failure` is empty if it succeeded."""

    def work(tx: Transaction) -> RecordedEvent | None:
        event, now = _lock_event(tx, event_id), repo.store.wall_of(tx.now)
        if event is None or not event.can_become(channel, SENT):
            return event
        if not failure:
            ended, verb = event.with_sending(channel, SENT, why="", until=0), "sent"
        elif event.channels[channel]["state"] == UNSURE:
            return event  # already reported as lost
        else:
            ended = after_failure(event, channel, failure, now, max_tries)
            verb = "postponed" if ended.channels[channel]["state"] == NEW else "failed"
        records.put(tx, NOUN, as_dict(ended), verb, None, channel=channel)
        if verb == "failed":
            _report(tx, repo, ended, channel, f"could not be sent after {max_tries} tries: {failure}")
        return ended

    return repo.store.change(work, areas=_EXCLUSIVE)


def settle_abandoned(repo: Repository, event_id: str, channel: str) -> RecordedEvent | None:
    """Record that the result of a sending is unknown; sending it again could deliver the event twice."""

    def work(tx: Transaction) -> RecordedEvent | None:
        event, now = _lock_event(tx, event_id), repo.store.wall_of(tx.now)
        if event is None or not is_abandoned(event, channel, now):
            return None
        why = "its sender ended before it could say whether it got there"
        ended = event.with_sending(channel, UNSURE, why=why, until=0)
        records.put(tx, NOUN, as_dict(ended), "unsure", None, channel=channel)
        _report(tx, repo, ended, channel, why)
        return ended

    return repo.store.change(work, areas=_EXCLUSIVE)


def reports_of(repo: Repository, events: Sequence[RecordedEvent]) -> list[RecordedEvent]:
    """Return the events that report failed sendings of these events."""
    keys = dict.fromkeys(
        f"{EventKind.NOTIFY_FAILED}:{event.id}:{name}" for event in events for name in event.channels
    )
    found = repo.store.view(lambda snapshot: [records.find_by_key(snapshot, NOUN, key) for key in keys])
    return [RecordedEvent(**document) for documents in found for document in documents]


def _report(tx: Transaction, repo: Repository, event: RecordedEvent, channel: str, why: str) -> None:
    """Record an event about a failed sending; it is not sent to any channel."""
    text = f"{event.id} ({event.kind}) and the {channel}: {why}"
    facts = {"event": event.id, "channel": channel, "why": why[:500]}
    fact = detected_event(EventKind.NOTIFY_FAILED, f"{event.id}:{channel}", text, facts)
    if not _is_known(tx, fact):
        report = new_event(fact, records.next_id(tx, NOUN), repo.store.wall_of(tx.now), ())
        records.put(tx, NOUN, as_dict(report), "seen")
