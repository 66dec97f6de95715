"""One task in full as JSON: its owner, checkout, cost, the tasks it blocks, and every attempt at it."""

from __future__ import annotations

from landlane.clients.model import CLIENTS
from landlane.clock import rfc3339
from landlane.inbox.unblocks import find_unblocked
from landlane.landing.failing_lines import failing_lines
from landlane.landing.model import BOUNCED, LANDED
from landlane.landing.records import list_landings
from landlane.sessions.join import live_sessions
from landlane.tasks.attempts import attempts_of
from landlane.tasks.model import DONE, FAILED, READY
from landlane.tasks.records import list_tasks, task_history
from landlane.usage.budget import task_budget
from landlane.usage.model import add_up
from landlane.usage.to_json import dollars
from landlane.usage.totals import of_lineage
from landlane.workspaces.model import OPEN
from landlane.workspaces.records import list_workspaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from landlane.landing.model import Landing
    from landlane.repository import Repository
    from landlane.status.json_types import (
        CostJson,
        OwnerJson,
        TaskAttemptJson,
        TaskFactsJson,
        TaskWorkspaceJson,
    )
    from landlane.store.journal_chain import JournalEntry
    from landlane.tasks.model import Attempt, Task
    from landlane.usage.model import UsageEntry

_ENDED = ("task.failed", "task.returned")
_MOST_LINES = 3  # of what a failed attempt left


def task_facts_json(repo: Repository, task: Task) -> TaskFactsJson:
    """Return who works on a task, where, what it cost, what waits for it, and its attempts."""
    history = task_history(repo, task.id)
    attempts = attempts_of(repo, task.id)
    entries = repo.store.view(lambda snapshot: of_lineage(snapshot, task.lineage))
    entries = [entry for entry in entries if entry.task == task.id]
    budget = task_budget(repo, task)
    blocked = find_unblocked(list_tasks(repo), task.id)
    added = next((entry for entry in history if entry.kind == "task.added"), None)
    return {
        "owner_session": _owner_json(repo, task, attempts),
        "workspace": _workspace_json(repo, task),
        "blocks": [{"id": one["task"], "title": one["title"]} for one in blocked],
        "cost": {
            **_cost_json(entries),
            "budget_usd": dollars(budget.limit) if budget is not None else None,
            "counted_usd": dollars(budget.spent) if budget is not None else None,
        },
        "added_by": (added.agent or None) if added is not None else None,
        "attempts": _attempts_json(repo, task, history, attempts, entries),
    }


def _owner_json(repo: Repository, task: Task, attempts: Sequence[Attempt]) -> OwnerJson | None:
    """Return the session that works on a task, with its client and its last sign of life."""
    if not task.owner or task.state in (READY, DONE, FAILED):
        return None
    session = next((one for one in live_sessions(repo) if one.id == task.session), None)
    worker = next((one for one in attempts if one.attempt == task.attempt and not one.ended_at), None)
    seen_at = repo.store.wall_of(session.seen_at) if session is not None else 0
    seen_at = max(seen_at, worker.seen_at if worker is not None else 0)
    client = CLIENTS.get(worker.client) if worker is not None else None
    return {
        "agent": task.owner,
        "client": client.title if client is not None else None,
        "role": (session.role if session is not None else "") or task.role or None,
        "seen_at": rfc3339(seen_at) if seen_at else None,
    }


def _workspace_json(repo: Repository, task: Task) -> TaskWorkspaceJson | None:
    opened = [one for one in list_workspaces(repo, (OPEN,)) if one.task == task.id]
    if not opened:
        return None
    return {"id": opened[-1].id, "path": opened[-1].path, "branch": opened[-1].branch}


def _cost_json(entries: Iterable[UsageEntry]) -> CostJson:
    total = add_up(entries)
    is_unknown = not total.entries or total.unknown == total.entries
    return {"usd": None if is_unknown else dollars(total.cost_micros), "is_known": total.is_known}


def _attempts_json(
    repo: Repository,
    task: Task,
    history: Sequence[JournalEntry],
    workers: Sequence[Attempt],
    entries: Sequence[UsageEntry],
) -> list[TaskAttemptJson]:
    """Return every attempt, by workers and by hand, oldest first; one handed over counts for each owner."""
    landings = {one.id: one for one in list_landings(repo, ()) if one.task == task.id}
    found: list[TaskAttemptJson] = []
    for entry in history:
        facts = entry.facts()
        if entry.kind == "task.taken":
            spent = [one for one in entries if one.attempt == facts["attempt"]]
            found.append(_attempt_json(task, entry, facts["attempt"], workers, spent))
        elif found and found[-1]["ended_at"] is None and entry.kind in _ENDED:
            found[-1] = _end_json(found[-1], entry, facts, landings.get(facts.get("landing", "")))
        elif found and entry.kind == "task.done":
            landing = next((one for one in landings.values() if one.state == LANDED), None)
            result = f"landed as {landing.id}" if landing is not None else "done"
            found[-1] = {
                **found[-1],
                "state": "done",
                "ended_at": rfc3339(entry.at),
                "result": result,
                "lines": [],
            }
    return found


def _attempt_json(
    task: Task, entry: JournalEntry, number: int, workers: Sequence[Attempt], spent: Sequence[UsageEntry]
) -> TaskAttemptJson:
    worker = next((one for one in reversed(workers) if one.attempt == number), None)
    return {
        "attempt": number,
        "agent": entry.agent.partition(f"-{task.id}")[0],
        "state": "running",
        "started_at": rfc3339(entry.at),
        "ended_at": None,
        "doing": worker.doing or None if worker is not None and not worker.ended_at else None,
        "result": None,
        "lines": [],
        "landing": None,
        "cost": _cost_json(spent),
        "is_worker": worker is not None,
    }


def _end_json(
    attempt: TaskAttemptJson, entry: JournalEntry, facts: dict[str, Any], landing: Landing | None
) -> TaskAttemptJson:
    """Return how an attempt ended: the reason in one line, and the lines that show a failure."""
    said = [
        line for line in str(facts.get("feedback") or facts.get("why") or "").splitlines() if line.strip()
    ]
    result = said[0] if said else str(facts.get("code") or "ended")
    if result.startswith("handed to "):
        result = result.partition(": ")[0]  # what was said is in the handoff
    lines = [line for line in failing_lines("\n".join(said[1:])) if line not in result][:_MOST_LINES]
    if landing is not None and landing.state == BOUNCED:
        shown = [line for run in landing.check_runs if not run.is_green for line in run.lines]
        lines = (shown or failing_lines(landing.output))[:_MOST_LINES]
    return {
        **attempt,
        "state": "failed" if entry.kind == "task.failed" else "returned",
        "ended_at": rfc3339(entry.at),
        "doing": None,
        "result": result,
        "lines": lines,
        "landing": landing.id if landing is not None else None,
    }
