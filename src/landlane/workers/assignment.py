"""The command and the assignment that a worker is started with."""

from __future__ import annotations

import os

from landlane.clients.as_worker.command import worker_command
from landlane.exec.start_client import Start, prepare_start
from landlane.handoffs.hand_over import context_for
from landlane.protocol.worker.messages import WorkAssignment
from landlane.roles.model import may_commit
from landlane.tasks.records import pattern_pairs
from landlane.usage.add import left_for
from landlane.workers.agents import COMMAND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.roles.model import Role
    from landlane.tasks.model import Task
    from landlane.workers.agents import Agent


def start_of(repo: Repository, agent: Agent, role: Role, scratch: str, folder: str) -> Start:
    """How a worker is started: its own command, or a coding client behind a translator."""
    if agent.client == COMMAND:
        first = agent.command[0]
        ours = os.path.join(repo.home.root, first)
        is_ours = os.sep in first and not os.path.isabs(first) and os.path.isfile(ours)
        return Start(command=(ours if is_ours else first, *agent.command[1:]))
    words = worker_command(agent.client, model=agent.model, extra=agent.words)
    return prepare_start(words, role, repo.settings, scratch, folder, is_throwaway=not may_commit(role))


def assignment_for(
    repo: Repository, task: Task, agent: Agent, role: Role, *, folder: str, scratch: str, base: str
) -> WorkAssignment:
    """What a worker is told of its task, with all that earlier attempts left."""
    is_committing = may_commit(role)
    budget = left_for(repo, task)
    left = context_for(repo, task)
    return WorkAssignment(
        assignment=f"{task.id}-{task.attempt}",
        task=task.id,
        attempt=task.attempt,
        title=task.title,
        body=task.body or None,
        role=role.name,
        paths=tuple(text for text, _ in pattern_pairs(task.stored_paths)),
        check=task.check or None,
        folder=folder,
        scratch=scratch,
        branch=task.branch if is_committing else None,
        base=base,
        may_commit=is_committing,
        heartbeat_seconds=agent.heartbeat_ms / 1000,
        limit_seconds=agent.limit_ms / 1000 if agent.limit_ms else None,
        budget_usd=budget / 1_000_000 if budget is not None else None,
        notes=(left,) if left else (),
    )
