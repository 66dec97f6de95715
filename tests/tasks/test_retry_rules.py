"""The rules of bounded retries: what is noise, what repeats itself, and how long to wait."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from landlane.settings.model import RetrySettings
from landlane.tasks.model import Task
from landlane.tasks.retry_rules import AttemptEnd, Lineage, backoff_ms, decide_retry, normalize
from landlane.tasks.worker_pool import Pool, slow_down, with_failure
from landlane.values import replace

pytestmark = pytest.mark.unit

LIMITS = RetrySettings()

NOW = 1_700_000_000_000

SAME = [
    ("2026-05-04T10:00:00Z red at src/a.py:12", "2027-01-14 22:10:59,123 red at src/a.py:340:7"),
    ("= 1 failed, 3 passed in 1m 3s =", "===== 1 failed, 3 passed in 0.42s ====="),
    ("connect to 10.0.0.1:8080 refused (pid 123)", "connect to 192.168.1.4:9000 refused (pid 77)"),
    ("<Foo object at 0x7f00aa>", "<Foo object at 0x55e0011>"),
    ("no such file: /tmp/pytest-of-ann/pytest-3/a", "no such file: /tmp/pytest-of-bob/pytest-17/a"),
    ("L3 bounced: check failed", "L12 bounced: check failed"),
    ("run 123e4567-e89b-12d3-a456-426614174000 died", "run 00000000-e89b-12d3-a456-426614174999 died"),
    ("HEAD is 1a2b3c4", "HEAD is 99aabbccdd00"),
    ("http://localhost:3000/x is down", "http://localhost:41234/x is down"),
    ('File "a.py", line 12, in f', 'File "a.py", line 99, in f'),
    ("a.ts(12,5): error TS2304", "a.ts(1,1): error TS2304"),
    ("Mon, 4 May 2026 10:00:00 GMT: no", "Tue, 12 Jun 2027 11:01:00 GMT: no"),
    ("no sign of life for 60 s", "no sign of life for  61.5s"),
    ("\x1b[31mFAILED\x1b[0m test_a", "failed test_a"),
    ("branch landlane/T3-1/work is red", "branch landlane/T3-2/work is red"),
    ("[::1]:8080 refused", "[::1]:9090 refused"),
    ("@@ -1,4 +1,5 @@ does not apply", "@@ -10,4 +11,5 @@ does not apply"),
    ("random seed: 12345", "random seed: 99"),
    ("goroutine 17 [running]: main.go:7 +0x1d", "goroutine 93 [running]: main.go:9 +0x2d"),
    ("_logs/2026-05-04T10_00_00_123Z-debug.log", "_logs/2026-06-05T11_10_02_999Z-debug.log"),
    ("backup-20260504T100000Z is broken", "backup-20270105T111213Z is broken"),
    ("2001:db8::1 refused it", "2001:db8::9a refused it"),
    ("ts=1746352800.123 boom", "ts=1746352999.4 boom"),
    ("commit 1234567 is gone", "commit abcdefa is gone"),
    ("error at line number 12", "error at line number 140"),
    ("boom:\n   12 | let x = 1", "boom:\n  140 | let x = 1"),
    ("a.js\n  12:5  error  no-undef", "a.js\n  7:15  error  no-undef"),
    ("make.sh: 12: foo: not found", "make.sh: 31: foo: not found"),
    ("test_x FAILED [ 10%]", "test_x FAILED [100%]"),
    ("listen tcp :8080: bind: in use", "listen tcp :9090: bind: in use"),
    ("request 01J9ZKX8Q0V7B7J2P5T3R4S6W8 died", "request 01J9ZKY1Q0V7B7J2P5T3R4S6WA died"),
    ("Foo@1b2c3d is no Bar", "Foo@7b2c3d9 is no Bar"),
    ("10:00 AM: no", "9:15 AM: no"),
]
DIFFERENT = [
    ("expected 3, got 4", "expected 3, got 5"),
    ("test_a failed", "test_b failed"),
    ("3 failed", "4 failed"),
    ("needs python 3.11", "needs python 3.12"),
    ("HTTP 404", "HTTP 500"),
    ("landlane v1.2.3", "landlane v1.2.4"),
    ("error TS2304", "error TS2305"),
    ("E501", "F841"),
    ("src/a.py:12: bad", "src/b.py:12: bad"),
    ("/tmp/x1/src/a.py:3: bad", "/tmp/x2/src/b.py:3: bad"),
    ("items[10] is missing", "items[11] is missing"),
    ("decimal 5 is wrong", "decimal 6 is wrong"),
    ("expected 2026-01-01, got 2026-01-02", "expected 2026-01-01, got 2026-03-02"),
    ("expected 30s, got 60s", "expected 30s, got 90s"),
    ("db::add is missing", "db::dead is missing"),
    ("row 3 has no total", "row 5 has no total"),
    ("404: not so", "500: not so"),
]


def a_task(**facts: object) -> Task:
    words = dict.fromkeys(("body", "kind", "role", "stored_paths", "owner", "session", "check", "output"), "")
    words |= dict.fromkeys(("key", "why", "next_action", "head", "result"), "")
    numbers = dict.fromkeys(("priority", "rank", "attempt", "failures", "lapses", "waits_for"), 0)
    numbers |= dict.fromkeys(("created_at", "ready_at", "taken_at"), 0)
    known = {"id": "T1", "title": "t", "state": "active", "max_attempts": 3, "lineage": "T1", "labels": ()}
    return Task(**{**words, **numbers, **known, **facts})  # type: ignore[arg-type]


def an_end(feedback: str = "red", **facts: object) -> AttemptEnd:
    return AttemptEnd(**{"code": "failed", "feedback": feedback, **facts})  # type: ignore[arg-type]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_noise_is_taken_out(one: str, other: str) -> None:
    assert normalize(one) == normalize(other)
    assert normalize(one).strip("<>placetimd "), "something is left"


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_compared_values_stay(one: str, other: str) -> None:
    assert normalize(one) != normalize(other)


@given(st.text(alphabet=st.sampled_from("0123456789abcdefTL:/.-_=#[]() \n\tsmhdzx@,+%\x1b"), max_size=80))
@example("12:30:4500:11")
@example("/tmp/ 0x0x00 T1-2-3 a.py:1:2:3")
def test_taking_noise_out_twice_changes_nothing_more(text: str) -> None:
    once = normalize(text)
    assert normalize(once) == once


@given(st.text(max_size=200))
def test_any_text_can_be_asked(text: str) -> None:
    once = normalize(text)
    assert normalize(once) == once


def test_a_megabyte_of_digits_is_normalized_quickly() -> None:
    for text in ("1" * 60_000, "1:" * 30_000, "a.b:" * 15_000, "/tmp/" * 12_000, "0x" * 30_000):
        normalize(text)


def test_pauses_double_up_to_the_cap_and_chance_spreads_them() -> None:
    limits = RetrySettings(backoff_ms=1000, backoff_cap_ms=5000)
    assert [backoff_ms(limits, count, 1.0) for count in (1, 2, 3, 4, 99)] == [1000, 2000, 4000, 5000, 5000]
    assert [backoff_ms(limits, 3, chance) for chance in (0.0, 0.5, 1.0)] == [2000, 3000, 4000]


def test_a_failure_is_tried_again_after_a_pause() -> None:
    verdict = decide_retry(Lineage(id="T1"), a_task(), an_end(), LIMITS, now=NOW, chance=1.0)
    assert (verdict.outcome, verdict.not_before, verdict.is_failure) == ("retry", NOW + 5000, True)
    assert (verdict.lineage.attempts, verdict.lineage.held, verdict.lineage.state) == (
        1,
        {"T1": NOW + 5000},
        "held",
    )


def test_deciding_does_not_change_its_arguments() -> None:
    lineage = Lineage(id="T1")
    decide_retry(lineage, a_task(), an_end(change="A"), LIMITS, now=NOW, chance=1.0)
    assert lineage == Lineage(id="T1")


def test_the_same_feedback_counts_across_tasks_of_a_lineage() -> None:
    first = decide_retry(Lineage(id="T1"), a_task(), an_end("no disk"), LIMITS, now=NOW, chance=0.0)
    other = a_task(id="T2", lineage="T1")
    second = decide_retry(first.lineage, other, an_end("NO  disk"), LIMITS, now=NOW, chance=0.0)
    assert (second.outcome, list(second.lineage.parked)) == ("escalate", ["T2"])


@pytest.mark.parametrize(
    ("changes", "stops_at"),
    [("ABAB", 4), ("ABCABC", 0), ("AABB", 0), ("ABCBC", 5), ("AAA", 3), ("ABBABA", 6)],
)
def test_two_changes_in_turn_and_one_three_times_are_circles(changes: str, stops_at: int) -> None:
    lineage, stopped = Lineage(id="T1"), 0
    for number, change in enumerate(changes, start=1):
        words = "x" * number
        verdict = decide_retry(
            lineage,
            a_task(max_attempts=99),
            an_end(words, change=change),
            RetrySettings(max_attempts=99),
            now=NOW,
            chance=0.0,
        )
        lineage = verdict.lineage
        if verdict.outcome == "escalate":
            stopped = number
            break
    assert stopped == stops_at


def test_a_change_in_between_ends_a_row_of_idle_successes() -> None:
    lineage = Lineage(id="T1")
    for number, change in enumerate(["", "A", "", "B", ""]):
        end = an_end(f"said {'x' * number}", code="no_change" if not change else "not_proved", change=change)
        verdict = decide_retry(lineage, a_task(max_attempts=99), end, LIMITS, now=NOW, chance=0.0)
        lineage = verdict.lineage
        assert verdict.outcome == "retry"


def test_a_lost_worker_is_not_a_failure_of_the_task_but_counts() -> None:
    lineage, task, count = Lineage(id="T1"), a_task(), 0
    while True:
        assert count < 20
        verdict = decide_retry(
            lineage,
            task,
            an_end("its supervisor was killed", code="killed"),
            RetrySettings(),
            now=NOW,
            chance=0.0,
        )
        lineage, task, count = verdict.lineage, replace(task, lapses=task.lapses + 1), count + 1
        if verdict.outcome != "retry":
            break
        assert (verdict.is_failure, verdict.not_before) == (False, 0)
    assert (count, verdict.outcome) == (11, "abort")


def test_a_task_that_may_not_be_retried_is_dead_at_once() -> None:
    verdict = decide_retry(Lineage(id="T1"), a_task(), an_end(may_retry=False), LIMITS, now=NOW, chance=0.0)
    assert verdict.outcome == "abort"


def test_a_task_with_many_attempts_by_name_has_them_in_its_lineage() -> None:
    lineage = Lineage(id="T1", attempts=11)
    verdict = decide_retry(
        lineage, a_task(max_attempts=30, failures=11), an_end(), LIMITS, now=NOW, chance=0.0
    )
    assert verdict.outcome == "retry"


def test_a_rate_limit_that_never_ends_is_for_a_person() -> None:
    lineage, count = Lineage(id="T1"), 0
    while True:
        assert count < 100
        verdict = decide_retry(
            lineage, a_task(), an_end("429", code="rate_limited"), LIMITS, now=NOW, chance=0.0
        )
        lineage, count = verdict.lineage, count + 1
        if verdict.outcome != "returned":
            break
    assert (count, verdict.outcome, verdict.is_failure) == (20, "escalate", False)


def test_one_task_is_one_however_often_it_fails() -> None:
    pool = Pool()
    for at in range(10):
        pool, alike = with_failure(pool, f"T{at % 2}", f"no disk in /tmp/{at}", NOW + at)
        assert not alike
    assert len(pool.infra) == 2
    pool, alike = with_failure(pool, "T7", "no disk in /tmp/x", NOW + 20)
    assert (set(alike), pool.state) == ({"T0", "T1", "T7"}, "paused")


def test_one_always_may_run() -> None:
    assert slow_down(Pool(), "claude", 1, 0, NOW).admission["claude"]["limit"] == 1
