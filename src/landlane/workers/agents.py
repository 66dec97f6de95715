"""The agents that a run may start: what each of them needs, its command and its assignment."""

from __future__ import annotations

import os

from landlane.clients.as_worker.command import worker_command
from landlane.errors import Malformed
from landlane.exec.start_client import ClientCommand, prepare_command
from landlane.handoffs.hand_over import context_for
from landlane.plans.model import AGENTS
from landlane.protocol.worker.messages import WorkAssignment
from landlane.roles.model import WORKER_ROLE, may_commit
from landlane.tasks.records import pattern_pairs
from landlane.usage.add import left_for
from landlane.workers.model import COMMAND, Agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.roles.model import Role
    from landlane.settings.model import AgentSettings, Settings
    from landlane.tasks.model import Task


def agent_for(settings: Settings, task: Task, default: str = "") -> Agent:
    """Return the agent for a task: the one its label names, the caller's default, or that of the settings.

    Raises:
        Malformed: no agent is named, or it is unknown.
    """
    labels = [label.removeprefix("agent:") for label in task.labels if label.startswith("agent:")]
    name = (labels[0] if labels else "") or default or settings.run.agent
    if not name:
        raise Malformed(
            f"{task.id} names no agent, and there is no default",
            code="NO_AGENT",
            hint="give --agent claude, or say [run] agent in landlane.toml, or `agent:` in the plan",
        )
    return find_agent(settings, name)


def find_agent(settings: Settings, name: str) -> Agent:
    """Return the agent of this name: one that the settings define, or a coding client.

    Raises:
        Malformed: there is none.
    """
    configured = settings.agents.get(name)
    if configured is not None:
        return _from_settings(settings, name, configured)
    if name in AGENTS and name != COMMAND:
        return Agent(
            name=name,
            client=name,
            heartbeat_ms=settings.run.heartbeat_ms,
            limit_ms=settings.run.limit_ms,
        )
    known = [*settings.agents, *(agent for agent in AGENTS if agent != COMMAND)]
    raise Malformed(
        f"there is no agent {name[:40]!r}",
        code="UNKNOWN_AGENT",
        hint=f"one of {', '.join(known)}; or define it: [agents.{name[:40]}] command = […] in landlane.toml",
    )


def _from_settings(settings: Settings, name: str, configured: AgentSettings) -> Agent:
    client = configured.client or COMMAND
    if client != COMMAND and client not in AGENTS:
        raise Malformed(
            f"[agents.{name}]: there is no client {client[:40]!r}",
            code="UNKNOWN_AGENT",
            hint=f"one of {', '.join(AGENTS)}",
        )
    return Agent(
        name=name,
        client=client,
        command=configured.command,
        model=configured.model,
        words=configured.words,
        role=configured.role,
        needs=tuple(configured.needs.items()),
        most=configured.most,
        heartbeat_ms=configured.heartbeat_ms or settings.run.heartbeat_ms,
        limit_ms=configured.limit_ms or settings.run.limit_ms,
    )


def role_for(settings: Settings, task: Task, agent: Agent) -> str:
    """Return the role for a task: its own, its agent's, that of the settings, or the worker role."""
    return task.role or agent.role or settings.run.role or WORKER_ROLE


def needs_of(task: Task, agent: Agent) -> dict[str, int]:
    """Return how much of each resource an attempt takes; labels of the task override its agent's needs."""
    needs = dict(agent.needs)
    for label in task.labels:
        if label.startswith("needs:"):
            name, _, amount = label.removeprefix("needs:").partition("=")
            needs[name] = int(amount) if amount.isascii() and amount.isdigit() else 1
    return needs


def worker_command_for(
    repo: Repository, agent: Agent, role: Role, scratch: str, folder: str
) -> ClientCommand:
    """Return the command that starts a worker: the agent's own, or an adapter around a coding client."""
    if agent.client == COMMAND:
        program = agent.command[0]
        path = os.path.join(repo.home.root, program)
        is_in_repository = os.sep in program and not os.path.isabs(program) and os.path.isfile(path)
        return ClientCommand(words=(path if is_in_repository else program, *agent.command[1:]))
    words = worker_command(agent.client, model=agent.model, extra=agent.words)
    return prepare_command(words, role, repo.settings, scratch, folder, is_throwaway=not may_commit(role))


def make_assignment(
    repo: Repository, task: Task, agent: Agent, role: Role, *, folder: str, scratch: str, base: str
) -> WorkAssignment:
    """Return the assignment for a worker, with the notes of earlier attempts."""
    is_committing = may_commit(role)
    budget = left_for(repo, task)
    notes = context_for(repo, task)
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
        notes=(notes,) if notes else (),
    )
