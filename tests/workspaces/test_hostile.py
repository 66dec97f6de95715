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
from landlane.rescue.refs import list_rescues
from landlane.rescue.restore import restore
from tests.support.git import git
from tests.support.workspaces import KINDS, WorkspaceTestbed, commit_file, has_all_objects

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


def replace_git_dir(testbed: WorkspaceTestbed, path: Path, way: str) -> None:
    """Do to a workspace's `.git` what a hostile agent may do."""
    own = path / ".git"
    shutil.rmtree(own) if own.is_dir() else own.unlink()
    if way == "link to main":
        own.symlink_to(testbed.repository / ".git")
    elif way == "file to main":
        own.write_text(f"gitdir: {testbed.repository / '.git'}\n")
    elif way == "link to another clone":
        own.symlink_to(Path(testbed.open(kind="clone", agent="bob").workspace.path, ".git"))
    elif way == "file to another worktree":
        other = testbed.open(kind="worktree", agent="bob").workspace
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
def test_files_are_saved_and_nothing_behind_it_is_touched(
    testbed: WorkspaceTestbed, kind: str, way: str
) -> None:
    workspace = testbed.open(kind=kind).workspace
    path = Path(workspace.path)
    replace_git_dir(testbed, path, way)
    (path / "src").mkdir(exist_ok=True)
    (path / "src" / "new.py").write_text("new\n")
    others = [Path(one.path) for one in testbed.workspaces() if one.id != workspace.id]
    before = settings_of(testbed.repository)
    status = [git(one, "status", "--porcelain", "--branch") for one in (testbed.repository, *others)]

    closed = testbed.close(workspace, force=True)
    testbed.gc()

    assert (closed.workspace.state, bool(closed.rescue)) == ("closed", True)
    assert not os.path.lexists(path)
    assert not [one for one in testbed.folder.iterdir() if one.name.startswith(".")]
    assert [git(one, "status", "--porcelain", "--branch") for one in (testbed.repository, *others)] == status
    assert settings_of(testbed.repository) == before
    assert git(testbed.repository, "rev-parse", "main").strip() == workspace.base
    assert has_all_objects(testbed.repository)
    folder = str(testbed.repository.with_name("again"))
    again = Path(restore(testbed.prepared_repo(), testbed.session(), closed.rescue, "", folder).path)
    assert (again / "src" / "new.py").read_text() == "new\n"
    assert git(again, "status", "--porcelain", "--untracked-files=all") == "?? src/new.py\n"
    assert git(again, "rev-parse", "HEAD").strip() == workspace.base


@pytest.mark.slow
@kinds
@pytest.mark.parametrize("way", ["gone", "link to main"])
def test_a_workspace_in_which_nothing_was_done_leaves_no_rescue(
    testbed: WorkspaceTestbed, kind: str, way: str
) -> None:
    workspace = testbed.open(kind=kind).workspace
    replace_git_dir(testbed, Path(workspace.path), way)

    closed = testbed.close(workspace)

    assert (closed.rescue, closed.workspace.state) == ("", "closed")
    assert testbed.leftovers() == []
    assert list_rescues(testbed.prepared_repo().common_dir) == []


def test_commits_lost_with_the_git_directory_of_a_clone_are_saved_as_files(
    testbed: WorkspaceTestbed,
) -> None:
    workspace = testbed.open(kind="clone").workspace
    commit_file(workspace.path, "work.txt", "work\n")
    replace_git_dir(testbed, Path(workspace.path), "gone")

    closed = testbed.close(workspace)

    folder = str(testbed.repository.with_name("again"))
    again = Path(restore(testbed.prepared_repo(), testbed.session(), closed.rescue, "", folder).path)
    assert (again / "work.txt").read_text() == "work\n"


def test_a_repository_made_in_a_worktree_is_saved_beside_the_worktree_itself(
    testbed: WorkspaceTestbed,
) -> None:
    workspace = testbed.open(kind="worktree").workspace
    path = Path(workspace.path)
    git(path, "checkout", "--quiet", "--detach")
    lone = commit_file(path, "lone.txt", "on no branch\n")
    (path / ".git").unlink()
    git(path, "init", "--quiet")
    inner = commit_file(path, "inner.txt", "in the other repository\n")

    closed = testbed.close(workspace)
    testbed.gc()

    heads = {one.head for one in list_rescues(testbed.prepared_repo().common_dir)}
    assert heads == {lone, inner}
    assert len([note for note in closed.notes if "state of its worktree" in note]) == 1
    assert not (testbed.repository / ".git" / "worktrees").exists()


@pytest.mark.slow
@kinds
@pytest.mark.parametrize("way", ["gone", "link to main", "file to main"])
def test_changes_during_a_close_are_saved(testbed: WorkspaceTestbed, kind: str, way: str) -> None:
    workspace = testbed.open(kind=kind).workspace
    path = Path(workspace.path)
    head = (testbed.repository / ".git" / "HEAD").read_bytes()

    def after(step: str) -> None:
        if step == "saved":
            replace_git_dir(testbed, path, way)
            (path / "late.txt").write_text("late\n")

    closed = testbed.close(workspace, force=True, on_step=after)

    assert (testbed.repository / ".git" / "HEAD").read_bytes() == head
    folder = str(testbed.repository.with_name("again"))
    again = Path(restore(testbed.prepared_repo(), testbed.session(), closed.rescue, "", folder).path)
    assert (again / "late.txt").read_text() == "late\n"


@kinds
def test_a_link_in_place_of_the_folder_is_removed_and_not_followed(
    testbed: WorkspaceTestbed, kind: str
) -> None:
    workspace = testbed.open(kind=kind).workspace
    path = Path(workspace.path)
    shutil.rmtree(path)
    path.symlink_to(testbed.repository)

    closed = testbed.close(workspace)

    assert closed.workspace.state == "closed"
    assert not path.is_symlink()
    assert (testbed.repository / "README.md").exists()
    assert has_all_objects(testbed.repository)
    assert git(testbed.repository, "status", "--porcelain") == ""


def test_changes_that_cannot_be_saved_stay_and_their_path_is_reported(testbed: WorkspaceTestbed) -> None:
    workspace = testbed.open(kind="clone").workspace
    path = Path(workspace.path)
    (path / ".git" / "HEAD").unlink()
    (path / "new.txt").write_text("new\n")

    with pytest.raises(RepositoryError, match=str(path)):
        testbed.close(workspace)

    assert (path / "new.txt").read_text() == "new\n"
    (kept,) = testbed.workspaces()
    assert kept.state == "open"
    assert str(path) in kept.why


@pytest.mark.parametrize("way", ["link to main", "file to main"])
def test_another_repository_is_not_mistaken_for_that_of_a_clone(testbed: WorkspaceTestbed, way: str) -> None:
    workspace = testbed.open(kind="clone").workspace
    replace_git_dir(testbed, Path(workspace.path), way)
    home = testbed.prepared_repo().home

    assert find_git_dir(home, workspace.path) == ""
    assert fetch_clone_branch(home, workspace.path, "main") == ""


def test_a_crash_half_way_through_the_removal_makes_no_rescue_of_deletions(testbed: WorkspaceTestbed) -> None:
    workspace = testbed.open(kind="clone").workspace
    replace_git_dir(testbed, Path(workspace.path), "link to main")

    def stop(step: str) -> None:
        if step == "renamed":
            shutil.rmtree(Path(removal_path(workspace.path, workspace.id), ".git"))
            Path(removal_path(workspace.path, workspace.id), "README.md").unlink()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        testbed.close(workspace, on_step=stop)
    (half,) = testbed.workspaces()
    closed = testbed.close(half)

    assert (closed.rescue, closed.workspace.state) == ("", "closed")
    assert list_rescues(testbed.prepared_repo().common_dir) == []


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
def test_the_mode_of_the_folder_of_workspaces_stays(testbed: WorkspaceTestbed, kind: str) -> None:
    workspace = testbed.open(kind=kind).workspace
    cache = Path(workspace.path, "cache")
    cache.mkdir()
    (cache / "link").symlink_to(testbed.repository)
    cache.chmod(0o500)
    testbed.folder.chmod(0o755)

    testbed.close(workspace)

    assert stat.S_IMODE(testbed.folder.stat().st_mode) == 0o755


@pytest.mark.slow
@pytest.mark.parametrize("way", ["gone", "link to main", "file to main"])
def test_a_worktree_unknown_to_the_repository_is_saved(testbed: WorkspaceTestbed, way: str) -> None:
    workspace = testbed.open(kind="worktree").workspace
    path = Path(workspace.path)
    shutil.rmtree(find_git_dir(testbed.prepared_repo().home, workspace.path))
    replace_git_dir(testbed, path, way)
    (path / "new.txt").write_text("new\n")
    before = settings_of(testbed.repository)

    closed = testbed.close(workspace)

    assert settings_of(testbed.repository) == before
    assert not os.path.lexists(path)
    folder = str(testbed.repository.with_name("again"))
    again = Path(restore(testbed.prepared_repo(), testbed.session(), closed.rescue, "", folder).path)
    assert git(again, "status", "--porcelain") == "?? new.txt\n"
