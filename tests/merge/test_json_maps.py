"""JSON files: keys of both sides, in the layout of the target."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landlane.merge.merge_file import check_file, merge_file
from landlane.merge.model import Conflict, Merged, MergeKind

pytestmark = pytest.mark.unit

PACKAGE = """\
{
  "name": "demo",
  "version": "1.4.0",
  "files": ["dist", "src"],
  "scripts": {
    "build": "tsc -p .",
    "test": "vitest run"
  },
  "dependencies": {
    "express": "^4.18.2",
    "zod": "^3.22.0"
  },
  "devDependencies": {}
}
"""


def merge(base: str | None, ours: str, theirs: str, path: str = "package.json") -> str:
    result = merge_file(
        MergeKind.KEYED_MAP, None if base is None else base.encode(), ours.encode(), theirs.encode(), path, {}
    )
    assert isinstance(result, Merged), result
    assert result.content is not None
    assert not check_file(MergeKind.KEYED_MAP, result.content, path)
    return result.content.decode()


def conflict(base: str, ours: str, theirs: str, path: str = "package.json") -> Conflict:
    result = merge_file(MergeKind.KEYED_MAP, base.encode(), ours.encode(), theirs.encode(), path)
    assert isinstance(result, Conflict), result
    return result


def test_dependencies_that_both_add_at_one_place_are_joined_in_order() -> None:
    zod = '    "zod": "^3.22.0"\n'
    ours = PACKAGE.replace(zod, '    "pino": "^9.0.0",\n' + zod)
    theirs = PACKAGE.replace(zod, '    "lodash": "^4.17.21",\n' + zod)
    assert merge(PACKAGE, ours, theirs) == PACKAGE.replace(
        zod, '    "lodash": "^4.17.21",\n    "pino": "^9.0.0",\n' + zod
    )


def test_a_table_that_was_empty_is_filled_by_both() -> None:
    ours, theirs = (
        PACKAGE.replace('"devDependencies": {}', f'"devDependencies": {{\n    "{name}": "1.0.0"\n  }}')
        for name in ("eslint", "vitest")
    )
    assert '"devDependencies": {\n    "eslint": "1.0.0",\n    "vitest": "1.0.0"\n  }\n}\n' in merge(
        PACKAGE, ours, theirs
    )


def test_values_on_one_line_stay_on_one_line() -> None:
    ours, theirs = PACKAGE.replace('["dist"', '["bin", "dist"'), PACKAGE.replace('"src"]', '"src", "types"]')
    assert merge(PACKAGE, ours, theirs) == PACKAGE.replace(
        '["dist", "src"]', '["bin", "dist", "src", "types"]'
    )


def test_new_keys_of_the_candidate_follow_their_predecessor() -> None:
    base = '{\n\t"z": 1,\n\t"a": 2\n}'
    assert merge(
        base, '{\n\t"z": 1,\n\t"m": 3,\n\t"a": 2\n}', '{\n\t"z": 1,\n\t"n": [\n\t\t4\n\t],\n\t"a": 2\n}'
    ) == ('{\n\t"z": 1,\n\t"m": 3,\n\t"n": [\n\t\t4\n\t],\n\t"a": 2\n}')


def test_the_candidates_indentation_is_not_taken_over() -> None:
    base = '{"b": {"x": 1}}'
    ours = '{\n    "b": {\n        "x": 1\n    },\n    "q": 5\n}\n'
    theirs = '{\n  "b": {\n    "x": 1\n  },\n  "n": {\n    "y": [\n      1.0\n    ]\n  }\n}\n'
    assert merge(base, ours, theirs) == (
        '{\n    "b": {\n        "x": 1\n    },\n    "n": {\n        "y": [\n            1.0\n        ]\n'
        '    },\n    "q": 5\n}\n'
    )


def test_compact_files_stay_compact() -> None:
    assert merge('{"a":1}', '{"a":1,"b":[1]}', '{"a":1,"c":{"x":2}}') == '{"a":1,"b":[1],"c":{"x":2}}'


def test_line_ends_are_those_of_the_target() -> None:
    merged = merge(
        '{\r\n  "a": 1\r\n}\r\n', '{\r\n  "a": 1,\r\n  "b": 2\r\n}\r\n', '{\n  "a": 1,\n  "c": 3\n}\n'
    )
    assert merged == '{\r\n  "a": 1,\r\n  "b": 2,\r\n  "c": 3\r\n}\r\n'


def test_versions_that_both_raise_are_a_version_conflict() -> None:
    ours, theirs = PACKAGE.replace("^4.18.2", "^4.19.0"), PACKAGE.replace("^4.18.2", "^5.0.0")
    (detail,) = conflict(PACKAGE, ours, theirs).details
    assert detail == (
        'dependencies.express: version conflict, both raised it: the target has "^4.19.0", '
        'the candidate "^5.0.0", both from "^4.18.2"'
    )


def test_versions_that_both_add_are_a_version_conflict() -> None:
    ours, theirs = (f'{{"dependencies": {{"x": "{version}"}}}}' for version in ("1.2.3", "1.3.0"))
    assert conflict("{}", ours, theirs).details == (
        'dependencies.x: version conflict: the target has "1.2.3", the candidate "1.3.0", both added it',
    )


def test_a_key_with_two_new_values_is_a_conflict_that_names_both() -> None:
    found = conflict(
        PACKAGE, PACKAGE.replace("vitest run", "jest"), PACKAGE.replace("vitest run", "node --test")
    )
    assert found.details == (
        'scripts.test: the target has "jest", the candidate "node --test", both from "vitest run"',
    )


def test_a_key_that_one_removes_and_the_other_changes_is_a_conflict() -> None:
    ours, theirs = PACKAGE.replace(',\n    "test": "vitest run"', ""), PACKAGE.replace("vitest run", "jest")
    assert conflict(PACKAGE, ours, theirs).details == (
        'scripts.test: the target removed it, the candidate changed it from "vitest run" to "jest"',
    )


def test_a_key_that_one_removes_is_gone() -> None:
    ours = PACKAGE.replace(',\n    "zod": "^3.22.0"', "")
    theirs = PACKAGE.replace('"zod": "^3.22.0"', '"zod": "^3.22.0",\n    "zx": "8.0.0"')
    assert merge(PACKAGE, ours, theirs) == PACKAGE.replace('"zod": "^3.22.0"', '"zx": "8.0.0"')


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{\n "a": 1,\n "a": 2}', "the candidate is not valid JSON, line 3: the key 'a' stands twice"),
        ('{\n "a": }', "the candidate is not valid JSON, line 2: expected a value, found '}'"),
        ("[1,]", "the candidate is not valid JSON, line 1: expected a value, found ']'"),
        ('{"a": NaN}', "the candidate is not valid JSON, line 1: expected a value, found 'NaN}'"),
        ('{"a": 1} x', "the candidate is not valid JSON, line 1: something stands after the end"),
        ("[" * 5000, "the candidate is not valid JSON, line 1: nested deeper than 100 levels"),
        ('{"a": 1 // no\n}', "the candidate is not valid JSON, line 1: expected , or }"),
    ],
)
def test_conflict_names_the_line_that_is_not_json(text: str, reason: str) -> None:
    assert conflict("{}", '{"b": 1}', text).reason == reason
    assert check_file(MergeKind.KEYED_MAP, text.encode(), "a.json") == reason.replace("candidate", "file")


def test_numbers_stay_as_they_are_written() -> None:
    assert merge('{"a": 1.0}', '{"a": 1.0, "b": 1e3}', '{"a": 1.00}') == '{"a": 1.00, "b": 1e3}'
    assert "1 " not in conflict('{"a": 0}', '{"a": 1}', '{"a": true}').reason


def test_lists_that_are_not_only_added_to_are_refused_unless_they_hold_texts() -> None:
    assert (
        merge('{"a": ["x", "y"]}', '{"a": ["y", "z"]}', '{"a": ["x", "y", "w"]}') == '{"a": ["y", "z", "w"]}'
    )
    assert merge('{"a": [3]}', '{"a": [3, 1]}', '{"a": [3, 2]}') == '{"a": [3, 1, 2]}'
    assert "not only by additions" in conflict('{"a": [1, 5]}', '{"a": [1, 6]}', '{"a": [2, 5]}').details[0]
    assert "twice" in conflict('{"a": [1, 1]}', '{"a": [1, 1, 2]}', '{"a": [1, 1, 3]}').details[0]


def test_other_files_are_refused() -> None:
    assert conflict("a: 1", "a: 1\nb: 1", "a: 2", "x.yaml").reason == (
        "a keyed-map has to be a .json or .toml file, and x.yaml is neither"
    )


KEYS = st.text("abcxyz", min_size=1, max_size=3)
LEAVES = st.none() | st.booleans() | st.integers(-5, 5) | st.text('ab1.é"', max_size=4)
TREES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=6
)
TABLES = st.dictionaries(KEYS, TREES, max_size=4)
LAYOUTS = st.sampled_from([{"indent": 2}, {"indent": "\t"}, {}, {"separators": (",", ":")}])


@pytest.mark.slow
@settings(max_examples=60)
@given(TABLES, TABLES, TABLES, LAYOUTS, LAYOUTS)
def test_disjoint_additions_commute(
    base: dict[str, Any], left: dict[str, Any], right: dict[str, Any], layout: Any, other: Any
) -> None:
    ours = base | {f"l{key}": item for key, item in left.items()}
    theirs = base | {f"r{key}": item for key, item in right.items()}
    texts = [json.dumps(base, **layout), json.dumps(ours, **layout), json.dumps(theirs, **other)]
    merged = merge(texts[0], texts[1], texts[2])
    assert json.loads(merged) == json.loads(merge(texts[0], texts[2], texts[1])) == {**ours, **theirs}


@settings(max_examples=100)
@given(TREES, TREES, TREES, LAYOUTS, LAYOUTS)
def test_merged_file_can_be_read(base: Any, ours: Any, theirs: Any, layout: Any, other: Any) -> None:
    before, now = json.dumps(base, **layout).encode(), json.dumps(ours, **layout).encode()
    result = merge_file(MergeKind.KEYED_MAP, before, now, json.dumps(theirs, **other).encode(), "a.json")
    assert isinstance(result, Merged | Conflict)
    assert isinstance(result, Conflict) or not check_file(
        MergeKind.KEYED_MAP, result.content or b"", "a.json", {}
    )
    assert not isinstance(result, Conflict) or result.details
