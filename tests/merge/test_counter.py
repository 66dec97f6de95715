"""Counters: what both sides added is added, and the text around them merges as lines do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landlane.merge.merge_file import check_file, merge_file
from landlane.merge.model import Conflict, Merged, MergeKind

pytestmark = pytest.mark.unit

PATTERN = r'^version = "(\d+)"'
FILE = '# Raised by every change to the schema.\n\nversion = "{}"\n\nname = "demo"\n'


def merge(base: bytes | None, ours: bytes, theirs: bytes, **options: Any) -> bytes:
    result = merge_file(MergeKind.COUNTER, base, ours, theirs, "VERSION", options)
    assert isinstance(result, Merged), result
    assert result.content is not None
    assert not check_file(MergeKind.COUNTER, result.content, "VERSION", options)
    return result.content


def test_ten_branches_that_add_one_add_ten() -> None:
    landed = b"5\n"
    for _ in range(10):
        landed = merge(b"5\n", landed, b"6\n")
    assert landed == b"15\n"


def test_a_number_inside_a_file_is_found_by_its_pattern() -> None:
    texts = [FILE.format(number).encode() for number in (7, 8, 9, 10)]
    assert merge(texts[0], texts[1], texts[2], pattern=PATTERN) == texts[3]


def test_the_rest_of_the_file_merges_beside_it() -> None:
    ours = FILE.format(8).encode()
    theirs = FILE.format(8).replace("demo", "show").encode()
    assert merge(FILE.format(7).encode(), ours, theirs, pattern=PATTERN) == (
        FILE.format(9).replace("demo", "show").encode()
    )


def test_a_rest_that_both_change_differently_is_a_conflict() -> None:
    texts = [FILE.format(7).replace("demo", name).encode() for name in ("demo", "a", "b")]
    result = merge_file(MergeKind.COUNTER, texts[0], texts[1], texts[2], "VERSION", {"pattern": PATTERN})
    assert isinstance(result, Conflict)
    assert result.reason == "both sides changed the text around the number differently"
    assert "'name = \"a\"'" in result.details[0]


def test_style_of_the_target_is_kept() -> None:
    assert merge(b"007\r\n", b"008\r\n", b"8\n") == b"009\r\n"
    assert merge(b"7", b"8", b"8 \n") == b"9 "


def test_both_may_add_the_file() -> None:
    assert merge(None, b"1\n", b"2\n") == b"3\n"


@pytest.mark.parametrize("text", [b"", b"x\n", b"1\n2\n", b"1.5\n", b"9" * 200, "٣\n".encode()])
def test_conflict_names_a_side_without_a_number(text: bytes) -> None:
    result = merge_file(MergeKind.COUNTER, b"1\n", b"2\n", text, "VERSION")
    assert isinstance(result, Conflict)
    assert result.reason.startswith("the candidate has")
    assert check_file(MergeKind.COUNTER, text, "VERSION")


@pytest.mark.parametrize("pattern", ["(", "a", "(a)(b)"])
def test_conflict_names_an_invalid_pattern(pattern: str) -> None:
    result = merge_file(MergeKind.COUNTER, b"1\n", b"2\n", b"3\n", "VERSION", {"pattern": pattern})
    assert isinstance(result, Conflict)
    assert result.reason.startswith("the option pattern")


@settings(max_examples=50)
@given(st.integers(-(10**20), 10**20), st.integers(-(10**20), 10**20), st.integers(-(10**20), 10**20))
def test_a_counter_commutes(base: int, ours: int, theirs: int) -> None:
    texts = [f"{number}\n".encode() for number in (base, ours, theirs)]
    if len({*texts}) == 3:
        merged = merge(*texts)
        assert merged == merge(texts[0], texts[2], texts[1])
        assert int(merged) == ours + theirs - base
