"""Views of a run: a live region on a terminal, one line per event elsewhere, none with --json."""

from __future__ import annotations

import sys
import textwrap
import time

from landlane.cli.live_region import LiveRegion
from landlane.cli.table import pad, shorten, text_width
from landlane.cli.terminal import in_one_line, stderr_style, stderr_text, stderr_width
from landlane.units import clock_time
from landlane.workers.model import ALL_SLOTS_TAKEN, RowState, RunEventKind
from landlane.workers.to_text import (
    budget_lines,
    ended_line,
    event_text,
    failing_target_lines,
    progress_parts,
    row_cells,
    stopping_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from landlane.cli.terminal import Terminal
    from landlane.workers.model import RunEvent, RunStatus

_MIN_WAIT_SECONDS = 5.0  # before it is printed why a task waits
_FIRST_FRAME_SECONDS = 0.5
_MOST_WAITING = 5
_ROW_STYLES = {RowState.SILENT: "yellow", RowState.LIMITED: "dim"}
_WIDEST = 100
_NARROWEST = 12
_CLOCK_WIDTH, _MONEY_WIDTH = 4, 5
_GAP = "   "


class RunView:
    """Prints a line for each event that matters, with the local time."""

    def __init__(self, terminal: Terminal, wall_ms: Callable[[], int]) -> None:
        self.terminal = terminal
        self.wall_ms = wall_ms
        self._printed: dict[str, str] = {}
        self._waits: dict[str, tuple[str, float, float]] = {}  # task → why it waits, since when, seen when

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def note(self, *lines: str) -> None:
        """Print lines about the run; the first has the time."""
        first, *more = lines
        at = clock_time(self.wall_ms(), has_seconds=True)
        self.terminal.note("\n".join([f"{at} {in_one_line(first)}", *map(in_one_line, more)]))

    def on_event(self, event: RunEvent) -> None:
        """Show one event."""
        text = event_text(event, self.wall_ms())
        self.note(f"! {text}" if event.kind == RunEventKind.NOTE else text)

    def on_status(self, status: RunStatus) -> None:
        """Print what is new in the status, and why tasks have waited for a while."""
        self.print_changes(status)
        now = time.monotonic()
        # A task that is being tried again counts as still waiting.
        self._waits = {task: one for task, one in self._waits.items() if now - one[2] < _MIN_WAIT_SECONDS}
        for task, why in status.refusals:
            kind = _without_numbers(why)
            before, since, _ = self._waits.get(task, ("", now, now))
            self._waits[task] = (kind, since if kind == before else now, now)
            is_worth_it = now - since >= _MIN_WAIT_SECONDS and why != ALL_SLOTS_TAKEN
            if kind == before and is_worth_it:
                self._once(f"waits {task}", [f"{task} waits: {why[:300]}"], kind)

    def print_changes(self, status: RunStatus) -> None:
        """Print once that the run is paused, stops, or cannot spend more."""
        self._once("paused", [f"! paused: {status.paused}"] if status.paused else [])
        failing = status.failing
        lines = failing_target_lines(failing) if failing is not None else []
        self._once("target", [f"! {lines[0]}", *lines[1:]] if lines else [])
        self._once("trouble", [f"! waiting for the store: {status.trouble}"] if status.trouble else [])
        budget, running = status.budget, status.running
        lines = budget_lines(budget, running, self.wall_ms()) if budget is not None else []
        self._once("budget", lines, budget.kind if budget is not None else "")
        is_first = status.is_draining and not status.is_stopping and not status.paused
        self._once("stopping", [stopping_text(running)] if is_first else [], "x" if is_first else "")

    def _once(self, about: str, lines: Sequence[str], kind: str = "") -> None:
        """Print lines unless they were printed last, apart from their numbers."""
        kind = kind or "\n".join(lines)
        if lines and self._printed.get(about) != kind:
            self.note(*lines)
        if lines or about != "stopping":
            self._printed[about] = kind


class LiveView(RunView):
    """Rows at the bottom of the terminal; what ended scrolls away above them."""

    def __init__(self, terminal: Terminal, wall_ms: Callable[[], int]) -> None:
        super().__init__(terminal, wall_ms)
        self._region = LiveRegion(sys.stderr, stderr_text)
        self._draw_at = time.monotonic() + _FIRST_FRAME_SECONDS
        self._title_width = 0  # the widest so far, so that rows do not move when a long one ends

    def __exit__(self, *_: object) -> None:
        self._region.remove()

    def note(self, *lines: str) -> None:
        self._region.print_above("\n".join(wrap_line(in_one_line(line), stderr_width()) for line in lines))

    def on_event(self, event: RunEvent) -> None:
        line = ended_line(event, self.wall_ms())
        if line:
            self.note(line)

    def on_status(self, status: RunStatus) -> None:
        self.print_changes(status)
        if time.monotonic() >= self._draw_at:
            titles = (text_width(row.title) for row in status.rows)
            self._title_width = max(self._title_width, *titles, 0)
            lines = region_lines(status, stderr_width() - 1, stderr_style, title_width=self._title_width)
            self._region.draw(lines)


def wrap_line(line: str, width: int) -> str:
    """Return a line as lines of at most a width, broken between words and indented by two."""
    if text_width(line) < width:
        return line
    parts = textwrap.wrap(line, width - 1, subsequent_indent="  ", break_on_hyphens=False)
    return "\n".join(parts)


def region_lines(
    status: RunStatus, width: int, style: Callable[[str, str], str], *, title_width: int = 0
) -> list[str]:
    """Return the live region: a row per task, why others wait, and the progress of the run."""
    has_agent = len({row.agent for row in status.rows if row.agent}) > 1
    cells = [[in_one_line(cell) for cell in row_cells(row, has_agent=has_agent)] for row in status.rows]
    lines = [
        style(line, _ROW_STYLES.get(row.state, ""))
        for row, line in zip(status.rows, _layout(cells, min(width, _WIDEST), title_width), strict=True)
    ]
    waits = [(task, why) for task, why in status.refusals if why != ALL_SLOTS_TAKEN]
    for task, why in waits[:_MOST_WAITING]:
        lines.append(style(shorten(f"  {task}  waits: {in_one_line(why)}", width), "dim"))
    if len(waits) > _MOST_WAITING:
        lines.append(style(f"  and {len(waits) - _MOST_WAITING} more wait", "dim"))
    filled, empty, text = progress_parts(status, width)
    bar = style("━" * filled, "green") + style("─" * empty, "dim")
    gap = "  " if bar else ""
    return [*lines, f"  {bar}{gap}{shorten(text, width - filled - empty - len(gap) - 2)}"]


def _layout(rows: Sequence[Sequence[str]], width: int, title_width: int) -> list[str]:
    """Return rows as lines of one width: what a task does now takes the rest, so that no column moves."""
    if not rows:
        return []
    widths = [max(text_width(row[column]) for row in rows) for column in range(len(rows[0]))]
    doing = len(widths) - 3
    widths[1] = min(max(widths[1], title_width), max(width // 3, _NARROWEST))
    widths[-2:] = [max(widths[-2], _CLOCK_WIDTH), max(widths[-1], _MONEY_WIDTH)]
    gaps = 2 + 2 + len(_GAP) * (len(widths) - 2)
    widths[doing] = max(width - gaps - sum(widths) + widths[doing], _NARROWEST)
    lines: list[str] = []
    for row in rows:
        padded = [pad(shorten(cell, size), size) for cell, size in zip(row[:-2], widths, strict=False)]
        padded += [pad(row[-2], widths[-2], is_right=True), pad(row[-1], widths[-1], is_right=True)]
        lines.append(f"  {padded[0]}  {_GAP.join(padded[1:])}".rstrip())
    return [shorten(line, width) for line in lines]


def _without_numbers(why: str) -> str:
    return "".join(letter for letter in why if not letter.isdigit())
