"""Roles as operations enforce them: claims, tasks, joining, and who may give which role."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from landlane.errors import Malformed, NotAllowed
from landlane.landing.decide import decide_held_entry
from landlane.roles.enforce import check_paths, check_verb, may_write, role_of
from landlane.roles.model import BUILT_IN
from landlane.rules.violations import STAY_IN_ROLE
from landlane.sessions import join as sessions
from landlane.sessions.model import SessionKind
from landlane.settings.model import RoleSettings, Settings
from landlane.tasks.add import add_task
from landlane.tasks.import_checklist import import_checklist
from landlane.tasks.model import NewTask
from landlane.tasks.pick import next_task, take_task
from landlane.values import replace
from tests.support.tasks import add, expect_no_task, take

if TYPE_CHECKING:
    from landlane.platform.process import Process
    from tests.support.project import Project

pytestmark = pytest.mark.contract

NOT_CLAIMING = [name for name, role in BUILT_IN.items() if "claim" not in role.verbs]


def caught(project: Project) -> list[tuple[str, str, str]]:
    """What was written down as caught: who, at which guard, and under which rule."""
    found = [entry for entry in project.entries() if entry.kind == "rule.violated"]
    return [(entry.agent, entry.facts()["guard"], entry.facts()["rule"]) for entry in found]


# --------------------------------------------------------------------------------------------- claims


@pytest.mark.parametrize("role", NOT_CLAIMING)
def test_a_role_without_claims_is_refused_each(project: Project, role: str) -> None:
    ann = project.agent("ann", role=role)

    for pattern in ("src/a.py", "**", "deploy:prod"):
        with pytest.raises(NotAllowed) as answer:
            ann.claim(pattern)
        assert (answer.value.code, answer.value.facts["role"]) == ("ROLE_FORBIDS", role)
        assert (answer.value.facts["verb"], answer.value.exit_code) == ("claim", 6)
    assert ann.holds() == []
    assert caught(project) == [("ann", "claim", STAY_IN_ROLE)] * 3


def test_a_role_claims_what_it_may_write_and_nothing_else(project: Project) -> None:
    ann, tess, rob = (
        project.agent("ann", role="code"),
        project.agent("tess", role="test"),
        project.agent("rob"),
    )

    ann.take("src/a.py", "src/**")
    tess.take("tests/a.py")
    ann.take("deploy:prod")
    for agent, path in ((ann, "tests/b.py"), (ann, "tests/**"), (ann, ".gitattributes"), (tess, "src/b.py")):
        with pytest.raises(NotAllowed) as answer:
            agent.claim(path)
        assert (answer.value.code, answer.value.facts["path"]) == ("ROLE_FORBIDS", path)
        assert answer.value.facts["holder"] == agent.name
    rob.take("tests/b.py", ".gitattributes")


def test_nobody_stands_in_line_for_what_its_role_may_not_write(project: Project) -> None:
    project.agent("bob").take("tests/a.py")
    with pytest.raises(NotAllowed, match="may not change tests"):
        project.agent("ann", role="code").claim("tests/a.py", wait_ms=60_000)
    assert project.waiting_agents() == []


def test_an_orchestrator_claims_names_alone(project: Project) -> None:
    otto = project.agent("otto", role="orchestrator")

    assert otto.take("deploy:prod").pattern == "deploy:prod"
    with pytest.raises(NotAllowed, match="changes no file"):
        otto.claim("src/a.py")


def test_a_role_that_is_defined_no_longer_may_nothing(project: Project) -> None:
    there = Settings(roles={"gardener": RoleSettings(like="code")})
    gil = project.agent("gil", settings=there, role="gardener")
    gil.take("src/a.py")

    gone = project.repo(settings=Settings())
    assert role_of(gone, gil.session) is not None
    assert may_write(gone, gil.session, "src/a.py") == "the role gardener changes no file"
    with pytest.raises(NotAllowed):
        check_verb(gone, gil.session, "commit", guard="commit")


def test_paths_and_verbs_are_judged_for_every_guard(project: Project) -> None:
    ann, bob = project.agent("ann", role="code"), project.agent("bob")

    assert may_write(ann.repo, ann.session, "src/a.py") == ""
    assert may_write(bob.repo, bob.session, "tests/a.py") == ""
    check_verb(ann.repo, ann.session, "land", guard="landing")
    with pytest.raises(NotAllowed, match="the role code may not deploy"):
        check_verb(ann.repo, ann.session, "deploy", guard="deploy")
    with pytest.raises(NotAllowed) as answer:
        check_paths(ann.repo, ann.session, ["src/a.py", "tests/a.py", "tests/b.py"], guard="commit")
    assert answer.value.facts["paths"] == ["tests/a.py", "tests/b.py"]
    assert [guard for _, guard, _ in caught(project)] == ["deploy", "commit"]


# ---------------------------------------------------------------------------------------------- tasks


def test_next_offers_what_the_role_may_write(project: Project) -> None:
    ann, tess, rita = (
        project.agent("ann", role="code"),
        project.agent("tess", role="test"),
        project.agent("rita", role="review"),
    )
    add(ann, "mend the tests", paths=("tests/a.py",), priority=9)
    add(ann, "mend the source", paths=("src/a.py",))
    add(ann, "talk about it")

    assert take(rita).task.title == "talk about it"
    expect_no_task(rita)
    assert take(ann).task.title == "mend the source"
    assert expect_no_task(ann).held_up == ()
    assert take(tess).task.title == "mend the tests"


def test_nobody_takes_the_task_of_another_role(project: Project) -> None:
    ann, tess = project.agent("ann", role="code"), project.agent("tess", role="test")
    task = add(ann, "test it", role="test")

    with pytest.raises(NotAllowed) as answer:
        next_task(ann.repo, ann.session, "test")
    assert answer.value.code == "ROLE_FORBIDS"
    with pytest.raises(NotAllowed, match="a task for the role test is not for the role code"):
        take_task(ann.repo, ann.session, task.id, "")
    expect_no_task(ann)
    assert take(tess).task.id == task.id


def test_a_task_for_a_role_that_is_not_there_is_refused(project: Project) -> None:
    ann = project.agent("ann")

    with pytest.raises(Malformed) as answer:
        add_task(ann.repo, ann.session, NewTask(title="Test it", role="tset"))
    assert (answer.value.code, answer.value.facts["nearest"]) == ("UNKNOWN_ROLE", "test")
    with pytest.raises(Malformed, match="unknown role ops"):
        import_checklist(ann.repo, ann.session, "- [ ] Ship it (role: ops)\n")


# --------------------------------------------------------------------------------------------- joining


def test_an_unknown_role_cannot_be_joined_in(project: Project) -> None:
    with pytest.raises(Malformed) as answer:
        project.agent("ann", role="coder")

    assert (answer.value.code, answer.value.facts["nearest"]) == ("UNKNOWN_ROLE", "code")
    assert "session.joined" not in project.kinds()


def test_an_agent_cannot_give_itself_another_role(project: Project) -> None:
    ann = project.agent("ann", role="explore")

    with pytest.raises(NotAllowed) as answer:
        sessions.join(ann.repo, "ann", role="code")
    assert (answer.value.code, answer.value.facts["role"]) == ("ROLE_FORBIDS", "explore")
    assert sessions.join(ann.repo, "ann").session.role == "explore"
    assert sessions.join(ann.repo, "ann", role="code", may_choose_role=True).session.role == "code"


def test_an_agent_without_a_role_may_bind_itself_but_not_get_loose_again(project: Project) -> None:
    ann = project.agent("ann")

    assert sessions.join(ann.repo, "ann", role="review").session.role == "review"
    with pytest.raises(NotAllowed):
        sessions.join(ann.repo, "ann", role="code")


def _here(project: Project) -> Process:
    return project.repo().processes.identify(os.getppid())


def test_whoever_is_below_an_agent_has_its_role_under_any_name(project: Project) -> None:
    ann = project.agent("ann", role="explore", process=_here(project))

    assert sessions.join(ann.repo, "bob").session.role == "explore"
    with pytest.raises(NotAllowed) as answer:
        sessions.join(ann.repo, "carl", role="code")
    assert (answer.value.code, answer.value.facts["wanted"]) == ("ROLE_FORBIDS", "code")
    assert sessions.join(ann.repo, "carl", role="explore").session.role == "explore"


def test_leaving_and_joining_again_keeps_the_role(project: Project) -> None:
    ann = project.agent("ann", role="explore", process=_here(project))
    ann.leave()

    with pytest.raises(NotAllowed):
        sessions.join(ann.repo, "ann", role="code")
    again = sessions.join(ann.repo, "ann")
    assert (again.is_new, again.session.role) == (True, "explore")


def test_below_an_agent_nobody_gets_into_the_session_of_another(project: Project) -> None:
    bob = project.agent("bob")
    ann = project.agent("ann", role="explore", process=_here(project))

    with pytest.raises(NotAllowed) as answer:
        sessions.join(ann.repo, "bob", process=ann.repo.processes.current())
    assert answer.value.code == "ROLE_FORBIDS"
    assert bob.session.role == ""


def test_a_session_that_is_shown_binds_as_well(project: Project) -> None:
    ann = project.agent("ann", role="review")
    shown = f"{ann.session.id}:{ann.joined.secret}"

    with pytest.raises(NotAllowed):
        sessions.join(ann.repo, "bob", role="code", shown=shown)
    ann.leave()
    assert sessions.join(ann.repo, "bob", shown=shown).session.role == "review"


def test_no_role_decides_for_a_person(project: Project) -> None:
    ann = project.agent("ann", role="orchestrator")
    posing = replace(ann.session, kind=SessionKind.PERSON)

    with pytest.raises(NotAllowed) as answer:
        decide_held_entry(ann.repo, posing, "L1", is_approved=True)
    assert answer.value.code == "ROLE_FORBIDS"
