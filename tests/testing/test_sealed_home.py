"""The sealed home keeps tests apart from the person's machine, and makes git repeatable."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, text=True, timeout=30
    )
    return done.stdout.strip()


def test_home_is_not_the_persons_own(sealed_home: Path) -> None:
    assert Path.home() == sealed_home
    assert not [name for name in os.environ if name.startswith("LANDLANE_")]


def test_the_same_commit_has_the_same_id_everywhere(repository: Path) -> None:
    assert _git(repository, "rev-parse", "refs/heads/main") == "0eb12e28d48ab67391bdc94efbc58b356571c015"
    assert _git(repository, "status", "--porcelain") == ""


def test_a_folder_outside_the_repository_belongs_to_none(tmp_path: Path) -> None:
    found = subprocess.run(["git", "rev-parse", "--git-dir"], cwd=tmp_path, capture_output=True, timeout=30)

    assert found.returncode != 0


@pytest.mark.xdist_group("alone")
def test_a_group_stands_where_the_distribution_over_workers_looks_for_it(
    request: pytest.FixtureRequest,
) -> None:
    is_grouping = bool(getattr(request.config.option, "loadgroup", False))

    assert request.node.nodeid.endswith("@alone") is is_grouping
