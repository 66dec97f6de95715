"""The agents that a run may start, and what each of them needs."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.plans.model import AGENTS
from landlane.roles.model import WORKER_ROLE
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.settings.model import AgentSettings, Settings
    from landlane.tasks.model import Task


COMMAND = "command"


@value
class Agent:
    """One kind of worker: a coding client, or a command that speaks the worker protocol."""

    name: str
    client: str = COMMAND
    command: tuple[str, ...] = ()
    model: str = ""
    words: tuple[str, ...] = ()
    role: str = ""
    needs: tuple[tuple[str, int], ...] = ()
    most: int = 0  # so many of this kind at once; 0: as many as there are places
    heartbeat_ms: int = 60_000
    limit_ms: int = 0


def label_of(task: Task, name: str) -> str:
    """What a task's labels say of something that the queue has no field for; empty when nothing."""
    return next((one.removeprefix(f"{name}:") for one in task.labels if one.startswith(f"{name}:")), "")


def agent_for(settings: Settings, task: Task, default: str = "") -> Agent:
    """Who is to do a task: whom it names, else the default of the caller, else that of the settings.

    Raises:
        Malformed: nobody is named, or nobody of that name is known.
    """
    name = label_of(task, "agent") or default or settings.run.agent
    if not name:
        raise Malformed(
            f"{task.id} names no agent, and there is no default",
            code="NO_AGENT",
            hint="give --agent claude, or say [run] agent in landlane.toml, or `agent:` in the plan",
        )
    return find_agent(settings, name)


def find_agent(settings: Settings, name: str) -> Agent:
    """The agent of this name: one that the settings define, or a coding client as it is.

    Raises:
        Malformed: there is none.
    """
    given = settings.agents.get(name)
    if given is not None:
        return _defined(settings, name, given)
    if name in AGENTS and name != COMMAND:
        return Agent(
            name=name,
            client=name,
            heartbeat_ms=settings.run.heartbeat_ms,
            limit_ms=settings.run.limit_ms,
        )
    known = [*settings.agents, *(one for one in AGENTS if one != COMMAND)]
    raise Malformed(
        f"there is no agent {name[:40]!r}",
        code="UNKNOWN_AGENT",
        hint=f"one of {', '.join(known)}; or define it: [agents.{name[:40]}] command = […] in landlane.toml",
    )


def _defined(settings: Settings, name: str, given: AgentSettings) -> Agent:
    client = given.client or COMMAND
    if client != COMMAND and client not in AGENTS:
        raise Malformed(
            f"[agents.{name}]: there is no client {client[:40]!r}",
            code="UNKNOWN_AGENT",
            hint=f"one of {', '.join(AGENTS)}",
        )
    return Agent(
        name=name,
        client=client,
        command=given.command,
        model=given.model,
        words=given.words,
        role=given.role,
        needs=tuple(given.needs.items()),
        most=given.most,
        heartbeat_ms=given.heartbeat_ms or settings.run.heartbeat_ms,
        limit_ms=given.limit_ms or settings.run.limit_ms,
    )


def role_for(settings: Settings, task: Task, agent: Agent) -> str:
    """In which role a task is worked on: its own, else its agent's, else one that only hands changes back."""
    return task.role or agent.role or settings.run.role or WORKER_ROLE


def needs_of(task: Task, agent: Agent) -> dict[str, int]:
    """How much of each resource an attempt takes: what the task says goes before what its agent says."""
    needs = dict(agent.needs)
    for label in task.labels:
        if label.startswith("needs:"):
            name, _, amount = label.removeprefix("needs:").partition("=")
            needs[name] = int(amount) if amount.isascii() and amount.isdigit() else 1
    return needs
