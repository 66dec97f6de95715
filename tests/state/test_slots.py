"""Slots: distinct and bindable ports, names, amounts that add up, periods, fair lines and dead holders."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from landlane.errors import Held, LandlaneError, Malformed, Stale
from landlane.platform.free_port import is_port_free
from landlane.sessions import leases, wait_queue
from landlane.sessions.model import Slot
from landlane.settings.model import Settings, SlotSettings
from landlane.setup.rebuild_store import rebuild_store
from landlane.state import slots
from landlane.state.slot_kinds import SlotRefused, SlotTaken
from landlane.testing.repositories import git
from tests.state.crowd import ask_crowd
from tests.support.project import MINUTE, SECOND, SQLITE_ONLY, Background, let_time_pass, opened
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.project import Agent, Project

pytestmark = pytest.mark.contract

LONG_MS = 60 * SECOND
KINDS = Settings(
    slots={
        "gpu": SlotSettings(capacity=24),
        "database": SlotSettings(names=("a", "b")),
        "api": SlotSettings(capacity=60, per_ms=MINUTE),
    }
)
WAITER = """
import sys
from pathlib import Path
from landlane.settings.model import Settings, SlotSettings
from landlane.sessions import join as sessions
from landlane.state import slots
from landlane.testing.repositories import open_test_repository
settings = Settings(slots={"gpu": SlotSettings(capacity=24)})
repo = open_test_repository(Path(sys.argv[1]), sys.argv[2], settings=settings)
bob = sessions.join(repo, "bob").session
slots.take_slot(repo, bob, slots.make_slot_request(repo, "gpu"), 60_000)
"""


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiters in threads of this process are not passed over because it did not run for a few seconds."""
    monkeypatch.setattr(wait_queue, "ALIVE_MS", 30_000)


def ask(
    agent: Agent, kind: str, *, name: str = "", amount: int = 1, wait_ms: int = 0
) -> SlotTaken | SlotRefused:
    request = slots.make_slot_request(agent.repo, kind, name=name, amount=amount)
    return slots.take_slot(agent.repo, agent.session, request, wait_ms)


def take(agent: Agent, kind: str, *, name: str = "", amount: int = 1, wait_ms: int = 0) -> Slot:
    outcome = ask(agent, kind, name=name, amount=amount, wait_ms=wait_ms)
    assert isinstance(outcome, SlotTaken), outcome
    return outcome.slot


def is_refused(agent: Agent, kind: str, *, name: str = "", amount: int = 1) -> SlotRefused:
    outcome = ask(agent, kind, name=name, amount=amount)
    assert isinstance(outcome, SlotRefused), outcome
    return outcome


def free(agent: Agent, slot: Slot) -> Slot:
    return slots.free(agent.repo, agent.session, slot.id)


def held(project: Project, kind: str = "") -> list[tuple[str, str]]:
    return [(slot.agent, slot.id) for slot in slots.list_slots(project.repo(settings=KINDS), kind)]


def stand_in_line(
    project: Project, agent: Agent, kind: str, amount: int = 1
) -> Background[SlotTaken | SlotRefused]:
    waiter = Background(lambda: ask(agent, kind, amount=amount, wait_ms=LONG_MS))
    wait_until(lambda: agent.name in project.waiting_agents() or not waiter.is_running)
    return waiter


def four_free_ports() -> int:
    """The first of four ports in a row that nobody uses now."""
    dice = random.Random()  # other tests look for theirs at the same time
    while True:
        first = dice.randrange(30_000, 32_000)
        if all(is_port_free(first + step) for step in range(4)):
            return first


def can_listen(port: int) -> bool:
    with closing(socket.socket()) as server:
        server.bind(("127.0.0.1", port))
        server.listen()
    return True


# ------------------------------------------------------------------------------------------------- ports


def test_a_port_is_in_the_range_and_can_be_bound(project: Project) -> None:
    slot = take(project.agent("ann"), "port")

    assert 20_000 <= int(slot.place) <= 29_999
    assert can_listen(int(slot.place))
    assert slot.id == f"port:{slot.place}"


def test_asking_twice_gives_the_port_one_holds(project: Project) -> None:
    ann = project.agent("ann")

    first, second = take(ann, "port"), ask(ann, "port")

    assert isinstance(second, SlotTaken)
    assert (second.slot.token, second.slot.place, second.is_new) == (first.token, first.place, False)
    assert project.kinds().count("slot.taken") == 1


def test_names_and_sessions_get_different_ports(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")

    places = {take(ann, "port").place, take(ann, "port", name="web").place, take(bob, "port").place}

    assert len(places) == 3


def test_a_workspace_gets_the_same_port_again(project: Project) -> None:
    ann = project.agent("ann")
    before = take(ann, "port", name="web")
    free(ann, before)
    take(project.agent("bob"), "port")
    ann.leave()

    again = take(project.agent("carl"), "port", name="web")

    assert again.place == before.place
    assert again.token > before.token


def test_two_workspaces_have_ports_of_their_own(project: Project, tmp_path: Path) -> None:
    git(project.repository, "worktree", "add", "--quiet", "-b", "beside", str(tmp_path / "beside"))
    ann = project.agent("ann")
    here = take(ann, "port")
    free(ann, here)
    from tests.support.project import Project as Place

    beside = Place(tmp_path / "beside", project.place, project.clock)
    try:
        there = take(beside.agent("bob"), "port")
    finally:
        beside.close()

    assert there.place != here.place, "a port that another workspace had is left for it"
    assert take(ann, "port").place == here.place


def test_a_port_that_another_program_uses_is_not_given_out(project: Project) -> None:
    first = four_free_ports()
    ann = project.agent("ann", settings=Settings(slots={"port": SlotSettings(range=(first, first + 3))}))
    with closing(socket.socket()) as server:
        server.bind(("127.0.0.1", first + 1))
        server.listen()
        places = [take(ann, "port", name=name).place for name in ("a", "b", "c")]
        refused = is_refused(ann, "port", name="d")

    assert sorted(places) == [str(first + step) for step in (0, 2, 3)]
    assert (refused.left, len(refused.holders)) == (1, 3)
    assert take(ann, "port", name="d").place == str(first + 1)


@pytest.mark.promise(
    "slots.ports-are-distinct-and-free",
    "Ports of different sessions are distinct, and each can be bound.",
)
def test_a_crowd_gets_distinct_ports_that_can_be_bound(live_project: Project) -> None:
    got = ask_crowd(live_project, "port", processes=32, turns=2)

    places = [place for turns in got for place in turns]
    assert len(set(places)) == 64
    assert all(can_listen(int(place)) for place in places)


def test_ports_stay_distinct_when_some_are_freed_and_others_made(project: Project) -> None:
    agents = [project.agent(f"a{number}") for number in range(17)]
    first = {agent.name: take(agent, "port") for agent in agents}
    for agent in agents[:8]:
        free(agent, first[agent.name])

    for agent in agents[:8]:
        take(agent, "port", name="second")

    places = [slot_id for _, slot_id in held(project)]
    assert len(places) == len(set(places)) == 17


# --------------------------------------------------------------------------------------- names and amounts


def test_a_name_is_held_by_one(project: Project) -> None:
    ann, bob, carl = (project.agent(name, settings=KINDS) for name in ("ann", "bob", "carl"))

    assert {take(ann, "database").place, take(bob, "database").place} == {"a", "b"}
    refused = is_refused(carl, "database")

    assert {slot.agent for slot in refused.holders} == {"ann", "bob"}
    assert refused.left == 0
    assert refused.hint == "wait for it: landlane slot take database --wait"


def test_a_certain_name_can_be_asked_for(project: Project) -> None:
    ann, bob = project.agent("ann", settings=KINDS), project.agent("bob", settings=KINDS)
    slot = take(ann, "database", name="b")

    refused = is_refused(bob, "database", name="b")

    assert slot.place == "b"
    assert [one.agent for one in refused.holders] == ["ann"]
    assert take(ann, "database", name="b").token == slot.token
    assert take(bob, "database").place == "a"


def test_amounts_add_up_to_the_capacity(project: Project) -> None:
    ann, bob = project.agent("ann", settings=KINDS), project.agent("bob", settings=KINDS)
    parts = [take(ann, "gpu", amount=8), take(bob, "gpu", amount=8), take(ann, "gpu", amount=7)]

    refused = is_refused(bob, "gpu", amount=2)
    take(bob, "gpu", amount=1)
    free(ann, parts[0])

    assert (refused.left, refused.size) == (1, 24)
    assert take(bob, "gpu", amount=8).amount == 8


def test_an_amount_with_a_name_is_the_same_when_asked_for_again(project: Project) -> None:
    ann = project.agent("ann", settings=KINDS)

    assert take(ann, "gpu", name="train", amount=8).token == take(ann, "gpu", name="train", amount=8).token


def test_what_was_used_comes_back_after_the_period_and_not_before(project: Project) -> None:
    ann, bob = project.agent("ann", settings=KINDS), project.agent("bob", settings=KINDS)
    free(ann, take(ann, "api", amount=40))
    project.clock.advance(30 * SECOND)
    take(ann, "api", amount=20)
    ann.leave()

    refused = is_refused(bob, "api")
    project.clock.advance(30 * SECOND)

    assert refused.left == 0
    wait = "landlane slot take api --amount 1 --wait"
    assert refused.hint == f"some of it is free again in 30 s: {wait}"
    assert take(bob, "api", amount=40).until == project.now() + MINUTE
    is_refused(bob, "api")


def test_what_was_taken_and_not_used_is_there_again_at_once(project: Project) -> None:
    ann, bob = project.agent("ann", settings=KINDS), project.agent("bob", settings=KINDS)
    slots.return_unused(ann.repo, ann.session, [take(ann, "api", amount=40), take(ann, "gpu", amount=8)])

    assert slots.count_in_use(bob.repo) == {}
    free(bob, take(bob, "api", amount=60))
    assert slots.count_in_use(ann.repo) == {"api": 60}


@pytest.mark.parametrize(
    ("kind", "name", "amount", "code"),
    [
        ("gpus", "", 1, "UNKNOWN_KIND"),
        ("gpu", "", 25, "AMOUNT_OUT_OF_RANGE"),
        ("gpu", "", 0, "AMOUNT_OUT_OF_RANGE"),
        ("port", "", 2, "AMOUNT_OUT_OF_RANGE"),
        ("database", "c", 1, "UNKNOWN_SLOT"),
        ("port", "x\n", 1, "BAD_SLOT_NAME"),
    ],
)
def test_what_can_never_be_had_is_refused_at_once(
    project: Project, kind: str, name: str, amount: int, code: str
) -> None:
    ann = project.agent("ann", settings=KINDS)
    with pytest.raises(Malformed) as answer:
        ask(ann, kind, name=name, amount=amount)
    assert answer.value.code == code
    assert held(project) == []


def test_an_unknown_kind_is_answered_with_the_known_ones(project: Project) -> None:
    with pytest.raises(Malformed) as answer:
        ask(project.agent("ann", settings=KINDS), "gpus")
    assert answer.value.facts["known"] == ["api", "database", "gpu", "port"]


# ------------------------------------------------------------------------------------------------ freeing


def test_a_slot_is_freed_by_its_holder_alone(project: Project) -> None:
    ann, bob = project.agent("ann", settings=KINDS), project.agent("bob", settings=KINDS)
    slot = take(ann, "gpu")

    with pytest.raises(Held) as answer:
        free(bob, slot)
    freed = free(ann, slot)
    with pytest.raises(LandlaneError) as again:
        free(ann, slot)

    assert (answer.value.facts["holder"], again.value.code) == ("ann", "NOT_HELD")
    assert freed.token == slot.token


@pytest.mark.promise("slots.end-with-the-session", "A slot is released no later than its session ends.")
def test_slots_end_with_their_session(project: Project) -> None:
    ann, bob = project.agent("ann", settings=KINDS), project.agent("bob", settings=KINDS)
    take(ann, "gpu", amount=24)
    ann.leave()
    take(bob, "gpu", amount=24)
    project.clock.advance(31 * MINUTE)

    assert held(project) == []
    take(project.agent("carl", settings=KINDS), "gpu", amount=24)
    with pytest.raises(Stale):
        take(bob, "gpu")


def test_a_slot_lives_as_long_as_its_session_shows_signs_of_life(project: Project) -> None:
    ann = project.agent("ann", settings=KINDS)
    take(ann, "gpu")
    for _ in range(4):
        project.clock.advance(20 * MINUTE)
        ann.authenticate()

    assert held(project, "gpu") != []


def test_taking_and_freeing_are_entries_with_the_same_token(project: Project) -> None:
    ann = project.agent("ann", settings=KINDS)
    slot = take(ann, "gpu", amount=3)
    take(ann, "database")
    free(ann, slot)
    ann.leave()

    answer = {kind: project.tokens_of(kind) for kind in ("slot.taken", "slot.freed")}

    assert answer["slot.taken"][0] == answer["slot.freed"][0] == slot.token
    assert sorted(answer["slot.taken"]) == sorted(answer["slot.freed"])


def test_a_killed_holder_loses_its_slot(live_project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "_GRACE_MS", 0)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = live_project.repo().processes.identify(child.pid)
    ann = live_project.agent("ann", settings=KINDS, process=process)
    bob = live_project.agent("bob", settings=KINDS)
    take(ann, "gpu", amount=24)
    is_refused(bob, "gpu")
    waiter = stand_in_line(live_project, bob, "gpu", 24)

    child.kill()
    child.communicate(timeout=30)

    assert isinstance(waiter.result(20), SlotTaken)
    assert "session.gone" in live_project.kinds()


# ---------------------------------------------------------------------------------------------- the line


def test_a_waiter_is_woken_when_a_slot_is_freed(
    live_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Waiters look by themselves only every 40 seconds: who is quicker was woken.
    monkeypatch.setattr(wait_queue, "BEAT_MS", 40_000)
    monkeypatch.setattr(wait_queue, "ALIVE_MS", 120_000)
    ann, bob = live_project.agent("ann", settings=KINDS), live_project.agent("bob", settings=KINDS)
    slot = take(ann, "gpu", amount=24)
    waiter = stand_in_line(live_project, bob, "gpu", 24)

    free(ann, slot)

    assert isinstance(waiter.result(20), SlotTaken)
    assert live_project.waiting_agents() == []


@pytest.mark.promise(
    "slots.no-starving",
    "A large request at the head of the queue is not starved by small ones.",
)
def test_a_large_wish_at_the_head_is_not_starved_by_small_ones(live_project: Project) -> None:
    ann, bob, carl = (live_project.agent(name, settings=KINDS) for name in ("ann", "bob", "carl"))
    first, second = take(ann, "gpu", amount=12), take(ann, "gpu", amount=8)
    waiter = stand_in_line(live_project, bob, "gpu", 20)

    refused = is_refused(carl, "gpu", amount=1)
    free(ann, first)
    is_refused(carl, "gpu", amount=1)
    free(ann, second)

    assert refused.waiters == ("bob",)
    assert isinstance(waiter.result(20), SlotTaken)
    take(carl, "gpu", amount=4)


def test_who_came_first_is_served_first(live_project: Project) -> None:
    ann = live_project.agent("ann", settings=KINDS)
    slot = take(ann, "gpu", amount=24)
    served: list[str] = []

    def wait_and_pass_on(agent: Agent) -> int:
        mine = take(agent, "gpu", amount=20, wait_ms=LONG_MS)
        served.append(agent.name)
        free(agent, mine)
        return mine.token

    waiters: list[Background[int]] = []
    names = [f"w{number}" for number in range(5)]
    for name in names:
        agent = live_project.agent(name, settings=KINDS)
        waiters.append(Background(lambda agent=agent: wait_and_pass_on(agent)))
        wait_until(lambda name=name: name in live_project.waiting_agents())

    free(ann, slot)

    tokens = [waiter.result(30) for waiter in waiters]
    assert served == names
    assert tokens == sorted(tokens)


def test_a_dead_waiter_is_passed_over(live_project: Project) -> None:
    ann, carl = live_project.agent("ann", settings=KINDS), live_project.agent("carl", settings=KINDS)
    slot = take(ann, "gpu", amount=24)
    words = [sys.executable, "-c", WAITER, str(live_project.repository), live_project.place]
    bob = subprocess.Popen(words)
    wait_until(lambda: "bob" in live_project.waiting_agents())
    waiter = stand_in_line(live_project, carl, "gpu", 24)
    bob.kill()
    bob.wait(30)

    free(ann, slot)
    let_time_pass(ann.repo.store, 2 * SECOND)

    assert isinstance(waiter.result(15), SlotTaken)


def test_waiting_for_one_name_does_not_keep_others_from_another(live_project: Project) -> None:
    ann, bob, carl = (live_project.agent(name, settings=KINDS) for name in ("ann", "bob", "carl"))
    slot = take(ann, "database", name="a")
    waiter = Background(lambda: ask(bob, "database", name="a", wait_ms=LONG_MS))
    wait_until(lambda: "bob" in live_project.waiting_agents())

    assert take(carl, "database").place == "b"
    free(ann, slot)

    outcome = waiter.result(20)
    assert isinstance(outcome, SlotTaken)
    assert outcome.slot.place == "a"


def test_waiting_ends_when_the_time_is_up(live_project: Project) -> None:
    ann, bob = live_project.agent("ann", settings=KINDS), live_project.agent("bob", settings=KINDS)
    take(ann, "gpu", amount=24)

    outcome = ask(bob, "gpu", wait_ms=300)

    assert isinstance(outcome, SlotRefused)
    assert outcome.code == "WAIT_TIMED_OUT"
    assert live_project.waiting_agents() == []


@pytest.mark.slow
def test_a_waiter_gets_what_comes_back_with_time(live_project: Project) -> None:
    quick = Settings(slots={"api": SlotSettings(capacity=2, per_ms=SECOND)})
    ann, bob = live_project.agent("ann", settings=quick), live_project.agent("bob", settings=quick)
    take(ann, "api", amount=2)

    assert take(bob, "api", amount=2, wait_ms=20 * SECOND).amount == 2


def test_waiting_for_a_slot_is_in_nobodys_way_who_claims(live_project: Project) -> None:
    ann, bob, carl = (live_project.agent(name, settings=KINDS) for name in ("ann", "bob", "carl"))
    slot = take(ann, "gpu", amount=24)
    waiter = stand_in_line(live_project, bob, "gpu")

    carl.take(".")
    carl.take("slot:gpu")
    free(ann, slot)

    assert isinstance(waiter.result(20), SlotTaken)


# -------------------------------------------------------------------------------------------- rebuilding


@SQLITE_ONLY
def test_a_rebuilt_store_knows_who_holds_what(project: Project) -> None:
    ann = project.agent("ann", settings=KINDS)
    port = take(ann, "port", name="web")
    free(ann, take(ann, "gpu", amount=20))
    take(ann, "gpu", amount=4)
    with opened(project) as repo:
        repo.settle()
        folder, repository_id = repo.state_folder, repo.store.repository
    before = held(project)
    project.close()

    rebuild_store(folder, repository_id, ignore_case=False)

    assert held(project) == before
    ann = project.agent("ann", settings=KINDS)
    assert take(ann, "port", name="web").token == port.token
    take(ann, "gpu", amount=20)
    is_refused(ann, "gpu")
