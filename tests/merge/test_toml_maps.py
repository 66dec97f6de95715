"""TOML files: keys of both sides, with comments and layout of the target."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landlane.merge.merge_file import check_file, merge_file
from landlane.merge.model import Conflict, Merged, MergeKind

pytestmark = pytest.mark.unit

PROJECT = """\
# What this project is.
[project]
name = "demo"  # as on the index
version = "1.4.0"
dependencies = [
    # the command line
    "click>=8.1",
    "rich>=13",  # colours
]

[project.optional-dependencies]
web = ["starlette", "uvicorn"]

[tool.ruff]
line-length = 110

# Strict, and meant so.
[tool.pyright]
mode = "strict"

[[tool.rules]]
id = "layers"
kind = "a"

[tool.rules.more]
deep = true
"""


def merge(base: str | None, ours: str, theirs: str) -> str:
    result = merge_file(
        MergeKind.KEYED_MAP,
        None if base is None else base.encode(),
        ours.encode(),
        theirs.encode(),
        "pyproject.toml",
        {},
    )
    assert isinstance(result, Merged), result
    assert result.content is not None
    assert not check_file(MergeKind.KEYED_MAP, result.content, "pyproject.toml")
    return result.content.decode()


def conflict(base: str, ours: str, theirs: str) -> Conflict:
    result = merge_file(
        MergeKind.KEYED_MAP, base.encode(), ours.encode(), theirs.encode(), "pyproject.toml", {}
    )
    assert isinstance(result, Conflict), result
    return result


def put(old: str, new: str, text: str = PROJECT) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


def test_changes_far_apart_keep_the_comments_of_both() -> None:
    ours, theirs = put("110", "100  # narrow"), put("# as on the index", "# its name")
    assert merge(PROJECT, ours, theirs) == put("# as on the index", "# its name", ours)


def test_requirements_that_both_add_at_one_place_are_joined() -> None:
    rich = '    "rich>=13",  # colours\n'
    ours, theirs = (
        put(rich, rich + '    "zod",\n'),
        put(rich, rich + '    # for talking\n    "httpx",  # http\n'),
    )
    assert merge(PROJECT, ours, theirs) == put(
        rich, rich + '    "zod",\n    # for talking\n    "httpx",  # http\n'
    )


def test_lists_on_one_line_are_joined() -> None:
    ours, theirs = put('"uvicorn"]', '"uvicorn", "x"]'), put('["starlette"', '["jinja2", "starlette"')
    assert merge(PROJECT, ours, theirs) == put(
        '["starlette", "uvicorn"]', '["jinja2", "starlette", "uvicorn", "x"]'
    )


def test_a_list_without_a_last_comma_stays_without() -> None:
    base = 'a = [\n  "m",\n  "k"\n]\n'
    ours, theirs = base.replace('"k"\n', '"k",\n  "x"\n'), base.replace('"k"\n', '"k",\n  "b"\n')
    assert merge(base, ours, theirs) == 'a = [\n  "m",\n  "k",\n  "x",\n  "b"\n]\n'


def test_keys_that_both_add_to_a_table_are_joined() -> None:
    ours = put("line-length = 110\n", "line-length = 110\nfix = true\n")
    theirs = put("line-length = 110\n", "line-length = 110\n# try it\npreview = true\n")
    assert merge(PROJECT, ours, theirs) == put(
        "line-length = 110\n", "line-length = 110\nfix = true\n# try it\npreview = true\n"
    )


def test_tables_that_both_add_are_parted_by_blank_lines() -> None:
    after = "line-length = 110\n"
    ours = put(after, after + "\n[tool.a]\nx = 1\n")
    theirs = put(after, after + "\n# About b.\n[tool.b]\ny.z = 2\n")
    assert merge(PROJECT, ours, theirs) == put(
        after, after + "\n[tool.a]\nx = 1\n\n# About b.\n[tool.b]\ny.z = 2\n"
    )


def test_tables_that_both_add_at_the_end_are_joined() -> None:
    base = "[a]\nx = 1\n"
    merged = merge(base, base + "\n[b]\ny = 1\n", base + "\n[c]\nz = 1\n")
    assert merged == base + "\n[b]\ny = 1\n\n[c]\nz = 1\n"


def test_elements_that_both_add_to_an_array_of_tables_are_joined() -> None:
    ours, theirs = (
        PROJECT + f'\n[[tool.rules]]\nid = "{name}"\n\n[tool.rules.more]\ndeep = 1\n' for name in "ab"
    )
    merged = merge(PROJECT, ours, theirs)
    assert merged == ours + '\n[[tool.rules]]\nid = "b"\n\n[tool.rules.more]\ndeep = 1\n'
    assert [rule["id"] for rule in tomllib.loads(merged)["tool"]["rules"]] == ["layers", "a", "b"]


def test_inline_tables_are_joined() -> None:
    base = '[deps]\nserde = { version = "1.0" }\n'
    ours, theirs = base.replace(" }", ', features = ["a"] }'), base.replace(" }", ", optional = true }")
    assert merge(base, ours, theirs) == base.replace(" }", ', features = ["a"], optional = true }')


def test_key_that_one_side_removes_is_gone_with_its_comment() -> None:
    ours = put('# Strict, and meant so.\n[tool.pyright]\nmode = "strict"\n\n', "[tool.x]\na = 1\n\n")
    theirs = put("line-length = 110\n", "")
    assert merge(PROJECT, ours, theirs) == put("line-length = 110\n", "", ours)
    swapped = merge(PROJECT, theirs, ours)
    assert tomllib.loads(swapped) == tomllib.loads(merge(PROJECT, ours, theirs))
    assert "Strict" not in swapped


def test_versions_that_both_raise_are_a_version_conflict() -> None:
    found = conflict(PROJECT, put("1.4.0", "1.5.0"), put("1.4.0", "2.0.0"))
    (detail,) = found.details
    assert detail == (
        'project.version: version conflict, both raised it: the target has "1.5.0", the candidate "2.0.0", '
        'both from "1.4.0"'
    )


def test_requirements_that_both_raise_are_a_version_conflict() -> None:
    found = conflict(PROJECT, put("click>=8.1", "click>=8.2"), put("click>=8.1", "click>=8.3"))
    (detail,) = found.details
    assert detail == (
        'project.dependencies: version conflict, both raised it: the target has "click>=8.2", '
        'the candidate "click>=8.3", both from "click>=8.1"'
    )


def test_a_table_that_one_removes_and_the_other_changes_is_a_conflict() -> None:
    found = conflict(PROJECT, put("[tool.ruff]\nline-length = 110\n\n", ""), put("110", "100"))
    assert found.details[0].startswith("tool.ruff: the target removed it, the candidate changed it")


def test_two_ways_to_write_a_table_are_refused_rather_than_guessed() -> None:
    found = conflict("x = 1\n", "x = 1\na = { b = 1 }\n", "x = 1\n[a]\nc = 1\n")
    assert found.reason == "both sides wrote a in different ways, which cannot be joined"
    found = conflict("x = 1\n", "x = 1\na.b = 1\n", "x = 1\n\n[a]\nc = 1\n")
    assert "not without losing how the target writes them" in found.reason


def test_conflict_names_the_line_that_is_not_toml() -> None:
    found = conflict("", "b = 1\n", "a = 1\na = 2\n")
    assert found.reason == "the candidate is not valid TOML: Cannot overwrite a value (at line 2, column 6)"
    assert "line 1" in check_file(MergeKind.KEYED_MAP, b"a = \n", "x.toml")


def test_strings_of_all_kinds_are_passed_over() -> None:
    base = 'a = """\n[x]\n# \\""" no"""\nb = \'\'\'\n]\'\'\'\n"c.d".e = "#\\"]"\n'
    base += "\n['f g']\nh = 2020-01-01 00:00:00\n"
    ours, theirs = base + "i = [\"]\", '#']\n", base + "j = 1e3\n"
    assert merge(base, ours, theirs) == ours + "j = 1e3\n"


def test_line_ends_are_those_of_the_target() -> None:
    assert merge("a = 1\r\n", "a = 1\r\nb = 2\r\n", "a = 1\nc = 3\n") == "a = 1\r\nb = 2\r\nc = 3\r\n"


def test_comments_without_a_place_are_noted() -> None:
    base = b"[a]\nx = 1\n"
    result = merge_file(
        MergeKind.KEYED_MAP, base, base + b"y = 1\n", base + b"z = 1\n# last word\n", "x.toml", {}
    )
    assert isinstance(result, Merged)
    assert result.notes == ("not carried over from the candidate: # last word",)


SPOTS = st.sampled_from(["project", "tool.ruff", "tool.pyright", "tool.new", "other"])


@pytest.mark.slow
@settings(max_examples=60)
@given(st.permutations(range(5)), st.lists(SPOTS, min_size=5, max_size=5))
def test_any_order_of_branches_keeps_every_key(order: list[int], spots: list[str]) -> None:
    branches = [
        put(f"[{spot}]\n", f"[{spot}]\nkey{number} = {number}\n")
        if f"[{spot}]\n" in PROJECT
        else PROJECT + f"\n[{spot}]\nkey{number} = {number}\n"
        for number, spot in enumerate(spots)
    ]
    landed = PROJECT
    for number in order:
        landed = merge(PROJECT, landed, branches[number])
    tree = tomllib.loads(landed)
    for number, spot in enumerate(spots):
        table = tree
        for key in spot.split("."):
            table = table[key]
        assert table[f"key{number}"] == number
        assert landed.count(f"key{number} = ") == 1
    assert set(PROJECT.split("\n")) <= set(landed.split("\n"))


@pytest.mark.parametrize("swap", [False, True])
def test_a_new_file_on_both_sides_is_joined(swap: bool) -> None:
    texts = ["[a]\nx = 1\n", "[a]\nx = 1\n\n[b]\ny = 2\n"][:: -1 if swap else 1]
    assert merge(None, texts[0], texts[1]) == "[a]\nx = 1\n\n[b]\ny = 2\n"
