"""The checkouts of the target: moved forward when clean, left alone when not, never a trap for a commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.testing.repositories import git
from tests.support.landing import LandingTestbed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


def test_a_clean_checkout_follows(testbed: LandingTestbed) -> None:
    testbed.configure("[]", files={"gone.txt": "x", "run.sh": "x"})
    testbed.branch("one", {"a.txt": "x", "gone.txt": None})

    entry = testbed.land("one")

    assert entry.notes == []
    assert (testbed.folder / "a.txt").read_text() == "x"
    assert not (testbed.folder / "gone.txt").exists()
    assert git(testbed.folder, "status", "--porcelain") == ""


def test_untracked_files_of_a_person_stay(testbed: LandingTestbed) -> None:
    testbed.configure("[]")
    testbed.branch("one", {"a.txt": "x"})
    (testbed.folder / "mine.txt").write_text("mine")

    testbed.land("one")

    assert (testbed.folder / "a.txt").read_text() == "x"
    assert git(testbed.folder, "status", "--porcelain") == "?? mine.txt\n"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["changed", "staged", "in the way"])
def test_a_dirty_checkout_is_left_alone_with_a_note(testbed: LandingTestbed, how: str) -> None:
    testbed.configure("[]", files={"a.txt": "old\n", "b.txt": "old\n"})
    testbed.branch("one", {"a.txt": "landed\n", "new.txt": "landed\n"})
    before = testbed.tip
    mine = testbed.folder / ("new.txt" if how == "in the way" else "b.txt")
    mine.write_text("mine\n")
    if how == "staged":
        git(testbed.folder, "add", "b.txt")
    status = git(testbed.folder, "status", "--porcelain")

    entry = testbed.land("one")

    assert entry.state == "landed"
    (note,) = entry.notes
    assert "was left alone" in note
    assert str(testbed.folder) in note
    assert mine.read_text() == "mine\n"
    assert (testbed.folder / "a.txt").read_text() == "old\n"
    assert git(testbed.folder, "status", "--porcelain") == status, "the index is as it was"
    assert git(testbed.folder, "rev-parse", "HEAD").strip() == before

    git(testbed.folder, "add", "--all")
    git(testbed.folder, "commit", "--quiet", "-m", "Go on")
    assert testbed.tip == entry.commit, "the next commit takes nothing back"
    assert testbed.read_file("a.txt") == "landed\n"


def test_a_target_that_is_checked_out_elsewhere_is_moved_there(testbed: LandingTestbed) -> None:
    testbed.configure("[]", 'target = "main"\n')
    testbed.branch("one", {"a.txt": "x"})
    git(testbed.folder, "switch", "--quiet", "-c", "aside")
    git(testbed.folder, "worktree", "add", "--quiet", "../elsewhere", "main")

    assert testbed.land("one").state == "landed"

    elsewhere = testbed.folder.parent / "elsewhere"
    assert (elsewhere / "a.txt").read_text() == "x"
    assert git(elsewhere, "status", "--porcelain") == ""
    assert not (testbed.folder / "a.txt").exists(), "a checkout of another branch is none of our business"


def test_a_target_that_is_checked_out_nowhere_is_moved_all_the_same(testbed: LandingTestbed) -> None:
    testbed.configure("[]", 'target = "main"\n')
    testbed.branch("one", {"a.txt": "x"})
    git(testbed.folder, "switch", "--quiet", "-c", "aside")

    assert testbed.land("one").commit == testbed.tip


def test_a_hook_that_refuses_the_move_stops_the_queue_and_loses_nothing(testbed: LandingTestbed) -> None:
    testbed.configure("[]")
    testbed.branch("one", {"a.txt": "x"})
    entry = testbed.submit("one")
    before = testbed.tip
    hook = testbed.folder / ".git" / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\ntest "$1" = prepared && grep -q refs/heads/main && exit 1\nexit 0\n')
    hook.chmod(0o755)

    stop = testbed.run()

    assert stop is not None
    assert stop.code == "TARGET_REFUSED"
    assert "main cannot be moved" in stop.message
    assert (testbed.reload(entry).state, testbed.tip) == ("queued", before)

    hook.unlink()
    assert testbed.run() is None
    assert testbed.reload(entry).state == "landed"


def test_other_hooks_of_the_user_do_not_disturb(testbed: LandingTestbed) -> None:
    testbed.configure('["true"]')
    testbed.branch("one", {"a.txt": "x"})
    folder = testbed.folder / ".git" / "hooks"
    folder.mkdir(exist_ok=True)
    for name in ("post-checkout", "pre-commit", "commit-msg", "post-merge", "pre-receive", "update"):
        (folder / name).write_text("#!/bin/sh\nexit 1\n")
        (folder / name).chmod(0o755)

    assert testbed.land("one").state == "landed"


def test_an_ignored_file_of_a_person_is_not_overwritten(testbed: LandingTestbed) -> None:
    testbed.configure("[]", files={".gitignore": ".env\n"})
    (testbed.folder / ".env").write_text("secret=mine\n")
    testbed.branch("one", {".env": "secret=theirs\n", "a.txt": "x"})

    entry = testbed.land("one")

    assert entry.state == "landed"
    assert (testbed.folder / ".env").read_text() == "secret=mine\n"
    assert ".env" in entry.notes[0]


@pytest.mark.slow
@pytest.mark.parametrize("is_ignored", [False, True])
@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        pytest.param("notes", "notes/b.md", id="a file where a folder comes"),
        pytest.param("notes", "notes/deep/b.md", id="a file where folders come"),
        pytest.param("build/out/data", "build", id="a folder where a file comes"),
    ],
)
def test_untracked_files_in_a_checkout_of_the_target_are_kept(
    testbed: LandingTestbed, mine: str, theirs: str, is_ignored: bool
) -> None:
    testbed.configure("[]", files={".gitignore": "notes\nbuild\n" if is_ignored else "none\n"})
    testbed.branch("one", {"a.txt": "landed"})
    testbed.branch("two", {theirs: "theirs"})
    place = testbed.folder / mine
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("mine")
    assert testbed.land("one").notes == []
    before = git(testbed.folder, "status", "--porcelain", "--ignored")

    entry = testbed.land("two")

    assert entry.state == "landed"
    assert place.read_text() == "mine"
    assert any(mine in note and "left alone" in note for note in entry.notes), entry.notes
    assert git(testbed.folder, "status", "--porcelain", "--ignored") == before


def test_a_link_of_a_person_is_neither_replaced_nor_followed(testbed: LandingTestbed, tmp_path: Path) -> None:
    testbed.configure("[]")
    testbed.branch("one", {"notes/b.md": "theirs"})
    (tmp_path / "aside").mkdir()
    (testbed.folder / "notes").symlink_to(tmp_path / "aside")

    entry = testbed.land("one")

    assert "notes lies there" in entry.notes[0]
    assert (testbed.folder / "notes").readlink() == tmp_path / "aside"
    assert not list((tmp_path / "aside").iterdir())


def test_a_file_that_becomes_a_folder_and_back_is_followed(testbed: LandingTestbed) -> None:
    testbed.configure("[]", files={"thing": "x"})
    testbed.branch("one", {"thing": None, "thing/inner": "y"})
    assert testbed.land("one").notes == []
    assert (testbed.folder / "thing" / "inner").read_text() == "y"
    testbed.branch("two", {"thing/inner": None, "thing": "z"})
    assert testbed.land("two").notes == []
    assert (testbed.folder / "thing").read_text() == "z"
