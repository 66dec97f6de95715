"""Bounded retries on both stores: lineages, stops, pauses, dead letters, and the pool that pauses itself."""

from __future__ import annotations

import threading

import pytest

from landlane.errors import NotAllowed, Stale
from landlane.gates.decide import answer_gate
from landlane.gates.open import open_task_gate
from landlane.gates.records import list_gates
from landlane.landing import outcomes as landing_ends
from landlane.landing.model import Rejection
from landlane.sessions import join as sessions
from landlane.sessions.model import SessionKind
from landlane.settings.model import RetrySettings, SessionSettings, Settings
from landlane.setup.rebuild_store import rebuild_store
from landlane.tasks.change import block_task, drop_task, fail_task, hand_back, retry_task
from landlane.tasks.finish import report_done
from landlane.tasks.lineage import allow_split_in, held_in, lineage_of
from landlane.tasks.pick import Picked, next_task, take_task
from landlane.tasks.records import get_task, lessons_of, list_tasks
from landlane.tasks.retry import end_attempt
from landlane.tasks.retry_rules import AttemptEnd, Lineage, RetryDecision
from landlane.tasks.worker_pool import (
    Pool,
    get_pool,
    note_infrastructure_in,
    note_rate_limit,
    note_success,
    pause_pool,
    resume_pool,
)
from landlane.values import replace
from tests.landing.test_landings import enter, run_by
from tests.support.project import MINUTE, SECOND, SQLITE_ONLY, Agent, Background, Project, opened
from tests.support.tasks import add, expect_no_task, finish_task, state, take, try_to_add

pytestmark = [pytest.mark.contract, pytest.mark.on_disk]

HOUR = 60 * MINUTE


@pytest.fixture(autouse=True)
def _full_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("landlane.tasks.retry._random_share", lambda: 1.0)


LONG = Settings(sessions=SessionSettings(lease_ms=6 * 24 * HOUR))


def ends(agent: Agent, task_id: str, feedback: str, code: str = "failed", **more: object) -> RetryDecision:
    """The attempt in hand ended so."""
    how = AttemptEnd(code=code, feedback=feedback, **more)  # type: ignore[arg-type]
    return end_attempt(agent.repo, agent.session, task_id, how)


def person(project: Project) -> Agent:
    repo = project.repo()
    return Agent(repo, sessions.join(repo, "pat", kind=SessionKind.PERSON))


def lineage(agent: Agent, task_id: str) -> Lineage:
    return lineage_of(agent.repo, get_task(agent.repo, task_id))


def try_to_take(agent: Agent) -> str:
    outcome = next_task(agent.repo, agent.session)
    return outcome.task.id if isinstance(outcome, Picked) else ""


# ------------------------------------------------------------------------------------ what was seen elsewhere


@pytest.mark.promise(
    "retries.starts-are-bounded",
    "A task that always fails to start is started a few times and then needs a person.",
)
def test_t24_a_task_that_never_starts_is_tried_a_few_times_in_70_hours(project: Project) -> None:
    ann = project.agent("ann", settings=LONG)
    add(ann, "a")
    starts = 0
    for _ in range(70 * 6):
        if try_to_take(ann):
            starts += 1
            ends(
                ann, "T1", f"spawn failed: pid {starts} has no socket", "not_started", is_infrastructure=True
            )
        project.clock.advance(10 * MINUTE)
    assert starts == Settings().retries.max_starts
    parked = get_task(ann.repo, "T1")
    assert (parked.state, parked.failures) == ("waiting_for_person", 0)
    assert "could not be started 5 times in a row" in parked.why
    assert lineage(ann, "T1").attempts == 0
    (gate,) = list_gates(ann.repo)
    assert gate.task == "T1"
    assert "spawn failed" in str(gate.evidence["history"])


@pytest.mark.promise(
    "retries.idle-success-is-bounded",
    "Attempts that succeed without changing anything are stopped after a few.",
)
def test_t25_a_task_that_changes_nothing_is_parked_after_k_runs(project: Project) -> None:
    settings = replace(LONG, retries=RetrySettings(max_idle=3))
    ann = project.agent("ann", settings=settings)
    add(ann, "a", max_attempts=100)
    runs = 0
    for _ in range(81):
        if try_to_take(ann):
            runs += 1
            ends(ann, "T1", f"all {runs} of it is done", "no_change")
        project.clock.advance(HOUR)
    assert runs == 3
    assert state(project, "T1") == "waiting_for_person"
    assert "3 times in a row without a change" in get_task(ann.repo, "T1").why


@pytest.mark.promise(
    "retries.new-ids-begin-no-new-budget",
    "Children and follow-ups share the budget of the task they come from.",
)
@pytest.mark.parametrize("same", [True, False], ids=["same feedback", "new feedback each time"])
def test_t26_five_steps_never_become_97_records(project: Project, same: bool) -> None:
    """Each failure gives birth to a new task instead of another attempt at the old one."""
    ann = project.agent("ann", settings=replace(LONG, retries=replace(LONG.retries, last="fail")))
    for number in range(5):
        add(ann, f"step {number}", max_attempts=1)
    refused: list[str] = []
    for round_ in range(200):
        task_id = try_to_take(ann)
        if not task_id:
            break
        word = "no such endpoint" if same else f"trouble {'x' * round_}"
        ends(ann, task_id, word)
        try:
            add(ann, f"again: {task_id}", parent=task_id, max_attempts=1)
        except NotAllowed as error:
            refused.append(error.code)
    found = list_tasks(ann.repo)
    assert refused == ["LINEAGE_STOPPED"] * 5
    assert len(found) <= 5 * Settings().retries.max_attempts
    assert {task.lineage for task in found} == {"T1", "T2", "T3", "T4", "T5"}
    assert {task.state for task in found} == {"dead"}


def test_t26_children_that_only_ever_succeed_are_bounded_too(project: Project) -> None:
    ann = project.agent("ann", settings=Settings(retries=RetrySettings(max_tasks=8)))
    add(ann, "first")
    for _ in range(8):
        task_id = take(ann).task.id
        add(ann, f"one more after {task_id}", parent=task_id)
        finish_task(ann, task_id)
    with pytest.raises(NotAllowed) as full:
        add(ann, "one too many", parent="T9")
    assert full.value.code == "LINEAGE_FULL"
    assert len(list_tasks(ann.repo)) == 9


@pytest.mark.promise(
    "retries.broken-environment-charges-nobody",
    "The same start failure on three tasks pauses the worker pool, and no attempt is charged.",
)
def test_t27_a_broken_environment_pauses_the_pool_and_charges_no_task(project: Project) -> None:
    ann = project.agent("ann", settings=LONG)
    for number in range(40):
        add(ann, f"n{number}")
    started = 0
    for number in range(400):
        if get_pool(ann.repo).paused:
            break
        task_id = try_to_take(ann)
        started += 1
        where = f"/tmp/run-{number}/sock"
        ends(ann, task_id, f"bwrap: {where}: no user namespaces", "not_started", is_infrastructure=True)
    assert started == 3
    found = list_tasks(ann.repo)
    assert {(task.state, task.failures, task.lapses) for task in found} == {("ready", 0, 0)}
    assert all(lineage(ann, task.id).attempts == 0 for task in found)
    assert all(not lineage(ann, task.id).uncharged for task in found), "nobody is nearer to being put aside"
    pool = get_pool(ann.repo)
    assert "no user namespaces" in pool.paused
    assert resume_pool(ann.repo, ann.session).paused == ""
    assert not get_pool(ann.repo).infra


def test_those_that_were_put_aside_before_the_third_one_failed_are_taken_up_again(project: Project) -> None:
    ann = project.agent("ann", settings=replace(LONG, retries=replace(LONG.retries, max_starts=2)))
    for name in ("one", "two", "three"):
        add(ann, name)
    for _ in range(5):
        task_id = try_to_take(ann)
        ends(ann, task_id, "spawn failed: no socket", "not_started", is_infrastructure=True)
        project.clock.advance(10 * MINUTE if task_id != "T3" else 0)
        if get_pool(ann.repo).paused:
            break
    assert get_pool(ann.repo).paused
    assert {state(project, name) for name in ("T1", "T2", "T3")} == {"ready"}
    assert list_gates(ann.repo) == []


def fail_to_start(agent: Agent, task: str, text: str, kind: str = "") -> Pool:
    return agent.repo.change(lambda tx: note_infrastructure_in(tx, agent.repo, task, text, kind))


def test_different_failures_or_one_task_do_not_pause_the_pool(project: Project) -> None:
    ann = project.agent("ann")
    for number in range(3):
        add(ann, f"n{number}")
        fail_to_start(ann, f"T{number + 1}", ("no disk", "no memory", "no network")[number])
        fail_to_start(ann, "T1", "no disk")
    assert not get_pool(ann.repo).paused
    project.clock.advance(2 * HOUR)
    for number in range(2):
        fail_to_start(ann, f"T{number + 2}", "no disk")
    assert not get_pool(ann.repo).paused, "what was long ago has nothing to do with it"
    assert fail_to_start(ann, "T1", "no disk").paused


def test_a_success_of_the_same_kind_of_agent_clears_earlier_failures(project: Project) -> None:
    """Three starts in an hour that failed alike, among many that did not, are no reason to stop them all."""
    ann = project.agent("ann")
    for number in range(6):
        add(ann, f"n{number}")
    for number in range(1, 7):
        assert not fail_to_start(ann, f"T{number}", "it died at once", "claude").paused
        note_success(ann.repo, "claude")
    for number in range(1, 3):
        fail_to_start(ann, f"T{number}", "it died at once", "claude")
        note_success(ann.repo, "codex")  # another one, and so it tells nothing
    assert fail_to_start(ann, "T3", "it died at once", "claude").paused
    note_success(ann.repo, "claude")
    assert get_pool(ann.repo).paused, "what was paused a person looks at"


# -------------------------------------------------------------------------------------------- never agreeing


def never_agree(project: Project, feedback: list[str]) -> list[str]:
    """A writer hands in, a reviewer rejects with the next feedback; the outcomes until it stops."""
    writer, reviewer = project.agent("writer"), project.agent("reviewer")
    add(writer, "a", max_attempts=4)
    outcomes: list[str] = []
    for number, words in enumerate(feedback):
        take(writer)
        change = f"diff {number}"
        outcomes.append(ends(writer, "T1", f"reviewer: {words}", "rejected", change=change).outcome)
        if outcomes[-1] != "retry":
            break
        project.clock.advance(10 * MINUTE)
        writer.authenticate()
        reviewer.authenticate()
    return outcomes


def test_a_writer_and_a_reviewer_that_never_agree_stop_at_the_bound_with_all_feedback(
    project: Project,
) -> None:
    said = ["no tests", "bad name", "too slow", "too long", "and so on"]
    assert never_agree(project, said) == ["retry", "retry", "retry", "escalate"]
    task = get_task(project.repo(), "T1")
    assert (task.state, task.failures) == ("waiting_for_person", 4)
    told = [lesson.why for lesson in lessons_of(project.repo(), "T1")]
    assert told == [f"reviewer: {words}" for words in said[:4]]


def test_repeated_feedback_stops_a_task_one_round_earlier(project: Project) -> None:
    said = ["a.py:12: bad name (10:02:11)", "too slow", "a.py:40: bad name (11:30:00)"]
    assert never_agree(project, said) == ["retry", "retry", "escalate"]
    task = get_task(project.repo(), "T1")
    assert task.state == "waiting_for_person"
    assert task.why == "G1 waits for a person (approval): T1 failed twice the same way: retry?"
    told = [lesson.why for lesson in lessons_of(project.repo(), "T1")]
    assert told == [f"reviewer: {words}" for words in said]


# ------------------------------------------------------------------------------------------------ the bounds


def test_two_changes_in_turn_are_stopped(project: Project) -> None:
    ann = project.agent("ann", settings=LONG)
    add(ann, "a", max_attempts=50)
    outcomes: list[str] = []
    for number, change in enumerate("ABAB"):
        take(ann)
        words = ("first", "second", "third", "fourth")[number]
        outcomes.append(ends(ann, "T1", words, change=change).outcome)
        project.clock.advance(HOUR)
    assert outcomes == ["retry", "retry", "retry", "escalate"]
    assert "alternate between two versions" in get_task(ann.repo, "T1").why


@pytest.mark.parametrize(
    ("retries", "words"),
    [
        (RetrySettings(max_time_ms=3 * HOUR), "3 h of 3 h"),
        (RetrySettings(max_cost_micros=2_500_000), "cost $3.00 of $2.50"),
        (RetrySettings(max_attempts=3), "all 3 attempts are used up"),
    ],
)
def test_time_money_and_attempts_are_counted_over_the_lineage(
    project: Project, retries: RetrySettings, words: str
) -> None:
    ann = project.agent("ann", settings=replace(LONG, retries=retries))
    add(ann, "parent")
    for title in ("child", "other child"):
        add(ann, title, parent="T1")
    outcomes: list[str] = []
    for word in ("red", "green", "blue"):
        picked = take(ann).task.id
        decision = ends(ann, picked, word, took_ms=HOUR, cost_micros=1_000_000)
        outcomes.append(decision.outcome)
    assert outcomes == ["retry", "retry", "escalate"]
    assert words in decision.why
    with pytest.raises(NotAllowed) as refused:
        add(ann, "follow-up", parent="T2")
    assert refused.value.code == "LINEAGE_STOPPED"
    assert "task retry T3" in refused.value.hint


def test_a_planned_split_has_room_but_splitting_again_gives_no_more(project: Project) -> None:
    ann = project.agent("ann", settings=Settings(retries=RetrySettings(max_tasks=2)))
    add(ann, "parent")
    for width in (5, 3, 5):
        ann.repo.change(lambda tx, width=width: allow_split_in(tx, "T1", width))
    for number in range(7):
        add(ann, f"n{number}", parent="T1")
    with pytest.raises(NotAllowed):
        add(ann, "one more", parent="T1")


def test_money_of_unknown_amount_is_counted_as_unknown(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "a")
    take(ann)
    ends(ann, "T1", "x", took_ms=SECOND, cost_micros=None)
    used = lineage(ann, "T1")
    assert (used.cost_micros, used.unknown_costs, used.took_ms) == (0, 1, SECOND)


def test_a_vanished_owner_counts_in_the_lineage(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "a")
    take(ann)
    project.clock.advance(31 * MINUTE)
    bob = project.agent("bob")
    assert take(bob).task.lapses == 1
    assert (lineage(bob, "T1").attempts, lineage(bob, "T1").lapses) == (1, 1)


def test_a_task_that_owner_after_owner_leaves_is_put_aside(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "a")
    for _ in range(11):
        bob = project.agent("bob")
        assert take(bob).task.id == "T1"
        bob.leave()
    dead = get_task(ann.repo, "T1")
    assert (dead.state, dead.failures, lineage(ann, "T1").attempts) == ("dead", 0, 0)
    assert "11 owners in a row went away" in dead.why
    retry_task(ann.repo, ann.session, "T1")
    assert lineage(ann, "T1").uncharged == {}


def test_handing_a_task_to_and_fro_has_an_end(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "a")
    handed = 0
    while try_to_take(ann):
        hand_back(ann.repo, ann.session, "T1", "yours")
        handed += 1
        assert handed <= 10
    assert (handed, state(project, "T1")) == (10, "waiting_for_person")


def test_a_bounce_is_judged_like_any_failure(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "a", kind="code", max_attempts=9)
    take(ann)
    lease = run_by(project.agent("runner"))
    states: list[str] = []
    for number in range(2):
        report_done(ann.repo, ann.session, "T1")
        one = enter(ann, branch=f"b{number}", task="T1")
        rejection = Rejection(
            reason="check failed",
            code="CHECK_FAILED",
            hint="mend it",
            output=f"FAILED tests/test_a.py::test_b in {number}.3s\n",
        )
        landing_ends.reject_entry(ann.repo, lease, one.id, rejection)
        states.append(state(project, "T1"))
    assert states == ["reported", "waiting_for_person"]
    assert lineage(ann, "T1").attempts == 2
    assert [one.task for one in list_gates(ann.repo)] == ["T1"]


# ------------------------------------------------------------------------------------------------- back-off


def test_a_branch_without_a_task_that_bounces_again_and_again_is_one_lineage_and_has_an_end(
    project: Project,
) -> None:
    ann, carl = project.agent("ann", settings=LONG), project.agent("carl", settings=LONG)
    ann.take("a")
    lease = run_by(carl)

    def bounces(number: int, reason: str, branch: str = "one") -> str:
        entry = enter(ann, "a", branch=branch, head=f"{number:040d}")
        rejection = Rejection(reason=reason, code="CHECK_FAILED", hint="mend it")
        return landing_ends.reject_entry(carl.repo, lease, entry.id, rejection).bounce_task

    assert [bounces(1, "red: a is missing"), bounces(2, "red: b is missing")] == ["T1", "T1"]
    assert bounces(3, "red: other branches are other work", branch="two") == "T2"
    assert (state(project, "T1"), lineage(ann, "T1").attempts) == ("ready", 2)
    assert bounces(4, "red: a is missing") == "T1", "the same twice"
    assert state(project, "T1") == "waiting_for_person"
    (gate,) = list_gates(ann.repo)
    assert "b is missing" in str(gate.evidence["history"])
    with pytest.raises(NotAllowed, match="bounced too often") as refused:
        enter(ann, "a", head="5" * 40)
    assert refused.value.code == "LINEAGE_STOPPED"

    retry_task(ann.repo, person(project).session, "T1", "the check was wrong")
    entry = enter(ann, "a", head="6" * 40)
    landed = landing_ends.LandedEntry(id=entry.id, commit="6" * 40)
    landing_ends.mark_landed(carl.repo, lease, "main", [landed], "6" * 40)
    assert get_task(ann.repo, "T1").why == f"its branch has landed as {entry.id}"
    ann.take("a")
    assert bounces(7, "red: a is missing") == "T3", "another story"


def test_a_failed_task_is_offered_after_its_backoff_and_next_reports_it(project: Project) -> None:
    settings = Settings(retries=RetrySettings(backoff_ms=10 * SECOND, backoff_cap_ms=15 * SECOND))
    ann = project.agent("ann", settings=settings)
    add(ann, "a", max_attempts=9)
    for seconds, words in ((10, "x"), (15, "y"), (15, "z")):
        take(ann)
        decision = ends(ann, "T1", words)
        now = ann.repo.store.wall_of(project.now())
        assert decision.not_before == now + seconds * SECOND
        nothing = expect_no_task(ann)
        assert nothing.held_back == (("T1", decision.not_before),)
        assert take_task(ann.repo, ann.session, "T1", "") is None
        held = ann.repo.store.view(held_in)
        assert held == {"T1": decision.not_before}
        project.clock.advance(seconds * SECOND)
    assert take(ann).task.attempt == 4
    assert ann.repo.store.view(held_in) == {}


def test_a_rate_limit_charges_no_task_and_waits_as_the_provider_asks(project: Project) -> None:
    ann = project.agent("ann", settings=LONG)
    add(ann, "a")
    take(ann)
    decision = ends(ann, "T1", "429", "rate_limited", retry_after_ms=HOUR)
    assert (decision.outcome, decision.task.state, decision.task.failures) == ("returned", "ready", 0)
    project.clock.advance(59 * MINUTE)
    expect_no_task(ann)
    project.clock.advance(MINUTE)
    take(ann)
    assert lineage(ann, "T1").attempts == 0


def test_one_that_was_stopped_goes_back_at_once_and_uncharged(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "a")
    for _ in range(30):
        take(ann)
        assert ends(ann, "T1", "told to end", "stopped").outcome == "returned"
    assert (lineage(ann, "T1").attempts, state(project, "T1")) == (0, "ready")


def test_admission_halves_once_for_one_signal_and_grows_back(project: Project) -> None:
    ann = project.agent("ann")
    # All that run together are told together.
    pool = [note_rate_limit(ann.repo, "claude", 20, 60 * SECOND) for _ in range(5)][-1]
    assert pool.admission["claude"]["limit"] == 10
    assert note_success(ann.repo, "claude").admission["claude"]["limit"] == 10, "not yet"
    project.clock.advance(61 * SECOND)
    assert note_rate_limit(ann.repo, "claude", 10, 0).admission["claude"]["limit"] == 5
    project.clock.advance(MINUTE)
    limits = []
    while "claude" in note_success(ann.repo, "claude").admission:
        limits.append(get_pool(ann.repo).admission["claude"]["limit"])
    assert limits == list(range(6, 21)), "then there is no limit any more"


# ------------------------------------------------------------------------------------------------ going on


def stopped(project: Project, agent: Agent) -> None:
    add(agent, "a", max_attempts=9)
    for _ in range(2):
        take(agent)
        fail_task(agent.repo, agent.session, "T1", "no such endpoint")
    assert state(project, "T1") == "waiting_for_person"


@pytest.mark.promise(
    "retries.only-a-person-gives-a-new-budget",
    "A stopped task continues only when a person says so, with its history.",
)
def test_only_a_person_retries_a_stopped_task_with_a_new_budget_and_all_history(
    project: Project,
) -> None:
    ann, pat = project.agent("ann"), person(project)
    stopped(project, ann)
    with pytest.raises(NotAllowed) as refused:
        retry_task(ann.repo, ann.session, "T1")
    assert refused.value.code == "NOT_A_PERSON"
    back = retry_task(pat.repo, pat.session, "T1", "the endpoint is there now")
    assert (back.state, back.failures) == ("ready", 0)
    assert list_gates(pat.repo) == []
    used = lineage(pat, "T1")
    assert (used.attempts, used.rounds, used.parked, list(used.feedback)) == (0, 1, {}, [])
    picked = take(ann)
    assert picked.task.attempt == 3
    assert [one.why for one in picked.lessons if one.kind == "task.failed"] == ["no such endpoint"] * 2
    assert picked.lessons[-1].why == "the endpoint is there now"


@pytest.mark.parametrize(("approve", "then"), [(True, "ready"), (False, "dead")])
def test_the_question_in_the_inbox_can_be_answered_instead(
    project: Project, approve: bool, then: str
) -> None:
    ann, pat = project.agent("ann"), person(project)
    stopped(project, ann)
    (gate,) = list_gates(ann.repo)
    answer_gate(pat.repo, pat.session, gate.id, approve=approve, why="as you like")
    task = get_task(ann.repo, "T1")
    assert (task.state, task.failures) == (then, 0 if approve else 2)
    assert lineage(ann, "T1").rounds == (1 if approve else 0)
    if not approve:
        assert retry_task(pat.repo, pat.session, "T1").state == "ready"


def test_an_agent_may_try_a_dead_letter_again_but_not_beyond_the_lineages_budget(project: Project) -> None:
    ann = project.agent("ann", settings=Settings(retries=RetrySettings(max_attempts=3, last="fail")))
    add(ann, "a", max_attempts=1)
    for word in ("x", "y", "z"):
        take(ann)
        fail_task(ann.repo, ann.session, "T1", word)
        assert state(project, "T1") == "dead"
        if word != "z":
            retry_task(ann.repo, ann.session, "T1")
    with pytest.raises(NotAllowed) as refused:
        retry_task(ann.repo, ann.session, "T1")
    assert refused.value.code == "NOT_A_PERSON"
    assert retry_task(person(project).repo, None, "T1").state == "ready"


def test_a_stopped_task_cannot_be_blocked_and_unblocked(project: Project) -> None:
    ann = project.agent("ann", settings=LONG)
    add(ann, "a", max_attempts=9)
    for _ in range(2):
        take(ann)
        ends(ann, "T1", "no disk")
        project.clock.advance(HOUR)
    with pytest.raises(NotAllowed, match="waits for a person's answer"):
        block_task(ann.repo, ann.session, "T1", "I know better")
    assert len(list_gates(ann.repo)) == 1


def test_a_task_that_waits_for_another_answer_is_not_retried(project: Project) -> None:
    ann, pat = project.agent("ann"), person(project)
    add(ann, "a")
    take(ann)
    open_task_gate(ann.repo, ann.session, "T1", "credentials", "may I have the key?", {"key": "k"})
    with pytest.raises(NotAllowed) as refused:
        retry_task(pat.repo, pat.session, "T1")
    assert refused.value.code == "TASK_WRONG_STATE"
    assert len(list_gates(ann.repo)) == 1


def test_dropping_a_stopped_task_withdraws_its_question(project: Project) -> None:
    ann = project.agent("ann")
    stopped(project, ann)
    drop_task(ann.repo, ann.session, "T1", "not needed")
    assert list_gates(ann.repo) == []
    assert lineage(ann, "T1").parked == {}


def test_a_follow_up_gets_the_feedback_on_earlier_tasks(project: Project) -> None:
    ann = project.agent("ann", settings=Settings(retries=RetrySettings(last="fail")))
    add(ann, "a", max_attempts=1)
    take(ann)
    ends(ann, "T1", "no such endpoint")
    add(ann, "b", parent="T1")
    assert [one.why for one in take(ann).lessons] == ["T1: no such endpoint"]


def test_long_feedback_is_stored_in_full(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "a")
    take(ann)
    words = "finding " * 3000
    ends(ann, "T1", f"\0\ud800{words}")
    assert [one.why for one in lessons_of(ann.repo, "T1")] == [f"?{words}"]


def test_only_the_owner_ends_an_attempt(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    add(ann, "a")
    take(ann)
    with pytest.raises(Stale):
        ends(bob, "T1", "x")
    assert lineage(ann, "T1").attempts == 0


def test_a_task_is_pointed_out_even_in_a_stopped_lineage(project: Project) -> None:
    ann = project.agent("ann")
    stopped(project, ann)
    assert not hasattr(try_to_add(ann, "a"), "task"), "a duplicate is found before anything else"


def test_an_agent_with_a_role_neither_pauses_nor_resumes_the_pool(project: Project) -> None:
    pat, worker = person(project), project.agent("worker", role="code")
    with pytest.raises(NotAllowed, match="no role may pause"):
        pause_pool(worker.repo, worker.session, "a test")
    pause_pool(pat.repo, pat.session, "release freeze", pauses_landing=True)
    with pytest.raises(NotAllowed, match="no role may pause"):
        resume_pool(worker.repo, worker.session)
    assert get_pool(pat.repo).paused == "release freeze"


def test_a_second_pause_does_not_let_landings_continue(project: Project) -> None:
    ann, pat = project.agent("ann"), person(project)
    pause_pool(pat.repo, pat.session, "release freeze", pauses_landing=True)
    assert pause_pool(ann.repo, ann.session, "the disk is full").pauses_landing
    assert not resume_pool(pat.repo, pat.session).pauses_landing


@SQLITE_ONLY
def test_lineages_and_waiting_tasks_are_rebuilt_from_the_journal(project: Project) -> None:
    ann, pat = project.agent("ann"), person(project)
    stopped(project, ann)
    add(ann, "b", max_attempts=9)
    for words in ("x", "y"):
        take(ann)
        ends(ann, "T2", words)
        project.clock.advance(MINUTE)
    pause_pool(pat.repo, pat.session, "a test")
    before = [lineage(ann, task) for task in ("T1", "T2")]
    rows = [(one.state, one.failures, one.lapses, one.why) for one in list_tasks(ann.repo)]
    with opened(project) as repo:
        repo.settle(wait_seconds=5.0)
        folder, repository_id = repo.state_folder, repo.store.repository
    project.close()
    rebuild_store(folder, repository_id, ignore_case=False)
    repo = project.repo()
    found = [lineage_of(repo, task) for task in list_tasks(repo)]
    assert found == before
    assert [(one.state, one.failures, one.lapses, one.why) for one in list_tasks(repo)] == rows
    assert get_pool(repo).paused == "a test"


def test_siblings_that_fail_at_once_are_all_counted(live_project: Project) -> None:
    ann = live_project.agent("ann", settings=Settings(retries=RetrySettings(max_attempts=50)))
    add(ann, "parent")
    workers = [live_project.agent(f"w{number}") for number in range(8)]
    for number in range(8):
        add(ann, f"n{number}", parent="T1", priority=1)
    theirs = [(worker, take(worker).task.id) for worker in workers]
    barrier = threading.Barrier(len(theirs))

    def fail(worker: Agent, task_id: str) -> str:
        barrier.wait(30)
        return ends(worker, task_id, f"only in {'x' * int(task_id[1:])}").outcome

    failing = [Background(lambda one=one: fail(*one)) for one in theirs]
    assert [one.result() for one in failing] == ["retry"] * 8
    used = lineage(ann, "T1")
    assert (used.attempts, len(used.feedback), len(used.held)) == (8, 8, 8)
