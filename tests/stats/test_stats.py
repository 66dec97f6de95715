"""Numbers of a period: what counts, what is cut at its edges, and what cannot be known."""

from __future__ import annotations

from typing import Any

import pytest

from landlane.errors import Malformed
from landlane.stats.calculate import measure
from landlane.stats.metrics import DEFINITIONS, Metric, Stats
from landlane.stats.to_json import metric_json, picture
from landlane.stats.weeks import value_text, week_rows
from landlane.store.journal_chain import JournalEntry, encode_data
from landlane.usage.model import UsageEntry, day_of
from landlane.usage.period import Period, read_period

pytestmark = pytest.mark.unit

DAY = 86_400_000
NOW = 10 * DAY
WEEK = Period(since=3 * DAY, until=NOW)
TOLD = {"task": "", "code": "", "target": "main", "submitted_at": 1}


def entry(at: int, kind: str, /, **facts: Any) -> JournalEntry:
    data = encode_data(facts)
    return JournalEntry(position=1, number=1, at=at, kind=kind, agent="", session="", data=data, hash="")


def landing(at: int, verb: str, *, task: str = "", code: str = "", submitted_at: int = 0) -> JournalEntry:
    answer = {"task": task, "code": code, "target": "main", "submitted_at": submitted_at or at}
    return entry(at, f"landing.{verb}", landing=answer)


def booking(at: int, cost: int | None, task: str = "", attempt: int = 0) -> UsageEntry:
    return UsageEntry(
        id=str(at),
        key=str(at),
        lineage=task,
        task=task,
        attempt=attempt,
        state=day_of(at),
        at=at,
        cost_micros=cost,
    )


def of(found: Stats, name: str) -> Metric:
    return next(one for one in found.metrics if one.name == name)


def values(found: Stats) -> dict[str, float | None]:
    return {one.name: one.value for one in found.metrics}


def test_nothing_is_told_of_what_nobody_saw() -> None:
    found = measure(WEEK, [], [], now=NOW)

    assert list(values(found)) == list(DEFINITIONS)
    unknown = [name for name, value in values(found).items() if value is None]
    assert unknown == [
        *("merge_success", "conflict_rate", "merged_cleanly", "duplicate_rate", "target_red"),
        *("time_to_land", "cost", "cost_per_landed", "cost_per_landed_task", "coordination_overhead"),
        *("decisions_per_task", "decision_time_per_task", "cost_per_task", "setup_time"),
        "failed_cost_per_task",
    ]
    assert all(one.note for one in found.metrics if one.value is None)


def test_landings_are_counted_with_what_came_back() -> None:
    entries = [
        landing(2 * DAY, "landed", task="T0"),  # before
        landing(4 * DAY, "landed", task="T1", submitted_at=4 * DAY - 1000),
        landing(5 * DAY, "landed", task="T1", submitted_at=5 * DAY - 3000),
        landing(5 * DAY, "landed"),
        landing(6 * DAY, "bounced", code="CONFLICT"),
        landing(6 * DAY, "bounced", code="CHECK_FAILED"),
        landing(6 * DAY, "bounced", code="REJECTED"),  # a person's word is no failed merge
        landing(6 * DAY, "ejected"),
        landing(NOW, "landed", task="T9"),  # after
    ]
    found = measure(WEEK, entries, [], now=NOW)

    assert (of(found, "tasks_landed").value, of(found, "changes_landed").value) == (1, 3)
    merged, clashed = of(found, "merge_success"), of(found, "conflict_rate")
    assert (merged.numerator, merged.denominator, merged.value) == (3, 5, 0.6)
    assert (clashed.numerator, clashed.denominator) == (1, 5)
    assert of(found, "time_to_land").value == 1000
    assert found.daily["changes_landed"] == (0, 1, 2, 0, 0, 0, 0)


def test_chores_and_outputs_count_and_each_number_is_there_per_task_and_per_kind() -> None:
    minute = 60_000
    entries = [
        entry(DAY, "task.added", task="T1", title="A", kind="", output=""),
        entry(DAY, "task.added", task="T2", title="B", kind="chore", output=""),
        entry(DAY, "task.added", task="T3", title="C", kind="", output="out/c"),
        entry(DAY, "task.added", task="T4", title="D", kind="review", output=""),
        entry(4 * DAY, "task.taken", task="T1", attempt=1),
        entry(4 * DAY + 6 * minute, "task.reported", task="T1"),
        landing(4 * DAY + 8 * minute, "landed", task="T1", submitted_at=4 * DAY + 6 * minute),
        entry(4 * DAY + 8 * minute, "task.done", task="T1"),
        entry(5 * DAY, "task.taken", task="T2", attempt=1),
        entry(5 * DAY + 2 * minute, "task.done", task="T2"),
        entry(5 * DAY, "task.done", task="T3"),
        entry(5 * DAY, "task.done", task="T4"),  # of a reviewer
        entry(6 * DAY, "decision.made", spent_ms=9 * minute),
    ]
    usage = [booking(4 * DAY, 4_000_000, "T1", 1), booking(5 * DAY, 500_000, "T2", 1)]
    found = measure(WEEK, entries, usage, now=NOW)

    assert of(found, "tasks_done").value == 3
    assert of(found, "tasks_done_per_day").value == 1.5
    overhead = of(found, "coordination_overhead")
    assert (overhead.numerator, overhead.denominator, overhead.value) == (2, 10, 0.2)
    assert of(found, "decisions_per_task").value == pytest.approx(1 / 3)
    assert of(found, "decision_time_per_task").value == 3 * minute
    assert of(found, "cost_per_task").value == 1_500_000
    assert of(found, "setup_time").value == 3 * DAY + 8 * minute
    kinds = {one.kind: (one.tasks, one.cost_per_task) for one in found.kinds}
    assert kinds == {"chore": (1, 500_000), "code": (1, 4_000_000), "output": (1, None)}
    rows = {row[0]: row[1] for row in week_rows([found, found], "main")}
    assert (rows["Tasks done"], rows["  code"], rows["  output"]) == ("3", "$4.00", "–")


def test_waiting_is_cut_at_the_edges_of_the_period() -> None:
    entries = [
        entry(3 * DAY + 500, "wait.ended", waited_ms=2000),
        entry(4 * DAY, "wait.ended", waited_ms=700),
        entry(2 * DAY, "wait.ended", waited_ms=700),
    ]
    found = measure(WEEK, entries, [], waiting_since=[NOW - 40], now=NOW - 10)

    waited = of(found, "claim_wait")
    assert (waited.value, waited.numerator) == (500 + 700 + 30, 3)


def test_red_lasts_until_something_lands_or_the_period_ends() -> None:
    entries = [
        landing(2 * DAY, "testing"),
        landing(2 * DAY, "requeued", code="TARGET_RED"),
        landing(3 * DAY + 10, "requeued", code="TARGET_RED"),
        landing(3 * DAY + 50, "landed"),
        landing(NOW - 7, "requeued", code="TARGET_RED"),
        landing(NOW - 6, "requeued", code="REMOTE_GONE"),
    ]
    assert of(measure(WEEK, entries, [], now=NOW), "target_red").value == 50 + 7
    assert of(measure(WEEK, entries[:1], [], now=NOW), "target_red").value == 0


def test_a_duplicate_counts_once_whether_refused_or_entered() -> None:
    entries = [
        entry(4 * DAY, "task.added", task="T1", title="A", similar=[]),
        entry(4 * DAY, "duplicate.refused", title="A again", similar=["T1"]),
        entry(4 * DAY, "task.added", task="T2", title="A again", similar=[["T1", "same words"]]),
        entry(4 * DAY, "duplicate.refused", title="A once more", similar=["T1"]),
        entry(4 * DAY, "duplicate.refused", title="A once more", similar=["T1"]),
    ]
    rate = of(measure(WEEK, entries, [], now=NOW), "duplicate_rate")
    assert (rate.numerator, rate.denominator) == (2, 3)


def test_attempts_retries_dead_letters_and_rescues() -> None:
    entries = [
        entry(4 * DAY, "task.taken", task="T1", attempt=1),
        entry(4 * DAY, "task.failed", task="T1", state="ready"),
        entry(4 * DAY, "task.taken", task="T1", attempt=2),
        entry(4 * DAY, "task.failed", task="T1", state="dead"),
        entry(4 * DAY, "rescue.saved", rescue="R1"),
        entry(4 * DAY, "rescue.saved", rescue="R2"),
        entry(4 * DAY, "rescue.forgotten", rescue="R2"),
    ]
    found = values(measure(WEEK, entries, [], now=NOW))
    assert (found["attempts"], found["retries"], found["dead_letters"], found["rescues"]) == (2, 1, 1, 1)


def test_a_landed_change_costs_what_failed_attempts_cost_too() -> None:
    entries = [
        entry(4 * DAY, "task.taken", task="T1", attempt=1),
        entry(4 * DAY, "task.taken", task="T1", attempt=2),
        landing(5 * DAY, "landed", task="T1"),
        landing(5 * DAY, "landed"),
    ]
    usage = [
        booking(4 * DAY, 700_000, "T1", 1),
        booking(4 * DAY + 1, 200_000, "T1", 2),
        booking(4 * DAY + 2, 100_001),
    ]
    found = measure(WEEK, entries, usage, now=NOW)

    each = of(found, "cost_per_landed")
    assert (each.value, each.numerator, each.denominator, each.is_least) == (500_001, 1_000_001, 2, False)
    assert metric_json(each).get("numerator") == 1.000001


def test_the_cost_of_attempts_that_were_tried_again_or_given_up_is_shown_apart() -> None:
    entries = [
        entry(4 * DAY, "task.taken", task="T1", attempt=1),
        entry(4 * DAY, "task.taken", task="T1", attempt=2),
        entry(4 * DAY, "task.taken", task="T2", attempt=1),
        entry(4 * DAY, "task.failed", task="T2", state="dead"),
        landing(5 * DAY, "landed", task="T1"),
    ]
    usage = [booking(4 * DAY, 70, "T1", 1), booking(4 * DAY, 20, "T1", 2), booking(4 * DAY, 5, "T2", 1)]

    found = values(measure(WEEK, entries, usage, now=NOW))

    assert (found["cost_per_landed_task"], found["failed_cost_per_task"]) == (95, 75)


def decision(at: int, spent_ms: int | None) -> JournalEntry:
    return entry(at, "decision.made", item="G1", spent_ms=spent_ms)


@pytest.mark.parametrize(
    ("spent", "count", "value", "text"),
    [
        ([], 0, 0, "0 s"),
        ([60_000, 120_000], 2, 180_000, "3 min"),
        ([60_000, None], 2, 60_000, "≥ 1 min"),
        ([None], 1, None, "unknown"),
    ],
)
def test_the_time_of_people_is_a_lower_bound_where_part_of_it_is_unknown(
    spent: list[int | None], count: int, value: int | None, text: str
) -> None:
    entries = [decision(4 * DAY, one) for one in spent] + [decision(2 * DAY, 5)]
    found = measure(WEEK, entries, [], now=NOW)

    assert (of(found, "decisions").value, of(found, "decision_time").value) == (count, value)
    assert value_text(of(found, "decision_time")) == text
    assert metric_json(of(found, "decision_time")).get("is_least", False) is (None in spent)


def test_conflicts_bounces_and_tasks_per_day() -> None:
    entries = [
        entry(4 * DAY, "landing.landed", landing={**TOLD, "task": "T1", "resolved": ["a", "b"]}),
        entry(5 * DAY, "landing.landed", landing={**TOLD, "task": "T2"}),
        landing(5 * DAY, "bounced", code="CONFLICT"),
        landing(5 * DAY, "bounced", code="CHECK_FAILED"),
        entry(6 * DAY, "task.taken", task="T3", attempt=1),
        entry(6 * DAY, "duplicate.refused", title="A", similar=["T1"]),
    ]
    found = measure(WEEK, entries, [], now=NOW)

    shown = {name: value_text(of(found, name)) for name in ("tasks_per_day", "merged_cleanly")}
    assert shown == {"tasks_per_day": "0.7", "merged_cleanly": "75 %"}
    names = ("conflicts_resolved", "bounced", "duplicates_stopped")
    assert [of(found, name).value for name in names] == [2, 2, 1]


def test_the_table_compares_this_week_with_the_weeks_before() -> None:
    weeks = [Period(since=(21 - 7 * n) * DAY, until=(28 - 7 * n) * DAY) for n in range(4)]
    entries = [landing(day * DAY + 5, "landed", task=f"T{day}") for day in (1, 8, 9, 15, 16, 22, 23, 24, 25)]

    rows = week_rows([measure(week, entries, [], now=28 * DAY) for week in weeks], "main")

    assert rows[:3] == [
        ["Tasks landed", "4", "2", "▂▄▄█"],
        ["  per day", "1", "1", ""],
        ["Merged without a conflict", "100 %", "100 %", "████"],
    ]
    assert rows[6] == ["main failing", "–", "–", ""]


@pytest.mark.parametrize(
    ("usage", "value", "note"),
    [
        ([], None, "nothing was booked in the period; 1 attempt has booked nothing"),
        ([booking(4 * DAY, None, "T1", 1)], None, "the cost of 1 of 1 bookings is unknown"),
        ([booking(4 * DAY, 5, "T2", 1)], 5, "1 attempt has booked nothing"),
        ([booking(4 * DAY, 5, "T1")], 5, ""),  # booked to the task, whichever attempt it was
    ],
)
def test_a_cost_says_what_is_missing_in_it(usage: list[UsageEntry], value: int | None, note: str) -> None:
    entries = [entry(4 * DAY, "task.taken", task="T1", attempt=1), landing(5 * DAY, "landed")]
    each = of(measure(WEEK, entries, usage, now=NOW), "cost_per_landed")
    assert (each.value, each.note, each.is_least) == (value, note, bool(note) and value is not None)


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        ("", "", (3 * DAY + 1, NOW + 1)),
        ("all", "", (0, NOW + 1)),
        ("1970-01-03", "1970-01-04", (2 * DAY, 4 * DAY)),  # all of the last day
        ("1d", "1970-01-04", (3 * DAY, 4 * DAY)),
        ("1970-01-03T01:00:00+01:00", "1970-01-03T00:00:01Z", (2 * DAY, 2 * DAY + 1000)),
    ],
)
def test_a_period_is_read_as_people_write_it(since: str, until: str, expected: tuple[int, int]) -> None:
    found = read_period(since, until, NOW)
    assert (found.since, found.until) == expected


@pytest.mark.parametrize(
    ("since", "until", "code"),
    [
        ("soon", "", "BAD_PERIOD"),
        ("2026-13-01", "", "BAD_PERIOD"),
        ("", "7d", "BAD_INSTANT"),
        ("", "20260131", "BAD_INSTANT"),
        ("1970-01-05", "1970-01-03", "BAD_PERIOD"),
        ("0s", "1970-01-03", "BAD_PERIOD"),
    ],
)
def test_a_period_that_makes_no_sense_is_refused(since: str, until: str, code: str) -> None:
    with pytest.raises(Malformed) as refused:
        read_period(since, until, NOW)
    assert refused.value.code == code


def test_a_picture_shows_the_highest_day_and_days_without_any() -> None:
    assert picture((0, 1, 8)) == "·▁█"
    assert picture((3,)) == ""
    assert picture((0, 0)) == ""
    assert len(picture(tuple(range(400)))) <= 60
