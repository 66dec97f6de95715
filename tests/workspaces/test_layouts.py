"""Submodules, large files, sparse, shallow and partial repositories: they work, or are refused in words."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.errors import RepositoryError
from landlane.rescue.restore import restore
from tests.support.git import git
from tests.support.workspaces import KINDS, WorkspaceTestbed, commit_file, has_all_objects

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.integration

kinds = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def module(testbed: WorkspaceTestbed, tmp_path: Path) -> Path:
    """A repository that is a submodule of the other, initialised there."""
    module = tmp_path / "module"
    git(tmp_path, "init", "--quiet", str(module))
    commit_file(module, "inner.txt", "inner\n")
    git(testbed.repository, "submodule", "--quiet", "add", str(module), "vendor/module")
    git(testbed.repository, "commit", "--quiet", "-m", "With a submodule")
    return module


@pytest.mark.slow
@kinds
def test_a_submodule_is_there_and_goes_cleanly(testbed: WorkspaceTestbed, module: Path, kind: str) -> None:
    workspace = testbed.open(kind=kind).workspace

    assert Path(workspace.path, "vendor/module/inner.txt").read_text() == "inner\n"
    assert git(workspace.path, "status", "--porcelain") == ""
    closed = testbed.close(workspace)
    assert closed.rescue == ""
    assert testbed.leftovers() == []
    assert (testbed.repository / "vendor/module/inner.txt").exists()
    assert git(testbed.repository, "status", "--porcelain") == ""


@pytest.mark.slow
@kinds
def test_work_in_a_submodule_comes_back(testbed: WorkspaceTestbed, module: Path, kind: str) -> None:
    workspace = testbed.open(kind=kind).workspace
    inner = Path(workspace.path, "vendor/module")
    (inner / "inner.txt").write_text("changed\n")
    lone = commit_file(inner, "lone.txt", "only here\n")

    closed = testbed.close(workspace)
    testbed.gc()

    again = restore(
        testbed.prepared_repo(),
        testbed.session(),
        closed.rescue,
        "",
        str(testbed.repository.with_name("again")),
    )
    inner = Path(again.path, "vendor/module")
    assert (inner / "inner.txt").read_text() == "changed\n"
    assert git(inner, "rev-parse", "HEAD").strip() == lone


@pytest.mark.slow
@kinds
def test_a_submodule_whose_remote_is_gone_comes_from_the_main_checkout(
    testbed: WorkspaceTestbed, module: Path, kind: str
) -> None:
    shutil.rmtree(module)

    workspace = testbed.open(kind=kind).workspace

    inner = Path(workspace.path, "vendor/module")
    assert (inner / "inner.txt").read_text() == "inner\n"
    assert git(inner, "config", "remote.origin.url").strip() == str(module)


@kinds
def test_an_unavailable_submodule_is_named_and_nothing_is_left(
    testbed: WorkspaceTestbed, module: Path, kind: str
) -> None:
    shutil.rmtree(module)
    shutil.rmtree(testbed.repository / ".git/modules")

    with pytest.raises(RepositoryError) as raised:
        testbed.open(kind=kind)

    assert raised.value.code == "SUBMODULE_MISSING"
    assert testbed.leftovers() == []


@pytest.mark.slow
@kinds
def test_a_submodule_that_the_main_checkout_does_without_stays_empty(
    testbed: WorkspaceTestbed, module: Path, kind: str
) -> None:
    git(testbed.repository, "submodule", "--quiet", "deinit", "--all", "--force")

    workspace = testbed.open(kind=kind).workspace

    assert list(Path(workspace.path, "vendor/module").iterdir()) == []
    testbed.close(workspace)


@kinds
def test_lfs_pointers_are_reported(testbed: WorkspaceTestbed, kind: str) -> None:
    commit_file(testbed.repository, ".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 5\n"
    commit_file(testbed.repository, "big.bin", pointer)

    opened = testbed.open(kind=kind)

    assert Path(opened.workspace.path, "big.bin").read_text() == pointer
    assert any("Git LFS" in note for note in opened.notes)
    assert testbed.close(opened.workspace).rescue == ""


@kinds
def test_a_filter_of_the_repository_works_in_its_workspaces(testbed: WorkspaceTestbed, kind: str) -> None:
    git(testbed.repository, "config", "filter.lfs.smudge", "sed s/pointer/content/")
    git(testbed.repository, "config", "filter.lfs.clean", "sed s/content/pointer/")
    commit_file(testbed.repository, ".gitattributes", "*.bin filter=lfs\n")
    commit_file(testbed.repository, "big.bin", "content\n")

    opened = testbed.open(kind=kind)

    assert Path(opened.workspace.path, "big.bin").read_text() == "content\n"
    assert opened.notes == ()
    assert git(opened.workspace.path, "status", "--porcelain") == ""


@pytest.mark.slow
@kinds
def test_a_sparse_checkout_makes_sparse_workspaces(testbed: WorkspaceTestbed, kind: str) -> None:
    for folder in ("api", "web", "docs"):
        commit_file(testbed.repository, f"{folder}/file.txt", f"{folder}\n")
    git(testbed.repository, "sparse-checkout", "set", "--cone", "api")
    assert not (testbed.repository / "web").exists()

    workspace = testbed.open(kind=kind).workspace

    assert Path(workspace.path, "api/file.txt").exists()
    assert not Path(workspace.path, "web").exists()
    assert git(workspace.path, "status", "--porcelain") == ""
    Path(workspace.path, "api/new.txt").write_text("new\n")
    assert testbed.close(workspace).rescue
    assert (testbed.repository / "api/file.txt").exists()


@kinds
def test_a_shallow_repository_is_a_home(tmp_path: Path, repository: Path, kind: str) -> None:
    for number in range(3):
        commit_file(repository, f"{number}.txt", "x\n")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{repository}", str(shallow))
    testbed = WorkspaceTestbed(shallow)

    workspace = testbed.open(kind=kind).workspace
    head = commit_file(workspace.path, "new.txt", "new\n")

    assert len(git(workspace.path, "log", "--oneline").splitlines()) == 2
    assert has_all_objects(workspace.path)
    testbed.close(workspace)
    assert git(shallow, "rev-parse", workspace.branch).strip() == head
    testbed.end()


@pytest.fixture
def partial(tmp_path: Path, repository: Path) -> Iterator[WorkspaceTestbed]:
    """A repository that lacks the older contents of files, and has a remote that has them."""
    for number in range(3):
        commit_file(repository, "file.txt", f"{number}\n")
    git(repository, "config", "uploadpack.allowFilter", "true")
    git(repository, "config", "uploadpack.allowAnySHA1InWant", "true")
    where = tmp_path / "partial"
    git(tmp_path, "clone", "--quiet", "--filter=blob:none", f"file://{repository}", str(where))
    testbed = WorkspaceTestbed(where)
    yield testbed
    testbed.end()


def test_a_worktree_of_a_partial_clone_fetches_what_it_needs(partial: WorkspaceTestbed) -> None:
    commit_file(partial.repository.with_name("repository"), "file.txt", "newer\n")

    workspace = partial.open().workspace

    assert Path(workspace.path, "file.txt").read_text() == "newer\n"
    commit_file(workspace.path, "new.txt", "new\n")
    assert partial.close(workspace).workspace.state == "closed"


def test_a_clone_of_a_partial_clone_is_refused(partial: WorkspaceTestbed) -> None:
    with pytest.raises(RepositoryError) as raised:
        partial.open(kind="clone")

    assert raised.value.code == "PARTIAL_CLONE"
    assert "--kind worktree" in raised.value.hint
    assert partial.leftovers() == []
