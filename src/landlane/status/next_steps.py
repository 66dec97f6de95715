"""Suggest the next commands to run in a repository, the most urgent one first."""

from __future__ import annotations

from landlane.tasks.model import FAILED
from landlane.text import list_some
from landlane.units import count
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_MOST_STEPS = 3
_MOST_NAMED = 3
_ADD = "landlane task add 'what to do' --path PATH"


@value
class NextStep:
    """A command that makes sense now, and why."""

    command: str
    why: str


@value
class RepositorySetup:
    """How this repository is set up: clients with hooks, checks for landings, workers."""

    is_set_up: bool = False
    has_git: bool = True
    has_checks: bool = False
    checks: str = ""  # a command that could be the check if there is none
    agent: str = ""  # does the tasks that name no agent
    clients: Sequence[str] = ()  # with our hooks
    workers: Sequence[str] = ()  # kinds of workers in the settings


@value
class Overview:
    """Tasks, sessions and landings at a glance, and what blocks progress."""

    tasks: Mapping[str, int]  # by state
    mine: Sequence[str] = ()  # active tasks of the caller
    ready: Sequence[str] = ()
    dead: Sequence[str] = ()
    gates: Sequence[str] = ()
    sessions: int = 0
    claims: int = 0
    attempts: int = 0
    landings: int = 0
    pool_paused: str = ""
    queue_paused: str = ""
    moved_from: str = ""  # where the repository was before it was moved
    unattended: Sequence[str] = ()  # landings whose process was killed
    red: str = ""  # why the target branch itself fails its checks
    red_lines: Sequence[str] = ()  # of the output of the check


def next_steps(overview: Overview, setup: RepositorySetup) -> tuple[NextStep, ...]:
    """Return what to do next: first what blocks others, then the caller's own tasks, then new work."""
    return tuple(_all_steps(overview, setup))[:_MOST_STEPS]


def _all_steps(overview: Overview, setup: RepositorySetup) -> Iterator[NextStep]:
    yield from _unblocking_steps(overview)
    if overview.mine:
        yield NextStep(command="landlane next --resume", why=f"continue {_names(overview.mine)}")
    if not setup.is_set_up:
        yield NextStep(command="landlane init", why="set up this repository (shows a plan first)")
    if overview.ready or overview.tasks.get(FAILED):
        yield from _steps_for_ready_tasks(overview, setup)
    if overview.dead:
        first = overview.dead[0]
        why = f"{_names(overview.dead)} failed for good; see why, then `landlane task retry {first}`"
        yield NextStep(command=f"landlane task show {first}", why=why)
    if overview.attempts or overview.landings:
        yield NextStep(command="landlane status --watch", why="follow the workers and landings")
    if not overview.ready:
        yield NextStep(command=_ADD, why="add a task for your agents")


def _unblocking_steps(overview: Overview) -> Iterator[NextStep]:
    if overview.red:
        yield NextStep(command="landlane queue show", why="see what fails; only a fix can land")
    if overview.queue_paused:
        yield NextStep(command="landlane queue resume --why 'reason'", why="land again")
    if overview.pool_paused:
        yield NextStep(command="landlane run resume", why="start workers again")
    if overview.gates:
        yield NextStep(command="landlane inbox", why=f"answer what {_names(overview.gates)} waits for")


def _steps_for_ready_tasks(overview: Overview, setup: RepositorySetup) -> Iterator[NextStep]:
    if setup.has_git and not setup.has_checks:
        command = f"landlane config set landing.checks '[\"{setup.checks or 'make test'}\"]'"
        yield NextStep(command=command, why="say what must pass before a branch lands")
    agents = (*setup.workers, *setup.clients)
    if not overview.ready:
        return
    if not setup.has_git or not (setup.agent or agents):
        one_of = "one of " if len(overview.ready) > 1 else ""
        yield NextStep(command="landlane next", why=f"take {one_of}{_names(overview.ready)} yourself")
    else:
        option = "" if setup.agent else f" --agent {agents[0]}"
        workers = "a worker" if len(overview.ready) == 1 else "workers"
        yield NextStep(command=f"landlane run{option}", why=f"start {workers} on {_names(overview.ready)}")


def _names(ids: Sequence[str]) -> str:
    return list_some(ids, _MOST_NAMED)


def overview_line(overview: Overview) -> str:
    """Return the numbers in one line: `1 session, no claims, landing queue empty, 1 task ready`."""
    parts = [
        count(overview.sessions, "session"),
        count(overview.claims, "claim"),
        f"{overview.landings} landing" if overview.landings else "landing queue empty",
        *([f"{count(len(overview.ready), 'task')} ready"] if overview.ready else []),
        *([f"{count(len(overview.dead), 'task')} failed for good"] if overview.dead else []),
    ]
    return ", ".join(parts if overview.tasks else [*parts, "no tasks"])
