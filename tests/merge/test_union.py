"""Changelogs: additions of both sides stand below their heading, each once, and deletions hold."""

from __future__ import annotations

from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landlane.merge.merge_file import check_file, merge_file
from landlane.merge.model import Conflict, Merged, MergeKind

pytestmark = pytest.mark.unit

BASE = """\
# Changelog

All notable changes are listed here.

## Unreleased

### Added

- Claims can be shared

### Fixed

## 1.0.0 - 2026-01-01

### Added

- First release

[1.0.0]: https://example.invalid/1.0.0
"""


def merge(base: str | None, ours: str, theirs: str) -> str:
    result = merge_file(
        MergeKind.UNION,
        None if base is None else base.encode(),
        ours.encode(),
        theirs.encode(),
        "CHANGELOG.md",
        {},
    )
    assert isinstance(result, Merged), result
    assert result.content is not None
    assert not check_file(MergeKind.UNION, result.content, "CHANGELOG.md")
    return result.content.decode()


def conflict(base: str, ours: str, theirs: str) -> Conflict:
    result = merge_file(MergeKind.UNION, base.encode(), ours.encode(), theirs.encode(), "CHANGELOG.md")
    assert isinstance(result, Conflict), result
    return result


def add(text: str, after: str, *lines: str) -> str:
    assert text.count(after) == 1
    return text.replace(after, after + "".join(f"{line}\n" for line in lines))


def test_additions_below_one_heading_are_both_kept_target_first() -> None:
    item = "- Claims can be shared\n"
    merged = merge(BASE, add(BASE, item, "- Ours"), add(BASE, item, "- Theirs"))
    assert merged == add(BASE, item, "- Ours", "- Theirs")


def test_additions_below_different_headings_land_below_their_own() -> None:
    fixed = "### Fixed\n"
    item = "- Claims can be shared\n"
    merged = merge(BASE, add(BASE, item, "- Ours"), add(BASE, fixed, "", "- Theirs"))
    assert merged == add(add(BASE, item, "- Ours"), fixed, "", "- Theirs")


def test_heading_that_both_add_occurs_once_with_the_items_of_both() -> None:
    base = "# Changelog\n\n## 1.0.0\n\n- First\n"
    ours = add(base, "# Changelog\n\n", "## Unreleased", "", "### Added", "", "- Ours", "")
    theirs = add(
        base,
        "# Changelog\n\n",
        "## Unreleased",
        "",
        "### Added",
        "",
        "- Theirs",
        "",
        "### Fixed",
        "",
        "- Bug",
        "",
    )
    assert merge(base, ours, theirs) == dedent("""\
        # Changelog

        ## Unreleased

        ### Added

        - Ours
        - Theirs

        ### Fixed

        - Bug

        ## 1.0.0

        - First
        """)


def test_item_that_both_add_occurs_once() -> None:
    item = "- Claims can be shared\n"
    ours = add(BASE, item, "- Same", "- Ours")
    theirs = BASE.replace(item, "- Theirs\n" + item + "- Same\n")
    assert merge(BASE, ours, theirs) == BASE.replace(item, "- Theirs\n" + item + "- Same\n- Ours\n")


def test_equal_items_below_different_headings_keep_their_places() -> None:
    ours, theirs = add(BASE, "- Claims can be shared\n", "- fix"), add(BASE, "### Fixed\n", "", "- fix")
    assert merge(BASE, ours, theirs).count("- fix\n") == 2


def test_an_item_keeps_its_own_continuation() -> None:
    item = "- Claims can be shared\n"
    ours, theirs = add(BASE, item, "- Ours", "  more of it"), add(BASE, item, "- Theirs", "  more of it")
    merged = merge(BASE, ours, theirs)
    assert "- Ours\n  more of it\n- Theirs\n  more of it\n" in merged


def test_a_continuation_stays_with_the_item_it_was_added_to() -> None:
    item = "- Claims can be shared\n"
    merged = merge(BASE, add(BASE, item, "- Ours"), add(BASE, item, "  by many"))
    assert item + "  by many\n- Ours\n" in merged


def test_a_release_takes_along_only_what_it_held() -> None:
    released = BASE.replace("## Unreleased\n", "## Unreleased\n\n## 1.1.0\n").replace("### Fixed\n\n", "")
    theirs = add(BASE, "- Claims can be shared\n", "- Late")
    merged = merge(BASE, released, theirs)
    assert merged.index("## Unreleased") < merged.index("- Late") < merged.index("## 1.1.0")
    assert merged.index("## 1.1.0") < merged.index("- Claims can be shared")
    assert merged.count("- Claims can be shared") == 1


def test_a_deletion_holds_although_the_other_side_adds_beside_it() -> None:
    item = "- Claims can be shared\n"
    assert merge(BASE, BASE.replace(item, ""), add(BASE, item, "- Theirs")) == BASE.replace(
        item, "- Theirs\n"
    )


def test_a_removed_heading_stays_for_what_the_other_side_adds_to_it() -> None:
    base = "# Log\n\n## Next\n\n- a\n\n## 1.0\n\n- z\n"
    ours = base.replace("## Next", "## 1.1")
    result = merge_file(
        MergeKind.UNION, base.encode(), ours.encode(), add(base, "- a\n", "- b").encode(), "LOG.md", {}
    )
    assert isinstance(result, Merged)
    assert result.content == b"# Log\n\n## Next\n\n- b\n\n## 1.1\n\n- a\n\n## 1.0\n\n- z\n"
    assert result.notes == (
        "the target removed the heading ## Next; it stays for what the other side added to it",
    )


def test_a_line_that_both_change_differently_is_a_conflict_that_names_it() -> None:
    found = conflict(BASE, BASE.replace("First release", "One"), BASE.replace("First release", "Two"))
    assert found.reason == "both sides changed the same lines differently"
    assert found.details == (
        "under the heading ### Added, '- First release': the target has '- One', the candidate '- Two'",
    )


def test_a_line_that_one_changes_and_the_other_removes_is_a_conflict() -> None:
    item = "- Claims can be shared\n"
    assert "removed it" in conflict(BASE, BASE.replace(item, ""), BASE.replace("shared", "split")).details[0]


def test_lines_that_both_move_below_new_headings_are_a_conflict() -> None:
    base = "# A\n\n- a\n- b\n"
    found = conflict(base, base.replace("- b", "\n## X\n\n- b"), base.replace("- b", "\n## Y\n\n- b"))
    assert found.reason == "both sides moved or removed the same lines, each in its own way"
    assert found.details == ("'- b'",)


def test_a_line_that_one_moves_and_the_other_removes_is_a_conflict() -> None:
    base = "# A\n\n- a\n- b\n"
    found = conflict(base, base.replace("- b", "\n## X\n\n- b"), base.replace("- b\n", ""))
    assert found.details == ("'- b'",)


def test_line_ends_and_the_missing_last_one_are_those_of_the_target() -> None:
    assert merge("a", "a", "a\r\nb") == "a\r\nb", "a target of one line has no line end of its own"
    assert merge("a\r\n", "a", "a\r\nb\r\n") == "a\r\nb"
    base = "a\r\nb\r\nc"
    assert merge(base, "x\r\na\r\nb\r\nc", "a\nb\nc\ny\n") == "x\r\na\r\nb\r\nc\r\ny"


def test_a_section_added_at_the_end_is_parted_by_a_blank_line() -> None:
    base = "# A\n\n- a\n"
    assert merge(base, "# A\n\n- a\n- b\n", base + "\n# B\n\n- c\n") == "# A\n\n- a\n- b\n\n# B\n\n- c\n"


def test_a_title_put_above_moves_nothing() -> None:
    base = "## 1.1\n\n- a\n\n## 1.0\n\n- z\n"
    assert merge(base, "# Changelog\n\n" + base, base.replace("- a\n", "- a\n- b\n")) == (
        "# Changelog\n\n" + base.replace("- a\n", "- a\n- b\n")
    )


def test_underlined_headings_are_headings() -> None:
    base = "Changes\n=======\n\n1.0\n---\n\n- z\n"
    ours, theirs = (base.replace("1.0\n", f"Next\n----\n\n- {name}\n\n1.0\n") for name in "ab")
    assert merge(base, ours, theirs) == base.replace("1.0\n", "Next\n----\n\n- a\n- b\n\n1.0\n")


def test_hashes_in_code_are_no_headings() -> None:
    base = "# A\n\n```sh\n# b\n```\n\n- x\n"
    theirs = base.replace("# b\n", "# b\n# b\n")
    assert merge(base, base + "- y\n", theirs) == theirs + "- y\n"


def test_plain_lines_that_both_add_occur_once() -> None:
    assert merge("a\n", "a\nb\nc\n", "a\nc\nd\n") == "a\nb\nc\nd\n"


def test_both_may_add_the_file() -> None:
    assert merge(None, "# Log\n\n- a\n", "# Log\n\n- b\n") == "# Log\n\n- a\n- b\n"


def test_conflict_markers_that_somebody_left_are_refused() -> None:
    assert "conflict marker on line 1" in conflict("a\n", "<<<<<<< HEAD\na\n", "a\nb\n").reason
    assert "conflict marker" in check_file(MergeKind.UNION, b"a\n>>>>>>> x\n", "LOG.md")


def test_a_repeated_heading_is_refused_unless_the_base_has_it() -> None:
    text = b"# A\n\n## B\n\n## B\n"
    assert "'# A > ## B' stands 2 times" in check_file(MergeKind.UNION, text, "LOG.md")
    assert not check_file(MergeKind.UNION, text, "LOG.md", {}, text)
    assert not check_file(MergeKind.UNION, b"# A\n## B\n# C\n## B\n", "LOG.md")


SECTIONS = (
    "## Unreleased\n",
    "### Added\n\n",
    "### Fixed\n\n",
    "## 1.0.0 - 2026-01-01\n",
    "- First release\n",
)


@pytest.mark.slow
@given(st.permutations(range(6)), st.lists(st.sampled_from(SECTIONS), min_size=6, max_size=6))
def test_any_order_of_branches_keeps_every_addition_once(order: list[int], places: list[str]) -> None:
    branches = [
        BASE.replace(place, f"{place}- item {number}\n" + "\n" * (not place.startswith("-")))
        if place.startswith(("-", "### "))
        else BASE.replace(place, f"{place}\n- item {number}\n")
        for number, place in enumerate(places)
        if BASE.count(place) == 1 or place
    ]
    landed = BASE
    for number in order:
        landed = merge(BASE, landed, branches[number])
    for number in range(6):
        assert landed.count(f"- item {number}\n") == branches[number].count(f"- item {number}\n")


@pytest.mark.parametrize("heading", ["## Unreleased", "Unreleased\n----------"])
def test_ten_branches_that_all_add_the_heading_leave_one(heading: str) -> None:
    base = "# Changelog\n\n## 1.0\n\n- z\n"
    landed = base
    for number in range(10):
        landed = merge(base, landed, base.replace("## 1.0", f"{heading}\n\n- item {number}\n\n## 1.0"))
    items = "".join(f"- item {number}\n" for number in range(10))
    assert landed == base.replace("## 1.0", f"{heading}\n\n{items}\n## 1.0")
