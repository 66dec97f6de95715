"""What holds for all merge kinds: sides without change, absent files, and any bytes at all."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landlane.merge.merge_file import check_file, merge_file
from landlane.merge.model import Conflict, Merged, MergeKind, Regenerate

pytestmark = pytest.mark.unit

MERGED_KINDS = [kind for kind in MergeKind if kind != MergeKind.GENERATED]
PATHS = st.sampled_from(["a.json", "a.toml", "a.txt"])
PIECES = [
    *(b"# A\n", b"## B\n", b"## B", b"- x\n", b"- y\n", b"  z\n", b"\n", b"\r\n", b"a\n", b"b,\n", b"C\n"),
    *(
        b"===\n",
        b"---\n",
        b"```\n",
        b"# end\n",
        b"12\n",
        b"12",
        b"\xff\n",
        b"\0",
        b"\xef\xbb\xbf",
        b"\x1c\n",
        b",\n",
    ),
    *(b'{"a": 1}', b'{"a": {"b": [1, 2]}}', b'"a"', b"[", b"]", b"{", b"}", b",", b":", b"null", b"1.5"),
    *(
        b"a = 1\n",
        b"b.c = [1,\n 2]\n",
        b"[t]\n",
        b"[[u]]\n",
        b"x = '''\n",
        b"'''\n",
        b'd = {e = "f"}\n',
        b"<<<<<<< h\n",
    ),
]
BYTES = st.binary(max_size=30) | st.lists(st.sampled_from(PIECES), max_size=8).map(b"".join)


@pytest.mark.parametrize("kind", MERGED_KINDS)
@given(BYTES | st.none(), BYTES | st.none(), PATHS)
def test_a_side_without_change_leaves_the_other_byte_for_byte(
    kind: MergeKind, base: bytes | None, side: bytes | None, path: str
) -> None:
    assert merge_file(kind, base, base, side, path) == Merged(content=side)
    assert merge_file(kind, base, side, base, path) == Merged(content=side)
    if kind != "counter":
        assert merge_file(kind, base, side, side, path) == Merged(content=side)


@pytest.mark.slow
@pytest.mark.parametrize("kind", MERGED_KINDS)
@settings(max_examples=120)
@given(BYTES | st.none(), BYTES, BYTES, PATHS)
def test_any_bytes_give_a_sound_result_or_a_conflict(
    kind: MergeKind, base: bytes | None, ours: bytes, theirs: bytes, path: str
) -> None:
    result = merge_file(kind, base, ours, theirs, path)
    if isinstance(result, Conflict):
        assert result.reason
    else:
        assert isinstance(result, Merged)
        assert isinstance(result.content, bytes)
        sides = [side for side in (base, ours, theirs) if side is not None]
        if len({base, ours, theirs}) == 3:
            assert "" in {check_file(kind, result.content, path, {}, side) for side in sides}


@pytest.mark.parametrize("kind", MergeKind)
@given(BYTES, PATHS)
def test_any_bytes_can_be_checked(kind: MergeKind, content: bytes, path: str) -> None:
    assert isinstance(check_file(kind, content, path), str)


@pytest.mark.parametrize("kind", MERGED_KINDS)
def test_a_file_that_one_removes_and_the_other_changes_is_a_conflict(kind: MergeKind) -> None:
    assert merge_file(kind, b"1\n", None, b"2\n", "a.json") == Conflict(
        reason="the target removed a.json, and the candidate changed it"
    )
    assert merge_file(kind, b"1\n", b"2\n", None, "a.json") == Conflict(
        reason="the candidate removed a.json, and the target changed it"
    )


def test_generated_file_must_be_generated_again() -> None:
    assert merge_file(MergeKind.GENERATED, b"1", b"2", b"3", "x.lock") == Regenerate(
        path="x.lock", provisional=b"2"
    )
    assert merge_file(MergeKind.GENERATED, b"1", b"1", b"3", "x.lock") == Regenerate(
        path="x.lock", provisional=b"3"
    )
    assert merge_file(MergeKind.GENERATED, b"1", b"2", b"1", "x.lock") == Regenerate(
        path="x.lock", provisional=b"2"
    )
    assert merge_file(MergeKind.GENERATED, b"1", b"1", None, "x.lock") == Regenerate(
        path="x.lock", provisional=None
    )


LINES = st.lists(st.sampled_from(["# A", "## B", "## C", "- x", "- y", "  z", "", "p", "q."]), max_size=10)
FRESH = st.lists(st.tuples(st.integers(0, 10), st.sampled_from(["- {}", "{}", "  {}", "## {}"])), max_size=4)


@settings(max_examples=150)
@given(LINES, FRESH, FRESH)
def test_a_union_holds_every_line_that_was_added(
    base: list[str], ours: list[tuple[int, str]], theirs: list[tuple[int, str]]
) -> None:
    sides: list[list[str]] = []
    for name, added in (("o", ours), ("t", theirs)):
        lines = [*base]
        for number, (at, form) in enumerate(added):
            lines.insert(at, form.format(f"{name}{number}"))
        sides.append(lines)
    contents = ["\n".join(lines).encode() + b"\n" for lines in (base, *sides)]
    result = merge_file(MergeKind.UNION, contents[0], contents[1], contents[2], "LOG.md")
    if isinstance(result, Conflict):
        # A heading put in the midst of a section moves what is below it, and both sides may have done so.
        assert all("## " in str(added) for added in (ours, theirs))
        return
    assert isinstance(result, Merged), result
    merged = (result.content or b"").decode().split("\n")
    for line in {*sides[0], *sides[1]} - {*base, ""}:
        assert merged.count(line) == 1
