"""Where a repository lies: checkouts, linked worktrees, submodules, separate and broken git directories."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from landlane.errors import RepositoryError
from landlane.git.discovery import find_checkout
from landlane.testing.repositories import git, make_repository

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


def code_of(folder: Path) -> str:
    with pytest.raises(RepositoryError) as caught:
        find_checkout(str(folder))
    assert caught.value.hint
    return caught.value.code


def state_of(folder: Path) -> str:
    return find_checkout(str(folder)).state_folder


def test_every_folder_of_a_checkout_has_the_same_state(repository: Path) -> None:
    deep = repository / "a" / "b"
    deep.mkdir(parents=True)

    assert find_checkout(str(deep)).root == str(repository)
    assert state_of(deep) == state_of(repository) == str(repository / ".git" / "landlane")


def test_linked_worktrees_share_the_state_and_have_their_own_root(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "--quiet", "../linked")

    linked = find_checkout(str(tmp_path / "linked"))

    assert linked.root == str(tmp_path / "linked")
    assert linked.state_folder == state_of(repository)


def test_a_folder_reached_through_a_link_is_the_same_checkout(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(repository)

    assert find_checkout(str(tmp_path / "link")) == find_checkout(str(repository))


def test_a_git_directory_that_is_a_link_is_the_same_for_all_worktrees(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "main")
    (repository / ".git").rename(tmp_path / "elsewhere")
    (repository / ".git").symlink_to(tmp_path / "elsewhere")
    git(repository, "worktree", "add", "--quiet", "../linked")

    assert state_of(tmp_path / "linked") == state_of(repository)


def test_a_separate_git_directory_holds_the_state(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init", "--quiet", "--separate-git-dir", str(tmp_path / "store.git"))
    (work / "src").mkdir()

    found = find_checkout(str(work / "src"))

    assert (found.root, found.state_folder) == (str(work), str(tmp_path / "store.git" / "landlane"))


def test_a_submodule_is_a_repository_of_its_own(repository: Path, tmp_path: Path) -> None:
    make_repository(tmp_path / "library")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../library", "sub")

    found = find_checkout(str(repository / "sub"))

    assert found.root == str(repository / "sub")
    assert found.state_folder == str(repository / ".git" / "modules" / "sub" / "landlane")


@pytest.mark.parametrize("folder", [".", "objects", "refs/heads"])
def test_a_bare_repository_has_nothing_to_claim(tmp_path: Path, folder: str) -> None:
    git(tmp_path, "init", "--quiet", "--bare", "bare.git")

    assert code_of(tmp_path / "bare.git" / folder) == "BARE_REPOSITORY"


def test_the_inside_of_a_git_directory_has_nothing_to_claim(repository: Path) -> None:
    assert code_of(repository / ".git") == "BARE_REPOSITORY"
    assert code_of(repository / ".git" / "refs") == "BARE_REPOSITORY"


def test_a_worktree_of_a_bare_repository_works(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", str(repository), "bare.git")
    git(tmp_path / "bare.git", "worktree", "add", "--quiet", "../work", "main")

    found = find_checkout(str(tmp_path / "work"))

    assert (found.root, found.state_folder) == (
        str(tmp_path / "work"),
        str(tmp_path / "bare.git" / "landlane"),
    )


def test_missing_repository_is_an_error(tmp_path: Path) -> None:
    assert code_of(tmp_path) == "NO_REPOSITORY"
    assert code_of(tmp_path / "not" / "there") == "NO_REPOSITORY"


def _break_head(git_dir: Path) -> None:
    (git_dir / "HEAD").unlink()


def _break_objects(git_dir: Path) -> None:
    (git_dir / "objects").rename(git_dir / "gone")


def _empty(git_dir: Path) -> None:
    git_dir.rename(git_dir.parent / "gone")
    git_dir.mkdir()


def _point_to_nowhere(git_dir: Path) -> None:
    git_dir.rename(git_dir.parent / "gone")
    git_dir.write_text("gitdir: /nowhere/at/all\n", encoding="utf-8")


def _write_garbage(git_dir: Path) -> None:
    git_dir.rename(git_dir.parent / "gone")
    git_dir.write_bytes(os.urandom(200))


def _dangle(git_dir: Path) -> None:
    git_dir.rename(git_dir.parent / "gone")
    git_dir.symlink_to("/nowhere/at/all")


@pytest.mark.promise(
    "repository.never-the-one-around",
    "A broken repository is reported and never mistaken for the repository around it.",
)
@pytest.mark.parametrize(
    "damage", [_break_head, _break_objects, _empty, _point_to_nowhere, _write_garbage, _dangle]
)
def test_broken_repository_is_an_error_and_not_the_one_around_it(repository: Path, damage) -> None:
    inner = make_repository(repository / "inner")
    damage(inner / ".git")

    assert code_of(inner) == "REPOSITORY_BROKEN"


def test_a_worktree_whose_repository_is_gone_is_broken(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "--quiet", "../linked")
    repository.rename(tmp_path / "moved")

    assert code_of(tmp_path / "linked") == "REPOSITORY_BROKEN"


def test_outside_git_the_folder_that_init_made_is_the_root(tmp_path: Path) -> None:
    (tmp_path / "plain" / ".landlane").mkdir(parents=True)
    (tmp_path / "plain" / "src").mkdir()

    found = find_checkout(str(tmp_path / "plain" / "src"))

    assert (found.root, found.common_dir) == (str(tmp_path / "plain"), "")
    assert found.state_folder == str(tmp_path / "plain" / ".landlane")


# ------------------------------------------------------------------------------- as git's hooks see it


def test_git_dir_names_the_repository_for_every_folder_of_its_worktree(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "src").mkdir()
    monkeypatch.chdir(repository)
    monkeypatch.setenv("GIT_DIR", ".git")

    assert find_checkout(str(repository)).root == str(repository)
    assert find_checkout(str(repository / "src")).root == str(repository)


def test_git_dir_of_a_linked_worktree_leads_to_its_root(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(repository, "worktree", "add", "--quiet", "../linked")
    monkeypatch.setenv("GIT_DIR", str(repository / ".git" / "worktrees" / "linked"))

    found = find_checkout(str(tmp_path / "linked"))

    assert found.root == str(tmp_path / "linked")
    assert found.state_folder == str(repository / ".git" / "landlane")


def test_git_dir_of_a_separate_git_directory_keeps_the_root_in_every_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    git(work, "init", "--quiet", "--separate-git-dir", str(tmp_path / "store.git"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "store.git"))

    assert find_checkout(str(work / "src")).root == str(work)


def test_git_work_tree_names_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tmp_path, "init", "--quiet", "--bare", "dotfiles.git")
    (tmp_path / "home" / "sub").mkdir(parents=True)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "dotfiles.git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "home"))

    assert find_checkout(str(tmp_path / "home" / "sub")).root == str(tmp_path / "home")


def test_git_dir_may_be_a_pointer_file(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(repository, "worktree", "add", "--quiet", "../linked")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "linked" / ".git"))

    assert find_checkout(str(tmp_path / "linked")).root == str(tmp_path / "linked")


def test_git_dir_says_nothing_about_a_folder_elsewhere(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_repository(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(repository / ".git"))

    assert find_checkout(str(other)).root == str(other)


def test_a_hook_on_a_server_has_nothing_to_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tmp_path, "init", "--quiet", "--bare", "bare.git")
    monkeypatch.chdir(tmp_path / "bare.git")
    monkeypatch.setenv("GIT_DIR", ".")

    assert code_of(tmp_path / "bare.git") == "BARE_REPOSITORY"


def test_invalid_git_dir_is_an_error(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", str(repository / "not-there"))

    assert code_of(repository) == "REPOSITORY_BROKEN"
