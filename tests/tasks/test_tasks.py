"""The work queue on both stores: adding, waiting, taking with its paths, failing, returning, ending."""

from __future__ import annotations

import pytest

from landlane.errors import Malformed, NotAllowed, Stale
from landlane.sessions import join as sessions
from landlane.settings.model import RetrySettings, SessionSettings, Settings
from landlane.tasks.add import Added, LooksAlike, add_task
from landlane.tasks.change import block_task, drop_task, fail_task, retry_task, unblock_task
from landlane.tasks.finish import add_dependency, report_done
from landlane.tasks.import_checklist import Imported, import_checklist
from landlane.tasks.model import NewTask
from landlane.tasks.pick import NothingReady, Picked, next_task
from landlane.tasks.records import get_task, links_of, list_tasks, task_history
from landlane.values import replace
from tests.support.project import MINUTE, SECOND, Agent, Background, Project, let_time_pass, outlive_lease
from tests.support.tasks import add, expect_no_task, finish_task, state, take, task_kinds, try_to_add
from tests.support.waiting import wait_until

pytestmark = pytest.mark.contract

HOUR = 60 * MINUTE

FAIL = Settings(retries=RetrySettings(last="fail"))  # no person is asked after the last attempt


# ------------------------------------------------------------------------------------------- adding


def test_a_new_task_has_all_fields_and_its_entry_names_the_author(project: Project) -> None:
    ann = project.agent("ann")
    first = add(ann, "First")
    task = add(
        ann,
        "Parse dates",
        body="with care",
        kind="output",
        role="test",
        priority=2,
        paths=["src/a.py", "docs/**"],
        after=[first.id],
        max_attempts=5,
        check="true",
        output="out.txt",
        key="k",
        labels=["x", "y"],
        next_action="read the RFC",
    )
    stored = get_task(project.repo(), task.id)
    assert stored == task
    assert (stored.id, stored.state, stored.why) == ("T2", "blocked", "waits for T1")
    assert (stored.attempt, stored.failures, stored.lapses, stored.max_attempts) == (0, 0, 0, 5)
    assert (stored.lineage, stored.labels, stored.after) == ("T2", ("x", "y"), ("T1",))
    entry = project.entries()[-1]
    assert (entry.kind, entry.agent, entry.session) == ("task.added", "ann", ann.session.id)
    assert entry.facts()["title"] == "Parse dates"


def test_the_same_key_gives_the_same_task_and_changes_nothing(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    task = add(ann, "Parse dates", key="dates")
    before = len(project.entries())
    again = try_to_add(bob, "Something else entirely", key="dates", priority=9)
    assert isinstance(again, Added)
    assert not again.is_new
    assert again.task == task
    assert len(project.entries()) == before


def test_a_task_that_looks_the_same_is_pointed_out_and_nothing_is_added(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "Parse ISO dates", paths=["src/dates.py"])
    before = len(project.entries())
    outcome = try_to_add(ann, "Parsing dates", paths=["src/**"])
    assert isinstance(outcome, LooksAlike)
    (one,) = outcome.similar
    assert (one.task, one.state) == ("T1", "ready")
    assert "same path" in one.reason
    assert project.kinds()[before:] == ["duplicate.refused"]
    assert add(ann, "Add another thing").id == "T2"  # no number was used up


def test_forcing_a_lookalike_keeps_the_link_on_both(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "Parse dates")
    outcome = try_to_add(ann, "Parse the dates", force=True)
    assert isinstance(outcome, Added)
    assert [one.task for one in outcome.similar] == ["T1"]
    repo = project.repo()
    assert [other for other, _ in links_of(repo, "T2")] == ["T1"]
    assert [other for other, _ in links_of(repo, "T1")] == ["T2"]
    assert project.entries()[-1].facts()["similar"][0][0] == "T1"


def test_a_finished_task_is_not_a_duplicate_but_a_dead_one_is(project: Project) -> None:
    ann = project.agent("ann", settings=FAIL)
    add(ann, "Parse dates")
    finish_task(ann, take(ann).task.id)
    assert isinstance(try_to_add(ann, "Parse dates"), Added)
    drop_task(ann.repo, ann.session, "T2", "no")
    assert isinstance(try_to_add(ann, "Parse dates", max_attempts=1), Added)
    fail_task(ann.repo, ann.session, take(ann).task.id, "hard")
    assert state(project, "T3") == "dead"
    assert isinstance(try_to_add(ann, "Parse dates"), LooksAlike)


def test_children_share_the_lineage_and_may_name_one_issue(project: Project) -> None:
    ann = project.agent("ann")
    parent = add(ann, "Dates (#12)")
    child = try_to_add(ann, "Parse them (#12)", parent=parent.id)
    assert isinstance(child, Added)
    grandchild = add(ann, "Lexer", parent=child.task.id)
    assert {child.task.lineage, grandchild.lineage} == {parent.id}
    assert isinstance(try_to_add(ann, "Something (#12)"), LooksAlike)


@pytest.mark.parametrize(
    "facts",
    [{"after": ["T9"]}, {"parent": "T9"}, {"paths": ["../outside"]}, {"title": ""}, {"priority": 5000}],
)
def test_an_invalid_task_changes_nothing(project: Project, facts: dict[str, object]) -> None:
    ann = project.agent("ann")
    before = len(project.entries())
    with pytest.raises(Malformed):
        add(ann, **{"title": "x", **facts})  # type: ignore[arg-type]
    assert len(project.entries()) == before
    assert list_tasks(ann.repo) == []
    assert add(ann, "y").id == "T1"


# ------------------------------------------------------------------------------------- dependencies


def test_dependents_are_unblocked_when_the_last_dependency_is_done(project: Project) -> None:
    ann = project.agent("ann")
    for title in ("a", "b"):
        add(ann, title)
    add(ann, "c", after=["T1", "T2", "T1"])
    finish_task(ann, take(ann).task.id)
    assert get_task(ann.repo, "T3").why == "waits for T2"
    finish_task(ann, take(ann).task.id)
    assert state(project, "T3") == "ready"
    assert task_kinds(project, "T3") == ["task.added", "task.unblocked"]
    assert take(ann).task.id == "T3"


def test_a_finished_dependency_is_not_waited_for(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "a")
    finish_task(ann, take(ann).task.id)
    assert add(ann, "b", after=["T1"]).state == "ready"


@pytest.mark.promise(
    "tasks.rings-are-shown",
    "Tasks that would depend on each other are refused, and the cycle is shown.",
)
def test_a_ring_is_refused_and_shown_and_changes_nothing(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "a")
    add(ann, "b", after=["T1"])
    add(ann, "c", after=["T2"])
    before = len(project.entries())
    with pytest.raises(Malformed) as refused:
        add_dependency(ann.repo, ann.session, "T1", "T3")
    assert refused.value.code == "TASK_CYCLE"
    assert refused.value.facts["cycle"] == ["T1", "T3", "T2", "T1"]
    with pytest.raises(Malformed):
        add_dependency(ann.repo, ann.session, "T1", "T1")
    assert len(project.entries()) == before
    assert state(project, "T1") == "ready"


def test_a_dependency_can_be_added_until_work_begins(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "a")
    add(ann, "b")
    assert add_dependency(ann.repo, ann.session, "T1", "T2").state == "blocked"
    assert take(ann).task.id == "T2"
    with pytest.raises(NotAllowed):
        add_dependency(ann.repo, ann.session, "T2", "T1")
    finish_task(ann, "T2")
    assert take(ann).task.id == "T1"


def test_a_dependent_of_a_dropped_task_can_be_unblocked_by_hand(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "a")
    add(ann, "b", after=["T1"])
    with pytest.raises(NotAllowed) as refused:
        unblock_task(ann.repo, ann.session, "T2")
    assert refused.value.code == "TASK_WAITS"
    drop_task(ann.repo, ann.session, "T1", "not needed")
    assert get_task(ann.repo, "T2").why == "waits for T1 (dropped)"
    expect_no_task(ann)
    assert unblock_task(ann.repo, ann.session, "T2").state == "ready"
    assert take(ann).task.id == "T2"
    with pytest.raises(Malformed) as over:
        add(ann, "c", after=["T1"])
    assert over.value.code == "TASK_OVER"


@pytest.mark.promise(
    "tasks.block-by-hand-stays",
    "A task that was blocked by hand stays blocked when its dependencies are done.",
)
def test_a_block_by_hand_outlasts_its_dependencies(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "a")
    add(ann, "b", after=["T1"])
    block_task(ann.repo, ann.session, "T2", "waits for the vendor")
    finish_task(ann, take(ann).task.id)
    assert state(project, "T2") == "blocked"
    expect_no_task(ann)
    assert unblock_task(ann.repo, ann.session, "T2").state == "ready"


def test_taking_a_block_away_leaves_the_dependencies(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "a")
    add(ann, "b", after=["T1"])
    block_task(ann.repo, ann.session, "T2", "vendor")
    unblocked = unblock_task(ann.repo, ann.session, "T2")
    assert (unblocked.state, unblocked.why) == ("blocked", "waits for T1")
    finish_task(ann, take(ann).task.id)
    assert take(ann).task.id == "T2"


# ------------------------------------------------------------------------------------------- taking


def test_next_takes_the_task_and_its_paths_in_one_step(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    add(ann, "a", paths=["src/**", "docs/x.md"])
    picked = take(bob)
    assert (picked.task.id, picked.task.state, picked.task.owner, picked.task.attempt) == (
        "T1",
        "active",
        "bob",
        1,
    )
    assert {claim.pattern for claim in picked.claims} == {"src/**", "docs/x.md"}
    assert {claim.task for claim in picked.claims} == {"T1"}
    assert ann.expect_refusal("src/a.py").holder == "bob"
    ended = finish_task(bob, "T1", "all good")
    assert (ended.state, ended.result, ended.owner) == ("done", "all good", "bob")
    assert project.claims() == []
    assert task_kinds(project, "T1") == ["task.added", "task.taken", "task.done"]


def test_a_task_whose_paths_are_held_is_skipped_and_named(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    add(ann, "a", paths=["src/a.py"])
    add(ann, "b", paths=["src/b.py"])
    ann.take("src/*.py")
    nothing = expect_no_task(bob)
    assert (nothing.held_up, nothing.counts) == (("T1", "T2"), {"ready": 2})
    add(ann, "c", paths=["docs/c.md"])
    assert take(bob).task.id == "T3"
    ann.release()
    assert [take(bob).task.id, take(ann).task.id] == ["T1", "T2"]


def test_a_thousand_tasks_behind_one_held_folder_are_passed_over_quickly(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    lines = "\n".join(f"- [ ] n{number} (path: src/f{number}.py) (kind: chore)" for number in range(1000))
    import_checklist(ann.repo, ann.session, lines, force=True)
    add(ann, "behind them", paths=["docs"])
    ann.take("src")
    assert take(bob).task.title == "behind them"
    ann.release()
    assert take(bob).task.title == "n0"


def test_one_session_never_has_one_path_for_two_tasks(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "a", paths=["src/a.py"])
    add(ann, "b", paths=["src/**"])
    ann.take("src/a.py")  # holding it by hand as well makes no difference
    assert take(ann).task.id == "T1"
    assert expect_no_task(ann).held_up == ("T2",)
    finish_task(ann, "T1")
    assert take(ann).task.id == "T2"


def test_own_claims_do_not_block_the_next_task(project: Project) -> None:
    ann = project.agent("ann")
    ann.take("src/**")
    add(ann, "a", paths=["src/a.py"])
    assert take(ann).task.id == "T1"


def test_a_task_in_progress_is_not_offered_again_while_its_owner_lives(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    add(ann, "a")
    take(ann)
    for _ in range(5):
        project.clock.advance(20 * MINUTE)  # longer in all than any lease
        ann.authenticate()
        bob.authenticate()
        expect_no_task(bob)


def test_roles_get_their_own_tasks_and_those_for_everybody(project: Project) -> None:
    ann, tess = project.agent("ann"), project.agent("tess", role="test")
    add(ann, "a", role="test", priority=1)
    add(ann, "b", role="document", priority=9)
    add(ann, "c")
    assert take(ann).task.id == "T3"
    expect_no_task(ann)
    assert take(tess).task.id == "T1"
    expect_no_task(tess)
    assert take(ann, role="document").task.id == "T2"


def test_priority_comes_first_age_makes_up_for_it(project: Project) -> None:
    ann = project.agent("ann", settings=Settings(sessions=SessionSettings(lease_ms=48 * HOUR)))
    add(ann, "old and unimportant", priority=-2)
    add(ann, "ordinary")
    project.clock.advance(90 * MINUTE)
    add(ann, "new and a little important", priority=1)
    add(ann, "urgent", priority=9)
    project.clock.advance(2 * HOUR)
    add(ann, "new and ordinary")
    titles = [take(ann).task.title for _ in range(5)]
    assert titles == [
        "urgent",
        "ordinary",
        "new and a little important",
        "old and unimportant",
        "new and ordinary",
    ]


def test_tasks_of_one_instant_come_in_the_order_of_their_numbers(project: Project) -> None:
    ann = project.agent("ann")
    for number in range(12):
        add(ann, f"n{number}")
    assert [take(ann).task.id for _ in range(12)] == [f"T{number}" for number in range(1, 13)]


def test_a_session_that_is_over_takes_nothing(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "a")
    project.clock.advance(31 * MINUTE)
    with pytest.raises(Stale):
        next_task(ann.repo, ann.session)
    assert state(project, "T1") == "ready"


# ---------------------------------------------------------------------------- failing and returning


def test_a_failed_attempt_returns_with_its_lesson_until_none_is_left(project: Project) -> None:
    ann, bob = project.agent("ann", settings=FAIL), project.agent("bob", settings=FAIL)
    add(ann, "a", paths=["src/a.py"], max_attempts=2)
    take(ann)
    returned = fail_task(ann.repo, ann.session, "T1", "the API has no such endpoint")
    assert (returned.state, returned.failures, returned.owner) == ("ready", 1, "")
    assert project.claims() == []
    picked = take(bob)
    assert picked.task.attempt == 2
    (lesson,) = picked.lessons
    assert (lesson.agent, lesson.attempt, lesson.why) == ("ann", 1, "the API has no such endpoint")
    assert fail_task(bob.repo, bob.session, "T1", "still none").state == "dead"
    expect_no_task(ann)
    assert retry_task(ann.repo, ann.session, "T1").failures == 0
    again = take(ann)
    assert again.task.attempt == 3
    assert [one.why for one in again.lessons] == ["the API has no such endpoint", "still none"]


def test_a_final_failure_is_not_tried_again_by_itself(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "a")
    add(ann, "b", after=["T1"])
    take(ann)
    assert fail_task(ann.repo, ann.session, "T1", "impossible", is_final=True).state == "failed"
    expect_no_task(ann)
    assert state(project, "T2") == "blocked"


@pytest.mark.promise(
    "tasks.return-with-their-history",
    "The task of a dead owner returns to the queue, and its next owner is shown what happened.",
)
def test_the_task_of_a_dead_owner_returns_with_its_history(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    add(bob, "first", paths=["src/a.py"])
    add(bob, "second", priority=-1)
    take(ann)
    project.clock.advance(31 * MINUTE)
    late = project.agent("cy")
    picked = take(late)
    assert (picked.task.id, picked.task.attempt, picked.task.lapses) == ("T1", 2, 1)
    assert [one.why for one in picked.lessons] == ["ann vanished during attempt 1"]
    assert [claim.agent for claim in project.claims()] == ["cy"]
    with pytest.raises(Stale) as stale:
        finish_task(ann, "T1")
    assert stale.value.code == "SESSION_OVER"
    assert state(project, "T1") == "active"
    again = project.agent("ann")
    with pytest.raises(Stale) as not_hers:
        finish_task(again, "T1")
    assert (not_hers.value.code, not_hers.value.facts["holder"]) == ("TASK_NOT_YOURS", "cy")
    assert bob.session.id


def test_short_leases_return_tasks_with_paths_as_quickly_as_those_without(project: Project) -> None:
    settings = Settings(sessions=SessionSettings(lease_ms=2 * SECOND))
    ann = project.agent("ann", settings=settings)
    add(ann, "a", paths=["src/a.py"])
    take(ann)
    project.clock.advance(2 * SECOND + 1)
    bob = project.agent("bob", settings=settings)
    assert take(bob).task.id == "T1"


def test_a_reported_task_returns_to_the_queue_with_its_owners_end(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "a")
    take(ann)
    report_done(ann.repo, ann.session, "T1")
    ann.leave()
    bob = project.agent("bob")
    picked = take(bob)
    assert (picked.task.attempt, picked.task.lapses) == (2, 0)
    assert picked.lessons[0].why == "ann left during attempt 1"


def test_a_task_that_outlives_owner_after_owner_is_put_aside(project: Project) -> None:
    add(project.agent("pat"), "poison")
    for number in range(11):
        take(project.agent(f"a{number}"))
        project.clock.advance(31 * MINUTE)
    expect_no_task(project.agent("last"))
    assert state(project, "T1") == "dead"


def test_blocking_or_dropping_a_task_takes_it_from_its_owner(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    add(ann, "a", paths=["src/a.py"])
    take(ann)
    block_task(bob.repo, bob.session, "T1", "stop")
    assert project.claims() == []
    with pytest.raises(Stale):
        finish_task(ann, "T1")
    drop_task(bob.repo, bob.session, "T1", "cancelled")
    with pytest.raises(NotAllowed):
        unblock_task(bob.repo, bob.session, "T1")
    entry = task_history(ann.repo, "T1")[-1]
    assert (entry.kind, entry.agent, entry.facts()["why"]) == ("task.dropped", "bob", "cancelled")


@pytest.mark.parametrize("call", [block_task, drop_task])
def test_a_reason_is_wanted(project: Project, call: object) -> None:
    ann = project.agent("ann")
    add(ann, "a")
    with pytest.raises(Malformed) as refused:
        call(ann.repo, ann.session, "T1", " ")  # type: ignore[operator]
    assert refused.value.code == "NO_REASON"


def test_active_and_blocked_tasks_are_not_retried(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "a")
    add(ann, "b", after=["T1"])
    take(ann)
    for task_id in ("T1", "T2"):
        with pytest.raises(NotAllowed):
            retry_task(ann.repo, ann.session, task_id)
    assert state(project, "T1") == "active"


@pytest.mark.parametrize("call", [get_task, task_history])
def test_an_unknown_task_is_an_error(project: Project, call: object) -> None:
    with pytest.raises(Malformed) as refused:
        call(project.repo(), "T9")  # type: ignore[operator]
    assert refused.value.code == "UNKNOWN_TASK"


# ------------------------------------------------------------------------------------------ waiting


def waiting(project: Project, agent: Agent) -> Background[Picked | NothingReady]:
    """Wait for a task in the background, as a process of its own would."""
    repo = project.repo()
    before = project.listeners()
    started = Background(lambda: next_task(repo, agent.session, wait_ms=20 * SECOND))
    wait_until(lambda: project.listeners() > before or not started.is_running)
    return started


def got(waiter: Background[Picked | NothingReady]) -> str:
    outcome = waiter.result(30)
    assert isinstance(outcome, Picked), outcome
    return outcome.task.id


def test_a_waiter_wakes_when_a_task_is_added(live_project: Project) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    waiter = waiting(live_project, bob)
    add(ann, "a")
    assert got(waiter) == "T1"


def test_a_waiter_wakes_when_a_dependency_is_done(live_project: Project) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    add(ann, "a")
    add(ann, "b", after=["T1"])
    take(ann)
    waiter = waiting(live_project, bob)
    finish_task(ann, "T1")
    assert got(waiter) == "T2"


def test_a_waiter_wakes_when_a_path_is_released(live_project: Project) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    add(ann, "a", paths=["src/a.py"])
    ann.take("src")
    waiter = waiting(live_project, bob)
    ann.release()
    assert got(waiter) == "T1"


def test_a_waiter_wakes_when_an_owner_vanishes(live_project: Project) -> None:
    ann = live_project.agent("ann", settings=Settings(sessions=SessionSettings(lease_ms=60_000)))
    bob = live_project.agent("bob")
    add(ann, "a", paths=["src/a.py"])
    take(ann)
    let_time_pass(ann.repo.store, 59_000)
    waiter = waiting(live_project, bob)
    assert got(waiter) == "T1"


def test_waiting_keeps_the_waiter_alive_and_has_an_end(
    live_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("landlane.tasks.pick._POLL_MS", 100)
    bob = live_project.agent("bob", settings=Settings(sessions=SessionSettings(lease_ms=60_000)))
    # As it was after a third of the lease, from when on every look is a sign of life.
    waiter = replace(bob.session, seen_at=bob.session.seen_at - 60_000)
    waiting_call = Background(lambda: next_task(bob.repo, waiter, wait_ms=HOUR))
    outlive_lease(live_project.repo().store, bob.session)
    assert sessions.live_sessions(live_project.repo())[0].id == bob.session.id
    add(live_project.agent("ann"), "a")
    assert isinstance(waiting_call.result(), Picked)
    finish_task(bob, "T1")
    outcome = next_task(bob.repo, bob.session, wait_ms=300)
    assert isinstance(outcome, NothingReady)


def test_each_of_many_waiters_gets_another_task(live_project: Project) -> None:
    ann = live_project.agent("ann")
    waiters = [waiting(live_project, live_project.agent(f"w{number}")) for number in range(4)]
    for number in range(4):
        add(ann, f"n{number}")
    assert sorted(got(waiter) for waiter in waiters) == ["T1", "T2", "T3", "T4"]


# --------------------------------------------------------------------------------------- checklists


def imported(agent: Agent, text: str) -> Imported:
    return import_checklist(agent.repo, agent.session, text)


PLAN = """
- [ ] Release (after: Write the tests) (after: Parse dates)
- [ ] Write the tests (after: Parse dates) (role: test)
- [ ] Parse dates (path: src/dates.py)
    as RFC 3339 has it
- [x] Ask Bob
"""


def test_a_checklist_is_read_in_whatever_its_order_and_only_once(project: Project) -> None:
    ann = project.agent("ann")
    outcome = imported(ann, PLAN)
    assert [(task.id, task.title, task.after) for task in outcome.added] == [
        ("T1", "Parse dates", ()),
        ("T2", "Write the tests", ("T1",)),
        ("T3", "Release", ("T1", "T2")),
    ]
    assert outcome.added[0].body == "as RFC 3339 has it"
    before = len(project.entries())
    again = imported(ann, PLAN)
    assert (again.added, again.known, again.skipped) == ((), 4, ())
    assert len(project.entries()) == before


def test_ids_of_another_repository_are_followed_inside_the_list(project: Project) -> None:
    ann = project.agent("ann")
    outcome = imported(ann, "- [ ] T7 Tests (after: T9)\n- [ ] T9 Parser\n- [ ] T8 Docs (after: T7)\n")
    assert [(task.title, task.after) for task in outcome.added] == [
        ("Parser", ()),
        ("Tests", ("T1",)),
        ("Docs", ("T2",)),
    ]


@pytest.mark.promise("tasks.lists-are-whole", "A checklist with one invalid item adds nothing.")
@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("- [ ] fine\n- [ ] a (after: b)\n- [ ] b (after: c)\n- [ ] c (after: a)\n", "TASK_CYCLE"),
        ("- [ ] fine\n- [ ] a (after: a)\n", "TASK_CYCLE"),
        ("- [ ] fine\n- [ ] a (after: T99)\n", "UNKNOWN_TASK"),
        ("- [ ] fine\n- [ ] a (after: never heard of)\n", "UNKNOWN_TASK"),
        ("- [ ] fine\n- [ ] a (path: ../../etc)\n", ""),
        ("- [ ] fine\n- [ ] a (priority: 9999)\n", "OUT_OF_RANGE"),
        ("- [ ] fine\n- [ ] T1 not what T1 is\n", "BAD_CHECKLIST"),
    ],
)
def test_a_list_with_one_bad_item_adds_nothing(project: Project, text: str, code: str) -> None:
    ann = project.agent("ann")
    add(ann, "Something here already")
    before = len(project.entries())
    with pytest.raises(Malformed) as refused:
        imported(ann, text)
    assert not code or refused.value.code == code
    if code == "TASK_CYCLE":
        assert refused.value.facts["cycle"][0] == refused.value.facts["cycle"][-1]
    assert len(project.entries()) == before
    assert len(list_tasks(ann.repo)) == 1


def test_an_item_like_an_existing_task_is_skipped_and_its_dependents_wait(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "Parse dates")
    outcome = imported(ann, "- [ ] Parsing the dates\n- [ ] Release (after: Parsing the dates)\n")
    ((title, similar),) = outcome.skipped
    assert (title, similar[0].task) == ("Parsing the dates", "T1")
    assert [task.after for task in outcome.added] == [("T1",)]


def test_two_spellings_of_one_path_are_declared_once(project: Project) -> None:
    ann = project.agent("ann")
    task = add_task(ann.repo, ann.session, NewTask(title="a", kind="chore", paths=("src", "src/", "./src")))
    assert isinstance(task, Added)
    assert len(take(ann).claims) == 1
