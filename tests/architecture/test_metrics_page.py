"""The page about metrics gives every number and its definition, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest

from landlane.stats.metrics import DEFINITIONS

pytestmark = pytest.mark.architecture

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "metrics.md"


@pytest.mark.promise(
    "stats.defined",
    "Every number of `stats` has one definition, the same in the command and in the documentation.",
)
def test_the_page_defines_every_number_as_the_command_does() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    wanted = [f"| {called} | `{name}` | {meaning} |" for name, (_, called, meaning) in DEFINITIONS.items()]
    assert rows[2:] == wanted
