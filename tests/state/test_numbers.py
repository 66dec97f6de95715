"""Numbers: distinct and growing, above all that stand in git, and never given out again, on both stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.errors import Malformed, Stale
from landlane.settings.model import NumberSettings, Settings
from landlane.setup.rebuild_store import rebuild_store
from landlane.state import numbers
from landlane.testing.repositories import git
from tests.state.crowd import ask_crowd
from tests.support.project import MINUTE, SQLITE_ONLY, opened

if TYPE_CHECKING:
    from pathlib import Path

    from landlane.state.numbers import AllocatedNumber
    from tests.support.project import Agent, Project

pytestmark = pytest.mark.contract

PATH = "migrations/{n}_*.sql"
COUNTED = Settings(numbers={"migration": NumberSettings(path=PATH, width=4)})


def give(agent: Agent, kind: str = "migration", purpose: str = "") -> AllocatedNumber:
    return numbers.give_number(agent.repo, agent.session, kind, purpose=purpose, is_new_kind=True)


def states(agent: Agent) -> dict[int, str]:
    return {one.number: one.state for one in numbers.list_numbers(agent.repo, "migration")}


def write(folder: Path, name: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("-- a migration\n", encoding="utf-8")


def commit(folder: Path, name: str) -> None:
    write(folder, name)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", name)


def test_without_settings_it_counts_from_one(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")

    assert [give(one, "adr").number for one in (ann, bob, ann)] == [1, 2, 3]
    assert give(bob, "other").number == 1
    assert {one.state for one in numbers.list_numbers(ann.repo, "adr")} == {"given"}


@pytest.mark.promise("numbers.above-every-branch", "A new number is higher than every number in any branch.")
def test_a_number_is_above_all_that_stand_in_any_branch(project: Project) -> None:
    repository = project.repository
    commit(repository, "migrations/0003_users.sql")
    git(repository, "switch", "--quiet", "--create", "topic")
    commit(repository, "migrations/0007_orders.sql")
    git(repository, "switch", "--quiet", "main")
    git(repository, "update-ref", "refs/remotes/origin/far", "topic")
    git(repository, "branch", "--quiet", "-D", "topic")

    given = give(project.agent("ann", settings=COUNTED))

    assert (given.number, given.text, given.path) == (8, "0008", "migrations/0008_*.sql")


def test_files_that_nobody_committed_count_in_every_working_tree(project: Project, tmp_path: Path) -> None:
    beside = tmp_path / "beside"
    git(project.repository, "worktree", "add", "--quiet", "-b", "beside", str(beside))
    write(beside, "migrations/0012_draft.sql")
    write(project.repository, "migrations/0005_draft.sql")

    assert give(project.agent("ann", settings=COUNTED)).number == 13


def test_other_files_do_not_count(project: Project) -> None:
    commit(project.repository, "migrations/0002_a.sql")
    commit(project.repository, "migrations/0090_a.txt")
    commit(project.repository, "migrations/deep/0091_a.sql")
    commit(project.repository, "elsewhere/0092_a.sql")
    commit(project.repository, f"migrations/{'9' * 30}_a.sql")

    assert give(project.agent("ann", settings=COUNTED)).number == 3


def test_a_path_may_have_its_number_in_a_folder(project: Project) -> None:
    commit(project.repository, "db/v7/up.sql")
    settings = Settings(numbers={"migration": NumberSettings(path="db/v{n}/**/*.sql")})

    given = give(project.agent("ann", settings=settings))

    assert (given.number, given.path) == (8, "db/v8/**/*.sql")


def test_each_number_is_told_as_used_pending_or_abandoned(project: Project) -> None:
    ann, bob = project.agent("ann", settings=COUNTED), project.agent("bob", settings=COUNTED)
    for agent in (ann, bob, bob, ann):
        give(agent, purpose="a table")
    commit(project.repository, "migrations/0001_a.sql")
    write(project.repository, "migrations/0002_b.sql")
    bob.leave()

    assert states(ann) == {1: "used", 2: "pending", 3: "abandoned", 4: "pending"}
    assert give(ann).number == 5, "an abandoned number is not given out again"


def test_a_number_of_a_lapsed_session_is_abandoned(project: Project) -> None:
    ann = project.agent("ann", settings=COUNTED)
    give(ann)
    project.clock.advance(31 * MINUTE)

    assert states(project.agent("bob", settings=COUNTED)) == {1: "abandoned"}
    with pytest.raises(Stale):
        give(ann)


def test_a_number_is_journaled_with_its_purpose(project: Project) -> None:
    give(project.agent("ann"), purpose="add users")

    entry = next(entry for entry in project.entries() if entry.kind == "number.given")

    assert (entry.agent, entry.facts()) == ("ann", {"kind": "migration", "number": 1, "purpose": "add users"})


@pytest.mark.parametrize("kind", ["", "list", "A", "a b", "a/b", "x" * 65])
def test_what_cannot_be_a_kind_is_refused(project: Project, kind: str) -> None:
    with pytest.raises(Malformed) as answer:
        give(project.agent("ann"), kind)
    assert answer.value.code == "BAD_KIND"


@pytest.mark.promise("numbers.distinct", "No two sessions get the same number, and there are no gaps.")
def test_a_crowd_gets_distinct_numbers_without_a_gap(live_project: Project) -> None:
    got = ask_crowd(live_project, "number", processes=32, turns=3)

    assert sorted(number for turns in got for number in turns) == list(range(1, 97))
    assert all(turns == sorted(turns) for turns in got)


@SQLITE_ONLY
def test_a_rebuilt_store_gives_no_number_twice(project: Project) -> None:
    ann = project.agent("ann")
    give(ann)
    give(ann)
    with opened(project) as repo:
        repo.settle()
        folder, repository_id = repo.state_folder, repo.store.repository
    project.close()

    rebuild_store(folder, repository_id, ignore_case=False)

    assert give(project.agent("bob")).number == 3
