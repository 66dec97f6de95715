"""Split tasks and join their branches on both stores: once, with all results."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from landlane.errors import Held, LandlaneError, Malformed, NotAllowed, Stale
from landlane.fanout import join
from landlane.fanout.join import find_fan, settle_fans
from landlane.fanout.model import decide_join
from landlane.fanout.split import SplitTask, split_task
from landlane.plans.parse import read_plan
from landlane.setup.rebuild_store import rebuild_store
from landlane.tasks import records as read
from landlane.tasks.change import block_task, drop_task, fail_task, retry_task, unblock_task
from landlane.tasks.pick import take_task
from tests.support.project import MINUTE, SQLITE_ONLY, Background, opened
from tests.support.tasks import add, expect_no_task, finish_task, state, take, task_kinds

if TYPE_CHECKING:
    from tests.support.project import Agent, Project

pytestmark = pytest.mark.contract

PARTS = "# Parts\n- [ ] One (kind: chore)\n- [ ] Two (kind: chore)\n- [ ] Three (kind: chore)\n"


def split(
    agent: Agent, policy: str = "all", text: str = PARTS, task: str = "T1", **more: object
) -> SplitTask:
    plan = read_plan(text, "parts.md")
    return split_task(agent.repo, agent.session, task, plan, policy, **more)  # type: ignore[arg-type]


def fail(agent: Agent, task_id: str, why: str = "no way") -> None:
    fail_task(agent.repo, agent.session, task_id, why, is_final=True)


def joins(project: Project) -> int:
    return project.kinds().count("fan.joined")


def results(agent: Agent, name: str = "T1") -> list[tuple[str, str, str]]:
    _, branches = find_fan(agent.repo, name)
    return [(one.name, one.state, one.result or one.why) for one in branches]


def test_split_task_is_released_and_its_branches_are_offered(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "All", paths=["src/**"])
    assert take(ann).claims

    done = split(ann)

    assert [task.title for task in done.tasks] == ["One", "Two", "Three"]
    assert {task.lineage for task in done.tasks} == {"T1"}
    assert ann.holds() == []
    parent = read.get_task(ann.repo, "T1")
    assert (parent.state, parent.owner, parent.session) == ("blocked", "", "")
    assert parent.why == "waits for its parts T2, T3, T4 (F1)"
    assert [take(ann).task.id for _ in range(3)] == ["T2", "T3", "T4"]


def test_policy_all_joins_after_the_last_branch_with_results_in_plan_order(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    add(ann, "All")
    split(ann)
    ids = [take(ann).task.id for _ in range(3)]
    for task_id in reversed(ids):
        assert state(project, "T1") == "blocked"
        finish_task(ann, task_id, f"result of {task_id}")

    picked = take(bob)

    assert picked.task.id == "T1"
    (lesson,) = picked.lessons
    assert (
        "T2 One: done: result of T2\nT3 Two: done: result of T3\nT4 Three: done: result of T4" in lesson.why
    )
    assert [one[2] for one in results(ann)] == ["result of T2", "result of T3", "result of T4"]
    assert joins(project) == 1


@pytest.mark.promise(
    "fans.one-failure-is-one-failure",
    "A failed branch stops no other, and the join receives all results and failures in order.",
)
def test_failed_branch_stops_no_other_and_the_join_gets_all_results(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "All")
    split(ann)
    for _ in range(3):
        take(ann)
    fail(ann, "T2")
    assert [state(project, one) for one in ("T1", "T3", "T4")] == ["blocked", "active", "active"]
    finish_task(ann, "T3", "two")
    finish_task(ann, "T4", "three")

    parent = read.get_task(ann.repo, "T1")

    assert (parent.state, parent.why) == ("failed", "F1 joined: 2 of 3 done, 1 failed, 3 needed")
    assert [one[1] for one in results(ann)] == ["failed", "done", "done"]
    retry_task(ann.repo, ann.session, "T1")
    assert "no way" in take(ann).lessons[0].why


def test_policy_collect_joins_with_any_results(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "All")
    split(ann, "collect")
    for task_id in ("T2", "T3", "T4"):
        take(ann)
        fail(ann, task_id)
    assert take(ann).task.id == "T1"


def test_policy_any_joins_after_the_first_and_drops_branches_not_started(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    add(ann, "All")
    split(ann, "any")
    take(ann)
    take(bob)
    finish_task(ann, "T2", "first")
    assert state(project, "T1") == "ready"

    assert take(ann).task.id == "T1"

    assert [state(project, one) for one in ("T3", "T4")] == ["active", "dropped"]
    finish_task(bob, "T3", "late")
    assert [one[1] for one in results(ann)] == ["done", "active", "ready"]
    assert (joins(project), task_kinds(project, "T1").count("task.joined")) == (1, 1)


def test_branches_not_started_can_be_kept(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "All")
    split(ann, "2", rest="keep")
    for task_id in ("T2", "T3"):
        take(ann)
        finish_task(ann, task_id)
    assert {take(ann).task.id, take(ann).task.id} == {"T1", "T4"}


def test_policy_that_cannot_be_met_fails_when_all_branches_are_over(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "All")
    split(ann, "2")
    for _ in range(3):
        take(ann)
    fail(ann, "T2")
    fail(ann, "T3")
    assert state(project, "T1") == "blocked"
    finish_task(ann, "T4")
    assert state(project, "T1") == "failed"


def test_branch_that_waits_for_a_failed_one_counts_as_over(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "All")
    split(
        ann,
        "collect",
        PARTS + "- [ ] Four (kind: chore) (after: Three)\n- [ ] Five (kind: chore) (after: Four)\n",
    )
    for task_id in ("T2", "T3", "T4"):
        take(ann)
        fail(ann, task_id)
    assert take(ann).task.id == "T1"
    assert [state(project, one) for one in ("T5", "T6")] == ["dropped", "dropped"]


def test_branches_with_a_common_path_take_turns_without_depending_on_each_other(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "All")
    done = split(ann, "any", "- [ ] A (path: a.py) (kind: chore)\n- [ ] B (path: a.py) (kind: chore)\n")
    assert [task.state for task in done.tasks] == ["ready", "ready"]
    take(ann)
    fail(ann, "T2")
    assert take(ann).task.id == "T3"


def test_deadline_joins_with_the_results_so_far_even_without_live_sessions(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    add(ann, "All")
    split(ann, "1", deadline_ms=5 * MINUTE)
    add(ann, "Other")
    split(ann, "collect", task="T5", deadline_ms=5 * MINUTE)
    take(ann)
    project.clock.advance(6 * MINUTE)

    assert [task.state for task in read.list_tasks(bob.repo)][:4] == [
        "failed",
        "active",
        "dropped",
        "dropped",
    ]
    assert read.get_task(bob.repo, "T1").why.endswith("0 of 3 done, 3 not over at the deadline, 1 needed")
    assert take(bob).task.id == "T5"
    assert joins(project) == 2


def test_same_plan_again_changes_nothing_and_another_is_refused(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "All")
    first = split(ann)
    before = len(project.entries())
    again = split(ann)
    assert (again.is_new, again.fan.id, again.tasks) == (False, first.fan.id, first.tasks)
    assert len(project.entries()) == before
    with pytest.raises(Held) as caught:
        split(ann, text=PARTS.replace("# Parts", "# Others"))
    assert caught.value.code == "FAN_OPEN"


def test_second_split_has_new_branches(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "All")
    split(ann, "any")
    take(ann)
    finish_task(ann, "T2")
    take(ann)
    again = split(ann, "any")
    assert (again.fan.id, [task.id for task in again.tasks]) == ("F2", ["T5", "T6", "T7"])
    take(ann)
    finish_task(ann, "T5")
    assert (state(project, "T1"), joins(project)) == ("ready", 2)


def test_branch_can_be_split_again(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "All")
    split(ann, text="- [ ] One (kind: chore)\n")
    assert take(ann).task.id == "T2"
    split(ann, text="- [ ] Deep (kind: chore)\n", task="T2")
    take(ann)
    fail(ann, "T3")
    assert [state(project, one) for one in ("T2", "T1")] == ["failed", "failed"]
    assert joins(project) == 2


@pytest.mark.parametrize(
    ("policy", "text", "code"),
    [
        ("some", PARTS, "BAD_POLICY"),
        ("0", PARTS, "BAD_POLICY"),
        ("4", PARTS, "BAD_POLICY"),
        ("all", "- [x] One\n", "BAD_PLAN"),
        ("all", "- [ ] One (after: T1)\n", "TASK_CYCLE"),
        ("all", "- [ ] One (after: T2)\n", "TASK_CYCLE"),
    ],
)
def test_invalid_split_is_refused(project: Project, policy: str, text: str, code: str) -> None:
    ann = project.agent("ann")
    add(ann, "All")
    add(ann, "Behind", after=["T1"])
    with pytest.raises(Malformed) as caught:
        split(ann, policy, text)
    assert caught.value.code == code
    assert [task.state for task in read.list_tasks(ann.repo)] == ["ready", "blocked"]


def test_only_the_owner_can_split_an_active_task(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    add(ann, "All")
    take(ann)
    with pytest.raises(Stale):
        split(bob)
    finish_task(ann, "T1")
    with pytest.raises(NotAllowed):
        split(ann)


def test_worker_can_split_the_task_of_its_supervisor(project: Project) -> None:
    supervisor = project.agent("claude-T1", is_internal=True)
    hands = project.worker_session(supervisor)
    add(supervisor, "All")
    take(supervisor)
    assert split(hands).fan.agent == "claude-T1.w"
    assert state(project, "T1") == "blocked"


def test_agent_named_like_a_worker_cannot_split(project: Project) -> None:
    ann, posing = project.agent("ann"), project.agent("ann.w")
    add(ann, "All")
    take(ann)
    with pytest.raises(Stale) as caught:
        split(posing)
    assert (caught.value.code, caught.value.facts["holder"]) == ("TASK_NOT_YOURS", "ann")
    assert state(project, "T1") == "active"


def test_task_unblocked_by_hand_abandons_the_fan_out(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "All")
    split(ann)
    unblock_task(ann.repo, ann.session, "T1")
    for task_id in ("T1", "T2", "T3", "T4"):
        assert take(ann).task.id == task_id
        finish_task(ann, task_id)
    assert joins(project) == 0
    assert find_fan(ann.repo, "T1")[0].state == "abandoned"
    assert settle_fans(ann.repo) == 0


def test_task_blocked_by_hand_stays_blocked_after_the_join(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "All")
    split(ann, "any")
    block_task(ann.repo, ann.session, "T1", "wait for legal")
    take(ann)
    finish_task(ann, "T2")
    parent = read.get_task(ann.repo, "T1")
    assert (parent.state, parent.why, joins(project)) == ("blocked", "wait for legal", 1)


def test_dropped_branch_counts_as_failed(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "All")
    split(ann, "collect", "- [ ] One (kind: chore)\n")
    drop_task(ann.repo, ann.session, "T2", "nobody can")
    assert take(ann).task.id == "T1"
    assert results(ann) == [("One", "dropped", "nobody can")]


@pytest.mark.promise(
    "fans.joined-once",
    "However many branches end at the same instant, a split task continues exactly once.",
)
def test_sixteen_branches_that_end_concurrently_are_joined_once(live_project: Project) -> None:
    ann = live_project.agent("ann")
    add(ann, "All")
    text = "".join(f"- [ ] n{number} (kind: chore)\n" for number in range(16))
    split(ann, "all", text)
    agents = [live_project.agent(f"a{number}") for number in range(16)]
    taken = [take(agent).task.id for agent in agents]
    start = threading.Barrier(len(agents))

    def end_it(number: int) -> None:
        start.wait(30)
        if number % 4:
            finish_task(agents[number], taken[number], f"{number}")
        else:
            fail(agents[number], taken[number], f"{number}")

    for one in [Background(lambda n=n: end_it(n)) for n in range(16)]:
        one.result()

    assert joins(live_project) == 1
    assert task_kinds(live_project, "T1").count("task.joined") == 1
    found = results(ann)
    assert [one[0] for one in found] == [f"n{number}" for number in range(16)]
    assert [one[1] for one in found] == ["done" if number % 4 else "failed" for number in range(16)]
    expect_no_task(ann)


def test_two_branches_that_end_concurrently_see_each_other(
    live_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    add(ann, "All")
    split(ann, "all", "- [ ] One (kind: chore)\n- [ ] Two (kind: chore)\n")
    take(ann)
    take(bob)
    reached, go_on = threading.Event(), threading.Event()

    def slow(*arguments: object, **options: object) -> object:
        if not reached.is_set():
            reached.set()
            assert go_on.wait(30)
        return decide_join(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(join, "decide_join", slow)
    first = Background(lambda: finish_task(ann, "T2"))
    assert reached.wait(30)
    second = Background(lambda: finish_task(bob, "T3"))
    second.join(0.3)
    go_on.set()
    first.result()
    second.result()
    assert (joins(live_project), state(live_project, "T1")) == (1, "ready")


@SQLITE_ONLY
def test_rebuilt_store_has_the_same_fan_outs(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "All")
    split(ann, "2", deadline_ms=MINUTE)
    add(ann, "Open")
    split(ann, "all", task="T5")
    for task_id in ("T2", "T3"):
        take_task(ann.repo, ann.session, task_id, "")
        finish_task(ann, task_id, f"of {task_id}")
    before = [(one.id, one.state, one.owner, one.why) for one in read.list_tasks(ann.repo)]
    kept = [find_fan(ann.repo, name) for name in ("F1", "F2")]
    with opened(project) as repo:
        repo.settle()
        folder = repo.checkout.state_folder
    project.close()
    identity = (project.repository / ".git" / "landlane" / "repository").read_text().strip()
    rebuild_store(folder, identity, ignore_case=False)

    new = project.repo()

    assert [(one.id, one.state, one.owner, one.why) for one in read.list_tasks(new)] == before
    assert [find_fan(new, name) for name in ("F1", "F2")] == kept


def test_unknown_task_is_reported(project: Project) -> None:
    ann = project.agent("ann")
    for name, code in (("T9", "UNKNOWN_TASK"), ("F9", "UNKNOWN_FAN")):
        with pytest.raises(LandlaneError) as caught:
            find_fan(ann.repo, name)
        assert caught.value.code == code
