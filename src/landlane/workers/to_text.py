"""A run as people read it: its events, its rows, the notes on a pause or a budget, and its summary."""

from __future__ import annotations

from landlane.landing.to_text import exit_text, fix_task_command, output_lines
from landlane.tasks.model import BLOCKED, READY, Wait, WaitKind
from landlane.tasks.text import limit_text, state_text
from landlane.units import (
    clock_time,
    count,
    exact_duration,
    join_words,
    money,
    money_limit,
    rough_duration,
    running_time,
)
from landlane.usage.budget import reached_text
from landlane.usage.model import TODAY
from landlane.workers.follow_tasks import first_line
from landlane.workers.model import RunEventKind, RunTotals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.tasks.worker_pool import Pool
    from landlane.usage.model import Budget
    from landlane.workers.model import FailingTarget, RunEvent, RunRow, RunStatus, RunSummary, TaskReason
    from landlane.workers.preflight import Preflight

_BAR_WIDTH = 30
_SHORTEST_BAR = 5
_DAY_MS = 86_400_000
_MINUTE_MS = 60_000
_STOPPED_CODES = ("silent", "late", "over_budget", "flooded")  # the worker was ended while it ran
_SYMBOLS = {
    RunEventKind.LANDED: "✓ ",
    RunEventKind.DONE: "✓ ",
    RunEventKind.FAILED: "✗ ",
    RunEventKind.NEEDS_PERSON: "! ",
    RunEventKind.NOTE: "! ",
}


def preflight_text(preflight: Preflight, workers: int, *, is_live: bool) -> str:
    """Return that all checks before a run passed, and what it starts with."""
    facts = [f"{preflight.branch} at {preflight.tip[:8]}"] if preflight.tip else []
    facts += ["which fails its checks"] if preflight.is_failing else []
    facts.append(f"sandbox {'on' if preflight.is_sandboxed else 'off'}")
    facts += [count(preflight.tasks, "task"), count(workers, "worker")]
    return f"{'✓ ' if is_live else ''}preflight passed: {', '.join(facts)}"


def event_text(event: RunEvent, now: int, *, is_titled: bool = False) -> str:
    """Return an event in one line; `is_titled` names the task with its title. `now` is wall-clock time."""
    named = f"{event.task} {event.title}" if is_titled else event.task
    attempt = f"attempt {event.tries} of {event.max_tries}"
    match event.kind:
        case RunEventKind.STARTED:
            return f"{event.task} started: {event.title}, {event.agent}, {attempt}"
        case RunEventKind.LANDED:
            return f"{named} landed as {event.commit[:8]} ({_took(event)})"
        case RunEventKind.DONE:
            return f"{named} is done ({_took(event)})"
        case RunEventKind.FAILED:
            ended = ["stopped"] if event.code in _STOPPED_CODES else []
            ended += [f"uncommitted work saved as {event.rescue}"] if event.rescue else []
            last = f" ({attempt})" if event.tries >= event.max_tries else ""
            why = "; ".join(filter(None, (event.text or "no reason given", ", ".join(ended))))
            return f"{named} failed: {why}{last}"
        case RunEventKind.LIMITED:
            return f"{event.task} waits: {_limit(event, now)}; no attempt charged"
        case RunEventKind.NEEDS_PERSON:
            gap = " " if event.text.endswith("?") else ": "
            command = f"{gap}landlane inbox {event.id}" if event.id else ""
            return f"{named} needs you: {event.text}{command}"
        case RunEventKind.NOTE:
            return f"{event.task}: {event.text}" if event.task else event.text


def ended_line(event: RunEvent, now: int) -> str:
    """Return an event that scrolls away above the live region; empty if its row shows it."""
    if event.kind in (RunEventKind.STARTED, RunEventKind.LIMITED):
        return ""
    return _SYMBOLS[event.kind] + event_text(event, now, is_titled=True)


def _took(event: RunEvent) -> str:
    cost = [money(event.cost_micros)] if event.cost_micros is not None else []
    return ", ".join([exact_duration(event.took_ms), *cost])


def _limit(event: RunEvent, now: int) -> str:
    wait = Wait(kind=WaitKind.LIMIT, holder=event.agent, until=event.retry_at, resets_at=event.resets_at)
    until = event.resets_at if event.resets_at > now else event.retry_at
    return f"{limit_text(wait, now)} ({clock_time(until)})"


def row_cells(row: RunRow, *, has_agent: bool) -> list[str]:
    """Return the cells of a row of the live region."""
    cost = money(row.cost_micros) if row.cost_micros is not None else ""
    agent = [row.agent] if has_agent else []
    tries = f"{row.tries}/{row.max_tries}"
    return [row.task, row.title, *agent, tries, row.doing, running_time(row.elapsed_ms), cost]


def progress_parts(status: RunStatus, width: int) -> tuple[int, int, str]:
    """Return the bar under the rows, as its filled and its empty length, and the text beside it.

    The bar gets what the text leaves of a width, or nothing if that is too little.
    """
    parts = [f"{status.done} of {status.total} landed"]
    counts = [
        (status.ready, "ready"),
        (status.blocked, "blocked"),
        (status.waiting, "needs you" if status.waiting == 1 else "need you"),
        (status.failed, "failed"),
    ]
    parts += [f"{number} {name}" for number, name in counts if number]
    parts.append(running_time(status.elapsed_ms))
    if status.totals.cost_micros:
        parts.append(_money(status.totals))
    text = " · ".join(parts)
    room = min(width - len(text) - len("    "), _BAR_WIDTH)
    size = room if room >= _SHORTEST_BAR else 0
    filled = size * status.done // status.total if status.total else 0
    return filled, size - filled, text


def _money(totals: RunTotals) -> str:
    return money(totals.cost_micros, has_unknown=bool(totals.unknown_costs))


def run_on_text(tasks: Sequence[str]) -> str:
    """Return which attempts continue: `T14 and T19 run to the end of their attempt`; empty without any."""
    if not tasks:
        return ""
    is_one = len(tasks) == 1
    end = "runs to the end of its attempt" if is_one else "run to the end of their attempt"
    return f"{join_words(tasks)} {end}"


def stopping_text(running: Sequence[str]) -> str:
    """Return what the first Ctrl-C does."""
    if not running:
        return "! stopping: no new attempts"
    verb, them = ("runs", "it") if len(running) == 1 else ("run", "them")
    again = f"Ctrl-C again stops {them} now"
    return f"! stopping: no new attempts; {join_words(running)} {verb} to the end ({again})"


def stopped_text(summary: RunSummary) -> str:
    """Return which attempts were ended on request, and where their work is; empty if there were none."""
    tasks, rescues = summary.stopped, summary.rescues
    if not tasks:
        return ""
    all_of = {1: "it is", 2: "both are"}.get(len(tasks), "all are")
    saved = f"; uncommitted work saved as {join_words(rescues)}" if rescues else ""
    return f"✓ stopped {join_words(tasks)}: {all_of} ready again{saved}"


def budget_lines(budget: Budget, running: Sequence[str], now: int) -> list[str]:
    """Return that a budget of the day or the run is used up, and how to raise it."""
    first = f"! budget reached: {reached_text(budget)}; no new attempts"
    if budget.kind == TODAY:
        midnight = (now // _DAY_MS + 1) * _DAY_MS
        until = f"{clock_time(midnight)} (00:00 UTC)" if clock_time(midnight) != "00:00" else "00:00 UTC"
        first += f" until {until}"
    more = f"  {run_on_text(running)}" if running else ""
    raised = money_limit(2 * budget.limit).removeprefix("$").replace(",", "")
    hint = f"hint: raise it: landlane config set budgets.{budget.kind} {raised} --local"
    return [line for line in (first, more, hint) if line]


def failing_target_lines(failing: FailingTarget) -> list[str]:
    """Return that the target fails, with the lines that show why."""
    failure = failing.failure
    how = f"{failure.check} ({exit_text(failure.exit)})"
    return [
        f"{failing.branch} itself fails {how}: only a fix starts and lands",
        *output_lines(failure.lines),
    ]


def paused_text(pool: Pool, running: Sequence[str], landings: Sequence[str]) -> str:
    """Return that a person paused the run, what still runs, and how to continue."""
    scope = "no new attempts, landings or deploys" if pool.pauses_landing else "no new attempts"
    verb = "is tested but does" if len(landings) == 1 else "are tested but do"
    rest = [run_on_text(running)]
    if pool.pauses_landing and landings:
        rest.append(f"{join_words(landings)} {verb} not land")
    more = "; ".join(filter(None, rest))
    return "\n".join([f"✓ paused: {scope}", *([f"  {more}"] if more else []), "next: landlane run resume"])


def resumed_text(before: Pool) -> str:
    """Return what continues after a pause."""
    if not before.is_paused:
        return "Workers are not paused."
    if before.pauses_landing:
        return "✓ resumed: attempts start again, and landings and deploys continue"
    return "✓ resumed: attempts start again"


def summary_rows(summary: RunSummary) -> list[tuple[str, str, str]]:
    """Return the tasks that need a look: symbol and name, the reason, and the command."""
    rows = [
        (f"! {one.task} {one.title}", first_line(one.question or one.why), _inbox_command(one))
        for one in summary.waiting
    ]
    rows += [
        (f"✗ {one.task} {one.title}", _failed_why(one), f"landlane task log {one.task}")
        for one in summary.failed
    ]
    rows += [
        (f"– {one.task} {one.title}", f"{state_text(one.state)}: {first_line(one.why)}", _show_command(one))
        for one in summary.left
        if one.is_stuck or (one.why and one.state != READY and not summary.is_stopped)
    ]
    return rows


def _inbox_command(one: TaskReason) -> str:
    return f"landlane inbox {one.id}" if one.id else "landlane inbox"


def _show_command(one: TaskReason) -> str:
    return f"landlane task show {one.task}"


def _failed_why(one: TaskReason) -> str:
    why = first_line(one.why)
    _, failed, rest = why.partition(" failed: ")
    attempts = count(one.tries, "attempt") if one.tries else "failed"
    return f"{attempts}: {rest}" if failed else why


def summary_headline(summary: RunSummary) -> str:
    """Return the counts, the time and the money of a run."""
    states = [one.state for one in summary.left]
    ready, blocked = states.count(READY), states.count(BLOCKED)
    counts = [
        (len(summary.landed), "landed"),
        (len(summary.done) - len(summary.landed), "done"),
        (len(summary.waiting), "needs you" if len(summary.waiting) == 1 else "need you"),
        (len(summary.failed), "failed"),
        (ready, "ready"),
        (blocked, "blocked"),
        (len(states) - ready - blocked, "unfinished"),
    ]
    words = ", ".join(f"{number} {name}" for number, name in counts if number)
    totals = summary.totals
    cost = f" for {_money(totals)}" if totals.cost_micros else ""
    if cost and len(summary.landed) > 1:
        each = RunTotals(
            cost_micros=totals.cost_micros // len(summary.landed), unknown_costs=totals.unknown_costs
        )
        cost += f" ({_money(each)} per landed task)"
    is_short = summary.took_ms < _MINUTE_MS
    took = exact_duration(summary.took_ms) if is_short else rough_duration(summary.took_ms)
    return f"{words} in {took}{cost}"


def next_step(summary: RunSummary) -> str:
    """Return the command that continues after a run; empty if there is nothing to do."""
    if summary.waiting:
        return "landlane inbox"
    if summary.paused and summary.left:
        return "landlane run resume"
    if summary.is_stopped and summary.left:
        return "landlane run"
    if summary.failing is not None and summary.left:
        return fix_task_command(summary.failing.branch, summary.failing.failure.check)
    return f"landlane task log {summary.failed[0].task}" if summary.failed else ""
