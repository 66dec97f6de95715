"""Where somebody stands in a repository, and the next sensible steps: the most pressing one first."""

from __future__ import annotations

from landlane.tasks.model import FAILED
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_MOST_STEPS = 3
_MOST_NAMED = 3
_ADD = "landlane task add 'what is to be done' --path PATH"


@value
class Step:
    """A command that would make sense now, and why."""

    command: str
    why: str


@value
class Equipment:
    """What this repository has been given: clients with hooks, checks for what lands, workers."""

    is_set_up: bool = False
    has_git: bool = True
    has_checks: bool = False
    checks: str = ""  # a command that would do as a check, where there is none
    agent: str = ""  # who does tasks that name nobody
    clients: Sequence[str] = ()  # with hooks of ours
    workers: Sequence[str] = ()  # kinds of workers that the settings name


@value
class Standpoint:
    """What is going on: numbers, and what keeps the work from going on."""

    tasks: Mapping[str, int]  # by state
    mine: Sequence[str] = ()  # tasks that the caller has in hand
    ready: Sequence[str] = ()
    dead: Sequence[str] = ()
    gates: Sequence[str] = ()
    sessions: int = 0
    claims: int = 0
    attempts: int = 0
    landings: int = 0
    pool_paused: str = ""
    queue_paused: str = ""
    red: str = ""  # why the target branch itself does not pass its checks


def next_steps(point: Standpoint, has: Equipment) -> tuple[Step, ...]:
    """What to do next: first what holds all others up, then one's own, then what is there to be done."""
    return tuple(_steps(point, has))[:_MOST_STEPS]


def _steps(point: Standpoint, has: Equipment) -> Iterator[Step]:
    yield from _in_the_way(point)
    if point.mine:
        yield Step(command="landlane next --resume", why=f"go on with {_names(point.mine)}")
    if not has.is_set_up:
        yield Step(command="landlane init", why="make your coding clients ask before they change a file")
    if point.ready or point.tasks.get(FAILED):
        yield from _to_be_done(point, has)
    if point.dead:
        why = f"{_names(point.dead)} failed for good; see why, then `landlane task retry {point.dead[0]}`"
        yield Step(command=f"landlane task show {point.dead[0]}", why=why)
    if point.attempts or point.landings:
        yield Step(command="landlane status", why="see what is under way")
    if not point.ready:
        yield Step(command=_ADD, why="give your agents something to do")


def _in_the_way(point: Standpoint) -> Iterator[Step]:
    if point.red:
        yield Step(command="landlane queue list", why="nothing lands before a branch mends the target")
    if point.queue_paused:
        why = f"the queue rests: {point.queue_paused}"
        yield Step(command="landlane queue resume --why 'what was wrong'", why=why)
    if point.pool_paused:
        yield Step(command="landlane pool resume", why="once it is mended: workers start again")
    if point.gates:
        yield Step(command="landlane gate list", why=f"{_names(point.gates)} cannot go on without you")


def _to_be_done(point: Standpoint, has: Equipment) -> Iterator[Step]:
    if has.has_git and not has.has_checks:
        line = f'checks = ["{has.checks or "make test"}"]'
        yield Step(command=line, why="say this below [landing] in landlane.toml: what must pass to land")
    known = (*has.workers, *has.clients)
    if not has.has_git or not (has.agent or known):
        yield Step(command="landlane next", why=f"take {_names(point.ready)} yourself")
    elif point.ready:
        who = "" if has.agent else f" --agent {known[0]}"
        yield Step(command=f"landlane run{who}", why=f"let workers do {_names(point.ready)}")


def _names(ids: Sequence[str]) -> str:
    more = len(ids) - _MOST_NAMED
    return ", ".join(ids[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def tells_of(point: Standpoint) -> str:
    """The numbers in one line."""
    tasks = ", ".join(f"{count} {state.replace('_', ' ')}" for state, count in point.tasks.items() if count)
    parts = [
        _count(point.sessions, "agent") + " here",
        _count(point.claims, "path") + " held",
        *([_count(point.attempts, "worker") + " running"] if point.attempts else []),
        *([_count(point.landings, "change") + " on the way"] if point.landings else []),
        f"tasks: {tasks}" if tasks else "no tasks",
    ]
    return "; ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
