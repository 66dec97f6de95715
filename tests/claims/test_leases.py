"""How leases end and how signs of life renew them, on both stores and without waiting."""

from __future__ import annotations

import sqlite3
import sys
import threading
from subprocess import Popen
from typing import TYPE_CHECKING

import psycopg
import pytest

from landlane.claims import held
from landlane.claims import take as claims
from landlane.errors import Held, LandlaneError, Stale
from landlane.ids import epoch_of
from landlane.sessions import join as sessions
from landlane.settings.model import SessionSettings, Settings
from landlane.values import replace
from tests.support.project import MINUTE, SECOND, Background, granted, refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.platform.process import Process
    from tests.support.project import Agent, Project

pytestmark = pytest.mark.contract

HOUR = 60 * MINUTE

# ---------------------------------------------------------------------------------------------- ending


@pytest.mark.promise(
    "leases.end-frees",
    "A claim is held until the last moment of its lease and is free after it.",
)
def test_a_claim_is_held_until_the_last_moment_of_its_lease_and_free_then(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    claim = ann.take("src", ttl_ms=10 * SECOND)

    project.clock.advance(10 * SECOND - 1)
    assert bob.expect_refusal("src").until == claim.until
    project.clock.advance(1)

    assert bob.take("src").token > claim.token


@pytest.mark.promise(
    "leases.lapse-is-journaled-once",
    "The expiry of a claim is written to the journal exactly once.",
)
def test_a_lapsed_claim_is_journaled_once(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    claim = ann.take("src", ttl_ms=10 * SECOND)
    project.clock.advance(11 * SECOND)

    for name in ("src", "docs", "lib"):
        bob.take(name)

    lapsed = [entry for entry in project.entries() if entry.kind == "claim.lapsed"]
    assert [(entry.agent, entry.session) for entry in lapsed] == [("ann", ann.session.id)]
    assert lapsed[0].facts() == {"pattern": "src", "token": claim.token}


def test_a_lapsed_claim_with_many_branches_is_journaled_once(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    claim = ann.take("src/{a,b,c}/{x,y}.py", ttl_ms=10 * SECOND)
    project.clock.advance(10 * SECOND)

    bob.take("src")

    assert project.tokens_of("claim.lapsed") == [claim.token]


def test_a_lapsed_claim_is_listed_no_more_even_before_anyone_writes(project: Project) -> None:
    ann = project.agent("ann")
    ann.take("src", ttl_ms=10 * SECOND)
    project.clock.advance(10 * SECOND)

    assert project.claims() == []
    assert ann.check("src/a.py").state == "unclaimed"


def test_short_leases_end_while_long_ones_of_the_same_session_go_on(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    ann.take("short", ttl_ms=10 * SECOND)
    ann.take("long", ttl_ms=20 * MINUTE)
    project.clock.advance(MINUTE)

    bob.take("short")

    assert bob.expect_refusal("long").holder == "ann"
    assert ann.holds() == ["long"]


def test_a_lapse_and_the_next_grant_are_one_change(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    ann.take("src", ttl_ms=10 * SECOND)
    project.clock.advance(10 * SECOND)

    bob.take("src")

    assert project.kinds()[-2:] == ["claim.lapsed", "claim.taken"]


def test_a_hundred_lapsed_sessions_do_not_stand_in_the_way(project: Project) -> None:
    brief = Settings(sessions=SessionSettings(lease_ms=10 * SECOND))
    repo = project.repo(settings=brief)
    for number in range(100):
        sessions.join(repo, f"a{number}")
    project.agent("ann").take("src")
    project.clock.advance(20 * SECOND)
    bob = project.agent("bob")

    for number in range(3):
        bob.take(f"docs/{number}")

    assert project.kinds().count("session.lapsed") == 100
    assert bob.expect_refusal("src").holder == "ann"


def test_a_session_knows_of_its_own_lapse_before_the_sweep_comes_to_it(project: Project) -> None:
    crowd = project.repo(settings=Settings(sessions=SessionSettings(lease_ms=10 * SECOND)))
    for number in range(60):  # more than one sweep looks at
        sessions.join(crowd, f"a{number}")
    ann = project.agent("ann")
    ann.take("src", ttl_ms=11 * SECOND)
    project.clock.advance(12 * SECOND)

    with pytest.raises(Stale) as caught:
        ann.release("src")

    assert caught.value.code == "LEASE_OVER"


def test_what_a_session_wrote_while_it_was_being_ended_holds_nothing(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    claim = ann.take("src")
    ann.leave()
    late = {
        "key": "src",
        "token": claim.token,
        "branch": 0,
        "rest": None,
        "session": ann.session.id,
        "pattern": "src",
        "kind": "literal",
        "mode": "exclusive",
        "ttl_ms": MINUTE,
        "granted_at": project.now(),
        "task": "",
        "note": "",
    }
    bob.repo.store.change(lambda tx: tx.run("claim_add", **late))

    assert project.claims() == []
    bob.take("src/a.py")
    assert [row["session"] for row in project.rows("claims_all")] == [bob.session.id]


# -------------------------------------------------------------------------------------------- renewing


@pytest.mark.promise("leases.life-renews-all", "A heartbeat renews everything that the session holds.")
def test_a_sign_of_life_renews_everything_a_session_holds(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    ann.take("a", ttl_ms=10 * MINUTE)
    ann.take("b/**/c", ttl_ms=20 * MINUTE)
    before = project.entries()
    project.clock.advance(9 * MINUTE)

    ann.authenticate()

    project.clock.advance(10 * MINUTE - 1)
    assert bob.expect_refusal("a").until == project.now() + 1
    project.clock.advance(1)
    bob.take("a")
    assert bob.expect_refusal("b/x/c").until == project.now() + 10 * MINUTE
    assert project.entries()[: len(before)] == before
    after = ["claim.refused", "claim.lapsed", "claim.taken", "claim.refused"]
    assert project.kinds()[len(before) :] == after, "a sign of life is not journaled"


@pytest.mark.promise("leases.every-act-is-life", "Every command of a session counts as a heartbeat.")
@pytest.mark.parametrize(
    "act",
    [
        lambda ann: ann.take("other"),
        lambda ann: ann.renew("src"),
        lambda ann: ann.renew(),
        lambda ann: ann.release("second"),
        lambda ann: ann.authenticate(),
    ],
    ids=["claim", "renew", "renew-all", "release", "show"],
)
def test_every_act_counts_as_a_sign_of_life(project: Project, act: Callable[[Agent], object]) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    ann.take("src", ttl_ms=10 * MINUTE)
    ann.take("second", ttl_ms=10 * MINUTE)
    project.clock.advance(9 * MINUTE)

    act(ann)

    project.clock.advance(9 * MINUTE)
    assert bob.expect_refusal("src").holder == "ann"


def test_a_refused_claim_counts_as_a_sign_of_life(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    ann.take("src", ttl_ms=10 * MINUTE)
    bob.take("docs")
    project.clock.advance(9 * MINUTE)

    ann.expect_refusal("docs")

    project.clock.advance(9 * MINUTE)
    assert bob.expect_refusal("src").holder == "ann"


def test_a_sign_of_life_does_not_bring_back_what_had_lapsed_before(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    ann.take("short", ttl_ms=10 * SECOND)
    ann.take("long", ttl_ms=20 * MINUTE)
    project.clock.advance(MINUTE)

    ann.authenticate()

    assert ann.holds() == ["long"]
    assert project.kinds().count("claim.lapsed") == 1
    bob.take("short")
    assert bob.expect_refusal("long").until == project.now() + 20 * MINUTE


@pytest.mark.promise(
    "leases.ttl-is-a-lower-bound",
    "A claim keeps its full lease however long ago its session was last seen.",
)
def test_a_claim_taken_long_after_the_last_sign_of_life_keeps_its_whole_lease(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    project.clock.advance(9 * MINUTE)  # less than a third of the session's lease: not worth a write
    claim = ann.take("src", ttl_ms=10 * MINUTE)

    assert claim.until == project.now() + 10 * MINUTE
    project.clock.advance(10 * MINUTE - 1)
    assert bob.expect_refusal("src").until == claim.until
    project.clock.advance(1)
    bob.take("src")


def test_renewing_keeps_the_token_and_counts_the_lease_from_now(project: Project) -> None:
    ann = project.agent("ann")
    claim = ann.take("src", ttl_ms=10 * MINUTE, task="T1")
    project.clock.advance(2 * MINUTE)

    (renewed,) = ann.renew("src")

    assert renewed == replace(claim, granted_at=project.now(), until=project.now() + 10 * MINUTE)
    assert project.claims() == [renewed]


def test_renewing_without_a_name_renews_all_that_is_held(project: Project) -> None:
    ann = project.agent("ann")
    ann.take("a", "b", ttl_ms=10 * MINUTE)
    ann.take("a", ttl_ms=10 * MINUTE, is_shared=True)
    ann.take("lost", ttl_ms=SECOND)
    project.clock.advance(2 * MINUTE)

    renewed = ann.renew()

    assert [(claim.pattern, claim.mode) for claim in renewed] == [
        ("a", "exclusive"),
        ("a", "shared"),
        ("b", "exclusive"),
    ]
    assert {claim.until for claim in renewed} == {project.now() + 10 * MINUTE}


@pytest.mark.promise(
    "leases.late-renewal-is-a-new-grant",
    "Renewing an expired claim that is still free is a new grant with a higher token.",
)
def test_renewing_a_lapsed_claim_that_is_free_is_a_new_grant_with_a_higher_token(project: Project) -> None:
    ann = project.agent("ann")
    claim = ann.take("src/**/*.py", ttl_ms=10 * SECOND, is_shared=True)
    project.clock.advance(MINUTE)
    project.agent("bob").take("docs")

    (renewed,) = ann.renew("src/**/*.py")

    assert renewed.token > claim.token
    assert (renewed.pattern, renewed.mode, renewed.ttl_ms) == ("src/**/*.py", "shared", 10 * SECOND)
    assert renewed.until == project.now() + 10 * SECOND
    assert project.kinds()[-1] == "claim.taken"


@pytest.mark.promise(
    "leases.late-renewal-yields",
    "Renewing an expired claim that another session holds fails as stale and names the holder.",
)
def test_renewing_a_lapsed_claim_that_another_holds_is_stale_and_names_the_holder(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    ann.take("src", ttl_ms=10 * SECOND)
    project.clock.advance(10 * SECOND)
    theirs = bob.take("src/*.py")

    with pytest.raises(Stale) as caught:
        ann.renew("src")

    assert (caught.value.code, caught.value.exit_code) == ("LEASE_OVER", 4)
    assert (caught.value.facts["holder"], caught.value.facts["until_at"]) == ("bob", theirs.until)
    assert "bob has claimed src/*.py since" in caught.value.message


def test_renewing_yields_to_another_holder_as_a_whole(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    ann.take("a", ttl_ms=10 * SECOND)
    ann.take("b", ttl_ms=10 * SECOND)
    project.clock.advance(10 * SECOND)
    bob.take("b")

    with pytest.raises(Stale):
        ann.renew("a", "b")

    assert ann.holds() == []


def test_renewing_what_one_never_held_is_refused(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    bob.take("src")

    with pytest.raises(Held) as theirs:
        ann.renew("src")
    with pytest.raises(LandlaneError) as free:
        ann.renew("docs")

    assert (theirs.value.code, theirs.value.exit_code) == ("CLAIM_HELD", 3)
    assert (free.value.code, free.value.exit_code) == ("NOT_HELD", 1)


def test_releasing_a_lapsed_claim_is_stale(project: Project) -> None:
    ann = project.agent("ann")
    ann.take("src", ttl_ms=10 * SECOND)
    project.clock.advance(10 * SECOND)

    with pytest.raises(Stale) as caught:
        ann.release("src")

    assert (caught.value.code, caught.value.exit_code) == ("LEASE_OVER", 4)


@pytest.mark.promise(
    "leases.released-is-forgotten",
    "An expired claim that was taken again and released is no longer reported as expired.",
)
def test_a_lapse_is_forgotten_once_the_claim_was_taken_and_released_again(project: Project) -> None:
    ann = project.agent("ann")
    ann.take("src", ttl_ms=10 * SECOND)
    project.clock.advance(10 * SECOND)
    ann.take("src")
    ann.release("src")

    with pytest.raises(LandlaneError) as caught:
        ann.renew("src")

    assert caught.value.code == "NOT_HELD"
    assert ann.holds() == []


def test_a_sleeper_that_renews_or_releases_everything_is_told_that_nothing_is_left(project: Project) -> None:
    ann = project.agent("ann")
    ann.take("src", ttl_ms=10 * SECOND)
    project.clock.advance(10 * SECOND)

    for act in (ann.renew, ann.release):
        with pytest.raises(Stale) as caught:
            act()
        assert (caught.value.code, caught.value.facts) == ("LEASE_OVER", {"pattern": "src"})


def test_a_session_that_never_held_anything_may_renew_and_release_nothing(project: Project) -> None:
    ann = project.agent("ann")

    assert (ann.renew(), ann.release()) == ((), ())


def test_the_token_of_a_lapsed_claim_opens_nothing(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    claim = ann.take("src", ttl_ms=10 * SECOND)
    project.clock.advance(10 * SECOND)
    bob.take("src")

    with pytest.raises(Stale) as caught:
        ann.check("src/a.py", claim.token)

    assert caught.value.code == "LEASE_OVER"


@pytest.mark.promise(
    "leases.renewals-are-not-overtaken",
    "A renewal that has started is not overtaken by the end of the lease.",
)
@pytest.mark.parametrize("is_claimed_again", [True, False], ids=["claim", "renew"])
def test_a_renewal_that_has_begun_is_not_overtaken_by_the_end_of_the_lease(
    project: Project, monkeypatch: pytest.MonkeyPatch, is_claimed_again: bool
) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    claim = ann.take("src", ttl_ms=10 * SECOND)
    project.clock.advance(10 * SECOND - 1)
    has_begun, may_go_on = threading.Event(), threading.Event()
    module, name = (claims, "_grant") if is_claimed_again else (held, "held_by")
    original = getattr(module, name)

    def slow(*arguments: object) -> object:
        has_begun.set()
        assert may_go_on.wait(30)
        return original(*arguments)

    monkeypatch.setattr(module, name, slow)
    again = (
        (lambda: ann.take("src", ttl_ms=10 * SECOND)) if is_claimed_again else (lambda: ann.renew("src")[0])
    )
    renewal = Background(again)
    assert has_begun.wait(30)
    project.clock.advance(1)  # by now the lease would be over

    rival = Background(lambda: bob.claim("src"))
    rival.join(0.2)
    assert rival.is_running, "it has to wait for the verdict"
    may_go_on.set()

    assert renewal.result().token == claim.token
    assert refused(rival.result())[0].holder == "ann"
    assert [claim.agent for claim in project.claims()] == ["ann"]


@pytest.mark.own_database
def test_a_lapsed_claim_gives_way_even_if_its_session_knows_nothing_of_it(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    ann.take("src", ttl_ms=10 * SECOND)
    with_far_lapse = "UPDATE sessions SET lapses_at = lapses_at + 999999999 WHERE agent = 'ann'"
    if project.is_postgres:
        with psycopg.connect(project.place, options="-c search_path=landlane") as connection:
            connection.execute(with_far_lapse)
    else:
        with sqlite3.connect(project.place) as database:
            database.execute(with_far_lapse)
        database.close()
    project.clock.advance(11 * SECOND)

    bob.take("src")

    assert project.kinds().count("claim.lapsed") == 1


# -------------------------------------------------------------------------------------------- sessions


def test_a_silent_session_ends_with_its_lease(project: Project) -> None:
    ann = project.agent("ann", settings=Settings(sessions=SessionSettings(lease_ms=MINUTE)))
    project.clock.advance(MINUTE)
    project.agent("bob").take("docs")

    assert project.kinds().count("session.lapsed") == 1
    with pytest.raises(Stale) as caught:
        ann.authenticate()
    assert (caught.value.code, caught.value.exit_code) == ("SESSION_OVER", 4)


def test_a_session_that_nobody_swept_away_knows_by_itself_that_it_is_over(project: Project) -> None:
    ann = project.agent("ann", settings=Settings(sessions=SessionSettings(lease_ms=MINUTE)))
    project.clock.advance(MINUTE)

    for act in (lambda: ann.claim("src"), ann.authenticate):
        with pytest.raises(Stale) as caught:
            act()
        assert caught.value.code == "SESSION_OVER"
    assert project.kinds().count("session.lapsed") == 1


def test_a_session_that_is_over_is_not_among_the_living(project: Project) -> None:
    ann = project.agent("ann", settings=Settings(sessions=SessionSettings(lease_ms=MINUTE)))
    bob = project.agent("bob")
    project.clock.advance(MINUTE)

    assert [session.agent for session in sessions.live_sessions(ann.repo)] == ["bob"]
    assert bob.session.ended_at is None


@pytest.mark.promise(
    "leases.long-claim-keeps-the-session",
    "A session lives at least as long as its longest claim.",
)
def test_a_session_with_a_long_claim_lives_as_long_as_the_claim(project: Project) -> None:
    ann = project.agent("ann", settings=Settings(sessions=SessionSettings(lease_ms=MINUTE)))
    bob = project.agent("bob", settings=Settings(sessions=SessionSettings(lease_ms=24 * HOUR)))
    ann.take("src", ttl_ms=2 * HOUR)
    project.clock.advance(2 * HOUR - 1)

    assert bob.expect_refusal("src").holder == "ann"
    assert [session.agent for session in sessions.live_sessions(ann.repo)] == ["ann", "bob"]
    project.clock.advance(1)
    bob.take("src")

    assert project.kinds()[-3:] == ["claim.lapsed", "session.lapsed", "claim.taken"]


def test_a_session_with_a_long_claim_can_still_act_after_its_own_lease(project: Project) -> None:
    ann = project.agent("ann", settings=Settings(sessions=SessionSettings(lease_ms=MINUTE)))
    ann.take("src", ttl_ms=2 * HOUR)
    project.clock.advance(HOUR)

    ann.take("docs")

    assert ann.holds() == ["src", "docs"]


@pytest.mark.promise(
    "leases.sleepers-are-refused",
    "A process that wakes up after its session has ended cannot use that session.",
)
def test_a_sleeper_that_wakes_up_after_its_session_can_do_nothing(project: Project) -> None:
    ann = project.agent("ann")
    ann.take("src")
    project.clock.advance(31 * MINUTE)
    project.agent("bob").take("src")
    acts: list[Callable[[], object]] = [
        lambda: ann.claim("docs"),
        lambda: ann.claim("src", wait_ms=1000),
        lambda: ann.renew("src"),
        ann.renew,
        lambda: ann.release("src"),
        ann.release,
        ann.authenticate,
        ann.leave,
    ]

    for act in acts:
        with pytest.raises(Stale) as caught:
            act()
        assert (caught.value.code, caught.value.exit_code) == ("SESSION_OVER", 4)
    assert [claim.agent for claim in project.claims()] == ["bob"]


# ------------------------------------------------------------------------------------- clocks and boots


@pytest.mark.promise(
    "leases.calendar-does-not-matter",
    "A jump of the system time neither ends nor extends a lease.",
)
@pytest.mark.parametrize("jump_ms", [365 * 24 * HOUR, -365 * 24 * HOUR], ids=["forward", "back"])
def test_a_jump_of_the_calendar_ends_no_lease_and_prolongs_none(project: Project, jump_ms: int) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    ann.take("src", ttl_ms=10 * MINUTE)

    project.clock.jump_wall(jump_ms)

    project.clock.advance(10 * MINUTE - 1)
    assert bob.expect_refusal("src").holder == "ann"
    project.clock.advance(1)
    bob.take("src")


@pytest.mark.promise(
    "leases.restart-keeps-claims",
    "Claims held before a restart of the machine are held after it.",
)
def test_what_was_held_before_a_restart_of_the_machine_is_held_after_it(project: Project) -> None:
    claim = project.agent("ann").take("src", ttl_ms=10 * MINUTE)
    project.clock.advance(MINUTE)
    project.close()
    project.clock.reboot()

    ann, bob = project.agent("ann"), project.agent("bob")

    assert ann.joined.is_new is False
    assert bob.expect_refusal("src").holder == "ann"
    assert ann.take("src", ttl_ms=10 * MINUTE).token == claim.token
    project.clock.advance(10 * MINUTE)
    assert bob.take("src").token > claim.token


def test_tokens_grow_over_a_restart_of_the_machine(project: Project) -> None:
    before = project.agent("ann").take("a", "b", "c")
    project.close()
    project.clock.reboot()

    after = project.agent("ann").take("d")

    assert after.token > before.token
    if not project.is_postgres:  # a server does not restart with the machines around it
        assert epoch_of(after.token) == epoch_of(before.token) + 1


def test_a_restart_never_makes_time_go_back_behind_a_grant(project: Project) -> None:
    ann = project.agent("ann")
    for _ in range(4):
        project.clock.advance(5 * MINUTE)
        ann.take("src", ttl_ms=10 * MINUTE)
    newest = project.now()
    project.close()
    project.clock.reboot(boot_ms=5)

    assert project.now() >= newest


# ------------------------------------------------------------------------------------ gone for certain


@pytest.fixture
def ended_process(project: Project) -> Process:
    """A process that was there and has ended."""
    child = Popen([sys.executable, "-c", "input()"], stdin=-1)
    try:
        return project.repo().processes.identify(child.pid)
    finally:
        child.communicate(timeout=30)


@pytest.mark.promise(
    "leases.the-dead-give-way",
    "The claims of a session whose processes have all died can be taken at once.",
)
def test_a_session_whose_processes_have_died_gives_way_at_once(
    project: Project, ended_process: Process
) -> None:
    ann = project.agent("ann", process=ended_process)
    bob = project.agent("bob")
    claim = ann.take("src", ttl_ms=2 * HOUR)
    project.clock.advance(11 * SECOND)

    assert bob.take("src").token > claim.token

    assert project.kinds()[-3:] == ["claim.lapsed", "session.gone", "claim.taken"]
    with pytest.raises(Stale):
        ann.authenticate()


def test_a_session_seen_a_moment_ago_is_not_taken_for_dead(project: Project, ended_process: Process) -> None:
    ann = project.agent("ann", process=ended_process)
    ann.take("src")
    project.clock.advance(9 * SECOND)

    assert project.agent("bob").expect_refusal("src").holder == "ann"


def test_one_living_process_keeps_a_session(project: Project, ended_process: Process) -> None:
    ann = project.agent("ann", process=ended_process)
    again = project.agent("ann", process=ann.repo.processes.current())
    again.take("src")
    project.clock.advance(MINUTE)

    assert project.agent("bob").expect_refusal("src").holder == "ann"


@pytest.mark.parametrize("field", ["boot_id", "namespace"])
def test_a_process_elsewhere_is_never_taken_for_dead(
    project: Project, ended_process: Process, field: str
) -> None:
    ann = project.agent("ann", process=replace(ended_process, **{field: "elsewhere"}))
    ann.take("src")
    project.clock.advance(MINUTE)

    assert project.agent("bob").expect_refusal("src").holder == "ann"


@pytest.mark.promise("leases.pids-are-reused", "A reused pid is not mistaken for the old process.")
def test_a_pid_that_was_given_to_another_process_is_not_the_old_one(project: Project) -> None:
    current = project.repo().processes.current()
    ann = project.agent("ann", process=replace(current, started=current.started - 1))
    ann.take("src")
    project.clock.advance(MINUTE)

    granted(project.agent("bob").claim("src"))


def test_an_agent_may_join_anew_when_its_old_processes_have_died(
    project: Project, ended_process: Process
) -> None:
    ann = project.agent("ann", process=ended_process)
    ann.repo.secrets.drop("ann", ann.session.id)
    project.clock.advance(MINUTE)

    again = project.agent("ann")

    assert (again.joined.is_new, again.session.generation) == (True, 2)
