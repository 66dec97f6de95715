"""Closing workspaces whose git directory was removed or replaced: nothing that it leads to is touched."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path

import pytest

from landlane.errors import RepositoryError
from landlane.git.create_checkout import fetch_clone_branch
from landlane.git.remove_checkout import find_git_dir, removal_path, remove_tree
from landlane.rescue.restore import restore
from landlane.rescue.save import saved_work
from tests.support.git import git
from tests.support.workspaces import KINDS, Yard, commit_file, is_whole

pytestmark = pytest.mark.integration

kinds = pytest.mark.parametrize("kind", KINDS)
WAYS = (
    "gone",
    "link to main",
    "file to main",
    "link to another clone",
    "file to another worktree",
    "dangling link",
    "empty folder",
    "pipe",
)


def replace_git_dir(yard: Yard, path: Path, way: str) -> None:
    """Do to a workspace's `.git` what a hostile agent may do."""
    own = path / ".git"
    shutil.rmtree(own) if own.is_dir() else own.unlink()
    if way == "link to main":
        own.symlink_to(yard.repository / ".git")
    elif way == "file to main":
        own.write_text(f"gitdir: {yard.repository / '.git'}\n")
    elif way == "link to another clone":
        own.symlink_to(Path(yard.open(kind="clone", agent="bob").workspace.path, ".git"))
    elif way == "file to another worktree":
        other = yard.open(kind="worktree", agent="bob").workspace
        own.write_text(Path(other.path, ".git").read_text())
    elif way == "dangling link":
        own.symlink_to(path / "nothing")
    elif way == "empty folder":
        own.mkdir()
    elif way == "pipe":
        os.mkfifo(own)


def settings_of(repository: Path) -> list[bytes]:
    return [(repository / ".git" / name).read_bytes() for name in ("HEAD", "config", "index")]


@pytest.mark.slow
@kinds
@pytest.mark.parametrize("way", WAYS)
def test_files_are_saved_and_nothing_behind_it_is_touched(yard: Yard, kind: str, way: str) -> None:
    workspace = yard.open(kind=kind).workspace
    path = Path(workspace.path)
    replace_git_dir(yard, path, way)
    (path / "src").mkdir(exist_ok=True)
    (path / "src" / "new.py").write_text("new\n")
    others = [Path(one.path) for one in yard.known() if one.id != workspace.id]
    before = settings_of(yard.repository)
    status = [git(one, "status", "--porcelain", "--branch") for one in (yard.repository, *others)]

    closed = yard.close(workspace, force=True)
    yard.gc()

    assert (closed.workspace.state, bool(closed.rescue)) == ("closed", True)
    assert not os.path.lexists(path)
    assert not [one for one in yard.folder.iterdir() if one.name.startswith(".")]
    assert [git(one, "status", "--porcelain", "--branch") for one in (yard.repository, *others)] == status
    assert settings_of(yard.repository) == before
    assert git(yard.repository, "rev-parse", "main").strip() == workspace.base
    assert is_whole(yard.repository)
    folder = str(yard.repository.with_name("again"))
    again = Path(restore(yard.site(), yard.session(), closed.rescue, "", folder).path)
    assert (again / "src" / "new.py").read_text() == "new\n"
    assert git(again, "status", "--porcelain", "--untracked-files=all") == "?? src/new.py\n"
    assert git(again, "rev-parse", "HEAD").strip() == workspace.base


@pytest.mark.slow
@kinds
@pytest.mark.parametrize("way", ["gone", "link to main"])
def test_a_workspace_in_which_nothing_was_done_leaves_no_rescue(yard: Yard, kind: str, way: str) -> None:
    workspace = yard.open(kind=kind).workspace
    replace_git_dir(yard, Path(workspace.path), way)

    closed = yard.close(workspace)

    assert (closed.rescue, closed.workspace.state) == ("", "closed")
    assert yard.leftovers() == []
    assert saved_work(yard.site()) == []


def test_what_was_committed_in_a_clone_and_lost_with_its_git_directory_is_saved_as_files(yard: Yard) -> None:
    workspace = yard.open(kind="clone").workspace
    commit_file(workspace.path, "work.txt", "work\n")
    replace_git_dir(yard, Path(workspace.path), "gone")

    closed = yard.close(workspace)

    folder = str(yard.repository.with_name("again"))
    again = Path(restore(yard.site(), yard.session(), closed.rescue, "", folder).path)
    assert (again / "work.txt").read_text() == "work\n"


def test_a_repository_made_in_a_worktree_is_saved_beside_the_worktree_itself(yard: Yard) -> None:
    workspace = yard.open(kind="worktree").workspace
    path = Path(workspace.path)
    git(path, "checkout", "--quiet", "--detach")
    lone = commit_file(path, "lone.txt", "on no branch\n")
    (path / ".git").unlink()
    git(path, "init", "--quiet")
    inner = commit_file(path, "inner.txt", "in the other repository\n")

    closed = yard.close(workspace)
    yard.gc()

    heads = {one.head for one in saved_work(yard.site())}
    assert heads == {lone, inner}
    assert len([note for note in closed.notes if "knew of its worktree" in note]) == 1
    assert not (yard.repository / ".git" / "worktrees").exists()


@pytest.mark.slow
@kinds
@pytest.mark.parametrize("way", ["gone", "link to main", "file to main"])
def test_what_is_done_while_it_is_closed_is_saved_too(yard: Yard, kind: str, way: str) -> None:
    workspace = yard.open(kind=kind).workspace
    path = Path(workspace.path)
    head = (yard.repository / ".git" / "HEAD").read_bytes()

    def after(step: str) -> None:
        if step == "saved":
            replace_git_dir(yard, path, way)
            (path / "late.txt").write_text("late\n")

    closed = yard.close(workspace, force=True, on_step=after)

    assert (yard.repository / ".git" / "HEAD").read_bytes() == head
    folder = str(yard.repository.with_name("again"))
    again = Path(restore(yard.site(), yard.session(), closed.rescue, "", folder).path)
    assert (again / "late.txt").read_text() == "late\n"


@kinds
def test_a_link_in_the_place_of_the_whole_folder_is_cut_and_not_followed(yard: Yard, kind: str) -> None:
    workspace = yard.open(kind=kind).workspace
    path = Path(workspace.path)
    shutil.rmtree(path)
    path.symlink_to(yard.repository)

    closed = yard.close(workspace)

    assert closed.workspace.state == "closed"
    assert not path.is_symlink()
    assert (yard.repository / "README.md").exists()
    assert is_whole(yard.repository)
    assert git(yard.repository, "status", "--porcelain") == ""


def test_what_cannot_be_saved_stays_and_its_path_is_told(yard: Yard) -> None:
    workspace = yard.open(kind="clone").workspace
    path = Path(workspace.path)
    (path / ".git" / "HEAD").unlink()
    (path / "new.txt").write_text("new\n")

    with pytest.raises(RepositoryError, match=str(path)):
        yard.close(workspace)

    assert (path / "new.txt").read_text() == "new\n"
    (kept,) = yard.known()
    assert kept.state == "open"
    assert str(path) in kept.why


@pytest.mark.parametrize("way", ["link to main", "file to main"])
def test_no_other_repository_is_taken_for_that_of_a_clone(yard: Yard, way: str) -> None:
    workspace = yard.open(kind="clone").workspace
    replace_git_dir(yard, Path(workspace.path), way)
    home = yard.site().home

    assert find_git_dir(home, workspace.path) == ""
    assert fetch_clone_branch(home, workspace.path, "main") == ""


def test_a_crash_half_way_through_the_removal_makes_no_rescue_of_deletions(yard: Yard) -> None:
    workspace = yard.open(kind="clone").workspace
    replace_git_dir(yard, Path(workspace.path), "link to main")

    def stop(step: str) -> None:
        if step == "renamed":
            shutil.rmtree(Path(removal_path(workspace.path, workspace.id), ".git"))
            Path(removal_path(workspace.path, workspace.id), "README.md").unlink()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        yard.close(workspace, on_step=stop)
    (half,) = yard.known()
    closed = yard.close(half)

    assert (closed.rescue, closed.workspace.state) == ("", "closed")
    assert saved_work(yard.site()) == []


def test_the_folder_above_stays_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    above = tmp_path / "above"
    (above / "going" / "deep").mkdir(parents=True)
    (above / "going" / "deep" / "link").symlink_to(tmp_path)
    above.chmod(0o555)
    real_rmdir = os.rmdir

    def rmdir(path: str, **more: int) -> None:  # as for anybody but root
        if os.path.basename(path) == "going":
            raise PermissionError(errno.EACCES, "Permission denied", path)
        real_rmdir(path, **more)

    monkeypatch.setattr(os, "rmdir", rmdir)
    with pytest.raises(RepositoryError, match="cannot be removed"):
        remove_tree(str(above / "going"))
    mode = stat.S_IMODE(above.stat().st_mode)
    above.chmod(0o755)

    assert mode == 0o555


@kinds
def test_the_mode_of_the_folder_of_workspaces_stays(yard: Yard, kind: str) -> None:
    workspace = yard.open(kind=kind).workspace
    cache = Path(workspace.path, "cache")
    cache.mkdir()
    (cache / "link").symlink_to(yard.repository)
    cache.chmod(0o500)
    yard.folder.chmod(0o755)

    yard.close(workspace)

    assert stat.S_IMODE(yard.folder.stat().st_mode) == 0o755


@pytest.mark.slow
@pytest.mark.parametrize("way", ["gone", "link to main", "file to main"])
def test_a_worktree_that_the_repository_does_not_know_any_more_is_saved(yard: Yard, way: str) -> None:
    workspace = yard.open(kind="worktree").workspace
    path = Path(workspace.path)
    shutil.rmtree(find_git_dir(yard.site().home, workspace.path))
    replace_git_dir(yard, path, way)
    (path / "new.txt").write_text("new\n")
    before = settings_of(yard.repository)

    closed = yard.close(workspace)

    assert settings_of(yard.repository) == before
    assert not os.path.lexists(path)
    folder = str(yard.repository.with_name("again"))
    again = Path(restore(yard.site(), yard.session(), closed.rescue, "", folder).path)
    assert git(again, "status", "--porcelain") == "?? new.txt\n"
