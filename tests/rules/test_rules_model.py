"""Rules as text: found by name, versioned by content, compared rule by rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landlane.managed_files.agents_md import AGENTS_BLOCK, BLOCK_BEGIN, BLOCK_END
from landlane.rules.model import (
    LONGEST_NAME,
    RULES_TEMPLATE,
    compare,
    digests_of,
    is_version,
    read_rules,
    rule_key,
    version_of,
)
from landlane.rules.violations import CLAIM_FIRST, MEMORY_FIRST, SYNC_FIRST, VERIFY_FIRST

pytestmark = pytest.mark.unit

SEVEN = [
    "Verify before done",
    "Honest reporting",
    "No placeholders in production",
    "Load memory before acting",
    "Claim before you change",
    "Sync before you deploy",
    "Keep working through interruptions",
]


def names(text: str) -> list[str]:
    return [rule.name for rule in read_rules(text).rules]


def test_the_template_has_seven_rules_with_words_to_follow() -> None:
    rules = read_rules(RULES_TEMPLATE)

    assert [rule.name for rule in rules.rules] == SEVEN
    assert all(1 < rule.text.count(".") and len(rule.text) > 100 for rule in rules.rules)


def test_what_guards_find_is_named_as_the_template_names_it() -> None:
    known = {rule_key(name) for name in SEVEN}

    assert {CLAIM_FIRST, SYNC_FIRST, VERIFY_FIRST, MEMORY_FIRST} <= known


def test_the_projects_own_rules_stand_beside_the_built_in_ones() -> None:
    own = RULES_TEMPLATE + "\n## 8. Migrations only add\n\nDrop nothing.\n"

    assert names(own) == [*SEVEN, "Migrations only add"]
    assert read_rules(own).rules[-1].text == "Drop nothing."


def test_items_of_a_numbered_list_are_rules() -> None:
    rules = read_rules(
        "# Rules\n\n1. **Be kind.** Always.\n   Also on Mondays.\n2) No force push: never.\n"
    ).rules

    assert [(rule.name, rule.text) for rule in rules] == [
        ("Be kind", "Always.\nAlso on Mondays."),
        ("No force push", "No force push: never."),
    ]


def test_a_heading_above_items_or_headings_only_groups_them() -> None:
    assert names("# R\n## House\n1. One thing\n2. Another\n## Garden\n### Water it\nDaily.\n") == [
        "One thing",
        "Another",
        "Water it",
    ]


def test_deeper_headings_and_lists_below_words_belong_to_their_rule() -> None:
    (rule,) = read_rules("# R\n## Test it\nLike so:\n1. run\n2. look\n### Why\nBecause.\n").rules

    assert rule.name == "Test it"
    assert rule.text == "Like so:\n1. run\n2. look\n\n### Why\n\nBecause."


def test_code_and_comments_begin_no_rule() -> None:
    assert names("# R\n<!-- ## Not this\n-->\n## Real\nText\n```sh\n## neither\n```\nmore\n") == ["Real"]


def test_a_text_without_structure_is_one_rule_and_an_empty_one_has_none() -> None:
    assert names("Be careful. Always.") == ["Be careful"]
    assert names("# Our way\n\nBe careful.") == ["Our way"]
    assert names("") == names("\n \n") == names("# Only a title\n") == []


@pytest.mark.promise(
    "rules.version-by-content",
    "The version of the rules depends on their content only; line endings make no difference.",
)
def test_how_lines_end_makes_no_difference_to_the_version() -> None:
    version = version_of(RULES_TEMPLATE)

    assert version_of(RULES_TEMPLATE.replace("\n", "\r\n")) == version
    assert version_of("\ufeff" + RULES_TEMPLATE.rstrip("\n")) == version
    assert version_of(RULES_TEMPLATE.replace("never", "seldom", 1)) != version


def test_a_version_may_be_typed_by_its_beginning() -> None:
    assert is_version("404DC7", "404dc7f2cc4d")
    assert not is_version("404", "404dc7f2cc4d")
    assert not is_version("504dc7", "404dc7f2cc4d")


def test_a_change_is_told_by_the_names_of_the_rules() -> None:
    before = digests_of(read_rules("## A\nx\n## B\ny\n## C\nz\n"))
    change = compare(before, read_rules("## a.\nx\n## B\nnew\n## D\nd\n"))

    assert (change.added, change.changed, change.removed) == (("D",), ("B",), ("C",))
    assert compare(before, read_rules("# Title\n\n## A\nx\n## B\ny\n## C\nz\n")).is_nothing


@pytest.mark.parametrize("text", ["#" * 5000, "1. " * 5000, "<!--" * 5000, "```\n" * 3000, "## x\n" * 5000])
def test_odd_texts_are_read_quickly(text: str) -> None:
    assert all(len(rule.name) <= LONGEST_NAME for rule in read_rules(text).rules)


@given(st.text(alphabet=st.sampled_from("#1.) ab\n\r`~<!->*:"), max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    rules = read_rules(text)

    assert all(rule.name and len(rule.name) <= LONGEST_NAME for rule in rules.rules)
    assert compare(digests_of(rules), rules).is_nothing


def test_the_block_for_agents_is_marked_and_says_what_to_do() -> None:
    assert AGENTS_BLOCK.startswith(BLOCK_BEGIN + "\n")
    assert AGENTS_BLOCK.endswith(BLOCK_END + "\n")
    for word in ("claim", "release", "next", "done", "commit", "land", "RULES.md", "three times"):
        assert word in AGENTS_BLOCK
