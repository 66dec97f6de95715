"""Landings as values: entries of the queue, their states, and the state of a queue."""

from __future__ import annotations

from landlane.errors import SettingsError
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

QUEUED = "queued"
TESTING = "testing"
HELD = "held"
LANDED = "landed"
BOUNCED = "bounced"
EJECTED = "ejected"

STATES = (QUEUED, TESTING, LANDED, BOUNCED, EJECTED, HELD)
OPEN = (QUEUED, TESTING, HELD)

MERGE = "merge"
REBASE = "rebase"
SQUASH = "squash"

MOST_OUTPUT = 8000  # of what a failing check said: the end of it, where the reason mostly stands
_HOLDER = "landing-"


@value
class Landing:
    """One entry of the queue. Instants are the calendar's, in milliseconds."""

    id: str
    branch: str
    head: str
    target: str
    agent: str
    session: str
    holder: str  # the session of the entry itself, which holds the claims meanwhile
    state: str
    submitted_at: int
    machine: str
    home: str
    subject: str = ""
    author: dict[str, str] = {}  # noqa: RUF012 - never changed; who wrote the head: name, mail, date
    role: str = ""  # of its author when it was submitted: what it may change is judged by this
    unidentified: list[str] = []  # noqa: RUF012 - never changed; commits that no session is known to have made
    task: str = ""
    attempt: int = 0
    paths: list[str] = []  # noqa: RUF012 - never changed
    stage: str = ""
    base: str = ""
    tree: str = ""
    commit: str = ""
    reason: str = ""
    code: str = ""
    output: str = ""
    pair: str = ""
    advice: str = ""  # what its author should do when it came back
    gate: str = ""  # why a person must decide; empty when nobody must
    approved_by: str = ""
    approved_head: str = ""
    flaky: list[str] = []  # noqa: RUF012
    notes: list[str] = []  # noqa: RUF012
    bounce_task: str = ""
    is_settled: bool = False
    is_integrated: bool = False
    ended_at: int = 0


@value
class Move:
    """A move of the target branch that is about to be made: written down before, settled after."""

    before: str
    after: str
    entries: list[str]
    commits: list[str]


@value
class Queue:
    """What is known of a target branch: where we left it, why we stopped, and the move under way."""

    id: str
    target: str
    state: str = "running"  # or paused
    tip: str = ""
    reason: str = ""
    code: str = ""
    move: dict[str, Any] = {}  # noqa: RUF012
    late: list[dict[str, object]] = []  # noqa: RUF012 - moves of runners that were cut off: a push may still arrive
    tests: int = 0
    landed: int = 0


def holder_name(landing_id: str) -> str:
    """The agent's name under which an entry holds its claims."""
    return f"{_HOLDER}{landing_id}"


def entry_of(agent: str) -> str:
    """The entry that holds its claims under this name; empty for anybody else."""
    entry = agent.removeprefix(_HOLDER)
    return entry if entry != agent and entry[:1] == "L" and entry[1:].isdigit() else ""


def halves(count: int) -> int:
    """How many of a red batch to try first: the larger half, so that two become one and one."""
    return (count + 1) // 2


def no_checks(branch: str = "", command: str = "") -> SettingsError:
    """Nobody has said how the target is tested, and saying nothing is no answer; `command` would do."""
    where = f" in the landlane.toml of {branch}" if branch else ""
    then = f"; and commit it on {branch}" if branch else ""
    return SettingsError(
        f"no checks are declared{where} for what lands",
        code="NO_CHECKS",
        hint=f'below [landing] in landlane.toml say: checks = ["{command or "make test"}"],'
        f" or checks = [] for none{then}",
    )
