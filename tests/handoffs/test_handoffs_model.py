"""The schema and the hash of handoffs: required fields, types and lengths."""

from __future__ import annotations

from typing import Any

import pytest

from landlane.errors import Malformed, SettingsError
from landlane.handoffs.model import (
    Draft,
    Handoff,
    HandoffState,
    check_draft,
    check_receiver,
    digest_of,
    is_addressed,
    is_same_digest,
    is_unchanged,
    may_take,
    read_field,
    summary_of,
)
from landlane.handoffs.text import format_handoff, state_text
from landlane.settings.model import HandoffField, HandoffSettings, Settings
from landlane.settings.readers import parse_settings
from landlane.text import in_lines
from landlane.values import as_dict, replace

pytestmark = pytest.mark.unit

OWN = Settings(
    handoffs=HandoffSettings(
        required=("product",),
        fields={
            "risk": HandoffField(type="text", required=True, longest=10),
            "tickets": HandoffField(type="list"),
            "points": HandoffField(type="number"),
            "urgent": HandoffField(type="flag"),
        },
    )
)


def made(**said: Any) -> Handoff:
    who = {"id": "H1", "task": "T1", "lineage": "T1", "sender": "ann", "session": "s", "to": "bob"}
    texts = {"product": "p", "context": "c", "next": "n", "digest": ""}
    lists: dict[str, list[str]] = {"constraints": ["k"], "blockers": [], "assumptions": []}
    numbers = {"attempt": 1, "maximum": 5, "sent_at": 1000, "until": 2000}
    facts: dict[str, Any] = {**who, **texts, **lists, **numbers, "fields": {}, "taken": {"head": "abc"}}
    handoff = Handoff(**{**facts, **said})
    return replace(handoff, digest=digest_of(handoff))


def refused(draft: Draft, settings: Settings | None = None) -> Malformed:
    with pytest.raises(Malformed) as error:
        check_draft(draft, settings or Settings())
    return error.value


def test_empty_items_and_surrounding_line_ends_are_removed() -> None:
    draft = check_draft(
        Draft(task="T1", to="bob", context="\ntext\n", constraints=("a", " ", "b ")), Settings()
    )
    assert (draft.context, draft.constraints) == ("text", ("a", "b"))
    assert check_draft(draft, Settings()) == draft


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({}, "HANDOFF_INCOMPLETE"),
        ({"next": " \n"}, "HANDOFF_INCOMPLETE"),
        ({"next": "x" * 4001}, "TEXT_TOO_LONG"),
        ({"context": "x" * 64_001}, "TEXT_TOO_LONG"),
        ({"context": "a\0b"}, "BAD_TEXT"),
        ({"next": 7}, "HANDOFF_WRONG_TYPE"),
        ({"next": "n", "constraints": "abc"}, "HANDOFF_WRONG_TYPE"),
        ({"next": "n", "constraints": (1,)}, "HANDOFF_WRONG_TYPE"),
        ({"next": "n", "blockers": ("x",) * 51}, "TOO_MANY"),
        ({"next": "n", "fields": {"risk": "low"}}, "HANDOFF_UNKNOWN_FIELD"),
        ({"next": "n", "fields": ["risk"]}, "HANDOFF_WRONG_TYPE"),
        ({"next": "n", "maximum": 6}, "OUT_OF_RANGE"),
        ({"next": "n", "maximum": -1}, "OUT_OF_RANGE"),
        ({"next": "n", "taken": {"x": "y" * 400_001}}, "TEXT_TOO_LONG"),
        ({"next": "n", "to": ""}, "NO_RECEIVER"),
        ({"next": "n", "to": "not a name"}, "BAD_NAME"),
        ({"next": "n", "to": "role:"}, "BAD_ROLE"),
        ({"next": "n", "task": ""}, "BAD_TASK"),
    ],
)
def test_invalid_drafts_are_refused(said: dict[str, Any], code: str) -> None:
    assert refused(Draft(**{"task": "T1", "to": "bob", **said})).code == code


def test_a_project_can_require_fields_and_types() -> None:
    whole = {"product": "p", "next": "n", "fields": {"risk": "low", "tickets": ["a", ""], "points": 2.5}}
    draft = check_draft(Draft(task="T1", to="bob", **whole), OWN)
    assert draft.fields == {"points": 2.5, "risk": "low", "tickets": ["a"]}
    lacking = refused(Draft(task="T1", to="bob", next="n"), OWN)
    assert lacking.facts["missing"] == ["product", "risk"]
    assert lacking.hint == "--product FILE; --field risk=VALUE"
    for fields in (
        {"risk": "x" * 11},
        {"risk": 1},
        {"risk": "l", "points": True},
        {"risk": "l", "urgent": 1},
    ):
        assert refused(Draft(task="T1", to="bob", next="n", product="p", fields=fields), OWN).code in (
            "TEXT_TOO_LONG",
            "HANDOFF_WRONG_TYPE",
        )


def test_fields_are_parsed_by_their_type() -> None:
    said = ("risk=a=b", "tickets=a; b", "points=3", "points=2.5", "urgent=yes", "urgent=false")
    assert [read_field(one, OWN)[1] for one in said] == ["a=b", ["a", "b"], 3, 2.5, True, False]
    for wrong in ("risk", "=x", "points=many"):
        with pytest.raises(Malformed):
            read_field(wrong, OWN)


def test_settings_are_checked_key_by_key() -> None:
    section = {
        "max": 2,
        "wait": "1h",
        "required": ["next"],
        "fields": {"risk": "text", "n": {"type": "list"}},
    }
    read = parse_settings({"handoffs": section}).handoffs
    assert (read.max, read.wait_ms) == (2, 3_600_000)
    assert read.fields == {"risk": HandoffField(), "n": HandoffField(type="list")}
    for wrong in (
        {"max": 0},
        {"required": ["nothing"]},
        {"fields": {"next": "text"}},
        {"fields": {"a b": "text"}},
        {"fields": {"a": "date"}},
        {"fields": {"a": {"kind": "text"}}},
    ):
        with pytest.raises(SettingsError):
            parse_settings({"handoffs": wrong})


def test_the_hash_covers_the_content_and_nothing_that_happens_later() -> None:
    handoff = made()
    assert is_unchanged(handoff)
    for name in ("product", "context", "next", "sender", "to", "task"):
        assert not is_unchanged(replace(handoff, **{name: "other"})), name
    for name, other in (("attempt", 2), ("maximum", 6), ("constraints", []), ("taken", {"head": "abd"})):
        assert not is_unchanged(replace(handoff, **{name: other})), name
    later = replace(
        handoff, state=HandoffState.ACCEPTED, accepted_by="bob", until=0, declined={"x": 1}, holder="s"
    )
    assert is_unchanged(later)
    assert is_unchanged(Handoff(**as_dict(handoff)))
    assert "does not match" in format_handoff(replace(handoff, next="other"))[1]


def test_a_long_enough_prefix_of_the_hash_is_accepted() -> None:
    handoff = made()
    assert is_same_digest(handoff, handoff.digest.upper())
    assert is_same_digest(handoff, handoff.digest[:8])
    assert not is_same_digest(handoff, handoff.digest[:7])
    assert not is_same_digest(handoff, "")


def test_receivers_are_agents_kinds_of_worker_and_roles() -> None:
    handoff = made()
    assert is_addressed(handoff, "bob", "")
    assert is_addressed(handoff, "bob-T1", "")  # a worker of that kind, at this task
    assert is_addressed(handoff, "bob-T1.x9k2", "")  # one that was started while a former one was alive
    for name in ("bobby", "bob-T2", "bob-T12", "bob-T12.x9k2", "ann"):
        assert not is_addressed(handoff, name, "test")
    assert is_addressed(made(to="role:test"), "eve", "test")
    assert not is_addressed(made(to="role:test"), "eve", "")
    assert is_addressed(made(to="anybody"), "eve", "")
    assert check_receiver("role:test") == "role:test"


def test_after_its_wait_any_agent_may_take_it_but_those_that_declined() -> None:
    handoff = made()
    assert [may_take(handoff, "eve", "", now) for now in (1999, 2000)] == [False, True]
    declined = replace(handoff, until=1500, declined={"bob": 3000})
    assert [may_take(declined, "bob", "", now) for now in (1600, 2999, 3000)] == [False, False, True]
    assert may_take(declined, "eve", "", 1600)


def test_it_is_formatted_in_full_and_in_one_line() -> None:
    handoff = made(next="write\nthe test", taken={"branch": "b", "head": "", "dirty": ["a"] * 30})
    assert summary_of(handoff) == "c\nnext: write\nthe test"
    text = "\n".join(format_handoff(handoff))
    assert "Next step:\n  write\n  the test\n" in text
    assert "Branch: b, with no commit yet" in text
    assert "and 10 more" in text
    assert "… (landlane handoff show H1)" in "\n".join(format_handoff(made(context="x" * 3000)))
    assert state_text(handoff, 1000) == "waits for bob, open to anyone in 1 s"
    assert state_text(handoff, 2000) == "open to anyone (bob has not accepted it)"
    accepted = replace(handoff, state=HandoffState.ACCEPTED, accepted_by="x", accepted_at=1000)
    assert state_text(accepted, 61_000) == "accepted by x 1 min ago"


def test_control_characters_are_escaped() -> None:
    assert in_lines("red\x1b[31m\x07\r\u202e\nok\tü") == "red\\x1b[31m\\x07\\r\\u202e\nok\tü"
