"""Standing in line: order, yielding, rings, dead waiters and prompt wake-ups, on both stores."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import pytest

from landlane.claims import describe
from landlane.claims.model import Refused
from landlane.claims.to_json import waiter_json
from landlane.claims.wait import list_waiters
from landlane.errors import Malformed, Stale, StoreError
from landlane.sessions import leases, wait_queue
from landlane.settings.model import SessionSettings, Settings
from landlane.store.file_lock import FairLock
from landlane.store.postgres.store import PostgresTransaction
from landlane.store.sqlite import database
from landlane.store.sqlite.store import SqliteTransaction
from landlane.store.wake import WakeReason, WakeSockets
from tests.support.processes import stop_outside_transactions
from tests.support.project import MINUTE, SECOND, SQLITE_ONLY, Background, granted, let_time_pass, refused
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from landlane.claims.model import Claim, Taken
    from landlane.store.interface import Snapshot
    from landlane.store.sqlite.store import SqliteStore
    from tests.support.project import Agent, Project

pytestmark = pytest.mark.contract

LONG_MS = 60 * SECOND  # longer than any test may take


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiters in threads of this process are not passed over because it did not run for a few seconds."""
    monkeypatch.setattr(wait_queue, "ALIVE_MS", 30 * SECOND)


@pytest.fixture
def no_polling(patient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiters look by themselves only every 40 seconds: who is quicker was woken."""
    monkeypatch.setattr(wait_queue, "BEAT_MS", 40 * SECOND)
    monkeypatch.setattr(wait_queue, "ALIVE_MS", 120 * SECOND)


def stand_in_line(
    project: Project, agent: Agent, *patterns: str, wait_ms: int = LONG_MS, is_shared: bool = False
) -> Background[Taken | Refused]:
    """Let an agent wait in a thread, and come back when it stands in line."""
    waiter = Background(lambda: agent.claim(*patterns, wait_ms=wait_ms, is_shared=is_shared))
    wait_until(lambda: agent.name in project.waiting_agents() or not waiter.is_running)
    return waiter


# ----------------------------------------------------------------------------------------------- waking


@pytest.mark.promise(
    "waiting.woken-by-release",
    "A waiting claim is woken when the paths it needs are released.",
)
@pytest.mark.usefixtures("no_polling")
@pytest.mark.parametrize(
    "let_go",
    [lambda ann: ann.release("src"), lambda ann: ann.release(), lambda ann: ann.leave()],
    ids=["release", "release-all", "leave"],
)
def test_a_waiter_is_woken_when_what_it_wants_is_given_back(
    live_project: Project, let_go: Callable[[Agent], object]
) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    first = ann.take("src")
    waiter = stand_in_line(live_project, bob, "src/*.py")

    let_go(ann)

    assert granted(waiter.result(20))[0].token > first.token
    assert live_project.waiting_agents() == []


@pytest.mark.usefixtures("no_polling")
def test_a_waiter_wakes_by_itself_when_the_lease_in_its_way_ends(live_project: Project) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    first = ann.take("src", ttl_ms=SECOND)

    assert granted(bob.claim("src", wait_ms=20 * SECOND))[0].token > first.token


@pytest.mark.usefixtures("no_polling")
def test_a_waiter_behind_another_is_woken_when_that_one_gives_up(live_project: Project) -> None:
    ann, bob, cid = (live_project.agent(name) for name in ("ann", "bob", "cid"))
    ann.take("a")
    before = stand_in_line(live_project, bob, "a", "b", wait_ms=SECOND)
    behind = stand_in_line(live_project, cid, "b")

    assert isinstance(before.result(), Refused)
    granted(behind.result(20))


@pytest.mark.promise(
    "waiting.killed-holders-give-way",
    "A waiter gets the claims of a killed process, even when it was killed during the wait.",
)
def test_a_waiter_gets_what_a_killed_process_held(
    live_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "_GRACE_MS", 0)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    ann = live_project.agent("ann", process=live_project.repo().processes.identify(child.pid))
    ann.take("src")
    waiter = stand_in_line(live_project, live_project.agent("bob"), "src")

    child.kill()
    child.communicate(timeout=30)

    granted(waiter.result(20))
    assert "session.gone" in live_project.kinds()


def test_what_is_free_is_granted_without_standing_in_line(live_project: Project) -> None:
    answer: list[Refused] = []
    bob = live_project.agent("bob")

    granted(bob.claim("src", wait_ms=LONG_MS, on_wait=answer.append))

    assert answer == []


def test_a_waiter_hears_once_what_it_waits_for(live_project: Project) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    ann.take("src")
    answer: list[Refused] = []

    bob.claim("src", wait_ms=1200, on_wait=answer.append)

    assert [refusal.holder for refusal in answer[0].refused] == ["ann"]
    assert len(answer) == 1


def test_threads_that_wake_others_at_once_share_one_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wakes = WakeSockets(str(tmp_path / "wake"))
    listener = wakes.listen()
    original, made, both = socket.socket, [], threading.Barrier(2)

    def make(*words: int) -> socket.socket:
        made.append(original(*words))
        with suppress(threading.BrokenBarrierError):
            both.wait(0.3)  # until another makes one too, if one can
        return made[-1]

    monkeypatch.setattr(socket, "socket", make)
    wakers = [Background(lambda: wakes.wake(WakeReason.ENTRY)) for _ in range(2)]
    for waker in wakers:
        waker.result()

    assert listener.wait(10) == "entry"
    assert [one.getblocking() for one in made] == [False]
    wakes.close()
    listener.close()


# ----------------------------------------------------------------------------------------------- order


@pytest.mark.promise(
    "waiting.first-come-first-served",
    "Waiting claims are granted in the order in which they arrived.",
)
def test_who_came_first_is_served_first(live_project: Project) -> None:
    ann = live_project.agent("ann")
    ann.take("src")
    served: list[str] = []

    def wait_and_pass_on(agent: Agent) -> Claim:
        claim = granted(agent.claim("src/a.py", wait_ms=LONG_MS))[0]
        served.append(agent.name)
        agent.release()
        return claim

    waiters: list[Background[Claim]] = []
    names = [f"w{number}" for number in range(8)]
    for name in names:
        agent = live_project.agent(name)
        waiters.append(Background(lambda agent=agent: wait_and_pass_on(agent)))
        wait_until(lambda name=name: name in live_project.waiting_agents())

    ann.release()

    tokens = [waiter.result().token for waiter in waiters]
    assert served == names
    assert tokens == sorted(tokens)


@pytest.mark.promise(
    "waiting.order-over-sets",
    "The order also holds between sets of patterns that overlap only in part.",
)
def test_the_order_holds_over_sets_that_overlap_only_in_part(live_project: Project) -> None:
    ann, bob, cid, dan = (live_project.agent(name) for name in ("ann", "bob", "cid", "dan"))
    ann.take("src/**", "docs/**")
    first = stand_in_line(live_project, bob, "src/a.py", "docs/a.md")
    second = stand_in_line(live_project, cid, "src/*.py")
    third = stand_in_line(live_project, dan, "docs/*.md", "lib")

    ann.release("docs/**")
    assert live_project.waiting_agents() == ["bob", "cid", "dan"], (
        "bob waits for the whole set, and dan behind him"
    )
    ann.release("src/**")
    head = granted(first.result())
    assert live_project.waiting_agents() == ["cid", "dan"]
    bob.release()

    after = [granted(second.result())[0].token, granted(third.result())[0].token]
    assert max(claim.token for claim in head) < min(after)


def test_nothing_of_the_set_is_held_while_one_waits(live_project: Project) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    ann.take("a")
    waiter = stand_in_line(live_project, bob, "a", "b")

    assert bob.holds() == []
    ann.release()

    assert [claim.pattern for claim in granted(waiter.result())] == ["a", "b"]


@pytest.mark.promise("waiting.newcomers-yield", "A new claim waits behind a queued claim that it overlaps.")
def test_a_newcomer_yields_to_a_waiter_whose_wish_it_overlaps(live_project: Project) -> None:
    ann, bob, cid = (live_project.agent(name) for name in ("ann", "bob", "cid"))
    ann.take("a")
    waiter = stand_in_line(live_project, bob, "a", "b/**")

    refusal = cid.expect_refusal("b/x.py")

    assert (refusal.holder, refusal.session, refusal.held) == ("bob", bob.session.id, "b/**")
    assert refusal.is_waiting
    assert (refusal.waiting, refusal.position) == (("bob",), 2)
    assert refusal.hint == "wait as 2nd in line: landlane claim b/x.py --wait"
    ann.release()
    granted(waiter.result())


@pytest.mark.promise("waiting.others-pass", "A new claim that overlaps no queued claim does not wait.")
def test_a_newcomer_beside_the_line_does_not_wait(live_project: Project) -> None:
    ann, bob, cid = (live_project.agent(name) for name in ("ann", "bob", "cid"))
    ann.take("a")
    waiter = stand_in_line(live_project, bob, "a", "b/*.py")

    cid.take("b/x.ts", "c")
    granted(cid.claim("d", wait_ms=LONG_MS))

    ann.release()
    granted(waiter.result())


def test_sharers_do_not_overtake_one_who_waits_to_be_alone(live_project: Project) -> None:
    ann, bob, cid = (live_project.agent(name) for name in ("ann", "bob", "cid"))
    ann.take("CHANGELOG.md", is_shared=True)
    waiter = stand_in_line(live_project, bob, "CHANGELOG.md")

    assert cid.expect_refusal("CHANGELOG.md", is_shared=True).is_waiting

    ann.release()
    granted(waiter.result())


def test_sharers_do_not_yield_to_waiting_sharers(live_project: Project) -> None:
    ann, bob, cid = (live_project.agent(name) for name in ("ann", "bob", "cid"))
    ann.take("a")
    waiter = stand_in_line(live_project, bob, "a", "CHANGELOG.md", is_shared=True)

    cid.take("CHANGELOG.md", is_shared=True)

    ann.release()
    granted(waiter.result())


def test_a_holder_may_claim_inside_what_it_holds_though_others_wait_for_it(live_project: Project) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    first = ann.take("src")
    waiter = stand_in_line(live_project, bob, "src")

    ann.take("src/api/*.py")
    assert ann.take("src").token == first.token

    ann.release()
    granted(waiter.result())


def test_a_waiter_may_take_other_things_meanwhile(live_project: Project) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    ann.take("src")
    waiter = stand_in_line(live_project, bob, "src", "docs")

    bob.take("lib")
    bob.take("docs")

    ann.release()
    granted(waiter.result())


# ------------------------------------------------------------------------------------------- giving up


@pytest.mark.promise("waiting.every-wait-ends", "A wait ends at its time limit and leaves no trace.")
def test_a_wait_ends_when_its_time_is_up(live_project: Project) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    ann.take("src", task="T1")
    before = time.monotonic()

    outcome = bob.claim("src", wait_ms=300)

    assert isinstance(outcome, Refused)
    assert outcome.code == "WAIT_TIMED_OUT"
    assert (outcome.refused[0].holder, outcome.refused[0].task) == ("ann", "T1")
    assert 0.25 < time.monotonic() - before < 20
    assert live_project.waiting_agents() == []
    assert live_project.rows("waiters_all") == []


def test_without_a_wait_nobody_stands_in_line(live_project: Project) -> None:
    live_project.agent("ann").take("src")
    bob = live_project.agent("bob")

    assert bob.expect_refusal("src").holder == "ann"
    assert live_project.rows("waiters_all") == []


def test_waiting_for_a_part_of_a_set_has_no_meaning(live_project: Project) -> None:
    with pytest.raises(Malformed) as caught:
        live_project.agent("ann").claim("src", is_partial=True, wait_ms=1000)

    assert caught.value.code == "PARTIAL_WAIT"


def test_a_waiter_whose_session_ends_is_told_so(live_project: Project) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    ann.take("src")
    waiter = stand_in_line(live_project, bob, "src")

    live_project.agent("bob").leave()

    with pytest.raises(Stale) as caught:
        waiter.result()
    assert caught.value.code == "SESSION_OVER"
    assert live_project.rows("waiters_all") == []


def test_a_waiter_that_is_interrupted_leaves_the_line(
    live_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    ann.take("src")

    class Interrupting:
        def wait(self, timeout_seconds: float) -> str:
            raise KeyboardInterrupt

        def watch(self, key: str) -> None:
            return

        def close(self) -> None:
            return

    monkeypatch.setattr(bob.repo.store, "listen", Interrupting)
    with pytest.raises(KeyboardInterrupt):
        bob.claim("src", wait_ms=LONG_MS)

    assert live_project.rows("waiters_all") == []


@pytest.mark.promise("waiting.wakes-the-next", "A release wakes the next in line, not everybody who waits.")
@SQLITE_ONLY  # the names of the sockets say what each listener watches
def test_each_waiter_watches_the_one_ahead_of_it(live_project: Project) -> None:
    ann = live_project.agent("ann")
    token = ann.take("src").token
    agents = [live_project.agent(f"bob{number}") for number in range(4)]
    waiters = [stand_in_line(live_project, agent, "src") for agent in agents]
    tickets = [waiter.ticket for waiter in ann.repo.store.view(list_waiters)]
    sockets = live_project.repository / ".git" / "landlane" / "wake"

    def watched() -> list[str]:
        return sorted(name.name.partition(".")[0] for name in sockets.rglob("*-*"))

    wait_until(lambda: watched() == sorted([f"c{token}", *(f"t{ticket}" for ticket in tickets[:-1])]))
    ann.release()
    granted(waiters[0].result())

    wait_until(lambda: len(watched()) == 3 and sum(name.startswith("c") for name in watched()) == 1)
    for agent, waiter in zip(agents, waiters[1:], strict=False):
        agent.release()
        granted(waiter.result())


@pytest.mark.promise(
    "waiting.joining-is-short", "However many wait, other writers do not wait while one more joins them."
)
def test_why_one_waits_is_described_without_keeping_other_writers_waiting(
    live_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    ann.take("src")
    described_in: list[object] = []
    original = describe.refuse_held

    def describe_held(snapshot: Snapshot, *rest: Any) -> object:
        described_in.append(snapshot)
        return original(snapshot, *rest)

    monkeypatch.setattr(describe, "refuse_held", describe_held)
    reported: list[Refused] = []
    waiter = Background(lambda: bob.claim("src", wait_ms=LONG_MS, on_wait=reported.append))
    wait_until(lambda: reported)
    ann.release()

    granted(waiter.result())
    assert reported[0].refused[0].holder == "ann"
    assert described_in
    assert not any(isinstance(one, (SqliteTransaction, PostgresTransaction)) for one in described_in)


def test_one_who_wants_to_be_alone_is_found_behind_many_who_share(live_project: Project) -> None:
    holder, alone = live_project.agent("holder"), live_project.agent("alone")
    holder.claim("src", is_shared=True)
    waiters = [stand_in_line(live_project, alone, "src")]
    sharers = [live_project.agent(f"sharer{number}") for number in range(10)]
    waiters += [stand_in_line(live_project, agent, "src", is_shared=True) for agent in sharers]

    last = live_project.agent("last")
    (refusal,) = refused(last.claim("src", is_shared=True))
    assert refusal.holder == "alone"

    holder.release()
    granted(waiters[0].result())
    assert [waiter.is_running for waiter in waiters[1:]] == [True] * len(sharers)
    alone.release()
    for waiter in waiters[1:]:
        granted(waiter.result())


@SQLITE_ONLY  # a server lets writers of other paths go on
def test_a_busy_store_delays_a_waiter_and_does_not_send_it_away(
    live_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    bob = live_project.agent("bob")
    store = cast("SqliteStore", bob.repo.store)
    monkeypatch.setattr(store, "wait_seconds", 0.05)
    was_busy = threading.Event()
    original = database.busy_error

    def busy_error(*words: Any) -> StoreError:
        was_busy.set()
        return original(*words)

    monkeypatch.setattr(database, "busy_error", busy_error)
    lock = FairLock(store.path + ".lock")
    assert lock.acquire(10)
    waiter = Background(lambda: bob.claim("src", wait_ms=LONG_MS))
    assert was_busy.wait(30)
    assert waiter.is_running
    lock.close()

    granted(waiter.result())


# ----------------------------------------------------------------------------------------------- rings


@pytest.mark.promise(
    "waiting.rings-are-refused",
    "Sessions that would deadlock are refused at once, with the names of the others.",
)
def test_two_who_would_wait_for_each_other_are_told_at_once(live_project: Project) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    ann.take("a")
    bob.take("b")
    waiter = stand_in_line(live_project, ann, "b")

    outcome = bob.claim("a", wait_ms=LONG_MS)

    assert isinstance(outcome, Refused)
    assert (outcome.code, outcome.cycle) == ("WAIT_CYCLE", ("bob", "ann", "bob"))
    assert live_project.waiting_agents() == ["ann"]
    bob.release()
    granted(waiter.result())


def test_a_ring_of_three_is_named_in_order(live_project: Project) -> None:
    ann, bob, cid = (live_project.agent(name) for name in ("ann", "bob", "cid"))
    ann.take("a")
    bob.take("b")
    cid.take("c")
    one = stand_in_line(live_project, ann, "b/**/x")
    two = stand_in_line(live_project, bob, "c")

    outcome = cid.claim("a", wait_ms=LONG_MS)

    assert isinstance(outcome, Refused)
    assert outcome.cycle == ("cid", "ann", "bob", "cid")
    cid.release()
    granted(two.result())
    bob.release()
    granted(one.result())


def test_a_ring_through_the_line_itself_is_found(live_project: Project) -> None:
    ann, bob, cid = (live_project.agent(name) for name in ("ann", "bob", "cid"))
    bob.take("x")
    cid.take("z")
    first = stand_in_line(live_project, ann, "x", "y")
    second = stand_in_line(live_project, cid, "y")  # held by nobody, but ann came before

    outcome = bob.claim("z", wait_ms=LONG_MS)

    assert isinstance(outcome, Refused)
    assert outcome.cycle == ("bob", "cid", "ann", "bob")
    bob.release()
    granted(first.result())
    ann.release()
    granted(second.result())


def test_a_long_line_is_no_ring(live_project: Project) -> None:
    agents = [live_project.agent(f"a{number}") for number in range(5)]
    for number, agent in enumerate(agents):
        agent.take(str(number))
    waiters = [
        stand_in_line(live_project, agent, str(number + 1)) for number, agent in enumerate(agents[:-1])
    ]

    for agent, waiter in zip(reversed(agents), [None, *reversed(waiters)], strict=True):
        if waiter is not None:
            granted(waiter.result())
        agent.release()


# ----------------------------------------------------------------------------------- silence and death

WAITING_PROCESS = """
import sys
from pathlib import Path
from landlane.claims import take as claims, wait as waiting
from landlane.sessions import join as sessions
from landlane.testing.repositories import open_test_repository
repo = open_test_repository(Path(sys.argv[1]), sys.argv[2])
session = sessions.join(repo, "zed").session
request = claims.make_request(repo, (repo.git.pattern_of("src", "literal"),))
waiting.wait_for_claims(repo, session, request, 600_000)
print("granted", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def waiting_process(live_project: Project) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Starts a real process, zed, that waits for src."""
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", WAITING_PROCESS, str(live_project.repository), live_project.place]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        wait_until(lambda: live_project.waiting_agents() == ["zed"] or started[-1].poll() is not None)
        assert started[-1].poll() is None
        return started[-1]

    yield start
    for child in started:
        child.kill()
        child.communicate(timeout=30)


@pytest.mark.promise("waiting.the-killed-are-passed-over", "A killed waiter is skipped after three seconds.")
def test_a_killed_waiter_is_passed_over_after_three_seconds(
    live_project: Project, waiting_process: Callable[[], subprocess.Popen[str]]
) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    ann.take("src")
    child = waiting_process()

    child.kill()
    child.wait(timeout=30)
    (until,) = (row["alive_until"] for row in live_project.rows("waiters_all"))
    assert until - live_project.now() <= 3 * SECOND
    ann.release()

    at_once = bob.claim("src")
    if isinstance(at_once, Refused):
        assert at_once.refused[0].is_waiting, "nobody can know yet that zed is dead"
    else:
        assert live_project.now() >= until, "the machine was so busy that the silence is over"
    let_time_pass(bob.repo.store, 2 * SECOND)
    (claim,) = granted(bob.claim("src", wait_ms=LONG_MS))
    assert 0 <= claim.granted_at - (until - 2 * SECOND) < 5 * SECOND, (
        "one second of looking, and room for a busy machine"
    )


@SQLITE_ONLY  # a server wakes its clients itself
def test_a_killed_waiter_leaves_no_socket_behind(
    live_project: Project, waiting_process: Callable[[], subprocess.Popen[str]]
) -> None:
    ann = live_project.agent("ann")
    ann.take("src")
    child = waiting_process()
    sockets = live_project.repository / ".git/landlane/wake"
    assert len(list(sockets.rglob("*-*"))) == 1

    child.kill()
    child.wait(timeout=30)
    ann.release()

    assert list(sockets.rglob("*-*")) == []


def test_a_stopped_waiter_is_passed_over_and_waits_on_when_it_is_continued(
    live_project: Project, waiting_process: Callable[[], subprocess.Popen[str]]
) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    ann.take("src")
    child = waiting_process()
    stop_outside_transactions(live_project.place, [child.pid])
    ann.release()
    let_time_pass(bob.repo.store, 2 * SECOND)
    granted(bob.claim("src", wait_ms=LONG_MS))

    child.send_signal(signal.SIGCONT)
    wait_until(lambda: live_project.waiting_agents() == ["zed"])
    bob.release()

    assert child.stdout is not None
    assert child.stdout.readline() == "granted\n"


class PausedListener:
    """A listener that sleeps until it is let go: a waiter that does not run for a while."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.asked: list[float] = []

    def wait(self, timeout_seconds: float) -> str:
        self.asked.append(timeout_seconds)
        assert self.go_on.wait(30)
        time.sleep(0.01)
        return ""

    def watch(self, key: str) -> None:
        return

    def close(self) -> None:
        return


@pytest.mark.promise(
    "waiting.the-forgotten-push-nobody-out",
    "A waiter whose entry was dropped queues again and displaces no other.",
)
def test_a_waiter_that_was_forgotten_stands_in_line_again_and_pushes_nobody_out(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    lasting = Settings(sessions=SessionSettings(lease_ms=60 * MINUTE))
    ann, bob, cid = (project.agent(name, settings=lasting) for name in ("ann", "bob", "cid"))
    ann.take("src", ttl_ms=60 * MINUTE)
    sleeper = PausedListener()
    monkeypatch.setattr(bob.repo.store, "listen", lambda: sleeper)
    first = stand_in_line(project, bob, "src", wait_ms=30 * MINUTE)
    wait_until(lambda: sleeper.asked != [])
    project.clock.advance(2 * MINUTE)
    second = stand_in_line(project, cid, "src", wait_ms=30 * MINUTE)
    assert project.waiting_agents() == ["cid"]

    sleeper.go_on.set()

    wait_until(lambda: project.waiting_agents() == ["cid", "bob"])
    ann.release()
    granted(second.result())
    cid.release()
    granted(first.result())


@pytest.mark.promise(
    "waiting.is-a-sign-of-life",
    "Waiting counts as a heartbeat for everything the waiter holds.",
)
def test_waiting_is_a_sign_of_life(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait_queue, "BEAT_MS", 20)
    ann = project.agent("ann", settings=Settings(sessions=SessionSettings(lease_ms=24 * 60 * MINUTE)))
    bob = project.agent("bob")
    ann.take("src", ttl_ms=24 * 60 * MINUTE)
    bob.take("docs", ttl_ms=10 * MINUTE)
    waiter = stand_in_line(project, bob, "src", wait_ms=10 * 60 * MINUTE)

    for _ in range(12):
        project.clock.advance(5 * MINUTE)
        wait_until(lambda: project.waiting_agents() == ["bob"] or not waiter.is_running)

    assert ann.expect_refusal("docs").holder == "bob"
    ann.release()
    granted(waiter.result())


@pytest.mark.promise(
    "waiting.no-busy-waiting",
    "A waiter keeps sleeping when the lease it waits for is renewed.",
)
def test_a_waiter_sleeps_on_when_the_lease_in_its_way_was_renewed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    ann.take("src", ttl_ms=10 * SECOND)
    listener = PausedListener()
    monkeypatch.setattr(bob.repo.store, "listen", lambda: listener)
    waiter = stand_in_line(project, bob, "src", wait_ms=30 * MINUTE)
    wait_until(lambda: listener.asked != [])
    for _ in range(3):
        project.clock.advance(9 * SECOND)
        ann.renew("src")

    listener.go_on.set()
    wait_until(lambda: len(listener.asked) > 5)

    assert min(listener.asked) > 0.5, "it looked again and again without a pause"
    ann.release()
    granted(waiter.result())


@pytest.mark.promise("waiting.no-ghosts-after-a-restart", "No queue entry survives a restart of the machine.")
@SQLITE_ONLY  # a server does not restart with the machines around it
def test_nobody_waits_in_line_over_a_restart_of_the_machine(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    ann.take("src")
    listener = PausedListener()
    monkeypatch.setattr(bob.repo.store, "listen", lambda: listener)
    project.clock.advance(
        9 * MINUTE
    )  # no sign of life is written so soon: the store's time will begin before
    waiter = stand_in_line(project, bob, "src")
    wait_until(lambda: listener.asked != [])
    ann.release()
    project.close()
    project.clock.reboot()

    project.agent("cid").take("src")

    listener.go_on.set()
    with pytest.raises(StoreError):  # it died in the restart, as far as a thread can
        waiter.result()


def test_the_line_is_shown_with_what_each_waits_for(live_project: Project) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    ann.take("src")
    waiter = stand_in_line(live_project, bob, "src/{a,b}", "docs")

    (waiting_bob,) = ann.repo.store.view(list_waiters)
    shown = waiter_json(waiting_bob, ann.repo.store)

    assert (shown["agent"], shown["mode"], shown["patterns"]) == ("bob", "exclusive", ["src/{a,b}", "docs"])
    ann.release()
    granted(waiter.result())
    assert refused(ann.claim("docs"))[0].holder == "bob"
