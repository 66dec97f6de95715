"""A run as it is asked for and looked at: its wish, its places, what goes on there, what it came to."""

from __future__ import annotations

import time

from landlane.errors import Malformed, RepositoryError
from landlane.git.run import run_in
from landlane.git.target import find_base, find_target, tip_of
from landlane.landing.target_settings import settings_at
from landlane.tasks.evidence_model import kind_of
from landlane.tasks.model import BLOCKED, READY
from landlane.values import replace, value
from landlane.workers.agents import agent_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.context import Site
    from landlane.git.target import Target
    from landlane.processes.fork_server import Forked
    from landlane.tasks.model import Task

ALL_TAKEN = "all places are taken"  # the plainest reason to wait
STARTING = "starting"  # a keeper that has not taken its task yet


@value
class RunWish:
    """What is asked for. Without `tasks` everything that is ready; `is_standing` waits for more for ever."""

    workers: int
    tasks: frozenset[str] = frozenset()
    agent: str = ""
    until_empty: bool = False
    is_standing: bool = False
    is_offline: bool = False


@value
class Place:
    """One place of the pool and what goes on there, to look at."""

    task: str
    title: str
    agent: str
    attempt: int
    stage: str
    doing: str
    since: float  # on the monotonic clock
    heard: float
    cost_usd: float | None = None


@value
class Glance:
    """How everything stands, to look at."""

    places: tuple[Place, ...]
    workers: int
    ready: int
    blocked: int
    landing: int
    persons: int
    done: int
    dead: int
    waits: tuple[tuple[str, str], ...]  # task, and why it does not begin
    paused: str = ""
    is_draining: bool = False
    is_stopping: bool = False
    trouble: str = ""  # why nothing is known just now: the store is not to be had
    cost_usd: float = 0.0  # of what is known
    unknown_costs: int = 0  # attempts whose cost nobody knows


@value
class RunSummary:
    """What a run came to."""

    done: tuple[str, ...]
    failed: tuple[tuple[str, str], ...]
    persons: tuple[tuple[str, str], ...]
    left: tuple[tuple[str, str], ...]
    attempts: int
    cost_usd: float = 0.0
    unknown_costs: int = 0
    paused: str = ""
    is_stopped: bool = False


class Kept:
    """A keeper that runs, and what it told."""

    def __init__(self, forked: Forked, task: Task, kind: str) -> None:
        now = time.monotonic()
        self.fork = forked
        self.task = task
        self.kind = kind  # the agent's name
        self.place = Place(
            task=task.id,
            title=task.title,
            agent=kind,
            attempt=task.attempt + 1,
            stage=STARTING,
            doing="",
            since=now,
            heard=now,
        )
        self.outcome: dict[str, Any] = {}

    def hear(self, told: dict[str, Any]) -> None:
        """Take in what the keeper tells."""
        event = told.get("event")
        changes: dict[str, Any] = {"heard": time.monotonic()}
        if event == "taken":
            changes |= {"stage": "preparing", "agent": told["agent"], "attempt": told["attempt"]}
        elif event == "started":
            changes["stage"] = "working"
        elif event == "stage":
            changes["stage"] = told["stage"]
        elif event == "says":
            usage: dict[str, Any] = told.get("usage") or {}
            changes["doing"] = told.get("doing") or self.place.doing
            if usage.get("cost_usd") is not None:
                changes["cost_usd"] = usage["cost_usd"]
        elif event == "ended":
            self.outcome = told
        self.place = replace(self.place, **changes)


def check_ready(site: Site, tasks: list[Task], wish: RunWish) -> None:
    """Refuse to begin when nobody could do anything, or nothing could land: better now than after an hour.

    Raises:
        Malformed: no task that is ready or blocked has an agent that is known.
        SettingsError: there are tasks whose work has to land, and nobody said how it is tested.
        RepositoryError: git does not know who commits, the remote cannot be reached, or lacks commits.
    """
    open_tasks = [task for task in tasks if task.state in (READY, BLOCKED)]
    first: Malformed | None = None
    for task in open_tasks:
        try:
            agent_for(site.settings, task, wish.agent)
        except Malformed as error:
            first = first or error
        else:
            first = None
            break
    if first is not None:
        raise first
    if any(kind_of(task.kind, has_output=bool(task.output), is_in_git=True) == "code" for task in open_tasks):
        target = find_target(site.home, site.settings)
        if not wish.is_standing:  # a standing worker waits until it can be reached
            find_base(site.home, target, is_offline=wish.is_offline)
        _check_pushed(site, target)
        tip = tip_of(site.home, target)
        if tip:
            settings_at(site, target, tip)
        _check_identity(site)


def _check_pushed(site: Site, target: Target) -> None:
    """Refuse to begin from commits that the remote lacks: every change would seem to bring them, too."""
    if not target.remote_ref:
        return
    ahead = run_in(site.home, "rev-list", "--count", f"{target.remote_ref}..{target.ref}")
    count = ahead.text.strip()
    if not ahead.exit_code and count != "0":
        raise RepositoryError(
            f"{target.branch} has {count} commit{'s' if count != '1' else ''} that {target.remote} lacks",
            code="NOT_PUSHED",
            hint=f"git push {target.remote} {target.branch}; or, to land here and push yourself, say "
            '[landing] remote = "none" in landlane.toml',
        )


def _check_identity(site: Site) -> None:
    """Refuse to begin where no commit could be made in the end."""
    if run_in(site.home, "var", "GIT_COMMITTER_IDENT").exit_code:
        raise RepositoryError(
            "git does not know who commits here",
            code="NO_IDENTITY",
            hint="git config user.name 'Your Name', and git config user.email you@example.org",
        )
