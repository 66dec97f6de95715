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
from landlane.landing.submit import submit_branch
from landlane.sessions.join import leave
from landlane.tasks.add import Added, add_task
from landlane.tasks.model import NewTask
from landlane.tasks.pick import next_task
from landlane.tasks.records import get_task
from landlane.testing.fake_clock import FakeClock
from landlane.testing.repositories import git
from tests.support.landing import Yard

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


def refused(yard: Yard, branch: str, agent: str = "ann") -> LandlaneError:
    with pytest.raises(LandlaneError) as told:
        yard.enter(branch, agent)
    assert git(yard.folder, "for-each-ref", "refs/landlane/landing") == "", "no pin is left over"
    return told.value


def test_without_a_word_about_checks_nothing_is_submitted(yard: Yard) -> None:
    yard.branch("one", {"a.txt": "x"})

    error = refused(yard, "one")

    assert (error.code, error.exit_code) == ("NO_CHECKS", 2)
    assert "checks = [] for none" in error.hint


def test_checks_that_are_not_committed_on_the_target_do_not_count(yard: Yard) -> None:
    yard.commit({"landlane.toml": "[claims]\nttl = '1h'\n"})
    (yard.folder / "landlane.toml").write_text("[landing]\nchecks = []\n")
    yard.branch("one", {"a.txt": "x"})

    error = refused(yard, "one")

    assert error.code == "NO_CHECKS"
    assert "commit it on main" in error.hint


def test_what_nobody_holds_is_refused(yard: Yard) -> None:
    yard.configure()
    yard.branch("one", {f"f{number}": "x" for number in range(7)})

    error = refused(yard, "one")

    assert (error.code, error.exit_code) == ("OUTSIDE_CLAIMS", 6)
    assert error.message == "the branch changes what ann does not hold: f0, f1, f2, f3, f4 and 2 more"
    assert error.facts["paths"] == [f"f{number}" for number in range(7)]


def test_what_somebody_else_holds_is_refused_and_names_them(yard: Yard) -> None:
    yard.configure()
    yard.branch("one", {"a.txt": "x", "b.txt": "x"})
    yard.claim("ann", "a.txt")
    yard.claim("bob", "b.txt")

    error = refused(yard, "one")

    assert (error.code, error.exit_code, error.facts["holder"]) == ("CLAIM_HELD", 3, "bob")
    assert error.message == "the branch changes b.txt, which bob holds"


def test_both_ends_of_a_rename_must_be_held(yard: Yard) -> None:
    yard.configure(files={"old.txt": "text\n" * 20})
    yard.branch("one", {"old.txt": None, "new.txt": "text\n" * 20})
    yard.claim("ann", "new.txt")

    assert refused(yard, "one").facts["paths"] == ["old.txt"]


def test_a_share_is_enough_for_a_hot_class_only(yard: Yard) -> None:
    yard.configure(more="[landing.merge.files]\n'LOG' = 'union'\n", files={"LOG": "", "a.txt": ""})
    yard.branch("hot", {"LOG": "x\n"})
    yard.branch("cold", {"a.txt": "x\n"})
    yard.claim("ann", "LOG", "a.txt", is_shared=True)

    assert yard.enter("hot").state == "queued"
    with pytest.raises(NotAllowed, match="ann holds only a share of"):
        yard.enter("cold")


def test_what_needs_no_claim_on_the_target_needs_none(yard: Yard) -> None:
    yard.configure(more="[claims]\nfree = ['docs/**']\n")
    yard.branch("one", {"docs/a.md": "x"})
    yard.branch("two", {"docs/a.md": "x", "docs/b.md": "x"})

    assert yard.enter("one").state == "queued"
    assert yard.enter("two", "bob").state == "queued"
    assert yard.holders() == {}
    assert yard.run() is None
    assert yard.states() == {"one": "landed", "two": "landed"}


@pytest.mark.parametrize("text", ["[claims]\nfree = ['**']\n", "[landing]\nchecks = []\ngate = []\n"])
def test_settings_in_the_checkout_of_an_author_open_no_door(yard: Yard, text: str) -> None:
    yard.configure(more="gate = ['secret/**']\n")
    yard.branch("one", {"secret/a": "x", "b": "x"})
    yard.claim("ann", "secret/a", "b")
    (yard.folder / "landlane.toml").write_text(text)
    yard._repo = None

    assert yard.enter("one").state == "held"


NONSENSE = {
    "no/such": ("UNKNOWN_BRANCH", 1),
    "--help": ("UNKNOWN_BRANCH", 1),
    "a..b": ("UNKNOWN_BRANCH", 1),
    "main": ("TARGET_ITSELF", 6),
    "refs/heads/main": ("TARGET_ITSELF", 6),
    "behind": ("EMPTY_BRANCH", 6),
    "nothing": ("EMPTY_BRANCH", 6),
    "alien": ("NO_COMMON_ANCESTOR", 1),
}


def test_what_makes_no_sense_is_refused(yard: Yard) -> None:
    git(yard.folder, "branch", "behind")
    yard.configure()
    yard.branch("nothing", {})
    alien = git(yard.folder, "commit-tree", "-m", "alien", "HEAD^{tree}").strip()
    git(yard.folder, "branch", "alien", alien)

    for branch, expected in NONSENSE.items():
        error = refused(yard, branch)
        assert (error.code, error.exit_code) == expected, branch
        assert error.hint


def test_submitting_twice_is_one_entry(yard: Yard) -> None:
    yard.configure()
    yard.branch("one", {"a.txt": "x"})

    assert yard.submit("one").id == yard.submit("one").id == "L1"

    yard.branch("one", {"a.txt": "y"})
    with pytest.raises(Held, match="L1 of ann has one in the queue already"):
        yard.submit("one")


def test_the_branch_may_go_before_the_queue_comes(yard: Yard) -> None:
    """T37: the worker is done and everything is torn down; the queue still has the commit."""
    yard.configure()
    head = yard.branch("one", {"a.txt": "x"})
    entry = yard.submit("one")
    git(yard.folder, "branch", "--quiet", "-D", "one")
    git(yard.folder, "worktree", "remove", "--force", "../branches")
    git(yard.folder, "reflog", "expire", "--expire=now", "--all")
    git(yard.folder, "gc", "--quiet", "--prune=now")

    assert yard.run() is None

    assert yard.look(entry).state == "landed"
    assert git(yard.folder, "rev-parse", "main^2").strip() == head


def test_a_branch_that_went_and_bounced_is_there_again(yard: Yard) -> None:
    yard.configure('["test ! -e bad"]')
    head = yard.branch("one", {"bad": "x"})
    yard.submit("one")
    git(yard.folder, "branch", "--quiet", "-D", "one")

    assert yard.run() is None

    assert yard.states() == {"one": "bounced"}
    assert git(yard.folder, "rev-parse", "one").strip() == head


def test_what_was_submitted_lands_not_what_the_branch_became(yard: Yard) -> None:
    yard.configure()
    yard.branch("one", {"a.txt": "submitted"})
    yard.submit("one")
    yard.branch("one", {"a.txt": "later"})

    assert yard.run() is None

    assert yard.at("a.txt") == "submitted"


@pytest.mark.promise(
    "landing.holds-its-claims",
    "A queue entry holds its claims until it has ended, whatever happens to its author.",
)
def test_the_entry_holds_the_claims_when_the_author_leaves(yard: Yard) -> None:
    yard.configure()
    yard.branch("one", {"a.txt": "x"})
    entry = yard.submit("one")
    leave(yard.repo, yard.agent("ann"))
    assert yard.holders() == {"a.txt": "landing-L1"}

    rival = yard.claim("bob", "a.txt")

    assert isinstance(rival, Refused)
    assert rival.refused[0].holder == "landing-L1"
    assert "L1: one of ann" in rival.refused[0].note
    assert "landlane queue show L1" in rival.refused[0].hint
    assert yard.run() is None
    assert yard.look(entry).state == "landed"
    assert not isinstance(yard.claim("bob", "a.txt"), Refused)


def test_the_entry_holds_the_claims_when_the_lease_of_the_author_runs_out(repository: Path) -> None:
    clock = FakeClock()
    yard = Yard(repository, clock)
    yard.configure()
    yard.branch("one", {"a.txt": "x"})
    entry = yard.submit("one")
    clock.advance(7 * 86_400_000)

    assert isinstance(yard.claim("bob", "a.txt"), Refused)
    assert yard.run() is None

    assert yard.look(entry).state == "landed"
    assert git(repository, "rev-list", "--count", "--merges", "main").strip() == "1", "exactly once"
    yard.close()


def test_a_living_author_gets_the_claims_back_with_a_bounce(yard: Yard) -> None:
    yard.configure('["test ! -e bad"]')
    yard.branch("one", {"bad": "x"})
    yard.submit("one")
    assert yard.run() is None

    assert yard.holders() == {"bad": "ann"}
    assert isinstance(yard.claim("bob", "bad"), Refused)


def test_a_bounce_frees_the_claims_of_an_author_who_left(yard: Yard) -> None:
    yard.configure('["test ! -e bad"]')
    yard.branch("one", {"bad": "x"})
    yard.submit("one")
    leave(yard.repo, yard.agent("ann"))
    assert yard.run() is None

    assert yard.states() == {"one": "bounced"}
    assert yard.holders() == {}


def test_claims_end_with_the_commit_that_landed(yard: Yard) -> None:
    yard.configure()
    yard.branch("one", {"src/a": "x"})
    yard.branch("two", {"src/b": "x"})
    yard.claim("ann", "lib")
    repo = yard.repo
    wide = claims.make_request(repo, (repo.git.pattern_of("src/**", "glob"),))
    claims.take(repo, yard.agent("ann"), wide)
    first, second = yard.enter("one"), yard.enter("two")
    ended = [entry for entry in read_entries(repo) if entry.kind == "claim.released"]
    assert not ended, "the author goes on with what it holds"

    assert yard.run() is None

    assert yard.holders() == {"lib": "ann"}, "what has nothing to do with it stays"
    commits = {entry.facts().get("commit") for entry in read_entries(repo) if entry.kind == "claim.released"}
    assert commits == {yard.look(first).commit, yard.look(second).commit}


def test_a_task_must_be_proved_on_exactly_this_head(yard: Yard) -> None:
    yard.configure()
    repo = yard.repo
    added = add_task(repo, None, NewTask(title="Write a", paths=("a.txt",), check="test -e a.txt"))
    assert isinstance(added, Added)
    taken = next_task(repo, yard.agent("ann"))
    branch = added.task.id
    name = f"landlane/{branch}-1/work"

    yard.branch(name, {"b.txt": "x"})
    with pytest.raises(NotAllowed) as told:
        yard.enter(name)
    assert told.value.code == "EVIDENCE_MISSING"
    assert "changed outside its claims: b.txt" in told.value.message

    yard.branch(name, {"a.txt": "x"})
    entry = yard.enter(name)
    assert (entry.task, entry.attempt) == (branch, 1)
    assert yard.holders() == {"a.txt": "landing-L1"}, "the claims of the task went over to the entry"
    assert yard.run() is None
    assert get_task(repo, branch).state == "done"
    assert taken is not None


def test_a_bounced_task_is_its_authors_again_with_claims_and_reason(yard: Yard) -> None:
    yard.configure('["seq 5000; test ! -e a.txt"]')
    repo = yard.repo
    add_task(repo, None, NewTask(title="Write a", paths=("a.txt",)))
    next_task(repo, yard.agent("ann"))
    yard.branch("landlane/T1-1/work", {"a.txt": "x"})
    yard.enter("landlane/T1-1/work")

    assert yard.run() is None

    task = get_task(repo, "T1")
    assert (task.state, task.owner, task.failures) == ("reported", "ann", 1)
    assert task.why.startswith("L1 bounced: `seq 5000; test ! -e a.txt` ended with 1")
    assert task.why.endswith("5000\n"), "the end of what was said"
    assert yard.holders() == {"a.txt": "ann"}
    assert yard.look("L1").bounce_task == "T1"


def test_a_bounced_task_of_somebody_who_left_is_anybodys(yard: Yard) -> None:
    yard.configure('["test ! -e a.txt"]')
    repo = yard.repo
    add_task(repo, None, NewTask(title="Write a", paths=("a.txt",)))
    next_task(repo, yard.agent("ann"))
    yard.branch("landlane/T1-1/work", {"a.txt": "x"})
    yard.enter("landlane/T1-1/work")
    leave(repo, yard.agent("ann"))

    assert yard.run() is None

    assert get_task(repo, "T1").state == "ready"
    assert yard.holders() == {}


def test_what_is_in_no_commit_stays_out_and_is_told(yard: Yard) -> None:
    yard.configure()
    yard.branch("one", {"a.txt": "x"})
    there = yard.folder.parent / "branches"
    git(there, "checkout", "--quiet", "one")
    (there / "draft").write_text("x")
    yard.claim("ann", "a.txt")
    with closing(open_repository(str(there))) as repo:
        site = prepare_git(repo, yard.notes.append)
        submit_branch(site, yard.agent("ann"), "", "")

    assert yard.notes == ["only what is committed is submitted; not draft"]


def test_a_branch_of_hundreds_of_files_is_held_by_the_claim_of_its_author(yard: Yard) -> None:
    yard.configure("[]", "[landing.merge.files]\n'LOG' = 'union'\n[claims]\nfree = ['docs/**']\n")
    yard.branch("one", {f"src/{number % 40}/f{number}": "x" for number in range(500)})
    repo = yard.repo
    wide = claims.make_request(repo, (repo.git.pattern_of("src/**", "glob"),))
    claims.take(repo, yard.agent("ann"), wide)

    yard.enter("one")
    leave(repo, yard.agent("ann"))

    assert yard.holders() == {"src/**": "landing-L1"}
    assert yard.run() is None
    assert yard.states() == {"one": "landed"}
    assert yard.holders() == {}
