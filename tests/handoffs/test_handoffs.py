"""Handoffs on both stores: sent, kept, accepted against the hash, declined, overdue, bounded, and rebuilt."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from landlane.claims.model import Refused
from landlane.clock import rfc3339
from landlane.errors import Held, Malformed, NotAllowed, Stale, WaitsForPerson
from landlane.handoffs import accept as handoffs
from landlane.handoffs import decline
from landlane.handoffs import records as handoffs_records
from landlane.handoffs.accept import Accepted
from landlane.handoffs.model import Draft, Handoff, is_whole
from landlane.sessions.notices import take_notices
from landlane.settings.model import HandoffSettings, Settings
from landlane.store import records
from landlane.tasks.change import drop_task
from landlane.tasks.finish import report_done
from landlane.tasks.model import ANYBODY
from landlane.tasks.pick import take_task
from landlane.tasks.records import get_task
from tests.support.sites import MINUTE
from tests.support.work_queue import add, end, state, take, take_nothing

if TYPE_CHECKING:
    from tests.support.sites import Agent, Site

pytestmark = pytest.mark.contract

WAIT = 30 * MINUTE


def hand(agent: Agent, task: str, to: str = "bob", **said: Any) -> Handoff:
    draft = Draft(task=task, to=to, **{"next": "write the test", **said})
    return handoffs.send_handoff(agent.repo, agent.session, draft)


def accept(agent: Agent, task: str, digest: str = "") -> Accepted:
    outcome = handoffs.accept_handoff(agent.repo, agent.session, task, digest)
    assert isinstance(outcome, Accepted), outcome
    return outcome


def owner(site: Site, task: str) -> tuple[str, str]:
    found = get_task(site.repo(), task)
    return found.state, found.owner


def test_task_claims_and_workspace_go_to_whom_it_is_for_in_two_steps(site: Site) -> None:
    ann, bob, eve = site.agent("ann"), site.agent("bob"), site.agent("eve")
    add(ann, "Parse dates", paths=["src/dates.py"])
    task = take(ann).task
    free = ann.take("docs/dates.md")  # for no task, and ann has no other
    workspace = {"id": "W1", "task": "T1", "state": "open", "session": ann.session.id, "agent": "ann"}
    ann.repo.change(lambda tx: records.put(tx, "workspace", workspace, "opened"))

    sent = hand(ann, "T1", context="half of it is there", taken={"branch": "b", "changed": ["src/dates.py"]})

    assert is_whole(sent)
    assert owner(site, "T1") == ("ready", "")
    assert ann.holds() == []
    assert eve.is_refused("src/dates.py").holder == "handoff-H1"
    assert take_nothing(eve).held_up == ()
    assert take_nothing(ann).counts == {"ready": 1}

    taken = accept(bob, "T1", sent.digest)

    assert (taken.task.attempt, taken.task.branch) == (task.attempt, task.branch)
    assert owner(site, "T1") == ("active", "bob")
    assert sorted(bob.holds()) == ["docs/dates.md", "src/dates.py"]
    assert min(claim.token for claim in taken.claims) > free.token
    assert taken.handoff.accepted_by == "bob"
    kept = bob.repo.store.view(lambda snapshot: records.find(snapshot, "workspace", "W1"))
    assert kept is not None
    assert (kept["session"], kept["agent"]) == (bob.session.id, "bob")
    assert not [one for one in site.claims() if one.agent.startswith("handoff-")]
    with pytest.raises(Stale, match="no longer"):
        report_done(ann.repo, ann.session, "T1")


def test_accepting_again_changes_nothing_and_others_come_too_late(site: Site) -> None:
    ann, bob, eve = site.agent("ann"), site.agent("bob"), site.agent("eve")
    add(ann, "Parse dates")
    sent = hand(ann, take(ann).task.id)
    first = accept(bob, "T1", sent.digest[:12])
    before = len(site.entries())
    assert accept(bob, "T1", sent.digest) == first
    assert len(site.entries()) == before
    with pytest.raises(Stale) as late:
        accept(eve, "T1")
    assert (late.value.code, late.value.facts["holder"]) == ("HANDOFF_ACCEPTED", "bob")


@pytest.mark.promise(
    "handoffs.against-the-hash",
    "A handoff is accepted by the hash of its content; any other hash is refused.",
)
def test_the_hash_of_something_else_is_refused(site: Site) -> None:
    ann, bob = site.agent("ann"), site.agent("bob")
    add(ann, "Parse dates")
    sent = hand(ann, take(ann).task.id)
    for shown in ("0" * 64, sent.digest[:7], sent.digest + "0"):
        with pytest.raises(Stale) as other:
            accept(bob, "T1", shown)
        assert other.value.code == "HANDOFF_CHANGED"
    assert owner(site, "T1") == ("ready", "")


def test_it_is_for_nobody_else_until_its_time_is_over(site: Site) -> None:
    ann, eve = site.agent("ann"), site.agent("eve")
    add(ann, "Parse dates", paths=["src/**"])
    sent = hand(ann, take(ann).task.id)
    with pytest.raises(Held) as refused:
        accept(eve, "T1")
    assert (refused.value.code, refused.value.facts["holder"]) == ("HANDOFF_NOT_YOURS", "bob")
    assert refused.value.facts["until"] == rfc3339(sent.until)
    assert sent.until - sent.sent_at == WAIT
    assert take_task(eve.repo, eve.session, "T1", "") is None
    site.clock.advance(WAIT - 1)
    eve.shows_life()
    take_nothing(eve)
    assert handoffs_records.overdue_handoffs(eve.repo) == []
    site.clock.advance(1)
    assert [one.id for one in handoffs_records.overdue_handoffs(eve.repo)] == ["H1"]
    picked = take(eve)
    assert (picked.task.id, picked.task.attempt) == ("T1", 1)
    assert eve.holds() == ["src/**"]
    assert handoffs_records.list_handoffs(eve.repo) == []


def test_it_stands_when_the_sender_dies_and_when_the_receiver_does(site: Site) -> None:
    ann, bob = site.agent("ann"), site.agent("bob")
    add(ann, "Parse dates", paths=["src/**"])
    hand(ann, take(ann).task.id)
    ann.leave()
    bob.leave()
    assert owner(site, "T1") == ("ready", "")
    again = site.agent("bob")  # another session of the same name
    assert [one.id for one in handoffs_records.handed_to(again.repo, again.session)] == ["H1"]
    assert take(again).task.id == "T1"
    site.clock.advance(2 * WAIT)
    assert owner(site, "T1") == ("ready", "")  # who accepted it vanished: as with any task
    assert take(site.agent("cy")).task.attempt == 2


def test_next_gives_what_was_handed_to_one_first_and_says_why(site: Site) -> None:
    ann, bob = site.agent("ann"), site.agent("bob")
    add(ann, "Parse dates")
    hand(ann, take(ann).task.id, context="look at RFC 3339")
    add(ann, "Urgent", priority=9)
    picked = take(bob)
    assert picked.task.id == "T1"
    assert [one.why for one in picked.lessons] == [
        "handed to bob (H1): look at RFC 3339\nnext: write the test"
    ]
    assert take(bob).task.id == "T2"


def test_a_worker_of_a_kind_and_an_agent_in_a_role_are_meant_too(site: Site) -> None:
    ann = site.agent("ann")
    for title in ("One", "Two"):
        add(ann, title)
        hand(ann, take(ann).task.id, to="claude" if title == "One" else "role:test")
    assert take(site.agent("tess", role="test")).task.id == "T2"
    assert take_nothing(site.agent("claude-T2-x7y8z")).counts
    assert take(site.agent("claude-T1-x7y8z")).task.id == "T1"


def test_for_anybody_its_paths_are_free_and_the_attempt_goes_on(site: Site) -> None:
    ann, eve = site.agent("ann"), site.agent("eve")
    add(ann, "Parse dates", paths=["src/**"])
    hand(ann, take(ann).task.id, to=ANYBODY)
    assert site.claims() == []
    eve.take("src/a.py")
    eve.release()
    assert take(eve).task.attempt == 1
    assert [one.state for one in handoffs_records.list_handoffs(eve.repo, with_settled=True)] == ["accepted"]


def test_whoever_declines_is_not_asked_again_and_the_sender_hears_of_it(site: Site) -> None:
    ann, bob, eve = site.agent("ann"), site.agent("bob"), site.agent("eve")
    add(ann, "Parse dates", paths=["src/**"])
    hand(ann, take(ann).task.id)
    with pytest.raises(Held):
        decline.decline_handoff(eve.repo, eve.session, "T1", "no time")
    with pytest.raises(Malformed):
        decline.decline_handoff(bob.repo, bob.session, "T1", " ")
    decline.decline_handoff(bob.repo, bob.session, "T1", "no time")
    assert take_notices(ann.repo, ann.session.id) == [
        "bob declined H1: no time. T1 is anybody's now",
    ]
    assert site.claims() == []
    take_nothing(bob)
    picked = take(eve)
    assert picked.lessons[-1].why == "bob declined H1: no time"
    assert picked.task.attempt == 1


def test_what_others_took_meanwhile_is_in_the_way_and_nothing_is_changed(site: Site) -> None:
    ann, bob, eve = site.agent("ann"), site.agent("bob"), site.agent("eve")
    add(ann, "Parse dates", paths=["src/**", "docs/**"])
    take(ann)
    ann.release("docs/**")
    hand(ann, "T1")
    eve.take("docs/a.md")
    before = len(site.entries())
    outcome = handoffs.accept_handoff(bob.repo, bob.session, "T1")
    assert isinstance(outcome, Refused)
    assert outcome.refused[0].holder == "eve"
    assert take_nothing(bob).held_up == ("T1",)
    assert len(site.entries()) == before
    assert eve.is_refused("src/a.py").holder == "handoff-H1"
    eve.release()
    assert sorted(claim.pattern for claim in accept(bob, "T1").claims) == ["docs/**", "src/**"]


def test_a_role_that_may_not_have_it_is_refused(site: Site) -> None:
    ann = site.agent("ann")
    add(ann, "Parse dates", paths=["src/**"])
    hand(ann, take(ann).task.id, to="rex")
    rex = site.agent("rex", role="review")
    with pytest.raises(NotAllowed) as refused:
        accept(rex, "T1")
    assert refused.value.code == "ROLE_FORBIDS"
    take_nothing(rex)
    assert owner(site, "T1") == ("ready", "")


@pytest.mark.promise(
    "handoffs.bounded",
    "A handoff over the maximum is refused, its content is kept, and a person decides.",
)
def test_over_the_maximum_a_person_decides_and_what_was_said_is_kept(site: Site) -> None:
    settings = Settings(handoffs=HandoffSettings(max=2))
    ann, bob = site.agent("ann", settings=settings), site.agent("bob", settings=settings)
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
    assert state(site, "T1") == "waiting_for_person"
    kept = handoffs_records.find_handoff(ann.repo, "H3")
    assert kept is not None
    assert (kept.state, kept.context, kept.attempt) == ("refused", "we disagree about time zones", 3)
    assert take_nothing(bob).counts == {"waiting_for_person": 1}


def test_children_count_with_their_parent(site: Site) -> None:
    settings = Settings(handoffs=HandoffSettings(max=1))
    ann, bob = site.agent("ann", settings=settings), site.agent("bob", settings=settings)
    add(ann, "Parent")
    hand(ann, take(ann).task.id)
    take(bob)
    add(bob, "Child", parent="T1")
    take(bob)
    with pytest.raises(WaitsForPerson):
        hand(bob, "T2", to="ann")


def test_only_the_owner_sends_and_only_what_the_schema_allows(site: Site) -> None:
    ann, bob = site.agent("ann"), site.agent("bob")
    add(ann, "Parse dates")
    take(ann)
    with pytest.raises(Stale):
        hand(bob, "T1")
    with pytest.raises(Malformed) as lacking:
        hand(ann, "T1", next="")
    assert lacking.value.facts["missing"] == ["next or context"]
    assert owner(site, "T1") == ("active", "ann")
    assert handoffs_records.find_handoff(ann.repo, "T1") is None
    with pytest.raises(Malformed) as nothing:
        accept(bob, "T1")
    assert nothing.value.code == "NO_HANDOFF"


def test_dropping_a_handed_task_frees_what_was_kept_for_it(site: Site) -> None:
    ann = site.agent("ann")
    add(ann, "Parse dates", paths=["src/**"])
    hand(ann, take(ann).task.id)
    drop_task(ann.repo, ann.session, "T1", "not needed")
    assert site.claims() == []
    assert handoffs_records.list_handoffs(ann.repo) == []


def test_a_chain_ends_with_its_last_owner(site: Site) -> None:
    agents = [site.agent(name) for name in ("ann", "bob", "cy")]
    add(agents[0], "Parse dates", paths=["src/**"])
    take(agents[0])
    for sender, receiver in pairwise(agents):
        hand(sender, "T1", to=receiver.name)
        accept(receiver, "T1")
    assert [one.holds() for one in agents] == [[], [], ["src/**"]]
    end(agents[2], "T1")
    assert state(site, "T1") == "done"


def test_what_is_kept_for_one_is_not_in_its_way_when_something_else_is(site: Site) -> None:
    ann, bob, eve = site.agent("ann"), site.agent("bob"), site.agent("eve")
    for path in ("one", "two"):
        add(ann, path, paths=[f"{path}/**", f"{path}.md"])
        hand(ann, take(ann).task.id)
    bob.repo.change(lambda tx: tx.run("task_set_paths", task="T1", paths='[["held/**","glob"]]'))
    eve.take("held/a")
    assert take(bob).task.id == "T2"
