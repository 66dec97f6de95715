"""The agents that a run may start: what each of them needs, its command and its assignment."""

from __future__ import annotations

import os
import shlex

from landlane.clients.as_worker.command import plain_worker_command, worker_command
from landlane.errors import Malformed
from landlane.exec.start_client import ClientCommand, prepare_command
from landlane.fanout.model import JOINED, result_line
from landlane.fanout.records import fans_of_task, results_of
from landlane.handoffs.collect_state import failures_in
from landlane.handoffs.context import context_for
from landlane.plans.model import AGENTS
from landlane.protocol.worker.messages import WorkAssignment
from landlane.roles.model import may_commit
from landlane.settings.model import AgentSettings, Settings
from landlane.tasks.lineage import earlier_lessons
from landlane.tasks.records import find_task, task_paths
from landlane.tasks.role_fit import worker_role
from landlane.tasks.worker_caps import agent_named
from landlane.text import nearest_word
from landlane.usage.budget import left_for
from landlane.values import as_dict, replace
from landlane.workers.model import COMMAND, EXIT, Agent, WorkerProtocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.repository import Repository
    from landlane.roles.model import Role
    from landlane.rules.model import Rules
    from landlane.store.interface import Snapshot
    from landlane.tasks.model import Task


_HEARTBEAT_MS = 60_000
_LONGEST_LINE = 4_000
_MOST_LINES = 200
_PLAIN_SILENCE_MS = 600_000  # a program that waits for a model's answer prints nothing for minutes


def agent_for(settings: Settings, task: Task, default: str = "") -> Agent:
    """Return the agent for a task: the one its label names, the caller's default, or that of the settings.

    Raises:
        Malformed: no agent is named, or it is unknown.
    """
    name = agent_named(settings, task, default)
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
            heartbeat_ms=settings.run.heartbeat_ms or _HEARTBEAT_MS,
            limit_ms=settings.run.limit_ms,
        )
    known = [*settings.agents, *(agent for agent in AGENTS if agent != COMMAND)]
    near = nearest_word(name, known)
    word = name[:40]
    if "." in word or "/" in word:
        script = word if "/" in word else f"./{word}"
        hint = f"let a script do the tasks: landlane run -- {shlex.quote(script)}"
        raise Malformed(f"unknown agent {word}", code="UNKNOWN_AGENT", hint=hint)
    define = f"landlane config set agents.{word}.command " + shlex.quote(f'["./{word}.sh"]')
    hint = f"landlane run --agent {near}" if near else f"define it: {define}"
    raise Malformed(f"unknown agent {word}", code="UNKNOWN_AGENT", hint=hint)


def _from_settings(settings: Settings, name: str, configured: AgentSettings) -> Agent:
    client = configured.client or COMMAND
    if client != COMMAND and client not in AGENTS:
        raise Malformed(
            f"[agents.{name}]: there is no client {client[:40]!r}",
            code="UNKNOWN_AGENT",
            hint=f"one of {', '.join(AGENTS)}",
        )
    is_plain = client == COMMAND and configured.protocol == EXIT
    silence_ms = _PLAIN_SILENCE_MS if is_plain else _HEARTBEAT_MS
    fields: dict[str, Any] = as_dict(configured) | {
        "client": client,
        "protocol": WorkerProtocol(configured.protocol),
        "needs": tuple(configured.needs.items()),
        "heartbeat_ms": configured.heartbeat_ms or settings.run.heartbeat_ms or silence_ms,
        "limit_ms": configured.limit_ms or settings.run.limit_ms,
    }
    return Agent(name=name, **fields)


def with_command(settings: Settings, command: Sequence[str]) -> tuple[Settings, str]:
    """Return settings with an agent for a plain command, and its name, which is that of the program."""
    stem = os.path.basename(command[0]).partition(".")[0]
    name = "".join(letter if letter.isalnum() or letter in "_-" else "-" for letter in stem) or COMMAND
    if name in settings.agents or name in AGENTS:
        name = f"{name}-{COMMAND}"
    agent = AgentSettings(command=tuple(command))
    fields: dict[str, Any] = as_dict(settings) | {"agents": {**settings.agents, name: agent}}
    return Settings(**fields), name


def role_for(settings: Settings, task: Task, agent: Agent) -> str:
    """Return the role for a task: its own, its agent's, that of the settings, or the worker role."""
    return worker_role(settings, task.role, agent.name)


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
    """Return the command that starts a worker: the agent's own, or an adapter around it or a client."""
    if agent.client == COMMAND and agent.protocol == EXIT:
        inner = prepare_command(agent.command, role, repo.settings, scratch, folder)
        return replace(inner, words=plain_worker_command(inner.words))
    if agent.client == COMMAND:
        program = agent.command[0]
        path = os.path.join(repo.home.root, program)
        is_in_repository = os.sep in program and not os.path.isabs(program) and os.path.isfile(path)
        return ClientCommand(words=(path if is_in_repository else program, *agent.command[1:]))
    words = worker_command(agent.client, model=agent.model, extra=agent.words)
    return prepare_command(words, role, repo.settings, scratch, folder)


def _part_results(snapshot: Snapshot, task: Task) -> tuple[str, ...]:
    """Return the results of the parts of a task that was split and joined, however that was done."""
    joined = [fan for fan in fans_of_task(snapshot, task.id) if fan.state == JOINED]
    branches = results_of(snapshot, joined[-1])[:_MOST_LINES] if joined else ()
    return tuple(result_line(branch)[:_LONGEST_LINE] for branch in branches)


def _lineage_lines(snapshot: Snapshot, task: Task) -> tuple[str, ...]:
    """Return what became of the tasks that a task waited for, and of the others of its lineage."""
    ids = [*task.after, *([task.lineage] if task.lineage != task.id else [])]
    found = (find_task(snapshot, task_id) for task_id in dict.fromkeys(ids))
    lines = [
        f"{one.id} {one.title}: {one.state}{f': {text}' if (text := one.result or one.why) else ''}"
        for one in found
        if one is not None
    ]
    earlier = earlier_lessons(snapshot, task)
    lines += [f"{lesson.agent} in attempt {lesson.attempt}: {lesson.why}" for lesson in earlier]
    return tuple(" ".join(line.split())[:_LONGEST_LINE] for line in lines)[:_MOST_LINES]


def _feedback_lines(snapshot: Snapshot, task: Task) -> tuple[str, ...]:
    """Return why earlier attempts failed, the oldest first."""
    return tuple(
        f"attempt {one['attempt']} of {one['agent']}: {one['why']}"[:_LONGEST_LINE]
        for one in failures_in(snapshot, task)
    )


def make_assignment(
    repo: Repository,
    task: Task,
    agent: Agent,
    role: Role,
    *,
    folder: str,
    scratch: str,
    base: str,
    rules: Rules | None = None,
) -> WorkAssignment:
    """Return the assignment for a worker, with what earlier attempts and the parts of the task left."""
    results, lineage, feedback = repo.store.view(
        lambda snapshot: (
            _part_results(snapshot, task),
            _lineage_lines(snapshot, task),
            _feedback_lines(snapshot, task),
        )
    )
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
        paths=task_paths(task),
        check=task.check or None,
        folder=folder,
        scratch=scratch,
        branch=task.branch if is_committing else None,
        base=base,
        may_commit=is_committing,
        may_change=not role.is_read_only,
        output=task.output or None,
        next_action=task.next_action or None,
        results=results or None,
        lineage=lineage or None,
        feedback=feedback or None,
        rules=rules.text if rules is not None else None,
        rules_version=rules.version if rules is not None else None,
        heartbeat_seconds=agent.heartbeat_ms / 1000,
        limit_seconds=agent.limit_ms / 1000 if agent.limit_ms else None,
        budget_usd=budget / 1_000_000 if budget is not None else None,
        notes=(notes,) if notes else (),
    )
