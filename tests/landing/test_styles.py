"""Landing styles: merge, rebase and squash keep messages, authors and trailers."""

from __future__ import annotations

import pytest

from landlane.testing.repositories import git
from tests.support.landing import Yard

pytestmark = pytest.mark.integration


def log(yard: Yard, form: str, *words: str) -> list[str]:
    return git(yard.folder, "log", f"--format={form}", *words).strip().split("\n")


@pytest.fixture
def two_commits(yard: Yard) -> Yard:
    """A branch with two commits by two people, and a target that went on meanwhile."""
    yard.configure("[]")
    folder = yard.folder.parent / "work"
    git(yard.folder, "worktree", "add", "--quiet", "-b", "one", str(folder))
    for name, text in (("Bo", "Say a\n\nBecause of b.\n\nReviewed-by: Cy <cy@x>\n"), ("Di", "Say c\n")):
        (folder / name).write_text(name)
        git(folder, "add", "--all")
        who = ("-c", f"user.name={name}", "-c", f"user.email={name}@x")
        environment = [f"--author={name} <{name}@x>", "--date=2020-01-01T00:00:00+0000"]
        git(folder, *who, "commit", "--quiet", "-m", text, *environment)
    git(yard.folder, "worktree", "remove", "--force", str(folder))
    return yard


def style(yard: Yard, name: str) -> None:
    yard.configure("[]", f'style = "{name}"\n')


def test_a_merge_has_the_branch_as_its_second_parent(two_commits: Yard) -> None:
    yard = two_commits
    head = git(yard.folder, "rev-parse", "one").strip()
    style(yard, "merge")
    before = yard.tip

    entry = yard.land("one")

    assert log(yard, "%P", "-1") == [f"{before} {head}"]
    assert log(yard, "%an %ae %s", "-1") == ["Di Di@x Land one: Say c"]
    trailers = log(yard, "%(trailers:only)", "-1")
    assert f"Landlane-Landing: {entry.id}" in trailers
    assert "Landlane-Agent: ann" in trailers


def test_a_rebase_replays_each_commit_with_author_date_and_message(two_commits: Yard) -> None:
    yard = two_commits
    style(yard, "rebase")
    before = yard.tip

    assert yard.land("one").state == "landed"

    assert log(yard, "%an|%ae|%ad|%s", "--date=short", f"{before}..main") == [
        "Di|Di@x|2020-01-01|Say c",
        "Bo|Bo@x|2020-01-01|Say a",
    ]
    assert "Reviewed-by: Cy <cy@x>" in log(yard, "%B", f"{before}..main")
    assert log(yard, "%P", "--merges", f"{before}..main") == [""], "a straight line"


def test_a_rebase_of_what_stands_on_the_tip_is_the_branch_itself(yard: Yard) -> None:
    yard.configure("[]", 'style = "rebase"\n')
    head = yard.branch("one", {"a": "x"})

    assert yard.land("one").commit == head == yard.tip


def test_a_squash_is_one_commit_with_all_that_was_said(two_commits: Yard) -> None:
    yard = two_commits
    style(yard, "squash")
    before = yard.tip

    entry = yard.land("one")

    assert log(yard, "%P", f"{before}..main") == [before]
    message = log(yard, "%B", "-1")
    assert message[0] == "Say c"
    assert "* Say a" in message
    assert "Because of b." in message
    trailers = log(yard, "%(trailers:only)", "-1")
    assert "Reviewed-by: Cy <cy@x>" in trailers
    assert "Co-authored-by: Bo <Bo@x>" in trailers
    assert f"Landlane-Landing: {entry.id}" in trailers
    assert log(yard, "%an <%ae>", "-1") == ["Di <Di@x>"]


def test_a_squash_of_one_commit_keeps_its_message(yard: Yard) -> None:
    yard.configure("[]", 'style = "squash"\n')
    yard.branch("one", {"a": "x"}, "Say a\n\nWith a reason.\n\nFixes: 7")

    yard.land("one")

    assert log(yard, "%B", "-1")[:4] == ["Say a", "", "With a reason.", ""]
    assert "Fixes: 7" in log(yard, "%(trailers:only)", "-1")


def test_a_rebase_that_needs_the_whole_lands_as_one_and_says_so(yard: Yard) -> None:
    yard.configure("[]", 'style = "rebase"\n[landing.merge.files]\n"LOG" = "union"\n', files={"LOG": ""})
    yard.branch("one", {"LOG": "one\n"})
    yard.branch("two", {"LOG": "two\n"}, "Log two")
    yard.submit("one", is_shared=True)
    second = yard.submit("two", "bob", is_shared=True)

    assert yard.run() is None

    assert yard.look(second).notes[-1] == "its commits could not be replayed one by one, so it landed as one"
    assert log(yard, "%s", "-1") == ["Log two"]
    assert sorted(yard.at("LOG").split()) == ["one", "two"]


@pytest.mark.parametrize("name", ["rebase", "squash"])
def test_a_branch_that_merged_the_target_lands_only_what_is_its_own(yard: Yard, name: str) -> None:
    yard.configure("[]", f'style = "{name}"\n')
    yard.branch("one", {"a": "x"}, "Say a")
    yard.commit({"b": "x"}, "A person")
    folder = yard.folder.parent / "branches"
    git(folder, "checkout", "--quiet", "one")
    git(folder, "merge", "--quiet", "-m", "Keep up", "main")
    git(folder, "checkout", "--quiet", "--detach")
    before = yard.tip

    assert yard.land("one").state == "landed"

    assert "Say a" in log(yard, "%s", f"{before}..main")
    assert "A person" not in log(yard, "%s", f"{before}..main")
