"""Follow the tasks of a run: when each started, what it cost, what became of it, and what it does now."""

from __future__ import annotations

import time

from landlane.inbox.items import list_items
from landlane.landing.model import BOUNCED, HELD, LANDED, QUEUED, TESTING
from landlane.landing.records import list_landings
from landlane.landing.target_status import view_queue
from landlane.landing.to_text import progress_text
from landlane.tasks.model import DONE, FINISHED, LANDING, READY, WAITING, AttemptOutcome, WaitKind
from landlane.tasks.retry_rules import RATE_LIMITED
from landlane.tasks.text import limit_text
from landlane.tasks.waits import find_waits
from landlane.units import exact_duration
from landlane.values import replace
from landlane.workers.model import (
    RowState,
    RunEvent,
    RunEventKind,
    RunRow,
    RunTotals,
    Stage,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from landlane.landing.model import Landing
    from landlane.repository import Repository
    from landlane.tasks.model import Task
    from landlane.workers.model import WorkerSlot
    from landlane.workers.supervisor_pool import SupervisorProcess

_STAGES = {
    Stage.STARTING: "starting",
    Stage.PREPARING: "starting",
    Stage.COLLECTING: "collecting its change",
    Stage.VERIFYING: "verifying its change",
    Stage.SUBMITTING: "queuing it to land",
}
_FAILED = (AttemptOutcome.RETRY, AttemptOutcome.ESCALATE, AttemptOutcome.ABORT, AttemptOutcome.KILLED)
_MOST_TEXT = 300


class TaskFollower:
    """Turns reports and changed states into events, and keeps the figures of each task."""

    def __init__(self, repo: Repository, on_event: Callable[[RunEvent], None]) -> None:
        self._repo = repo
        self._on_event = on_event
        self._started: dict[str, float] = {}  # task → its first attempt in this run, monotonic
        self._costs: dict[str, RunTotals] = {}
        self._states: dict[str, str] | None = None  # at the last look; None before the first
        self._ended_landings: set[str] = set()
        self._held_landings: set[str] = set()
        self._landings: list[Landing] = []  # open ones
        self.totals = RunTotals()

    def on_report(self, process: SupervisorProcess, report: dict[str, Any]) -> None:
        """Handle one report of a supervisor."""
        slot = process.slot
        if report.get("event") == "taken":
            self._started.setdefault(slot.task, slot.started_at)
            self._send(RunEventKind.STARTED, slot)
        elif report.get("event") == "note":
            self._on_event(RunEvent(kind=RunEventKind.NOTE, task=slot.task, text=str(report["text"])))
        elif report.get("event") == "ended":
            self._on_end(process, report)

    def _on_end(self, process: SupervisorProcess, report: dict[str, Any]) -> None:
        slot, outcome = process.slot, process.outcome
        if outcome in _FAILED:
            text = first_line(str(report.get("cause") or report.get("why") or ""))
            words = {name: str(report.get(name) or "") for name in ("code", "rescue")}
            self._send(RunEventKind.FAILED, slot, text=text, **words)
        elif outcome == AttemptOutcome.RETURNED and report.get("code") == RATE_LIMITED:
            times = {name: int(report.get(name) or 0) for name in ("resets_at", "retry_at")}
            self._send(RunEventKind.LIMITED, slot, agent=process.provider, **times)

    def note_cost(self, process: SupervisorProcess) -> None:
        """Add the cost of an attempt that has ended."""
        task_id, cost = process.task.id, process.cost_micros
        self.totals = self.totals.plus(cost)
        self._costs[task_id] = self._costs.get(task_id, RunTotals()).plus(cost)

    def _send(self, kind: RunEventKind, slot: WorkerSlot, **fields: Any) -> None:
        event = RunEvent(
            kind=kind,
            task=slot.task,
            title=slot.title,
            agent=slot.agent,
            tries=slot.tries,
            max_tries=slot.max_tries,
        )
        self._on_event(replace(event, **fields))

    def look(self, tasks: Sequence[Task]) -> None:
        """Compare the tasks with the last look, and send an event for each that ended or needs a person."""
        before, self._states = self._states, {task.id: str(task.state) for task in tasks}
        if before is None:
            self._ended_landings = {landing.id for landing in list_landings(self._repo, (BOUNCED,))}
            self._held_landings = {landing.id for landing in list_landings(self._repo, (HELD,))}
            return
        own = {task.id: task for task in tasks}
        changed = [task for task in tasks if before.get(task.id) != task.state]
        is_landing = any(task.state == LANDING for task in tasks)
        self._landings = list_landings(self._repo) if is_landing else []
        if changed:
            self._send_bounced(own)
            self._send_done([task for task in changed if task.state == DONE])
        held = {one.id: one.task for one in self._landings if one.state == HELD}
        new = {task_id for landing_id, task_id in held.items() if landing_id not in self._held_landings}
        self._held_landings = set(held)
        asking = {task.id for task in changed if task.state == WAITING} | (new & own.keys())
        if asking:
            self._send_questions([own[task_id] for task_id in sorted(asking)])

    def _send_bounced(self, own: dict[str, Task]) -> None:
        for landing in list_landings(self._repo, (BOUNCED,)):
            if landing.id in self._ended_landings:
                continue
            self._ended_landings.add(landing.id)
            if landing.task in own:
                task = own[landing.task]
                text = first_line(f"{landing.id} bounced: {landing.reason}")
                self._on_event(self._event(RunEventKind.FAILED, task, text=text, tries=task.failures))

    def _send_done(self, tasks: Sequence[Task]) -> None:
        landed = {one.task: one for one in list_landings(self._repo, (LANDED,))} if tasks else {}
        for task in tasks:
            event = self._event(RunEventKind.DONE, task, took_ms=self.elapsed_ms(task.id))
            if task.id in landed:
                event = replace(event, kind=RunEventKind.LANDED, commit=landed[task.id].commit)
            cost = self._costs.get(task.id)
            if cost is not None and cost.attempts > cost.unknown_costs:
                event = replace(event, cost_micros=cost.cost_micros)
            self._on_event(event)

    def _send_questions(self, tasks: Sequence[Task]) -> None:
        questions = find_questions(self._repo)
        for task in tasks:
            item, question = questions.get(task.id, ("", ""))
            text = first_line(question or task.why)
            self._on_event(self._event(RunEventKind.NEEDS_PERSON, task, text=text, id=item))

    def _event(self, kind: RunEventKind, task: Task, **fields: Any) -> RunEvent:
        return RunEvent(kind=kind, task=task.id, title=task.title, max_tries=task.max_attempts, **fields)

    @property
    def held_tasks(self) -> set[str]:
        """The tasks whose landing waits for a person."""
        return {landing.task for landing in self._landings if landing.state == HELD}

    def elapsed_ms(self, task_id: str, since: float = 0.0) -> int:
        """Return how long ago a task was first started by this run."""
        now = time.monotonic()
        return round((now - self._started.get(task_id, since or now)) * 1000)

    def rows(self, processes: Sequence[SupervisorProcess], tasks: Sequence[Task]) -> tuple[RunRow, ...]:
        """Return the tasks that are worked on, land, or wait for their provider, by their id."""
        rows = [self._slot_row(process.slot) for process in processes]
        running = {row.task for row in rows}
        others = [task for task in tasks if task.id not in running and task.state not in FINISHED]
        rows += self._landing_rows(others)
        rows += self._limited_rows([task for task in others if task.state == READY])
        return tuple(sorted(rows, key=lambda row: (len(row.task), row.task)))

    def _slot_row(self, slot: WorkerSlot) -> RunRow:
        silent = time.monotonic() - slot.heard_at
        is_silent = slot.stage == Stage.WORKING and 0 < slot.silence_seconds < 2 * silent
        doing = _STAGES.get(slot.stage) or slot.doing or "working"
        if is_silent:
            limit = exact_duration(round(slot.silence_seconds * 1000))
            doing = f"silent for {exact_duration(round(silent * 1000))} (limit {limit})"
        return RunRow(
            task=slot.task,
            title=slot.title,
            tries=slot.tries,
            max_tries=slot.max_tries,
            doing=doing,
            state=RowState.SILENT if is_silent else RowState.RUNNING,
            elapsed_ms=self.elapsed_ms(slot.task, slot.started_at),
            agent=slot.agent,
            cost_micros=self._cost_of(slot.task, slot.cost_micros),
        )

    def _landing_rows(self, tasks: Sequence[Task]) -> list[RunRow]:
        entries = {one.task: one for one in self._landings if one.state in (QUEUED, TESTING)}
        found = [(task, entries[task.id]) for task in tasks if task.id in entries]
        view = view_queue(self._repo) if found else None
        return [
            self._row(task, progress_text(entry, view), RowState.LANDING) for task, entry in found if view
        ]

    def _limited_rows(self, tasks: Sequence[Task]) -> list[RunRow]:
        """Return the tasks that this run has started and that wait for their provider."""
        own = [task for task in tasks if task.id in self._started]
        waits = find_waits(self._repo, own) if own else {}
        now = self._repo.wall_ms()
        return [
            self._row(task, limit_text(wait, now), RowState.LIMITED)
            for task in own
            for wait in waits.get(task.id, ())
            if wait.kind == WaitKind.LIMIT
        ]

    def _row(self, task: Task, doing: str, state: RowState) -> RunRow:
        return RunRow(
            task=task.id,
            title=task.title,
            tries=max(task.tries, 1),
            max_tries=task.max_attempts,
            doing=doing,
            state=state,
            elapsed_ms=self.elapsed_ms(task.id),
            cost_micros=self._cost_of(task.id, None),
        )

    def _cost_of(self, task_id: str, running: int | None) -> int | None:
        """Return what all attempts of this run at a task cost so far; None while nothing is known."""
        ended = self._costs.get(task_id, RunTotals())
        if running is None and ended.attempts == ended.unknown_costs:
            return None
        return ended.cost_micros + (running or 0)


def find_questions(repo: Repository) -> dict[str, tuple[str, str]]:
    """Return the inbox items about tasks, as id and question without the name of the task."""
    questions: dict[str, tuple[str, str]] = {}
    for item in list_items(repo):
        named = f"{item['task']} {item['title']}"
        what = str(item["what"]).removesuffix(f" ({named})").removeprefix(named).lstrip(": ")
        questions.setdefault(str(item["task"] or ""), (str(item["id"]), what))
    return questions


def first_line(text: str) -> str:
    """Return the first line of a reason, cut to a length that can be shown."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= _MOST_TEXT else line[: _MOST_TEXT - 1] + "…"
