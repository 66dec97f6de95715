"""Entries, their lines and their chain: whatever is changed, moved or removed shows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from landlane.store.journal_chain import (
    EMPTY_CHAIN_HASH,
    JournalEntry,
    check_chain,
    encode_data,
    format_line,
    hash_entry,
    parse_line,
)
from landlane.values import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.unit

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
FACTS = st.dictionaries(
    TEXT, st.one_of(TEXT, st.integers(), st.booleans(), st.none(), st.lists(TEXT)), max_size=4
)
WRITTEN = st.tuples(st.integers(0, 10**13), TEXT, TEXT, TEXT, FACTS)


def chain(written: Sequence[tuple[int, str, str, str, dict[str, object]]]) -> list[JournalEntry]:
    entries: list[JournalEntry] = []
    head = EMPTY_CHAIN_HASH
    for position, (at, kind, agent, session, facts) in enumerate(written, start=1):
        data = encode_data(facts)
        head = hash_entry(head, position, position, at, kind, agent, session, data)
        entries.append(
            JournalEntry(
                position=position,
                number=position,
                at=at,
                kind=kind,
                agent=agent,
                session=session,
                data=data,
                hash=head,
            )
        )
    return entries


FEW = chain([(number, "claim.taken", "ann", "s-1", {"token": number}) for number in range(1, 6)])


@given(st.lists(WRITTEN, max_size=5))
def test_an_untouched_chain_has_no_trouble(
    written: list[tuple[int, str, str, str, dict[str, object]]],
) -> None:
    entries = chain(written)
    verdict = check_chain(entries)

    assert (verdict.entries, verdict.trouble) == (len(entries), ())
    assert verdict.head == (entries[-1].hash if entries else EMPTY_CHAIN_HASH)


@given(st.data())
def test_any_change_of_any_field_shows(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(FEW) - 1))
    field = data.draw(st.sampled_from(["number", "at", "kind", "agent", "session", "data", "hash"]))
    old = getattr(FEW[at], field)
    new = data.draw(st.integers(0, 100) if isinstance(old, int) else TEXT)
    assume(new != old)

    changed = [*FEW[:at], replace(FEW[at], **{field: new}), *FEW[at + 1 :]]

    assert check_chain(changed).trouble


@given(st.sets(st.integers(0, 3), min_size=1))
def test_whatever_is_cut_out_before_the_end_shows(cut: set[int]) -> None:
    assert check_chain([entry for index, entry in enumerate(FEW) if index not in cut]).trouble


@given(st.permutations(FEW))
def test_another_order_shows(shuffled: list[JournalEntry]) -> None:
    assert bool(check_chain(shuffled).trouble) == (shuffled != FEW)


def test_one_edit_is_told_once_and_what_follows_is_checked_on() -> None:
    changed = [replace(FEW[0], agent="eve"), *FEW[1:3], replace(FEW[3], at=0), FEW[4]]

    assert check_chain(changed).trouble == (
        "entry 1 (claim.taken) was changed, or the one before it",
        "entry 4 (claim.taken) was changed, or the one before it",
    )


def test_a_gap_is_told_by_its_positions() -> None:
    assert check_chain([FEW[0], *FEW[3:]]).trouble == ("entries 2 to 3 are missing",)


def test_a_chain_can_be_checked_on_from_any_entry() -> None:
    assert check_chain(FEW[2:], after=2, head=FEW[1].hash).trouble == ()
    assert check_chain(FEW[2:], after=2, head=FEW[0].hash).trouble


@given(WRITTEN)
def test_an_entry_survives_the_way_through_a_line(
    written: tuple[int, str, str, str, dict[str, object]],
) -> None:
    (entry,) = chain([written])
    line = format_line(entry)

    assert parse_line(line) == entry
    assert "\n" not in line
    assert "\r" not in line


def test_a_line_is_one_json_object_with_a_readable_time() -> None:
    found = json.loads(format_line(FEW[0]))

    assert found == {
        "agent": "ann",
        "at": "1970-01-01T00:00:00.001Z",
        "at_ms": 1,
        "data": {"token": 1},
        "hash": FEW[0].hash,
        "kind": "claim.taken",
        "number": 1,
        "position": 1,
        "session": "s-1",
    }


@pytest.mark.parametrize(
    "line", ["", "{}", "[]", "1", "null", '{"position": 1}', "rubbish", format_line(FEW[0])[:-1]]
)
def test_other_lines_are_refused(line: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever JSON says of it
        parse_line(line)


def test_facts_have_one_text_whatever_their_order() -> None:
    assert encode_data({"b": 1, "a": "é"}) == encode_data({"a": "é", "b": 1}) == '{"a":"é","b":1}'
    assert FEW[0].facts() == {"token": 1}
