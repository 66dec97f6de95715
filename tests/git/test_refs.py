"""Branches read from their files are what git says, loose, packed and both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.git.refs import read_refs, refs_below
from tests.support.git import git
from tests.support.workspaces import commit_file

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration

WANTED = ["refs/heads/main", "refs/heads/topic/one", "refs/heads/nowhere"]


def refs_of(repository: Path, *patterns: str) -> dict[str, str]:
    lines = git(repository, "for-each-ref", "--format=%(refname) %(objectname)", *patterns).splitlines()
    return dict(line.split(" ") for line in lines)  # type: ignore[misc]


def test_loose_packed_and_moved_branches_are_found(repository: Path) -> None:
    common = str(repository / ".git")
    git(repository, "branch", "topic/one")
    assert read_refs(common, WANTED) == refs_of(repository, *WANTED)
    git(repository, "tag", "-a", "-m", "x", "v1")
    git(repository, "pack-refs", "--all")
    assert read_refs(common, WANTED) == refs_of(repository, *WANTED)
    commit_file(repository, "new.txt", "moved\n")
    assert read_refs(common, WANTED) == refs_of(repository, *WANTED)


def test_branches_of_a_task_are_found(repository: Path) -> None:
    common = str(repository / ".git")
    for name in ("T1-1/work", "T1-2/work", "T11-1/work", "T1-1/other", "T1-x"):
        git(repository, "branch", f"landlane/{name}")
    found = refs_below(common, "refs/heads/landlane/T1-", "/work")
    assert found == refs_of(repository, "refs/heads/landlane/T1-*/work")
    git(repository, "pack-refs", "--all")
    git(repository, "branch", "--force", "landlane/T1-3/work")
    assert refs_below(common, "refs/heads/landlane/T1-", "/work") == refs_of(
        repository, "refs/heads/landlane/T1-*/work"
    )
    assert refs_below(common, "refs/heads/landlane/T9-", "/work") == {}


def test_symbolic_refs_are_left_to_git(repository: Path) -> None:
    git(repository, "symbolic-ref", "refs/heads/alias", "refs/heads/main")

    assert read_refs(str(repository / ".git"), ["refs/heads/alias"]) is None


def test_tables_are_left_to_git(repository: Path) -> None:
    (repository / ".git" / "reftable").mkdir()

    assert read_refs(str(repository / ".git"), ["refs/heads/main"]) is None
