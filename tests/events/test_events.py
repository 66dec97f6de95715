"""Events in the store: each fact once, no other changes, one sender per event; on both stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.events import records as events
from landlane.events.detect_in_store import record_store_events
from landlane.gates.open import open_task_gate
from landlane.landing.model import Landing, LandingState, Queue, QueueState
from landlane.platform.process import MachineProcesses
from landlane.sessions import join as sessions
from landlane.sessions.model import SessionKind
from landlane.settings.model import NotifySettings, RetrySettings, Settings
from landlane.setup.rebuild_store import rebuild_store
from landlane.store import records
from landlane.tasks.add import add_task
from landlane.tasks.change import fail_task
from landlane.tasks.model import NewTask
from landlane.tasks.pick import Picked, next_task
from landlane.values import as_dict, replace
from tests.handoffs.test_handoffs import hand
from tests.support.project import MINUTE, SECOND, SQLITE_ONLY, Background, granted, opened

if TYPE_CHECKING:
    from landlane.events.model import RecordedEvent
    from landlane.repository import Repository
    from tests.support.project import Agent, Project

pytestmark = pytest.mark.contract

PLAIN = Settings()
LOUD = Settings(notify=NotifySettings(webhook="http://127.0.0.1:9/", tries=3))
DEAD = replace(MachineProcesses().current(), pid=2**22 - 3)


def kinds(found: list[RecordedEvent]) -> list[str]:
    return [event.kind for event in found]


def put(repo: Repository, noun: str, document: dict[str, object], verb: str) -> None:
    repo.store.change(lambda tx: records.put(tx, noun, document, verb))


def landing(project: Project, state: str, **more: object) -> dict[str, object]:
    now = project.repo().store.wall_of(project.now())
    made = Landing(
        id="L1", branch="one", head="1" * 40, target="main", agent="ann", session="s-1", holder="s-2",
        state=LandingState(state), submitted_at=now, machine="m", home="h",
    )  # fmt: skip
    return as_dict(replace(made, **more))


def at_gate(agent: Agent) -> str:
    add_task(agent.repo, agent.session, NewTask(title="Say y", paths=("src/y.py",)))
    picked = next_task(agent.repo, agent.session)
    assert isinstance(picked, Picked)
    asked = open_task_gate(agent.repo, agent.session, picked.task.id, "approval", "May I?", {})
    return asked.id


@pytest.mark.promise(
    "watch.one-event-per-fact",
    "The same fact is one event, however often and by however many watchers it is seen.",
)
def test_a_fact_is_one_event_for_all_watchers_and_checks(project: Project) -> None:
    ann = project.agent("ann")
    other = project.repo()
    at_gate(ann)
    first = record_store_events(ann.repo, PLAIN)
    assert kinds(first) == ["gate-waiting"]
    assert record_store_events(other, PLAIN) == record_store_events(ann.repo, PLAIN) == []
    assert [event.id for event in events.list_events(other)] == ["E1"]


def test_concurrent_watchers_record_a_fact_once(live_project: Project) -> None:
    ann = live_project.agent("ann")
    at_gate(ann)
    contexts = [live_project.repo() for _ in range(4)]
    watchers = [Background(lambda one=one: record_store_events(one, LOUD)) for one in contexts]
    seen = [event.id for watcher in watchers for event in watcher.result()]
    assert seen == ["E1"]
    senders = [
        Background(lambda one=one: events.claim_sending(one, "E1", "webhook", 1000)) for one in contexts
    ]
    assert sum(sender.result() is not None for sender in senders) == 1


@pytest.mark.promise("watch.changes-nothing", "A watcher writes events and changes nothing else.")
def test_dead_sessions_and_stale_claims_are_reported_and_not_changed(project: Project) -> None:
    ann, bob = project.agent("ann", process=DEAD), project.agent("bob")
    granted(ann.claim("src"))
    granted(bob.claim("docs", ttl_ms=MINUTE))
    watcher = project.repo()
    project.clock.advance(2 * MINUTE)
    before = [entry.kind for entry in watcher.store.entries(0)]  # `project.kinds` would end what is over
    seen = record_store_events(watcher, PLAIN)
    assert sorted((event.kind, event.facts["agent"]) for event in seen) == [
        ("dead-session", "ann"),
        ("stale-claim", "ann"),
        ("stale-claim", "bob"),
    ]
    after = [entry.kind for entry in watcher.store.entries(0)]
    assert after == [*before, *["event.seen"] * 3], "nothing else changed"
    # Another session ends the expired claims: the same facts, and no new events.
    granted(project.agent("eve").claim("src"))
    assert record_store_events(watcher, PLAIN) == []


def test_a_session_that_ended_between_two_checks_is_reported(project: Project) -> None:
    granted(project.agent("ann").claim("docs"))
    record_store_events(project.repo(), PLAIN)
    project.clock.advance(31 * MINUTE)
    eve = project.repo()
    sessions.join(eve, "eve", kind=SessionKind.PERSON)
    granted(project.agent("bob").claim("src"))
    seen = record_store_events(eve, PLAIN)
    assert [(event.kind, event.facts["agent"]) for event in seen] == [
        ("dead-session", "ann"),
        ("stale-claim", "ann"),
    ]


def test_failed_checks_a_paused_queue_and_a_paused_pool_are_reported(project: Project) -> None:
    repo = project.repo()
    put(repo, "landing", landing(project, "queued"), "submitted")
    assert record_store_events(repo, PLAIN) == []
    put(repo, "landing", landing(project, "bounced", code="CHECK_FAILED", reason="make test"), "bounced")
    put(repo, "landing", landing(project, "bounced", id="L2", code="CONFLICT", reason="a"), "bounced")
    assert [event.text for event in record_store_events(repo, PLAIN)] == ["L1 (one of ann) is red: make test"]
    queue = Queue(id="main", target="main", state=QueueState.PAUSED, reason="main is red", code="TARGET_RED")
    put(repo, "queue", as_dict(queue), "paused")
    put(repo, "pool", {"id": "pool", "state": "paused", "paused": "no disk", "paused_at": 5}, "paused")
    assert kinds(record_store_events(repo, PLAIN)) == ["red", "pool"]
    put(repo, "queue", as_dict(replace(queue, code="REWOUND", reason="rewound")), "paused")
    assert kinds(record_store_events(repo, PLAIN)) == ["paused"]
    assert record_store_events(repo, PLAIN) == []


def test_a_queue_without_progress_is_reported_as_stalled_once(project: Project) -> None:
    repo = project.repo()
    put(repo, "landing", landing(project, "queued"), "submitted")
    ann = project.agent("ann")
    add_task(ann.repo, ann.session, NewTask(title="Say y"))
    assert record_store_events(repo, PLAIN) == []
    project.clock.advance(29 * MINUTE)
    assert record_store_events(repo, PLAIN) == []
    project.clock.advance(MINUTE)
    seen = [event for event in record_store_events(repo, PLAIN) if event.kind == "stalled"]
    assert len(seen) == 2
    assert "L1 of ann is the first in line" in seen[0].text
    project.clock.advance(MINUTE)
    assert [event for event in record_store_events(repo, PLAIN) if event.kind == "stalled"] == []


def test_a_waiting_gate_is_reported_then_reminded_of_then_overdue(project: Project) -> None:
    ann = project.agent("ann")
    at_gate(ann)
    put(ann.repo, "landing", landing(project, "held", gate="it changes prices"), "held")
    watcher = project.repo()
    assert kinds(record_store_events(watcher, PLAIN)) == ["gate-waiting"] * 2
    project.clock.advance(61 * MINUTE)
    assert kinds(record_store_events(watcher, PLAIN)) == ["gate-reminder"] * 2
    assert record_store_events(watcher, PLAIN) == [], "a session that waits at a gate is not dead"
    project.clock.advance(23 * 60 * MINUTE)
    assert kinds(record_store_events(watcher, PLAIN)) == ["gate-overdue"] * 2
    assert record_store_events(watcher, PLAIN) == []


def test_a_failing_sending_is_repeated_up_to_the_limit(project: Project) -> None:
    ann = project.agent("ann")
    at_gate(ann)
    (event,) = record_store_events(ann.repo, LOUD)
    waits: list[int] = []
    ended: RecordedEvent | None = event
    for _ in range(3):
        assert events.claim_sending(ann.repo, event.id, "webhook", SECOND) is not None
        assert events.claim_sending(ann.repo, event.id, "webhook", SECOND) is None
        ended = events.end_sending(ann.repo, event.id, "webhook", "it answered 500", 3)
        assert ended is not None
        assert events.claim_sending(ann.repo, event.id, "webhook", SECOND) is None, "not yet"
        waits.append(ended.channels["webhook"]["tries"])
        project.clock.advance(MINUTE)
    assert ended is not None
    assert (waits, ended.channels["webhook"]["state"]) == ([1, 2, 3], "failed")
    (report,) = events.reports_of(ann.repo, [ended])
    assert (report.kind, report.channels) == ("notify-failed", {}), "the report is not sent to any channel"
    assert events.due_events(ann.repo) == []


def test_an_event_is_not_sent_again_after_success_or_an_unknown_result(project: Project) -> None:
    ann = project.agent("ann")
    at_gate(ann)
    (event,) = record_store_events(ann.repo, LOUD)
    assert events.claim_sending(ann.repo, event.id, "webhook", SECOND) is not None
    assert events.settle_abandoned(ann.repo, event.id, "webhook") is None, "it is still being sent"
    project.clock.advance(MINUTE)  # its sender was killed
    lost = events.settle_abandoned(ann.repo, event.id, "webhook")
    assert lost is not None
    assert lost.channels["webhook"]["state"] == "unsure"
    assert kinds(events.reports_of(ann.repo, [lost])) == ["notify-failed"]
    assert events.claim_sending(ann.repo, event.id, "webhook", SECOND) is None
    # The sender was only slow: its late result counts.
    found = events.end_sending(ann.repo, event.id, "webhook", "", 3)
    assert found is not None
    assert found.channels["webhook"]["state"] == "sent"
    assert events.claim_sending(ann.repo, event.id, "webhook", SECOND) is None


def test_only_the_configured_kinds_are_sent(project: Project) -> None:
    ann = project.agent("ann")
    at_gate(ann)
    (event,) = record_store_events(ann.repo, replace(LOUD, notify=replace(LOUD.notify, kinds=("red",))))
    assert (event.state, event.channels) == ("settled", {})


@SQLITE_ONLY
def test_a_rebuilt_store_sends_nothing_twice(project: Project) -> None:
    ann = project.agent("ann")
    at_gate(ann)
    with opened(project) as repo:
        (event,) = record_store_events(repo, LOUD)
        events.claim_sending(repo, event.id, "webhook", SECOND)
        events.end_sending(repo, event.id, "webhook", "", 3)
        repo.settle()
        folder, repository_id = repo.state_folder, repo.store.repository
    project.close()
    rebuild_store(folder, repository_id, ignore_case=False)
    with opened(project) as repo:
        assert events.due_events(repo) == []
        assert [event.id for event in record_store_events(repo, LOUD)] == []


def test_failed_tasks_and_overdue_handoffs_are_reported_once(project: Project) -> None:
    ann = project.agent("ann", settings=Settings(retries=RetrySettings(last="fail")))
    record_store_events(ann.repo, PLAIN)
    for title in ("Say z", "Write the manual"):
        add_task(ann.repo, ann.session, NewTask(title=title, max_attempts=1))
        assert isinstance(next_task(ann.repo, ann.session), Picked)
    fail_task(ann.repo, ann.session, "T1", "it was switched off")
    hand(ann, "T2")
    assert kinds(record_store_events(ann.repo, PLAIN)) == ["dead-letter"]
    assert "T1 (Say z) is given up: its only attempt failed" in events.list_events(ann.repo)[0].text
    project.clock.advance(31 * MINUTE)
    assert "handoff-overdue" in kinds(record_store_events(ann.repo, PLAIN))
    assert not {"handoff-overdue", "dead-letter"} & set(kinds(record_store_events(project.repo(), PLAIN)))
