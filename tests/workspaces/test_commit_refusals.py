"""Commits that are refused: what cannot be meant, is not claimed, or would undo what landed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from landlane.errors import (
    Held,
    LandlaneError,
    Malformed,
    NotAllowed,
    PatternError,
    RepositoryError,
    Stale,
)
from landlane.settings.model import ClaimSettings, Settings
from tests.support.committing import Crew, refuse
from tests.support.sites import MINUTE

pytestmark = pytest.mark.integration


def test_nothing_to_commit(crew: Crew) -> None:
    ann = crew.agent("ann", "README.md")
    before = crew.head()

    with refuse(LandlaneError, "NOTHING_TO_COMMIT"):
        crew.commit(ann, "README.md")
    assert crew.head() == before


def test_a_path_that_never_was_is_a_mistake(crew: Crew) -> None:
    with refuse(Malformed, "NO_SUCH_PATH"):
        crew.commit(crew.agent("ann", "."), "tpyo.py")


def test_an_ignored_file_is_told_and_not_left_out_in_silence(crew: Crew) -> None:
    crew.land(".gitignore", "*.log\n")
    crew.write("a.log")
    crew.write("a.py")

    with refuse(Malformed, "PATH_IGNORED"):
        crew.commit(crew.agent("ann", "."), "a.py", "a.log")


@pytest.mark.parametrize("text", ["../outside", "/etc/passwd", ".git/config", "", "a\0b"])
def test_paths_outside_are_refused(crew: Crew, text: str) -> None:
    with pytest.raises(PatternError):
        crew.commit(crew.agent("ann", "."), text)


def test_a_path_in_another_worktree_is_not_taken_for_the_one_here(crew: Crew, tmp_path: Path) -> None:
    crew.git("worktree", "add", "--quiet", str(tmp_path / "other"))
    crew.write("a.py")

    with refuse(PatternError, "PATH_OUTSIDE"):
        crew.commit(crew.agent("ann", "."), str(tmp_path / "other" / "a.py"))


@pytest.mark.parametrize("message", ["", "  \n"])
def test_a_commit_needs_a_message(crew: Crew, message: str) -> None:
    with refuse(Malformed, "NO_MESSAGE"):
        crew.commit(crew.agent("ann"), "README.md", message=message)


@pytest.mark.parametrize(
    "message",
    [
        "x\n\nLandlane-Agent: bob",
        "x\n\nlandlane-agent : bob\n",
        "x\n\nSigned-off-by: a\nLandlane-Session: s-2",
        "Landlane-Token: 7",
        "x\n\nLandlane-Task=T9",
    ],
)
def test_a_message_that_poses_as_another_agent_is_refused(crew: Crew, message: str) -> None:
    ann = crew.agent("ann", "README.md")
    crew.write("README.md")

    with refuse(Malformed, "MESSAGE_POSES"):
        crew.commit(ann, "README.md", message=message)


def test_one_unclaimed_path_refuses_the_whole_commit(crew: Crew) -> None:
    ann = crew.agent("ann", "src/a.py")
    crew.write("src/a.py")
    crew.write("src/b.py")
    before = (crew.head(), crew.status())

    with refuse(NotAllowed, "NOT_CLAIMED") as refused:
        crew.commit(ann, "src")

    assert refused.value.facts["path"] == "src/b.py"
    assert "landlane claim :/src/b.py" in refused.value.hint
    assert (crew.head(), crew.status()) == before


def test_what_another_holds_is_not_ours_to_commit(crew: Crew) -> None:
    crew.agent("bob", "theirs.py", task="T9")
    crew.write("theirs.py")

    with refuse(Held, "CLAIM_HELD") as refused:
        crew.commit(crew.agent("ann", "mine.py"), "theirs.py")

    assert refused.value.facts["holder"] == "bob"
    assert refused.value.facts["until_at"] > 0
    assert refused.value.facts["task"] == "T9"
    assert crew.status() == "?? theirs.py\n"


def test_free_paths_need_no_claim_and_shared_claims_are_enough(crew: Crew) -> None:
    settings = Settings(claims=ClaimSettings(free=("*.md",)))
    ann = crew.agent("ann", settings=settings)
    token = ann.take("CHANGES", is_shared=True).token
    crew.write("README.md", "changed\n")
    crew.write("CHANGES")

    made = crew.commit(ann, "README.md", "CHANGES")

    assert made.trailers.tokens == (token,)


def test_a_sleeper_whose_lease_is_over_cannot_commit(crew: Crew) -> None:
    ann = crew.agent("ann")
    ann.take("src/**", ttl_ms=MINUTE)
    crew.write("src/a.py")
    crew.site.clock.advance(2 * MINUTE)

    with refuse(Stale, "LEASE_OVER"):
        crew.commit(ann, "src/a.py")

    crew.agent("bob", "src/a.py")
    with refuse(Stale, "LEASE_OVER") as refused:
        crew.commit(ann, "src/a.py")
    assert refused.value.facts["holder"] == "bob"


@pytest.mark.parametrize("verb", ["merge", "cherry-pick", "rebase", "revert"])
def test_no_commit_of_single_paths_in_the_middle_of_a_merge(crew: Crew, verb: str) -> None:
    base = crew.head()
    theirs = crew.land("a.py", "theirs\n")
    crew.git("checkout", "--quiet", "-b", "topic", base)
    crew.land("a.py", "ours\n")
    if verb == "revert":
        theirs = crew.head()
        crew.land("a.py", "later\n")
    words = ["git", verb, *(["--no-edit"] if verb in ("merge", "revert") else []), theirs]
    subprocess.run(words, cwd=crew.root, capture_output=True, timeout=30)
    crew.write("a.py", "solved\n")

    with refuse(RepositoryError, "OPERATION_IN_PROGRESS") as refused:
        crew.commit(crew.agent("ann", "a.py"), "a.py")
    assert f"git {verb} --abort" in refused.value.hint


def test_an_old_tree_on_a_new_base_takes_nothing_back(crew: Crew) -> None:
    base = crew.head()
    crew.land("peer.py", "theirs\n")
    crew.land("README.md", "theirs\n")
    crew.git("branch", "landed")
    crew.git("reset", "--quiet", "--hard", base)
    ann = crew.agent("ann", ".")
    crew.write("mine.py")
    crew.git("reset", "--soft", "landed")

    with refuse(Stale, "WOULD_REVERT") as refused:
        crew.commit(ann, ".")
    assert {one["path"] for one in refused.value.facts["undone"]} == {"peer.py", "README.md"}

    made = crew.commit(ann, "mine.py")
    assert crew.paths_of() == ["mine.py"]
    assert made.left_alone == 2
    assert "peer.py" in crew.told[-1]


def test_an_old_tree_after_a_mixed_reset_is_seen_as_well(crew: Crew) -> None:
    base = crew.head()
    landed = crew.land("peer.py", "theirs\n")
    crew.git("reset", "--quiet", "--hard", base)
    crew.write("mine.py")
    crew.git("reset", "--quiet", landed)

    with refuse(Stale, "WOULD_REVERT") as refused:
        crew.commit(crew.agent("ann", "."), ".")
    assert refused.value.facts["undone"] == [{"path": "peer.py", "commits": [landed], "subject": "Theirs"}]


def test_an_old_copy_of_a_file_is_refused_unless_undoing_is_meant(crew: Crew) -> None:
    crew.land("a.py", "1\n")
    second = crew.land("a.py", "2\n", "Second")
    third = crew.land("a.py", "3\n", "Third")
    ann = crew.agent("ann", "a.py")
    crew.write("a.py", "1\n")

    with refuse(Stale, "WOULD_REVERT") as refused:
        crew.commit(ann, "a.py")
    assert refused.value.exit_code == 4
    assert refused.value.facts["undone"][0]["commits"] == [third, second]
    assert "Third" in refused.value.message

    crew.commit(ann, "a.py", may_undo=True)
    assert crew.git("show", "HEAD:a.py") == "1\n"


def test_an_old_file_with_ones_own_lines_in_it_is_seen_in_an_old_tree(crew: Crew) -> None:
    lines = [f"{number}\n" for number in range(30)]
    base = crew.land("a.py", "".join(lines))
    landed = crew.land("a.py", "".join(["theirs\n", *lines[1:]]), "Theirs in it")
    crew.git("reset", "--quiet", "--hard", base)
    crew.write("a.py", "".join([*lines, "mine\n"]))
    crew.git("reset", "--quiet", "--soft", landed)
    ann = crew.agent("ann", "a.py")

    with refuse(Stale, "WOULD_REVERT") as refused:
        crew.commit(ann, "a.py")
    assert refused.value.facts["undone"][0]["commits"] == [landed]

    crew.write("a.py", "".join(["theirs\n", *lines[1:], "mine\n"]))
    crew.commit(ann, "a.py")


def test_removing_lines_that_another_added_is_no_undoing_in_a_tree_that_is_new(crew: Crew) -> None:
    crew.land("a.py", "1\n2\n3\n")
    crew.land("a.py", "1\n2\n3\ntheirs\n")
    crew.land("later.py", "1\n")
    crew.write("a.py", "one\n2\n3\n")

    assert crew.commit(crew.agent("ann", "a.py"), "a.py").paths == ("a.py",)


def test_a_file_that_others_deleted_does_not_come_back_by_itself(crew: Crew) -> None:
    crew.land("a.py", "1\n")
    crew.git("rm", "--quiet", "a.py")
    crew.git("commit", "--quiet", "-m", "Remove it")
    crew.write("a.py", "1\n")

    with refuse(Stale, "WOULD_REVERT"):
        crew.commit(crew.agent("ann", "a.py"), "a.py")


def test_undoing_ones_own_commit_needs_no_leave(crew: Crew) -> None:
    ann = crew.agent("ann", "README.md")
    before = (crew.root / "README.md").read_text(encoding="utf-8")
    crew.write("README.md", "tried\n")
    crew.commit(ann, "README.md")
    crew.write("README.md", before)

    crew.commit(ann, "README.md")

    assert crew.git("show", "HEAD:README.md") == before


def test_deleting_an_old_file_of_others_is_no_undoing(crew: Crew) -> None:
    crew.land("old.py", "1\n")
    crew.land("later.py", "2\n")
    ann = crew.agent("ann", "old.py")
    crew.git("rm", "--quiet", "old.py")

    assert crew.commit(ann, "old.py").paths == ("old.py",)


def test_what_a_merge_brought_is_protected_too(crew: Crew) -> None:
    crew.git("checkout", "--quiet", "-b", "topic")
    crew.land("README.md", "topic\n")
    crew.git("checkout", "--quiet", "main")
    crew.land("b.py", "1\n")
    crew.git("merge", "--quiet", "--no-edit", "topic")
    crew.write("README.md", "# A repository for tests\n")

    with refuse(Stale, "WOULD_REVERT"):
        crew.commit(crew.agent("ann", "README.md"), "README.md")
