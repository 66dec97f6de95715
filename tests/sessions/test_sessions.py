"""Joining, proving, being recognised and leaving, on both stores."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from landlane.errors import Held, Malformed, NotAllowed, Stale
from landlane.ids import Credentials, new_uuid
from landlane.sessions import join as sessions
from landlane.sessions.join import Caller
from landlane.settings.model import SessionSettings, Settings
from landlane.values import replace
from tests.support.project import MINUTE, Agent, granted

if TYPE_CHECKING:
    from pathlib import Path

    from landlane.platform.process import Process
    from tests.support.project import Project

pytestmark = pytest.mark.contract

# --------------------------------------------------------------------------------------------- joining


def test_joining_begins_the_first_generation(project: Project) -> None:
    ann = project.agent("ann", role="code")

    assert (ann.joined.is_new, ann.session.generation, ann.session.role) == (True, 1, "code")
    newest = project.entries()[-1]
    assert (newest.kind, newest.agent, newest.session) == ("session.joined", "ann", ann.session.id)
    assert newest.facts()["generation"] == 1


@pytest.mark.promise("sessions.second-join-attaches", "Joining again attaches to the live session.")
def test_joining_again_attaches_to_the_live_session(project: Project) -> None:
    first, second = project.agent("ann"), project.agent("ann")

    assert second.joined.is_new is False
    assert second.session.id == first.session.id
    assert second.joined.secret == first.joined.secret
    assert project.kinds().count("session.joined") == 1


@pytest.mark.promise(
    "sessions.generation-grows",
    "Each new session of an agent gets a higher generation number.",
)
def test_each_new_beginning_raises_the_generation(project: Project) -> None:
    brief = Settings(sessions=SessionSettings(lease_ms=MINUTE))
    first = project.agent("ann", settings=brief)
    first.leave()
    second = project.agent("ann", settings=brief)
    project.clock.advance(2 * MINUTE)
    third = project.agent("ann", settings=brief)

    assert [one.session.generation for one in (first, second, third)] == [1, 2, 3]
    assert len({one.session.id for one in (first, second, third)}) == 3
    assert len({one.joined.secret for one in (first, second, third)}) == 3


def test_a_changed_role_is_recorded_once(project: Project) -> None:
    ann = project.agent("ann", role="code")
    for _ in range(2):
        joined = sessions.join(ann.repo, "ann", role="review", may_choose_role=True)
        assert joined.session.role == "review"

    changes = [entry.facts() for entry in project.entries() if entry.kind == "session.role"]
    assert changes == [{"before": "code", "role": "review"}]


@pytest.mark.parametrize("name", ["", "-ann", ".ann", "an n", "ann/bob", "änn", "a" * 65, "ann\n"])
def test_a_name_must_be_plain(project: Project, name: str) -> None:
    with pytest.raises(Malformed) as caught:
        project.agent(name)

    assert (caught.value.code, caught.value.exit_code) == ("BAD_NAME", 2)


def test_names_that_differ_in_case_are_two_agents(project: Project) -> None:
    assert project.agent("Ann").session.id != project.agent("ann").session.id
    assert not project.agent("Ann").joined.is_new


@pytest.mark.promise(
    "sessions.secret-is-private",
    "A session secret is stored where only its user can read it.",
)
def test_a_secret_lies_where_only_its_user_can_read_it(project: Project) -> None:
    project.agent("ann")
    folder = project.repository / ".git" / "landlane" / "sessions"

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "ann").stat().st_mode) == 0o600


def test_the_store_does_not_know_the_secret(project: Project) -> None:
    ann = project.agent("ann")

    assert ann.joined.secret not in str([dict(row) for row in project.rows("sessions_live")])
    assert ann.joined.secret not in str(project.entries())


@pytest.mark.promise(
    "repository.stores-are-shared",
    "Two repositories in one store are isolated from each other.",
)
def test_two_repositories_in_one_store_know_nothing_of_each_other(project: Project) -> None:
    ann = project.agent("ann")
    elsewhere = project.repo(repository_id=new_uuid(), secrets=project.repository / "elsewhere")
    namesake = Agent(elsewhere, sessions.join(elsewhere, "ann"))
    ann.take("src")

    granted(namesake.claim("src"))

    assert namesake.session.generation == 1
    assert [claim.session for claim in project.claims()] == [ann.session.id]
    assert [entry.position for entry in project.entries()] == [1, 2, 3]
    assert {entry.session for entry in project.entries()} == {"", ann.session.id}


# --------------------------------------------------------------------------------------------- proving


@pytest.mark.promise("sessions.wrong-secret-proves-nothing", "A wrong secret is refused.")
def test_a_wrong_secret_proves_nothing(project: Project) -> None:
    ann = project.agent("ann")

    for session, secret in ((ann.session.id, "guess"), ("s-nobody", ann.joined.secret)):
        with pytest.raises(NotAllowed) as caught:
            sessions.prove(ann.repo, Credentials(session=session, secret=secret))
        assert (caught.value.code, caught.value.exit_code) == ("NOT_YOUR_SESSION", 6)


@pytest.mark.promise("sessions.name-in-use", "A name in use cannot be taken without its secret.")
def test_a_name_in_use_cannot_be_had_without_its_secret(project: Project, tmp_path: Path) -> None:
    ann = project.agent("ann")

    with pytest.raises(Held) as caught:
        project.agent("ann", secrets=tmp_path / "another-user")

    assert (caught.value.code, caught.value.exit_code) == ("AGENT_IN_USE", 3)
    assert caught.value.facts == {"holder": "ann", "until_at": ann.session.lapses_at}
    assert "ann is already at work on this machine" in caught.value.message


def test_a_name_in_use_on_another_machine_says_where(project: Project, tmp_path: Path) -> None:
    ann = project.agent("ann")
    repo = project.repo(secrets=tmp_path / "another-user")

    class Elsewhere:
        machine = "elsewhere-1"

        def ancestry(self) -> list[Process]:
            return []

        def is_gone(self, process: Process) -> bool:
            return False

    with pytest.raises(Held) as caught:
        sessions.join(replace(repo, processes=Elsewhere()), "ann")

    assert ann.session.machine in caught.value.message


def test_a_name_is_free_again_when_its_session_has_lapsed(project: Project, tmp_path: Path) -> None:
    project.agent("ann", settings=Settings(sessions=SessionSettings(lease_ms=MINUTE)))
    project.clock.advance(MINUTE)

    assert project.agent("ann", secrets=tmp_path / "another-user").session.generation == 2


def test_a_secret_file_that_was_spoilt_proves_nothing(project: Project) -> None:
    project.agent("ann")
    path = project.repository / ".git" / "landlane" / "sessions" / "ann"

    for content in ("", "rubbish", "s-x wrong many 1 2 3", "s-x secret not-a-number"):
        path.write_text(content, encoding="ascii")
        with pytest.raises(Held):
            project.agent("ann")


# ------------------------------------------------------------------------------------------ recognition


def who_acts(project: Project, caller: Caller) -> str:
    return sessions.identify(project.repo(), caller).session.agent


def test_without_a_word_it_is_the_person(project: Project) -> None:
    joined = sessions.identify(project.repo(), Caller(person="pat"))

    assert (joined.session.agent, joined.session.kind) == ("pat", "person")


def test_a_name_comes_before_the_variable_and_the_variable_before_the_person(project: Project) -> None:
    assert who_acts(project, Caller(name="ann", agent_variable="bob", person="pat")) == "ann"
    assert who_acts(project, Caller(agent_variable="bob", person="pat")) == "bob"


def test_a_session_shown_comes_before_any_name_in_the_variable(project: Project) -> None:
    ann = project.agent("ann")
    shown = f"{ann.session.id}:{ann.joined.secret}"

    assert who_acts(project, Caller(session_text=shown, agent_variable="bob", person="pat")) == "ann"


def test_a_session_shown_cannot_act_under_another_name(project: Project) -> None:
    ann = project.agent("ann")

    with pytest.raises(NotAllowed) as caught:
        who_acts(project, Caller(session_text=f"{ann.session.id}:{ann.joined.secret}", name="bob"))

    assert caught.value.code == "NOT_YOUR_SESSION"


def test_a_session_shown_that_is_over_is_stale(project: Project) -> None:
    ann = project.agent("ann")
    ann.leave()

    with pytest.raises(Stale) as caught:
        who_acts(project, Caller(session_text=f"{ann.session.id}:{ann.joined.secret}"))

    assert (caught.value.code, caught.value.exit_code) == ("SESSION_OVER", 4)


@pytest.mark.promise(
    "sessions.nearest-ancestor",
    "The nearest registered ancestor process decides who acts, before every other source.",
)
def test_the_nearest_registered_ancestor_comes_before_everything(project: Project) -> None:
    ancestry = project.repo().processes.ancestry()
    project.agent("bob", process=ancestry[-1])
    project.agent("ann", process=ancestry[0])
    cid = project.agent("cid")
    shown = f"{cid.session.id}:{cid.joined.secret}"

    assert who_acts(project, Caller(session_text=shown, agent_variable="cid", person="pat")) == "ann"


@pytest.mark.promise("sessions.no-masks", "A child of a registered process cannot act as another session.")
def test_a_child_of_a_registered_process_cannot_act_as_somebody_else(project: Project) -> None:
    project.agent("ann", process=project.repo().processes.ancestry()[0])

    with pytest.raises(NotAllowed) as caught:
        who_acts(project, Caller(name="bob"))

    assert caught.value.code == "NOT_YOUR_SESSION"


def test_a_command_belongs_to_the_session_of_the_process_that_started_it(live_project: Project) -> None:
    ann = live_project.agent("ann", process=live_project.repo().processes.current())
    script = (
        "import sys; from pathlib import Path\n"
        "from landlane.sessions.join import Caller, identify\n"
        "from landlane.testing.repositories import open_test_repository\n"
        "context = open_test_repository(Path(sys.argv[1]), sys.argv[2])\n"
        "print(identify(context, Caller(agent_variable='bob', person='pat')).session.id)\n"
    )
    child = [sys.executable, "-c", script, str(live_project.repository), live_project.place]

    answer = subprocess.run(child, capture_output=True, text=True, check=True, timeout=60)

    assert answer.stdout.strip() == ann.session.id


@pytest.mark.promise(
    "sessions.same-pid-is-not-the-same-process",
    "A process with the same pid but a different start time is treated as a stranger.",
)
def test_a_process_with_the_same_pid_but_another_start_is_a_stranger(project: Project) -> None:
    parent = project.repo().processes.ancestry()[0]
    project.agent("ann", process=replace(parent, started=parent.started + 1))

    assert who_acts(project, Caller(person="pat")) == "pat"


@pytest.mark.parametrize("field", ["boot_id", "namespace"])
def test_a_process_of_another_boot_or_container_is_a_stranger(project: Project, field: str) -> None:
    parent = project.repo().processes.ancestry()[0]
    project.agent("ann", process=replace(parent, **{field: "elsewhere"}))

    assert who_acts(project, Caller(person="pat")) == "pat"


def test_the_process_of_a_session_that_is_over_belongs_to_nobody(project: Project) -> None:
    project.agent("ann", process=project.repo().processes.ancestry()[0]).leave()

    assert who_acts(project, Caller(person="pat")) == "pat"


def test_a_process_stands_for_the_session_it_was_registered_for_last(project: Project) -> None:
    parent = project.repo().processes.ancestry()[0]
    project.agent("ann", process=parent)
    project.agent("bob", process=parent)

    assert who_acts(project, Caller(person="pat")) == "bob"


def test_a_registered_ancestor_without_a_readable_secret_is_refused(project: Project) -> None:
    ann = project.agent("ann", process=project.repo().processes.ancestry()[0])
    os.unlink(project.repository / ".git" / "landlane" / "sessions" / "ann")

    with pytest.raises(NotAllowed) as caught:
        sessions.identify(ann.repo, Caller(person="pat"))

    assert caught.value.code == "NOT_YOUR_SESSION"


def test_asking_for_a_known_session_begins_none(project: Project) -> None:
    repo = project.repo()

    assert sessions.known_session(repo, Caller(name="ann", person="pat")) is None
    ann = project.agent("ann")
    found = sessions.known_session(repo, Caller(name="ann", person="pat"))

    assert found is not None
    assert (found.session.id, found.is_new) == (ann.session.id, False)
    assert project.kinds().count("session.joined") == 1


# --------------------------------------------------------------------------------------------- leaving


@pytest.mark.promise(
    "sessions.leaving-frees-all",
    "Leaving releases everything the session held and lists it.",
)
def test_leaving_frees_everything_and_tells_what(project: Project) -> None:
    ann = project.agent("ann")
    ann.take("src", "docs/{a,b}")

    assert ann.leave() == ("src", "docs/{a,b}")

    assert project.claims() == []
    assert project.kinds()[-3:] == ["claim.released", "claim.released", "session.left"]
    project.agent("bob").take(".")


def test_leaving_twice_is_stale(project: Project) -> None:
    ann = project.agent("ann")
    ann.leave()

    with pytest.raises(Stale) as caught:
        ann.leave()

    assert caught.value.code == "SESSION_OVER"


def test_leaving_forgets_the_secret_but_not_that_of_a_successor(project: Project) -> None:
    ann = project.agent("ann")
    ann.leave()
    assert ann.repo.secrets.load("ann") is None

    again = project.agent("ann")
    ann.repo.secrets.drop("ann", ann.session.id)

    assert project.agent("ann").session.id == again.session.id


def test_everybody_who_is_here_is_listed(project: Project) -> None:
    project.agent("bob")
    ann = project.agent("ann")
    project.agent("cid").leave()

    assert [session.agent for session in sessions.live_sessions(ann.repo)] == ["ann", "bob"]
