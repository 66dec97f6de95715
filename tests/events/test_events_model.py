"""The rules of events: when they are sent, tried again, given up, and never sent twice."""

from __future__ import annotations

import pytest

from landlane.events.model import (
    Event,
    Fact,
    after_failure,
    changed_manifests,
    event_of,
    is_abandoned,
    is_due,
    next_instant,
    with_channel,
)

pytestmark = pytest.mark.unit

FACT = Fact(kind="red", about="red:L1", text="L1 is red", facts={"id": "L1"})


def made(*channels: str) -> Event:
    return event_of(FACT, "E1", 1000, channels)


def sending(event: Event, tries: int) -> Event:
    return with_channel(event, "webhook", state="sending", tries=tries, until=50_000)


def test_an_event_nobody_wants_to_hear_of_is_settled() -> None:
    assert made().state == "settled"
    assert not is_due(made(), "webhook", 1000)


def test_an_event_is_settled_when_every_receiver_is() -> None:
    event = with_channel(made("webhook", "command"), "webhook", state="sent")
    assert (event.state, is_due(event, "command", 1000), is_due(event, "webhook", 1000)) == (
        "due",
        True,
        False,
    )
    assert with_channel(event, "command", state="unsure").state == "settled"


def test_tries_come_later_and_later_and_end() -> None:
    event, waits, now = made("webhook"), [], 1000
    for tries in range(1, 9):
        event = after_failure(sending(event, tries), "webhook", "it answered 500", now, 8)
        waits.append(event.channels["webhook"]["next_at"] - now)
    assert waits[:3] == [2_000, 6_000, 18_000]
    assert max(waits) <= 15 * 60_000
    assert (event.state, event.channels["webhook"]["state"]) == ("settled", "failed")


def test_what_is_being_sent_is_not_due_and_may_be_abandoned() -> None:
    event = sending(made("webhook"), 1)
    assert not is_due(event, "webhook", 10**9)
    assert not is_abandoned(event, "webhook", 49_999)
    assert is_abandoned(event, "webhook", 50_000)
    assert next_instant([event]) == 50_000
    assert next_instant([made()]) == 0


def test_manifests_are_known_by_their_names() -> None:
    paths = ["a/package.json", "requirements-dev.txt", "src/requirements.py", "go.sum", "x/y.csproj", "lock"]
    assert changed_manifests(paths) == ["a/package.json", "requirements-dev.txt", "go.sum", "x/y.csproj"]
