"""Removing a scratch opens up what is in it, and nothing that it lies in."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from landlane.exec.cleanup import SCRATCH_PREFIX, remove_scratch

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

pytestmark = pytest.mark.integration


def test_what_a_scratch_lies_in_keeps_its_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parent, elsewhere = tmp_path / "shared", tmp_path / "elsewhere"
    scratch = parent / f"{SCRATCH_PREFIX}busy"
    for folder in (parent, elsewhere, scratch, scratch / "kept"):
        folder.mkdir()
    (scratch / "kept" / "file").write_text("x")
    (scratch / "link").symlink_to(elsewhere)
    (scratch / "kept").chmod(0o500)
    elsewhere.chmod(0o755)
    parent.chmod(0o1777)
    remove, refusals = os.rmdir, 2

    def rmdir(path: str, **more: int) -> None:
        nonlocal refusals
        if path == str(scratch) and refusals:
            refusals -= 1
            (scratch / "late").write_text("somebody still writes")
        remove(path, **more)

    monkeypatch.setattr(os, "rmdir", rmdir)
    remove_scratch(str(scratch))

    assert refusals == 0
    assert stat.S_IMODE(parent.stat().st_mode) == 0o1777
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o755
    assert not scratch.exists()
