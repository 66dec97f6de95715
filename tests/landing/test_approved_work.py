"""What was approved after its author had gone lands as it was approved, and no other commit does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.claims import read as held
from landlane.errors import NotAllowed
from landlane.git import temporary_refs
from landlane.git.target import find_target
from landlane.landing.after_landing import clean_up_here
from landlane.reviews import give_verdict as reviews
from landlane.reviews.model import Review
from landlane.sessions import join as sessions
from landlane.tasks.add import add_task
from landlane.tasks.attempts import begin_attempt, change_attempt
from landlane.tasks.evidence import complete_task
from landlane.tasks.git_evidence import GitEvidence
from landlane.tasks.model import ENDED, NewTask
from landlane.tasks.pick import Picked, next_task, take_task
from landlane.tasks.records import get_task
from landlane.workers.recover import submit_approved, submit_verified
from tests.support.git import git_line
from tests.support.landing import Yard

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration

BRANCH = "landlane/T1-1/work"


@pytest.fixture
def yard(repository: Path) -> object:
    made = Yard(repository)
    made.configure()
    yield made
    made.close()


@pytest.fixture
def other(yard: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Another clone with the same store and the same remote."""
    monkeypatch.setenv("LANDLANE_STORE", str(tmp_path / "store.db"))
    yard.configure(more='remote = "origin"')
    remote, folder = tmp_path / "remote.git", tmp_path / "other" / "shop"
    git_line(yard.folder, "clone", "--quiet", "--bare", str(yard.folder), str(remote))
    git_line(yard.folder, "remote", "add", "origin", str(remote))
    git_line(yard.folder, "fetch", "--quiet", "origin")
    git_line(tmp_path, "clone", "--quiet", str(remote), str(folder))
    yard.agent("ann")
    (folder / ".git" / "landlane").mkdir()
    known = (yard.folder / ".git" / "landlane" / "repository").read_text()
    (folder / ".git" / "landlane" / "repository").write_text(known)
    made = Yard(folder)
    yield made
    made.close()


def pins(yard: Yard) -> list[str]:
    """What the remote has of ours."""
    return git_line(yard.folder, "ls-remote", "origin", "refs/landlane/*").split()[1::2]


def begin(yard: Yard, agent: str = "ann") -> str:
    """A task with a review step, its work committed and handed in; tells the commit."""
    repo, session = yard.repo, yard.agent(agent)
    new = NewTask(title="Dates", kind="code", paths=("src/dates.py",), labels=("review:1",))
    add_task(repo, session, new)
    picked = next_task(repo, session, "", GitEvidence(yard.repo).start)
    assert isinstance(picked, Picked)
    head = yard.branch(BRANCH, {"src/dates.py": "1\n"})
    with pytest.raises(NotAllowed) as caught:
        yard.enter(BRANCH, agent)
    assert caught.value.code == "REVIEW_OPEN"
    return head


def approve(yard: Yard, name: str = "V1") -> Review:
    bob = yard.agent("bob")
    return reviews.give_verdict(yard.repo, bob, name, verdict="approve")


def test_who_has_gone_still_gets_its_approved_work_landed(yard: Yard) -> None:
    head = begin(yard)
    repo = yard.repo
    sessions.leave(repo, yard.agent("ann"))
    approve(yard)

    (told,) = submit_approved(yard.site)

    assert told == f"T1 was approved at {head[:12]}, and lands as L1"
    assert yard.run() is None
    assert (yard.look("L1").state, get_task(repo, "T1").state) == ("landed", "done")
    assert held.list_claims(repo) == []
    assert submit_approved(yard.site) == []


def test_a_worker_does_not_stay_for_the_verdict(yard: Yard) -> None:
    repo, ann = yard.repo, yard.agent("ann")
    begin(yard)
    task = get_task(repo, "T1")
    attempt = begin_attempt(repo, ann, task, role="", client="command")
    change_attempt(repo, attempt, "ended", state=ENDED, outcome="review")
    approve(yard)
    assert get_task(repo, "T1").state == "review"
    sessions.leave(repo, ann)
    assert submit_approved(yard.site)[0].endswith("lands as L1")


@pytest.mark.promise(
    "reviews.bound-to-the-commit",
    "Only a commit that its reviewers approved can land; a later commit needs its own review.",
)
def test_a_commit_behind_the_approved_one_needs_a_review_of_its_own(yard: Yard) -> None:
    begin(yard)
    approve(yard)
    yard.branch(BRANCH, {"src/dates.py": "2\n"}, start=BRANCH)
    with pytest.raises(NotAllowed) as caught:
        yard.enter(BRANCH, "ann")
    assert caught.value.code == "REVIEW_OPEN"
    assert [one.state for one in reviews.list_reviews(yard.repo, with_all=True)] == [
        "approved",
        "open",
    ]
    approve(yard, "V2")
    assert complete_task(yard.repo, yard.agent("ann"), "T1").task.state == "landing"
    assert yard.enter(BRANCH, "ann").state == "queued"


@pytest.mark.slow
def test_what_was_proved_in_one_clone_is_landed_from_another_or_left_alone(yard: Yard, other: Yard) -> None:
    repo, ann = yard.repo, yard.agent("ann")
    add_task(repo, ann, NewTask(title="Dates", kind="code", paths=("src/dates.py",)))
    picked = next_task(repo, ann, "", GitEvidence(yard.repo).start)
    assert isinstance(picked, Picked)
    begin_attempt(repo, ann, picked.task, role="", client="command")
    head = yard.branch(BRANCH, {"src/dates.py": "1\n"})
    assert complete_task(repo, ann, "T1").task.state == "landing"
    sessions.leave(repo, ann)
    pin = f"refs/landlane/proved/{head}"
    assert pins(other) == [pin]

    git_line(yard.folder, "push", "--quiet", "origin", f":{pin}")
    (told,) = submit_verified(other.site)
    assert told.startswith(f"T1 was proved at {head[:12]}, which is not here")
    assert (get_task(repo, "T1").state, get_task(repo, "T1").attempt) == (
        "landing",
        1,
    )

    git_line(yard.folder, "push", "--quiet", "origin", f"{head}:{pin}")
    (told,) = submit_verified(other.site)
    assert told == f"T1 was proved at {head[:12]}, and lands as L1"
    assert other.run() is None
    assert (other.look("L1").state, get_task(repo, "T1").state) == ("landed", "done")
    assert pins(other) == []
    clean_up_here(yard.site)
    assert git_line(yard.folder, "for-each-ref", "refs/landlane/proved").strip() == ""


def test_what_was_rejected_is_not_shared_any_more(yard: Yard, other: Yard) -> None:
    head = begin(yard)
    clean_up_here(yard.site)
    assert pins(other) == [f"refs/landlane/proved/{head}"], "it is under review"
    bob = other.agent("bob")
    reviews.give_verdict(other.repo, bob, "V1", verdict="reject", summary="not yet")
    clean_up_here(yard.site)
    assert pins(other) == []


@pytest.mark.parametrize("is_tampered", [False, True])
def test_of_a_role_that_may_not_commit_only_what_was_handed_back_lands(yard: Yard, is_tampered: bool) -> None:
    """Its keeper was killed before it submitted; what somebody put on top was judged by no role."""
    repo, ann = yard.repo, yard.agent("ann")
    add_task(repo, ann, NewTask(title="Dates", kind="code", paths=("src/**",), role="explore"))
    picked = take_task(repo, ann, "T1", GitEvidence(yard.repo).start())
    assert picked is not None
    attempt = begin_attempt(repo, ann, picked.task, role="explore", client="command")
    head = yard.branch(BRANCH, {"src/dates.py": "1\n"})
    change_attempt(repo, attempt, "handed", head=head)
    assert complete_task(repo, ann, "T1").task.state == "landing"
    sessions.leave(repo, ann)
    if is_tampered:
        yard.branch(BRANCH, {"src/more.py": "2\n"}, start=BRANCH)
        complete_task(repo, yard.agent("carl"), "T1")

    (told,) = submit_verified(yard.site)

    assert ("lands as L1" in told, "WRONG_ROLE" in told) == (not is_tampered, is_tampered), told


def test_what_cannot_be_taken_from_the_remote_is_remembered_as_shared(yard: Yard, other: Yard) -> None:
    target = find_target(yard.site.home, yard.site.settings)
    head = git_line(yard.folder, "rev-parse", "main").strip()
    assert temporary_refs.share_verified(yard.site.home, target, head)
    place = git_line(yard.folder, "remote", "get-url", "origin").strip()
    git_line(yard.folder, "remote", "set-url", "origin", f"{place}.away")

    temporary_refs.drop_verified(yard.site.home, target, head)
    assert temporary_refs.list_verified(yard.site.home) == [head]

    git_line(yard.folder, "remote", "set-url", "origin", place)
    temporary_refs.drop_verified(yard.site.home, target, head)
    assert (temporary_refs.list_verified(yard.site.home), pins(yard)) == ([], [])
