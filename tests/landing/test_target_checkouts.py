"""The checkouts of the target: moved forward when clean, left alone when not, never a trap for a commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.testing.repositories import git
from tests.support.landing import Yard

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


def test_a_clean_checkout_follows(yard: Yard) -> None:
    yard.configure("[]", files={"gone.txt": "x", "run.sh": "x"})
    yard.branch("one", {"a.txt": "x", "gone.txt": None})

    entry = yard.land("one")

    assert entry.notes == []
    assert (yard.folder / "a.txt").read_text() == "x"
    assert not (yard.folder / "gone.txt").exists()
    assert git(yard.folder, "status", "--porcelain") == ""


def test_untracked_files_of_a_person_stay(yard: Yard) -> None:
    yard.configure("[]")
    yard.branch("one", {"a.txt": "x"})
    (yard.folder / "mine.txt").write_text("mine")

    yard.land("one")

    assert (yard.folder / "a.txt").read_text() == "x"
    assert git(yard.folder, "status", "--porcelain") == "?? mine.txt\n"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["changed", "staged", "in the way"])
def test_a_dirty_checkout_is_left_alone_with_a_note(yard: Yard, how: str) -> None:
    yard.configure("[]", files={"a.txt": "old\n", "b.txt": "old\n"})
    yard.branch("one", {"a.txt": "landed\n", "new.txt": "landed\n"})
    before = yard.tip
    mine = yard.folder / ("new.txt" if how == "in the way" else "b.txt")
    mine.write_text("mine\n")
    if how == "staged":
        git(yard.folder, "add", "b.txt")
    status = git(yard.folder, "status", "--porcelain")

    entry = yard.land("one")

    assert entry.state == "landed"
    (note,) = entry.notes
    assert "was left alone" in note
    assert str(yard.folder) in note
    assert mine.read_text() == "mine\n"
    assert (yard.folder / "a.txt").read_text() == "old\n"
    assert git(yard.folder, "status", "--porcelain") == status, "the index is as it was"
    assert git(yard.folder, "rev-parse", "HEAD").strip() == before

    git(yard.folder, "add", "--all")
    git(yard.folder, "commit", "--quiet", "-m", "Go on")
    assert yard.tip == entry.commit, "the next commit takes nothing back"
    assert yard.at("a.txt") == "landed\n"


def test_a_target_that_is_checked_out_elsewhere_is_moved_there(yard: Yard) -> None:
    yard.configure("[]", 'target = "main"\n')
    yard.branch("one", {"a.txt": "x"})
    git(yard.folder, "switch", "--quiet", "-c", "aside")
    git(yard.folder, "worktree", "add", "--quiet", "../elsewhere", "main")

    assert yard.land("one").state == "landed"

    elsewhere = yard.folder.parent / "elsewhere"
    assert (elsewhere / "a.txt").read_text() == "x"
    assert git(elsewhere, "status", "--porcelain") == ""
    assert not (yard.folder / "a.txt").exists(), "a checkout of another branch is none of our business"


def test_a_target_that_is_checked_out_nowhere_is_moved_all_the_same(yard: Yard) -> None:
    yard.configure("[]", 'target = "main"\n')
    yard.branch("one", {"a.txt": "x"})
    git(yard.folder, "switch", "--quiet", "-c", "aside")

    assert yard.land("one").commit == yard.tip


def test_a_hook_that_refuses_the_move_stops_the_queue_and_loses_nothing(yard: Yard) -> None:
    yard.configure("[]")
    yard.branch("one", {"a.txt": "x"})
    entry = yard.submit("one")
    before = yard.tip
    hook = yard.folder / ".git" / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\ntest "$1" = prepared && grep -q refs/heads/main && exit 1\nexit 0\n')
    hook.chmod(0o755)

    stop = yard.run()

    assert stop is not None
    assert stop.code == "TARGET_REFUSED"
    assert "main cannot be moved" in stop.message
    assert (yard.look(entry).state, yard.tip) == ("queued", before)

    hook.unlink()
    assert yard.run() is None
    assert yard.look(entry).state == "landed"


def test_other_hooks_of_the_user_do_not_disturb(yard: Yard) -> None:
    yard.configure('["true"]')
    yard.branch("one", {"a.txt": "x"})
    folder = yard.folder / ".git" / "hooks"
    folder.mkdir(exist_ok=True)
    for name in ("post-checkout", "pre-commit", "commit-msg", "post-merge", "pre-receive", "update"):
        (folder / name).write_text("#!/bin/sh\nexit 1\n")
        (folder / name).chmod(0o755)

    assert yard.land("one").state == "landed"


def test_an_ignored_file_of_a_person_is_not_overwritten(yard: Yard) -> None:
    yard.configure("[]", files={".gitignore": ".env\n"})
    (yard.folder / ".env").write_text("secret=mine\n")
    yard.branch("one", {".env": "secret=theirs\n", "a.txt": "x"})

    entry = yard.land("one")

    assert entry.state == "landed"
    assert (yard.folder / ".env").read_text() == "secret=mine\n"
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
def test_what_a_person_has_in_no_commit_is_not_taken_away(
    yard: Yard, mine: str, theirs: str, is_ignored: bool
) -> None:
    yard.configure("[]", files={".gitignore": "notes\nbuild\n" if is_ignored else "none\n"})
    yard.branch("one", {"a.txt": "landed"})
    yard.branch("two", {theirs: "theirs"})
    place = yard.folder / mine
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("mine")
    assert yard.land("one").notes == []
    before = git(yard.folder, "status", "--porcelain", "--ignored")

    entry = yard.land("two")

    assert entry.state == "landed"
    assert place.read_text() == "mine"
    assert any(mine in note and "left alone" in note for note in entry.notes), entry.notes
    assert git(yard.folder, "status", "--porcelain", "--ignored") == before


def test_a_link_of_a_person_is_neither_replaced_nor_followed(yard: Yard, tmp_path: Path) -> None:
    yard.configure("[]")
    yard.branch("one", {"notes/b.md": "theirs"})
    (tmp_path / "aside").mkdir()
    (yard.folder / "notes").symlink_to(tmp_path / "aside")

    entry = yard.land("one")

    assert "notes lies there" in entry.notes[0]
    assert (yard.folder / "notes").readlink() == tmp_path / "aside"
    assert not list((tmp_path / "aside").iterdir())


def test_a_file_that_becomes_a_folder_and_back_is_followed(yard: Yard) -> None:
    yard.configure("[]", files={"thing": "x"})
    yard.branch("one", {"thing": None, "thing/inner": "y"})
    assert yard.land("one").notes == []
    assert (yard.folder / "thing" / "inner").read_text() == "y"
    yard.branch("two", {"thing/inner": None, "thing": "z"})
    assert yard.land("two").notes == []
    assert (yard.folder / "thing").read_text() == "z"
