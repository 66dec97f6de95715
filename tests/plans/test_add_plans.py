"""Add plans on both stores: all tasks at once, each once, in the order of the check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.errors import Malformed
from landlane.plans.add_tasks import add_plan
from landlane.plans.parse import read_plan
from landlane.settings.model import NumberSettings, Settings
from landlane.tasks.change import drop_task
from tests.support.tasks import add, finish_task, take

if TYPE_CHECKING:
    from landlane.plans.add_tasks import AddedPlan
    from tests.support.project import Agent, Project

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


def enter(agent: Agent, text: str = PLAN, *, force: bool = False) -> AddedPlan:
    return add_plan(agent.repo, agent.session, read_plan(text, "plan.md"), force=force)


def befores(entered: AddedPlan) -> dict[str, set[str]]:
    titles = {task.id: task.title for task in entered.tasks}
    return {task.title: {titles[one] for one in task.after} for task in entered.tasks}


def test_added_tasks_have_stated_and_implied_dependencies(project: Project) -> None:
    ann = project.agent("ann", settings=SETTINGS)

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
    assert project.kinds().count("task.added") == 5


@pytest.mark.promise("plans.entered-once", "Adding the same plan again adds nothing.")
def test_same_plan_again_adds_nothing(project: Project) -> None:
    ann, bob = project.agent("ann", settings=SETTINGS), project.agent("bob", settings=SETTINGS)
    first = enter(ann)
    before = len(project.entries())

    again = enter(bob)

    assert again.added == ()
    assert [task.id for task in again.tasks] == [task.id for task in first.tasks]
    assert len(project.entries()) == before


def test_longer_plan_adds_only_the_new_tasks(project: Project) -> None:
    ann = project.agent("ann", settings=SETTINGS)
    enter(ann)
    finish_task(ann, take(ann).task.id)

    grown = enter(ann, PLAN + "- [ ] Announce it (path: news) (after: api) (after: Show dates)\n")

    (new,) = grown.added
    assert (new.title, len(grown.tasks)) == ("Announce it", 6)
    assert new.after == ("T1", "T3")


def test_queue_offers_tasks_in_the_order_of_the_plan(project: Project) -> None:
    ann, bob = project.agent("ann", settings=SETTINGS), project.agent("bob", settings=SETTINGS)
    enter(ann)
    done: list[str] = []
    finish_task(ann, take(ann).task.id)
    mine, theirs = take(ann).task, take(bob).task
    assert {mine.title, theirs.title} == {"Parse dates", "Column of zones"}
    finish_task(ann, mine.id)
    finish_task(bob, theirs.id)
    done += [take(ann).task.title, take(bob).task.title]
    assert set(done) == {"Show dates", "Column of places"}


def test_plan_with_problems_is_refused_with_all_of_them(project: Project) -> None:
    ann = project.agent("ann")

    with pytest.raises(Malformed) as caught:
        enter(ann, "- [ ] A (after: B)\n- [ ] B (after: A)\n- [ ] C (role: coder)\n- [ ] D (after: T99)\n")

    assert (caught.value.code, caught.value.facts["lines"]) == ("PLAN_UNFIT", [3])
    assert len(caught.value.facts["problems"]) == 3
    assert "task.added" not in project.kinds()


def test_similar_task_in_the_queue_is_waited_for_instead(project: Project) -> None:
    ann = project.agent("ann")
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


def test_similar_tasks_of_one_plan_are_all_added(project: Project) -> None:
    ann = project.agent("ann")

    entered = enter(ann, "- [ ] Fix the login, see #12 (path: a)\n- [ ] Fix the logout, see #12 (path: b)\n")

    assert (len(entered.added), entered.skipped) == (2, ())


def test_paths_are_relative_to_the_root(project: Project) -> None:
    ann = project.agent("ann")
    (task,) = enter(ann, "- [ ] A (path: ./src/a.py) (path: src/a.py) (path: deploy:prod)\n").tasks

    assert task.stored_paths == '[["src/a.py", "literal"], ["deploy:prod", "name"]]'


def test_dropped_task_blocks_only_tasks_that_name_it(project: Project) -> None:
    ann = project.agent("ann")
    enter(ann, "# P\n- [ ] A (path: a)\n")
    drop_task(ann.repo, ann.session, "T1", "not needed")

    entered = enter(ann, "# P\n- [ ] A (path: a)\n- [ ] B (path: a)\n")
    assert [task.state for task in entered.tasks] == ["dropped", "ready"]
    with pytest.raises(Malformed, match="dropped"):
        enter(ann, "# P\n- [ ] A (path: a)\n- [ ] C (path: c) (after: A)\n")
