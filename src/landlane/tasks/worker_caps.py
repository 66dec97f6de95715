"""The most workers that may run at once in a repository: over all runs, machines and scheduled jobs.

`[run] workers` and the `most` of an agent are judged in the transaction that takes a task for a worker, so
two runs together cannot exceed them. An attempt counts until it has ended, also one whose supervisor was
killed: its worker may still be running until the next run has cleaned up.
"""

from __future__ import annotations

from landlane.tasks.attempts import running_attempts_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from landlane.settings.model import Settings
    from landlane.store.interface import Snapshot
    from landlane.tasks.model import Task

WORKERS_AREA = {"//workers": True}  # locked, because two transactions may take the last place at once


def agents_running(snapshot: Snapshot, without: Collection[str] = ()) -> list[str]:
    """Return the agent of each running attempt, except of those at these tasks."""
    return [attempt.kind for attempt in running_attempts_in(snapshot) if attempt.task not in without]


def why_full(settings: Settings, agent: str, running: Collection[str]) -> str:
    """Return which cap keeps one more worker of an agent from starting; empty when none does."""
    most = settings.run.workers
    if most is not None and len(running) >= most:
        return f"a worker: {len(running)} of {most} are busy ([run] workers)"
    configured = settings.agents.get(agent)
    most = configured.most if configured is not None else 0
    busy = sum(name == agent for name in running)
    if most and busy >= most:
        return f"a worker: {busy} of {most} {agent} are busy ([agents.{agent}] most)"
    return ""


def agent_named(settings: Settings, task: Task, default: str = "") -> str:
    """Return the agent that a task names, or else the default; empty when there is none."""
    labels = [label.removeprefix("agent:") for label in task.labels if label.startswith("agent:")]
    return (labels[0] if labels else "") or default or settings.run.agent
