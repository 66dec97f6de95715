"""Commits of chosen paths, with real git: what goes into them, and what their trailers say."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from landlane.errors import (
    NotAllowed,
)
from landlane.git.discovery import HOME_POINTER
from landlane.journal import read as journal
from tests.support.commits import CommitTestbed, raises_code

pytestmark = pytest.mark.integration


def test_only_the_named_paths_are_committed_and_what_others_staged_stays_staged(
    commit_testbed: CommitTestbed,
) -> None:
    ann = commit_testbed.agent("ann", "mine.py", "README.md")
    commit_testbed.write("mine.py")
    commit_testbed.write("README.md", "changed\n")
    commit_testbed.write("theirs.py")
    commit_testbed.git("add", "theirs.py")

    made = commit_testbed.commit(ann, "mine.py", "README.md")

    assert commit_testbed.paths_of(made.commit) == ["README.md", "mine.py"]
    assert made.paths == ("README.md", "mine.py")
    assert made.branch == "main"
    assert made.left_alone == 1
    assert commit_testbed.status() == "A  theirs.py\n"


def test_a_staged_change_of_a_named_path_is_committed_as_it_is_on_disk(commit_testbed: CommitTestbed) -> None:
    ann = commit_testbed.agent("ann", "README.md")
    commit_testbed.write("README.md", "staged\n")
    commit_testbed.git("add", "README.md")
    commit_testbed.write("README.md", "on disk\n")

    commit_testbed.commit(ann, "README.md")

    assert commit_testbed.git("show", "HEAD:README.md") == "on disk\n"
    assert commit_testbed.status() == ""


def test_staged_deletions_and_renames_of_others_are_not_committed(
    commit_testbed: CommitTestbed,
) -> None:
    commit_testbed.land("old.py", "1\n")
    ann = commit_testbed.agent("ann", "mine.py")
    commit_testbed.write("mine.py")
    commit_testbed.git("rm", "--quiet", "README.md")
    commit_testbed.git("mv", "old.py", "new.py")

    made = commit_testbed.commit(ann, "mine.py")

    assert commit_testbed.paths_of() == ["mine.py"]
    assert made.left_alone == 3
    assert (
        commit_testbed.status() == "R  old.py -> new.py\nD  README.md\n"
        or "D  README.md" in commit_testbed.status()
    )


def test_deletions_and_both_ends_of_a_rename_are_committed(commit_testbed: CommitTestbed) -> None:
    commit_testbed.land("old.py", "1\n")
    commit_testbed.land("gone.py", "2\n")
    ann = commit_testbed.agent("ann", "old.py", "new.py", "gone.py")
    commit_testbed.git("mv", "old.py", "new.py")
    (commit_testbed.root / "gone.py").unlink()
    commit_testbed.land("last.py", "3\n")

    commit_testbed.commit(ann, "old.py", "new.py", "gone.py")

    assert sorted(commit_testbed.paths_of()) == ["gone.py", "new.py", "old.py"]
    assert commit_testbed.status() == ""


def test_a_folder_means_all_that_changed_below_it_but_nothing_ignored(commit_testbed: CommitTestbed) -> None:
    commit_testbed.land(".gitignore", "*.log\n")
    commit_testbed.land("src/gone.py", "1\n")
    commit_testbed.land("other.py", "1\n")
    ann = commit_testbed.agent("ann", "src/**")
    (commit_testbed.root / "src/gone.py").unlink()
    commit_testbed.write("src/deep/new.py")
    commit_testbed.write("src/deep/noise.log")
    commit_testbed.write("beside.py")

    made = commit_testbed.commit(ann, "src")

    assert made.paths == ("src/deep/new.py", "src/gone.py")
    assert commit_testbed.status() == "?? beside.py\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "with space.py",
        "*.py",
        "[id].tsx",
        ":(top)x",
        "-m",
        "öß.py",
        'quote".py',
        "a\\b",
        "new\nline",
        "{a,b}",
        "!x",
    ],
)
def test_odd_names_are_taken_as_they_are(commit_testbed: CommitTestbed, name: str) -> None:
    ann = commit_testbed.agent("ann", ".")
    commit_testbed.write(name)
    commit_testbed.write("plain.py")

    made = commit_testbed.commit(ann, f"./{name}")

    assert commit_testbed.paths_of() == [name]
    assert made.paths == (name,)


def test_a_name_that_is_not_utf8_is_covered_by_a_claim_on_its_folder(commit_testbed: CommitTestbed) -> None:
    ann = commit_testbed.agent("ann", "data")
    name = os.fsdecode(b"data/\xff\xfe")
    (commit_testbed.root / "data").mkdir()
    (commit_testbed.root / name).write_bytes(b"1")

    assert commit_testbed.commit(ann, "data").paths == (name,)


def test_paths_are_relative_to_the_current_directory(commit_testbed: CommitTestbed) -> None:
    ann = commit_testbed.agent("ann", "src/a.py", "b.py")
    commit_testbed.write("src/a.py")
    commit_testbed.write("b.py")

    made = commit_testbed.commit(ann, "a.py", ":/b.py", at=commit_testbed.root / "src")

    assert made.paths == ("b.py", "src/a.py")


def test_a_link_is_committed_as_a_link(commit_testbed: CommitTestbed) -> None:
    ann = commit_testbed.agent("ann", "[l]ink", "out")
    (commit_testbed.root / "link").symlink_to("README.md")
    (commit_testbed.root / "out").symlink_to("/nowhere")

    made = commit_testbed.commit(ann, "link", "out")

    assert made.paths == ("link", "out")
    assert commit_testbed.git("show", "HEAD:link") == "README.md"


def test_the_hint_for_an_unclaimed_link_leads_to_the_link(commit_testbed: CommitTestbed) -> None:
    ann = commit_testbed.agent("ann", "README.md")
    (commit_testbed.root / "link").symlink_to("README.md")

    with raises_code(NotAllowed, "NOT_CLAIMED") as refused:
        commit_testbed.commit(ann, "link")

    assert "':/[l]ink'" in refused.value.hint


def test_the_first_commit_of_a_repository_can_be_made(commit_testbed: CommitTestbed) -> None:
    commit_testbed.git("checkout", "--quiet", "--orphan", "fresh")
    ann = commit_testbed.agent("ann", "first.py")
    commit_testbed.write("first.py")

    made = commit_testbed.commit(ann, "first.py")

    assert commit_testbed.git("rev-list", "HEAD").split() == [made.commit]
    assert made.branch == "fresh"
    assert commit_testbed.paths_of() == ["first.py"]
    assert commit_testbed.status() == "A  README.md\n"


def test_a_detached_head_moves_on(commit_testbed: CommitTestbed) -> None:
    commit_testbed.git("checkout", "--quiet", "--detach")
    ann = commit_testbed.agent("ann", "a.py")
    commit_testbed.write("a.py")

    made = commit_testbed.commit(ann, "a.py")

    assert made.branch == ""
    assert commit_testbed.head() == made.commit
    assert commit_testbed.git("rev-parse", "main").strip() != made.commit


def test_a_submodule_that_moved_on_is_committed(commit_testbed: CommitTestbed, tmp_path: Path) -> None:
    commit_testbed.git("init", "--quiet", str(tmp_path / "lib"))
    commit_testbed.git("commit", "--quiet", "--allow-empty", "-m", "1", at=tmp_path / "lib")
    commit_testbed.git(
        "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "lib"), "lib"
    )
    commit_testbed.git("commit", "--quiet", "-m", "Add lib")
    commit_testbed.git("commit", "--quiet", "--allow-empty", "-m", "2", at=commit_testbed.root / "lib")
    ann = commit_testbed.agent("ann", "lib")

    assert commit_testbed.commit(ann, "lib").paths == ("lib",)
    assert commit_testbed.status() == ""


def test_a_nested_repository_is_not_committed_with_its_folder(commit_testbed: CommitTestbed) -> None:
    ann = commit_testbed.agent("ann", "vendor")
    commit_testbed.write("vendor/a.py")
    commit_testbed.git("init", "--quiet", "vendor/inner")
    commit_testbed.git(
        "commit", "--quiet", "--allow-empty", "-m", "1", at=commit_testbed.root / "vendor/inner"
    )

    assert commit_testbed.commit(ann, "vendor").paths == ("vendor/a.py",)


def test_a_file_may_become_a_folder_and_a_folder_a_file(commit_testbed: CommitTestbed) -> None:
    commit_testbed.land("a", "1\n")
    commit_testbed.land("b/c", "1\n")
    commit_testbed.land("later.py", "1\n")
    ann = commit_testbed.agent("ann", ".")
    (commit_testbed.root / "a").unlink()
    commit_testbed.write("a/deep.py")
    (commit_testbed.root / "b/c").unlink()
    (commit_testbed.root / "b").rmdir()
    commit_testbed.write("b")

    assert sorted(commit_testbed.commit(ann, "a", "b").paths) == ["a", "a/deep.py", "b", "b/c"]
    assert commit_testbed.status() == ""


def test_intended_additions_and_unmerged_entries_of_others_stay(commit_testbed: CommitTestbed) -> None:
    commit_testbed.write("README.md", "stashed\n")
    commit_testbed.git("stash", "--quiet")
    commit_testbed.land("README.md", "landed\n")
    subprocess.run(
        ["git", "stash", "pop", "--quiet"], cwd=commit_testbed.root, capture_output=True, timeout=30
    )
    commit_testbed.write("later.py")
    commit_testbed.git("add", "--intent-to-add", "later.py")
    ann = commit_testbed.agent("ann", "a.py", "b.py")
    commit_testbed.write("a.py")
    commit_testbed.write("b.py")
    commit_testbed.git("add", "--intent-to-add", "b.py")
    before = commit_testbed.git("ls-files", "--unmerged")

    assert commit_testbed.commit(ann, "a.py", "b.py").paths == ("a.py", "b.py")
    assert commit_testbed.git("ls-files", "--unmerged") == before != ""
    assert commit_testbed.status() == "UU README.md\n A later.py\n"


def test_a_sparse_checkout_keeps_what_it_does_not_show(commit_testbed: CommitTestbed) -> None:
    commit_testbed.land("shown/a.py", "1\n")
    commit_testbed.land("hidden/b.py", "1\n")
    commit_testbed.git("sparse-checkout", "set", "shown")
    ann = commit_testbed.agent("ann", "shown")
    commit_testbed.write("shown/a.py", "2\n")

    assert commit_testbed.commit(ann, ".").paths == ("shown/a.py",)
    assert "hidden/b.py" in commit_testbed.git("ls-tree", "-r", "--name-only", "HEAD")
    assert commit_testbed.status() == ""


@pytest.mark.slow
def test_a_file_changed_in_the_instant_the_index_was_written_is_found(commit_testbed: CommitTestbed) -> None:
    ann = commit_testbed.agent("ann", "a.py")
    for number in range(20):
        commit_testbed.write("a.py", f"{number % 10}\n")
        commit_testbed.commit(ann, "a.py", may_undo=True)
        assert commit_testbed.git("show", "HEAD:a.py") == f"{number % 10}\n"


def test_a_linked_worktree_commits_on_its_own_branch(commit_testbed: CommitTestbed, tmp_path: Path) -> None:
    other = tmp_path / "other"
    commit_testbed.git("worktree", "add", "--quiet", "-b", "landlane/T7-2/work", str(other))
    ann = commit_testbed.agent("ann", "a.py")
    commit_testbed.write("a.py", at=other)

    made = commit_testbed.commit(ann, "a.py", at=other)

    assert made.branch == "landlane/T7-2/work"
    assert made.trailers.task == "T7"
    assert commit_testbed.git("status", "--porcelain", at=other) == ""
    assert commit_testbed.git("log", "--oneline", "main").count("\n") == 1


def test_a_commit_in_a_clone_is_fetched_into_the_repository(
    commit_testbed: CommitTestbed, tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    commit_testbed.git("clone", "--quiet", str(commit_testbed.root), str(clone))
    commit_testbed.git("checkout", "--quiet", "-b", "landlane/T7-1/work", at=clone)
    (clone / ".git" / HOME_POINTER).write_text(f"{commit_testbed.root / '.git'}\n", encoding="utf-8")
    ann = commit_testbed.agent("ann", "a.py")
    commit_testbed.write("a.py", at=clone)

    made = commit_testbed.commit(ann, "a.py", at=clone)

    assert commit_testbed.git("rev-parse", "landlane/T7-1/work").strip() == made.commit
    assert commit_testbed.git("log", "--oneline", "main").count("\n") == 1
    assert commit_testbed.messages == []


def test_trailers_name_agent_session_task_and_every_token(commit_testbed: CommitTestbed) -> None:
    ann = commit_testbed.agent("ann")
    tokens = [ann.take("a.py").token, ann.take("b.py", task="T3").token]
    commit_testbed.write("a.py")
    commit_testbed.write("b.py")

    made = commit_testbed.commit(
        ann, "a.py", "b.py", message="fix: two files\n\nBecause.\n\nSigned-off-by: Ada <a@b>"
    )

    assert commit_testbed.message() == (
        "fix: two files\n\nBecause.\n\nSigned-off-by: Ada <a@b>\nLandlane-Agent: ann\n"
        f"Landlane-Session: {ann.session.id}\nLandlane-Task: T3\n"
        f"Landlane-Token: {tokens[0]}\nLandlane-Token: {tokens[1]}\n\n"
    )
    assert made.trailers.tokens == tuple(tokens)
    last = ann.repo.git.last_change("a.py")
    assert (last["agent"], last["session"], last["task"]) == ("ann", ann.session.id, "T3")
    assert last["tokens"] == tokens
    assert (
        commit_testbed.git("log", "-1", "--format=%(trailers:key=Landlane-Agent,valueonly)").strip() == "ann"
    )


def test_a_given_task_takes_precedence(commit_testbed: CommitTestbed) -> None:
    ann = commit_testbed.agent("ann", "a.py", task="T3")
    commit_testbed.write("a.py")

    assert commit_testbed.commit(ann, "a.py", task="T8").trailers.task == "T8"


def test_a_users_trailer_settings_move_nothing(commit_testbed: CommitTestbed) -> None:
    commit_testbed.git("config", "trailer.where", "start")
    commit_testbed.git("config", "trailer.ifexists", "doNothing")
    ann = commit_testbed.agent("ann")
    tokens = (ann.take("a.py").token, ann.take("b.py").token)
    commit_testbed.write("a.py")
    commit_testbed.write("b.py")

    assert commit_testbed.commit(ann, "a.py", "b.py").trailers.tokens == tokens


def test_the_journal_records_the_commit(commit_testbed: CommitTestbed) -> None:
    ann = commit_testbed.agent("ann", "a.py", task="T3")
    commit_testbed.write("a.py")

    made = commit_testbed.commit(ann, "a.py")

    entry = list(journal.read_entries(ann.repo))[-1]
    facts = entry.facts()
    assert (entry.kind, entry.agent) == ("commit.made", "ann")
    assert (facts["commit"], facts["branch"], facts["paths"]) == (made.commit, "main", ["a.py"])
    assert (facts["task"], facts["tokens"]) == ("T3", list(made.trailers.tokens))
