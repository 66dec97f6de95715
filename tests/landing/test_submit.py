"""Submitting: what is refused and why, what the entry holds from then on, and what keeps the work alive."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from landlane.app.open import open_repository
from landlane.app.repair_config import prepare_git
from landlane.claims import take as claims
from landlane.claims.model import Refused
from landlane.errors import Held, LandlaneError, NotAllowed
from landlane.journal.read import read_entries
from landlane.landing import submit
from landlane.landing.records import list_landings
from landlane.landing.submit import submit_branch
from landlane.sessions.join import leave
from landlane.tasks.add import Added, add_task
from landlane.tasks.model import NewTask
from landlane.tasks.pick import next_task
from landlane.tasks.records import get_task
from landlane.testing.fake_clock import FakeClock
from landlane.testing.repositories import git
from tests.support.landing import LandingTestbed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


def refused(testbed: LandingTestbed, branch: str, agent: str = "ann") -> LandlaneError:
    with pytest.raises(LandlaneError) as told:
        testbed.submit_with_held_claims(branch, agent)
    assert git(testbed.folder, "for-each-ref", "refs/landlane/landing") == "", "no pin is left over"
    return told.value


def test_nothing_is_submitted_while_checks_are_not_declared(testbed: LandingTestbed) -> None:
    testbed.branch("one", {"a.txt": "x"})

    error = refused(testbed, "one")

    assert (error.code, error.exit_code) == ("NO_CHECKS", 2)
    assert error.hint.startswith("landlane config set landing.checks ")


def test_checks_that_are_not_committed_on_the_target_do_not_count(testbed: LandingTestbed) -> None:
    testbed.commit({"landlane.toml": "[claims]\nttl = '1h'\n"})
    (testbed.folder / "landlane.toml").write_text("[landing]\nchecks = []\n")
    testbed.branch("one", {"a.txt": "x"})

    error = refused(testbed, "one")

    assert error.code == "NO_CHECKS"
    assert "landlane.toml on main" in error.message


def test_unclaimed_path_is_refused(testbed: LandingTestbed) -> None:
    testbed.configure()
    testbed.branch("one", {f"f{number}": "x" for number in range(7)})

    error = refused(testbed, "one")

    assert (error.code, error.exit_code) == ("OUTSIDE_CLAIMS", 6)
    assert error.message == "the branch changes paths that ann has not claimed: f0, f1, f2, f3, f4 and 2 more"
    assert error.hint == "landlane claim f0 f1 f2 f3 f4 f5 f6"
    assert error.facts["paths"] == [f"f{number}" for number in range(7)]


def test_path_claimed_by_another_session_is_refused_with_its_holder(testbed: LandingTestbed) -> None:
    testbed.configure()
    testbed.branch("one", {"a.txt": "x", "b.txt": "x"})
    testbed.claim("ann", "a.txt")
    testbed.claim("bob", "b.txt")

    error = refused(testbed, "one")

    assert (error.code, error.exit_code, error.facts["holder"]) == ("CLAIM_HELD", 3, "bob")
    assert error.message == "the branch changes b.txt, which bob holds"


def test_both_ends_of_a_rename_must_be_held(testbed: LandingTestbed) -> None:
    testbed.configure(files={"old.txt": "text\n" * 20})
    testbed.branch("one", {"old.txt": None, "new.txt": "text\n" * 20})
    testbed.claim("ann", "new.txt")

    assert refused(testbed, "one").facts["paths"] == ["old.txt"]


def test_a_share_is_enough_for_a_hot_class_only(testbed: LandingTestbed) -> None:
    testbed.configure(more="[landing.merge.files]\n'LOG' = 'union'\n", files={"LOG": "", "a.txt": ""})
    testbed.branch("hot", {"LOG": "x\n"})
    testbed.branch("cold", {"a.txt": "x\n"})
    testbed.claim("ann", "LOG", "a.txt", is_shared=True)

    assert testbed.submit_with_held_claims("hot").state == "queued"
    with pytest.raises(NotAllowed, match="ann holds only a share of"):
        testbed.submit_with_held_claims("cold")


def test_free_paths_of_the_target_need_no_claim(testbed: LandingTestbed) -> None:
    testbed.configure(more="[claims]\nfree = ['docs/**']\n")
    testbed.branch("one", {"docs/a.md": "x"})
    testbed.branch("two", {"docs/a.md": "x", "docs/b.md": "x"})

    assert testbed.submit_with_held_claims("one").state == "queued"
    assert testbed.submit_with_held_claims("two", "bob").state == "queued"
    assert testbed.holders() == {}
    assert testbed.run() is None
    assert testbed.states() == {"one": "landed", "two": "landed"}


@pytest.mark.parametrize("text", ["[claims]\nfree = ['**']\n", "[landing]\nchecks = []\ngate = []\n"])
def test_settings_in_the_checkout_of_an_author_open_no_door(testbed: LandingTestbed, text: str) -> None:
    testbed.configure(more="gate = ['secret/**']\n")
    testbed.branch("one", {"secret/a": "x", "b": "x"})
    testbed.claim("ann", "secret/a", "b")
    (testbed.folder / "landlane.toml").write_text(text)
    testbed._repo = None

    assert testbed.submit_with_held_claims("one").state == "held"


NONSENSE = {
    "no/such": ("UNKNOWN_BRANCH", 1),
    "--help": ("UNKNOWN_BRANCH", 1),
    "a..b": ("UNKNOWN_BRANCH", 1),
    "main": ("TARGET_ITSELF", 2),
    "refs/heads/main": ("TARGET_ITSELF", 2),
    "behind": ("EMPTY_BRANCH", 1),
    "nothing": ("EMPTY_BRANCH", 1),
    "alien": ("NO_COMMON_ANCESTOR", 1),
}


def test_invalid_submissions_are_refused(testbed: LandingTestbed) -> None:
    git(testbed.folder, "branch", "behind")
    testbed.configure()
    testbed.branch("nothing", {})
    alien = git(testbed.folder, "commit-tree", "-m", "alien", "HEAD^{tree}").strip()
    git(testbed.folder, "branch", "alien", alien)

    for branch, expected in NONSENSE.items():
        error = refused(testbed, branch)
        assert (error.code, error.exit_code) == expected, branch
        assert error.hint


def test_submitting_twice_is_one_entry(testbed: LandingTestbed) -> None:
    testbed.configure()
    testbed.branch("one", {"a.txt": "x"})

    assert testbed.submit("one").id == testbed.submit("one").id == "L1"

    testbed.branch("one", {"a.txt": "y"})
    with pytest.raises(Held, match="L1 of ann has one in the queue already"):
        testbed.submit("one")


def test_a_branch_that_lands_while_it_is_submitted_again_has_landed(
    testbed: LandingTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    testbed.configure("[]")
    testbed.branch("one", {"b.txt": "b\n"})
    entry = testbed.submit("one")

    def land_meanwhile(*_: object, **__: object) -> None:
        assert testbed.run() is None

    monkeypatch.setattr(submit, "keep_submitted", land_meanwhile)

    again = testbed.submit_with_held_claims("one")

    assert (again.id, again.state) == (entry.id, "landed")
    assert [landing.id for landing in list_landings(testbed.repo, ())] == [entry.id]


def test_branch_may_be_deleted_before_the_queue_runs(testbed: LandingTestbed) -> None:
    """T37: the worker is done and everything is torn down; the queue still has the commit."""
    testbed.configure()
    head = testbed.branch("one", {"a.txt": "x"})
    entry = testbed.submit("one")
    git(testbed.folder, "branch", "--quiet", "-D", "one")
    git(testbed.folder, "worktree", "remove", "--force", "../branches")
    git(testbed.folder, "reflog", "expire", "--expire=now", "--all")
    git(testbed.folder, "gc", "--quiet", "--prune=now")

    assert testbed.run() is None

    assert testbed.reload(entry).state == "landed"
    assert git(testbed.folder, "rev-parse", "main^2").strip() == head


def test_a_branch_that_went_and_bounced_is_there_again(testbed: LandingTestbed) -> None:
    testbed.configure('["test ! -e bad"]')
    head = testbed.branch("one", {"bad": "x"})
    testbed.submit("one")
    git(testbed.folder, "branch", "--quiet", "-D", "one")

    assert testbed.run() is None

    assert testbed.states() == {"one": "bounced"}
    assert git(testbed.folder, "rev-parse", "one").strip() == head


def test_submitted_commit_lands_even_if_the_branch_has_moved(testbed: LandingTestbed) -> None:
    testbed.configure()
    testbed.branch("one", {"a.txt": "submitted"})
    testbed.submit("one")
    testbed.branch("one", {"a.txt": "later"})

    assert testbed.run() is None

    assert testbed.read_file("a.txt") == "submitted"


@pytest.mark.promise(
    "landing.holds-its-claims",
    "A queue entry holds its claims until it has ended, whatever happens to its author.",
)
def test_the_entry_holds_the_claims_when_the_author_leaves(testbed: LandingTestbed) -> None:
    testbed.configure()
    testbed.branch("one", {"a.txt": "x"})
    entry = testbed.submit("one")
    leave(testbed.repo, testbed.agent("ann"))
    assert testbed.holders() == {"a.txt": "L1"}

    rival = testbed.claim("bob", "a.txt")

    assert isinstance(rival, Refused)
    assert rival.refused[0].holder == "L1"
    assert "L1: one of ann" in rival.refused[0].note
    assert rival.refused[0].hint == "wait for it: landlane claim a.txt --wait"
    assert testbed.run() is None
    assert testbed.reload(entry).state == "landed"
    assert not isinstance(testbed.claim("bob", "a.txt"), Refused)


def test_the_entry_holds_the_claims_when_the_lease_of_the_author_runs_out(repository: Path) -> None:
    clock = FakeClock()
    testbed = LandingTestbed(repository, clock)
    testbed.configure()
    testbed.branch("one", {"a.txt": "x"})
    entry = testbed.submit("one")
    clock.advance(7 * 86_400_000)

    assert isinstance(testbed.claim("bob", "a.txt"), Refused)
    assert testbed.run() is None

    assert testbed.reload(entry).state == "landed"
    assert git(repository, "rev-list", "--count", "--merges", "main").strip() == "1", "exactly once"
    testbed.close()


def test_a_living_author_gets_the_claims_back_with_a_bounce(testbed: LandingTestbed) -> None:
    testbed.configure('["test ! -e bad"]')
    testbed.branch("one", {"bad": "x"})
    testbed.submit("one")
    assert testbed.run() is None

    assert testbed.holders() == {"bad": "ann"}
    assert isinstance(testbed.claim("bob", "bad"), Refused)


def test_rejection_releases_the_claims_of_an_author_who_left(testbed: LandingTestbed) -> None:
    testbed.configure('["test ! -e bad"]')
    testbed.branch("one", {"bad": "x"})
    testbed.submit("one")
    leave(testbed.repo, testbed.agent("ann"))
    assert testbed.run() is None

    assert testbed.states() == {"one": "bounced"}
    assert testbed.holders() == {}


def test_claims_end_with_the_commit_that_landed(testbed: LandingTestbed) -> None:
    testbed.configure()
    testbed.branch("one", {"src/a": "x"})
    testbed.branch("two", {"src/b": "x"})
    testbed.claim("ann", "lib")
    repo = testbed.repo
    wide = claims.make_request(repo, (repo.git.pattern_of("src/**", "glob"),))
    claims.take(repo, testbed.agent("ann"), wide)
    first, second = testbed.submit_with_held_claims("one"), testbed.submit_with_held_claims("two")
    ended = [entry for entry in read_entries(repo) if entry.kind == "claim.released"]
    assert not ended, "the author goes on with what it holds"

    assert testbed.run() is None

    assert testbed.holders() == {"lib": "ann"}, "what has nothing to do with it stays"
    commits = {entry.facts().get("commit") for entry in read_entries(repo) if entry.kind == "claim.released"}
    assert commits == {testbed.reload(first).commit, testbed.reload(second).commit}


def test_a_task_must_be_proved_on_exactly_this_head(testbed: LandingTestbed) -> None:
    testbed.configure()
    repo = testbed.repo
    added = add_task(repo, None, NewTask(title="Write a", paths=("a.txt",), check="test -e a.txt"))
    assert isinstance(added, Added)
    taken = next_task(repo, testbed.agent("ann"))
    branch = added.task.id
    name = f"landlane/{branch}-1/work"

    testbed.branch(name, {"b.txt": "x"})
    with pytest.raises(NotAllowed) as told:
        testbed.submit_with_held_claims(name)
    assert told.value.code == "EVIDENCE_MISSING"
    assert "b.txt changed, but it is not claimed" in told.value.message

    testbed.branch(name, {"a.txt": "x"})
    entry = testbed.submit_with_held_claims(name)
    assert (entry.task, entry.attempt) == (branch, 1)
    assert testbed.holders() == {"a.txt": "L1"}, "the claims of the task went over to the entry"
    assert testbed.run() is None
    assert get_task(repo, branch).state == "done"
    assert taken is not None


def test_a_bounced_task_is_its_authors_again_with_claims_and_reason(testbed: LandingTestbed) -> None:
    testbed.configure('["seq 5000; test ! -e a.txt"]')
    repo = testbed.repo
    add_task(repo, None, NewTask(title="Write a", paths=("a.txt",)))
    next_task(repo, testbed.agent("ann"))
    testbed.branch("landlane/T1-1/work", {"a.txt": "x"})
    testbed.submit_with_held_claims("landlane/T1-1/work")

    assert testbed.run() is None

    task = get_task(repo, "T1")
    assert (task.state, task.owner, task.failures) == ("reported", "ann", 1)
    assert task.why.startswith("L1 bounced: seq 5000; test ! -e a.txt fails (exit 1)")
    assert task.why.endswith("5000\n"), "the end of what was said"
    assert testbed.holders() == {"a.txt": "ann"}
    assert testbed.reload("L1").bounce_task == "T1"


def test_rejected_task_of_an_author_who_left_is_available_to_others(testbed: LandingTestbed) -> None:
    testbed.configure('["test ! -e a.txt"]')
    repo = testbed.repo
    add_task(repo, None, NewTask(title="Write a", paths=("a.txt",)))
    next_task(repo, testbed.agent("ann"))
    testbed.branch("landlane/T1-1/work", {"a.txt": "x"})
    testbed.submit_with_held_claims("landlane/T1-1/work")
    leave(repo, testbed.agent("ann"))

    assert testbed.run() is None

    assert get_task(repo, "T1").state == "ready"
    assert testbed.holders() == {}


def test_uncommitted_changes_are_not_submitted_and_reported(testbed: LandingTestbed) -> None:
    testbed.configure()
    testbed.branch("one", {"a.txt": "x"})
    there = testbed.folder.parent / "branches"
    git(there, "checkout", "--quiet", "one")
    (there / "draft").write_text("x")
    testbed.claim("ann", "a.txt")
    with closing(open_repository(str(there))) as repo:
        prepared = prepare_git(repo, testbed.notes.append)
        submit_branch(prepared, testbed.agent("ann"), "", "")

    assert testbed.notes == ["! uncommitted changes do not land: draft"]


def test_a_branch_of_hundreds_of_files_is_held_by_the_claim_of_its_author(testbed: LandingTestbed) -> None:
    testbed.configure("[]", "[landing.merge.files]\n'LOG' = 'union'\n[claims]\nfree = ['docs/**']\n")
    testbed.branch("one", {f"src/{number % 40}/f{number}": "x" for number in range(500)})
    repo = testbed.repo
    wide = claims.make_request(repo, (repo.git.pattern_of("src/**", "glob"),))
    claims.take(repo, testbed.agent("ann"), wide)

    testbed.submit_with_held_claims("one")
    leave(repo, testbed.agent("ann"))

    assert testbed.holders() == {"src/**": "L1"}
    assert testbed.run() is None
    assert testbed.states() == {"one": "landed"}
    assert testbed.holders() == {}
