"""Splitting a task and joining its branches, on both stores: once, with all that came, whatever happens."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from landlane.errors import Held, LandlaneError, Malformed, NotAllowed, Stale
from landlane.fanout import join
from landlane.fanout import read as fanout_read
from landlane.fanout import split as fans
from landlane.fanout.model import judge
from landlane.plans.parse import read_plan
from landlane.setup.rebuild_store import rebuild_store
from landlane.tasks import records as read
from landlane.tasks.change import block_task, drop_task, fail_task, retry_task, unblock_task
from landlane.tasks.pick import take_task
from tests.support.sites import MINUTE, SQLITE_ONLY, Background, opened
from tests.support.work_queue import add, end, state, take, take_nothing, task_kinds

if TYPE_CHECKING:
    from tests.support.sites import Agent, Site

pytestmark = pytest.mark.contract

PARTS = "# Parts\n- [ ] One (kind: chore)\n- [ ] Two (kind: chore)\n- [ ] Three (kind: chore)\n"


def split(
    agent: Agent, policy: str = "all", text: str = PARTS, task: str = "T1", **more: object
) -> fans.FannedOut:
    plan = read_plan(text, "parts.md")
    return fans.fan_out(agent.repo, agent.session, task, plan, policy, **more)  # type: ignore[arg-type]


def fail(agent: Agent, task_id: str, why: str = "no way") -> None:
    fail_task(agent.repo, agent.session, task_id, why, is_final=True)


def joins(site: Site) -> int:
    return site.kinds().count("fan.joined")


def results(agent: Agent, name: str = "T1") -> list[tuple[str, str, str]]:
    _, branches = fanout_read.find_fan(agent.repo, name)
    return [(one.name, one.state, one.result or one.why) for one in branches]


def test_the_owner_lets_go_and_the_branches_are_offered_in_its_stead(site: Site) -> None:
    ann = site.agent("ann")
    add(ann, "All", paths=["src/**"])
    assert take(ann).claims

    done = split(ann)

    assert [task.title for task in done.tasks] == ["One", "Two", "Three"]
    assert {task.lineage for task in done.tasks} == {"T1"}
    assert ann.holds() == []
    parent = read.get_task(ann.repo, "T1")
    assert (parent.state, parent.owner, parent.session) == ("blocked", "", "")
    assert parent.why == "waits for its branches T2, T3, T4 (F1)"
    assert [take(ann).task.id for _ in range(3)] == ["T2", "T3", "T4"]


def test_all_joins_when_the_last_is_done_with_results_in_the_order_of_the_plan(site: Site) -> None:
    ann, bob = site.agent("ann"), site.agent("bob")
    add(ann, "All")
    split(ann)
    ids = [take(ann).task.id for _ in range(3)]
    for task_id in reversed(ids):
        assert state(site, "T1") == "blocked"
        end(ann, task_id, f"result of {task_id}")

    picked = take(bob)

    assert picked.task.id == "T1"
    (lesson,) = picked.lessons
    assert (
        "T2 One: done: result of T2\nT3 Two: done: result of T3\nT4 Three: done: result of T4" in lesson.why
    )
    assert [one[2] for one in results(ann)] == ["result of T2", "result of T3", "result of T4"]
    assert joins(site) == 1


@pytest.mark.promise(
    "fans.one-failure-is-one-failure",
    "A failed branch stops no other, and the join receives all results and failures in order.",
)
def test_a_failing_branch_stops_no_other_and_the_join_is_told_of_all(site: Site) -> None:
    ann = site.agent("ann")
    add(ann, "All")
    split(ann)
    for _ in range(3):
        take(ann)
    fail(ann, "T2")
    assert [state(site, one) for one in ("T1", "T3", "T4")] == ["blocked", "active", "active"]
    end(ann, "T3", "two")
    end(ann, "T4", "three")

    parent = read.get_task(ann.repo, "T1")

    assert (parent.state, parent.why) == ("failed", "F1 joined: 2 of 3 done, 1 failed, 3 needed")
    assert [one[1] for one in results(ann)] == ["failed", "done", "done"]
    retry_task(ann.repo, ann.session, "T1")
    assert "no way" in take(ann).lessons[0].why


def test_collect_is_content_with_whatever_came(site: Site) -> None:
    ann = site.agent("ann")
    add(ann, "All")
    split(ann, "collect")
    for task_id in ("T2", "T3", "T4"):
        take(ann)
        fail(ann, task_id)
    assert take(ann).task.id == "T1"


def test_any_joins_at_the_first_and_drops_what_nobody_has_begun(site: Site) -> None:
    ann, bob = site.agent("ann"), site.agent("bob")
    add(ann, "All")
    split(ann, "any")
    take(ann)
    take(bob)
    end(ann, "T2", "first")
    assert state(site, "T1") == "ready"

    assert take(ann).task.id == "T1"

    assert [state(site, one) for one in ("T3", "T4")] == ["active", "dropped"]
    end(bob, "T3", "late")
    assert [one[1] for one in results(ann)] == ["done", "active", "ready"]
    assert (joins(site), task_kinds(site, "T1").count("task.joined")) == (1, 1)


def test_what_nobody_has_begun_can_be_kept(site: Site) -> None:
    ann = site.agent("ann")
    add(ann, "All")
    split(ann, "2", rest="keep")
    for task_id in ("T2", "T3"):
        take(ann)
        end(ann, task_id)
    assert {take(ann).task.id, take(ann).task.id} == {"T1", "T4"}


def test_too_few_can_be_done_any_more_is_found_when_the_others_are_over(site: Site) -> None:
    ann = site.agent("ann")
    add(ann, "All")
    split(ann, "2")
    for _ in range(3):
        take(ann)
    fail(ann, "T2")
    fail(ann, "T3")
    assert state(site, "T1") == "blocked"
    end(ann, "T4")
    assert state(site, "T1") == "failed"


def test_who_waits_for_a_branch_that_failed_is_waited_for_no_longer(site: Site) -> None:
    ann = site.agent("ann")
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
    assert [state(site, one) for one in ("T5", "T6")] == ["dropped", "dropped"]


def test_branches_that_meet_on_a_path_take_turns_but_do_not_hang_on_each_other(site: Site) -> None:
    ann = site.agent("ann")
    add(ann, "All")
    done = split(ann, "any", "- [ ] A (path: a.py) (kind: chore)\n- [ ] B (path: a.py) (kind: chore)\n")
    assert [task.state for task in done.tasks] == ["ready", "ready"]
    take(ann)
    fail(ann, "T2")
    assert take(ann).task.id == "T3"


def test_the_deadline_joins_with_what_is_there_also_when_nobody_stayed(site: Site) -> None:
    ann, bob = site.agent("ann"), site.agent("bob")
    add(ann, "All")
    split(ann, "1", deadline_ms=5 * MINUTE)
    add(ann, "Other")
    split(ann, "collect", task="T5", deadline_ms=5 * MINUTE)
    take(ann)
    site.clock.advance(6 * MINUTE)

    assert [task.state for task in read.list_tasks(bob.repo)][:4] == [
        "failed",
        "active",
        "dropped",
        "dropped",
    ]
    assert read.get_task(bob.repo, "T1").why.endswith("0 of 3 done, 3 not over at the deadline, 1 needed")
    assert take(bob).task.id == "T5"
    assert joins(site) == 2


def test_the_same_plan_again_changes_nothing_and_another_is_refused(site: Site) -> None:
    ann = site.agent("ann")
    add(ann, "All")
    first = split(ann)
    before = len(site.entries())
    again = split(ann)
    assert (again.is_new, again.fan.id, again.tasks) == (False, first.fan.id, first.tasks)
    assert len(site.entries()) == before
    with pytest.raises(Held) as caught:
        split(ann, text=PARTS.replace("# Parts", "# Others"))
    assert caught.value.code == "FAN_OPEN"


def test_a_second_round_has_branches_of_its_own(site: Site) -> None:
    ann = site.agent("ann")
    add(ann, "All")
    split(ann, "any")
    take(ann)
    end(ann, "T2")
    take(ann)
    again = split(ann, "any")
    assert (again.fan.id, [task.id for task in again.tasks]) == ("F2", ["T5", "T6", "T7"])
    take(ann)
    end(ann, "T5")
    assert (state(site, "T1"), joins(site)) == ("ready", 2)


def test_a_branch_may_be_split_again(site: Site) -> None:
    ann = site.agent("ann")
    add(ann, "All")
    split(ann, text="- [ ] One (kind: chore)\n")
    assert take(ann).task.id == "T2"
    split(ann, text="- [ ] Deep (kind: chore)\n", task="T2")
    take(ann)
    fail(ann, "T3")
    assert [state(site, one) for one in ("T2", "T1")] == ["failed", "failed"]
    assert joins(site) == 2


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
def test_what_cannot_be_joined_is_not_split(site: Site, policy: str, text: str, code: str) -> None:
    ann = site.agent("ann")
    add(ann, "All")
    add(ann, "Behind", after=["T1"])
    with pytest.raises(Malformed) as caught:
        split(ann, policy, text)
    assert caught.value.code == code
    assert [task.state for task in read.list_tasks(ann.repo)] == ["ready", "blocked"]


def test_only_the_owner_splits_what_is_in_hand(site: Site) -> None:
    ann, bob = site.agent("ann"), site.agent("bob")
    add(ann, "All")
    take(ann)
    with pytest.raises(Stale):
        split(bob)
    end(ann, "T1")
    with pytest.raises(NotAllowed):
        split(ann)


def test_a_worker_that_may_only_look_splits_what_its_keeper_holds(site: Site) -> None:
    keeper = site.agent("claude-T1-x")
    hands = site.hands(keeper)
    add(keeper, "All")
    take(keeper)
    assert split(hands).fan.agent == "claude-T1-x.w"
    assert state(site, "T1") == "blocked"


def test_who_is_only_called_like_a_worker_splits_nothing(site: Site) -> None:
    ann, posing = site.agent("ann"), site.agent("ann.w")
    add(ann, "All")
    take(ann)
    with pytest.raises(Stale) as caught:
        split(posing)
    assert (caught.value.code, caught.value.facts["holder"]) == ("TASK_NOT_YOURS", "ann")
    assert state(site, "T1") == "active"


def test_who_takes_the_task_back_by_hand_leaves_nothing_to_join(site: Site) -> None:
    ann = site.agent("ann")
    add(ann, "All")
    split(ann)
    unblock_task(ann.repo, ann.session, "T1")
    for task_id in ("T1", "T2", "T3", "T4"):
        assert take(ann).task.id == task_id
        end(ann, task_id)
    assert joins(site) == 0
    assert fanout_read.find_fan(ann.repo, "T1")[0].state == "abandoned"
    assert join.settle_fans(ann.repo) == 0


def test_a_block_by_hand_outlives_the_join(site: Site) -> None:
    ann = site.agent("ann")
    add(ann, "All")
    split(ann, "any")
    block_task(ann.repo, ann.session, "T1", "wait for legal")
    take(ann)
    end(ann, "T2")
    parent = read.get_task(ann.repo, "T1")
    assert (parent.state, parent.why, joins(site)) == ("blocked", "wait for legal", 1)


def test_a_branch_that_is_dropped_is_a_failure(site: Site) -> None:
    ann = site.agent("ann")
    add(ann, "All")
    split(ann, "collect", "- [ ] One (kind: chore)\n")
    drop_task(ann.repo, ann.session, "T2", "nobody can")
    assert take(ann).task.id == "T1"
    assert results(ann) == [("One", "dropped", "nobody can")]


@pytest.mark.promise(
    "fans.joined-once",
    "However many branches end at the same instant, a split task continues exactly once.",
)
def test_sixteen_branches_that_end_at_the_same_instant_are_joined_once(live_site: Site) -> None:
    ann = live_site.agent("ann")
    add(ann, "All")
    text = "".join(f"- [ ] n{number} (kind: chore)\n" for number in range(16))
    split(ann, "all", text)
    agents = [live_site.agent(f"a{number}") for number in range(16)]
    taken = [take(agent).task.id for agent in agents]
    start = threading.Barrier(len(agents))

    def end_it(number: int) -> None:
        start.wait(30)
        if number % 4:
            end(agents[number], taken[number], f"{number}")
        else:
            fail(agents[number], taken[number], f"{number}")

    for one in [Background(lambda n=n: end_it(n)) for n in range(16)]:
        one.result()

    assert joins(live_site) == 1
    assert task_kinds(live_site, "T1").count("task.joined") == 1
    found = results(ann)
    assert [one[0] for one in found] == [f"n{number}" for number in range(16)]
    assert [one[1] for one in found] == ["done" if number % 4 else "failed" for number in range(16)]
    take_nothing(ann)


def test_two_that_end_while_the_other_looks_do_not_miss_each_other(
    live_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = live_site.agent("ann"), live_site.agent("bob")
    add(ann, "All")
    split(ann, "all", "- [ ] One (kind: chore)\n- [ ] Two (kind: chore)\n")
    take(ann)
    take(bob)
    reached, go_on = threading.Event(), threading.Event()

    def slow(*arguments: object, **options: object) -> object:
        if not reached.is_set():
            reached.set()
            assert go_on.wait(30)
        return judge(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(join, "judge", slow)
    first = Background(lambda: end(ann, "T2"))
    assert reached.wait(30)
    second = Background(lambda: end(bob, "T3"))
    second.join(0.3)
    go_on.set()
    first.result()
    second.result()
    assert (joins(live_site), state(live_site, "T1")) == (1, "ready")


@SQLITE_ONLY
def test_a_store_built_from_the_journal_knows_what_is_split_and_joined(site: Site) -> None:
    ann = site.agent("ann")
    add(ann, "All")
    split(ann, "2", deadline_ms=MINUTE)
    add(ann, "Open")
    split(ann, "all", task="T5")
    for task_id in ("T2", "T3"):
        take_task(ann.repo, ann.session, task_id, "")
        end(ann, task_id, f"of {task_id}")
    before = [(one.id, one.state, one.owner, one.why) for one in read.list_tasks(ann.repo)]
    kept = [fanout_read.find_fan(ann.repo, name) for name in ("F1", "F2")]
    with opened(site) as repo:
        repo.settle()
        folder = repo.checkout.state_folder
    site.close()
    identity = (site.repository / ".git" / "landlane" / "repository").read_text().strip()
    rebuild_store(folder, identity, ignore_case=False)

    new = site.repo()

    assert [(one.id, one.state, one.owner, one.why) for one in read.list_tasks(new)] == before
    assert [fanout_read.find_fan(new, name) for name in ("F1", "F2")] == kept


def test_a_task_that_is_not_there_is_said_so(site: Site) -> None:
    ann = site.agent("ann")
    for name, code in (("T9", "UNKNOWN_TASK"), ("F9", "UNKNOWN_FAN")):
        with pytest.raises(LandlaneError) as caught:
            fanout_read.find_fan(ann.repo, name)
        assert caught.value.code == code
