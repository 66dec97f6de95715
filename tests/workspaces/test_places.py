"""Repositories in odd places and shapes: unborn, bare, detached, oddly named, set up in their own way."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from landlane.errors import LandlaneError, RepositoryError
from tests.support.git import git
from tests.support.workspaces import KINDS, WorkspaceTestbed, commit_file, has_all_objects

pytestmark = pytest.mark.integration

kinds = pytest.mark.parametrize("kind", KINDS)


@kinds
def test_a_repository_without_a_commit_is_refused(tmp_path: Path, kind: str) -> None:
    git(tmp_path, "init", "--quiet", "unborn")
    testbed = WorkspaceTestbed(tmp_path / "unborn")

    with pytest.raises(RepositoryError) as raised:
        testbed.open(kind=kind)

    assert raised.value.code == "NO_TARGET"
    assert testbed.leftovers() == []
    testbed.end()


@pytest.mark.slow
@kinds
@pytest.mark.parametrize("name", ["with space", "ünï-コード", "quote'\"back\\slash", "-dash"])
def test_a_repository_may_have_an_odd_name(tmp_path: Path, repository: Path, kind: str, name: str) -> None:
    testbed = WorkspaceTestbed(repository.rename(tmp_path / name))
    workspace = testbed.open(kind=kind).workspace
    commit_file(workspace.path, "new.txt", "new\n")
    testbed.gc()

    assert has_all_objects(workspace.path)
    assert testbed.close(workspace).workspace.state == "closed"
    testbed.end()


@kinds
def test_a_repository_with_a_newline_in_its_name_works_or_is_refused(
    tmp_path: Path, repository: Path, kind: str
) -> None:
    testbed = WorkspaceTestbed(repository.rename(tmp_path / "two\nlines"))
    try:
        workspace = testbed.open(kind=kind).workspace
    except LandlaneError as error:
        assert error.message  # noqa: PT017 - either way is fine
    else:
        assert git(workspace.path, "status", "--porcelain") == ""
        testbed.close(workspace)
    testbed.end()


@kinds
def test_a_detached_main_checkout_does_not_matter(testbed: WorkspaceTestbed, kind: str) -> None:
    git(testbed.repository, "checkout", "--quiet", "--detach")

    assert testbed.open(kind=kind).workspace.target == "main"


@kinds
def test_a_bare_repository_with_worktrees_is_a_home(tmp_path: Path, repository: Path, kind: str) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", str(repository), "bare.git")
    git(tmp_path / "bare.git", "remote", "remove", "origin")
    git(tmp_path / "bare.git", "worktree", "add", "--quiet", "-b", "own", str(tmp_path / "own"), "main")
    testbed = WorkspaceTestbed(tmp_path / "own")

    workspace = testbed.open(kind=kind).workspace

    assert Path(workspace.path) == tmp_path / "bare.git.workspaces" / f"{workspace.task}-ann"
    assert git(workspace.path, "status", "--porcelain") == ""
    commit_file(workspace.path, "new.txt", "new\n")
    assert testbed.close(workspace).workspace.state == "closed"
    assert git(tmp_path / "bare.git", "show", f"{workspace.branch}:new.txt") == "new\n"
    testbed.end()


def test_a_clone_is_set_up_like_its_home(testbed: WorkspaceTestbed) -> None:
    git(testbed.repository, "config", "core.autocrlf", "input")
    git(testbed.repository, "config", "filter.odd.clean", 'sed "s/a\\\\b/c/"')
    git(testbed.repository, "config", "user.name", "Somebody Else")
    git(testbed.repository, "remote", "add", "origin", "../somewhere.git")
    (testbed.repository / ".git/info/exclude").write_text("secret.txt\n")
    (testbed.repository / ".git/hooks").mkdir(exist_ok=True)
    (testbed.repository / ".git/hooks/pre-commit").write_text("#!/bin/sh\nexit 1\n")
    (testbed.repository / ".git/hooks/pre-commit").chmod(0o755)

    path = Path(testbed.open(kind="clone", is_offline=True).workspace.path)

    def setting(name: str) -> str:
        return git(path, "config", name).strip()

    assert setting("core.autocrlf") == "input"
    assert setting("filter.odd.clean") == git(testbed.repository, "config", "filter.odd.clean").strip()
    assert setting("user.name") == "Somebody Else"
    assert setting("remote.origin.url") == str(testbed.repository.with_name("somewhere.git"))
    (path / "secret.txt").write_text("never to be seen\n")
    assert git(path, "status", "--porcelain") == ""
    (path / "new.txt").write_text("new\n")
    git(path, "add", "new.txt")
    done = subprocess.run(["git", "commit", "-m", "x"], cwd=path, capture_output=True, env=dict(os.environ))
    assert done.returncode == 1  # the hook ran
