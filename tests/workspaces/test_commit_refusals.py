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
from tests.support.commits import CommitTestbed, raises_code
from tests.support.project import MINUTE

pytestmark = pytest.mark.integration


def test_committing_without_changes_is_refused(commit_testbed: CommitTestbed) -> None:
    ann = commit_testbed.agent("ann", "README.md")
    before = commit_testbed.head()

    with raises_code(LandlaneError, "NOTHING_TO_COMMIT"):
        commit_testbed.commit(ann, "README.md")
    assert commit_testbed.head() == before


def test_a_path_that_never_existed_is_refused(commit_testbed: CommitTestbed) -> None:
    with raises_code(Malformed, "NO_SUCH_PATH"):
        commit_testbed.commit(commit_testbed.agent("ann", "."), "tpyo.py")


def test_an_ignored_file_is_refused_and_not_skipped_silently(commit_testbed: CommitTestbed) -> None:
    commit_testbed.land(".gitignore", "*.log\n")
    commit_testbed.write("a.log")
    commit_testbed.write("a.py")

    with raises_code(Malformed, "PATH_IGNORED"):
        commit_testbed.commit(commit_testbed.agent("ann", "."), "a.py", "a.log")


@pytest.mark.parametrize("text", ["../outside", "/etc/passwd", ".git/config", "", "a\0b"])
def test_paths_outside_are_refused(commit_testbed: CommitTestbed, text: str) -> None:
    with pytest.raises(PatternError):
        commit_testbed.commit(commit_testbed.agent("ann", "."), text)


def test_a_path_in_another_worktree_is_not_taken_for_the_one_here(
    commit_testbed: CommitTestbed, tmp_path: Path
) -> None:
    commit_testbed.git("worktree", "add", "--quiet", str(tmp_path / "other"))
    commit_testbed.write("a.py")

    with raises_code(PatternError, "PATH_OUTSIDE"):
        commit_testbed.commit(commit_testbed.agent("ann", "."), str(tmp_path / "other" / "a.py"))


@pytest.mark.parametrize("message", ["", "  \n"])
def test_a_commit_needs_a_message(commit_testbed: CommitTestbed, message: str) -> None:
    with raises_code(Malformed, "NO_MESSAGE"):
        commit_testbed.commit(commit_testbed.agent("ann"), "README.md", message=message)


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
def test_a_message_with_forged_trailers_is_refused(commit_testbed: CommitTestbed, message: str) -> None:
    ann = commit_testbed.agent("ann", "README.md")
    commit_testbed.write("README.md")

    with raises_code(Malformed, "MESSAGE_POSES"):
        commit_testbed.commit(ann, "README.md", message=message)


def test_one_unclaimed_path_refuses_the_whole_commit(commit_testbed: CommitTestbed) -> None:
    ann = commit_testbed.agent("ann", "src/a.py")
    commit_testbed.write("src/a.py")
    commit_testbed.write("src/b.py")
    before = (commit_testbed.head(), commit_testbed.status())

    with raises_code(NotAllowed, "NOT_CLAIMED") as refused:
        commit_testbed.commit(ann, "src")

    assert refused.value.facts["path"] == "src/b.py"
    assert "landlane claim src/b.py" in refused.value.hint
    assert (commit_testbed.head(), commit_testbed.status()) == before


def test_a_path_held_by_another_session_cannot_be_committed(commit_testbed: CommitTestbed) -> None:
    commit_testbed.agent("bob", "theirs.py", task="T9")
    commit_testbed.write("theirs.py")

    with raises_code(Held, "CLAIM_HELD") as refused:
        commit_testbed.commit(commit_testbed.agent("ann", "mine.py"), "theirs.py")

    assert refused.value.facts["holder"] == "bob"
    assert refused.value.facts["until_at"] > 0
    assert refused.value.facts["task"] == "T9"
    assert commit_testbed.status() == "?? theirs.py\n"


def test_free_paths_need_no_claim_and_shared_claims_are_enough(commit_testbed: CommitTestbed) -> None:
    settings = Settings(claims=ClaimSettings(free=("*.md",)))
    ann = commit_testbed.agent("ann", settings=settings)
    token = ann.take("CHANGES", is_shared=True).token
    commit_testbed.write("README.md", "changed\n")
    commit_testbed.write("CHANGES")

    made = commit_testbed.commit(ann, "README.md", "CHANGES")

    assert made.trailers.tokens == (token,)


def test_a_session_whose_lease_has_ended_cannot_commit(commit_testbed: CommitTestbed) -> None:
    ann = commit_testbed.agent("ann")
    ann.take("src/**", ttl_ms=MINUTE)
    commit_testbed.write("src/a.py")
    commit_testbed.project.clock.advance(2 * MINUTE)

    with raises_code(Stale, "LEASE_OVER"):
        commit_testbed.commit(ann, "src/a.py")

    commit_testbed.agent("bob", "src/a.py")
    with raises_code(Stale, "LEASE_OVER") as refused:
        commit_testbed.commit(ann, "src/a.py")
    assert refused.value.facts["holder"] == "bob"


@pytest.mark.parametrize("verb", ["merge", "cherry-pick", "rebase", "revert"])
def test_selected_paths_cannot_be_committed_during_a_merge(commit_testbed: CommitTestbed, verb: str) -> None:
    base = commit_testbed.head()
    theirs = commit_testbed.land("a.py", "theirs\n")
    commit_testbed.git("checkout", "--quiet", "-b", "topic", base)
    commit_testbed.land("a.py", "ours\n")
    if verb == "revert":
        theirs = commit_testbed.head()
        commit_testbed.land("a.py", "later\n")
    words = ["git", verb, *(["--no-edit"] if verb in ("merge", "revert") else []), theirs]
    subprocess.run(words, cwd=commit_testbed.root, capture_output=True, timeout=30)
    commit_testbed.write("a.py", "solved\n")

    with raises_code(RepositoryError, "OPERATION_IN_PROGRESS") as refused:
        commit_testbed.commit(commit_testbed.agent("ann", "a.py"), "a.py")
    assert f"git {verb} --abort" in refused.value.hint


def test_an_old_tree_on_a_new_base_cannot_revert_commits(commit_testbed: CommitTestbed) -> None:
    base = commit_testbed.head()
    commit_testbed.land("peer.py", "theirs\n")
    commit_testbed.land("README.md", "theirs\n")
    commit_testbed.git("branch", "landed")
    commit_testbed.git("reset", "--quiet", "--hard", base)
    ann = commit_testbed.agent("ann", ".")
    commit_testbed.write("mine.py")
    commit_testbed.git("reset", "--soft", "landed")

    with raises_code(Stale, "WOULD_REVERT") as refused:
        commit_testbed.commit(ann, ".")
    assert {one["path"] for one in refused.value.facts["undone"]} == {"peer.py", "README.md"}

    made = commit_testbed.commit(ann, "mine.py")
    assert commit_testbed.paths_of() == ["mine.py"]
    assert made.left_alone == 2
    assert "peer.py" in commit_testbed.messages[-1]


def test_an_old_tree_after_a_mixed_reset_is_detected(commit_testbed: CommitTestbed) -> None:
    base = commit_testbed.head()
    landed = commit_testbed.land("peer.py", "theirs\n")
    commit_testbed.git("reset", "--quiet", "--hard", base)
    commit_testbed.write("mine.py")
    commit_testbed.git("reset", "--quiet", landed)

    with raises_code(Stale, "WOULD_REVERT") as refused:
        commit_testbed.commit(commit_testbed.agent("ann", "."), ".")
    assert refused.value.facts["undone"] == [{"path": "peer.py", "commits": [landed], "subject": "Theirs"}]


def test_an_old_copy_of_a_file_is_refused_unless_reverting_is_intended(commit_testbed: CommitTestbed) -> None:
    commit_testbed.land("a.py", "1\n")
    second = commit_testbed.land("a.py", "2\n", "Second")
    third = commit_testbed.land("a.py", "3\n", "Third")
    ann = commit_testbed.agent("ann", "a.py")
    commit_testbed.write("a.py", "1\n")

    with raises_code(Stale, "WOULD_REVERT") as refused:
        commit_testbed.commit(ann, "a.py")
    assert refused.value.exit_code == 4
    assert refused.value.facts["undone"][0]["commits"] == [third, second]
    assert "Third" in refused.value.message

    commit_testbed.commit(ann, "a.py", may_undo=True)
    assert commit_testbed.git("show", "HEAD:a.py") == "1\n"


def test_an_old_file_with_own_lines_is_detected_in_an_old_tree(commit_testbed: CommitTestbed) -> None:
    lines = [f"{number}\n" for number in range(30)]
    base = commit_testbed.land("a.py", "".join(lines))
    landed = commit_testbed.land("a.py", "".join(["theirs\n", *lines[1:]]), "Theirs in it")
    commit_testbed.git("reset", "--quiet", "--hard", base)
    commit_testbed.write("a.py", "".join([*lines, "mine\n"]))
    commit_testbed.git("reset", "--quiet", "--soft", landed)
    ann = commit_testbed.agent("ann", "a.py")

    with raises_code(Stale, "WOULD_REVERT") as refused:
        commit_testbed.commit(ann, "a.py")
    assert refused.value.facts["undone"][0]["commits"] == [landed]

    commit_testbed.write("a.py", "".join(["theirs\n", *lines[1:], "mine\n"]))
    commit_testbed.commit(ann, "a.py")


def test_removing_lines_of_another_in_a_current_tree_is_not_a_revert(
    commit_testbed: CommitTestbed,
) -> None:
    commit_testbed.land("a.py", "1\n2\n3\n")
    commit_testbed.land("a.py", "1\n2\n3\ntheirs\n")
    commit_testbed.land("later.py", "1\n")
    commit_testbed.write("a.py", "one\n2\n3\n")

    assert commit_testbed.commit(commit_testbed.agent("ann", "a.py"), "a.py").paths == ("a.py",)


def test_a_file_that_others_deleted_does_not_come_back_by_itself(commit_testbed: CommitTestbed) -> None:
    commit_testbed.land("a.py", "1\n")
    commit_testbed.git("rm", "--quiet", "a.py")
    commit_testbed.git("commit", "--quiet", "-m", "Remove it")
    commit_testbed.write("a.py", "1\n")

    with raises_code(Stale, "WOULD_REVERT"):
        commit_testbed.commit(commit_testbed.agent("ann", "a.py"), "a.py")


def test_reverting_an_own_commit_is_allowed(commit_testbed: CommitTestbed) -> None:
    ann = commit_testbed.agent("ann", "README.md")
    before = (commit_testbed.root / "README.md").read_text(encoding="utf-8")
    commit_testbed.write("README.md", "tried\n")
    commit_testbed.commit(ann, "README.md")
    commit_testbed.write("README.md", before)

    commit_testbed.commit(ann, "README.md")

    assert commit_testbed.git("show", "HEAD:README.md") == before


def test_deleting_an_old_file_of_others_is_not_a_revert(commit_testbed: CommitTestbed) -> None:
    commit_testbed.land("old.py", "1\n")
    commit_testbed.land("later.py", "2\n")
    ann = commit_testbed.agent("ann", "old.py")
    commit_testbed.git("rm", "--quiet", "old.py")

    assert commit_testbed.commit(ann, "old.py").paths == ("old.py",)


def test_changes_from_a_merge_are_protected_from_reverts(commit_testbed: CommitTestbed) -> None:
    commit_testbed.git("checkout", "--quiet", "-b", "topic")
    commit_testbed.land("README.md", "topic\n")
    commit_testbed.git("checkout", "--quiet", "main")
    commit_testbed.land("b.py", "1\n")
    commit_testbed.git("merge", "--quiet", "--no-edit", "topic")
    commit_testbed.write("README.md", "# A repository for tests\n")

    with raises_code(Stale, "WOULD_REVERT"):
        commit_testbed.commit(commit_testbed.agent("ann", "README.md"), "README.md")
