"""Gates in the store: asked, answered and withdrawn, and who has the task and its claims; on both stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from landlane.errors import Malformed, NotAllowed, Stale
from landlane.gates import model
from landlane.gates.decide import answer_gate, withdraw_gate
from landlane.gates.model import GateState
from landlane.gates.open import open_gate, open_gate_in, open_task_gate
from landlane.gates.records import find_approval, get_gate, list_gates
from landlane.platform.process import MachineProcesses
from landlane.sessions import join as sessions
from landlane.sessions.model import SessionKind
from landlane.sessions.notices import take_notices
from landlane.setup.rebuild_store import rebuild_store
from landlane.tasks.add import add_task
from landlane.tasks.change import drop_task
from landlane.tasks.model import NewTask
from landlane.tasks.pick import Picked, next_task, resume_task
from landlane.tasks.records import get_task, lessons_of, lock_task
from landlane.values import replace
from tests.support.project import MINUTE, SQLITE_ONLY, Agent, granted, opened, refused

if TYPE_CHECKING:
    from landlane.gates.model import Gate
    from landlane.platform.process import Process
    from tests.support.project import Project

pytestmark = pytest.mark.contract

HEAD = "1" * 40
_ME = MachineProcesses().current()
DEAD = replace(_ME, pid=2**22 - 3)
EARLIER = replace(_ME, boot_id="an-earlier-boot")


def person(project: Project, name: str = "eve") -> Agent:
    repo = project.repo()
    return Agent(repo, sessions.join(repo, name, kind=SessionKind.PERSON))


def with_task(agent: Agent, path: str = "src/y.py") -> str:
    add_task(agent.repo, agent.session, NewTask(title=f"Say {path}", paths=(path,)), force=True)
    picked = next_task(agent.repo, agent.session)
    assert isinstance(picked, Picked)
    return picked.task.id


def ask(agent: Agent, task: str, why: str = "May I?", kind: str = "approval", **about: Any) -> Gate:
    return open_task_gate(agent.repo, agent.session, task, kind, why, about or {"head": HEAD})


def answer(agent: Agent, gate: Gate, *, yes: bool = True, why: str = "", head: str = "") -> Gate:
    return answer_gate(agent.repo, agent.session, gate.id, approve=yes, why=why, head=head)


def held_by(project: Project) -> list[tuple[str, str]]:
    return sorted((claim.pattern, claim.agent) for claim in project.claims())


def test_a_task_at_a_gate_keeps_its_owner_and_the_gate_keeps_the_claims(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    task = with_task(ann)
    granted(ann.claim("docs"))
    gate = ask(ann, task)
    found = get_task(ann.repo, task)
    assert (found.state, found.owner, found.session) == ("waiting_for_person", "ann", ann.session.id)
    assert held_by(project) == [("docs", "G1"), ("src/y.py", "G1")]
    assert refused(bob.claim("src/y.py"))[0].holder == "G1"
    assert not isinstance(next_task(bob.repo, bob.session), Picked)
    assert (gate.state, gate.before, gate.about) == ("waiting", "active", {"head": HEAD})


def test_the_same_question_again_returns_the_same_gate(project: Project) -> None:
    ann, eve = project.agent("ann"), person(project)
    task = with_task(ann)
    gate = ask(ann, task)
    assert ask(ann, task).id == gate.id
    answer(eve, gate)
    assert ask(ann, task).state == "approved"
    assert ask(ann, task, head="2" * 40).id == "G2"


@pytest.mark.promise(
    "gates.the-lease-stands-still",
    "A session that waits for a person keeps its task and claims, however long that takes.",
)
def test_the_answer_returns_task_and_claims_to_a_silent_owner(project: Project) -> None:
    ann, eve = project.agent("ann"), person(project)
    task = with_task(ann)
    granted(ann.claim("docs", ttl_ms=5 * MINUTE, note="mine"))
    before = {claim.pattern: (claim.mode, claim.ttl_ms, claim.task, claim.note) for claim in project.claims()}
    gate = ask(ann, task)
    for _ in range(5):  # leases expire and are checked several times
        project.clock.advance(60 * MINUTE)
        eve = person(project)
        project.claims()
    answered = answer(eve, gate, why="go ahead")
    assert (answered.state, answered.answered_by, answered.is_resumed) == ("approved", "eve", True)
    found = get_task(ann.repo, task)
    assert (found.state, found.owner, found.session) == ("active", "ann", ann.session.id)
    after = {claim.pattern: (claim.mode, claim.ttl_ms, claim.task, claim.note) for claim in project.claims()}
    assert after == before
    assert {claim.agent for claim in project.claims()} == {"ann"}
    (notice,) = take_notices(ann.repo, ann.session.id)
    assert "go ahead" in notice
    resumed = resume_task(ann.repo, ann.session)
    assert resumed is not None
    assert resumed.task.id == task
    project.clock.advance(31 * MINUTE)  # the lease runs again after the answer
    assert get_task(ann.repo, task).state == "ready"


@pytest.mark.promise(
    "gates.answers-outlive-their-owner",
    "When the session that asked is gone, the next owner of the task sees the answer first.",
)
@pytest.mark.parametrize("gone", [DEAD, EARLIER], ids=["dead", "of an earlier boot"])
def test_without_its_owner_the_task_is_queued_with_the_answer_as_a_lesson(
    project: Project, gone: Process
) -> None:
    ann = project.agent("ann", process=gone)
    task = with_task(ann)
    gate = ask(ann, task)
    project.clock.advance(31 * MINUTE)
    bob, eve = project.agent("bob"), person(project)
    answered = answer(eve, gate, yes=False, why="use the other key")
    assert (answered.state, answered.is_resumed) == ("rejected", False)
    assert held_by(project) == []
    picked = next_task(bob.repo, bob.session)
    assert isinstance(picked, Picked)
    assert (picked.task.id, picked.task.attempt) == (task, 2)
    assert "use the other key" in picked.lessons[-1].why
    with pytest.raises(Stale):
        ask(ann, task, head="3" * 40)


def test_a_task_stays_at_the_gate_when_its_owner_leaves(project: Project) -> None:
    ann, eve = project.agent("ann"), person(project)
    task = with_task(ann)
    gate = ask(ann, task)
    sessions.leave(ann.repo, ann.session)
    assert get_task(eve.repo, task).state == "waiting_for_person"
    assert held_by(project) == [("src/y.py", "G1")]
    answer(eve, gate)
    assert get_task(eve.repo, task).state == "ready"
    assert "approved by eve" in lessons_of(eve.repo, task)[-1].why


def test_only_a_person_without_a_role_can_answer(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob", role="code")
    gate = ask(ann, with_task(ann))
    for agent in (ann, bob):
        with pytest.raises(NotAllowed):
            answer(agent, gate)
    assert get_gate(ann.repo, gate.id).state == "waiting"
    eve = person(project)
    with pytest.raises(Malformed, match="a reason is missing"):
        answer(eve, gate, yes=False)
    with pytest.raises(Stale, match="not about 2222"):
        answer(eve, gate, head="2222")
    answer(eve, gate, head=HEAD[:7])
    with pytest.raises(NotAllowed, match="approved by eve"):
        answer(eve, gate, yes=False, why="no")


def test_a_gate_is_withdrawn_by_its_author_or_when_the_task_ends(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    task, other = with_task(ann), with_task(bob, "src/z.py")
    gate = ask(ann, task)
    with pytest.raises(NotAllowed, match="asked by ann"):
        withdraw_gate(bob.repo, bob.session, gate.id)
    assert withdraw_gate(ann.repo, ann.session, gate.id).state == "withdrawn"
    assert get_task(ann.repo, task).state == "active"
    second = ask(bob, other)
    drop_task(ann.repo, None, other, "not wanted")
    assert get_gate(ann.repo, second.id).state == "withdrawn"
    assert held_by(project) == [("src/y.py", "ann")]
    assert list_gates(ann.repo) == []


@pytest.mark.promise(
    "gates.answers-are-bound",
    "An approval counts for exactly the commit, file or command that was asked about.",
)
def test_the_riskiest_gate_is_listed_first_and_an_approval_is_for_one_subject(project: Project) -> None:
    ann, eve = project.agent("ann"), person(project)
    kinds = ("taste", "approval", "financial", "credentials")
    for number, kind in enumerate(kinds):
        ask(ann, with_task(ann, f"src/{number}.py"), kind=kind)
    listed = list_gates(ann.repo)
    assert [gate.kind for gate in listed] == ["financial", "credentials", "approval", "taste"]
    deploy = {"target": "prod", "commit": HEAD}
    asked = open_gate(ann.repo, ann.session, "deploy", "ship it", deploy)
    assert open_gate(ann.repo, ann.session, "deploy", "ship it, please", deploy).id == asked.id
    look = ann.repo.store.view
    assert look(lambda snapshot: find_approval(snapshot, "deploy", deploy)) is None
    answer(eve, asked)
    assert look(lambda snapshot: find_approval(snapshot, "deploy", deploy)) is not None
    moved = {**deploy, "commit": "2" * 40}
    assert look(lambda snapshot: find_approval(snapshot, "deploy", moved)) is None


def test_a_paused_task_without_an_owner_is_tried_again_or_dead(project: Project) -> None:
    ann, eve = project.agent("ann"), person(project)
    for number, (yes, then) in enumerate(((True, "ready"), (False, "dead"))):
        add_task(ann.repo, ann.session, NewTask(title=f"Task {number}"), force=True)
        task = f"T{number + 1}"
        gate = ann.repo.change(
            lambda tx, task=task: open_gate_in(
                tx,
                ann.repo,
                None,
                task=lock_task(tx, task),
                kind="approval",
                why="three attempts failed",
                about={},
            )
        )
        assert get_task(ann.repo, task).state == "waiting_for_person"
        answer(eve, gate, yes=yes, why="because")
        assert get_task(ann.repo, task).state == then


@pytest.mark.parametrize("kind", ["", "love"])
def test_invalid_questions_are_refused(project: Project, kind: str) -> None:
    ann = project.agent("ann")
    task = with_task(ann)
    with pytest.raises(Malformed):
        ask(ann, task, kind=kind)
    for why in ("", " \n", "x" * 3000, "a\0b"):
        with pytest.raises(Malformed):
            ask(ann, task, why=why)
    with pytest.raises(Malformed):
        get_gate(ann.repo, "G99")
    assert get_task(ann.repo, task).state == "active"


def test_answers_and_withdrawals_consult_the_transition_table(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, eve = project.agent("ann"), person(project)
    task = with_task(ann)
    gate = ask(ann, task)
    monkeypatch.setattr(model, "_TRANSITIONS", dict.fromkeys(GateState, ()))
    for attempt in (
        lambda: answer(eve, gate),
        lambda: withdraw_gate(ann.repo, ann.session, gate.id),
        lambda: drop_task(ann.repo, None, task, "not wanted"),
    ):
        with pytest.raises(NotAllowed) as caught:
            attempt()
        assert caught.value.code == "NOT_WAITING"
    assert get_task(ann.repo, task).state == "waiting_for_person"


@SQLITE_ONLY
def test_gates_are_rebuilt_from_the_journal(project: Project) -> None:
    ann, eve = project.agent("ann"), person(project)
    first, second = with_task(ann), with_task(ann, "src/z.py")
    answer(eve, ask(ann, first), why="yes")
    waiting = ask(ann, second, why="And this?")
    with opened(project) as repo:
        repo.settle()
        folder, repository_id = repo.state_folder, repo.store.repository
        tasks = [get_task(repo, task) for task in (first, second)]
        before = (list_gates(repo, ()), [(t.state, t.owner, t.session, t.why) for t in tasks])
        held = held_by(project)
    project.close()
    rebuild_store(folder, repository_id, ignore_case=False)
    with opened(project) as repo:
        tasks = [get_task(repo, task) for task in (first, second)]
        after = (list_gates(repo, ()), [(t.state, t.owner, t.session, t.why) for t in tasks])
        assert after == before
    assert held_by(project) == held
    eve = person(project)
    answer(eve, waiting)
    assert get_task(eve.repo, second).state == "active"
