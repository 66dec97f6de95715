"""Entries of ours in somebody's JSON: brought in, replaced and taken out, and every other byte as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landlane.managed_files.json_entries import MISSING, insert_entries, remove_entries, values_of
from landlane.merge.json_source import COMMA, COMMENT, MARK, NotJson, find_extras, read_json

pytestmark = pytest.mark.unit

WANTED: dict[str, Any] = {
    "version": 1,
    "hooks": {
        "Pre": [{"matcher": "Edit", "hooks": [{"type": "command", "command": "OURS pre"}]}],
        "Post": [{"hooks": [{"command": "OURS post"}]}],
    },
    "tools": {"enable": True},
    "files": ["AGENTS.md"],
}
NEWER: dict[str, Any] = {
    **WANTED,
    "hooks": {"Pre": [{"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "OURS newer"}]}]},
}

TEXTS = [
    "{}",
    "{ }\n",
    '{"a":1}',
    '{"a": 1}\n',
    (
        '{\n\t"a": 1, // why\n\t/* x */ "hooks": {\n\t\t"Pre": [\n\t\t\t'
        '{"hooks": [{"command": "mine"}]}, // m\n\t\t],\n\t},\n}'
    ),
    '{\r\n    "a": "ü",\r\n    "hooks": {"Pre": [ ]},\r\n    "files": ["X.md"]\r\n}\r\n',
    "// top\n{\n  // only a comment\n}\n",
    '{ "a": 1,\n  "b": 2 }',
    (
        '{"hooks": {\n  "Pre": [ // a\n    {"hooks":[{"command":"mine"}]} // b\n'
        '    , {"hooks":[{"command":"mine2"}]} ]\n}}'
    ),
    '\ufeff{\n "a":{}\n}',
    '{"a":1 // z\n}',
    '{"url": "http://x//y", "hooks": {}}',
]


def is_ours(command: str) -> bool:
    return "OURS" in command


def keeps_all(text: str, found: str) -> bool:
    """Whether everything but blanks is still there, in order."""
    letters = iter(found)
    return all(letter in letters for letter in text if not letter.isspace())


@pytest.mark.parametrize("text", TEXTS)
def test_entries_are_inserted_once(text: str) -> None:
    found = insert_entries(text, WANTED, is_ours)

    assert insert_entries(found, WANTED, is_ours) == found
    values = values_of(found)
    assert values["hooks"]["Pre"][-1] == WANTED["hooks"]["Pre"][0]
    assert values["files"][-1] == "AGENTS.md"
    assert keeps_all(text, found)


@pytest.mark.parametrize("text", TEXTS)
def test_inserted_entries_can_be_removed(text: str) -> None:
    found = remove_entries(insert_entries(text, WANTED, is_ours), WANTED, values_of(text), is_ours)

    assert values_of(found) == values_of(text)
    assert found.count("//") == text.count("//")


@pytest.mark.parametrize("text", TEXTS)
def test_an_upgrade_replaces_what_an_earlier_release_wrote(text: str) -> None:
    older = insert_entries(text, WANTED, is_ours)

    newer = insert_entries(older, NEWER, is_ours)

    assert values_of(newer) == values_of(insert_entries(text, NEWER, is_ours)) or list(values_of(text)) == [
        "hooks"
    ]
    assert newer.count("OURS") == 1
    assert "mine" not in text or "mine" in newer


def test_an_entry_of_ours_leaves_the_group_of_somebody_else() -> None:
    text = '{"hooks": {"Pre": [{"matcher": "x", "hooks": [{"command": "mine"}, {"command": "OURS old"}]}]}}'

    found = values_of(insert_entries(text, {"hooks": WANTED["hooks"]}, is_ours))

    assert found["hooks"]["Pre"] == [
        {"matcher": "x", "hooks": [{"command": "mine"}]},
        WANTED["hooks"]["Pre"][0],
    ]


def test_existing_values_are_kept() -> None:
    found = values_of(insert_entries('{"version": 2, "tools": {"enable": false}}', WANTED, is_ours))

    assert (found["version"], found["tools"]["enable"]) == (2, False)
    assert values_of(
        remove_entries(json.dumps(found), WANTED, {"version": 2, "tools": {"enable": False}}, is_ours)
    ) == {
        "version": 2,
        "tools": {"enable": False},
    }


def test_an_empty_file_becomes_one_of_ours() -> None:
    assert json.loads(insert_entries("", WANTED, is_ours)) == WANTED
    assert values_of(" \n") is MISSING


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"hooks": []}', "hooks is not an object"),
        ('{"hooks": {"Pre": {}}}', "Pre is not a list"),
        ("[]", "its content is not an object"),
        ('{"a": 1, "a": 2}', "stands twice"),
        ('{"a": 1', "expected , or }"),
        ("{a: 1}", "expected a key"),
        ("{} /* x", "a comment has no end"),
        ("{} 1", "something stands after the end"),
        ("[" * 500, "nested deeper"),
        ('{\n"a": tru\n}', "line 2"),
    ],
)
def test_an_unreadable_document_is_reported(text: str, why: str) -> None:
    with pytest.raises(NotJson, match=why):
        insert_entries(text, WANTED, is_ours)


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
trivia = st.sampled_from(["", " ", "\n", "\r\n", "\t", " // c, } ]\n", "/* , { */", "\n  "])


@st.composite
def written(draw: st.DrawFn, value: Any) -> str:
    """A value as somebody could have written it, with comments and trailing commas anywhere."""
    gap = lambda: draw(trivia)  # noqa: E731
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}{gap()}:{gap()}{draw(written(part))}" for key, part in value.items()]
    elif isinstance(value, list):
        parts = [draw(written(part)) for part in value]
    else:
        return json.dumps(value, ensure_ascii=draw(st.booleans()))
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    inside = f"{gap()},{gap()}".join(parts)
    end = f"{gap()}," if parts and draw(st.booleans()) else ""
    return f"{opening}{gap()}{inside}{end}{gap()}{closing}"


tables = st.dictionaries(st.text(max_size=6).filter(lambda key: key not in WANTED), values, max_size=4)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.data(), tables, st.lists(values, max_size=3))
def test_any_layout_survives(data: st.DataObject, table: dict[str, Any], entries: list[Any]) -> None:
    document = {**table, "hooks": {"Pre": entries, "Own": entries}}
    text = data.draw(trivia) + data.draw(written(document)) + data.draw(trivia)
    assert read_json(text, has_comments=True).root.value == document

    found = insert_entries(text, WANTED, is_ours)

    expected = {**document, **{key: WANTED[key] for key in ("version", "tools", "files")}}
    expected["hooks"] = {
        "Pre": [*entries, *WANTED["hooks"]["Pre"]],
        "Own": entries,
        "Post": WANTED["hooks"]["Post"],
    }
    assert values_of(found) == expected
    assert insert_entries(found, WANTED, is_ours) == found
    assert keeps_all(text, found)
    back = remove_entries(found, WANTED, document, is_ours)
    assert values_of(back) == document
    assert (back.count(" // c"), back.count("/* ,")) == (text.count(" // c"), text.count("/* ,"))


@pytest.mark.parametrize(
    ("text", "extras"),
    [
        ('{"a": "// no", "b": "/* no */", "c": ",}", "d": "\\\\"}', {}),
        ('\ufeff{"a": 1}', {MARK: 1}),
        ('{\n"a": 1 // yes\n}', {COMMENT: 2}),
        ('/* a\n*/ {"a": [1,\n2, ]}', {COMMENT: 1, COMMA: 3}),
        ('{"a": 1,\n// x\n}', {COMMA: 1, COMMENT: 2}),
        ("[1, 2]", {}),
    ],
)
def test_extensions_of_plain_json_are_found(text: str, extras: dict[str, int]) -> None:
    assert find_extras(text) == extras


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": "//x", // y\n"b": [1, 2,],}', {"a": "//x", "b": [1, 2]}),
        ('{"a": "\\"/*", /* c */ "b": 1 /* open', None),
        ('{"a": "\\\\"} // end', {"a": "\\"}),
    ],
)
def test_comments_are_told_from_texts(text: str, found: object) -> None:
    if found is None:
        with pytest.raises(NotJson):
            read_json(text, has_comments=True)
    else:
        assert read_json(text, has_comments=True).root.value == found
