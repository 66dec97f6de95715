"""The rules of sending events: due, repeated, failed, and never sent twice."""

from __future__ import annotations

import pytest

from landlane.events import model
from landlane.events.model import (
    FAILED,
    NEW,
    SENDING,
    SENT,
    UNSURE,
    DetectedEvent,
    EventKind,
    RecordedEvent,
    SendState,
    after_failure,
    changed_manifests,
    is_abandoned,
    is_due,
    new_event,
    next_due_at,
)
from landlane.settings.model import EVENT_KINDS
from landlane.values import replace

pytestmark = pytest.mark.unit

FACT = DetectedEvent(kind=EventKind.RED, about="red:L1", text="L1 is red", facts={"id": "L1"})


def made(*channels: str) -> RecordedEvent:
    return new_event(FACT, "E1", 1000, channels)


def sending(event: RecordedEvent, tries: int) -> RecordedEvent:
    return event.with_sending("webhook", SENDING, tries=tries, until=50_000)


def test_an_event_without_channels_is_settled() -> None:
    assert made().state == "settled"
    assert not is_due(made(), "webhook", 1000)


def test_an_event_is_settled_when_every_sending_is() -> None:
    event = sending(made("webhook", "command"), 1).with_sending("webhook", SENT)
    assert event.state == "due"
    assert is_due(event, "command", 1000)
    assert not is_due(event, "webhook", 1000)
    assert event.with_sending("command", SENDING).with_sending("command", UNSURE).state == "settled"


@pytest.mark.parametrize("before", SendState)
@pytest.mark.parametrize("after", SendState)
def test_a_sending_changes_only_as_the_transition_table_says(before: SendState, after: SendState) -> None:
    channels = {"webhook": {**made("webhook").channels["webhook"], "state": before.value}}
    event = replace(made("webhook"), channels=channels)
    allowed = {(NEW, SENDING), (UNSURE, SENT), *((SENDING, state) for state in (NEW, SENT, FAILED, UNSURE))}
    if (before, after) in allowed:
        assert event.with_sending("webhook", after).channels["webhook"]["state"] == after
    else:
        with pytest.raises(ValueError, match=f"{before} cannot become {after}"):
            event.with_sending("webhook", after)


def test_failures_consult_the_transition_table(monkeypatch: pytest.MonkeyPatch) -> None:
    event = sending(made("webhook"), 1)
    monkeypatch.setattr(model, "_TRANSITIONS", dict.fromkeys(SendState, ()))
    with pytest.raises(ValueError, match="cannot become"):
        after_failure(event, "webhook", "it answered 500", 1000, 8)


def test_settings_accept_exactly_the_kinds_of_events() -> None:
    assert set(EVENT_KINDS) == set(EventKind)


def test_delays_between_tries_grow_and_tries_end() -> None:
    event, waits, now = made("webhook"), [], 1000
    for tries in range(1, 9):
        event = after_failure(sending(event, tries), "webhook", "it answered 500", now, 8)
        waits.append(event.channels["webhook"]["next_at"] - now)
    assert waits[:3] == [2_000, 6_000, 18_000]
    assert max(waits) <= 15 * 60_000
    assert (event.state, event.channels["webhook"]["state"]) == ("settled", "failed")


def test_a_claimed_sending_is_not_due_and_may_be_abandoned() -> None:
    event = sending(made("webhook"), 1)
    assert not is_due(event, "webhook", 10**9)
    assert not is_abandoned(event, "webhook", 49_999)
    assert is_abandoned(event, "webhook", 50_000)
    assert next_due_at([event]) == 50_000
    assert next_due_at([made()]) == 0


def test_manifests_are_recognised_by_their_names() -> None:
    paths = ["a/package.json", "requirements-dev.txt", "src/requirements.py", "go.sum", "x/y.csproj", "lock"]
    assert changed_manifests(paths) == ["a/package.json", "requirements-dev.txt", "go.sum", "x/y.csproj"]
