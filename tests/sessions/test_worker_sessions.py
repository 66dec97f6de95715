"""What a worker that may only look does for its supervisor, and what it may not, on both stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.errors import NotAllowed, Stale, WaitsForPerson
from landlane.gates.decide import answer_gate, withdraw_gate
from landlane.gates.open import open_task_gate
from landlane.handoffs.accept import accept_handoff
from landlane.handoffs.model import Draft
from landlane.handoffs.send import send_handoff
from landlane.roles.enforce import check_claim, check_verb
from landlane.sessions import join as sessions
from landlane.sessions import worker_sessions as hands
from landlane.sessions.client_sessions import ClientName, begin_subagent
from landlane.sessions.model import SessionKind
from landlane.sessions.notices import take_notices
from landlane.setup.rebuild_store import rebuild_store
from landlane.tasks.change import fail_task, hand_back
from landlane.tasks.finish import finish_without_evidence, report_done
from landlane.tasks.records import get_task
from tests.support.project import SQLITE_ONLY, Agent, opened
from tests.support.tasks import add, finish_task, state, take

if TYPE_CHECKING:
    from landlane.gates.model import Gate
    from tests.support.project import Project

pytestmark = pytest.mark.contract

SUPERVISOR = "claude-T1"


def at_work(project: Project) -> tuple[Agent, Agent]:
    """A supervisor with a task in hand, and its worker."""
    supervisor = project.agent(SUPERVISOR, is_internal=True)
    worker = project.worker_session(supervisor)
    add(supervisor, "Say it", paths=["said.txt"])
    take(supervisor)
    return supervisor, worker


def ask(agent: Agent, why: str = "May I?") -> Gate:
    return open_task_gate(agent.repo, agent.session, "T1", "approval", why, {})


def hand(agent: Agent) -> object:
    draft = Draft(task="T1", to="bob", next="say it louder")
    return send_handoff(agent.repo, agent.session, draft)


def test_a_worker_asks_a_person_and_the_task_stays_its_supervisors(project: Project) -> None:
    supervisor, worker = at_work(project)
    pat = Agent(project.repo(), sessions.join(project.repo(), "pat", kind=SessionKind.PERSON))

    gate = ask(worker)

    found = get_task(supervisor.repo, "T1")
    assert (found.state, found.owner, gate.session) == (
        "waiting_for_person",
        SUPERVISOR,
        supervisor.session.id,
    )
    assert ask(worker).id == gate.id
    with pytest.raises(WaitsForPerson) as caught:
        ask(worker, "Or this?")
    assert caught.value.code == "GATE_OPEN"
    answer_gate(pat.repo, pat.session, gate.id, approve=True, why="go on")
    assert state(project, "T1") == "active"
    assert supervisor.holds() == ["said.txt"]
    assert "go on" in str(take_notices(worker.repo, worker.session.id))


def test_a_worker_takes_its_question_back(project: Project) -> None:
    _, worker = at_work(project)
    withdraw_gate(worker.repo, worker.session, ask(worker).id)
    assert state(project, "T1") == "active"


def test_a_worker_hands_the_task_of_its_supervisor_over_with_its_claims(project: Project) -> None:
    supervisor, worker = at_work(project)
    bob = project.agent("bob")

    hand(worker)

    assert (state(project, "T1"), supervisor.holds()) == ("ready", [])
    accept_handoff(bob.repo, bob.session, "T1")
    assert bob.holds() == ["said.txt"]


def test_a_subagent_of_a_worker_asks_for_the_same_supervisor(project: Project) -> None:
    supervisor, worker = at_work(project)
    name = ClientName(client="claude", session="one", agent="aa")
    child = begin_subagent(worker.repo, name, worker.session).session
    gate = open_task_gate(worker.repo, child, "T1", "approval", "May I?", {})
    assert gate.session == supervisor.session.id
    assert child.role == "explore"


@pytest.mark.promise(
    "hands.nothing-beyond-the-role",
    "The claims of a supervisor let its worker do nothing that the worker's own role forbids.",
)
@pytest.mark.parametrize("is_subagent", [False, True])
def test_a_worker_gains_nothing_that_its_role_forbids(project: Project, is_subagent: bool) -> None:
    """Neither it nor its subagents end the attempt, nor claim, commit or land for its supervisor."""
    supervisor, worker = at_work(project)
    repo, session = worker.repo, worker.session
    if is_subagent:
        session = begin_subagent(
            repo, ClientName(client="claude", session="one", agent="aa"), session
        ).session
    ends = (
        lambda: finish_without_evidence(repo, session, "T1", "all done"),
        lambda: report_done(repo, session, "T1", "all done"),
        lambda: fail_task(repo, session, "T1", "no"),
        lambda: hand_back(repo, session, "T1", "somebody else"),
    )
    forbidden = (
        lambda: check_claim(repo, session, [repo.git.pattern_of("said.txt", "literal")]),
        lambda: check_verb(repo, session, "commit", guard="commit"),
        lambda: check_verb(repo, session, "land", guard="land"),
    )
    for one in ends:
        with pytest.raises(Stale) as caught:
            one()
        assert (caught.value.code, caught.value.facts["holder"]) == ("TASK_NOT_YOURS", SUPERVISOR)
    for one in forbidden:
        with pytest.raises(NotAllowed) as refused:
            one()
        assert refused.value.code == "ROLE_FORBIDS"
    assert supervisor.holds() == ["said.txt"]
    finish_task(supervisor, "T1")
    assert state(project, "T1") == "done"


@pytest.mark.promise(
    "hands.a-link-and-no-name",
    "A read-only worker acts for the supervisor that started it; a name alone grants nothing.",
)
def test_who_is_only_called_like_a_worker_has_nothing_in_hand(project: Project) -> None:
    ann, posing = project.agent("ann"), project.agent("ann.w")
    add(ann, "Say it")
    take(ann)
    for one in (ask, hand):
        with pytest.raises(Stale) as caught:
            one(posing)
        assert caught.value.code == "TASK_NOT_YOURS"
    gate = ask(ann)
    with pytest.raises(NotAllowed) as refused:
        withdraw_gate(posing.repo, posing.session, gate.id)
    assert refused.value.code == "NOT_YOUR_GATE"


def test_a_session_that_has_the_name_already_does_not_become_a_worker(project: Project) -> None:
    supervisor, other = (
        project.agent(SUPERVISOR, is_internal=True),
        project.agent(f"{SUPERVISOR}.w", is_internal=True),
    )
    worker = project.worker_session(supervisor)
    assert worker.session.id != other.session.id
    assert supervisor.repo.store.view(lambda it: hands.find_supervisor(it, other.session.id)) == ""
    assert supervisor.repo.store.view(lambda it: hands.list_worker_sessions(it, supervisor.session.id)) == [
        worker.session
    ]


def test_one_worker_does_not_act_for_another_supervisor(project: Project) -> None:
    at_work(project)
    other = project.worker_session(project.agent("claude-T2", is_internal=True))
    with pytest.raises(Stale):
        ask(other)


@SQLITE_ONLY
def test_whose_hands_they_are_is_rebuilt_from_the_journal(project: Project) -> None:
    supervisor, worker = at_work(project)
    with opened(project) as repo:
        repo.settle()
        folder = repo.checkout.state_folder
    project.close()
    identity = (project.repository / ".git" / "landlane" / "repository").read_text().strip()
    rebuild_store(folder, identity, ignore_case=False)
    found = project.repo().store.view(lambda it: hands.find_supervisor(it, worker.session.id))
    assert found == supervisor.session.id
