"""The reference under docs/reference/ says what the code says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from scripts import error_codes, references

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = [pytest.mark.architecture, pytest.mark.slow]


# The tests that collect all codes run in one process, where that is done once.
COLLECTED = pytest.mark.xdist_group("references")


@COLLECTED
def test_the_reference_is_what_the_code_says(capsys: pytest.CaptureFixture[str]) -> None:
    is_stale = references.main(["--check"])

    assert not is_stale, capsys.readouterr().out


def test_a_stale_page_fails_with_a_diff(capsys: pytest.CaptureFixture[str]) -> None:
    assert references.report_difference("commands.md", "old line\n", "new line\n")
    assert "-old line\n+new line" in capsys.readouterr().out


@COLLECTED
def test_no_code_in_the_source_is_missing() -> None:
    collected = {one.code for one in error_codes.collect_codes(references.PACKAGE)}
    spelled = {
        code
        for path in references.PACKAGE.rglob("*.py")
        for code in re.findall(r'code="([A-Z_]+)"', path.read_text(encoding="utf-8"))
    }

    assert spelled - collected == set()


# Errors made in every way that the collector knows.
SOURCE = """
LIMIT = 3
_WORDS = {1: ("FROM_TABLE", "is full", "make room")}
_MESSAGES = {"FROM_ANSWER": "it is held"}
_EXITS = {"FROM_ANSWER": 3}

def check(text, what):
    raise Malformed(f"{text} is no {what}", code=f"BAD_{what.upper()}", hint="name it")

def refusal(text, why, code, hint) -> Malformed:
    return Malformed(f"{text} {why}", code=code, hint=hint)

def call(text):
    check(text, "role")
    raise refusal(text, "is odd", "FROM_MAKER", "even it")

def patient():
    late = StoreError(f"waited {LIMIT} times", code="FROM_PATIENCE")
    late.exit_code = 5
    return late
"""


def test_codes_are_found_wherever_they_are_made(tmp_path: Path) -> None:
    (tmp_path / "source.py").write_text(SOURCE, encoding="utf-8")

    found = {one.code: tuple(one)[1:] for one in error_codes.collect_codes(tmp_path)}

    assert found == {
        "FROM_TABLE": (1, "the store … is full", "make room"),
        "FROM_ANSWER": (3, "…: it is held", ""),
        "BAD_ROLE": (2, "… is no …", "name it"),
        "FROM_MAKER": (2, "… is odd", "even it"),
        "FROM_PATIENCE": (5, "waited 3 times", ""),
    }
