"""Every bench runs to its end, in a size that says nothing about speed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.__main__ import BENCHES

pytestmark = pytest.mark.integration

CHECKOUT = Path(__file__).resolve().parents[2]


def run_bench(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", "--tiny", *words]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=100)


def marked(name: str) -> object:
    marks = [pytest.mark.postgres] if name.startswith("postgres") else []
    return pytest.param(name, marks=marks)


@pytest.mark.slow
@pytest.mark.parametrize("name", [marked(name) for name in BENCHES])
def test_a_bench_prints_its_ratios(name: str) -> None:
    done = run_bench(name, "--seed", "7")
    if "SKIPPED" in done.stdout and not done.returncode:
        pytest.skip(done.stdout.partition("SKIPPED ")[2].splitlines()[0])

    assert done.returncode == 0, done.stdout + done.stderr
    heading, rule, *rows = done.stdout.split("\n\n")[1].splitlines()
    assert heading.split() == ["what", "ours", "peer", "ratio", "aim", "met?"]
    assert set(rule) == {"-", " "}
    assert any(row.endswith(("yes", "NO")) for row in rows)


def test_a_run_says_what_it_was_run_with() -> None:
    first, *_ = run_bench("claim", "--seed", "7").stdout.splitlines()

    assert first.startswith("seed 7; Python 3.")
    assert "; SQLite 3." in first


def test_an_unknown_bench_is_refused_with_the_known_ones() -> None:
    done = run_bench("claims")

    assert done.returncode == 2
    assert all(name in done.stderr for name in BENCHES)
