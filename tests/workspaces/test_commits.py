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
from tests.support.committing import Crew, refuse

pytestmark = pytest.mark.integration


def test_only_the_named_paths_are_committed_and_what_others_staged_stays_staged(crew: Crew) -> None:
    ann = crew.agent("ann", "mine.py", "README.md")
    crew.write("mine.py")
    crew.write("README.md", "changed\n")
    crew.write("theirs.py")
    crew.git("add", "theirs.py")

    made = crew.commit(ann, "mine.py", "README.md")

    assert crew.paths_of(made.commit) == ["README.md", "mine.py"]
    assert made.paths == ("README.md", "mine.py")
    assert made.branch == "main"
    assert made.left_alone == 1
    assert crew.status() == "A  theirs.py\n"


def test_a_staged_change_of_a_named_path_is_committed_as_it_is_on_disk(crew: Crew) -> None:
    ann = crew.agent("ann", "README.md")
    crew.write("README.md", "staged\n")
    crew.git("add", "README.md")
    crew.write("README.md", "on disk\n")

    crew.commit(ann, "README.md")

    assert crew.git("show", "HEAD:README.md") == "on disk\n"
    assert crew.status() == ""


def test_what_was_staged_by_others_is_not_committed_even_if_it_is_a_deletion_or_a_rename(crew: Crew) -> None:
    crew.land("old.py", "1\n")
    ann = crew.agent("ann", "mine.py")
    crew.write("mine.py")
    crew.git("rm", "--quiet", "README.md")
    crew.git("mv", "old.py", "new.py")

    made = crew.commit(ann, "mine.py")

    assert crew.paths_of() == ["mine.py"]
    assert made.left_alone == 3
    assert crew.status() == "R  old.py -> new.py\nD  README.md\n" or "D  README.md" in crew.status()


def test_deletions_and_both_ends_of_a_rename_are_committed(crew: Crew) -> None:
    crew.land("old.py", "1\n")
    crew.land("gone.py", "2\n")
    ann = crew.agent("ann", "old.py", "new.py", "gone.py")
    crew.git("mv", "old.py", "new.py")
    (crew.root / "gone.py").unlink()
    crew.land("last.py", "3\n")

    crew.commit(ann, "old.py", "new.py", "gone.py")

    assert sorted(crew.paths_of()) == ["gone.py", "new.py", "old.py"]
    assert crew.status() == ""


def test_a_folder_means_all_that_changed_below_it_but_nothing_ignored(crew: Crew) -> None:
    crew.land(".gitignore", "*.log\n")
    crew.land("src/gone.py", "1\n")
    crew.land("other.py", "1\n")
    ann = crew.agent("ann", "src/**")
    (crew.root / "src/gone.py").unlink()
    crew.write("src/deep/new.py")
    crew.write("src/deep/noise.log")
    crew.write("beside.py")

    made = crew.commit(ann, "src")

    assert made.paths == ("src/deep/new.py", "src/gone.py")
    assert crew.status() == "?? beside.py\n"


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
def test_odd_names_are_taken_as_they_are(crew: Crew, name: str) -> None:
    ann = crew.agent("ann", ".")
    crew.write(name)
    crew.write("plain.py")

    made = crew.commit(ann, f"./{name}")

    assert crew.paths_of() == [name]
    assert made.paths == (name,)


def test_a_name_that_is_no_text_is_judged_by_its_folder(crew: Crew) -> None:
    ann = crew.agent("ann", "data")
    name = os.fsdecode(b"data/\xff\xfe")
    (crew.root / "data").mkdir()
    (crew.root / name).write_bytes(b"1")

    assert crew.commit(ann, "data").paths == (name,)


def test_paths_count_from_the_folder_one_stands_in(crew: Crew) -> None:
    ann = crew.agent("ann", "src/a.py", "b.py")
    crew.write("src/a.py")
    crew.write("b.py")

    made = crew.commit(ann, "a.py", ":/b.py", at=crew.root / "src")

    assert made.paths == ("b.py", "src/a.py")


def test_of_a_link_the_link_itself_is_committed(crew: Crew) -> None:
    ann = crew.agent("ann", "[l]ink", "out")
    (crew.root / "link").symlink_to("README.md")
    (crew.root / "out").symlink_to("/nowhere")

    made = crew.commit(ann, "link", "out")

    assert made.paths == ("link", "out")
    assert crew.git("show", "HEAD:link") == "README.md"


def test_the_hint_for_an_unclaimed_link_leads_to_the_link(crew: Crew) -> None:
    ann = crew.agent("ann", "README.md")
    (crew.root / "link").symlink_to("README.md")

    with refuse(NotAllowed, "NOT_CLAIMED") as refused:
        crew.commit(ann, "link")

    assert "':/[l]ink'" in refused.value.hint


def test_the_first_commit_of_all(crew: Crew) -> None:
    crew.git("checkout", "--quiet", "--orphan", "fresh")
    ann = crew.agent("ann", "first.py")
    crew.write("first.py")

    made = crew.commit(ann, "first.py")

    assert crew.git("rev-list", "HEAD").split() == [made.commit]
    assert made.branch == "fresh"
    assert crew.paths_of() == ["first.py"]
    assert crew.status() == "A  README.md\n"


def test_a_detached_head_moves_on(crew: Crew) -> None:
    crew.git("checkout", "--quiet", "--detach")
    ann = crew.agent("ann", "a.py")
    crew.write("a.py")

    made = crew.commit(ann, "a.py")

    assert made.branch == ""
    assert crew.head() == made.commit
    assert crew.git("rev-parse", "main").strip() != made.commit


def test_a_submodule_that_moved_on_is_committed(crew: Crew, tmp_path: Path) -> None:
    crew.git("init", "--quiet", str(tmp_path / "lib"))
    crew.git("commit", "--quiet", "--allow-empty", "-m", "1", at=tmp_path / "lib")
    crew.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "lib"), "lib")
    crew.git("commit", "--quiet", "-m", "Add lib")
    crew.git("commit", "--quiet", "--allow-empty", "-m", "2", at=crew.root / "lib")
    ann = crew.agent("ann", "lib")

    assert crew.commit(ann, "lib").paths == ("lib",)
    assert crew.status() == ""


def test_a_repository_inside_is_not_swept_in_with_its_folder(crew: Crew) -> None:
    ann = crew.agent("ann", "vendor")
    crew.write("vendor/a.py")
    crew.git("init", "--quiet", "vendor/inner")
    crew.git("commit", "--quiet", "--allow-empty", "-m", "1", at=crew.root / "vendor/inner")

    assert crew.commit(ann, "vendor").paths == ("vendor/a.py",)


def test_a_file_may_become_a_folder_and_a_folder_a_file(crew: Crew) -> None:
    crew.land("a", "1\n")
    crew.land("b/c", "1\n")
    crew.land("later.py", "1\n")
    ann = crew.agent("ann", ".")
    (crew.root / "a").unlink()
    crew.write("a/deep.py")
    (crew.root / "b/c").unlink()
    (crew.root / "b").rmdir()
    crew.write("b")

    assert sorted(crew.commit(ann, "a", "b").paths) == ["a", "a/deep.py", "b", "b/c"]
    assert crew.status() == ""


def test_what_others_only_mean_to_add_or_have_not_merged_stays_so(crew: Crew) -> None:
    crew.write("README.md", "stashed\n")
    crew.git("stash", "--quiet")
    crew.land("README.md", "landed\n")
    subprocess.run(["git", "stash", "pop", "--quiet"], cwd=crew.root, capture_output=True, timeout=30)
    crew.write("later.py")
    crew.git("add", "--intent-to-add", "later.py")
    ann = crew.agent("ann", "a.py", "b.py")
    crew.write("a.py")
    crew.write("b.py")
    crew.git("add", "--intent-to-add", "b.py")
    before = crew.git("ls-files", "--unmerged")

    assert crew.commit(ann, "a.py", "b.py").paths == ("a.py", "b.py")
    assert crew.git("ls-files", "--unmerged") == before != ""
    assert crew.status() == "UU README.md\n A later.py\n"


def test_a_sparse_checkout_keeps_what_it_does_not_show(crew: Crew) -> None:
    crew.land("shown/a.py", "1\n")
    crew.land("hidden/b.py", "1\n")
    crew.git("sparse-checkout", "set", "shown")
    ann = crew.agent("ann", "shown")
    crew.write("shown/a.py", "2\n")

    assert crew.commit(ann, ".").paths == ("shown/a.py",)
    assert "hidden/b.py" in crew.git("ls-tree", "-r", "--name-only", "HEAD")
    assert crew.status() == ""


@pytest.mark.slow
def test_a_file_changed_in_the_instant_the_index_was_written_is_seen(crew: Crew) -> None:
    ann = crew.agent("ann", "a.py")
    for number in range(20):
        crew.write("a.py", f"{number % 10}\n")
        crew.commit(ann, "a.py", may_undo=True)
        assert crew.git("show", "HEAD:a.py") == f"{number % 10}\n"


def test_a_linked_worktree_commits_on_its_own_branch(crew: Crew, tmp_path: Path) -> None:
    other = tmp_path / "other"
    crew.git("worktree", "add", "--quiet", "-b", "landlane/T7-2/work", str(other))
    ann = crew.agent("ann", "a.py")
    crew.write("a.py", at=other)

    made = crew.commit(ann, "a.py", at=other)

    assert made.branch == "landlane/T7-2/work"
    assert made.trailers.task == "T7"
    assert crew.git("status", "--porcelain", at=other) == ""
    assert crew.git("log", "--oneline", "main").count("\n") == 1


def test_a_clone_commits_with_its_own_repository_and_its_branch_comes_home(
    crew: Crew, tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    crew.git("clone", "--quiet", str(crew.root), str(clone))
    crew.git("checkout", "--quiet", "-b", "landlane/T7-1/work", at=clone)
    (clone / ".git" / HOME_POINTER).write_text(f"{crew.root / '.git'}\n", encoding="utf-8")
    ann = crew.agent("ann", "a.py")
    crew.write("a.py", at=clone)

    made = crew.commit(ann, "a.py", at=clone)

    assert crew.git("rev-parse", "landlane/T7-1/work").strip() == made.commit
    assert crew.git("log", "--oneline", "main").count("\n") == 1
    assert crew.told == []


def test_trailers_tell_agent_session_task_and_every_token(crew: Crew) -> None:
    ann = crew.agent("ann")
    tokens = [ann.take("a.py").token, ann.take("b.py", task="T3").token]
    crew.write("a.py")
    crew.write("b.py")

    made = crew.commit(ann, "a.py", "b.py", message="fix: two files\n\nBecause.\n\nSigned-off-by: Ada <a@b>")

    assert crew.message() == (
        "fix: two files\n\nBecause.\n\nSigned-off-by: Ada <a@b>\nLandlane-Agent: ann\n"
        f"Landlane-Session: {ann.session.id}\nLandlane-Task: T3\n"
        f"Landlane-Token: {tokens[0]}\nLandlane-Token: {tokens[1]}\n\n"
    )
    assert made.trailers.tokens == tuple(tokens)
    last = ann.repo.git.last_change("a.py")
    assert (last["agent"], last["session"], last["task"]) == ("ann", ann.session.id, "T3")
    assert last["tokens"] == tokens
    assert crew.git("log", "-1", "--format=%(trailers:key=Landlane-Agent,valueonly)").strip() == "ann"


def test_the_task_given_counts_before_all_others(crew: Crew) -> None:
    ann = crew.agent("ann", "a.py", task="T3")
    crew.write("a.py")

    assert crew.commit(ann, "a.py", task="T8").trailers.task == "T8"


def test_a_users_trailer_settings_move_nothing(crew: Crew) -> None:
    crew.git("config", "trailer.where", "start")
    crew.git("config", "trailer.ifexists", "doNothing")
    ann = crew.agent("ann")
    tokens = (ann.take("a.py").token, ann.take("b.py").token)
    crew.write("a.py")
    crew.write("b.py")

    assert crew.commit(ann, "a.py", "b.py").trailers.tokens == tokens


def test_the_journal_tells_of_the_commit(crew: Crew) -> None:
    ann = crew.agent("ann", "a.py", task="T3")
    crew.write("a.py")

    made = crew.commit(ann, "a.py")

    entry = list(journal.read_entries(ann.repo))[-1]
    facts = entry.facts()
    assert (entry.kind, entry.agent) == ("commit.made", "ann")
    assert (facts["commit"], facts["branch"], facts["paths"]) == (made.commit, "main", ["a.py"])
    assert (facts["task"], facts["tokens"]) == ("T3", list(made.trailers.tokens))
