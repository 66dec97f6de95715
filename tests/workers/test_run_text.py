"""The texts of a run: rows, events, the notes on a budget and a pause, and the summary."""

from __future__ import annotations

import pytest

from landlane.cli.run_progress import region_lines, wrap_line
from landlane.tasks.worker_pool import Pool, pause, resume, slow_down
from landlane.usage.model import RUN, TODAY, Budget
from landlane.workers.model import (
    RowState,
    RunEvent,
    RunEventKind,
    RunRow,
    RunStatus,
    RunSummary,
    RunTotals,
    TaskReason,
)
from landlane.workers.to_text import (
    budget_lines,
    event_text,
    next_step,
    paused_text,
    resumed_text,
    stopped_text,
    summary_headline,
    summary_rows,
)

pytestmark = pytest.mark.unit

NOW = 1_800_000_000_000
MINUTE = 60_000


def row(
    task: str, title: str, doing: str, state: RowState, seconds: int, cents: int, agent: str = ""
) -> RunRow:
    return RunRow(
        task=task,
        title=title,
        tries=1,
        max_tries=3,
        doing=doing,
        state=state,
        elapsed_ms=seconds * 1000,
        agent=agent,
        cost_micros=cents * 10_000,
    )


FRAME = RunStatus(
    rows=(
        row("T27", "Paginate orders", "silent for 42 s (limit 60 s)", RowState.SILENT, 160, 31),
        row("T28", "Export orders as CSV", "L11: make test, 0:41 of about 1:10", RowState.LANDING, 158, 22),
        row("T29", "Convert currencies", "Claude limit resets in 12 min", RowState.LIMITED, 70, 5),
    ),
    workers=3,
    done=1,
    ready=1,
    total=5,
    elapsed_ms=161_000,
    totals=RunTotals(attempts=3, cost_micros=700_000),
)


def test_a_frame_has_a_row_per_task_and_the_progress() -> None:
    assert region_lines(FRAME, 96, lambda text, _: text) == [
        "  T27  Paginate orders        1/3   silent for 42 s (limit 60 s)                    2:40   $0.31",
        "  T28  Export orders as CSV   1/3   L11: make test, 0:41 of about 1:10              2:38   $0.22",
        "  T29  Convert currencies     1/3   Claude limit resets in 12 min                   1:10   $0.05",
        "  ━━━━━━────────────────────────  1 of 5 landed · 1 ready · 2:41 · $0.70",
    ]


def test_a_narrow_terminal_shortens_the_bar_and_not_the_numbers() -> None:
    assert region_lines(FRAME, 60, lambda text, _: text)[-1] == (
        "  ━━━───────────────  1 of 5 landed · 1 ready · 2:41 · $0.70"
    )
    assert region_lines(FRAME, 44, lambda text, _: text)[-1] == "  1 of 5 landed · 1 ready · 2:41 · $0.70"


def test_silent_rows_are_yellow_and_limited_ones_dim() -> None:
    styled: list[tuple[str, str]] = []

    def style(text: str, name: str) -> str:
        styled.append((text.split(maxsplit=1)[0] if text.strip() else "", name))
        return text

    region_lines(FRAME, 96, style)

    assert styled[:3] == [("T27", "yellow"), ("T28", ""), ("T29", "dim")]


def test_an_agent_column_appears_when_there_are_several() -> None:
    rows = (
        row("T1", "List users", "editing", RowState.RUNNING, 3, 1, "claude"),
        row("T2", "Sort users", "editing", RowState.RUNNING, 2, 1, "codex"),
    )
    lines = region_lines(RunStatus(rows=rows, workers=2, total=2), 70, lambda text, _: text)

    assert lines[0] == "  T1  List users   claude   1/3   editing                 0:03   $0.01"
    assert lines[1] == "  T2  Sort users   codex    1/3   editing                 0:02   $0.01"


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    rows = (
        row("T100", "A title that is long " * 9, "does " * 90, RowState.RUNNING, 90_000, 99_999, "x" * 30),
    )
    refusals = (("T3", "why " * 90),)
    status = RunStatus(rows=rows, workers=1, total=9, failed=3, blocked=3, ready=3, refusals=refusals)

    assert all(len(line) <= width for line in region_lines(status, width, lambda text, _: text))


def test_each_event_is_one_line() -> None:
    def text(kind: RunEventKind, **fields: object) -> str:
        event = RunEvent(kind=kind, task="T27", title="Paginate orders", max_tries=3, **fields)  # type: ignore[arg-type]
        return event_text(event, NOW)

    assert text(RunEventKind.STARTED, agent="claude", tries=1) == (
        "T27 started: Paginate orders, claude, attempt 1 of 3"
    )
    assert text(RunEventKind.LANDED, commit="6d20be71aa", took_ms=91_000, cost_micros=120_000) == (
        "T27 landed as 6d20be71 (1 min 31 s, $0.12)"
    )
    assert text(RunEventKind.FAILED, text="no output for 60 s", code="silent", rescue="R9", tries=1) == (
        "T27 failed: no output for 60 s; stopped, uncommitted work saved as R9"
    )
    assert text(RunEventKind.FAILED, text="exit 2", tries=3) == "T27 failed: exit 2 (attempt 3 of 3)"
    assert text(RunEventKind.NEEDS_PERSON, text="retry?", id="G3") == (
        "T27 needs you: retry? landlane inbox G3"
    )


def test_a_limit_without_a_reset_names_our_own_retry() -> None:
    event = RunEvent(kind=RunEventKind.LIMITED, task="T1", agent="claude", retry_at=NOW + 40_000)

    assert event_text(event, NOW).startswith("T1 waits: Claude limit, retry in 40 s (")


def test_a_providers_reset_is_kept_apart_from_our_back_off() -> None:
    answer = slow_down(Pool(), "claude", 4, 12 * MINUTE, NOW).admission["claude"]
    untold = slow_down(Pool(), "claude", 4, 0, NOW).admission["claude"]

    assert (answer["resets_at"], answer["until"]) == (NOW + 12 * MINUTE, NOW + 12 * MINUTE)
    assert (untold["resets_at"], untold["until"]) == (0, NOW + 10_000)


def test_a_budget_says_until_when_and_how_to_raise_it() -> None:
    day = Budget(kind=TODAY, limit=20_000_000, spent=20_040_000, words="")
    run = Budget(kind=RUN, limit=2_500_000, spent=2_600_000, words="")

    first, more, hint = budget_lines(day, ["T14", "T19"], NOW)
    assert first.startswith("! budget reached: $20.04 of $20 today; no new attempts until ")
    assert first.endswith(("00:00 UTC)", "00:00 UTC"))
    assert more == "  T14 and T19 run to the end of their attempt"
    assert hint == "hint: raise it: landlane config set budgets.day 40 --local"
    assert budget_lines(run, [], NOW) == [
        "! budget reached: $2.60 of $2.50 for this run; no new attempts",
        "hint: raise it: landlane config set budgets.run 5 --local",
    ]


def test_a_pause_says_what_still_runs() -> None:
    everything = pause(Pool(), "release freeze", NOW, "pat", pauses_landing=True)

    assert paused_text(everything, ["T14", "T19"], ["L9"]).splitlines() == [
        "✓ paused: no new attempts, landings or deploys",
        "  T14 and T19 run to the end of their attempt; L9 is tested but does not land",
        "next: landlane run resume",
    ]
    assert resumed_text(everything) == "✓ resumed: attempts start again, and landings and deploys continue"
    assert resumed_text(resume(everything)) == "Workers are not paused."


def test_the_summary_names_the_exceptions_with_their_commands() -> None:
    asked = TaskReason(
        task="T30",
        title="Store card tokens",
        why="",
        state="landing",
        id="L12",
        question="approve a change to src/pay/token.py",
    )
    why = "attempt 3 of 3 failed: no output for 60 s\nmore"
    dead = TaskReason(task="T27", title="Paginate orders", why=why, state="dead", tries=3)
    summary = RunSummary(
        done=("T18", "T28", "T29"),
        landed=("T18", "T28", "T29"),
        failed=(dead,),
        waiting=(asked,),
        left=(),
        totals=RunTotals(attempts=7, cost_micros=2_850_000),
        took_ms=14 * MINUTE + 9_000,
    )

    assert summary_headline(summary) == (
        "3 landed, 1 needs you, 1 failed in 14 min for $2.85 ($0.95 per landed task)"
    )
    assert summary_rows(summary) == [
        ("! T30 Store card tokens", "approve a change to src/pay/token.py", "landlane inbox L12"),
        ("✗ T27 Paginate orders", "3 attempts: no output for 60 s", "landlane task log T27"),
    ]
    assert next_step(summary) == "landlane inbox"


def test_a_stopped_run_says_where_the_work_is() -> None:
    left = tuple(TaskReason(task=f"T{number}", title="x", why="y", state="ready") for number in range(4))
    summary = RunSummary(
        done=("T18",),
        landed=("T18",),
        failed=(),
        waiting=(),
        left=left,
        totals=RunTotals(attempts=3, cost_micros=700_000),
        took_ms=3 * MINUTE,
        is_stopped=True,
        stopped=("T27", "T28"),
        rescues=("R9", "R10"),
    )

    assert stopped_text(summary) == (
        "✓ stopped T27 and T28: both are ready again; uncommitted work saved as R9 and R10"
    )
    assert summary_headline(summary) == "1 landed, 4 ready in 3 min for $0.70"
    assert summary_rows(summary) == []
    assert next_step(summary) == "landlane run"


def test_a_long_line_is_broken_between_words() -> None:
    assert wrap_line("T6 failed: it may not change a-b.md", 20) == "T6 failed: it may\n  not change a-b.md"
    assert wrap_line("T6 landed", 20) == "T6 landed"
