"""What a worker returned is kept as it was: files, programs and links; no link is followed."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from landlane.protocol.worker.messages import WorkComplete
from landlane.workers.returned.output import save_returned

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration

TASK: Any = SimpleNamespace(id="T7", attempt=2)


def test_returned_files_are_saved_unchanged(tmp_path: Path) -> None:
    scratch, state = tmp_path / "scratch", tmp_path / "state"
    (scratch / "src").mkdir(parents=True)
    (scratch / "src" / "a.py").write_text("a\n")
    (scratch / "run").write_text("#!/bin/sh\n")
    (scratch / "run").chmod(0o755)
    (scratch / "link").symlink_to("/etc/passwd")
    os.mkfifo(scratch / "pipe")
    files = ("src/a.py", "run", "link", "gone", "pipe")

    answer = save_returned(
        str(state), TASK, WorkComplete(assignment="T7-2", summary="s", files=files), str(scratch)
    )

    kept = state / "returned" / "T7-2" / "files"
    assert answer == str(kept.parent)
    assert (kept / "src" / "a.py").read_text() == "a\n"
    assert os.access(kept / "run", os.X_OK)
    assert os.readlink(kept / "link") == "/etc/passwd"
    assert sorted(os.listdir(kept)) == ["link", "run", "src"]
    assert kept.parent.stat().st_mode & 0o077 == 0


def test_nothing_is_saved_when_nothing_was_returned(tmp_path: Path) -> None:
    said = WorkComplete(assignment="T7-2", summary="s", commit="0" * 40)

    assert save_returned(str(tmp_path / "state"), TASK, said, str(tmp_path)) == ""
    assert not (tmp_path / "state").exists()
