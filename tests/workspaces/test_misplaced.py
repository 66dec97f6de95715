"""Changes that landed in the wrong checkout: found by claims on their paths, moved to where they belong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.app.open import open_repository
from landlane.claims.take import make_request, take
from landlane.doctor.examine import examine
from landlane.errors import Held, LandlaneError, Malformed, NotAllowed
from landlane.journal.read import read_entries
from landlane.repository import Repository
from landlane.sessions.join import join
from landlane.store import records
from landlane.testing.repositories import git, make_repository
from landlane.values import as_dict
from landlane.workspaces import move_misplaced as stray_moves
from landlane.workspaces.misplaced import STRAY, UNKNOWN, find_misplaced
from landlane.workspaces.model import OPEN, Workspace, WorkspaceKind
from landlane.workspaces.move_misplaced import locate, move_misplaced_changes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction

pytestmark = pytest.mark.integration

FILES = {"src/a.py": "one\ntwo\nthree\n", "src/b.py": "b\n", "run.sh": "#!/bin/sh\n"}


class MisplacedTestbed:
    """A repository whose main checkout somebody else may write to, and workers in workspaces beside it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.repo: Repository = open_repository(str(root))
        self.prepared_repo = self.repo.require_git()

    def worker(
        self, name: str, *patterns: str, kind: str = "worktree", task: str = ""
    ) -> tuple[Session, Path]:
        """A session with an open workspace of its own, and claims on these."""
        session = join(self.repo, name).session
        task = task or f"T-{name}"
        path = self.root.parent / f"{name}-{task}"
        if kind == "clone":
            git(self.root, "clone", "--quiet", "--shared", ".", str(path))
            (path / ".git" / "landlane-home").write_text(f"{self.root / '.git'}\n")
        else:
            git(self.root, "worktree", "add", "--quiet", "-b", f"{name}/{task}", str(path))
        self._enter(session, task, kind, path)
        self.claim(session, *patterns)
        return session, path

    def _enter(self, session: Session, task: str, kind: str, path: Path) -> None:
        def work(tx: Transaction) -> None:
            made = Workspace(
                id=records.next_id(tx, "workspace"),
                task=task,
                attempt=1,
                agent=session.agent,
                session=session.id,
                machine=session.machine,
                home=str(self.root / ".git"),
                kind=WorkspaceKind(kind),
                path=str(path),
                branch=f"{session.agent}/{task}",
                state=OPEN,
                opened_at=0,
            )
            records.put(tx, "workspace", as_dict(made), "opened", session)

        self.repo.change(work)

    def claim(self, session: Session, *patterns: str, task: str = "") -> None:
        if patterns:
            repo = self.repo
            wanted = tuple(repo.git.pattern(text) for text in patterns)
            take(repo, session, make_request(repo, wanted, task=task))

    def strays(self) -> dict[str, tuple[str, str]]:
        return {one.path: (one.state, one.to) for one in find_misplaced(self.prepared_repo)}

    def move(self, *paths: str, to: str = "", cwd: Path | None = None) -> list[str]:
        wanted = [locate(self.prepared_repo, str(cwd or self.root), path, to) for path in paths] or None
        moved = move_misplaced_changes(self.prepared_repo, None, wanted, to)
        return [f"{one.change.path} to {one.workspace.id}" for one in moved.moves]

    def status(self) -> str:
        return git(self.root, "status", "--porcelain")


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[MisplacedTestbed]:
    made = MisplacedTestbed(make_repository(tmp_path / "main", files=FILES))
    yield made
    made.repo.close()


# ------------------------------------------------------------------------------------------- finding


def test_a_change_in_the_main_checkout_belongs_to_the_workspace_of_its_holder(
    scene: MisplacedTestbed,
) -> None:
    scene.worker("ann", "src/**")
    (scene.root / "src" / "a.py").write_text("changed\n")
    (scene.root / "src" / "new.py").write_text("new\n")
    (scene.root / "src" / "b.py").unlink()
    (scene.root / "README.md").write_text("whose?\n")

    assert scene.strays() == {
        "README.md": (UNKNOWN, ""),
        "src/a.py": (STRAY, "W1"),
        "src/b.py": (STRAY, "W1"),
        "src/new.py": (STRAY, "W1"),
    }


def test_changes_of_a_holder_where_it_works_are_not_misplaced(scene: MisplacedTestbed) -> None:
    _, own = scene.worker("ann", "src/a.py")
    scene.claim(join(scene.repo, "bob").session, "src/b.py")
    (own / "src" / "a.py").write_text("mine\n")
    (own / "other.py").write_text("without a claim, but mine\n")
    (scene.root / "src" / "b.py").write_text("bob works in the main checkout\n")

    assert scene.strays() == {}


@pytest.mark.parametrize("kind", ["worktree", "clone"])
def test_a_change_in_the_workspace_of_another_is_a_stray(scene: MisplacedTestbed, kind: str) -> None:
    scene.worker("ann", "src/a.py")
    _, other = scene.worker("bob", "src/b.py", kind=kind)
    (other / "src" / "a.py").write_text("in bob's workspace\n")

    assert scene.strays() == {"src/a.py": (STRAY, "W1")}
    assert scene.move() == ["src/a.py to W1"]
    assert git(other, "status", "--porcelain") == ""


def test_with_several_workspaces_the_target_must_be_named_unless_the_claim_has_a_task(
    scene: MisplacedTestbed,
) -> None:
    session, _ = scene.worker("ann", "src/b.py", task="T1")
    scene.worker("ann", task="T2")
    scene.claim(session, "src/a.py", task="T2")
    (scene.root / "src" / "a.py").write_text("a\n")
    (scene.root / "src" / "b.py").write_text("changed\n")

    assert scene.strays() == {"src/a.py": (STRAY, "W2"), "src/b.py": (STRAY, "")}
    with pytest.raises(Malformed) as error:
        scene.move()
    assert error.value.code == "MISPLACED_UNCLEAR"
    assert scene.move("src/b.py", to="T1") == ["src/b.py to W1"]


def test_the_doctor_reports_misplaced_changes_and_how_to_move_them(scene: MisplacedTestbed) -> None:
    scene.worker("ann", "src/**")
    (scene.root / "README.md").write_text("unknown is no trouble\n")
    well = next(check for check in examine(str(scene.root)) if check.name == "misplaced changes")
    (scene.root / "src" / "a.py").write_text("changed\n")
    unwell = next(check for check in examine(str(scene.root)) if check.name == "misplaced changes")

    assert well.is_ok
    assert not unwell.is_ok
    assert unwell.found == f"in {scene.root}: src/a.py of ann"
    assert "landlane misplaced move" in unwell.hint


# -------------------------------------------------------------------------------------------- moving


def test_all_of_a_change_is_moved_and_the_old_place_is_as_committed(scene: MisplacedTestbed) -> None:
    _, own = scene.worker("ann", "src/**", "run.sh", "link")
    (scene.root / "src" / "a.py").write_text("changed\n")
    (scene.root / "src" / "b.py").unlink()
    (scene.root / "src" / "deep").mkdir()
    (scene.root / "src" / "deep" / "new.py").write_bytes(b"\xff\0new")
    (scene.root / "run.sh").chmod(0o755)
    (scene.root / "link").symlink_to("run.sh")
    git(scene.root, "add", "src/a.py", "link")  # staged or not is all the same

    assert len(scene.move()) == 5

    assert scene.status() == ""
    assert (own / "src" / "a.py").read_text() == "changed\n"
    assert not (own / "src" / "b.py").exists()
    assert (own / "src" / "deep" / "new.py").read_bytes() == b"\xff\0new"
    assert os.access(own / "run.sh", os.X_OK)
    assert os.readlink(own / "link") == "run.sh"
    assert (scene.root / "src" / "b.py").read_text() == "b\n"
    assert scene.strays() == {}


def test_changes_of_both_sides_are_merged(scene: MisplacedTestbed) -> None:
    _, own = scene.worker("ann", "src/a.py")
    (own / "src" / "a.py").write_text("ONE\ntwo\nthree\n")
    (scene.root / "src" / "a.py").write_text("one\ntwo\nTHREE\n")

    scene.move()

    assert (own / "src" / "a.py").read_text() == "ONE\ntwo\nTHREE\n"
    assert scene.status() == ""


@pytest.mark.parametrize("theirs", ["ONE!\ntwo\nthree\n", None, "ONE\ntwo\0three\n"])
def test_nothing_is_moved_if_both_sides_changed_the_same_lines(
    scene: MisplacedTestbed, theirs: str | None
) -> None:
    _, own = scene.worker("ann", "src/**")
    (scene.root / "src" / "a.py").write_text("ONE\ntwo\nthree\n")
    (scene.root / "src" / "new.py").write_text("new\n")
    if theirs is None:
        (own / "src" / "a.py").unlink()
    else:
        (own / "src" / "a.py").write_text(theirs)
    before = scene.status()

    with pytest.raises(NotAllowed) as error:
        scene.move()

    assert error.value.code == "MISPLACED_CONFLICT"
    assert error.value.facts["path"] == "src/a.py"
    assert scene.status() == before
    assert not (own / "src" / "new.py").exists()


def test_a_move_that_fails_is_rolled_back(scene: MisplacedTestbed, monkeypatch: pytest.MonkeyPatch) -> None:
    _, own = scene.worker("ann", "src/**")
    (scene.root / "src" / "a.py").write_text("changed\n")
    (scene.root / "src" / "new.py").write_text("new\n")
    before = scene.status()

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(stray_moves, "_restore_committed", fail)
    with pytest.raises(OSError, match="full"):
        scene.move()

    assert scene.status() == before
    assert git(own, "status", "--porcelain") == ""


def test_a_move_can_be_undone_by_rescues_and_is_in_the_journal(scene: MisplacedTestbed) -> None:
    _, own = scene.worker("ann", "src/**")
    (scene.root / "src" / "a.py").write_text("stray\n")
    (own / "src" / "b.py").write_text("mine\n")

    moved = move_misplaced_changes(scene.prepared_repo, None, None, "")

    assert [root for root, _ in moved.rescues] == [str(scene.root), str(own)]
    entries = [entry.facts() for entry in read_entries(scene.repo) if entry.kind == "stray.moved"]
    assert entries[0]["paths"] == [{"path": "src/a.py", "from": str(scene.root), "to": "W1"}]
    assert entries[0]["rescues"] == [rescue for _, rescue in moved.rescues]


def test_named_paths_are_moved_alone_also_from_inside_the_workspace(scene: MisplacedTestbed) -> None:
    _, own = scene.worker("ann", "src/**")
    for name in ("a.py", "b.py"):
        (scene.root / "src" / name).write_text("changed\n")

    inside = MisplacedTestbed(own)
    try:
        assert inside.move("src/a.py", cwd=own) == ["src/a.py to W1"]
    finally:
        inside.repo.close()

    assert scene.status() == " M src/b.py\n"


def test_an_unclaimed_change_is_moved_only_if_named_with_its_workspace(scene: MisplacedTestbed) -> None:
    _, own = scene.worker("ann", "src/**")
    (scene.root / "README.md").write_text("new\n")

    for paths, to, code in (((), "", "NOTHING_MISPLACED"), (("README.md",), "", "MISPLACED_UNCLEAR")):
        with pytest.raises(LandlaneError) as error:
            scene.move(*paths, to=to)
        assert error.value.code == code

    assert scene.move("README.md", to="W1") == ["README.md to W1"]
    assert (own / "README.md").read_text() == "new\n"
    assert not (scene.root / "README.md").exists()


def test_a_change_is_not_moved_to_the_workspace_of_another(scene: MisplacedTestbed) -> None:
    scene.worker("ann", "src/a.py")
    scene.worker("bob")
    (scene.root / "src" / "a.py").write_text("ann's\n")

    with pytest.raises(Held) as error:
        scene.move("src/a.py", to="W2")
    assert error.value.facts["holder"] == "ann"


def test_changes_in_the_right_place_and_unchanged_files_are_not_moved(scene: MisplacedTestbed) -> None:
    scene.worker("ann", "src/a.py")
    scene.claim(join(scene.repo, "bob").session, "src/b.py")
    (scene.root / "src" / "b.py").write_text("bob works here\n")

    with pytest.raises(Held):
        scene.move("src/b.py", to="W1")
    with pytest.raises(Malformed) as error:
        scene.move("run.sh", to="W1")
    assert error.value.code == "NOT_MISPLACED"


def test_a_link_in_the_workspace_is_not_followed(scene: MisplacedTestbed, tmp_path: Path) -> None:
    _, own = scene.worker("ann", "src/**")
    outside = tmp_path / "outside"
    outside.mkdir()
    (own / "src" / "deep").symlink_to(outside)
    (scene.root / "src" / "deep").mkdir()
    (scene.root / "src" / "deep" / "new.py").write_text("new\n")

    with pytest.raises(LandlaneError) as error:
        scene.move()

    assert error.value.code == "MISPLACED_UNMOVABLE"
    assert list(outside.iterdir()) == []
