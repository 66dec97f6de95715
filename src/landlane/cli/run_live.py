"""A live view of a run on a terminal, drawn by rich."""

from __future__ import annotations

import time

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from landlane.cli.run_progress import RunView, line_of
from landlane.cli.terminal import in_one_line
from landlane.workers.to_json import cost_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

    from rich.console import RenderableType

    from landlane.cli.terminal import Terminal
    from landlane.workers.model import RunStatus


_REDRAW_SECONDS = 0.25


_MOST_WAITING = 8


class LiveView(RunView):
    """A table that is redrawn a few times a second."""

    is_live = True

    def __init__(self, terminal: Terminal) -> None:
        super().__init__(terminal)
        self._console = Console(stderr=True, markup=False, emoji=False, highlight=False)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._began = time.monotonic()
        self._draw_at = 0.0
        self._is_closed = False

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._draw(self._live.stop)

    def _draw(self, step: Callable[[], object]) -> None:
        """Draw unless the terminal was closed; the run continues without it."""
        try:
            if not self._is_closed:
                step()
        except OSError:
            self._is_closed = True

    def on_event(self, task: str, event: dict[str, Any]) -> None:
        if event.get("event") == "ended":
            line = line_of(task, event)
            if line:
                self._draw(lambda: self._console.print(line))

    def on_status(self, status: RunStatus) -> None:
        now = time.monotonic()
        if now >= self._draw_at:
            self._draw_at = now + _REDRAW_SECONDS
            picture = self._picture(status, now)
            self._draw(lambda: self._live.update(picture, refresh=True))

    def _picture(self, status: RunStatus, now: float) -> RenderableType:
        table = Table(box=None, header_style="bold", pad_edge=False)
        for name in ("task", "agent", "try", "stage", "heard", "for", "cost", "doing"):
            table.add_column(name, no_wrap=True)
        for slot in status.slots:
            silent = now - slot.heard_at
            cost = "" if slot.cost_usd is None else f"${slot.cost_usd:.2f}"
            heard = Text(f"{silent:.0f}s ago", style="red" if silent > 30 else "green")
            doing = in_one_line(slot.doing or slot.title)[:60]
            table.add_row(
                slot.task,
                slot.agent,
                str(slot.attempt),
                slot.stage,
                heard,
                f"{now - slot.started_at:.0f}s",
                cost,
                doing,
            )
        done = status.done + status.failed
        total = done + status.ready + status.blocked + status.landing + status.waiting + len(status.slots)
        counts = [
            (status.ready, "ready"),
            (status.blocked, "blocked"),
            (status.landing, "on the way"),
            (status.waiting, "with a person"),
            (status.done, "done"),
            (status.failed, "failed"),
        ]
        parts = [f"{len(status.slots)}/{status.workers} at work"]
        parts += [f"{count} {name}" for count, name in counts if count]
        parts += [_bar(done, total), f"{now - self._began:.0f}s"]
        if status.cost_usd or not status.unknown_costs:
            parts.append(cost_text(status.cost_usd, status.unknown_costs))
        head = Text(" · ".join(parts), style="bold")
        rows: list[RenderableType] = [head]
        if status.paused:
            rows.append(Text(f"paused: {status.paused}", style="red"))
        if status.trouble:
            rows.append(Text(f"waiting for the store: {status.trouble}", style="red"))
        if status.is_stopping:
            rows.append(Text("stopping: what runs is ended, its tasks go back", style="yellow"))
        elif status.is_draining:
            rows.append(Text("draining: nothing more begins; Ctrl-C again stops what runs", style="yellow"))
        if status.slots:
            rows.append(table)
        for task, why in status.refusals[:_MOST_WAITING]:
            rows.append(Text(f"{task} waits: {in_one_line(why)[:100]}", style="dim"))
        more = len(status.refusals) - _MOST_WAITING
        if more > 0:
            rows.append(Text(f"and {more} more wait", style="dim"))
        return Group(*rows)


def _bar(done: int, total: int, width: int = 16) -> str:
    filled = round(width * done / total) if total else 0
    return "█" * filled + "░" * (width - filled)
