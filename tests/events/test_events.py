"""Events in the store: each fact once, nothing else is changed, each sending in one hand; on both stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.events import records as events
from landlane.events.detect_in_store import observe
from landlane.gates import ask as gates
from landlane.landing.model import Landing, LandingState, Queue
from landlane.platform.process_identity import MachineProcesses
from landlane.sessions import join as sessions
from landlane.sessions.model import SessionKind
from landlane.settings.model import NotifySettings, Settings
from landlane.setup.rebuild_store import rebuild_store
from landlane.store import records
from landlane.tasks.add import add_task
from landlane.tasks.change import fail_task
from landlane.tasks.model import NewTask
from landlane.tasks.pick import Picked, next_task
from landlane.values import as_dict, replace
from tests.handoffs.test_handoffs import hand
from tests.support.sites import MINUTE, SECOND, SQLITE_ONLY, Background, granted, opened

if TYPE_CHECKING:
    from landlane.events.model import Event
    from landlane.repository import Repository
    from tests.support.sites import Agent, Site

pytestmark = pytest.mark.contract

PLAIN = Settings()
LOUD = Settings(notify=NotifySettings(webhook="http://127.0.0.1:9/", tries=3))
DEAD = replace(MachineProcesses().current(), pid=2**22 - 3)


def kinds(found: list[Event]) -> list[str]:
    return [event.kind for event in found]


def put(repo: Repository, noun: str, document: dict[str, object], verb: str) -> None:
    repo.store.change(lambda tx: records.put(tx, noun, document, verb))


def landing(site: Site, state: str, **more: object) -> dict[str, object]:
    now = site.repo().store.wall_of(site.now())
    made = Landing(
        id="L1", branch="one", head="1" * 40, target="main", agent="ann", session="s-1", holder="s-2",
        state=LandingState(state), submitted_at=now, machine="m", home="h",
    )  # fmt: skip
    return as_dict(replace(made, **more))


def at_gate(agent: Agent) -> str:
    add_task(agent.repo, agent.session, NewTask(title="Say y", paths=("src/y.py",)))
    picked = next_task(agent.repo, agent.session)
    assert isinstance(picked, Picked)
    asked = gates.ask(agent.repo, agent.session, picked.task.id, "approval", "May I?", {})
    return asked.id


@pytest.mark.promise(
    "watch.one-event-per-fact",
    "The same fact is one event, however often and by however many watchers it is seen.",
)
def test_a_fact_is_one_event_however_often_and_by_whomever_it_is_seen(site: Site) -> None:
    ann = site.agent("ann")
    other = site.repo()
    at_gate(ann)
    first = observe(ann.repo, PLAIN)
    assert kinds(first) == ["gate-waiting"]
    assert observe(other, PLAIN) == observe(ann.repo, PLAIN) == []
    assert [event.id for event in events.list_events(other)] == ["E1"]


def test_two_watchers_at_the_same_moment_write_it_once(live_site: Site) -> None:
    ann = live_site.agent("ann")
    at_gate(ann)
    contexts = [live_site.repo() for _ in range(4)]
    watchers = [Background(lambda one=one: observe(one, LOUD)) for one in contexts]
    seen = [event.id for watcher in watchers for event in watcher.result()]
    assert seen == ["E1"]
    senders = [
        Background(lambda one=one: events.claim_sending(one, "E1", "webhook", 1000)) for one in contexts
    ]
    assert sum(sender.result() is not None for sender in senders) == 1


@pytest.mark.promise("watch.changes-nothing", "A watcher writes events and changes nothing else.")
def test_the_dead_and_the_stale_are_seen_and_left_alone(site: Site) -> None:
    ann, bob = site.agent("ann", process=DEAD), site.agent("bob")
    granted(ann.claim("src"))
    granted(bob.claim("docs", ttl_ms=MINUTE))
    watcher = site.repo()
    site.clock.advance(2 * MINUTE)
    before = [entry.kind for entry in watcher.store.entries(0)]  # `site.kinds` would end what is over
    seen = observe(watcher, PLAIN)
    assert sorted((event.kind, event.facts["agent"]) for event in seen) == [
        ("dead-session", "ann"),
        ("stale-claim", "ann"),
        ("stale-claim", "bob"),
    ]
    after = [entry.kind for entry in watcher.store.entries(0)]
    assert after == [*before, *["event.seen"] * 3], "nothing else was changed"
    # Somebody works and ends what is over: the same facts, and no new events.
    granted(site.agent("eve").claim("src"))
    assert observe(watcher, PLAIN) == []


def test_who_was_ended_between_two_looks_is_seen_all_the_same(site: Site) -> None:
    granted(site.agent("ann").claim("docs"))
    observe(site.repo(), PLAIN)
    site.clock.advance(31 * MINUTE)
    eve = site.repo()
    sessions.join(eve, "eve", kind=SessionKind.PERSON)
    granted(site.agent("bob").claim("src"))
    seen = observe(eve, PLAIN)
    assert [(event.kind, event.facts["agent"]) for event in seen] == [
        ("dead-session", "ann"),
        ("stale-claim", "ann"),
    ]


def test_red_checks_a_paused_queue_and_a_paused_pool_are_seen(site: Site) -> None:
    repo = site.repo()
    put(repo, "landing", landing(site, "queued"), "submitted")
    assert observe(repo, PLAIN) == []
    put(repo, "landing", landing(site, "bounced", code="CHECK_FAILED", reason="make test"), "bounced")
    put(repo, "landing", landing(site, "bounced", id="L2", code="CONFLICT", reason="a"), "bounced")
    assert [event.text for event in observe(repo, PLAIN)] == ["L1 (one of ann) is red: make test"]
    queue = Queue(id="main", target="main", state="paused", reason="main is red", code="TARGET_RED")
    put(repo, "queue", as_dict(queue), "paused")
    put(repo, "pool", {"id": "pool", "state": "paused", "paused": "no disk", "paused_at": 5}, "paused")
    assert kinds(observe(repo, PLAIN)) == ["red", "pool"]
    put(repo, "queue", as_dict(replace(queue, code="REWOUND", reason="rewound")), "paused")
    assert kinds(observe(repo, PLAIN)) == ["paused"]
    assert observe(repo, PLAIN) == []


def test_a_queue_in_which_nothing_moves_is_stalled_once(site: Site) -> None:
    repo = site.repo()
    put(repo, "landing", landing(site, "queued"), "submitted")
    ann = site.agent("ann")
    add_task(ann.repo, ann.session, NewTask(title="Say y"))
    assert observe(repo, PLAIN) == []
    site.clock.advance(29 * MINUTE)
    assert observe(repo, PLAIN) == []
    site.clock.advance(MINUTE)
    seen = [event for event in observe(repo, PLAIN) if event.kind == "stalled"]
    assert len(seen) == 2
    assert "L1 of ann is the first in line" in seen[0].text
    site.clock.advance(MINUTE)
    assert [event for event in observe(repo, PLAIN) if event.kind == "stalled"] == []


def test_who_waits_for_a_person_is_told_again_and_then_overdue(site: Site) -> None:
    ann = site.agent("ann")
    at_gate(ann)
    put(ann.repo, "landing", landing(site, "held", gate="it changes prices"), "held")
    watcher = site.repo()
    assert kinds(observe(watcher, PLAIN)) == ["gate-waiting"] * 2
    site.clock.advance(61 * MINUTE)
    assert kinds(observe(watcher, PLAIN)) == ["gate-reminder"] * 2
    assert observe(watcher, PLAIN) == [], "whoever rests at a gate is not dead"
    site.clock.advance(23 * 60 * MINUTE)
    assert kinds(observe(watcher, PLAIN)) == ["gate-overdue"] * 2
    assert observe(watcher, PLAIN) == []


def test_a_sending_that_fails_is_made_again_later_and_given_up(site: Site) -> None:
    ann = site.agent("ann")
    at_gate(ann)
    (event,) = observe(ann.repo, LOUD)
    waits: list[int] = []
    ended: Event | None = event
    for _ in range(3):
        assert events.claim_sending(ann.repo, event.id, "webhook", SECOND) is not None
        assert events.claim_sending(ann.repo, event.id, "webhook", SECOND) is None
        ended = events.end_sending(ann.repo, event.id, "webhook", "it answered 500", 3)
        assert ended is not None
        assert events.claim_sending(ann.repo, event.id, "webhook", SECOND) is None, "not yet"
        waits.append(ended.channels["webhook"]["tries"])
        site.clock.advance(MINUTE)
    assert ended is not None
    assert (waits, ended.channels["webhook"]["state"]) == ([1, 2, 3], "failed")
    (report,) = events.reports_of(ann.repo, [ended])
    assert (report.kind, report.channels) == ("notify-failed", {}), "it is sent to nobody itself"
    assert events.due_events(ann.repo) == []


def test_what_got_there_is_never_sent_again_nor_what_nobody_knows_of(site: Site) -> None:
    ann = site.agent("ann")
    at_gate(ann)
    (event,) = observe(ann.repo, LOUD)
    assert events.claim_sending(ann.repo, event.id, "webhook", SECOND) is not None
    assert events.settle_abandoned(ann.repo, event.id, "webhook") is None, "it is still being sent"
    site.clock.advance(MINUTE)  # its sender was killed
    lost = events.settle_abandoned(ann.repo, event.id, "webhook")
    assert lost is not None
    assert lost.channels["webhook"]["state"] == "unsure"
    assert kinds(events.reports_of(ann.repo, [lost])) == ["notify-failed"]
    assert events.claim_sending(ann.repo, event.id, "webhook", SECOND) is None
    # It was only slow: what it says in the end counts.
    found = events.end_sending(ann.repo, event.id, "webhook", "", 3)
    assert found is not None
    assert found.channels["webhook"]["state"] == "sent"
    assert events.claim_sending(ann.repo, event.id, "webhook", SECOND) is None


def test_only_the_kinds_somebody_wants_are_sent(site: Site) -> None:
    ann = site.agent("ann")
    at_gate(ann)
    (event,) = observe(ann.repo, replace(LOUD, notify=replace(LOUD.notify, kinds=("red",))))
    assert (event.state, event.channels) == ("settled", {})


@SQLITE_ONLY
def test_a_rebuilt_store_sends_nothing_twice(site: Site) -> None:
    ann = site.agent("ann")
    at_gate(ann)
    with opened(site) as repo:
        (event,) = observe(repo, LOUD)
        events.claim_sending(repo, event.id, "webhook", SECOND)
        events.end_sending(repo, event.id, "webhook", "", 3)
        repo.settle()
        folder, repository_id = repo.state_folder, repo.store.repository
    site.close()
    rebuild_store(folder, repository_id, ignore_case=False)
    with opened(site) as repo:
        assert events.due_events(repo) == []
        assert [event.id for event in observe(repo, LOUD)] == []


def test_dead_letters_and_handoffs_that_nobody_came_for_are_seen_once(site: Site) -> None:
    ann = site.agent("ann")
    observe(ann.repo, PLAIN)
    for title in ("Say z", "Write the manual"):
        add_task(ann.repo, ann.session, NewTask(title=title, max_attempts=1))
        assert isinstance(next_task(ann.repo, ann.session), Picked)
    fail_task(ann.repo, ann.session, "T1", "it was switched off")
    hand(ann, "T2")
    assert kinds(observe(ann.repo, PLAIN)) == ["dead-letter"]
    assert "T1 (Say z) is given up: its only attempt failed" in events.list_events(ann.repo)[0].text
    site.clock.advance(31 * MINUTE)
    assert "handoff-overdue" in kinds(observe(ann.repo, PLAIN))
    assert not {"handoff-overdue", "dead-letter"} & set(kinds(observe(site.repo(), PLAIN)))
