"""Entering plans on both stores: all tasks at once, each once, in the sequence that the check shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.errors import Malformed
from landlane.plans import add_tasks as plans
from landlane.plans.parse import read_plan
from landlane.settings.model import NumberSettings, Settings
from landlane.tasks.change import drop_task
from tests.support.work_queue import add, end, take

if TYPE_CHECKING:
    from landlane.plans.add_tasks import Entered
    from tests.support.sites import Agent, Site

pytestmark = pytest.mark.contract

PLAN = """# Dates
- [ ] Interface (name: api) (path: src/api.py) (contract: yes) (kind: chore)
- [ ] Parse dates (path: src/parse.py) (path: CHANGELOG.md) (agent: codex) (kind: chore)
- [ ] Show dates (path: src/show.py) (path: CHANGELOG.md) (kind: chore)
- [ ] Column of zones (path: migrations/1_zone.sql) (kind: chore)
- [ ] Column of places (path: migrations/2_place.sql) (kind: chore)
- [x] Look around (path: docs) (kind: chore)
"""
SETTINGS = Settings(numbers={"migration": NumberSettings(path="migrations/{n}_*.sql")})


def enter(agent: Agent, text: str = PLAN, *, force: bool = False) -> Entered:
    return plans.enter_plan(agent.repo, agent.session, read_plan(text, "plan.md"), force=force)


def befores(entered: Entered) -> dict[str, set[str]]:
    titles = {task.id: task.title for task in entered.tasks}
    return {task.title: {titles[one] for one in task.after} for task in entered.tasks}


def test_all_tasks_come_with_what_the_check_puts_in_sequence(site: Site) -> None:
    ann = site.agent("ann", settings=SETTINGS)

    entered = enter(ann)

    assert befores(entered) == {
        "Interface": set(),
        "Parse dates": {"Interface"},
        "Show dates": {"Parse dates"},
        "Column of zones": {"Interface"},
        "Column of places": {"Column of zones"},
    }
    assert [task.state for task in entered.tasks] == ["ready", "blocked", "blocked", "blocked", "blocked"]
    assert entered.added == entered.tasks
    assert entered.tasks[1].labels == ("agent:codex",)
    assert site.kinds().count("task.added") == 5


@pytest.mark.promise("plans.entered-once", "Adding the same plan again adds nothing.")
def test_the_same_plan_again_adds_nothing(site: Site) -> None:
    ann, bob = site.agent("ann", settings=SETTINGS), site.agent("bob", settings=SETTINGS)
    first = enter(ann)
    before = len(site.entries())

    again = enter(bob)

    assert again.added == ()
    assert [task.id for task in again.tasks] == [task.id for task in first.tasks]
    assert len(site.entries()) == before


def test_a_plan_that_grew_adds_what_is_new_also_when_the_rest_is_done(site: Site) -> None:
    ann = site.agent("ann", settings=SETTINGS)
    enter(ann)
    end(ann, take(ann).task.id)

    grown = enter(ann, PLAN + "- [ ] Announce it (path: news) (after: api) (after: Show dates)\n")

    (new,) = grown.added
    assert (new.title, len(grown.tasks)) == ("Announce it", 6)
    assert new.after == ("T1", "T3")


def test_the_queue_keeps_to_the_plan(site: Site) -> None:
    ann, bob = site.agent("ann", settings=SETTINGS), site.agent("bob", settings=SETTINGS)
    enter(ann)
    done: list[str] = []
    end(ann, take(ann).task.id)
    mine, theirs = take(ann).task, take(bob).task
    assert {mine.title, theirs.title} == {"Parse dates", "Column of zones"}
    end(ann, mine.id)
    end(bob, theirs.id)
    done += [take(ann).task.title, take(bob).task.title]
    assert set(done) == {"Show dates", "Column of places"}


def test_a_plan_with_problems_adds_nothing_and_names_them_all(site: Site) -> None:
    ann = site.agent("ann")

    with pytest.raises(Malformed) as caught:
        enter(ann, "- [ ] A (after: B)\n- [ ] B (after: A)\n- [ ] C (role: coder)\n- [ ] D (after: T99)\n")

    assert caught.value.code == "PLAN_UNFIT"
    assert len(caught.value.facts["problems"]) == 3
    assert "task.added" not in site.kinds()


def test_work_that_is_there_already_is_not_added_but_waited_for(site: Site) -> None:
    ann = site.agent("ann")
    add(ann, "Parse ISO dates")
    text = (
        "- [ ] Parse the ISO dates (kind: chore)\n- [ ] Ship it (kind: chore) (after: Parse the ISO dates)\n"
    )

    entered = enter(ann, text)

    ((name, similar),) = entered.skipped
    assert (name, similar[0].task) == ("Parse the ISO dates", "T1")
    assert [task.title for task in entered.added] == ["Ship it"]
    assert entered.added[0].after == ("T1",)
    assert len(enter(ann, text, force=True).added) == 1


def test_tasks_of_one_plan_may_look_alike(site: Site) -> None:
    ann = site.agent("ann")

    entered = enter(ann, "- [ ] Fix the login, see #12 (path: a)\n- [ ] Fix the logout, see #12 (path: b)\n")

    assert (len(entered.added), entered.skipped) == (2, ())


def test_paths_count_from_the_root(site: Site) -> None:
    ann = site.agent("ann")
    (task,) = enter(ann, "- [ ] A (path: ./src/a.py) (path: src/a.py) (path: deploy:prod)\n").tasks

    assert task.stored_paths == '[["src/a.py", "literal"], ["deploy:prod", "name"]]'


def test_a_task_that_was_dropped_holds_up_only_those_who_named_it(site: Site) -> None:
    ann = site.agent("ann")
    enter(ann, "# P\n- [ ] A (path: a)\n")
    drop_task(ann.repo, ann.session, "T1", "not needed")

    entered = enter(ann, "# P\n- [ ] A (path: a)\n- [ ] B (path: a)\n")
    assert [task.state for task in entered.tasks] == ["dropped", "ready"]
    with pytest.raises(Malformed, match="dropped"):
        enter(ann, "# P\n- [ ] A (path: a)\n- [ ] C (path: c) (after: A)\n")
