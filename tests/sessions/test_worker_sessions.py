"""What a worker that may only look does for its keeper, and what it may not, on both stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.errors import NotAllowed, Stale, WaitsForPerson
from landlane.gates import ask as gates
from landlane.gates import decide
from landlane.handoffs import accept as handoffs
from landlane.handoffs.model import Draft
from landlane.roles.enforce import check_claim, check_verb
from landlane.sessions import join as sessions
from landlane.sessions import worker_sessions as hands
from landlane.sessions.client_sessions import ClientName, begin_child
from landlane.sessions.model import SessionKind
from landlane.sessions.notices import take_notices
from landlane.setup.rebuild_store import rebuild_store
from landlane.tasks.change import fail_task, hand_back
from landlane.tasks.finish import finish_on_word, report_done
from landlane.tasks.records import get_task
from tests.support.sites import SQLITE_ONLY, Agent, opened
from tests.support.work_queue import add, end, state, take

if TYPE_CHECKING:
    from landlane.gates.model import Gate
    from tests.support.sites import Site

pytestmark = pytest.mark.contract

KEEPER = "claude-T1-x"


def at_work(site: Site) -> tuple[Agent, Agent]:
    """A keeper with a task in hand, and its worker."""
    keeper = site.agent(KEEPER)
    worker = site.hands(keeper)
    add(keeper, "Say it", paths=["said.txt"])
    take(keeper)
    return keeper, worker


def ask(agent: Agent, why: str = "May I?") -> Gate:
    return gates.ask(agent.repo, agent.session, "T1", "approval", why, {})


def hand(agent: Agent) -> object:
    draft = Draft(task="T1", to="bob", next="say it louder")
    return handoffs.send_handoff(agent.repo, agent.session, draft)


def test_a_worker_asks_a_person_and_the_task_stays_its_keepers(site: Site) -> None:
    keeper, worker = at_work(site)
    pat = Agent(site.repo(), sessions.join(site.repo(), "pat", kind=SessionKind.PERSON))

    gate = ask(worker)

    found = get_task(keeper.repo, "T1")
    assert (found.state, found.owner, gate.session) == ("waiting_for_person", KEEPER, keeper.session.id)
    assert ask(worker).id == gate.id
    with pytest.raises(WaitsForPerson) as caught:
        ask(worker, "Or this?")
    assert caught.value.code == "GATE_OPEN"
    decide.answer(pat.repo, pat.session, gate.id, approve=True, why="go on")
    assert state(site, "T1") == "active"
    assert keeper.holds() == ["said.txt"]
    assert "go on" in str(take_notices(worker.repo, worker.session.id))


def test_a_worker_takes_its_question_back(site: Site) -> None:
    _, worker = at_work(site)
    decide.withdraw(worker.repo, worker.session, ask(worker).id)
    assert state(site, "T1") == "active"


def test_a_worker_hands_the_task_of_its_keeper_over_with_its_claims(site: Site) -> None:
    keeper, worker = at_work(site)
    bob = site.agent("bob")

    hand(worker)

    assert (state(site, "T1"), keeper.holds()) == ("ready", [])
    handoffs.accept_handoff(bob.repo, bob.session, "T1")
    assert bob.holds() == ["said.txt"]


def test_a_subagent_of_a_worker_asks_for_the_same_keeper(site: Site) -> None:
    keeper, worker = at_work(site)
    name = ClientName(client="claude", session="one", agent="aa")
    child = begin_child(worker.repo, name, worker.session).session
    gate = gates.ask(worker.repo, child, "T1", "approval", "May I?", {})
    assert gate.session == keeper.session.id
    assert child.role == "explore"


@pytest.mark.promise(
    "hands.nothing-beyond-the-role",
    "The claims of a supervisor let its worker do nothing that the worker's own role forbids.",
)
@pytest.mark.parametrize("is_subagent", [False, True])
def test_a_worker_gains_nothing_that_its_role_forbids(site: Site, is_subagent: bool) -> None:
    """Neither it nor its subagents end the attempt, nor claim, commit or land in the place of its keeper."""
    keeper, worker = at_work(site)
    repo, session = worker.repo, worker.session
    if is_subagent:
        session = begin_child(repo, ClientName(client="claude", session="one", agent="aa"), session).session
    ends = (
        lambda: finish_on_word(repo, session, "T1", "all done"),
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
        assert (caught.value.code, caught.value.facts["holder"]) == ("TASK_NOT_YOURS", KEEPER)
    for one in forbidden:
        with pytest.raises(NotAllowed) as refused:
            one()
        assert refused.value.code == "ROLE_FORBIDS"
    assert keeper.holds() == ["said.txt"]
    end(keeper, "T1")
    assert state(site, "T1") == "done"


@pytest.mark.promise(
    "hands.a-link-and-no-name",
    "A read-only worker acts for the supervisor that started it; a name alone grants nothing.",
)
def test_who_is_only_called_like_a_worker_has_nothing_in_hand(site: Site) -> None:
    ann, posing = site.agent("ann"), site.agent("ann.w")
    add(ann, "Say it")
    take(ann)
    for one in (ask, hand):
        with pytest.raises(Stale) as caught:
            one(posing)
        assert caught.value.code == "TASK_NOT_YOURS"
    gate = ask(ann)
    with pytest.raises(NotAllowed) as refused:
        decide.withdraw(posing.repo, posing.session, gate.id)
    assert refused.value.code == "NOT_YOUR_GATE"


def test_a_session_that_has_the_name_already_does_not_become_a_worker(site: Site) -> None:
    keeper, other = site.agent(KEEPER), site.agent(f"{KEEPER}.w")
    worker = site.hands(keeper)
    assert worker.session.id != other.session.id
    assert keeper.repo.store.view(lambda it: hands.keeper_of(it, other.session.id)) == ""
    assert keeper.repo.store.view(lambda it: hands.hands_of(it, keeper.session.id)) == [worker.session]


def test_one_worker_does_not_act_for_another_keeper(site: Site) -> None:
    at_work(site)
    other = site.hands(site.agent("claude-T2-y"))
    with pytest.raises(Stale):
        ask(other)


@SQLITE_ONLY
def test_whose_hands_they_are_is_rebuilt_from_the_journal(site: Site) -> None:
    keeper, worker = at_work(site)
    with opened(site) as repo:
        repo.settle()
        folder = repo.checkout.state_folder
    site.close()
    identity = (site.repository / ".git" / "landlane" / "repository").read_text().strip()
    rebuild_store(folder, identity, ignore_case=False)
    found = site.repo().store.view(lambda it: hands.keeper_of(it, worker.session.id))
    assert found == keeper.session.id
