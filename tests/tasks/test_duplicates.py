"""Which tasks look like the same work, and which only share words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landlane.tasks.duplicates import (
    DuplicateCandidate,
    compare_with,
    issues_of,
    most_similar,
    signs_of,
    words_of,
)

pytestmark = pytest.mark.unit


def score(
    title: str, other: str, *, shares_path: bool = False, body: str = "", other_body: str = ""
) -> float:
    found = compare_with(
        title,
        body,
        DuplicateCandidate(task="T1", title=other, body=other_body, state="ready", shares_path=shares_path),
    )
    return found.score if found else 0.0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Parse dates", "Parse dates"),
        ("Parse dates", "Parsing the dates!"),
        ("Add login page", "Adding a new login pages"),
        ("Fix the process queue", "Fix processes in queues"),
        ("Improve authentication flow", "Improve autentication flow"),
        ("Cache responses of the search service", "search service: cache response"),
        ("Add support", "add Support"),
        ("Разобрать даты", "разобрать  ДАТЫ"),
    ],
)
def test_nearly_the_same_title_is_pointed_out(one: str, other: str) -> None:
    assert score(one, other) >= 0.8
    assert score(other, one) >= 0.8


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Add login page", "Add logout page"),
        ("Fix tests for parser", "Fix tests for lexer"),
        ("Import users", "Export users"),
        ("Encrypt the backup files", "Decrypt the backup files"),
        ("Serialize messages", "Deserialize messages"),
        ("Migrate table 17", "Migrate table 18"),
        ("Add v1 endpoint", "Add v2 endpoint"),
        ("Write integration tests for payment service", "Write integration tests for shipping service"),
        ("Support UTF-8 in names", "Handle UTF-8 in files"),
        ("Add tests", "Fix docs"),
    ],
)
@pytest.mark.parametrize("shares_path", [False, True])
def test_sharing_words_is_not_enough(one: str, other: str, shares_path: bool) -> None:
    assert score(one, other, shares_path=shares_path) == 0.0
    assert score(other, one, shares_path=shares_path) == 0.0


def test_most_of_the_words_and_a_path_in_common_are_enough() -> None:
    assert score("Parse ISO dates", "Parse dates") == 0.0
    assert score("Parse ISO dates", "Parse dates", shares_path=True) == pytest.approx(0.87)


def test_the_same_issue_is_the_same_work_whatever_it_is_called() -> None:
    found = compare_with(
        "Repair dates",
        "see https://github.com/o/r/issues/12.",
        DuplicateCandidate(task="T3", title="ISO parser", body="Fixes o/r#12", state="blocked"),
    )
    assert found is not None
    assert (found.task, found.state, found.score, found.reason) == ("T3", "blocked", 0.9, "both name #12")


def test_children_of_one_task_name_one_issue_and_are_not_the_same() -> None:
    other = DuplicateCandidate(
        task="T3", title="Write the parser (#12)", body="", state="ready", is_family=True
    )
    assert compare_with("Write the printer (#12)", "", other) is None


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("fixes #12, #13 (and #14).", {"#12", "#13", "#14"}),
        ("ABC-123: mend; see CVE-2024-1234", {"ABC-123", "CVE-2024-1234"}),
        ("owner/repo#7 https://x.y/o/r/pull/8/", {"#7", "#8"}),
        ("UTF-8 SHA-256 ISO-8859-1 RFC-3339 PEP-8", set()),
        ("# 12, C#12, #twelve, a-1, -5, #", set()),
        ("#٣", set()),
    ],
)
def test_issue_ids_are_found_and_nothing_else(text: str, ids: set[str]) -> None:
    assert issues_of(text) == ids


def test_the_reason_uses_the_words_of_the_title() -> None:
    found = compare_with(
        "Parse pages", "", DuplicateCandidate(task="T1", title="Parsing a page", body="", state="ready")
    )
    assert found is not None
    assert found.reason == "same title words"


@given(st.text(max_size=60), st.text(max_size=60), st.booleans())
def test_likeness_is_mutual_and_its_score_a_share(one: str, other: str, shares_path: bool) -> None:
    here, there = score(one, other, shares_path=shares_path), score(other, one, shares_path=shares_path)
    assert here == there
    assert 0.0 <= here <= 1.0


@given(st.lists(st.sampled_from(["parse", "dates", "login", "cache", "files"]), min_size=1, unique=True))
def test_similar_tasks_share_a_sign(words: list[str]) -> None:
    title, other = " ".join(words), " ".join(reversed(words)) + "!"
    assert score(title, other) == 1.0
    assert set(signs_of(title, "", ())) & set(signs_of(other, "", ()))


def test_word_order_does_not_change_the_signs() -> None:
    assert signs_of("login page", "", ["src/a"])[0] == signs_of("Page for the login", "", [])[0]
    assert "/src/a" in signs_of("x", "", ["src/a"])


def test_common_words_count_only_in_a_title_without_others() -> None:
    assert words_of("Please add the parser") == {"parser"}
    assert words_of("Add a new one") == {"one"}
    assert words_of("please add") == {"please", "add"}
    assert words_of("…") == frozenset()


def test_the_likeliest_come_first_and_five_are_enough() -> None:
    found = [
        compare_with("a b c d", "", DuplicateCandidate(task=f"T{n}", title="a b c d", body="", state="ready"))
        for n in range(9)
    ]
    first = most_similar([one for one in found if one is not None])
    assert [one.task for one in first] == ["T0", "T1", "T2", "T3", "T4"]
