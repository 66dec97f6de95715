"""Putting changes aside and bringing them back: each checkout has its own, whatever others do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.claims import take as claims
from landlane.claims.model import Taken
from landlane.errors import Held, LandlaneError, NotAllowed
from landlane.workspaces import stash as stashes
from tests.support.git import git
from tests.support.rescue import read_tree
from tests.support.workspaces import KINDS, WorkspaceTestbed, commit_file

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.integration

kinds = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def testbed(repository: Path) -> Iterator[WorkspaceTestbed]:
    commit_file(repository, "lines.txt", "".join(f"{number}\n" for number in range(30)))
    testbed = WorkspaceTestbed(repository)
    yield testbed
    testbed.end()


def save(testbed: WorkspaceTestbed, place: str | Path, agent: str = "ann", message: str = "") -> str:
    return stashes.save(testbed.prepared_repo(agent, place), testbed.session(agent), message).id


def restore(
    testbed: WorkspaceTestbed, place: str | Path, agent: str = "ann", stash: str = ""
) -> tuple[str, ...]:
    return stashes.restore(testbed.prepared_repo(agent, place), testbed.session(agent), stash)[1]


def status(place: str | Path) -> str:
    return git(place, "status", "--porcelain=v2", "-z")


@pytest.mark.promise("stash.own-content", "Changes stashed in one checkout never reappear in another.")
@pytest.mark.slow
@kinds
def test_each_gets_its_own_content_back(testbed: WorkspaceTestbed, kind: str) -> None:
    ann, bob = testbed.open(kind=kind).workspace.path, testbed.open(kind=kind, agent="bob").workspace.path
    places = {"ann": Path(ann), "bob": Path(bob), "main": testbed.repository}
    for agent, place in places.items():
        (place / "README.md").write_text(f"by {agent}\n")
        (place / f"{agent}.txt").write_text(f"new by {agent}\n")
        save(testbed, place, agent)
        assert status(place) == ""
        assert not (place / f"{agent}.txt").exists()

    for agent, place in places.items():
        restore(testbed, place, agent)
        assert (place / "README.md").read_text() == f"by {agent}\n"
        assert (place / f"{agent}.txt").read_text() == f"new by {agent}\n"
    for agent, place in places.items():
        assert stashes.list_stashes(testbed.prepared_repo(agent, place)) == []


@pytest.mark.slow
@kinds
def test_restoring_without_a_stash_is_refused(testbed: WorkspaceTestbed, kind: str) -> None:
    ann, bob = testbed.open(kind=kind).workspace.path, testbed.open(kind=kind, agent="bob").workspace.path
    Path(bob, "README.md").write_text("by bob\n")
    save(testbed, bob, "bob")

    with pytest.raises(LandlaneError) as nothing_to_save:
        save(testbed, ann)
    with pytest.raises(LandlaneError) as nothing_to_restore:
        restore(testbed, ann)

    assert nothing_to_save.value.code == "NOTHING_TO_SAVE"
    assert nothing_to_restore.value.code == "NOTHING_TO_RESTORE"
    assert status(ann) == ""


@pytest.mark.slow
@kinds
def test_everything_is_restored_as_it_was(testbed: WorkspaceTestbed, kind: str) -> None:
    place = Path(testbed.open(kind=kind).workspace.path)
    (place / "README.md").write_text("staged\n")
    git(place, "add", "README.md")
    (place / "README.md").write_text("staged, then changed\n")
    (place / "lines.txt").unlink()
    (place / "run.sh").write_text("#!/bin/sh\n")
    (place / "run.sh").chmod(0o755)
    (place / "link").symlink_to("nowhere")
    (place / "odd\nname ü").write_text("odd\n")
    Path(os.fsdecode(os.fsencode(place) + b"/not-\xff-utf8")).write_text("bytes\n")
    (place / "deep/er").mkdir(parents=True)
    (place / "deep/er/file").write_text("deep\n")
    before, index = read_tree(str(place)), git(place, "ls-files", "--stage", "-z")
    seen = status(place)

    stash = save(testbed, place, message="all sorts")
    assert status(place) == ""
    testbed.gc()
    (known,) = stashes.list_stashes(testbed.prepared_repo(at=place))
    assert (known.id, known.facts["reason"]) == (stash, "all sorts")
    restore(testbed, place)

    assert read_tree(str(place)) == before
    assert git(place, "ls-files", "--stage", "-z") == index
    assert status(place) == seen


def test_the_newest_stash_is_restored_first_and_any_by_its_id(testbed: WorkspaceTestbed) -> None:
    place = Path(testbed.open().workspace.path)
    (place / "one.txt").write_text("1\n")
    first = save(testbed, place)
    (place / "two.txt").write_text("2\n")
    save(testbed, place)

    restore(testbed, place)
    assert (place / "two.txt").exists()
    (place / "two.txt").unlink()
    restore(testbed, place, stash=first)
    assert (place / "one.txt").exists()


def test_another_checkouts_stash_is_not_restored_here(testbed: WorkspaceTestbed) -> None:
    ann, bob = testbed.open().workspace.path, testbed.open(agent="bob").workspace.path
    Path(bob, "README.md").write_text("by bob\n")
    stash = save(testbed, bob, "bob")

    with pytest.raises(LandlaneError) as raised:
        restore(testbed, ann, stash=stash)

    assert raised.value.code == "NOTHING_TO_RESTORE"


@kinds
def test_a_dirty_checkout_is_not_restored_into(testbed: WorkspaceTestbed, kind: str) -> None:
    place = Path(testbed.open(kind=kind).workspace.path)
    (place / "README.md").write_text("first\n")
    save(testbed, place)
    (place / "README.md").write_text("second\n")

    with pytest.raises(LandlaneError) as raised:
        restore(testbed, place)

    assert raised.value.code == "CHECKOUT_DIRTY"
    assert (place / "README.md").read_text() == "second\n"


def claim(testbed: WorkspaceTestbed, path: str, agent: str) -> None:
    repo = testbed.repo(agent)
    request = claims.make_request(repo, (repo.git.pattern_of(path, "glob"),))
    assert isinstance(claims.take(repo, testbed.session(agent), request), Taken)


def test_in_a_shared_checkout_the_changes_of_others_stay(testbed: WorkspaceTestbed) -> None:
    claim(testbed, "*.txt", "bob")
    (testbed.repository / "lines.txt").write_text("by bob\n")
    (testbed.repository / "README.md").write_text("by ann\n")

    with pytest.raises(Held) as raised:
        save(testbed, testbed.repository)

    assert (raised.value.exit_code, raised.value.facts["holder"]) == (3, "bob")
    assert (testbed.repository / "lines.txt").read_text() == "by bob\n"


@pytest.mark.parametrize("is_moved", [False, True], ids=["same commit", "HEAD moved"])
def test_a_stash_is_not_restored_over_what_others_have_claimed_since(
    testbed: WorkspaceTestbed, is_moved: bool
) -> None:
    (testbed.repository / "lines.txt").write_text("by ann\n")
    saved = save(testbed, testbed.repository)
    before = (testbed.repository / "lines.txt").read_text()
    if is_moved:
        commit_file(testbed.repository, "another.txt", "x\n")
    claim(testbed, "*.txt", "bob")

    with pytest.raises(Held) as raised:
        restore(testbed, testbed.repository)

    assert (raised.value.exit_code, raised.value.facts["holder"]) == (3, "bob")
    assert (testbed.repository / "lines.txt").read_text() == before
    listed = stashes.list_stashes(testbed.prepared_repo("ann", testbed.repository))
    assert [stash.id for stash in listed] == [saved]


@kinds
def test_a_stash_is_not_restored_in_the_workspace_of_another(testbed: WorkspaceTestbed, kind: str) -> None:
    place = Path(testbed.open(kind=kind).workspace.path)
    (place / "README.md").write_text("by ann\n")
    save(testbed, place)

    with pytest.raises(Held) as raised:
        restore(testbed, place, "bob")

    assert raised.value.code == "WORKSPACE_HELD"
    assert restore(testbed, place) == ()
    assert (place / "README.md").read_text() == "by ann\n"


def test_in_a_shared_checkout_own_claims_do_not_block_a_stash(testbed: WorkspaceTestbed) -> None:
    claim(testbed, "lines.txt", "ann")
    claim(testbed, "other/**", "bob")
    (testbed.repository / "lines.txt").write_text("by ann\n")

    save(testbed, testbed.repository)
    restore(testbed, testbed.repository)

    assert (testbed.repository / "lines.txt").read_text() == "by ann\n"


@kinds
def test_in_an_own_workspace_the_claims_of_others_do_not_block_a_stash(
    testbed: WorkspaceTestbed, kind: str
) -> None:
    claim(testbed, "README.md", "bob")
    place = Path(testbed.open(kind=kind).workspace.path)
    (place / "README.md").write_text("tried in my own workspace\n")

    assert save(testbed, place)


@pytest.mark.slow
@kinds
def test_after_head_moved_changes_are_merged(testbed: WorkspaceTestbed, kind: str) -> None:
    place = Path(testbed.open(kind=kind).workspace.path)
    text = (place / "lines.txt").read_text()
    (place / "lines.txt").write_text(text.replace("2\n", "two\n", 1))
    git(place, "add", "lines.txt")
    (place / "lines.txt").write_text(text.replace("2\n", "two\n", 1).replace("5\n", "five\n", 1))
    (place / "new.txt").write_text("new\n")
    save(testbed, place)
    commit_file(place, "lines.txt", text.replace("27\n", "twenty-seven\n"))

    notes = restore(testbed, place)

    assert "merged onto" in notes[0]
    now = (place / "lines.txt").read_text()
    assert "two\n" in now
    assert "five\n" in now
    assert "twenty-seven\n" in now
    staged = git(place, "show", ":lines.txt")
    assert "two\n" in staged
    assert "five\n" not in staged
    assert "twenty-seven\n" in staged
    assert git(place, "status", "--porcelain") == "MM lines.txt\n?? new.txt\n"
    assert stashes.list_stashes(testbed.prepared_repo(at=place)) == []
    assert len(git(testbed.repository, "worktree", "list").splitlines()) == (2 if kind == "worktree" else 1)


@pytest.mark.slow
@kinds
def test_after_head_moved_a_conflict_touches_nothing(testbed: WorkspaceTestbed, kind: str) -> None:
    place = Path(testbed.open(kind=kind).workspace.path)
    (place / "README.md").write_text("mine\n")
    stash = save(testbed, place)
    commit_file(place, "README.md", "theirs\n")

    with pytest.raises(LandlaneError) as raised:
        restore(testbed, place)

    assert raised.value.code == "MOVED_MEANWHILE"
    assert raised.value.facts["paths"] == ["README.md"]
    assert stash in raised.value.hint
    assert status(place) == ""
    assert [one.id for one in stashes.list_stashes(testbed.prepared_repo(at=place))] == [stash]


def test_during_a_merge_nothing_is_stashed(testbed: WorkspaceTestbed) -> None:
    place = Path(testbed.open().workspace.path)
    commit_file(place, "README.md", "ours\n")
    git(place, "checkout", "--quiet", "-b", "side", "HEAD~1")
    commit_file(place, "README.md", "theirs\n")
    git(place, "merge", "-", is_checked=False)

    with pytest.raises(NotAllowed) as raised:
        save(testbed, place)

    assert raised.value.code == "OPERATION_IN_PROGRESS"


@pytest.mark.slow
@kinds
def test_a_stash_outlives_its_workspace(testbed: WorkspaceTestbed, kind: str) -> None:
    workspace = testbed.open(kind=kind).workspace
    Path(workspace.path, "README.md").write_text("put aside\n")
    stash = save(testbed, workspace.path)
    testbed.close(workspace)
    testbed.gc()

    from landlane.rescue.restore import restore as bring_back

    again = bring_back(
        testbed.prepared_repo(), testbed.session(), stash, "", str(testbed.repository.with_name("again"))
    )
    assert Path(again.path, "README.md").read_text() == "put aside\n"


def test_checkouts_within_the_main_one_are_neither_saved_nor_removed(testbed: WorkspaceTestbed) -> None:
    main = testbed.repository
    git(main, "worktree", "add", "--quiet", "-b", "side", ".claude/wt")
    inner = main / ".claude/wt"
    lone = commit_file(inner, "inner.txt", "committed in there\n")
    (inner / "loose.txt").write_text("loose in there\n")
    workspace = Path(testbed.open(kind="clone").workspace.path)
    (workspace / "loose.txt").write_text("loose in the clone\n")
    os.rename(workspace, main / ".claude/clone")
    git(main, "worktree", "add", "--quiet", "--detach", "top-wt")
    (main / "README.md").write_text("changed\n")
    (main / ".claude/note.txt").write_text("note\n")

    save(testbed, main)

    assert git(main, "diff", "HEAD") == ""
    assert not (main / ".claude/note.txt").exists()
    assert git(inner, "rev-parse", "HEAD").strip() == lone
    assert (inner / "loose.txt").read_text() == "loose in there\n"
    assert (main / ".claude/clone/loose.txt").read_text() == "loose in the clone\n"
    assert git(main / ".claude/clone", "status", "--porcelain") == "?? loose.txt\n"
    assert git(main / "top-wt", "status", "--porcelain") == ""

    restore(testbed, main)

    assert (main / "README.md").read_text() == "changed\n"
    assert (main / ".claude/note.txt").read_text() == "note\n"
    assert (inner / "loose.txt").read_text() == "loose in there\n"


@kinds
def test_files_written_during_a_stash_stay(
    testbed: WorkspaceTestbed, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Path(testbed.open(kind=kind).workspace.path)
    (place / "README.md").write_text("early\n")
    (place / "new").mkdir()
    (place / "new/early.txt").write_text("early\n")
    (place / "new/both.txt").write_text("early\n")
    real = stashes.save_checkout

    def slow(*words: object, **named: object) -> str:
        saved = real(*words, **named)  # pyright: ignore[reportArgumentType]
        (place / "new/late.txt").write_text("late\n")
        (place / "new/both.txt").write_text("late\n")
        (place / "lines.txt").write_text("late\n")
        return saved

    monkeypatch.setattr(stashes, "save_checkout", slow)
    save(testbed, place)

    assert git(place, "status", "--porcelain", "-uall") == " M lines.txt\n?? new/both.txt\n?? new/late.txt\n"
    assert (place / "new/both.txt").read_text() == (place / "lines.txt").read_text() == "late\n"


@pytest.mark.slow
@kinds
def test_files_in_the_place_of_folders_and_folders_in_the_place_of_files(
    testbed: WorkspaceTestbed, kind: str
) -> None:
    commit_file(testbed.repository, "folder/deep/file.txt", "file\n")
    place = Path(testbed.open(kind=kind).workspace.path)
    (place / "lines.txt").unlink()
    (place / "lines.txt/a/b").mkdir(parents=True)
    (place / "lines.txt/a/b/c.txt").write_text("c\n")
    (place / "folder/deep/file.txt").unlink()
    (place / "folder/deep").rmdir()
    (place / "folder/deep").symlink_to("..")
    (place / "empty/inner").mkdir(parents=True)
    before = read_tree(str(place))

    save(testbed, place)

    assert status(place) == ""
    assert (place / "lines.txt").is_file()
    assert (place / "folder/deep/file.txt").read_text() == "file\n"
    assert not (place / "empty").exists()
    restore(testbed, place)
    assert read_tree(str(place)) == before


def test_a_folder_with_a_process_in_it_is_not_recreated(testbed: WorkspaceTestbed) -> None:
    commit_file(testbed.repository, "src/only.txt", "only\n")
    place = Path(testbed.open().workspace.path)
    (place / "src/only.txt").write_text("changed\n")
    before = (place / "src").stat().st_ino

    save(testbed, place)

    assert (place / "src").stat().st_ino == before
    assert (place / "src/only.txt").read_text() == "only\n"


@pytest.mark.slow
@kinds
@pytest.mark.parametrize("is_moved", [False, True])
def test_submodules_stay_as_they_are_and_block_nothing(
    testbed: WorkspaceTestbed, tmp_path: Path, kind: str, is_moved: bool
) -> None:
    module = tmp_path / "module"
    git(tmp_path, "init", "--quiet", str(module))
    commit_file(module, "code.txt", "code\n")
    git(testbed.repository, "submodule", "--quiet", "add", str(module), "vendor/module")
    git(testbed.repository, "commit", "--quiet", "-m", "With a submodule")
    place = Path(testbed.open(kind=kind).workspace.path)
    inner = place / "vendor/module"
    if is_moved:
        commit_file(inner, "own.txt", "own\n")
        git(place, "add", "vendor/module")
    (inner / "code.txt").write_text("changed in the submodule\n")
    (place / "README.md").write_text("changed\n")
    seen = status(place)

    save(testbed, place)
    assert (place / "README.md").read_text() != "changed\n"
    assert (inner / "code.txt").read_text() == "changed in the submodule\n"
    restore(testbed, place)

    assert status(place) == seen
    assert (inner / "code.txt").read_text() == "changed in the submodule\n"


@pytest.mark.slow
@pytest.mark.parametrize("is_moved", [False, True])
def test_a_git_stash_of_a_clone_stays_and_blocks_nothing(testbed: WorkspaceTestbed, is_moved: bool) -> None:
    place = Path(testbed.open(kind="clone").workspace.path)
    (place / "README.md").write_text("in the stash of git\n")
    git(place, "stash", "--quiet")
    git(place, "branch", "gone-later")
    (place / "README.md").write_text("put aside\n")

    save(testbed, place)
    git(place, "branch", "--quiet", "-D", "gone-later")
    (place / "lines.txt").write_text("a second one\n")
    git(place, "stash", "--quiet")
    if is_moved:
        commit_file(place, "more.txt", "more\n")
    stashed = git(place, "stash", "list", "--format=%H")
    restore(testbed, place)

    assert (place / "README.md").read_text() == "put aside\n"
    assert git(place, "stash", "list", "--format=%H") == stashed
    assert "gone-later" not in git(place, "branch", "--list")


def test_staged_files_whose_line_ends_git_converts_come_back_byte_for_byte(testbed: WorkspaceTestbed) -> None:
    place = testbed.repository
    git(place, "config", "core.autocrlf", "true")
    (place / "lines.txt").write_bytes(b"one\r\nstaged\r\n")
    (place / "new.txt").write_bytes(b"new\r\n")
    git(place, "add", "lines.txt", "new.txt")
    before, seen = read_tree(str(place)), status(place)

    save(testbed, place)
    assert status(place) == ""
    restore(testbed, place)

    assert read_tree(str(place)) == before
    assert status(place) == seen
