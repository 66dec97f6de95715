"""What was approved after its author had gone lands as it was approved, and no other commit does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.claims.take import list_claims
from landlane.errors import NotAllowed
from landlane.git.target import drop_verified, find_target, list_verified, share_verified
from landlane.landing.after_landing import clean_up_here
from landlane.reviews.close import list_reviews
from landlane.reviews.give_verdict import give_verdict
from landlane.reviews.model import Review
from landlane.sessions import join as sessions
from landlane.tasks.add import add_task
from landlane.tasks.attempts import begin_attempt, change_attempt
from landlane.tasks.evidence import complete_task
from landlane.tasks.git_evidence import GitEvidence
from landlane.tasks.model import AttemptState, NewTask
from landlane.tasks.pick import Picked, next_task, take_task
from landlane.tasks.records import get_task
from landlane.workers.recover import submit_approved, submit_verified
from tests.support.git import git_line
from tests.support.landing import LandingTestbed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration

BRANCH = "landlane/T1-1/work"


@pytest.fixture
def testbed(repository: Path) -> object:
    made = LandingTestbed(repository)
    made.configure()
    yield made
    made.close()


@pytest.fixture
def other(testbed: LandingTestbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Another clone with the same store and the same remote."""
    monkeypatch.setenv("LANDLANE_STORE", str(tmp_path / "store.db"))
    testbed.configure(more='remote = "origin"')
    remote, folder = tmp_path / "remote.git", tmp_path / "other" / "shop"
    git_line(testbed.folder, "clone", "--quiet", "--bare", str(testbed.folder), str(remote))
    git_line(testbed.folder, "remote", "add", "origin", str(remote))
    git_line(testbed.folder, "fetch", "--quiet", "origin")
    git_line(tmp_path, "clone", "--quiet", str(remote), str(folder))
    testbed.agent("ann")
    (folder / ".git" / "landlane").mkdir()
    known = (testbed.folder / ".git" / "landlane" / "repository").read_text()
    (folder / ".git" / "landlane" / "repository").write_text(known)
    made = LandingTestbed(folder)
    yield made
    made.close()


def pins(testbed: LandingTestbed) -> list[str]:
    """What the remote has of ours."""
    return git_line(testbed.folder, "ls-remote", "origin", "refs/landlane/*").split()[1::2]


def begin(testbed: LandingTestbed, agent: str = "ann") -> str:
    """A task with a review step, its work committed and handed in; tells the commit."""
    repo, session = testbed.repo, testbed.agent(agent)
    new = NewTask(title="Dates", kind="code", paths=("src/dates.py",), labels=("review:1",))
    add_task(repo, session, new)
    picked = next_task(repo, session, "", GitEvidence(testbed.repo).start)
    assert isinstance(picked, Picked)
    head = testbed.branch(BRANCH, {"src/dates.py": "1\n"})
    with pytest.raises(NotAllowed) as caught:
        testbed.submit_with_held_claims(BRANCH, agent)
    assert caught.value.code == "REVIEW_OPEN"
    return head


def approve(testbed: LandingTestbed, name: str = "V1") -> Review:
    bob = testbed.agent("bob")
    return give_verdict(testbed.repo, bob, name, verdict="approve")


def test_approved_work_lands_after_its_author_has_left(testbed: LandingTestbed) -> None:
    head = begin(testbed)
    repo = testbed.repo
    sessions.leave(repo, testbed.agent("ann"))
    approve(testbed)

    (answer,) = submit_approved(testbed.prepared_repo)

    assert answer == f"T1 was approved at {head[:12]}, and lands as L1"
    assert testbed.run() is None
    assert (testbed.reload("L1").state, get_task(repo, "T1").state) == ("landed", "done")
    assert list_claims(repo) == []
    assert submit_approved(testbed.prepared_repo) == []


def test_a_worker_does_not_stay_for_the_verdict(testbed: LandingTestbed) -> None:
    repo, ann = testbed.repo, testbed.agent("ann")
    begin(testbed)
    task = get_task(repo, "T1")
    attempt = repo.change(lambda tx: begin_attempt(tx, repo, ann, task, role="", client="command"))
    change_attempt(repo, attempt, "ended", state=AttemptState.ENDED, outcome="review")
    approve(testbed)
    assert get_task(repo, "T1").state == "review"
    sessions.leave(repo, ann)
    assert submit_approved(testbed.prepared_repo)[0].endswith("lands as L1")


@pytest.mark.promise(
    "reviews.bound-to-the-commit",
    "Only a commit that its reviewers approved can land; a later commit needs its own review.",
)
def test_a_commit_behind_the_approved_one_needs_a_review_of_its_own(testbed: LandingTestbed) -> None:
    begin(testbed)
    approve(testbed)
    testbed.branch(BRANCH, {"src/dates.py": "2\n"}, start=BRANCH)
    with pytest.raises(NotAllowed) as caught:
        testbed.submit_with_held_claims(BRANCH, "ann")
    assert caught.value.code == "REVIEW_OPEN"
    assert [one.state for one in list_reviews(testbed.repo, with_all=True)] == [
        "approved",
        "open",
    ]
    approve(testbed, "V2")
    assert complete_task(testbed.repo, testbed.agent("ann"), "T1").task.state == "landing"
    assert testbed.submit_with_held_claims(BRANCH, "ann").state == "queued"


@pytest.mark.slow
def test_commit_verified_in_one_clone_lands_from_another_or_waits(
    testbed: LandingTestbed, other: LandingTestbed
) -> None:
    repo, ann = testbed.repo, testbed.agent("ann")
    add_task(repo, ann, NewTask(title="Dates", kind="code", paths=("src/dates.py",)))
    picked = next_task(repo, ann, "", GitEvidence(testbed.repo).start)
    assert isinstance(picked, Picked)
    repo.change(lambda tx: begin_attempt(tx, repo, ann, picked.task, role="", client="command"))
    head = testbed.branch(BRANCH, {"src/dates.py": "1\n"})
    assert complete_task(repo, ann, "T1").task.state == "landing"
    sessions.leave(repo, ann)
    pin = f"refs/landlane/proved/{head}"
    assert pins(other) == [pin]

    git_line(testbed.folder, "push", "--quiet", "origin", f":{pin}")
    (answer,) = submit_verified(other.prepared_repo)
    assert answer.startswith(f"T1 was proved at {head[:12]}, which is not here")
    assert (get_task(repo, "T1").state, get_task(repo, "T1").attempt) == (
        "landing",
        1,
    )

    git_line(testbed.folder, "push", "--quiet", "origin", f"{head}:{pin}")
    (answer,) = submit_verified(other.prepared_repo)
    assert answer == f"T1 was proved at {head[:12]}, and lands as L1"
    assert other.run() is None
    assert (other.reload("L1").state, get_task(repo, "T1").state) == ("landed", "done")
    assert pins(other) == []
    clean_up_here(testbed.prepared_repo)
    assert git_line(testbed.folder, "for-each-ref", "refs/landlane/proved").strip() == ""


def test_rejected_commit_is_no_longer_shared(testbed: LandingTestbed, other: LandingTestbed) -> None:
    head = begin(testbed)
    clean_up_here(testbed.prepared_repo)
    assert pins(other) == [f"refs/landlane/proved/{head}"], "it is under review"
    bob = other.agent("bob")
    give_verdict(other.repo, bob, "V1", verdict="reject", summary="not yet")
    clean_up_here(testbed.prepared_repo)
    assert pins(other) == []


@pytest.mark.parametrize("is_tampered", [False, True])
def test_role_that_may_not_commit_lands_only_changes_that_were_handed_back(
    testbed: LandingTestbed, is_tampered: bool
) -> None:
    """Its supervisor was killed before it submitted; what somebody put on top was judged by no role."""
    repo, ann = testbed.repo, testbed.agent("ann")
    add_task(repo, ann, NewTask(title="Dates", kind="code", paths=("src/**",), role="propose"))
    picked = take_task(repo, ann, "T1", GitEvidence(testbed.repo).start())
    assert picked is not None
    attempt = repo.change(
        lambda tx: begin_attempt(tx, repo, ann, picked.task, role="propose", client="command")
    )
    head = testbed.branch(BRANCH, {"src/dates.py": "1\n"})
    change_attempt(repo, attempt, "handed", head=head)
    assert complete_task(repo, ann, "T1").task.state == "landing"
    sessions.leave(repo, ann)
    if is_tampered:
        testbed.branch(BRANCH, {"src/more.py": "2\n"}, start=BRANCH)
        complete_task(repo, testbed.agent("carl"), "T1")

    (answer,) = submit_verified(testbed.prepared_repo)

    assert ("lands as L1" in answer, "WRONG_ROLE" in answer) == (not is_tampered, is_tampered), answer


def test_commit_that_cannot_be_deleted_on_the_remote_stays_marked_as_shared(
    testbed: LandingTestbed, other: LandingTestbed
) -> None:
    target = find_target(testbed.prepared_repo.home, testbed.prepared_repo.settings)
    head = git_line(testbed.folder, "rev-parse", "main").strip()
    assert share_verified(testbed.prepared_repo.home, target, head)
    place = git_line(testbed.folder, "remote", "get-url", "origin").strip()
    git_line(testbed.folder, "remote", "set-url", "origin", f"{place}.away")

    drop_verified(testbed.prepared_repo.home, target, head)
    assert list_verified(testbed.prepared_repo.home) == [head]

    git_line(testbed.folder, "remote", "set-url", "origin", place)
    drop_verified(testbed.prepared_repo.home, target, head)
    assert (list_verified(testbed.prepared_repo.home), pins(testbed)) == ([], [])
