"""Reviews on both stores: one commit, concurrent verdicts, and every disagreement is resolved."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from landlane.errors import Malformed, NotAllowed, Stale
from landlane.gates.decide import answer_gate
from landlane.gates.records import list_gates
from landlane.protocol.worker.messages import WorkComplete
from landlane.reviews.close import adopt, list_reviews
from landlane.reviews.give_verdict import give_verdict, take_verdict
from landlane.reviews.model import Review, require_review
from landlane.reviews.open import find_required_review, open_review, withdraw_from_review
from landlane.reviews.records import approved_waiting, get_review, is_approved
from landlane.sessions import join as sessions
from landlane.sessions.model import SessionKind
from landlane.settings.model import ReviewSettings, Settings
from landlane.setup.rebuild_store import rebuild_store
from landlane.tasks.change import drop_task
from landlane.tasks.evidence import complete_task
from landlane.tasks.finish import report_done
from landlane.tasks.records import get_task, lessons_of, list_tasks, lock_task
from landlane.testing.repositories import git
from tests.support.project import MINUTE, SQLITE_ONLY, Agent, Background, opened
from tests.support.tasks import add, expect_no_task, state, take

if TYPE_CHECKING:
    from tests.support.project import Project

pytestmark = pytest.mark.contract

HEAD, OTHER = "a" * 40, "b" * 40


def submit(
    author: Agent, *names: str, count: int = 1, decider: str = "", head: str = HEAD, title: str = "Dates"
) -> Review:
    """Add, take and report a task with a path, and open its review."""
    if not list_tasks(author.repo):
        add(author, title, paths=["src/dates.py"], kind="code")
        take(author)
    report_done(author.repo, author.session, "T1")
    required = require_review(count, names, decider)
    return author.repo.change(
        lambda tx: open_review(tx, author.repo, author.session, lock_task(tx, "T1"), head, required)
    )


def say(
    agent: Agent, verdict: str, *findings: tuple[str, int, str, str], review: str = "V1", summary: str = ""
) -> Review:
    given = [dict(zip(("path", "line", "severity", "text"), one, strict=True)) for one in findings]
    summary = summary or ("" if verdict == "approve" else f"{agent.name} is not content")
    return give_verdict(agent.repo, agent.session, review, verdict=verdict, findings=given, summary=summary)


def holders(project: Project) -> list[str]:
    return [claim.agent for claim in project.claims()]


def test_each_reviewer_gets_a_task_about_the_same_commit(project: Project) -> None:
    ann = project.agent("ann")
    review = submit(ann, count=2)
    bob, cid = project.agent("bob", role="review"), project.agent("cid", role="review")

    one, other = take(bob).task, take(cid).task

    assert [entry.task for entry in review.entries] == [one.id, other.id]
    assert {one.kind, one.role, one.lineage, other.lineage} == {"review", "T1"}
    assert HEAD in one.body
    assert HEAD in other.body
    task = get_task(ann.repo, "T1")
    assert (task.state, task.owner, task.head) == ("review", "ann", HEAD)
    assert holders(project) == ["V1"]


def test_approved_task_returns_to_its_author_with_its_claims(project: Project) -> None:
    ann, bob, cid = project.agent("ann"), project.agent("bob"), project.agent("cid")
    submit(ann, count=2)
    assert say(bob, "approve").state == "open"

    assert say(cid, "approve").state == "approved"

    task = get_task(ann.repo, "T1")
    assert (task.state, task.owner, task.head) == ("reported", "ann", HEAD)
    assert holders(project) == ["ann"]
    look = ann.repo.store.view
    assert look(lambda it: is_approved(it, task, HEAD))
    assert not look(lambda it: is_approved(it, task, OTHER))
    assert [task.state for task in list_tasks(ann.repo)] == ["reported", "done", "done"]


def test_rejected_task_returns_to_its_author_with_the_feedback(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    submit(ann)

    say(bob, "reject", ("src/dates.py", 3, "major", "loses the time zone"), summary="not yet")

    task = get_task(ann.repo, "T1")
    assert (task.state, task.owner, task.attempt, task.failures, task.head) == ("active", "ann", 1, 1, "")
    assert holders(project) == ["ann"]
    (lesson,) = lessons_of(ann.repo, "T1")
    assert "bob says reject: not yet" in lesson.why
    assert "major at src/dates.py:3 (bob): loses the time zone" in lesson.why


@pytest.mark.promise(
    "reviews.come-to-an-end",
    "A writer and a reviewer that never agree are stopped, and the full discussion is kept.",
)
def test_author_and_reviewer_that_never_agree_are_stopped_with_the_full_history(
    project: Project,
) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    said = ["the name is wrong", "there is no test", "it is too slow", "the docs are missing", "x", "y"]
    rounds = 0
    submit(ann)
    while state(project, "T1") == "review":
        rounds += 1
        say(bob, "reject", review=f"V{rounds}", summary=said[rounds - 1])
        if state(project, "T1") == "active":
            submit(ann, head=f"{rounds}" * 40)

    assert rounds == 3
    assert state(project, "T1") in ("waiting_for_person", "dead")
    history = "\n".join(one.why for one in lessons_of(ann.repo, "T1"))
    assert all(text in history for text in said[:3])


def test_repeated_feedback_stops_the_task_one_round_earlier(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    submit(ann)
    say(bob, "reject", summary="there is no test")
    submit(ann, head=OTHER)
    say(bob, "reject", review="V2", summary="there is no test")
    assert state(project, "T1") in ("waiting_for_person", "dead")


@pytest.mark.promise(
    "reviews.contradictions-are-decided",
    "When reviewers disagree, only the named decider decides.",
)
def test_named_decider_resolves_a_contradiction(project: Project) -> None:
    ann, bob, cid, dan = (project.agent(name) for name in ("ann", "bob", "cid", "dan"))
    submit(ann, count=2, decider="dan")
    say(bob, "approve")

    disputed = say(cid, "reject")

    assert disputed.state == "deciding"
    assert disputed.contradictions[0].what == "bob approves, cid rejects"
    with pytest.raises(NotAllowed):
        say(bob, "approve")
    assert take(dan, "review").task.title == "Decide on T1: Dates"
    assert say(dan, "approve").state == "approved"
    assert state(project, "T1") == "reported"


def test_contradicting_findings_are_detected_even_if_the_verdicts_agree(
    project: Project,
) -> None:
    ann, bob, cid = project.agent("ann"), project.agent("bob"), project.agent("cid")
    submit(ann, count=2, decider="dan")
    say(bob, "approve", ("src/dates.py", 7, "praise", "the cache is right"))

    review = say(cid, "approve", ("src/dates.py", 7, "major", "the cache never expires"))

    assert review.state == "deciding"
    assert (review.contradictions[0].path, review.contradictions[0].line) == ("src/dates.py", 7)


@pytest.mark.parametrize(("approve", "then"), [(True, "reported"), (False, "active")])
def test_person_decides_at_a_gate_bound_to_the_commit(project: Project, *, approve: bool, then: str) -> None:
    ann, bob, cid = project.agent("ann"), project.agent("bob"), project.agent("cid")
    pat = Agent(ann.repo, sessions.join(ann.repo, "pat", kind=SessionKind.PERSON))
    submit(ann, count=2)
    say(bob, "approve")
    review = say(cid, "reject")
    (gate,) = list_gates(ann.repo)
    assert (gate.id, gate.about["head"]) == (review.gate, HEAD)
    with pytest.raises(NotAllowed) as caught:
        say(project.agent("eve"), "approve")
    assert caught.value.code == "WAITS_FOR_PERSON"

    answer_gate(pat.repo, pat.session, gate.id, approve=approve, why="I looked")

    ended = get_review(ann.repo, "V1")
    assert (ended.state, ended.decision and ended.decision.by) == (
        "approved" if approve else "rejected",
        "pat",
    )
    assert state(project, "T1") == then
    assert not list_gates(ann.repo)


@pytest.mark.promise("reviews.nobody-judges-own-work", "The author of a change cannot give a verdict on it.")
def test_author_cannot_review_its_own_work(project: Project) -> None:
    ann = project.agent("ann")
    submit(ann)
    expect_no_task(ann, "review")
    with pytest.raises(NotAllowed) as caught:
        say(ann, "approve")
    assert caught.value.code == "OWN_REVIEW"


def test_worker_reviews_for_its_supervisor_but_not_its_supervisors_work(project: Project) -> None:
    ann, supervisor = project.agent("ann"), project.agent("bob-T2", is_internal=True)
    own, hands = project.worker_session(ann, "review"), project.worker_session(supervisor, "review")
    submit(ann)
    with pytest.raises(NotAllowed) as caught:
        say(own, "approve")
    assert caught.value.code == "OWN_REVIEW"
    take(supervisor, "review")
    assert say(hands, "approve").state == "approved"


def test_agent_named_like_a_reviewers_worker_cannot_review_for_it(project: Project) -> None:
    ann, alice, posing = project.agent("ann"), project.agent("alice"), project.agent("alice.w")
    submit(ann, "alice")
    take(alice, "review")
    with pytest.raises(NotAllowed) as caught:
        say(posing, "approve")
    assert (caught.value.code, caught.value.facts["holder"]) == ("NOT_A_REVIEWER", "alice")
    assert say(alice, "approve").state == "approved"


def test_only_the_named_reviewer_is_asked(project: Project) -> None:
    ann, bob, cid = project.agent("ann"), project.agent("bob"), project.agent("cid")
    submit(ann, "bob")
    expect_no_task(cid, "review")
    with pytest.raises(NotAllowed) as caught:
        say(cid, "approve")
    assert (caught.value.code, caught.value.facts["holder"]) == ("NOT_A_REVIEWER", "bob")
    assert take(bob, "review").task.id == "T2"


def test_second_verdict_of_one_agent_is_refused(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    submit(ann, count=2)
    say(bob, "approve")
    expect_no_task(bob, "review")
    with pytest.raises(NotAllowed) as caught:
        say(bob, "approve")
    assert caught.value.code == "VERDICT_GIVEN"


def test_verdict_on_an_outdated_commit_is_refused(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    submit(ann)
    with pytest.raises(Stale) as caught:
        give_verdict(bob.repo, bob.session, "V1", verdict="approve", head="bbbb")
    assert caught.value.code == "HEAD_MOVED"
    withdraw_from_review(ann.repo, ann.session, "T1")
    submit(ann, head=OTHER)

    with pytest.raises(Stale) as caught:
        say(bob, "approve")

    assert caught.value.code == "REVIEW_OVER"
    assert [one.state for one in list_reviews(ann.repo, with_all=True)] == ["outdated", "open"]
    assert [task.state for task in list_tasks(ann.repo)] == ["review", "dropped", "ready"]
    assert say(bob, "approve", review="V2").state == "approved"


def test_approved_work_of_a_gone_author_can_be_adopted(project: Project) -> None:
    ann, bob, cid = project.agent("ann"), project.agent("bob"), project.agent("cid")
    submit(ann)
    ann.leave()
    assert holders(project) == ["V1"]
    say(bob, "approve")
    (waiting,) = approved_waiting(cid.repo)

    task = adopt(cid.repo, cid.session, waiting.id)

    assert (task.state, task.owner, task.session, task.head) == ("reported", "cid", cid.session.id, HEAD)
    assert holders(project) == ["cid"]
    with pytest.raises(NotAllowed):
        adopt(bob.repo, bob.session, waiting.id)


def test_rejected_work_of_a_gone_author_is_offered_to_others(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    submit(ann)
    ann.leave()
    say(bob, "reject", summary="no")
    assert (state(project, "T1"), holders(project)) == ("ready", [])
    project.clock.advance(20 * MINUTE)
    assert "no" in take(project.agent("cid")).lessons[-1].why


def test_decider_is_asked_when_a_reviewer_gives_no_verdict(project: Project) -> None:
    ann, bob, cid = project.agent("ann"), project.agent("bob"), project.agent("cid")
    submit(ann, count=2, decider="dan")
    say(bob, "approve")
    lost = take(cid, "review").task.id
    drop_task(cid.repo, cid.session, lost, "out of money")
    review = get_review(ann.repo, "V1")
    assert (review.state, review.why) == ("deciding", "1 of 2 reviewers gave no verdict")


def test_dropping_a_task_drops_its_reviews(project: Project) -> None:
    ann = project.agent("ann")
    submit(ann)
    drop_task(ann.repo, ann.session, "T1", "the feature was cancelled")
    assert [task.state for task in list_tasks(ann.repo)] == ["dropped", "ready"]
    assert list_reviews(ann.repo) == []
    assert [task.state for task in list_tasks(ann.repo)] == ["dropped", "dropped"]
    assert holders(project) == []


def test_worker_gives_its_verdict_when_it_ends(project: Project) -> None:
    ann, bob, cid = project.agent("ann"), project.agent("bob"), project.agent("cid")
    submit(ann, count=2)
    mine, theirs = take(bob, "review").task, take(cid, "review").task
    said = WorkComplete(assignment="x", summary="fine", verdict="approve", findings=({"text": "nice"},))
    take_verdict(bob.repo, bob.session, mine, said)
    with pytest.raises(Malformed) as caught:
        take_verdict(cid.repo, cid.session, theirs, WorkComplete(assignment="x", summary="ok"))
    assert caught.value.code == "BAD_VERDICT"
    text = 'I think: ```json\n{"verdict": "approve", "summary": "good"}\n```'
    take_verdict(cid.repo, cid.session, theirs, WorkComplete(assignment="x", summary=text))
    assert state(project, "T1") == "reported"


def test_eight_concurrent_verdicts_settle_a_review_once(live_project: Project) -> None:
    ann = live_project.agent("ann")
    submit(ann, count=8, decider="zoe")
    agents = [live_project.agent(f"r{number}") for number in range(8)]
    for agent in agents:
        take(agent, "review")
    start = threading.Barrier(len(agents))

    def judge(number: int) -> None:
        start.wait(30)
        say(agents[number], "approve" if number else "reject")

    for one in [Background(lambda n=n: judge(n)) for n in range(8)]:
        one.result()

    review = get_review(ann.repo, "V1")
    assert (review.state, sum(bool(entry.verdict) for entry in review.entries)) == ("deciding", 8)
    assert live_project.kinds().count("review.disputed") == 1
    assert len(list_tasks(ann.repo)) == 10


def test_only_the_approved_commit_may_land(live_project: Project) -> None:
    with opened(live_project) as repo:
        ann = Agent(repo, sessions.join(repo, "ann"))
        bob = Agent(repo, sessions.join(repo, "bob"))
        folder = live_project.repository

        def done() -> str:
            return complete_task(ann.repo, ann.session, "T1").task.state

        def commit(text: str) -> None:
            (folder / "new.py").write_text(text, encoding="utf-8")
            git(folder, "add", "new.py")
            git(folder, "commit", "--quiet", "-m", text)

        add(ann, "Dates", kind="code", labels=["review:1"])
        take(ann)
        git(folder, "switch", "--quiet", "-c", "landlane/T1-1/work")
        commit("one")
        assert (done(), done()) == ("review", "review")
        say(bob, "approve")
        assert state(live_project, "T1") == "reported"
        assert done() == "landing"
        commit("two")
        assert done() == "review"  # a moved head needs a new review
        commit("three")
        assert done() == "review"
        assert [one.state for one in list_reviews(ann.repo, with_all=True)] == [
            *("approved", "outdated", "open")
        ]
        assert say(bob, "approve", review="V3").state == "approved"
        assert done() == "landing"


def test_settings_require_reviews_by_path_and_kind_and_approval_finishes_a_task_without_commit(
    live_project: Project,
) -> None:
    settings = Settings(review=ReviewSettings(paths=("src/pay/**",), kinds=("chore",), reviewers=("bob",)))
    with opened(live_project):
        ann, bob = live_project.agent("ann", settings=settings), live_project.agent("bob", settings=settings)
        add(ann, "Tidy")
        take(ann)
        assert complete_task(ann.repo, ann.session, "T1").task.state == "review"
        assert take(bob, "review").task.labels == ("reviews:V1", "agent:bob")
        say(bob, "approve")
        assert state(live_project, "T1") == "done"
        add(ann, "Pay", kind="output", paths=["src/**"])
        one = get_task(ann.repo, "T3")
        assert find_required_review(ann.repo, one, "output") is not None
        add(ann, "Docs", kind="output", paths=["docs/**"])
        other = get_task(ann.repo, "T4")
        assert find_required_review(ann.repo, other, "output") is None
        assert find_required_review(ann.repo, other, "output", ["src/pay/card.py"]) is not None


@SQLITE_ONLY
def test_rebuilt_store_has_the_same_reviews(project: Project) -> None:
    ann, bob, cid = project.agent("ann"), project.agent("bob"), project.agent("cid")
    submit(ann, count=2)
    say(bob, "reject", summary="not yet")
    say(cid, "reject", summary="nor for me")
    submit(ann, head=OTHER, count=2)
    say(bob, "approve", review="V2")
    before = [
        (one.id, one.state, one.owner, one.session, one.head, one.why, one.failures)
        for one in list_tasks(ann.repo)
    ]
    kept = [get_review(ann.repo, name) for name in ("V1", "V2")]
    with opened(project) as repo:
        repo.settle()
        folder = repo.checkout.state_folder
    project.close()
    identity = (project.repository / ".git" / "landlane" / "repository").read_text().strip()
    rebuild_store(folder, identity, ignore_case=False)

    new = project.repo()

    assert before == [
        (one.id, one.state, one.owner, one.session, one.head, one.why, one.failures)
        for one in list_tasks(new)
    ]
    assert [get_review(new, name) for name in ("V1", "V2")] == kept
    assert holders(project) == ["V2"]


def test_alternating_changes_are_recognised_in_new_commits_and_a_rejected_commit_is_not_reviewed_again(
    live_project: Project,
) -> None:
    with opened(live_project) as repo:
        ann = Agent(repo, sessions.join(repo, "ann"))
        bob = Agent(repo, sessions.join(repo, "bob"))
        folder = live_project.repository
        add(ann, "Dates", kind="code", labels=["review:1"], max_attempts=9)
        take(ann)
        git(folder, "switch", "--quiet", "-c", "landlane/T1-1/work")
        for number, text in enumerate("ABAB", start=1):
            (folder / "new.py").write_text(text, encoding="utf-8")
            git(folder, "add", "new.py")
            git(folder, "commit", "--quiet", "-m", f"{text} {number}")
            assert complete_task(ann.repo, ann.session, "T1").task.state == "review"
            say(bob, "reject", review=f"V{number}", summary=("one", "two", "three", "four")[number - 1])
            if number == 1:
                again = complete_task(ann.repo, ann.session, "T1")
                assert (again.task.state, again.evidence[-1].found) == (
                    "reported",
                    "V1 rejected this commit",
                )
        stopped = get_task(ann.repo, "T1")
        assert (stopped.state, "alternate between two versions" in stopped.why) == (
            "waiting_for_person",
            True,
        )
