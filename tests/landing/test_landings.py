"""Landings in the store: submitted, tested, landed, sent back, decided upon; on both stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.claims.model import Refused
from landlane.errors import Held, Malformed, NotAllowed, Stale
from landlane.landing import outcomes as landing_ends
from landlane.landing import records as landings
from landlane.landing.decide import decide_held_entry
from landlane.landing.enqueue import Submission, enqueue
from landlane.landing.model import Rejection
from landlane.sessions.notices import take_notices
from landlane.sessions.runner_lease import RunnerLease, take_runner
from landlane.setup.rebuild_store import rebuild_store
from landlane.store import records
from landlane.tasks.add import add_task
from landlane.tasks.model import NewTask
from landlane.tasks.pick import next_task
from landlane.tasks.records import get_task
from landlane.values import as_dict, replace
from tests.support.project import MINUTE, SQLITE_ONLY, Background, opened

if TYPE_CHECKING:
    from landlane.landing.model import Landing
    from tests.support.project import Agent, Project

pytestmark = pytest.mark.contract

HEAD, COMMIT = "1" * 40, "2" * 40


def submission(agent: Agent, *paths: str, branch: str = "one", **more: object) -> Submission:
    found = Submission(
        branch=branch,
        head=HEAD,
        target="main",
        paths=paths,
        mergeable=frozenset(),
        subject="Do it",
        machine=agent.repo.processes.machine,
        home="/home",
    )
    return replace(found, **more)


def enter(agent: Agent, *paths: str, branch: str = "one", **more: object) -> Landing:
    return enqueue(agent.repo, agent.session, submission(agent, *paths, branch=branch, **more))[0]


def run_by(agent: Agent) -> RunnerLease:
    lease = take_runner(agent.repo, agent.session, "queue:main", MINUTE)
    assert isinstance(lease, RunnerLease)
    return lease


def land(agent: Agent, lease: RunnerLease, *ids: str) -> list[Landing]:
    landings.begin_testing(agent.repo, lease, ids)
    entries = [landing_ends.LandedEntry(id=landing_id, commit=COMMIT) for landing_id in ids]
    return landing_ends.mark_landed(agent.repo, lease, "main", entries, COMMIT)


def reject(agent: Agent, lease: RunnerLease | None, landing_id: str) -> Landing:
    rejection = Rejection(reason="red", code="CHECK_FAILED", hint="mend it")
    return landing_ends.reject_entry(agent.repo, lease, landing_id, rejection)


def test_entry_holds_the_claims_of_its_author(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    ann.take("src/**")

    entry = enter(ann, "src/a", "src/b")
    ann.leave()

    assert sorted((claim.pattern, claim.agent) for claim in project.claims()) == [
        ("src/a", "L1"),
        ("src/b", "L1"),
    ]
    assert isinstance(bob.claim("src/a"), Refused)
    assert not isinstance(bob.claim("src/c"), Refused)
    project.clock.advance(365 * 86_400_000)
    assert isinstance(project.agent("bob").claim("src/a"), Refused), "it never lapses"
    assert entry.state == "queued"


def test_landing_ends_claims_and_notifies_sessions_that_share_them(project: Project) -> None:
    ann, bob, carl = project.agent("ann"), project.agent("bob"), project.agent("carl")
    ann.take("LOG", is_shared=True)
    bob.take("LOG", is_shared=True)
    enter(ann, "LOG", mergeable=frozenset(["LOG"]))

    (landed,) = land(carl, run_by(carl), "L1")

    assert (landed.state, landed.commit) == ("landed", COMMIT)
    assert [(claim.pattern, claim.agent) for claim in project.claims()] == [("LOG", "bob")]
    assert take_notices(bob.repo, bob.session.id) == [
        f"L1 of ann landed as {COMMIT[:12]} and changed LOG: read it again"
    ]
    assert take_notices(bob.repo, bob.session.id) == []
    assert landings.get_queue(ann.repo, "main").tip == COMMIT


def test_a_runner_that_was_overtaken_writes_nothing(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    ann.take("a")
    enter(ann, "a")
    old = run_by(ann)
    project.clock.advance(2 * MINUTE)
    new = run_by(bob)

    for step in (
        lambda: landings.begin_testing(ann.repo, old, ["L1"]),
        lambda: land(ann, old, "L1"),
        lambda: reject(ann, old, "L1"),
        lambda: landings.requeue(ann.repo, old, ["L1"], "again"),
        lambda: landings.hold(ann.repo, old, "L1", "a gate"),
        lambda: landings.update_queue(ann.repo, old, "main", "moving", move={}),
    ):
        with pytest.raises(Stale):
            step()
    assert landings.get_landing(ann.repo, "L1").state == "queued"
    assert land(bob, new, "L1")[0].state == "landed"


def test_an_entry_ends_once(project: Project) -> None:
    ann = project.agent("ann")
    ann.take("a")
    enter(ann, "a")
    lease = run_by(ann)
    assert len(land(ann, lease, "L1")) == 1

    assert land(ann, lease, "L1") == []
    with pytest.raises(NotAllowed, match="L1 is landed already"):
        reject(ann, lease, "L1")
    assert landings.get_queue(ann.repo, "main").landed == 1


def test_a_bounce_is_a_task_and_gives_the_claims_back(project: Project) -> None:
    ann = project.agent("ann")
    ann.take("a")
    enter(ann, "a")

    ended = reject(ann, run_by(ann), "L1")

    task = get_task(ann.repo, ended.bounce_task)
    assert (task.state, task.next_action) == ("ready", "mend it")
    assert ann.holds() == ["a"]
    assert [claim.agent for claim in project.claims()] == ["ann"]


def test_a_bounce_after_the_task_went_another_way_is_a_task_of_its_own(project: Project) -> None:
    ann = project.agent("ann")
    add_task(ann.repo, None, NewTask(title="Write a"))
    ann.take("a")
    enter(ann, "a", task="T1")

    ended = reject(ann, run_by(ann), "L1")

    assert ended.bounce_task == "T2"
    assert "It was for T1." in get_task(ann.repo, "T2").body


def test_a_role_must_be_that_of_the_task(project: Project) -> None:
    ann, tess = project.agent("ann"), project.agent("tess", role="refactor")
    add_task(ann.repo, None, NewTask(title="Test a", role="refactor"))
    ann.take("a")
    tess.take("b")

    with pytest.raises(NotAllowed, match="T1 is for the role refactor, and ann has none"):
        enter(ann, "a", task="T1")
    assert enter(tess, "b", task="T1").task == "T1"


def test_submission_is_checked_again_in_the_transaction(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    with pytest.raises(NotAllowed, match="the branch changes paths that ann has not claimed: a"):
        enter(ann, "a")
    bob.take("a")
    with pytest.raises(Held, match="which bob holds"):
        enter(ann, "a")
    bob.release("a")
    ann.take("a")
    enter(ann, "a")
    ann.release("a")
    with pytest.raises(Held) as answer:
        enter(bob, "a", branch="two")
    assert "L1: one of ann" in answer.value.hint
    assert landings.list_landings(ann.repo)[0].id == "L1"


def test_a_person_decides_once_about_one_head(project: Project) -> None:
    ann, pat = project.agent("ann"), project.agent("pat")
    ann.take("a")
    enter(ann, "a", gate="it changes a")
    repo, session = pat.repo, pat.session

    with pytest.raises(Stale, match="L1 is at 111111111111, not at 999"):
        decide_held_entry(repo, session, "L1", is_approved=True, head="999")
    done = decide_held_entry(repo, session, "L1", is_approved=True, head="111")
    assert (done.state, done.approved_by, done.approved_head) == ("queued", "pat", HEAD)
    with pytest.raises(NotAllowed, match="it does not wait for a person"):
        decide_held_entry(repo, session, "L1", is_approved=False, why="no")


def test_same_branch_submitted_twice_at_once_is_one_entry(live_project: Project) -> None:
    agents = [live_project.agent("ann") for _ in range(4)]
    agents[0].take("a")
    running = [Background(lambda one=one: enter(one, "a")) for one in agents]

    assert {one.result().id for one in running} == {"L1"}
    assert len(landings.list_landings(agents[0].repo)) == 1


def test_unknown_entry_is_an_error(project: Project) -> None:
    ann = project.agent("ann")
    with pytest.raises(Malformed, match="no landing L9"):
        landings.get_landing(ann.repo, "L9")
    with pytest.raises(Malformed):
        reject(ann, None, "L9")


@SQLITE_ONLY
def test_entries_and_queues_are_rebuilt_from_the_journal(project: Project) -> None:
    ann = project.agent("ann")
    ann.take("a", "b", "c")
    for name in ("a", "b", "c"):
        enter(ann, name, branch=name)
    lease = run_by(ann)
    land(ann, lease, "L1")
    reject(ann, lease, "L2")
    before = [as_dict(one) for one in landings.list_landings(ann.repo, ())]
    queue = landings.get_queue(ann.repo, "main")
    with opened(project) as repo:
        repo.settle(wait_seconds=5.0)
        folder, repository_id = repo.state_folder, repo.store.repository
    project.close()

    rebuild_store(folder, repository_id, ignore_case=False)

    after = project.repo()
    assert [as_dict(one) for one in landings.list_landings(after, ())] == before
    assert replace(landings.get_queue(after, "main"), tests=0) == replace(queue, tests=0)
    assert {claim.agent for claim in project.claims()} == {"ann", "L3"}
    assert after.store.change(lambda tx: records.next_id(tx, "landing")) == "L4"


def test_authors_in_the_same_batch_are_not_notified(project: Project) -> None:
    ann, bob, carl = project.agent("ann"), project.agent("bob"), project.agent("carl")
    for agent in (ann, bob):
        agent.take("LOG", is_shared=True)
        enter(agent, "LOG", branch=agent.name, mergeable=frozenset(["LOG"]))

    assert len(land(carl, run_by(carl), "L1", "L2")) == 2

    assert project.claims() == []
    for agent in (ann, bob):
        assert take_notices(agent.repo, agent.session.id) == []


def test_paths_claimed_for_a_reviewed_task_do_not_land_on_another_branch(project: Project) -> None:
    ann = project.agent("ann")
    for title, path, labels in (("Pay", "pay", ("review:1",)), ("Say", "say", ())):
        add_task(ann.repo, ann.session, NewTask(title=title, paths=(path,), labels=labels))
        next_task(ann.repo, ann.session)
    with pytest.raises(NotAllowed) as refused:
        enter(ann, "pay", "say")
    assert (refused.value.code, refused.value.facts["task"]) == ("REVIEW_NEEDED", "T1")
    assert enter(ann, "say").state == "queued"
