"""kill -9 at any step of a split, a join or a verdict: nothing happens twice, and nothing is forgotten."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(150), pytest.mark.slow]


@pytest.mark.promise(
    "fans.killed-anywhere",
    "A split, join or verdict that is killed at any step has happened completely or not at all.",
)
def test_killed_process_leaves_all_of_a_change_or_nothing(repository: Path, store: str) -> None:
    stride = "5" if "://" in store else "3"
    words = [str(repository), store, stride]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fanout.dying_joins", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=140,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert min(json.loads(done.stdout).values()) > 3
