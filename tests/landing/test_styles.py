"""Landing styles: merge, rebase and squash keep messages, authors and trailers."""

from __future__ import annotations

import pytest

from landlane.testing.repositories import git
from tests.support.landing import LandingTestbed

pytestmark = pytest.mark.integration


def log(testbed: LandingTestbed, form: str, *words: str) -> list[str]:
    return git(testbed.folder, "log", f"--format={form}", *words).strip().split("\n")


@pytest.fixture
def two_commits(testbed: LandingTestbed) -> LandingTestbed:
    """A branch with two commits by two people, and a target that went on meanwhile."""
    testbed.configure("[]")
    folder = testbed.folder.parent / "work"
    git(testbed.folder, "worktree", "add", "--quiet", "-b", "one", str(folder))
    for name, text in (("Bo", "Say a\n\nBecause of b.\n\nReviewed-by: Cy <cy@x>\n"), ("Di", "Say c\n")):
        (folder / name).write_text(name)
        git(folder, "add", "--all")
        who = ("-c", f"user.name={name}", "-c", f"user.email={name}@x")
        environment = [f"--author={name} <{name}@x>", "--date=2020-01-01T00:00:00+0000"]
        git(folder, *who, "commit", "--quiet", "-m", text, *environment)
    git(testbed.folder, "worktree", "remove", "--force", str(folder))
    return testbed


def style(testbed: LandingTestbed, name: str) -> None:
    testbed.configure("[]", f'style = "{name}"\n')


def test_a_merge_has_the_branch_as_its_second_parent(two_commits: LandingTestbed) -> None:
    testbed = two_commits
    head = git(testbed.folder, "rev-parse", "one").strip()
    style(testbed, "merge")
    before = testbed.tip

    entry = testbed.land("one")

    assert log(testbed, "%P", "-1") == [f"{before} {head}"]
    assert log(testbed, "%an %ae %s", "-1") == ["Di Di@x Land one: Say c"]
    trailers = log(testbed, "%(trailers:only)", "-1")
    assert f"Landlane-Landing: {entry.id}" in trailers
    assert "Landlane-Agent: ann" in trailers


def test_a_rebase_replays_each_commit_with_author_date_and_message(two_commits: LandingTestbed) -> None:
    testbed = two_commits
    style(testbed, "rebase")
    before = testbed.tip

    assert testbed.land("one").state == "landed"

    assert log(testbed, "%an|%ae|%ad|%s", "--date=short", f"{before}..main") == [
        "Di|Di@x|2020-01-01|Say c",
        "Bo|Bo@x|2020-01-01|Say a",
    ]
    assert "Reviewed-by: Cy <cy@x>" in log(testbed, "%B", f"{before}..main")
    assert log(testbed, "%P", "--merges", f"{before}..main") == [""], "a straight line"


def test_rebasing_a_branch_that_is_based_on_the_tip_lands_its_own_commits(testbed: LandingTestbed) -> None:
    testbed.configure("[]", 'style = "rebase"\n')
    head = testbed.branch("one", {"a": "x"})

    assert testbed.land("one").commit == head == testbed.tip


def test_a_squash_is_one_commit_with_all_that_was_said(two_commits: LandingTestbed) -> None:
    testbed = two_commits
    style(testbed, "squash")
    before = testbed.tip

    entry = testbed.land("one")

    assert log(testbed, "%P", f"{before}..main") == [before]
    message = log(testbed, "%B", "-1")
    assert message[0] == "Say c"
    assert "* Say a" in message
    assert "Because of b." in message
    trailers = log(testbed, "%(trailers:only)", "-1")
    assert "Reviewed-by: Cy <cy@x>" in trailers
    assert "Co-authored-by: Bo <Bo@x>" in trailers
    assert f"Landlane-Landing: {entry.id}" in trailers
    assert log(testbed, "%an <%ae>", "-1") == ["Di <Di@x>"]


def test_a_squash_of_one_commit_keeps_its_message(testbed: LandingTestbed) -> None:
    testbed.configure("[]", 'style = "squash"\n')
    testbed.branch("one", {"a": "x"}, "Say a\n\nWith a reason.\n\nFixes: 7")

    testbed.land("one")

    assert log(testbed, "%B", "-1")[:4] == ["Say a", "", "With a reason.", ""]
    assert "Fixes: 7" in log(testbed, "%(trailers:only)", "-1")


def test_commits_that_cannot_be_replayed_one_by_one_land_as_one_with_a_note(testbed: LandingTestbed) -> None:
    testbed.configure("[]", 'style = "rebase"\n[landing.merge.files]\n"LOG" = "union"\n', files={"LOG": ""})
    testbed.branch("one", {"LOG": "one\n"})
    testbed.branch("two", {"LOG": "two\n"}, "Log two")
    testbed.submit("one", is_shared=True)
    second = testbed.submit("two", "bob", is_shared=True)

    assert testbed.run() is None

    assert (
        testbed.reload(second).notes[-1]
        == "its commits could not be replayed one by one, so it landed as one"
    )
    assert log(testbed, "%s", "-1") == ["Log two"]
    assert sorted(testbed.read_file("LOG").split()) == ["one", "two"]


@pytest.mark.parametrize("name", ["rebase", "squash"])
def test_a_branch_that_merged_the_target_lands_only_what_is_its_own(
    testbed: LandingTestbed, name: str
) -> None:
    testbed.configure("[]", f'style = "{name}"\n')
    testbed.branch("one", {"a": "x"}, "Say a")
    testbed.commit({"b": "x"}, "A person")
    folder = testbed.folder.parent / "branches"
    git(folder, "checkout", "--quiet", "one")
    git(folder, "merge", "--quiet", "-m", "Keep up", "main")
    git(folder, "checkout", "--quiet", "--detach")
    before = testbed.tip

    assert testbed.land("one").state == "landed"

    assert "Say a" in log(testbed, "%s", f"{before}..main")
    assert "A person" not in log(testbed, "%s", f"{before}..main")
