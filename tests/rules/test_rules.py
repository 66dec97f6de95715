"""Rules on both stores: versions seen once, read by each session, told once, and counted when broken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from landlane.errors import Held, RepositoryError
from landlane.rules import versions as operations
from landlane.rules.model import read_rules
from landlane.rules.report import count_violations
from landlane.rules.versions import COMMAND, HOOK
from landlane.rules.violations import CLAIM_CODES, CLAIM_FIRST, SYNC_FIRST, Watched, record_violation
from landlane.sessions.notices import take_undelivered
from landlane.setup.rebuild_store import rebuild_store
from landlane.store import records
from tests.support.project import MINUTE, SQLITE_ONLY, Background, opened

if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.rules.model import Rules
    from tests.support.project import Agent, Project

pytestmark = pytest.mark.contract

FILE = "RULES.md"
ONE = read_rules("## Be kind\nAlways.\n## Be quick\nMostly.\n")
TWO = read_rules("## Be kind\nEven on Mondays.\n## Be honest\nNever lie.\n")


def read(agent: Agent, rules: Rules, how: str = HOOK) -> bool:
    return operations.acknowledge(agent.repo, agent.session, rules, how=how, file=FILE)


def known_versions(repo: Repository) -> list[dict[str, Any]]:
    found = repo.store.view(lambda snapshot: records.find_by_key(snapshot, operations.NOUN, "version"))
    return sorted(found, key=lambda one: (one["seen_at"], one["id"]))


def version_at(agent: Agent, wall_ms: int) -> str:
    found = operations.find_acknowledgement(agent.repo, agent.session.id)
    steps = [step for step in found.history if step["at"] <= wall_ms] if found is not None else []
    return str(steps[-1]["version"]) if steps else ""


def versions(agent: Agent, newest: Rules) -> dict[str, tuple[str, bool]]:
    readers = operations.list_readers(agent.repo, newest.version)
    return {one.session.agent: (one.version, one.is_current) for one in readers}


def test_a_version_is_written_down_once_with_who_saw_it_first(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    read(ann, ONE)
    project.clock.advance(MINUTE)
    read(bob, ONE)
    read(bob, TWO)

    known = known_versions(ann.repo)

    assert [(one["id"], one["agent"], one["text"]) for one in known] == [
        (ONE.version, "ann", ONE.text),
        (TWO.version, "bob", TWO.text),
    ]
    assert project.kinds().count("rules.seen") == 2


def test_each_session_acknowledges_what_it_read(project: Project) -> None:
    ann, bob, _ = project.agent("ann"), project.agent("bob"), project.agent("eve")

    assert read(ann, ONE)
    assert not read(ann, ONE)
    assert read(bob, TWO, COMMAND)

    assert versions(ann, TWO) == {
        "ann": (ONE.version, False),
        "bob": (TWO.version, True),
        "eve": ("", False),
    }
    answer = [
        (entry.agent, entry.facts()["version"], entry.facts()["how"])
        for entry in project.entries()
        if entry.kind == "rules.acknowledged"
    ]
    assert answer == [("ann", ONE.version, HOOK), ("bob", TWO.version, COMMAND)]


@pytest.mark.promise(
    "rules.who-worked-under-which",
    "For any session and any time, the version of the rules it worked under is known.",
)
def test_for_any_instant_it_can_be_told_what_a_session_worked_under(project: Project) -> None:
    ann = project.agent("ann")
    wall = ann.repo.store.wall_of
    before = wall(project.now())
    project.clock.advance(MINUTE)
    read(ann, ONE)
    between = wall(project.now())
    project.clock.advance(MINUTE)
    read(ann, TWO)
    after = wall(project.now())

    at = [version_at(ann, when) for when in (before, between, after)]

    assert at == ["", ONE.version, TWO.version]


def test_a_session_is_told_of_a_version_once(project: Project) -> None:
    ann = project.agent("ann")
    read(ann, ONE)

    first = operations.record_shown(ann.repo, ann.session, TWO, file=FILE)
    again = operations.record_shown(ann.repo, ann.session, TWO, file=FILE)

    found = operations.find_acknowledgement(ann.repo, ann.session.id)
    assert (first, again) == (True, False)
    assert found is not None
    assert (found.version, found.shown) == (ONE.version, TWO.version)


def test_what_changed_is_told_against_what_was_read(project: Project) -> None:
    ann = project.agent("ann")
    read(ann, ONE)

    change = operations.change_since(ann.repo, ONE.version, TWO)

    assert (change.added, change.changed, change.removed) == (("Be honest",), ("Be kind",), ("Be quick",))
    assert operations.change_since(ann.repo, "f" * 12, TWO).added == ("Be kind", "Be honest")


def test_two_who_see_a_version_at_once_write_it_down_once(live_project: Project) -> None:
    agents = [live_project.agent(name) for name in ("ann", "bob", "eve", "dan")]
    for work in [Background(lambda agent=agent: read(agent, ONE)) for agent in agents]:
        assert work.result()

    assert live_project.kinds().count("rules.seen") == 1
    assert live_project.kinds().count("rules.acknowledged") == 4


@SQLITE_ONLY
def test_a_rebuilt_store_knows_who_has_read_what(project: Project) -> None:
    ann = project.agent("ann")
    read(ann, ONE)
    read(ann, TWO)
    with opened(project) as repo:
        folder, repository = repo.state_folder, repo.store.repository
    project.close()

    rebuild_store(folder, repository, ignore_case=False)

    bob = project.agent("bob")
    assert versions(bob, TWO)["ann"] == (TWO.version, True)
    assert [one["id"] for one in known_versions(bob.repo)] == [ONE.version, TWO.version]
    found = operations.find_acknowledgement(bob.repo, ann.session.id)
    assert found is not None
    assert [step["version"] for step in found.history] == [ONE.version, TWO.version]


def test_the_rule_that_is_broken_most_comes_first(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    for agent, rule in ((ann, SYNC_FIRST), (ann, CLAIM_FIRST), (bob, CLAIM_FIRST), (bob, CLAIM_FIRST)):
        record_violation(agent.repo, agent.session, rule=rule, guard="edit", what="a.py", paths=("a.py",))

    broken = count_violations(ann.repo)

    assert [(one.rule, one.count, dict(one.agents)) for one in broken] == [
        (CLAIM_FIRST, 3, {"bob": 2, "ann": 1}),
        (SYNC_FIRST, 1, {"ann": 1}),
    ]


def test_a_report_may_be_of_late(project: Project) -> None:
    ann = project.agent("ann")
    record_violation(ann.repo, ann.session, rule=SYNC_FIRST, guard="deploy", what="old")
    project.clock.advance(10 * MINUTE)
    record_violation(ann.repo, ann.session, rule=CLAIM_FIRST, guard="edit", what="new")

    assert [one.rule for one in count_violations(ann.repo, ann.repo.wall_ms() - MINUTE)] == [CLAIM_FIRST]


def test_a_refusal_is_noted_under_its_rule_and_goes_on(project: Project) -> None:
    ann = project.agent("ann")
    watched = Watched(repo=ann.repo, session=ann.session, rule=CLAIM_FIRST, guard="commit", codes=CLAIM_CODES)
    for error in (
        Held("a is held", code="CLAIM_HELD", path="a\udcff.py"),
        RepositoryError("offline", code="OFFLINE"),
    ):
        with pytest.raises(type(error)) as raised, watched:
            raise error
        assert raised.value is error

    (broken,) = count_violations(ann.repo)
    assert (broken.rule, broken.count, broken.last_what) == (CLAIM_FIRST, 1, "CLAIM_HELD: a is held")


def test_a_thing_is_told_once(project: Project) -> None:
    ann = project.agent("ann")

    first = take_undelivered(ann.repo, ann.session.id, "a", ["x", "y", "x"])
    second = take_undelivered(ann.repo, ann.session.id, "a", ["y", "z"])
    third = take_undelivered(ann.repo, ann.session.id, "a", ["x", "z"])

    assert (first, second, third) == (["x", "y"], ["z"], [])
    assert take_undelivered(ann.repo, ann.session.id, "b", ["x"]) == ["x"]
