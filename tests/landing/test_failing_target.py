"""A target that fails its own checks: entries are tested one by one, and only one that repairs it lands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.landing.decide import eject_entry
from landlane.landing.records import get_queue
from landlane.tasks.add import Added, add_task
from landlane.tasks.model import FIXES_TARGET, NewTask
from landlane.tasks.pick import next_task
from landlane.tasks.records import get_task

if TYPE_CHECKING:
    from tests.support.landing import LandingTestbed

pytestmark = pytest.mark.integration


def fix_task(testbed: LandingTestbed, agent: str, *paths: str) -> str:
    """An agent's task to repair the target; its id."""
    new = NewTask(title="Fix main", paths=paths, labels=(FIXES_TARGET,))
    added = add_task(testbed.repo, None, new)
    assert isinstance(added, Added)
    next_task(testbed.repo, testbed.agent(agent))
    return added.task.id


def test_a_broken_target_lands_only_the_entry_that_repairs_it(testbed: LandingTestbed) -> None:
    testbed.configure('["test ! -e bad"]', "batch = 8\n")
    testbed.commit({"bad": "x"}, "Break it")
    for number in range(3):
        testbed.branch(f"b{number}", {f"f{number}": "x"})
        testbed.submit(f"b{number}", f"agent{number}")
    testbed.run()
    testbed.branch("repair", {"bad": None})
    repair = testbed.submit("repair", "dora")
    landed: list[str] = []

    def look(step: str) -> None:
        if step == "moved" and not landed:
            landed.append(testbed.tip)

    assert testbed.run(look) is None

    assert set(testbed.states().values()) == {"landed"}
    assert landed == [testbed.reload(repair).commit], "it landed alone, before the others"


def test_a_failed_repair_returns_to_its_task_and_the_others_wait_uncharged(testbed: LandingTestbed) -> None:
    testbed.configure('["echo still bad; test ! -e bad"]')
    testbed.commit({"bad": "x"}, "Break it")
    task = fix_task(testbed, "dora", "bad")
    testbed.branch("other", {"a.txt": "x"})
    testbed.submit("other", "ann")
    testbed.branch(f"landlane/{task}-1/work", {"bad": "y"})
    repair = testbed.submit_with_held_claims(f"landlane/{task}-1/work", "dora", task)

    testbed.run()

    repair = testbed.reload(repair)
    assert (repair.state, repair.code) == ("bounced", "CHECK_FAILED")
    assert repair.reason.startswith("main still fails with it: ")
    assert "still bad" in repair.output
    assert get_task(testbed.repo, task).failures == 1
    assert testbed.states()["other"] == "queued"


def test_an_entry_that_fails_a_later_check_than_the_target_waits(testbed: LandingTestbed) -> None:
    testbed.configure('["test ! -e bad", "test ! -e worse"]')
    testbed.commit({"bad": "x", "worse": "x"}, "Break both")
    testbed.branch("half", {"bad": None})
    half = testbed.submit("half")

    stop = testbed.run()

    assert stop is not None
    assert (stop.code, testbed.reload(half).state) == ("TARGET_RED", "queued")


def test_an_entry_that_breaks_what_the_target_passes_is_bounced(testbed: LandingTestbed) -> None:
    testbed.configure('["test ! -e mine", "test ! -e bad"]')
    testbed.commit({"bad": "x"}, "Break it")
    testbed.branch("one", {"mine": "x"})
    entry = testbed.submit("one")

    testbed.run()

    assert (testbed.reload(entry).state, testbed.reload(entry).code) == ("bounced", "CHECK_FAILED")


def test_a_repair_from_outside_is_noticed_without_any_entry(testbed: LandingTestbed) -> None:
    testbed.configure('["test ! -e bad"]')
    testbed.commit({"bad": "x"}, "Break it")
    testbed.branch("one", {"a.txt": "x"})
    entry = testbed.submit("one")
    testbed.run()
    assert get_queue(testbed.repo, "main").failure is not None
    eject_entry(testbed.repo, testbed.agent("ann"), entry.id, "later")

    testbed.commit({"bad": None}, "Repair it")
    testbed.run()

    queue = get_queue(testbed.repo, "main")
    assert (queue.failure, queue.passing) == (None, testbed.tip)
