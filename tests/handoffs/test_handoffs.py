"""Handoffs on both stores: sent, accepted by their hash, declined, overdue and limited."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from landlane.claims.model import Refused
from landlane.clock import rfc3339
from landlane.errors import Held, Malformed, NotAllowed, Stale, WaitsForPerson
from landlane.handoffs import model
from landlane.handoffs import records as handoffs_records
from landlane.handoffs.accept import Accepted, accept_handoff, decline_handoff
from landlane.handoffs.model import Draft, Handoff, HandoffState, is_unchanged
from landlane.handoffs.send import send_handoff
from landlane.handoffs.text import state_text
from landlane.sessions.notices import take_notices
from landlane.settings.model import HandoffSettings, Settings
from landlane.store import records
from landlane.tasks.change import drop_task
from landlane.tasks.finish import report_done
from landlane.tasks.model import ANYBODY
from landlane.tasks.pick import take_task
from landlane.tasks.records import get_task
from tests.support.project import MINUTE
from tests.support.tasks import add, expect_no_task, finish_task, state, take

if TYPE_CHECKING:
    from tests.support.project import Agent, Project

pytestmark = pytest.mark.contract

WAIT = 30 * MINUTE


def hand(agent: Agent, task: str, to: str = "bob", **said: Any) -> Handoff:
    draft = Draft(task=task, to=to, **{"next": "write the test", **said})
    return send_handoff(agent.repo, agent.session, draft)


def accept(agent: Agent, task: str, digest: str = "") -> Accepted:
    outcome = accept_handoff(agent.repo, agent.session, task, digest)
    assert isinstance(outcome, Accepted), outcome
    return outcome


def state_line(agent: Agent) -> str:
    (handoff,) = handoffs_records.list_handoffs(agent.repo)
    store = agent.repo.store
    return state_text(handoff, store.view(lambda snapshot: store.wall_of(snapshot.now)))


def owner(project: Project, task: str) -> tuple[str, str]:
    found = get_task(project.repo(), task)
    return found.state, found.owner


def test_task_claims_and_workspace_move_to_the_receiver_in_two_steps(project: Project) -> None:
    ann, bob, eve = project.agent("ann"), project.agent("bob"), project.agent("eve")
    add(ann, "Parse dates", paths=["src/dates.py"])
    task = take(ann).task
    free = ann.take("docs/dates.md")  # for no task, and ann has no other
    workspace = {"id": "W1", "task": "T1", "state": "open", "session": ann.session.id, "agent": "ann"}
    ann.repo.change(lambda tx: records.put(tx, "workspace", workspace, "opened"))

    sent = hand(ann, "T1", context="half of it is there", taken={"branch": "b", "changed": ["src/dates.py"]})

    assert is_unchanged(sent)
    assert owner(project, "T1") == ("ready", "")
    assert ann.holds() == []
    assert eve.expect_refusal("src/dates.py").holder == "H1"
    assert expect_no_task(eve).held_up == ()
    assert expect_no_task(ann).counts == {"ready": 1}

    taken = accept(bob, "T1", sent.digest)

    assert (taken.task.attempt, taken.task.branch) == (task.attempt, task.branch)
    assert owner(project, "T1") == ("active", "bob")
    assert sorted(bob.holds()) == ["docs/dates.md", "src/dates.py"]
    assert min(claim.token for claim in taken.claims) > free.token
    assert taken.handoff.accepted_by == "bob"
    kept = bob.repo.store.view(lambda snapshot: records.find(snapshot, "workspace", "W1"))
    assert kept is not None
    assert (kept["session"], kept["agent"]) == (bob.session.id, "bob")
    assert not [one for one in project.claims() if one.agent.startswith("handoff-")]
    with pytest.raises(Stale, match="belongs to bob"):
        report_done(ann.repo, ann.session, "T1")


def test_accepting_again_changes_nothing_and_others_are_refused(project: Project) -> None:
    ann, bob, eve = project.agent("ann"), project.agent("bob"), project.agent("eve")
    add(ann, "Parse dates")
    sent = hand(ann, take(ann).task.id)
    first = accept(bob, "T1", sent.digest[:12])
    before = len(project.entries())
    assert accept(bob, "T1", sent.digest) == first
    assert len(project.entries()) == before
    with pytest.raises(Stale) as late:
        accept(eve, "T1")
    assert (late.value.code, late.value.facts["holder"]) == ("HANDOFF_ACCEPTED", "bob")


@pytest.mark.promise(
    "handoffs.against-the-hash",
    "A handoff is accepted by the hash of its content; any other hash is refused.",
)
def test_another_hash_is_refused(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    add(ann, "Parse dates")
    sent = hand(ann, take(ann).task.id)
    for shown in ("0" * 64, sent.digest[:7], sent.digest + "0"):
        with pytest.raises(Stale) as other:
            accept(bob, "T1", shown)
        assert other.value.code == "HANDOFF_CHANGED"
    assert owner(project, "T1") == ("ready", "")


def test_only_the_receiver_may_accept_until_the_wait_is_over(project: Project) -> None:
    ann, eve = project.agent("ann"), project.agent("eve")
    add(ann, "Parse dates", paths=["src/**"])
    sent = hand(ann, take(ann).task.id)
    with pytest.raises(Held) as refused:
        accept(eve, "T1")
    assert (refused.value.code, refused.value.facts["holder"]) == ("HANDOFF_NOT_YOURS", "bob")
    assert refused.value.facts["until"] == rfc3339(sent.until)
    assert sent.until - sent.sent_at == WAIT
    assert take_task(eve.repo, eve.session, "T1", "") is None
    project.clock.advance(WAIT - 1)
    eve.authenticate()
    expect_no_task(eve)
    assert state_line(eve) == "waits for bob, open to anyone now"  # in 1 ms
    project.clock.advance(1)
    assert state_line(eve).startswith("open to anyone (bob has not accepted it)")
    picked = take(eve)
    assert (picked.task.id, picked.task.attempt) == ("T1", 1)
    assert eve.holds() == ["src/**"]
    assert handoffs_records.list_handoffs(eve.repo) == []


def test_it_survives_the_end_of_its_sender_and_of_its_receiver(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    add(ann, "Parse dates", paths=["src/**"])
    hand(ann, take(ann).task.id)
    ann.leave()
    bob.leave()
    assert owner(project, "T1") == ("ready", "")
    again = project.agent("bob")  # another session of the same name
    assert [one.id for one in handoffs_records.handed_to(again.repo, again.session)] == ["H1"]
    assert take(again).task.id == "T1"
    project.clock.advance(2 * WAIT)
    assert owner(project, "T1") == ("ready", "")  # the session that accepted it has lapsed
    assert take(project.agent("cy")).task.attempt == 2


def test_next_offers_handoffs_to_the_caller_first_and_says_why(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    add(ann, "Parse dates")
    hand(ann, take(ann).task.id, context="look at RFC 3339")
    add(ann, "Urgent", priority=9)
    picked = take(bob)
    assert picked.task.id == "T1"
    assert [one.why for one in picked.lessons] == [
        "handed to bob (H1): look at RFC 3339\nnext: write the test"
    ]
    assert take(bob).task.id == "T2"


def test_a_handoff_can_be_addressed_to_a_kind_of_worker_or_a_role(project: Project) -> None:
    ann = project.agent("ann")
    for title in ("One", "Two"):
        add(ann, title)
        hand(ann, take(ann).task.id, to="claude" if title == "One" else "role:test")
    assert take(project.agent("tess", role="test")).task.id == "T2"
    assert expect_no_task(project.agent("claude-T2", is_internal=True)).counts
    assert take(project.agent("claude-T1", is_internal=True)).task.id == "T1"


def test_a_handoff_to_any_agent_frees_the_paths_and_continues_the_attempt(project: Project) -> None:
    ann, eve = project.agent("ann"), project.agent("eve")
    add(ann, "Parse dates", paths=["src/**"])
    hand(ann, take(ann).task.id, to=ANYBODY)
    assert project.claims() == []
    eve.take("src/a.py")
    eve.release()
    assert take(eve).task.attempt == 1
    assert [one.state for one in handoffs_records.list_handoffs(eve.repo, with_settled=True)] == ["accepted"]


def test_declining_notifies_the_sender_and_is_not_offered_again(project: Project) -> None:
    ann, bob, eve = project.agent("ann"), project.agent("bob"), project.agent("eve")
    add(ann, "Parse dates", paths=["src/**"])
    hand(ann, take(ann).task.id)
    with pytest.raises(Held):
        decline_handoff(eve.repo, eve.session, "T1", "no time")
    with pytest.raises(Malformed):
        decline_handoff(bob.repo, bob.session, "T1", " ")
    decline_handoff(bob.repo, bob.session, "T1", "no time")
    assert take_notices(ann.repo, ann.session.id) == [
        "bob declined H1: no time. T1 is open to anyone now",
    ]
    assert project.claims() == []
    expect_no_task(bob)
    picked = take(eve)
    assert picked.lessons[-1].why == "bob declined H1: no time"
    assert picked.task.attempt == 1


def test_accepting_changes_nothing_while_another_session_holds_a_path(project: Project) -> None:
    ann, bob, eve = project.agent("ann"), project.agent("bob"), project.agent("eve")
    add(ann, "Parse dates", paths=["src/**", "docs/**"])
    take(ann)
    ann.release("docs/**")
    hand(ann, "T1")
    eve.take("docs/a.md")
    before = len(project.entries())
    outcome = accept_handoff(bob.repo, bob.session, "T1")
    assert isinstance(outcome, Refused)
    assert outcome.refused[0].holder == "eve"
    assert expect_no_task(bob).held_up == ("T1",)
    assert len(project.entries()) == before
    assert eve.expect_refusal("src/a.py").holder == "H1"
    eve.release()
    assert sorted(claim.pattern for claim in accept(bob, "T1").claims) == ["docs/**", "src/**"]


def test_a_role_that_may_not_claim_the_paths_is_refused(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "Parse dates", paths=["src/**"])
    hand(ann, take(ann).task.id, to="rex")
    rex = project.agent("rex", role="review")
    with pytest.raises(NotAllowed) as refused:
        accept(rex, "T1")
    assert refused.value.code == "ROLE_FORBIDS"
    expect_no_task(rex)
    assert owner(project, "T1") == ("ready", "")


@pytest.mark.promise(
    "handoffs.bounded",
    "A handoff over the maximum is refused, its content is kept, and a person decides.",
)
def test_over_the_maximum_the_content_is_kept_and_a_person_decides(project: Project) -> None:
    settings = Settings(handoffs=HandoffSettings(max=2))
    ann, bob = project.agent("ann", settings=settings), project.agent("bob", settings=settings)
    add(ann, "Parse dates", paths=["src/**"])
    take(ann)
    hand(ann, "T1", to="bob")
    take(bob)
    hand(bob, "T1", to="ann")
    take(ann)
    with pytest.raises(WaitsForPerson) as refused:
        hand(ann, "T1", to="bob", context="we disagree about time zones")
    assert refused.value.code == "HANDOFF_LIMIT"
    assert refused.value.facts["maximum"] == 2
    assert state(project, "T1") == "waiting_for_person"
    kept = handoffs_records.find_handoff(ann.repo, "H3")
    assert kept is not None
    assert (kept.state, kept.context, kept.attempt) == ("refused", "we disagree about time zones", 3)
    assert expect_no_task(bob).counts == {"waiting_for_person": 1}


def test_handoffs_of_child_tasks_count_with_their_parent(project: Project) -> None:
    settings = Settings(handoffs=HandoffSettings(max=1))
    ann, bob = project.agent("ann", settings=settings), project.agent("bob", settings=settings)
    add(ann, "Parent")
    hand(ann, take(ann).task.id)
    take(bob)
    add(bob, "Child", parent="T1")
    take(bob)
    with pytest.raises(WaitsForPerson):
        hand(bob, "T2", to="ann")


def test_only_the_owner_can_send_and_only_what_the_schema_allows(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    add(ann, "Parse dates")
    take(ann)
    with pytest.raises(Stale):
        hand(bob, "T1")
    with pytest.raises(Malformed) as lacking:
        hand(ann, "T1", next="")
    assert lacking.value.facts["missing"] == ["next or context"]
    assert owner(project, "T1") == ("active", "ann")
    assert handoffs_records.find_handoff(ann.repo, "T1") is None
    with pytest.raises(Malformed) as nothing:
        accept(bob, "T1")
    assert nothing.value.code == "NO_HANDOFF"


def test_dropping_a_handed_off_task_releases_its_claims(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "Parse dates", paths=["src/**"])
    hand(ann, take(ann).task.id)
    drop_task(ann.repo, ann.session, "T1", "not needed")
    assert project.claims() == []
    assert handoffs_records.list_handoffs(ann.repo) == []


def test_every_change_of_a_handoff_consults_the_transition_table(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(handoffs=HandoffSettings(max=1))
    ann, bob = project.agent("ann", settings=settings), project.agent("bob", settings=settings)
    add(ann, "Parse dates")
    add(ann, "Parse times")
    hand(ann, take(ann).task.id)
    accept(bob, "T1")
    hand(ann, take(ann).task.id)
    monkeypatch.setattr(model, "_TRANSITIONS", dict.fromkeys(HandoffState, ()))
    for attempt in (
        lambda: accept(bob, "T2"),
        lambda: decline_handoff(bob.repo, bob.session, "T2", "no time"),
        lambda: drop_task(ann.repo, ann.session, "T2", "not needed"),
        lambda: hand(bob, "T1", to="ann"),  # over the maximum
    ):
        with pytest.raises(NotAllowed) as caught:
            attempt()
        assert caught.value.code == "NOT_WAITING"
    assert [one.state for one in handoffs_records.list_handoffs(ann.repo, with_settled=True)] == [
        HandoffState.ACCEPTED,
        HandoffState.SENT,
    ]


def test_a_chain_ends_with_its_last_owner(project: Project) -> None:
    agents = [project.agent(name) for name in ("ann", "bob", "cy")]
    add(agents[0], "Parse dates", paths=["src/**"])
    take(agents[0])
    for sender, receiver in pairwise(agents):
        hand(sender, "T1", to=receiver.name)
        accept(receiver, "T1")
    assert [one.holds() for one in agents] == [[], [], ["src/**"]]
    finish_task(agents[2], "T1")
    assert state(project, "T1") == "done"


def test_claims_kept_for_the_receiver_do_not_block_it_when_another_claim_does(project: Project) -> None:
    ann, bob, eve = project.agent("ann"), project.agent("bob"), project.agent("eve")
    for path in ("one", "two"):
        add(ann, path, paths=[f"{path}/**", f"{path}.md"])
        hand(ann, take(ann).task.id)
    first = get_task(bob.repo, "T1")
    fields = {"title": first.title, "body": first.body, "priority": first.priority, "rank": 0}
    fields |= {"labels": "[]", "next_action": ""}
    bob.repo.change(lambda tx: tx.run("task_edit", task="T1", paths='[["held/**","glob"]]', **fields))
    eve.take("held/a")
    assert take(bob).task.id == "T2"
