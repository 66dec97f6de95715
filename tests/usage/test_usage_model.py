"""Money: exact sums, unknown that stays unknown, prices, and the records of other tools."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landlane.errors import Malformed
from landlane.settings.model import Price
from landlane.settings.money import micros_from
from landlane.usage.import_records import parse_import_record
from landlane.usage.model import (
    Total,
    UsageEntry,
    add_up,
    add_up_by,
    day_of,
    days_between,
    money_words,
    price_of,
    read_money,
    read_tokens,
    total_words,
    usage_id,
)
from landlane.usage.totals import totals_of

pytestmark = pytest.mark.unit

COSTS = st.one_of(st.none(), st.integers(0, 10**12))
TASKS = st.sampled_from(["", "T1", "T2", "T3"])
PRICES = {
    "gpt-5": Price(input_micros=1_250_000, output_micros=10_000_000),
    "claude-*": Price(input_micros=3_000_000, output_micros=15_000_000),
    "claude-haiku-*": Price(input_micros=1_000_000, output_micros=5_000_000),
}


def entry(task: str, cost: int | None, number: int = 0) -> UsageEntry:
    key = f"k{number}"
    return UsageEntry(
        id=usage_id(key), key=key, lineage=task, task=task, state="2026-01-31", at=number, cost_micros=cost
    )


@given(st.lists(st.tuples(TASKS, COSTS), max_size=60))
def test_tasks_and_what_is_unattributed_add_up_to_the_total(booked: list[tuple[str, int | None]]) -> None:
    found = totals_of(entry(task, cost, number) for number, (task, cost) in enumerate(booked))

    for groups in (found.tasks, found.lineages):
        parts = [*groups.values(), found.unattributed]
        assert sum(one.cost_micros for one in parts) == found.grand.cost_micros
        assert sum(one.entries for one in parts) == found.grand.entries == len(booked)
        assert sum(one.unknown for one in parts) == found.grand.unknown
    assert found.grand.cost_micros == sum(cost or 0 for _, cost in booked)


@given(st.decimals(min_value=0, max_value=10**6, places=6, allow_nan=False))
def test_an_amount_is_read_and_written_without_loss(amount: Decimal) -> None:
    micros = read_money(amount, "cost")

    assert Decimal(micros) == amount * 1_000_000
    assert read_money(money_words(micros).replace(",", ""), "cost") == micros


def test_a_float_is_what_is_written() -> None:
    assert [micros_from(one) for one in (0.1, 0.3, 1.005, 1e-7, 5)] == [
        100_000,
        300_000,
        1_005_000,
        0,
        5_000_000,
    ]


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "1,5", "", "free", "1e400", True, None, [], "9" * 80])
def test_what_is_no_amount_is_refused(text: object) -> None:
    with pytest.raises(Malformed) as refused:
        read_money(text, "cost")
    assert refused.value.code == "BAD_AMOUNT"


@pytest.mark.parametrize("text", ["-1", "1.5", "x", 1.0, True, 10**16, "٣"])
def test_what_is_no_count_of_tokens_is_refused(text: object) -> None:
    with pytest.raises(Malformed) as refused:
        read_tokens(text, "tokens")
    assert refused.value.code == "BAD_TOKENS"


@pytest.mark.parametrize(
    ("model", "tokens", "cost"),
    [
        ("gpt-5", (1_000_000, 100_000), 2_250_000),
        ("gpt-5-mini", (1_000_000, 0), None),  # another model: a name is no beginning without a star
        ("claude-sonnet-4", (10, 1), 45),
        ("claude-haiku-4", (10, 1), 15),  # the longest name that fits
        ("", (10, 1), None),
        ("gpt-5", (10, None), None),
        ("gpt-5", (None, None), None),
        ("gpt-5", (0, 0), 0),
    ],
)
def test_tokens_cost_what_the_price_of_their_model_says(
    model: str, tokens: tuple[int | None, int | None], cost: int | None
) -> None:
    assert price_of(PRICES, model, *tokens) == cost


def test_a_price_is_rounded_once() -> None:
    cheap = {"m": Price(input_micros=1, output_micros=1)}
    assert price_of(cheap, "m", 499_999, 0) == 0
    assert price_of(cheap, "m", 250_000, 250_000) == 1


@pytest.mark.promise(
    "usage.unknown-is-not-zero",
    "An unknown cost is shown as unknown and never counted as zero in a total.",
)
def test_unknown_is_never_shown_as_nothing() -> None:
    assert total_words(add_up([])) == "nothing booked"
    assert total_words(add_up([entry("T1", None)])) == "unknown"
    assert total_words(add_up([entry("T1", None), entry("T1", 0, 1)])) == "at least $0.00; unknown for 1 of 2"
    assert total_words(add_up([entry("T1", 1_500_000)])) == "$1.50"
    assert total_words(Total(cost_micros=120_000, entries=1, least=1)) == "at least $0.12"
    assert money_words(1_234_567_890_001) == "$1,234,567.890001"


def test_the_dearest_comes_first() -> None:
    found = add_up_by([entry("T1", 5), entry("T2", 9, 1), entry("T1", 3, 2)], lambda one: one.task)
    assert list(found) == ["T2", "T1"]


def test_days_begin_at_midnight_utc() -> None:
    day = 86_400_000
    assert day_of(0) == "1970-01-01"
    assert day_of(day - 1) == "1970-01-01"
    assert days_between(0, day) == ["1970-01-01"]
    assert days_between(day - 1, day + 1) == ["1970-01-01", "1970-01-02"]
    assert days_between(5, 5) == ["1970-01-01"]


def test_record_is_booked_to_its_own_task_first() -> None:
    found = parse_import_record({"tasks": ["T1", "T2", "T1"], "task": "T9", "cost_usd": Decimal("0.1")}, "k")
    assert (found.tasks, found.entry.cost_micros, found.entry.key) == (("T9", "T1", "T2"), 100_000, "k")


@pytest.mark.parametrize(
    "record",
    [
        [],
        "text",
        {"cost": 1},
        {"cost_usd": "free"},
        {"cost_usd": -1},
        {"input_tokens": 1.5},
        {"tasks": "T1"},
        {"tasks": [1]},
        {"tasks": ["\ud800"]},
        {"key": 7},
        {"key": "two\nlines"},
        {"at": 12},
        {"at": "yesterday"},
        {"at": "2026-02-30"},
    ],
)
def test_invalid_record_is_refused(record: object) -> None:
    with pytest.raises(Malformed):
        parse_import_record(record, "k")
