"""Repositories in odd places and shapes: unborn, bare, detached, oddly named, set up in their own way."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from landlane.errors import LandlaneError, RepositoryError
from tests.support.git import git
from tests.support.workspaces import KINDS, Yard, commit_file, is_whole

pytestmark = pytest.mark.integration

kinds = pytest.mark.parametrize("kind", KINDS)


@kinds
def test_a_repository_without_a_commit_is_refused_in_words(tmp_path: Path, kind: str) -> None:
    git(tmp_path, "init", "--quiet", "unborn")
    yard = Yard(tmp_path / "unborn")

    with pytest.raises(RepositoryError) as raised:
        yard.open(kind=kind)

    assert raised.value.code == "NO_TARGET"
    assert yard.leftovers() == []
    yard.end()


@pytest.mark.slow
@kinds
@pytest.mark.parametrize("name", ["with space", "ünï-コード", "quote'\"back\\slash", "-dash"])
def test_a_repository_may_have_an_odd_name(tmp_path: Path, repository: Path, kind: str, name: str) -> None:
    yard = Yard(repository.rename(tmp_path / name))
    workspace = yard.open(kind=kind).workspace
    commit_file(workspace.path, "new.txt", "new\n")
    yard.gc()

    assert is_whole(workspace.path)
    assert yard.close(workspace).workspace.state == "closed"
    yard.end()


@kinds
def test_a_repository_with_a_line_end_in_its_name_works_or_is_refused_in_words(
    tmp_path: Path, repository: Path, kind: str
) -> None:
    yard = Yard(repository.rename(tmp_path / "two\nlines"))
    try:
        workspace = yard.open(kind=kind).workspace
    except LandlaneError as error:
        assert error.message  # noqa: PT017 - either way is fine
    else:
        assert git(workspace.path, "status", "--porcelain") == ""
        yard.close(workspace)
    yard.end()


@kinds
def test_a_detached_main_checkout_does_not_matter(yard: Yard, kind: str) -> None:
    git(yard.repository, "checkout", "--quiet", "--detach")

    assert yard.open(kind=kind).workspace.target == "main"


@kinds
def test_a_bare_repository_with_worktrees_is_a_home(tmp_path: Path, repository: Path, kind: str) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", str(repository), "bare.git")
    git(tmp_path / "bare.git", "remote", "remove", "origin")
    git(tmp_path / "bare.git", "worktree", "add", "--quiet", "-b", "own", str(tmp_path / "own"), "main")
    yard = Yard(tmp_path / "own")

    workspace = yard.open(kind=kind).workspace

    assert Path(workspace.path) == tmp_path / "bare.git.workspaces" / f"{workspace.task}-ann"
    assert git(workspace.path, "status", "--porcelain") == ""
    commit_file(workspace.path, "new.txt", "new\n")
    assert yard.close(workspace).workspace.state == "closed"
    assert git(tmp_path / "bare.git", "show", f"{workspace.branch}:new.txt") == "new\n"
    yard.end()


def test_a_clone_is_set_up_like_its_home(yard: Yard) -> None:
    git(yard.repository, "config", "core.autocrlf", "input")
    git(yard.repository, "config", "filter.odd.clean", 'sed "s/a\\\\b/c/"')
    git(yard.repository, "config", "user.name", "Somebody Else")
    git(yard.repository, "remote", "add", "origin", "../somewhere.git")
    (yard.repository / ".git/info/exclude").write_text("secret.txt\n")
    (yard.repository / ".git/hooks").mkdir(exist_ok=True)
    (yard.repository / ".git/hooks/pre-commit").write_text("#!/bin/sh\nexit 1\n")
    (yard.repository / ".git/hooks/pre-commit").chmod(0o755)

    path = Path(yard.open(kind="clone", is_offline=True).workspace.path)

    def setting(name: str) -> str:
        return git(path, "config", name).strip()

    assert setting("core.autocrlf") == "input"
    assert setting("filter.odd.clean") == git(yard.repository, "config", "filter.odd.clean").strip()
    assert setting("user.name") == "Somebody Else"
    assert setting("remote.origin.url") == str(yard.repository.with_name("somewhere.git"))
    (path / "secret.txt").write_text("never to be seen\n")
    assert git(path, "status", "--porcelain") == ""
    (path / "new.txt").write_text("new\n")
    git(path, "add", "new.txt")
    done = subprocess.run(["git", "commit", "-m", "x"], cwd=path, capture_output=True, env=dict(os.environ))
    assert done.returncode == 1  # the hook ran
