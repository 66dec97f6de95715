"""What comes home from a workspace that is a clone, and what must not be lost by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.errors import RepositoryError
from landlane.git.create_checkout import fetch_clone_branch
from landlane.git.discovery import find_checkout
from landlane.testing.repositories import git

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration

BRANCH = "landlane/T1-1/work"


@pytest.fixture
def clone(repository: Path, tmp_path: Path) -> Path:
    place = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--shared", str(repository), str(place))
    git(place, "switch", "-q", "-c", BRANCH)
    commit(place, "theirs")
    return place


def commit(place: Path, word: str) -> str:
    (place / f"{word}.txt").write_text(word)
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", word)
    return git(place, "rev-parse", "HEAD").strip()


def test_commits_made_on_the_branch_at_home_are_kept(repository: Path, clone: Path) -> None:
    home = find_checkout(str(repository))
    fetch_clone_branch(home, str(clone), BRANCH)
    git(repository, "switch", "-q", BRANCH)
    theirs = commit(repository, "mended")
    git(repository, "switch", "-q", "-")
    head = commit(clone, "more")

    assert fetch_clone_branch(home, str(clone), BRANCH) == head
    assert theirs in git(repository, "for-each-ref", "--format=%(objectname)", "refs/landlane/replaced")


def test_commits_that_the_clone_lacks_stay(repository: Path, clone: Path) -> None:
    home = find_checkout(str(repository))
    fetch_clone_branch(home, str(clone), BRANCH)
    git(repository, "switch", "-q", BRANCH)
    handed_in = commit(repository, "handed-in")
    git(repository, "switch", "-q", "-")

    assert fetch_clone_branch(home, str(clone), BRANCH) == handed_in
    assert git(repository, "rev-parse", BRANCH).strip() == handed_in


def test_amended_commit_of_a_clone_leaves_no_ref(repository: Path, clone: Path) -> None:
    home = find_checkout(str(repository))
    fetch_clone_branch(home, str(clone), BRANCH)
    git(clone, "commit", "-q", "--amend", "-m", "said better")

    fetch_clone_branch(home, str(clone), BRANCH)

    assert not git(repository, "for-each-ref", "refs/landlane/replaced").strip()


def test_a_branch_that_is_checked_out_at_home_is_said_to_be(repository: Path, clone: Path) -> None:
    home = find_checkout(str(repository))
    fetch_clone_branch(home, str(clone), BRANCH)
    git(repository, "switch", "-q", BRANCH)
    commit(clone, "more")

    with pytest.raises(RepositoryError) as refused:
        fetch_clone_branch(home, str(clone), BRANCH)

    assert refused.value.code == "BRANCH_IN_USE"
