"""Sorted sets: elements of both sides, sorted as the file is, with their comments."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landlane.merge.merge_file import check_file, merge_file
from landlane.merge.model import Conflict, Merged, MergeKind

pytestmark = pytest.mark.unit

OWNERS = """\
# Who looks at what. Keep sorted.

/docs/ @ann
# generated, but somebody has to know
/schema/ @bob
/src/ @ann @bob
"""


def merge(base: str | None, ours: str, theirs: str, **options: Any) -> str:
    result = merge_file(
        MergeKind.SORTED_SET,
        None if base is None else base.encode(),
        ours.encode(),
        theirs.encode(),
        "OWNERS",
        options,
    )
    assert isinstance(result, Merged), result
    assert result.content is not None
    return result.content.decode()


def conflict(base: str, ours: str, theirs: str, **options: Any) -> Conflict:
    result = merge_file(
        MergeKind.SORTED_SET, base.encode(), ours.encode(), theirs.encode(), "OWNERS", options
    )
    assert isinstance(result, Conflict), result
    return result


def test_additions_of_both_sides_stand_where_they_belong() -> None:
    ours, theirs = OWNERS + "/tests/ @cy\n", OWNERS.replace("# gen", "/lib/ @cy\n# gen")
    assert merge(OWNERS, ours, theirs) == OWNERS.replace("# gen", "/lib/ @cy\n# gen") + "/tests/ @cy\n"


def test_an_element_takes_its_comment_along() -> None:
    theirs = OWNERS.replace("/docs/", "# new here\n/bin/ @cy\n/docs/")
    assert merge(OWNERS, OWNERS + "/tests/ @cy\n", theirs) == theirs + "/tests/ @cy\n"


def test_a_deletion_holds_and_takes_its_comment_along() -> None:
    ours = OWNERS.replace("# generated, but somebody has to know\n/schema/ @bob\n", "")
    assert merge(OWNERS, ours, OWNERS + "/tests/ @cy\n") == ours + "/tests/ @cy\n"


def test_an_element_that_both_change_differently_is_a_conflict() -> None:
    found = conflict(OWNERS, OWNERS.replace("@ann @bob", "@cy"), OWNERS.replace("@ann @bob", "@dee"))
    assert found.details == ("'/src/ @ann @bob': the target has '/src/ @cy', the candidate '/src/ @dee'",)


def test_an_element_that_one_changes_and_the_other_removes_is_a_conflict() -> None:
    found = conflict(OWNERS, OWNERS.replace("/docs/ @ann\n", ""), OWNERS.replace("/docs/ @ann", "/docs/ @cy"))
    assert "removed it" in found.details[0]


def test_the_comment_at_the_top_stays_there() -> None:
    base = "# Allowed licences, sorted\nApache-2.0\nMIT\n"
    assert merge(base, base + "Zlib\n", base.replace("Apache", "AFL-3.0\nApache")) == (
        "# Allowed licences, sorted\nAFL-3.0\nApache-2.0\nMIT\nZlib\n"
    )


def test_a_comment_brought_by_a_new_first_element_stays_with_it() -> None:
    base = "# Allowed\nb\nc\n"
    assert merge(base, "# Allowed\n# why\na2\nb\nc\n", "# Allowed\na1\nb\nc\n") == (
        "# Allowed\na1\n# why\na2\nb\nc\n"
    )


def test_a_file_sorted_without_regard_to_case_stays_so() -> None:
    base = "apple\nBanana\ncherry\n"
    assert merge(base, base + "Date\n", "Apricot\n" + base) == "apple\nApricot\nBanana\ncherry\nDate\n"


def test_a_file_sorted_with_regard_to_case_stays_so() -> None:
    base = "Banana\nZebra\napple\n"
    assert merge(base, base + "date\n", base + "Cherry\n") == "Banana\nCherry\nZebra\napple\ndate\n"


def test_an_unsorted_file_keeps_its_order_and_says_so() -> None:
    base = b"zebra\napple\nmango\n"
    result = merge_file(MergeKind.SORTED_SET, base, b"zebra\nant\napple\nmango\n", base + b"kiwi\n", "x")
    assert isinstance(result, Merged)
    assert result.content == b"zebra\nant\napple\nmango\nkiwi\n"
    assert "not sorted" in result.notes[0]


def test_element_that_both_add_occurs_once() -> None:
    assert merge("a\n", "a\nb\nc\n", "a\nb\nd\n") == "a\nb\nc\nd\n"
    assert merge(None, "a\nb\n", "b\nc\n") == "a\nb\nc\n"


def test_a_set_between_markers_leaves_the_rest_alone() -> None:
    base = 'import x\n\nNAMES = [\n    # begin\n    "b",\n    "d"\n    # end\n]\n'
    options = {"begin": "# begin", "end": "# end"}
    ours, theirs = base.replace('"b"', '"a",\n    "b"'), base.replace('"d"', '"d",\n    "e"')
    merged = merge(base, ours, theirs, **options)
    assert merged == base.replace('"b",\n    "d"', '"a",\n    "b",\n    "d",\n    "e"')


def test_text_outside_the_markers_merges_as_lines_do() -> None:
    base = "one\n\n# begin\nb\n# end\n"
    options = {"begin": "# begin", "end": "# end"}
    assert merge(base, base.replace("b\n", "a\nb\n"), base.replace("one", "two"), **options).startswith(
        "two\n"
    )
    found = conflict(base, base.replace("one", "two"), base.replace("one", "three"), **options)
    assert found.reason == "both sides changed the text before the set differently"


def test_conflict_names_missing_markers() -> None:
    found = conflict("a\n", "a\nb\n", "a\nc\n", begin="# begin", end="# end")
    assert found.reason == "the common base has the line '# begin', where the set begins, 0 times"


def test_a_comment_that_both_change_differently_is_a_conflict() -> None:
    found = conflict(OWNERS, OWNERS.replace("generated", "made"), OWNERS.replace("generated", "written"))
    assert "above '/schema/ @bob'" in found.details[0]


def test_line_ends_are_those_of_the_target() -> None:
    assert merge("a\r\nc\r\n", "a\r\nb\r\nc\r\n", "a\nc\nd\n") == "a\r\nb\r\nc\r\nd\r\n"


def test_check_names_unsorted_and_repeated_elements() -> None:
    assert check_file(MergeKind.SORTED_SET, b"b\na\n", "x") == "it is not sorted: 'a' stands after 'b'"
    assert check_file(MergeKind.SORTED_SET, b"a\na\n", "x") == "it has more than once: a"
    assert not check_file(MergeKind.SORTED_SET, b"# z\n\na\nB\n", "x")


NAMES = st.sets(st.text("abcABC", min_size=1, max_size=3), max_size=8)


@settings(max_examples=60)
@given(NAMES, st.lists(NAMES, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_any_order_of_branches_gives_the_same_set(base: set[str], added: list[set[str]], random: Any) -> None:
    def write(names: set[str]) -> str:
        return "".join(f"{name}\n" for name in sorted(names))

    random.shuffle(added)
    landed = write(base)
    for names in added:
        landed = merge(write(base), landed, write(base | names))
    assert landed == write(base.union(*added))


@settings(max_examples=60)
@given(NAMES, NAMES, NAMES)
def test_result_is_the_merge_of_the_sets(base: set[str], ours: set[str], theirs: set[str]) -> None:
    texts = ["".join(f"{name}\n" for name in sorted(names)) for names in (base, ours, theirs)]
    kept = (base & ours & theirs) | (ours - base) | (theirs - base)
    assert merge(texts[0], texts[1], texts[2]).split() == sorted(kept)
