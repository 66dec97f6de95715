"""Submodules, large files, sparse, shallow and partial repositories: they work, or are refused in words."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.errors import RepositoryError
from landlane.rescue.restore import restore
from tests.support.git import git
from tests.support.workspaces import KINDS, Yard, commit_file, is_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.integration

kinds = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def module(yard: Yard, tmp_path: Path) -> Path:
    """A repository that is a submodule of the other, initialised there."""
    module = tmp_path / "module"
    git(tmp_path, "init", "--quiet", str(module))
    commit_file(module, "inner.txt", "inner\n")
    git(yard.repository, "submodule", "--quiet", "add", str(module), "vendor/module")
    git(yard.repository, "commit", "--quiet", "-m", "With a submodule")
    return module


@pytest.mark.slow
@kinds
def test_a_submodule_is_there_and_goes_cleanly(yard: Yard, module: Path, kind: str) -> None:
    workspace = yard.open(kind=kind).workspace

    assert Path(workspace.path, "vendor/module/inner.txt").read_text() == "inner\n"
    assert git(workspace.path, "status", "--porcelain") == ""
    closed = yard.close(workspace)
    assert closed.rescue == ""
    assert yard.leftovers() == []
    assert (yard.repository / "vendor/module/inner.txt").exists()
    assert git(yard.repository, "status", "--porcelain") == ""


@pytest.mark.slow
@kinds
def test_work_in_a_submodule_comes_back(yard: Yard, module: Path, kind: str) -> None:
    workspace = yard.open(kind=kind).workspace
    inner = Path(workspace.path, "vendor/module")
    (inner / "inner.txt").write_text("changed\n")
    lone = commit_file(inner, "lone.txt", "only here\n")

    closed = yard.close(workspace)
    yard.gc()

    again = restore(yard.site(), yard.session(), closed.rescue, "", str(yard.repository.with_name("again")))
    inner = Path(again.path, "vendor/module")
    assert (inner / "inner.txt").read_text() == "changed\n"
    assert git(inner, "rev-parse", "HEAD").strip() == lone


@pytest.mark.slow
@kinds
def test_a_submodule_whose_remote_is_gone_comes_from_the_main_checkout(
    yard: Yard, module: Path, kind: str
) -> None:
    shutil.rmtree(module)

    workspace = yard.open(kind=kind).workspace

    inner = Path(workspace.path, "vendor/module")
    assert (inner / "inner.txt").read_text() == "inner\n"
    assert git(inner, "config", "remote.origin.url").strip() == str(module)


@kinds
def test_a_submodule_that_cannot_be_had_is_named_and_nothing_is_left(
    yard: Yard, module: Path, kind: str
) -> None:
    shutil.rmtree(module)
    shutil.rmtree(yard.repository / ".git/modules")

    with pytest.raises(RepositoryError) as raised:
        yard.open(kind=kind)

    assert raised.value.code == "SUBMODULE_MISSING"
    assert yard.leftovers() == []


@pytest.mark.slow
@kinds
def test_a_submodule_that_the_main_checkout_does_without_stays_empty(
    yard: Yard, module: Path, kind: str
) -> None:
    git(yard.repository, "submodule", "--quiet", "deinit", "--all", "--force")

    workspace = yard.open(kind=kind).workspace

    assert list(Path(workspace.path, "vendor/module").iterdir()) == []
    yard.close(workspace)


@kinds
def test_pointers_to_large_files_are_told_of(yard: Yard, kind: str) -> None:
    commit_file(yard.repository, ".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 5\n"
    commit_file(yard.repository, "big.bin", pointer)

    opened = yard.open(kind=kind)

    assert Path(opened.workspace.path, "big.bin").read_text() == pointer
    assert any("Git LFS" in note for note in opened.notes)
    assert yard.close(opened.workspace).rescue == ""


@kinds
def test_a_filter_of_the_repository_works_in_its_workspaces(yard: Yard, kind: str) -> None:
    git(yard.repository, "config", "filter.lfs.smudge", "sed s/pointer/content/")
    git(yard.repository, "config", "filter.lfs.clean", "sed s/content/pointer/")
    commit_file(yard.repository, ".gitattributes", "*.bin filter=lfs\n")
    commit_file(yard.repository, "big.bin", "content\n")

    opened = yard.open(kind=kind)

    assert Path(opened.workspace.path, "big.bin").read_text() == "content\n"
    assert opened.notes == ()
    assert git(opened.workspace.path, "status", "--porcelain") == ""


@pytest.mark.slow
@kinds
def test_a_sparse_checkout_makes_sparse_workspaces(yard: Yard, kind: str) -> None:
    for folder in ("api", "web", "docs"):
        commit_file(yard.repository, f"{folder}/file.txt", f"{folder}\n")
    git(yard.repository, "sparse-checkout", "set", "--cone", "api")
    assert not (yard.repository / "web").exists()

    workspace = yard.open(kind=kind).workspace

    assert Path(workspace.path, "api/file.txt").exists()
    assert not Path(workspace.path, "web").exists()
    assert git(workspace.path, "status", "--porcelain") == ""
    Path(workspace.path, "api/new.txt").write_text("new\n")
    assert yard.close(workspace).rescue
    assert (yard.repository / "api/file.txt").exists()


@kinds
def test_a_shallow_repository_is_a_home(tmp_path: Path, repository: Path, kind: str) -> None:
    for number in range(3):
        commit_file(repository, f"{number}.txt", "x\n")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{repository}", str(shallow))
    yard = Yard(shallow)

    workspace = yard.open(kind=kind).workspace
    head = commit_file(workspace.path, "new.txt", "new\n")

    assert len(git(workspace.path, "log", "--oneline").splitlines()) == 2
    assert is_whole(workspace.path)
    yard.close(workspace)
    assert git(shallow, "rev-parse", workspace.branch).strip() == head
    yard.end()


@pytest.fixture
def partial(tmp_path: Path, repository: Path) -> Iterator[Yard]:
    """A repository that lacks the older contents of files, and has a remote that has them."""
    for number in range(3):
        commit_file(repository, "file.txt", f"{number}\n")
    git(repository, "config", "uploadpack.allowFilter", "true")
    git(repository, "config", "uploadpack.allowAnySHA1InWant", "true")
    where = tmp_path / "partial"
    git(tmp_path, "clone", "--quiet", "--filter=blob:none", f"file://{repository}", str(where))
    yard = Yard(where)
    yield yard
    yard.end()


def test_a_worktree_of_a_partial_clone_fetches_what_it_needs(partial: Yard) -> None:
    commit_file(partial.repository.with_name("repository"), "file.txt", "newer\n")

    workspace = partial.open().workspace

    assert Path(workspace.path, "file.txt").read_text() == "newer\n"
    commit_file(workspace.path, "new.txt", "new\n")
    assert partial.close(workspace).workspace.state == "closed"


def test_a_clone_of_a_partial_clone_is_refused_in_words(partial: Yard) -> None:
    with pytest.raises(RepositoryError) as raised:
        partial.open(kind="clone")

    assert raised.value.code == "PARTIAL_CLONE"
    assert "--kind worktree" in raised.value.hint
    assert partial.leftovers() == []
