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
from tests.support.rescue import tree_of
from tests.support.workspaces import KINDS, Yard, commit_file

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.integration

kinds = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def yard(repository: Path) -> Iterator[Yard]:
    commit_file(repository, "lines.txt", "".join(f"{number}\n" for number in range(30)))
    yard = Yard(repository)
    yield yard
    yard.end()


def save(yard: Yard, place: str | Path, agent: str = "ann", message: str = "") -> str:
    return stashes.save(yard.site(agent, place), yard.session(agent), message).id


def restore(yard: Yard, place: str | Path, agent: str = "ann", stash: str = "") -> tuple[str, ...]:
    return stashes.restore(yard.site(agent, place), stash)[1]


def status(place: str | Path) -> str:
    return git(place, "status", "--porcelain=v2", "-z")


@pytest.mark.promise("stash.own-content", "Changes stashed in one checkout never reappear in another.")
@pytest.mark.slow
@kinds
def test_each_gets_its_own_content_back(yard: Yard, kind: str) -> None:
    ann, bob = yard.open(kind=kind).workspace.path, yard.open(kind=kind, agent="bob").workspace.path
    places = {"ann": Path(ann), "bob": Path(bob), "main": yard.repository}
    for agent, place in places.items():
        (place / "README.md").write_text(f"by {agent}\n")
        (place / f"{agent}.txt").write_text(f"new by {agent}\n")
        save(yard, place, agent)
        assert status(place) == ""
        assert not (place / f"{agent}.txt").exists()

    for agent, place in places.items():
        restore(yard, place, agent)
        assert (place / "README.md").read_text() == f"by {agent}\n"
        assert (place / f"{agent}.txt").read_text() == f"new by {agent}\n"
    for agent, place in places.items():
        assert stashes.put_aside(yard.site(agent, place)) == []


@pytest.mark.slow
@kinds
def test_nothing_saved_is_nothing_to_restore(yard: Yard, kind: str) -> None:
    ann, bob = yard.open(kind=kind).workspace.path, yard.open(kind=kind, agent="bob").workspace.path
    Path(bob, "README.md").write_text("by bob\n")
    save(yard, bob, "bob")

    with pytest.raises(LandlaneError) as nothing_to_save:
        save(yard, ann)
    with pytest.raises(LandlaneError) as nothing_to_restore:
        restore(yard, ann)

    assert nothing_to_save.value.code == "NOTHING_TO_SAVE"
    assert nothing_to_restore.value.code == "NOTHING_TO_RESTORE"
    assert status(ann) == ""


@pytest.mark.slow
@kinds
def test_all_of_it_comes_back_as_it_was(yard: Yard, kind: str) -> None:
    place = Path(yard.open(kind=kind).workspace.path)
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
    before, index = tree_of(str(place)), git(place, "ls-files", "--stage", "-z")
    seen = status(place)

    stash = save(yard, place, message="all sorts")
    assert status(place) == ""
    yard.gc()
    (known,) = stashes.put_aside(yard.site(at=place))
    assert (known.id, known.facts["reason"]) == (stash, "all sorts")
    restore(yard, place)

    assert tree_of(str(place)) == before
    assert git(place, "ls-files", "--stage", "-z") == index
    assert status(place) == seen


def test_the_last_one_comes_back_first_and_any_by_its_id(yard: Yard) -> None:
    place = Path(yard.open().workspace.path)
    (place / "one.txt").write_text("1\n")
    first = save(yard, place)
    (place / "two.txt").write_text("2\n")
    save(yard, place)

    restore(yard, place)
    assert (place / "two.txt").exists()
    (place / "two.txt").unlink()
    restore(yard, place, stash=first)
    assert (place / "one.txt").exists()


def test_another_checkouts_stash_is_not_restored_here(yard: Yard) -> None:
    ann, bob = yard.open().workspace.path, yard.open(agent="bob").workspace.path
    Path(bob, "README.md").write_text("by bob\n")
    stash = save(yard, bob, "bob")

    with pytest.raises(LandlaneError) as raised:
        restore(yard, ann, stash=stash)

    assert raised.value.code == "NOTHING_TO_RESTORE"


@kinds
def test_a_dirty_checkout_is_not_restored_into(yard: Yard, kind: str) -> None:
    place = Path(yard.open(kind=kind).workspace.path)
    (place / "README.md").write_text("first\n")
    save(yard, place)
    (place / "README.md").write_text("second\n")

    with pytest.raises(LandlaneError) as raised:
        restore(yard, place)

    assert raised.value.code == "CHECKOUT_DIRTY"
    assert (place / "README.md").read_text() == "second\n"


def claim(yard: Yard, path: str, agent: str) -> None:
    repo = yard.repo(agent)
    request = claims.make_request(repo, (repo.git.pattern_of(path, "glob"),))
    assert isinstance(claims.take(repo, yard.session(agent), request), Taken)


def test_in_a_shared_checkout_the_changes_of_others_stay(yard: Yard) -> None:
    claim(yard, "*.txt", "bob")
    (yard.repository / "lines.txt").write_text("by bob\n")
    (yard.repository / "README.md").write_text("by ann\n")

    with pytest.raises(Held) as raised:
        save(yard, yard.repository)

    assert (raised.value.exit_code, raised.value.facts["holder"]) == (3, "bob")
    assert (yard.repository / "lines.txt").read_text() == "by bob\n"


def test_in_a_shared_checkout_own_claims_are_no_hindrance(yard: Yard) -> None:
    claim(yard, "lines.txt", "ann")
    claim(yard, "other/**", "bob")
    (yard.repository / "lines.txt").write_text("by ann\n")

    save(yard, yard.repository)
    restore(yard, yard.repository)

    assert (yard.repository / "lines.txt").read_text() == "by ann\n"


@kinds
def test_in_a_workspace_of_ones_own_the_claims_of_others_do_not_matter(yard: Yard, kind: str) -> None:
    claim(yard, "README.md", "bob")
    place = Path(yard.open(kind=kind).workspace.path)
    (place / "README.md").write_text("tried in my own workspace\n")

    assert save(yard, place)


@pytest.mark.slow
@kinds
def test_after_head_moved_changes_are_merged(yard: Yard, kind: str) -> None:
    place = Path(yard.open(kind=kind).workspace.path)
    text = (place / "lines.txt").read_text()
    (place / "lines.txt").write_text(text.replace("2\n", "two\n", 1))
    git(place, "add", "lines.txt")
    (place / "lines.txt").write_text(text.replace("2\n", "two\n", 1).replace("5\n", "five\n", 1))
    (place / "new.txt").write_text("new\n")
    save(yard, place)
    commit_file(place, "lines.txt", text.replace("27\n", "twenty-seven\n"))

    notes = restore(yard, place)

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
    assert stashes.put_aside(yard.site(at=place)) == []
    assert len(git(yard.repository, "worktree", "list").splitlines()) == (2 if kind == "worktree" else 1)


@pytest.mark.slow
@kinds
def test_after_head_moved_a_conflict_touches_nothing(yard: Yard, kind: str) -> None:
    place = Path(yard.open(kind=kind).workspace.path)
    (place / "README.md").write_text("mine\n")
    stash = save(yard, place)
    commit_file(place, "README.md", "theirs\n")

    with pytest.raises(LandlaneError) as raised:
        restore(yard, place)

    assert raised.value.code == "MOVED_MEANWHILE"
    assert raised.value.facts["paths"] == ["README.md"]
    assert stash in raised.value.hint
    assert status(place) == ""
    assert [one.id for one in stashes.put_aside(yard.site(at=place))] == [stash]


def test_in_the_middle_of_a_merge_nothing_is_put_aside(yard: Yard) -> None:
    place = Path(yard.open().workspace.path)
    commit_file(place, "README.md", "ours\n")
    git(place, "checkout", "--quiet", "-b", "side", "HEAD~1")
    commit_file(place, "README.md", "theirs\n")
    git(place, "merge", "-", is_checked=False)

    with pytest.raises(NotAllowed) as raised:
        save(yard, place)

    assert raised.value.code == "OPERATION_IN_PROGRESS"


@pytest.mark.slow
@kinds
def test_what_is_put_aside_outlives_its_workspace(yard: Yard, kind: str) -> None:
    workspace = yard.open(kind=kind).workspace
    Path(workspace.path, "README.md").write_text("put aside\n")
    stash = save(yard, workspace.path)
    yard.close(workspace)
    yard.gc()

    from landlane.rescue.restore import restore as bring_back

    again = bring_back(yard.site(), yard.session(), stash, "", str(yard.repository.with_name("again")))
    assert Path(again.path, "README.md").read_text() == "put aside\n"


def test_checkouts_within_the_main_one_are_neither_saved_nor_removed(yard: Yard) -> None:
    main = yard.repository
    git(main, "worktree", "add", "--quiet", "-b", "side", ".claude/wt")
    inner = main / ".claude/wt"
    lone = commit_file(inner, "inner.txt", "committed in there\n")
    (inner / "loose.txt").write_text("loose in there\n")
    workspace = Path(yard.open(kind="clone").workspace.path)
    (workspace / "loose.txt").write_text("loose in the clone\n")
    os.rename(workspace, main / ".claude/clone")
    git(main, "worktree", "add", "--quiet", "--detach", "top-wt")
    (main / "README.md").write_text("changed\n")
    (main / ".claude/note.txt").write_text("note\n")

    save(yard, main)

    assert git(main, "diff", "HEAD") == ""
    assert not (main / ".claude/note.txt").exists()
    assert git(inner, "rev-parse", "HEAD").strip() == lone
    assert (inner / "loose.txt").read_text() == "loose in there\n"
    assert (main / ".claude/clone/loose.txt").read_text() == "loose in the clone\n"
    assert git(main / ".claude/clone", "status", "--porcelain") == "?? loose.txt\n"
    assert git(main / "top-wt", "status", "--porcelain") == ""

    restore(yard, main)

    assert (main / "README.md").read_text() == "changed\n"
    assert (main / ".claude/note.txt").read_text() == "note\n"
    assert (inner / "loose.txt").read_text() == "loose in there\n"


@kinds
def test_what_is_written_while_it_is_saved_stays(
    yard: Yard, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Path(yard.open(kind=kind).workspace.path)
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
    save(yard, place)

    assert git(place, "status", "--porcelain", "-uall") == " M lines.txt\n?? new/both.txt\n?? new/late.txt\n"
    assert (place / "new/both.txt").read_text() == (place / "lines.txt").read_text() == "late\n"


@pytest.mark.slow
@kinds
def test_files_in_the_place_of_folders_and_folders_in_the_place_of_files(yard: Yard, kind: str) -> None:
    commit_file(yard.repository, "folder/deep/file.txt", "file\n")
    place = Path(yard.open(kind=kind).workspace.path)
    (place / "lines.txt").unlink()
    (place / "lines.txt/a/b").mkdir(parents=True)
    (place / "lines.txt/a/b/c.txt").write_text("c\n")
    (place / "folder/deep/file.txt").unlink()
    (place / "folder/deep").rmdir()
    (place / "folder/deep").symlink_to("..")
    (place / "empty/inner").mkdir(parents=True)
    before = tree_of(str(place))

    save(yard, place)

    assert status(place) == ""
    assert (place / "lines.txt").is_file()
    assert (place / "folder/deep/file.txt").read_text() == "file\n"
    assert not (place / "empty").exists()
    restore(yard, place)
    assert tree_of(str(place)) == before


def test_a_folder_in_which_somebody_stands_is_not_made_anew(yard: Yard) -> None:
    commit_file(yard.repository, "src/only.txt", "only\n")
    place = Path(yard.open().workspace.path)
    (place / "src/only.txt").write_text("changed\n")
    before = (place / "src").stat().st_ino

    save(yard, place)

    assert (place / "src").stat().st_ino == before
    assert (place / "src/only.txt").read_text() == "only\n"


@pytest.mark.slow
@kinds
@pytest.mark.parametrize("is_moved", [False, True])
def test_submodules_stay_as_they_are_and_hinder_nobody(
    yard: Yard, tmp_path: Path, kind: str, is_moved: bool
) -> None:
    module = tmp_path / "module"
    git(tmp_path, "init", "--quiet", str(module))
    commit_file(module, "code.txt", "code\n")
    git(yard.repository, "submodule", "--quiet", "add", str(module), "vendor/module")
    git(yard.repository, "commit", "--quiet", "-m", "With a submodule")
    place = Path(yard.open(kind=kind).workspace.path)
    inner = place / "vendor/module"
    if is_moved:
        commit_file(inner, "own.txt", "own\n")
        git(place, "add", "vendor/module")
    (inner / "code.txt").write_text("changed in the submodule\n")
    (place / "README.md").write_text("changed\n")
    seen = status(place)

    save(yard, place)
    assert (place / "README.md").read_text() != "changed\n"
    assert (inner / "code.txt").read_text() == "changed in the submodule\n"
    restore(yard, place)

    assert status(place) == seen
    assert (inner / "code.txt").read_text() == "changed in the submodule\n"


@pytest.mark.slow
@pytest.mark.parametrize("is_moved", [False, True])
def test_a_git_stash_of_a_clone_hinders_nobody_and_stays(yard: Yard, is_moved: bool) -> None:
    place = Path(yard.open(kind="clone").workspace.path)
    (place / "README.md").write_text("in the stash of git\n")
    git(place, "stash", "--quiet")
    git(place, "branch", "gone-later")
    (place / "README.md").write_text("put aside\n")

    save(yard, place)
    git(place, "branch", "--quiet", "-D", "gone-later")
    (place / "lines.txt").write_text("a second one\n")
    git(place, "stash", "--quiet")
    if is_moved:
        commit_file(place, "more.txt", "more\n")
    stashed = git(place, "stash", "list", "--format=%H")
    restore(yard, place)

    assert (place / "README.md").read_text() == "put aside\n"
    assert git(place, "stash", "list", "--format=%H") == stashed
    assert "gone-later" not in git(place, "branch", "--list")


def test_staged_files_whose_line_ends_git_converts_come_back_byte_for_byte(yard: Yard) -> None:
    place = yard.repository
    git(place, "config", "core.autocrlf", "true")
    (place / "lines.txt").write_bytes(b"one\r\nstaged\r\n")
    (place / "new.txt").write_bytes(b"new\r\n")
    git(place, "add", "lines.txt", "new.txt")
    before, seen = tree_of(str(place)), status(place)

    save(yard, place)
    assert status(place) == ""
    restore(yard, place)

    assert tree_of(str(place)) == before
    assert status(place) == seen
