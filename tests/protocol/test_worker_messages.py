"""The worker protocol: what is written is read back, and whatever else is said comes to a reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landlane.errors import Malformed
from landlane.protocol.worker.fields import CODES, MOST_LINE_BYTES, ONE_OF, TABLE, USAGE_FIELDS, Field
from landlane.protocol.worker.messages import (
    CLASSES,
    Conversation,
    Flaw,
    Heartbeat,
    Progress,
    Usage,
    WorkAssignment,
    WorkComplete,
    WorkerLimits,
    WorkFailed,
    as_object,
    failed,
    limits_of,
    read_line,
    read_object,
    write_line,
)
from landlane.values import replace
from scripts.worker_protocol import worker_schema

pytestmark = pytest.mark.unit

ASKED = WorkAssignment(
    assignment="T7-1",
    task="T7",
    attempt=1,
    title="Parse dates",
    folder="/work",
    heartbeat_seconds=60,
)
BEAT = b'{"type":"Heartbeat","version":1,"assignment":"T7-1"}'

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
WORDS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=30)


def items_of(field: Field) -> st.SearchStrategy[Any]:
    paths = st.sampled_from(["src/a.py", "b", "ü/x y"])
    made: dict[str, st.SearchStrategy[Any]] = {
        "text": TEXTS,
        "word": WORDS,
        "whole": st.integers(0, field.most),
        "number": st.floats(0, field.most) | st.integers(0, field.most),
        "flag": st.booleans(),
        "texts": st.lists(TEXTS, max_size=4).map(tuple),
        "paths": st.lists(paths, max_size=4).map(tuple),
        "commit": st.sampled_from(["0123456789abcdef0123456789abcdef01234567", "f" * 64]),
    }
    if field.kind == "findings":
        item = st.fixed_dictionaries({"text": TEXTS}, optional={"line": st.integers(0, 9), "path": TEXTS})
        return st.none() | st.lists(item, max_size=3).map(tuple)
    if field.kind == "usage":
        return st.none() | st.builds(Usage, **{name: items_of(one) for name, one in USAGE_FIELDS.items()})
    return st.none() | made[field.kind] if field.is_optional else made[field.kind]


@st.composite
def messages(draw: st.DrawFn) -> Any:
    name = draw(st.sampled_from(list(TABLE)))
    fields = {key: draw(items_of(field)) for key, field in TABLE[name].items()}
    rivals = ONE_OF.get(name, ())
    kept = draw(st.sampled_from(rivals)) if rivals else ""
    made: Any = CLASSES[name]
    return made(**{key: None if key in rivals and key != kept else item for key, item in fields.items()})


def flaw_of(line: bytes, code: str = "malformed") -> str:
    found = read_line(line)
    assert isinstance(found, Flaw), found
    assert found.code == code
    return found.reason


def changed(**fields: object) -> bytes:
    document = {**json.loads(BEAT), **fields}
    return json.dumps({key: item for key, item in document.items() if item != "drop"}).encode()


# ------------------------------------------------------------------------------------------- messages


@pytest.mark.slow
@given(messages())
def test_what_is_written_is_read_back(message: Any) -> None:
    line = write_line(message)

    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert read_line(line) == message
    assert read_object(as_object(message)) == message


@pytest.mark.promise(
    "workers.garbage-comes-to-a-reason",
    "All output of a worker is parsed as a protocol message or rejected with a reason.",
)
@given(st.binary(max_size=300) | TEXTS.map(str.encode))
def test_garbage_comes_to_a_reason(line: bytes) -> None:
    found = read_line(line)

    assert isinstance(found, Flaw)
    assert found.code in CODES
    assert found.reason


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@given(messages(), st.data())
def test_a_message_with_one_field_spoiled_is_a_message_or_a_reason(message: Any, data: st.DataObject) -> None:
    document = as_object(message)
    key = data.draw(st.sampled_from([*document, "extra"]))
    document[key] = data.draw(JSON)

    found = read_line(json.dumps(document).encode())

    assert isinstance(found, (Flaw, *CLASSES.values()))
    if not isinstance(found, Flaw):
        assert read_line(write_line(found)) == found


def test_every_way_to_be_wrong_has_its_reason() -> None:
    assert isinstance(read_line(BEAT), Heartbeat)
    assert "not JSON" in flaw_of(b"hello")
    assert "not JSON" in flaw_of(b"")
    assert "not UTF-8" in flaw_of(b"\xff\xfe")
    assert "not an object" in flaw_of(b"[1]")
    assert "no message of type 'Bye'" in flaw_of(changed(type="Bye"))
    assert "no message of type" in flaw_of(changed(type=["Heartbeat"]))
    assert "version 2" in flaw_of(changed(version=2))
    assert "version True" in flaw_of(changed(version=True))
    assert "version 1.0" in flaw_of(changed(version=1.0))
    assert "version None" in flaw_of(changed(version="drop"))
    assert "assignment is missing" in flaw_of(changed(assignment="drop"))
    assert "no field 'mood'" in flaw_of(changed(mood="fine"))
    assert "must be a text" in flaw_of(changed(doing=3))
    assert "no text" in flaw_of(changed(doing="\ud800"))
    assert "no text" in flaw_of(changed(doing="\0"))
    assert "one word" in flaw_of(changed(assignment="two words"))
    assert "stands twice" in flaw_of(BEAT[:-1] + b',"version":1}')
    assert "nested too deeply" in flaw_of(b"[" * 200_000)
    assert "4,194,304 are the most" in flaw_of(b" " * (MOST_LINE_BYTES + 1), "oversized")


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "-Infinity", "1e999", "-1", "1.5", "true", '"0.5"', "[]"]
)
def test_what_is_no_number_between_its_limits_is_refused(number: str) -> None:
    said = f'{{"type":"Progress","version":1,"assignment":"a","text":"x","done":{number}}}'

    flaw_of(said.encode())


def test_a_change_is_handed_over_in_one_way() -> None:
    complete = WorkComplete(assignment="a", summary="s", patch="p", files=("a",))

    assert "only one of patch, files" in flaw_of(json.dumps(as_object(complete)).encode())
    with pytest.raises(Malformed, match="only one of"):
        write_line(complete)


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/../b", "a//b", "./a", ".git/config", "a/"])
def test_files_lie_inside_the_repository(path: str) -> None:
    said = {"type": "WorkComplete", "version": 1, "assignment": "a", "summary": "s", "files": [path]}

    assert "not a path inside" in flaw_of(json.dumps(said).encode())


def test_what_cannot_be_said_is_refused_before_it_is_written() -> None:
    with pytest.raises(Malformed, match="characters"):
        write_line(Progress(assignment="a", text="x" * 8_001))
    with pytest.raises(Malformed, match="4,194,304"):
        write_line(WorkComplete(assignment="a", summary="", patch="\n" * 2_999_999))
    with pytest.raises(Malformed):
        write_line(Progress(assignment="a", text="x", done=float("nan")))


# --------------------------------------------------------------------------------------- conversation


def talk(*said: Any, start: Conversation | None = None) -> Conversation:
    conversation = start or Conversation()
    for at, message in enumerate(said):
        heard = conversation.receive(message, at)
        assert isinstance(heard, Conversation), heard
        conversation = heard
    return conversation


def refuse(conversation: Conversation, message: Any) -> str:
    found = conversation.receive(message, 0)
    assert isinstance(found, Flaw)
    assert found.code == "out_of_order"
    return found.reason


BEGUN = talk(ASKED)
ALIVE = Heartbeat(assignment="T7-1")
DONE = WorkComplete(assignment="T7-1", summary="s", usage=Usage(cost_usd=2.0))


def test_a_conversation_goes_its_way() -> None:
    answer = Progress(assignment="T7-1", text="x", usage=Usage(input_tokens=3))

    assert not Conversation().is_working
    assert talk(ASKED, ALIVE, answer).is_working
    assert talk(ASKED, ALIVE, answer).usage == Usage(input_tokens=3)
    over = talk(ASKED, answer, DONE)
    assert (over.is_working, over.end, over.messages) == (False, DONE, 2)
    assert over.usage == Usage(cost_usd=2.0)
    ended = talk(ASKED, WorkFailed(assignment="T7-1", code="failed", reason="no"))
    assert ended.end is not None
    assert not ended.is_working


def test_what_comes_at_the_wrong_time_is_named() -> None:
    assert "before any" in refuse(Conversation(), ALIVE)
    assert "may not come from a worker" in refuse(BEGUN, ASKED)
    assert "'T8-1'" in refuse(BEGUN, Heartbeat(assignment="T8-1"))
    over = talk(ASKED, DONE)
    for late in (ALIVE, DONE, WorkFailed(assignment="T7-1", code="failed", reason="no")):
        assert "which was the end" in refuse(over, late)


def test_silence_has_an_end_and_signs_of_life_prolong_it() -> None:
    limits = WorkerLimits(silence_ms=60_000, total_ms=10_000_000)
    conversation = BEGUN
    for now in range(0, 48 * 60_000, 59_000):  # most of an hour of heartbeats, each just in time
        assert conversation.check_limits(now, limits) is None
        heard = conversation.receive(ALIVE, now)
        assert isinstance(heard, Conversation)
        conversation = heard
    last = conversation.received_at
    assert conversation.check_limits(last + 59_999, limits) is None
    assert conversation.check_limits(last + 60_000, limits) == Flaw(
        code="silent", reason="no sign of life for 1 min"
    )


def test_the_whole_has_an_end_too_and_so_has_the_number_of_messages() -> None:
    busy = talk(*[ALIVE] * 5, start=BEGUN)

    late = busy.check_limits(1000, WorkerLimits(total_ms=1000))
    assert late is not None
    assert late.code == "late"
    flooded = busy.check_limits(10, WorkerLimits(most_messages=4))
    assert flooded is not None
    assert flooded.code == "flooded"
    assert talk(ASKED, DONE).check_limits(10**9, WorkerLimits()) is None


def test_an_assignment_tells_its_own_limits() -> None:
    asked = replace(ASKED, heartbeat_seconds=0.5, limit_seconds=7)

    assert limits_of(asked) == WorkerLimits(silence_ms=500, total_ms=7000)
    assert limits_of(ASKED).total_ms is None


@pytest.mark.slow
@given(st.lists(messages(), max_size=6))
def test_whatever_is_said_there_is_one_end_and_nothing_behind_it(said: list[Any]) -> None:
    conversation = Conversation()
    for at, message in enumerate(said):
        heard = conversation.receive(message, at)
        if isinstance(heard, Conversation):
            assert conversation.end is None
            conversation = heard


def test_a_flaw_becomes_the_end() -> None:
    end = failed("T7-1", Flaw(code="silent", reason="quiet"), Usage(cost_usd=1.0))

    assert read_line(write_line(end)) == end
    assert end.code in CODES


# --------------------------------------------------------------------------------------------- schema


def test_the_schema_knows_every_field_of_every_message() -> None:
    schema = worker_schema()

    assert [one["$ref"] for one in schema["oneOf"]] == [f"#/$defs/{name}" for name in TABLE]
    for name, fields in TABLE.items():
        defined = schema["$defs"][name]
        assert list(defined["properties"]) == ["type", "version", *fields]
        assert set(defined["required"]) == {"type", "version"} | {
            key for key, field in fields.items() if not field.is_optional
        }
        assert not defined["additionalProperties"]


def test_the_fields_of_the_values_are_those_of_the_table() -> None:
    for name, made in CLASSES.items():
        assert set(getattr(made, "_fields")) == set(TABLE[name])  # noqa: B009
