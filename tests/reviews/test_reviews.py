"""Reviews on both stores: one commit, several verdicts at once, and an end to every disagreement."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from landlane.errors import Malformed, NotAllowed, Stale
from landlane.gates import ask as gates
from landlane.gates import decide
from landlane.protocol.worker.messages import WorkComplete
from landlane.reviews import close as review_ends
from landlane.reviews import give_verdict as reviews
from landlane.reviews.model import Review, make_step
from landlane.sessions import join as sessions
from landlane.sessions.model import SessionKind
from landlane.settings.model import ReviewSettings, Settings
from landlane.setup.rebuild_store import rebuild_store
from landlane.tasks.change import drop_task
from landlane.tasks.evidence import complete_task
from landlane.tasks.finish import report_done
from landlane.tasks.records import get_task, lessons_of, list_tasks
from landlane.testing.repositories import git
from tests.support.sites import MINUTE, SQLITE_ONLY, Agent, Background, opened
from tests.support.work_queue import add, state, take, take_nothing

if TYPE_CHECKING:
    from tests.support.sites import Site

pytestmark = pytest.mark.contract

HEAD, OTHER = "a" * 40, "b" * 40


def submit(
    author: Agent, *names: str, count: int = 1, decider: str = "", head: str = HEAD, title: str = "Dates"
) -> Review:
    """A task with a path, taken, reported, and under review."""
    if not list_tasks(author.repo):
        add(author, title, paths=["src/dates.py"], kind="code")
        take(author)
    report_done(author.repo, author.session, "T1")
    step = make_step(count, names, decider)
    return reviews.begin_review(author.repo, author.session, "T1", head, step)


def say(
    agent: Agent, verdict: str, *findings: tuple[str, int, str, str], review: str = "V1", summary: str = ""
) -> Review:
    given = [dict(zip(("path", "line", "severity", "text"), one, strict=True)) for one in findings]
    summary = summary or ("" if verdict == "approve" else f"{agent.name} is not content")
    return reviews.give_verdict(
        agent.repo, agent.session, review, verdict=verdict, findings=given, summary=summary
    )


def holders(site: Site) -> list[str]:
    return [claim.agent for claim in site.claims()]


def test_reviewers_get_tasks_of_their_own_at_the_same_time_on_one_commit(site: Site) -> None:
    ann = site.agent("ann")
    review = submit(ann, count=2)
    bob, cid = site.agent("bob", role="review"), site.agent("cid", role="review")

    one, other = take(bob).task, take(cid).task

    assert [entry["task"] for entry in review.entries] == [one.id, other.id]
    assert {one.kind, one.role, one.lineage, other.lineage} == {"review", "T1"}
    assert HEAD in one.body
    assert HEAD in other.body
    task = get_task(ann.repo, "T1")
    assert (task.state, task.owner, task.head) == ("review", "ann", HEAD)
    assert holders(site) == ["review-V1"]


def test_all_approve_and_the_author_goes_on_with_its_claims(site: Site) -> None:
    ann, bob, cid = site.agent("ann"), site.agent("bob"), site.agent("cid")
    submit(ann, count=2)
    assert say(bob, "approve").state == "open"

    assert say(cid, "approve").state == "approved"

    task = get_task(ann.repo, "T1")
    assert (task.state, task.owner, task.head) == ("reported", "ann", HEAD)
    assert holders(site) == ["ann"]
    look = ann.repo.store.view
    assert look(lambda it: reviews.is_approved(it, task, HEAD))
    assert not look(lambda it: reviews.is_approved(it, task, OTHER))
    assert [task.state for task in list_tasks(ann.repo)] == ["reported", "done", "done"]


def test_a_rejection_gives_the_work_back_with_all_that_was_said(site: Site) -> None:
    ann, bob = site.agent("ann"), site.agent("bob")
    submit(ann)

    say(bob, "reject", ("src/dates.py", 3, "major", "loses the time zone"), summary="not yet")

    task = get_task(ann.repo, "T1")
    assert (task.state, task.owner, task.attempt, task.failures, task.head) == ("active", "ann", 1, 1, "")
    assert holders(site) == ["ann"]
    (lesson,) = lessons_of(ann.repo, "T1")
    assert "bob says reject: not yet" in lesson.why
    assert "major at src/dates.py:3 (bob): loses the time zone" in lesson.why


@pytest.mark.promise(
    "reviews.come-to-an-end",
    "A writer and a reviewer that never agree are stopped, and the full discussion is kept.",
)
def test_a_writer_and_a_reviewer_that_never_agree_stop_at_the_bound_with_the_whole_history(
    site: Site,
) -> None:
    ann, bob = site.agent("ann"), site.agent("bob")
    said = ["the name is wrong", "there is no test", "it is too slow", "the docs are missing", "x", "y"]
    rounds = 0
    submit(ann)
    while state(site, "T1") == "review":
        rounds += 1
        say(bob, "reject", review=f"V{rounds}", summary=said[rounds - 1])
        if state(site, "T1") == "active":
            submit(ann, head=f"{rounds}" * 40)

    assert rounds == 3
    assert state(site, "T1") in ("waiting_for_person", "dead")
    history = "\n".join(one.why for one in lessons_of(ann.repo, "T1"))
    assert all(text in history for text in said[:3])


def test_one_that_repeats_itself_stops_a_round_earlier(site: Site) -> None:
    ann, bob = site.agent("ann"), site.agent("bob")
    submit(ann)
    say(bob, "reject", summary="there is no test")
    submit(ann, head=OTHER)
    say(bob, "reject", review="V2", summary="there is no test")
    assert state(site, "T1") in ("waiting_for_person", "dead")


@pytest.mark.promise(
    "reviews.contradictions-are-decided",
    "When reviewers disagree, only the named decider decides.",
)
def test_a_contradiction_goes_to_the_named_decider_whose_verdict_counts(site: Site) -> None:
    ann, bob, cid, dan = (site.agent(name) for name in ("ann", "bob", "cid", "dan"))
    submit(ann, count=2, decider="dan")
    say(bob, "approve")

    disputed = say(cid, "reject")

    assert disputed.state == "deciding"
    assert disputed.contradictions[0]["what"] == "bob approves, cid rejects"
    with pytest.raises(NotAllowed):
        say(bob, "approve")
    assert take(dan, "review").task.title == "Decide on T1: Dates"
    assert say(dan, "approve").state == "approved"
    assert state(site, "T1") == "reported"


def test_findings_that_contradict_each_other_on_one_place_are_found_though_the_verdicts_agree(
    site: Site,
) -> None:
    ann, bob, cid = site.agent("ann"), site.agent("bob"), site.agent("cid")
    submit(ann, count=2, decider="dan")
    say(bob, "approve", ("src/dates.py", 7, "praise", "the cache is right"))

    review = say(cid, "approve", ("src/dates.py", 7, "major", "the cache never expires"))

    assert review.state == "deciding"
    assert (review.contradictions[0]["path"], review.contradictions[0]["line"]) == ("src/dates.py", 7)


@pytest.mark.parametrize(("approve", "then"), [(True, "reported"), (False, "active")])
def test_a_person_decides_at_a_gate_bound_to_the_commit(site: Site, *, approve: bool, then: str) -> None:
    ann, bob, cid = site.agent("ann"), site.agent("bob"), site.agent("cid")
    pat = Agent(ann.repo, sessions.join(ann.repo, "pat", kind=SessionKind.PERSON))
    submit(ann, count=2)
    say(bob, "approve")
    review = say(cid, "reject")
    (gate,) = gates.list_gates(ann.repo)
    assert (gate.id, gate.about["head"]) == (review.gate, HEAD)
    with pytest.raises(NotAllowed) as caught:
        say(site.agent("eve"), "approve")
    assert caught.value.code == "WAITS_FOR_PERSON"

    decide.answer(pat.repo, pat.session, gate.id, approve=approve, why="I looked")

    ended = reviews.get_review(ann.repo, "V1")
    assert (ended.state, ended.decision and ended.decision["by"]) == (
        "approved" if approve else "rejected",
        "pat",
    )
    assert state(site, "T1") == then
    assert not gates.list_gates(ann.repo)


@pytest.mark.promise("reviews.nobody-judges-own-work", "The author of a change cannot give a verdict on it.")
def test_nobody_judges_their_own_work(site: Site) -> None:
    ann = site.agent("ann")
    submit(ann)
    take_nothing(ann, "review")
    with pytest.raises(NotAllowed) as caught:
        say(ann, "approve")
    assert caught.value.code == "OWN_REVIEW"


def test_a_worker_judges_for_its_keeper_and_never_its_keepers_work(site: Site) -> None:
    ann, keeper = site.agent("ann"), site.agent("bob-T2-x")
    own, hands = site.hands(ann, "review"), site.hands(keeper, "review")
    submit(ann)
    with pytest.raises(NotAllowed) as caught:
        say(own, "approve")
    assert caught.value.code == "OWN_REVIEW"
    take(keeper, "review")
    assert say(hands, "approve").state == "approved"


def test_who_is_only_called_like_a_reviewers_worker_does_not_speak_for_it(site: Site) -> None:
    ann, alice, posing = site.agent("ann"), site.agent("alice"), site.agent("alice.w")
    submit(ann, "alice")
    take(alice, "review")
    with pytest.raises(NotAllowed) as caught:
        say(posing, "approve")
    assert (caught.value.code, caught.value.facts["holder"]) == ("NOT_A_REVIEWER", "alice")
    assert say(alice, "approve").state == "approved"


def test_a_named_reviewer_is_asked_and_nobody_else(site: Site) -> None:
    ann, bob, cid = site.agent("ann"), site.agent("bob"), site.agent("cid")
    submit(ann, "bob")
    take_nothing(cid, "review")
    with pytest.raises(NotAllowed) as caught:
        say(cid, "approve")
    assert (caught.value.code, caught.value.facts["holder"]) == ("NOT_A_REVIEWER", "bob")
    assert take(bob, "review").task.id == "T2"


def test_one_verdict_for_each(site: Site) -> None:
    ann, bob = site.agent("ann"), site.agent("bob")
    submit(ann, count=2)
    say(bob, "approve")
    take_nothing(bob, "review")
    with pytest.raises(NotAllowed) as caught:
        say(bob, "approve")
    assert caught.value.code == "VERDICT_GIVEN"


def test_a_verdict_is_for_one_commit_and_comes_too_late_for_another(site: Site) -> None:
    ann, bob = site.agent("ann"), site.agent("bob")
    submit(ann)
    with pytest.raises(Stale) as caught:
        reviews.give_verdict(bob.repo, bob.session, "V1", verdict="approve", head="bbbb")
    assert caught.value.code == "HEAD_MOVED"
    reviews.take_back(ann.repo, ann.session, "T1")
    submit(ann, head=OTHER)

    with pytest.raises(Stale) as caught:
        say(bob, "approve")

    assert caught.value.code == "REVIEW_OVER"
    assert [one.state for one in reviews.list_reviews(ann.repo, with_all=True)] == ["outdated", "open"]
    assert [task.state for task in list_tasks(ann.repo)] == ["review", "dropped", "ready"]
    assert say(bob, "approve", review="V2").state == "approved"


def test_work_whose_author_is_gone_waits_for_somebody_who_lands_it(site: Site) -> None:
    ann, bob, cid = site.agent("ann"), site.agent("bob"), site.agent("cid")
    submit(ann)
    ann.leave()
    assert holders(site) == ["review-V1"]
    say(bob, "approve")
    (waiting,) = reviews.approved_waiting(cid.repo)

    task = review_ends.adopt(cid.repo, cid.session, waiting.id)

    assert (task.state, task.owner, task.session, task.head) == ("reported", "cid", cid.session.id, HEAD)
    assert holders(site) == ["cid"]
    with pytest.raises(NotAllowed):
        review_ends.adopt(bob.repo, bob.session, waiting.id)


def test_a_rejection_whose_author_is_gone_is_offered_to_others(site: Site) -> None:
    ann, bob = site.agent("ann"), site.agent("bob")
    submit(ann)
    ann.leave()
    say(bob, "reject", summary="no")
    assert (state(site, "T1"), holders(site)) == ("ready", [])
    site.clock.advance(20 * MINUTE)
    assert "no" in take(site.agent("cid")).lessons[-1].why


def test_a_reviewer_that_never_answers_leaves_it_to_the_decider(site: Site) -> None:
    ann, bob, cid = site.agent("ann"), site.agent("bob"), site.agent("cid")
    submit(ann, count=2, decider="dan")
    say(bob, "approve")
    lost = take(cid, "review").task.id
    drop_task(cid.repo, cid.session, lost, "out of money")
    review = reviews.get_review(ann.repo, "V1")
    assert (review.state, review.why) == ("deciding", "1 of 2 reviewers gave no verdict")


def test_a_task_that_is_dropped_needs_no_review_any_more(site: Site) -> None:
    ann = site.agent("ann")
    submit(ann)
    drop_task(ann.repo, ann.session, "T1", "the feature was cancelled")
    assert [task.state for task in list_tasks(ann.repo)] == ["dropped", "ready"]
    assert reviews.list_reviews(ann.repo) == []
    assert [task.state for task in list_tasks(ann.repo)] == ["dropped", "dropped"]
    assert holders(site) == []


def test_a_worker_gives_its_verdict_at_its_end(site: Site) -> None:
    ann, bob, cid = site.agent("ann"), site.agent("bob"), site.agent("cid")
    submit(ann, count=2)
    mine, theirs = take(bob, "review").task, take(cid, "review").task
    said = WorkComplete(assignment="x", summary="fine", verdict="approve", findings=({"text": "nice"},))
    reviews.take_verdict(bob.repo, bob.session, mine, said)
    with pytest.raises(Malformed) as caught:
        reviews.take_verdict(cid.repo, cid.session, theirs, WorkComplete(assignment="x", summary="ok"))
    assert caught.value.code == "BAD_VERDICT"
    text = 'I think: ```json\n{"verdict": "approve", "summary": "good"}\n```'
    reviews.take_verdict(cid.repo, cid.session, theirs, WorkComplete(assignment="x", summary=text))
    assert state(site, "T1") == "reported"


def test_eight_verdicts_at_the_same_instant_end_a_review_once(live_site: Site) -> None:
    ann = live_site.agent("ann")
    submit(ann, count=8, decider="zoe")
    agents = [live_site.agent(f"r{number}") for number in range(8)]
    for agent in agents:
        take(agent, "review")
    start = threading.Barrier(len(agents))

    def judge(number: int) -> None:
        start.wait(30)
        say(agents[number], "approve" if number else "reject")

    for one in [Background(lambda n=n: judge(n)) for n in range(8)]:
        one.result()

    review = reviews.get_review(ann.repo, "V1")
    assert (review.state, sum(bool(entry["verdict"]) for entry in review.entries)) == ("deciding", 8)
    assert live_site.kinds().count("review.disputed") == 1
    assert len(list_tasks(ann.repo)) == 10


def test_what_is_done_goes_to_review_and_only_the_approved_commit_may_land(live_site: Site) -> None:
    with opened(live_site) as repo:
        ann = Agent(repo, sessions.join(repo, "ann"))
        bob = Agent(repo, sessions.join(repo, "bob"))
        folder = live_site.repository

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
        assert state(live_site, "T1") == "reported"
        assert done() == "landing"
        commit("two")
        assert done() == "review"  # a moved head needs a new review
        commit("three")
        assert done() == "review"
        assert [one.state for one in reviews.list_reviews(ann.repo, with_all=True)] == [
            *("approved", "outdated", "open")
        ]
        assert say(bob, "approve", review="V3").state == "approved"
        assert done() == "landing"


def test_settings_ask_for_a_review_by_paths_and_kinds_and_a_result_without_a_commit_ends_with_it(
    live_site: Site,
) -> None:
    settings = Settings(review=ReviewSettings(paths=("src/pay/**",), kinds=("chore",), reviewers=("bob",)))
    with opened(live_site):
        ann, bob = live_site.agent("ann", settings=settings), live_site.agent("bob", settings=settings)
        add(ann, "Tidy")
        take(ann)
        assert complete_task(ann.repo, ann.session, "T1").task.state == "review"
        assert take(bob, "review").task.labels == ("reviews:V1", "agent:bob")
        say(bob, "approve")
        assert state(live_site, "T1") == "done"
        add(ann, "Pay", kind="output", paths=["src/**"])
        one = get_task(ann.repo, "T3")
        assert reviews.step_for(ann.repo, one, "output") is not None
        add(ann, "Docs", kind="output", paths=["docs/**"])
        other = get_task(ann.repo, "T4")
        assert reviews.step_for(ann.repo, other, "output") is None
        assert reviews.step_for(ann.repo, other, "output", ["src/pay/card.py"]) is not None


@SQLITE_ONLY
def test_a_store_built_from_the_journal_knows_what_is_under_review(site: Site) -> None:
    ann, bob, cid = site.agent("ann"), site.agent("bob"), site.agent("cid")
    submit(ann, count=2)
    say(bob, "reject", summary="not yet")
    say(cid, "reject", summary="nor for me")
    submit(ann, head=OTHER, count=2)
    say(bob, "approve", review="V2")
    before = [
        (one.id, one.state, one.owner, one.session, one.head, one.why, one.failures)
        for one in list_tasks(ann.repo)
    ]
    kept = [reviews.get_review(ann.repo, name) for name in ("V1", "V2")]
    with opened(site) as repo:
        repo.settle()
        folder = repo.checkout.state_folder
    site.close()
    identity = (site.repository / ".git" / "landlane" / "repository").read_text().strip()
    rebuild_store(folder, identity, ignore_case=False)

    new = site.repo()

    assert before == [
        (one.id, one.state, one.owner, one.session, one.head, one.why, one.failures)
        for one in list_tasks(new)
    ]
    assert [reviews.get_review(new, name) for name in ("V1", "V2")] == kept
    assert holders(site) == ["review-V2"]


def test_two_changes_in_turn_are_known_in_whichever_commits_and_a_rejected_one_is_not_judged_twice(
    live_site: Site,
) -> None:
    with opened(live_site) as repo:
        ann = Agent(repo, sessions.join(repo, "ann"))
        bob = Agent(repo, sessions.join(repo, "bob"))
        folder = live_site.repository
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
                    "V1 rejected exactly this commit",
                )
        stopped = get_task(ann.repo, "T1")
        assert (stopped.state, "to and fro" in stopped.why) == ("waiting_for_person", True)
