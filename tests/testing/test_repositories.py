"""What others test with: throw-away repositories and contexts on a store of their choice."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from landlane.app.open import open_repository
from landlane.sessions import join as sessions
from landlane.testing.repositories import git, make_repository, open_test_repository, throwaway_repository

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


def test_a_throwaway_repository_is_gone_in_the_end() -> None:
    with throwaway_repository(files={"src/a.py": "a = 1\n"}) as folder:
        assert git(folder, "ls-files").split() == ["src/a.py"]
        assert git(folder, "status", "--porcelain") == ""

    assert not folder.exists()


def test_a_repository_has_one_commit_on_main_though_nobody_said_who_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.delenv(f"GIT_{who}_NAME")
        monkeypatch.delenv(f"GIT_{who}_EMAIL")
    folder = make_repository(tmp_path / "made")

    assert git(folder, "log", "--format=%s %an").strip() == "Begin Landlane Tests"
    assert git(folder, "branch", "--show-current").strip() == "main"


def test_a_repository_may_be_empty_and_have_settings_and_a_store_elsewhere(tmp_path: Path) -> None:
    store = tmp_path / "elsewhere.db"
    folder = make_repository(tmp_path / "made", files={}, settings="[claims]\nttl = '5m'\n", store=str(store))

    repo = open_repository(str(folder))
    repo.close()

    assert repo.settings.claims.ttl_ms == 300_000
    assert store.exists()


def test_a_context_and_a_command_see_the_same_repository(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "made")
    repo = open_test_repository(folder)
    session = sessions.join(repo, "ann").session
    repo.store.close()

    repo = open_repository(str(folder))

    assert [one.id for one in sessions.live_sessions(repo)] == [session.id]
    repo.close()


def test_a_mistake_of_git_is_told(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        git(make_repository(tmp_path / "made"), "no-such-command")
