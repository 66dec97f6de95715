"""The lock on a git config file: what a killed process left is removed, what a living one made is not."""

from __future__ import annotations

import fcntl
from typing import TYPE_CHECKING

import pytest

from landlane.git.hooks.hooks_path import remove_config_leftover

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


def test_the_leftover_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    own, lock = tmp_path / "config.landlane", tmp_path / "config.lock"
    own.write_text("left", encoding="utf-8")
    lock.hardlink_to(own)

    remove_config_leftover(str(tmp_path / "config"))

    assert list(tmp_path.iterdir()) == []


def test_a_file_that_another_process_has_just_made_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "config.landlane"
    own.write_text("left", encoding="utf-8")
    real = fcntl.flock

    def lock_late(file: int, operation: int) -> None:
        own.unlink()  # by the process that made it, and then the next one begins
        own.write_text("new", encoding="utf-8")
        real(file, operation)

    monkeypatch.setattr(fcntl, "flock", lock_late)
    remove_config_leftover(str(tmp_path / "config"))

    assert own.read_text(encoding="utf-8") == "new"
