"""Rescues: what a checkout alone has is kept at home, survives gc, and comes back byte for byte."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.errors import Malformed, RepositoryError
from landlane.git.untrusted_checkout import CLONE, MAIN, WORKTREE, UntrustedCheckout
from landlane.rescue.block_gc import block_gc
from landlane.rescue.refs import drop_rescue, find_rescue, list_rescues, pack_rescues
from landlane.rescue.restore import check_clean
from landlane.rescue.scan_checkout import find_unsaved_work
from landlane.rescue.write_rescue import take_rescue
from tests.support.git import git
from tests.support.project import Background
from tests.support.rescue import RescueTestbed, read_checkout_state, read_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.integration

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
KINDS = pytest.mark.parametrize("kind", [WORKTREE, CLONE])
ODD_NAMES = [
    b"new\nline",
    b'quo"te',
    b"-dash",
    "ünïcode ☃".encode(),
    b"\xff\xfe",
    b" space ",
    b"tab\t",
    b"a\\b",
]


@pytest.fixture
def scene() -> Iterator[RescueTestbed]:
    # A rescue is written through to the disk; where there is one in memory, that costs nothing.
    with tempfile.TemporaryDirectory(dir=MEMORY, ignore_cleanup_errors=True) as folder:
        yield RescueTestbed(Path(folder, "scene"))


def write(
    place: UntrustedCheckout, name: str | bytes, content: bytes = b"x\n", mode: int | None = None
) -> None:
    path = os.path.join(os.fsencode(place.root), os.fsencode(name))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)
    if mode is not None:
        os.chmod(path, mode)


def conflict(scene: RescueTestbed, place: UntrustedCheckout, how: str) -> None:
    """Stop in the middle of a merge, rebase, cherry-pick or revert."""
    git(place.root, "checkout", "--quiet", "-b", "theirs")
    write(place, "a.txt", b"one\ntheirs\nthree\n")
    scene.commit(place.root, "theirs")
    git(place.root, "checkout", "--quiet", "-b", "ours", "HEAD~1")
    write(place, "a.txt", b"one\nours\nthree\n")
    scene.commit(place.root, "ours")
    write(place, "c.txt", b"second\n")
    scene.commit(place.root, "second")
    git(place.root, *how.split(), is_checked=False)


@pytest.mark.slow
@KINDS
def test_every_kind_of_change_comes_back_after_gc(scene: RescueTestbed, kind: str) -> None:
    place = scene.open(kind)
    for name in ODD_NAMES:
        write(place, b"odd/" + name, name)
    write(place, "a.txt", b"staged\n")
    git(place.root, "add", "a.txt")
    write(place, "a.txt", b"changed again\n")
    os.unlink(f"{place.root}/sub/b.txt")
    os.chmod(f"{place.root}/run.sh", 0o644)
    os.unlink(f"{place.root}/way")
    os.symlink("/nowhere/at all", f"{place.root}/way")
    os.symlink("../../..", f"{place.root}/out")
    write(place, "secret", b"s", 0o600)
    write(place, "program", b"p", 0o750)
    os.makedirs(f"{place.root}/empty/inner")
    write(place, "x.ignored")
    write(place, "ignored/y")
    write(place, "new/z.ignored")
    git(place.root, "mv", ".gitignore", "ignore.old")
    write(place, ".gitignore", b"*.ignored\nignored/\n")
    scene.check_round_trip(place, "--aggressive")


@pytest.mark.slow
@KINDS
def test_untracked_file_and_detached_commit_come_back(scene: RescueTestbed, kind: str) -> None:
    place = scene.open(kind)
    git(place.root, "checkout", "--quiet", "--detach")
    write(place, "done.txt")
    commit = scene.commit(place.root, "on no branch")
    write(place, "untracked.txt")
    stakes = find_unsaved_work(place)
    assert stakes
    assert (stakes.untracked, stakes.unpushed_commits) == (1, 1)
    fresh, _ = scene.check_round_trip(place, "--aggressive")
    assert git(fresh.root, "rev-parse", "HEAD").strip() == commit


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize(
    "how", ["merge theirs", "rebase theirs", "rebase --apply theirs", "cherry-pick theirs", "revert theirs"]
)
def test_an_operation_in_progress_comes_back(scene: RescueTestbed, kind: str, how: str) -> None:
    place = scene.open(kind)
    conflict(scene, place, how)
    stakes = find_unsaved_work(place)
    assert stakes.operation == how.split(maxsplit=1)[0]
    scene.check_round_trip(place)


@pytest.mark.slow
@KINDS
def test_a_half_finished_rebase_can_be_continued(scene: RescueTestbed, kind: str) -> None:
    place = scene.open(kind)
    conflict(scene, place, "rebase theirs")
    fresh, restored = scene.check_round_trip(place)
    assert restored.branch == ""
    write(fresh, "a.txt", b"one\nboth\nthree\n")
    git(fresh.root, "add", "a.txt")
    git(fresh.root, "rebase", "--continue")
    assert git(fresh.root, "symbolic-ref", "HEAD").strip() == "refs/heads/ours"
    assert git(fresh.root, "log", "--format=%s").split() == ["second", "ours", "theirs", "Begin"]


def test_a_rebase_whose_branch_was_deleted_gets_it_again(scene: RescueTestbed) -> None:
    place = scene.open(WORKTREE)
    conflict(scene, place, "rebase theirs")
    was = git(place.root, "rev-parse", "ours").strip()
    scene.rescue(place)
    scene.close(place)
    git(scene.repository, "branch", "-D", "ours")
    git(scene.repository, "branch", "-D", "theirs")
    scene.gc()
    fresh, _ = scene.restore(WORKTREE)
    assert git(fresh.root, "rev-parse", "ours").strip() == was
    git(fresh.root, "checkout", "--ours", "a.txt")
    git(fresh.root, "add", "a.txt")
    git(fresh.root, "rebase", "--skip")
    assert git(fresh.root, "symbolic-ref", "HEAD").strip() == "refs/heads/ours"


@pytest.mark.slow
@KINDS
def test_bisecting_comes_back(scene: RescueTestbed, kind: str) -> None:
    place = scene.open(kind)
    first = git(place.root, "rev-parse", "HEAD").strip()
    for number in range(6):
        write(place, "n", b"%d" % number)
        scene.commit(place.root, f"n{number}")
    git(place.root, "bisect", "start", "HEAD", first)
    assert find_unsaved_work(place).operation == "bisect"
    fresh, _ = scene.check_round_trip(place)
    assert "is the first bad commit" in git(fresh.root, "bisect", "run", "true") + git(
        fresh.root, "bisect", "log"
    )


@pytest.mark.slow
@KINDS
def test_bytes_that_line_end_rules_hide_come_back(scene: RescueTestbed, kind: str) -> None:
    (scene.repository / ".gitattributes").write_text("*.txt text\n*.bat text eol=crlf\n")
    (scene.repository / "go.bat").write_bytes(b"one\r\ntwo\r\n")
    scene.commit(scene.repository, "rules")
    place = scene.open(kind)
    assert not find_unsaved_work(place)
    write(place, "a.txt", b"one\r\ntwo\r\nthree\r\n")
    write(place, "new.txt", b"crlf\r\n")
    git(place.root, "add", "a.txt", "new.txt")
    git(place.root, "update-index", "--refresh")
    fresh, _ = scene.check_round_trip(place)
    assert Path(fresh.root, "a.txt").read_bytes() == b"one\r\ntwo\r\nthree\r\n"


@pytest.mark.promise(
    "rescues.line-ends",
    "A restored file has the line ends that were saved, also when the rules for them have changed since.",
)
@pytest.mark.parametrize("when", ["before the rescue", "after the rescue"])
@pytest.mark.parametrize(
    ("first", "later"),
    [
        (("core.autocrlf", "false"), ("core.autocrlf", "true")),
        (("core.autocrlf", "true"), ("core.autocrlf", "false")),
        (("core.eol", "lf"), ("core.attributesFile", "ATTRIBUTES")),
    ],
    ids=["set later", "unset later", "attributes later"],
)
@KINDS
@pytest.mark.slow
def test_unchanged_files_keep_their_line_ends_when_the_rules_change(
    scene: RescueTestbed, kind: str, first: tuple[str, str], later: tuple[str, str], when: str, tmp_path: Path
) -> None:
    attributes = tmp_path / "attributes"
    attributes.write_text("*.txt text eol=crlf\n*.py ident\n")

    def set_rules(rules: tuple[str, str], *places: str) -> None:
        for place in (str(scene.repository), *places):
            git(place, "config", rules[0], rules[1].replace("ATTRIBUTES", str(attributes)))

    (scene.repository / "both.txt").write_bytes(b"lf\ncrlf\r\n")
    (scene.repository / "tool.py").write_bytes(b"# $Id$\n")
    (scene.repository / "tool.py").chmod(0o755)
    scene.commit(scene.repository, "more")
    set_rules(first)
    place = scene.open(kind)
    write(place, "new", b"new\n")
    if when == "before the rescue":
        set_rules(later, place.root)
    before = read_tree(place.root)
    scene.rescue(place)
    set_rules(later)
    scene.close(place)

    fresh, _ = scene.restore(kind)

    assert read_tree(fresh.root) == before


@KINDS
def test_bytes_that_a_filter_hides_come_back(scene: RescueTestbed, kind: str) -> None:
    (scene.repository / ".gitattributes").write_text("*.low filter=lower\n")
    (scene.repository / "f.low").write_text("small\n")
    scene.commit(scene.repository, "filter")
    git(scene.repository, "config", "filter.lower.clean", "tr A-Z a-z")
    place = scene.open(kind)
    git(place.root, "config", "filter.lower.clean", "tr A-Z a-z")
    write(place, "f.low", b"SMALL\n")
    git(place.root, "add", "f.low")
    assert git(place.root, "status", "--porcelain") == ""
    write(place, "new")
    before = read_tree(place.root)
    scene.rescue(place)
    scene.close(place)
    fresh, _ = scene.restore(kind)
    assert read_tree(fresh.root) == before


def test_a_hidden_change_of_line_ends_counts_as_unsaved(scene: RescueTestbed) -> None:
    (scene.repository / ".gitattributes").write_text("*.txt text\n")
    scene.commit(scene.repository, "rules")
    place = scene.open(WORKTREE)
    write(place, "a.txt", b"one\r\ntwo\r\nthree\r\n")
    git(place.root, "add", "a.txt")
    assert git(place.root, "status", "--porcelain") == ""
    assert find_unsaved_work(place).modified == 1
    scene.check_round_trip(place)


@pytest.mark.slow
@KINDS
def test_files_git_was_told_not_to_look_at_come_back(scene: RescueTestbed, kind: str) -> None:
    place = scene.open(kind)
    git(place.root, "update-index", "--assume-unchanged", "a.txt")
    git(place.root, "update-index", "--skip-worktree", "sub/b.txt", "run.sh")
    write(place, "a.txt", b"not looked at\n")
    write(place, "sub/b.txt", b"left out, but here\n")
    os.unlink(f"{place.root}/run.sh")
    assert find_unsaved_work(place).modified == 2
    scene.check_round_trip(place)


@pytest.mark.slow
@KINDS
def test_a_nested_repository_is_restored_completely(scene: RescueTestbed, kind: str) -> None:
    place = scene.open(kind)
    inner = Path(place.root, "deep/nested")
    inner.mkdir(parents=True)
    git(inner, "init", "--quiet")
    (inner / "f").write_text("f\n")
    scene.commit(inner, "inner")
    (inner / "g").write_text("g\n")
    fresh, _ = scene.check_round_trip(place)
    assert git(Path(fresh.root, "deep/nested"), "log", "--format=%s").strip() == "inner"
    assert git(Path(fresh.root, "deep/nested"), "status", "--porcelain").strip() == "?? g"


def with_submodule(scene: RescueTestbed) -> None:
    library = scene.folder / "library"
    library.mkdir()
    git(library, "init", "--quiet")
    (library / "lib.txt").write_text("lib\n")
    (library / "other.txt").write_text("other\n")
    scene.commit(library, "library")
    git(scene.repository, "submodule", "--quiet", "add", str(library), "libs/one")
    scene.commit(scene.repository, "with submodule")


@pytest.mark.slow
@KINDS
def test_a_submodule_comes_back_with_its_own_commit_and_changes(scene: RescueTestbed, kind: str) -> None:
    with_submodule(scene)
    place = scene.open(kind)
    git(place.root, "submodule", "--quiet", "update", "--init")
    assert not find_unsaved_work(place)
    inner = Path(place.root, "libs/one")
    (inner / "own.txt").write_text("own\n")
    own = scene.commit(inner, "unpushed")
    (inner / "lib.txt").write_text("staged\n")
    git(inner, "add", "lib.txt")
    (inner / "lib.txt").write_text("dirty\n")
    (inner / "untracked").write_text("u\n")
    (inner / "other.txt").unlink()
    assert find_unsaved_work(place).dirty_submodules == 1
    status, index = (
        git(inner, "status", "--porcelain=v2", "-z"),
        git(inner, "ls-files", "--stage", "-v", "-z"),
    )
    fresh, restored = scene.check_round_trip(place)
    again = Path(fresh.root, "libs/one")
    assert git(again, "rev-parse", "HEAD").strip() == own
    assert git(again, "status", "--porcelain=v2", "-z") == status
    assert git(again, "ls-files", "--stage", "-v", "-z") == index
    assert git(again, "cat-file", "-p", ":lib.txt") == "staged\n"
    assert restored.notes == ()


def test_branches_tags_and_stash_of_a_clone_are_restored(scene: RescueTestbed) -> None:
    place = scene.open(CLONE)
    write(place, "b1")
    git(place.root, "checkout", "--quiet", "-b", "side")
    side = scene.commit(place.root, "side")
    git(place.root, "tag", "-a", "-m", "note", "v1")
    git(place.root, "checkout", "--quiet", "main")
    for number in (1, 2):
        write(place, "a.txt", b"stash %d\n" % number)
        git(place.root, "stash", "--quiet")
    stakes = find_unsaved_work(place)
    assert stakes.stash_entries == 2
    assert stakes.unpushed_commits >= 3
    fresh, _ = scene.check_round_trip(place)
    assert git(fresh.root, "rev-parse", "side").strip() == side
    assert git(fresh.root, "cat-file", "-t", "v1").strip() == "tag"
    assert len(git(fresh.root, "stash", "list").splitlines()) == 2
    git(fresh.root, "stash", "pop", "stash@{1}")
    assert Path(fresh.root, "a.txt").read_text() == "stash 1\n"
    drop_rescue(scene.home, "r1")
    scene.gc()
    git(fresh.root, "fsck", "--connectivity-only")  # it stands on its own feet


def test_a_rescue_of_a_clone_can_be_restored_into_a_worktree(scene: RescueTestbed) -> None:
    place = scene.open(CLONE)
    git(place.root, "checkout", "--quiet", "-b", "side")
    write(place, "own")
    scene.commit(place.root, "own")
    write(place, "a.txt", b"dirty\n")
    before = read_checkout_state(place)
    scene.rescue(place)
    scene.close(place)
    scene.gc()
    fresh, restored = scene.restore(WORKTREE)
    after = read_checkout_state(fresh)
    assert (after.tree, after.index, after.status, after.branch) == (
        before.tree,
        before.index,
        before.status,
        before.branch,
    )
    assert restored.branch == "refs/heads/side"


def test_an_unborn_branch_comes_back(scene: RescueTestbed) -> None:
    place = scene.open(WORKTREE)
    git(place.root, "checkout", "--quiet", "--orphan", "new")
    git(place.root, "rm", "--quiet", "-r", "--cached", ".")
    os.unlink(f"{place.root}/a.txt")
    write(place, "first")
    git(place.root, "add", "first")
    scene.check_round_trip(place)


def test_a_split_index_and_a_sparse_checkout_come_back(scene: RescueTestbed) -> None:
    place = scene.open(WORKTREE)
    git(place.root, "sparse-checkout", "set", "--cone", "nothing")
    assert not Path(place.root, "sub").exists()
    git(place.root, "update-index", "--split-index")
    write(place, "a.txt", b"changed\n")
    git(place.root, "add", "a.txt")
    fresh, _ = scene.check_round_trip(place)
    assert not Path(fresh.root, "sub").exists()


def test_the_main_checkout_can_be_rescued(scene: RescueTestbed) -> None:
    place = UntrustedCheckout(root=str(scene.repository), git_dir=scene.home, kind=MAIN, home=scene.home)
    assert not find_unsaved_work(place)
    scene.open(WORKTREE)
    write(place, "a.txt", b"changed\n")
    before = read_checkout_state(place)
    scene.rescue(place)
    assert read_checkout_state(place) == before
    fresh, restored = scene.restore(WORKTREE)
    assert read_tree(fresh.root) == before.tree
    assert restored.branch == ""
    assert any("checked out elsewhere" in note for note in restored.notes)


@pytest.mark.promise(
    "rescues.hostile-settings",
    "Inspecting a clone runs no program that its git settings name.",
)
@pytest.mark.slow
def test_hostile_settings_of_a_clone_are_never_run(scene: RescueTestbed, tmp_path: Path) -> None:
    with_submodule(scene)
    (scene.repository / ".gitattributes").write_text("*.txt filter=evil diff=evil merge=evil\n")
    scene.commit(scene.repository, "attributes")
    place = scene.open(CLONE)
    git(place.root, "submodule", "--quiet", "update", "--init")
    proof = tmp_path / "was-run"
    evil = tmp_path / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntouch '{proof}'\ncat\n")
    evil.chmod(0o755)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-index-change", "reference-transaction", "post-checkout", "pre-auto-gc"):
        (hooks / name).symlink_to(evil)
    write(place, "a.txt", b"changed\n")
    write(place, "libs/one/lib.txt", b"changed\n")
    for where in (place.root, f"{place.root}/libs/one"):
        for name in ("core.fsmonitor", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process"):
            git(where, "config", name, str(evil))
        for name in ("diff.evil.textconv", "diff.external", "core.pager", "core.sshCommand", "core.editor"):
            git(where, "config", name, str(evil))
        for name in ("alias.ls-files", "alias.fast-import", "uploadpack.packObjectsHook", "gpg.program"):
            git(where, "config", name, f"!{evil}")
        git(where, "config", "core.hooksPath", str(hooks))
    assert find_unsaved_work(place)
    scene.rescue(place)
    assert not proof.exists()
    fresh, _ = scene.restore(WORKTREE)
    assert not proof.exists()
    assert Path(fresh.root, "a.txt").read_bytes() == b"changed\n"


def test_without_unsaved_work_no_rescue_is_taken_unless_forced(scene: RescueTestbed) -> None:
    place = scene.open(WORKTREE)
    os.makedirs(f"{place.root}/empty")
    write(place, "x.ignored")
    assert take_rescue(place, "r1", {}) is None
    assert find_rescue(scene.home, "r1") is None
    assert scene.rescue(place, force=True).files == 0


def test_a_commit_on_a_branch_that_stays_is_not_at_stake(scene: RescueTestbed) -> None:
    place = scene.open(WORKTREE)
    git(place.root, "checkout", "--quiet", "-b", "task")
    write(place, "done")
    scene.commit(place.root, "done")
    assert not find_unsaved_work(place)
    git(place.root, "checkout", "--quiet", "--detach")
    git(place.root, "branch", "--quiet", "-D", "task")
    stakes = find_unsaved_work(place)
    assert stakes.unpushed_commits == 1
    assert stakes


def test_the_same_id_again_gives_the_same_rescue(scene: RescueTestbed) -> None:
    place = scene.open(WORKTREE)
    write(place, "one")
    first = scene.rescue(place)
    write(place, "two")
    assert scene.rescue(place) == first
    assert [rescue.id for rescue in list_rescues(scene.home)] == ["r1"]
    with pytest.raises(Malformed):
        scene.rescue(place, "../heads/main")


@pytest.mark.slow
@KINDS
def test_two_that_take_the_same_rescue_at_once_get_the_same(scene: RescueTestbed, kind: str) -> None:
    place = scene.open(kind)
    write(place, "one", b"1" * 1_000_000)
    rivals = [Background(lambda: scene.rescue(place)) for _ in range(3)]
    assert len({rival.result().commit for rival in rivals}) == 1


@pytest.mark.slow
@KINDS
def test_a_gc_that_runs_all_the_time_deletes_nothing(scene: RescueTestbed, kind: str) -> None:
    place = scene.open(kind)
    is_over = threading.Event()

    def collect() -> None:
        while not is_over.is_set():
            git(scene.repository, "gc", "--quiet", "--prune=now", is_checked=False)

    collector = Background(collect)
    for number in range(6):
        write(place, "new", os.urandom(20_000))
        scene.rescue(place, f"r{number}")
    is_over.set()
    collector.result()
    git(scene.repository, "gc", "--quiet", "--prune=now")  # nothing keeps it from running now
    git(scene.repository, "fsck", "--connectivity-only")
    assert len(list_rescues(scene.home)) == 6


def test_a_missing_checkout_is_reported(scene: RescueTestbed) -> None:
    place = scene.open(WORKTREE)
    scene.close(place)
    with pytest.raises(RepositoryError) as refused:
        take_rescue(place, "r1", {})
    assert refused.value.code == "CHECKOUT_GONE"


def test_rescues_are_listed_packed_and_dropped(scene: RescueTestbed) -> None:
    place = scene.open(CLONE)
    for number in range(3):
        write(place, "n", b"%d" % number)
        scene.rescue(place, f"r{number}")
    listed = list_rescues(scene.home)
    assert {rescue.id for rescue in listed} == {"r0", "r1", "r2"}
    assert all(rescue.facts == {"reason": "test"} and rescue.files == 1 for rescue in listed)
    assert pack_rescues(scene.home, 0) == 0
    assert pack_rescues(scene.home, listed[-1].at + 10_000) == 3
    assert list_rescues(scene.home) == listed
    git(scene.repository, "fsck", "--strict")
    drop_rescue(scene.home, "r1")
    assert {rescue.id for rescue in list_rescues(scene.home)} == {"r0", "r2"}
    with pytest.raises(RepositoryError, match="no rescue r1"):
        drop_rescue(scene.home, "r1")


def test_a_checkout_with_work_is_not_overwritten(scene: RescueTestbed) -> None:
    place = scene.open(WORKTREE)
    write(place, "a.txt", b"mine\n")
    scene.rescue(place)
    with pytest.raises(RepositoryError) as refused:
        check_clean(place)
    assert refused.value.code == "RESTORE_NOT_CLEAN"
    assert Path(place.root, "a.txt").read_bytes() == b"mine\n"


def test_a_branch_that_moved_on_is_left_alone(scene: RescueTestbed) -> None:
    place = scene.open(WORKTREE)
    git(place.root, "checkout", "--quiet", "-b", "task")
    write(place, "new")
    scene.rescue(place)
    scene.close(place)
    moved = scene.commit(scene.repository, "moved")
    git(scene.repository, "branch", "-f", "task", moved)
    _, restored = scene.restore(WORKTREE)
    assert restored.branch == ""
    assert any("has moved" in note for note in restored.notes)
    assert git(scene.repository, "rev-parse", "task").strip() == moved


def test_links_never_lead_a_restored_file_out_of_the_tree(scene: RescueTestbed, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (scene.repository / "door").symlink_to(outside)
    scene.commit(scene.repository, "door")
    place = scene.open(WORKTREE)
    os.unlink(f"{place.root}/door")
    write(place, "door/inside", b"stays in\n")
    scene.check_round_trip(place)
    assert list(outside.iterdir()) == []


def test_a_folder_swapped_for_a_link_is_not_read_through(scene: RescueTestbed, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b.txt").write_text("private\n")
    place = scene.open(WORKTREE)
    os.unlink(f"{place.root}/sub/b.txt")
    os.rmdir(f"{place.root}/sub")
    os.symlink(outside, f"{place.root}/sub")
    scene.check_round_trip(place)
    assert "private" not in git(
        scene.repository, "grep", "-a", "private", "refs/landlane/rescue/r1", is_checked=False
    )


def test_special_files_are_left_out_and_noted(scene: RescueTestbed) -> None:
    place = scene.open(WORKTREE)
    write(place, ".gitignore", b"*.ignored\n")
    for name in ("pipe", "sub/pipe", "fresh/pipe", "x.ignored"):
        os.makedirs(os.path.dirname(f"{place.root}/{name}"), exist_ok=True)
        os.mkfifo(f"{place.root}/{name}")
    os.unlink(f"{place.root}/a.txt")
    os.mkfifo(f"{place.root}/a.txt")
    write(place, "new")
    with socket.socket(socket.AF_UNIX) as plug:
        here = os.getcwd()
        os.chdir(place.root)
        plug.bind("plug")
        os.chdir(here)
        notes = scene.rescue(place).notes
    assert sorted(note.partition(": left out")[0] for note in notes) == [
        *("a.txt", "fresh/pipe", "pipe", "plug", "sub/pipe"),
    ]
    fresh, _ = scene.restore(WORKTREE)
    assert sorted(os.listdir(fresh.root)) == [".git", ".gitignore", "new", "run.sh", "sub", "way"]


@KINDS
@pytest.mark.parametrize("content", [b"garbage", b"DIRC" + b"\xff" * 60], ids=["short", "long"])
def test_files_are_saved_although_the_index_is_damaged(
    scene: RescueTestbed, kind: str, content: bytes
) -> None:
    place = scene.open(kind)
    write(place, "new")
    write(place, "a.txt", b"changed\n")
    os.unlink(f"{place.root}/run.sh")
    Path(place.git_dir, "index").write_bytes(content)
    before = read_tree(place.root)

    assert any("index was damaged" in note for note in scene.rescue(place).notes)
    fresh, _ = scene.restore(kind)

    assert read_tree(fresh.root) == before
    assert git(fresh.root, "status", "--short").split("\n")[:3] == [" M a.txt", " D run.sh", "?? new"]


def test_a_git_pointer_that_leads_nowhere_comes_back(scene: RescueTestbed) -> None:
    place = scene.open(WORKTREE)
    write(place, "d/file")
    os.symlink("nowhere", f"{place.root}/d/.git")
    write(place, "e/file")
    write(place, "e/.git", b"gitdir: /nowhere\n")
    scene.rescue(place)
    fresh, _ = scene.restore(WORKTREE)
    assert os.readlink(f"{fresh.root}/d/.git") == "nowhere"
    assert Path(fresh.root, "e/.git").read_bytes() == b"gitdir: /nowhere\n"


def test_an_unreadable_file_stops_the_rescue_and_is_named(
    scene: RescueTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = scene.open(WORKTREE)
    write(place, "closed.txt")
    really_open = os.open

    def refuse(path: str | bytes, *arguments: int, **named: int) -> int:
        if path == b"closed.txt":
            raise PermissionError(13, "Permission denied")
        return really_open(path, *arguments, **named)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(RepositoryError, match=r"closed\.txt") as refused:
        scene.rescue(place)
    assert refused.value.code == "RESCUE_UNREADABLE"
    assert find_rescue(scene.home, "r1") is None


def test_unusual_permissions_come_back(scene: RescueTestbed) -> None:
    place = scene.open(WORKTREE)
    os.chmod(f"{place.root}/a.txt", 0o400)
    os.chmod(f"{place.root}/sub", 0o700)
    git(place.root, "update-index", "--refresh")
    assert not find_unsaved_work(place)
    write(place, "new/secret", b"s", 0o640)
    os.chmod(f"{place.root}/new", 0o500)
    fresh, _ = scene.check_round_trip(place)
    assert os.stat(f"{fresh.root}/new").st_mode & 0o777 == 0o500
    assert os.stat(f"{fresh.root}/sub").st_mode & 0o777 == 0o700


@pytest.mark.slow
def test_big_files_are_streamed_and_no_name_is_needed(
    scene: RescueTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"):
        monkeypatch.delenv(name)
    place = scene.open(CLONE)
    write(place, "big", os.urandom(1 << 20) * 24)
    scene.check_round_trip(place)
    assert git(scene.repository, "log", "-1", "--format=%an <%ae>", "refs/landlane/rescue/r1").strip() == (
        "Landlane <landlane@localhost>"
    )


TAKE = """
import sys
from landlane.git.untrusted_checkout import UntrustedCheckout
from landlane.rescue.write_rescue import take_rescue
home, root, git_dir, kind, name = sys.argv[1:]
print("begin", flush=True)
take_rescue(UntrustedCheckout(root=root, git_dir=git_dir, kind=kind, home=home), name, {"reason": "killed"})
print("end", flush=True)
"""


@pytest.mark.slow
@KINDS
def test_being_killed_leaves_no_rescue_or_a_complete_one(scene: RescueTestbed, kind: str) -> None:
    place = scene.open(kind)
    for number in range(300):
        write(place, f"many/{number}", os.urandom(2000))
    write(place, "big", os.urandom(1 << 20) * 12)
    before = read_checkout_state(place)
    delays = random.Random(13)
    longest = 0.0
    for number in range(6):
        name = f"k{number}"
        arguments = (scene.home, place.root, place.git_dir, place.kind, name)
        with subprocess.Popen([sys.executable, "-c", TAKE, *arguments], stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            child.stdout.readline()
            begun = time.monotonic()
            if number:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(delays.uniform(0, longest))
                child.kill()
            else:
                child.wait()
                longest = time.monotonic() - begun
        found = find_rescue(scene.home, name)
        if found is not None:
            git(scene.repository, "rev-list", "--objects", "--quiet", found.ref)
            assert found.files == 301
        assert scene.rescue(place, name).files == 301
        assert read_checkout_state(place) == before
    git(scene.repository, "fsck", "--connectivity-only")
    fresh, _ = scene.restore(kind, "k5")
    assert read_tree(fresh.root) == before.tree


# ------------------------------------------------------------------------------- taking turns with gc


def leave_lock(home: Path, *, is_old: bool = True) -> Path:
    lock = home / "gc.pid.lock"
    lock.write_text("")
    if is_old:
        os.utime(lock, (time.time() - 60, time.time() - 60))
    return lock


def test_a_lock_that_was_left_by_a_killed_rescue_is_removed(
    scene: RescueTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("landlane.rescue.block_gc._WAIT_SECONDS", 5)
    home = Path(scene.home)
    lock = leave_lock(home)

    with block_gc(str(home)):
        assert (home / "gc.pid").read_text().split()[0] == str(os.getpid())
        assert not lock.exists()

    assert not (home / "gc.pid").exists()
    place = scene.open(WORKTREE)
    write(place, "new")
    leave_lock(home)
    assert take_rescue(place, "r1", {})
    assert not lock.exists()
    git(home, "gc", "--quiet")


def test_a_lock_in_use_or_just_made_is_left_alone(
    scene: RescueTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("landlane.rescue.block_gc._WAIT_SECONDS", 0.2)
    home = Path(scene.home)
    lock = leave_lock(home, is_old=False)
    with block_gc(str(home)):
        assert lock.exists()
    leave_lock(home)
    with lock.open() as opened, subprocess.Popen(["sleep", "1000"], stdin=opened) as owner:
        with block_gc(str(home)):
            assert lock.exists()
        owner.kill()

    assert not (home / "gc.pid").exists()


@pytest.mark.promise(
    "rescue.reflog", "Commits that only a reflog knows are saved before a workspace is removed."
)
@KINDS
def test_commits_that_only_a_reflog_knows_are_saved(scene: RescueTestbed, kind: str) -> None:
    place = scene.open(kind)
    reset = scene.commit(place.root, "reset away")
    git(place.root, "reset", "--quiet", "--hard", "HEAD~1")
    amended = scene.commit(place.root, "first try")
    git(place.root, "commit", "--quiet", "--amend", "--allow-empty", "-m", "second try")
    git(place.root, "reset", "--quiet", "--hard", "main" if kind == WORKTREE else "origin/main")
    last = git(place.root, "rev-parse", "ORIG_HEAD").strip()

    scene.rescue(place)
    scene.close(place)
    scene.gc()

    for commit in (reset, amended, last):
        assert git(scene.repository, "cat-file", "-t", commit).strip() == "commit"


def test_a_stash_dropped_in_a_clone_is_saved(scene: RescueTestbed) -> None:
    place = scene.open(CLONE)
    write(place, "a.txt", b"put aside\n")
    git(place.root, "stash", "--quiet")
    dropped = git(place.root, "rev-parse", "stash").strip()
    git(place.root, "stash", "drop", "--quiet")

    scene.rescue(place)
    scene.close(place)
    scene.gc()

    assert git(scene.repository, "show", f"{dropped}:a.txt") == "put aside\n"


def test_an_untouched_checkout_has_nothing_to_save(scene: RescueTestbed) -> None:
    for kind in (WORKTREE, CLONE):
        assert take_rescue(scene.open(kind), f"of-{kind}", {"reason": "test"}) is None
