"""Decide which task may start now: its agent is available, its resources are free, no claim conflicts."""

from __future__ import annotations

import os
import shutil
import tempfile

from landlane.claims.model import ClaimMode
from landlane.claims.read import list_claims
from landlane.clients.as_worker.command import find_program
from landlane.clock import duration_text
from landlane.errors import LandlaneError
from landlane.exec.sandbox_rules import search_path
from landlane.handoffs.accept import open_handoff
from landlane.landing.model import HELD, landing_id_of
from landlane.landing.records import get_landing, get_queue
from landlane.patterns.pattern import alternatives_overlap
from landlane.roles.built_in import find_role
from landlane.roles.model import Scope, may_commit
from landlane.state.slot_kinds import known_kinds
from landlane.state.slots import count_in_use
from landlane.tasks.model import ANYBODY
from landlane.tasks.retry import held_back
from landlane.tasks.rows import pattern_pairs
from landlane.tasks.worker_pool import pool_of
from landlane.usage.add import why_over_budget
from landlane.values import value
from landlane.workers.agents import COMMAND, agent_for, find_agent, needs_of, role_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.patterns.pattern import Alternative
    from landlane.repository import Repository
    from landlane.roles.model import Role
    from landlane.tasks.model import Task
    from landlane.workers.agents import Agent


_MEMORY = "/proc/meminfo"
_MB = 1024 * 1024


@value
class Refusal:
    """Why a task does not begin now; `is_for_good`: waiting will not help, somebody must change something.

    `is_for_person`: all that is missing is a person's answer to a gate.
    """

    why: str
    is_for_good: bool
    is_for_person: bool = False


class Admission:
    """One look around, and many tasks judged by it."""

    def __init__(
        self, repo: Repository, default: str, running: Sequence[tuple[Task, str]], run: str = ""
    ) -> None:
        self._repo = repo
        self._run = run  # the orchestrator, whose attempts have a budget together
        self._default = default
        self._pool = pool_of(repo)
        self._used = count_in_use(repo)
        self._kinds: dict[str, int] = {}
        self._held: list[tuple[str, Alternative]] = []
        self._landing: dict[tuple[str, str], Refusal | None] = {}
        self._now = repo.store.wall_of(repo.store.view(lambda snapshot: snapshot.now))
        self._machine = _why_full(repo)
        for task, kind in running:
            self._kinds[kind] = self._kinds.get(kind, 0) + 1
            self._hold(task)

    def begin(self, task: Task) -> None:
        """Count a task that was just started."""
        agent = self.agent_of(task)
        self._kinds[agent.name] = self._kinds.get(agent.name, 0) + 1
        for kind, amount in needs_of(task, agent).items():
            self._used[kind] = self._used.get(kind, 0) + amount
        self._hold(task)

    def agent_of(self, task: Task) -> Agent:
        """Who is to do a task: whom it was handed to goes before whom it names.

        Raises:
            Malformed: nobody is named, or nobody of that name is known.
        """
        handed = self._handed_to(task)
        settings = self._repo.settings
        return (
            find_agent(settings, handed)
            if isinstance(handed, str) and handed
            else agent_for(settings, task, self._default)
        )

    def _handed_to(self, task: Task) -> str | Refusal:
        """The kind of agent that a task was handed to; or why nobody may begin it, if it is none of ours."""
        handoff = self._repo.store.view(lambda snapshot: open_handoff(snapshot, task.id))
        if handoff is None or handoff.to == ANYBODY or handoff.to.startswith("role:"):
            return ""
        until = handoff.until
        if until <= self._now:
            return ""
        try:
            return find_agent(self._repo.settings, handoff.to).name
        except LandlaneError:
            why = f"it is handed to {handoff.to} for {duration_text(until - self._now)} more"
            return Refusal(why=why, is_for_good=False)

    def why_not(self, task: Task) -> Refusal | None:
        """Why a task may not begin now; nothing when it may."""
        settings = self._repo.settings
        try:
            handed = self._handed_to(task)
            if isinstance(handed, Refusal):
                return handed
            agent = self.agent_of(task)
            role = find_role(settings, role_for(settings, task, agent))
            missing = _why_missing(agent) or self._why_not_role(task, role)
        except LandlaneError as error:
            return Refusal(why=f"{error.message}. {error.hint}", is_for_good=True)
        if missing:
            return Refusal(why=missing, is_for_good=True)
        if self._pool.paused:
            return Refusal(why=f"the pool is paused: {self._pool.paused}", is_for_good=False)
        return (
            self._why_not_needs(task, agent)
            or self._why_not_yet(task)
            or self._why_not_kind(agent)
            or self._why_in_the_way(task)
        )

    def _why_not_role(self, task: Task, role: Role) -> str:
        """Why nobody in this role could be given the task, however long it waits: it may not write there."""
        if not may_commit(role):
            return ""  # it hands its change back, and that is judged then
        scope, pattern_of = Scope(role, self._repo.settings), self._repo.git.pattern_of
        patterns = [pattern_of(text, kind) for text, kind in pattern_pairs(task.stored_paths)]
        found = next((why for one in patterns if (why := scope.why_not_claimed(one))), "")
        return f"{found}. give it to another role: `landlane role list`" if found else ""

    def _why_not_needs(self, task: Task, agent: Agent) -> Refusal | None:
        kinds = known_kinds(self._repo.settings.slots)
        for name, amount in needs_of(task, agent).items():
            kind = kinds.get(name)
            if kind is None:
                hint = f"declare it: [slots.{name}] capacity = {amount} in landlane.toml"
                return Refusal(why=f"needs {name}, which is not declared. {hint}", is_for_good=True)
            if amount > kind.size:
                return Refusal(why=f"needs {amount} of {name}; there are {kind.size}", is_for_good=True)
            used = self._used.get(name, 0)
            if used + amount > kind.size:
                why = f"needs {amount} of {name}; {used} of {kind.size} are in use"
                return Refusal(why=why, is_for_good=False)
        return None

    def _why_not_yet(self, task: Task) -> Refusal | None:
        until = self._repo.store.view(lambda snapshot: held_back(snapshot, [task.id])).get(task.id, 0)
        if until > self._now:
            return Refusal(why=f"tried again in {duration_text(until - self._now)}", is_for_good=False)
        over = why_over_budget(self._repo, task, run=self._run)
        if over:
            return Refusal(why=over, is_for_good=True)
        return self._machine

    def _why_not_kind(self, agent: Agent) -> Refusal | None:
        running = self._kinds.get(agent.name, 0)
        if agent.most and running >= agent.most:
            return Refusal(why=f"{running} of {agent.most} {agent.name} run already", is_for_good=False)
        limit = self._pool.admission.get(agent.name, {})
        until = int(limit.get("until") or 0)
        if until > self._now:
            why = f"{agent.name} is rate-limited for {duration_text(until - self._now)}"
            return Refusal(why=why, is_for_good=False)
        most = limit.get("limit")
        if most is not None and running >= int(most):
            return Refusal(why=f"{agent.name} was rate-limited: {most} at once for now", is_for_good=False)
        return None

    def _hold(self, task: Task) -> None:
        pattern_of = self._repo.git.pattern_of
        for text, kind in pattern_pairs(task.stored_paths):
            self._held += [(task.id, branch) for branch in pattern_of(text, kind).alternatives]

    def _why_in_the_way(self, task: Task) -> Refusal | None:
        """What we start ourselves, and what is about to land.

        What else is held is found when it is taken: a claim of the dead stands in nobody's way for long.
        """
        pattern_of = self._repo.git.pattern_of
        for text, kind in pattern_pairs(task.stored_paths):
            for branch in pattern_of(text, kind).alternatives:
                for other, held in self._held:
                    if alternatives_overlap(branch, held):
                        return Refusal(why=f"{other} is changing {text}", is_for_good=False)
            if (text, kind) not in self._landing:
                self._landing[text, kind] = self._about_to_land(text, kind)
            landing = self._landing[text, kind]
            if landing is not None:
                return landing
        return None

    def _about_to_land(self, text: str, kind: str) -> Refusal | None:
        """That an entry of the landing queue holds a path, and whether that will end by itself."""
        repo = self._repo
        held = list_claims(repo, [repo.git.pattern_of(text, kind)])
        entry = next(
            (
                entry
                for one in held
                if one.mode == ClaimMode.EXCLUSIVE and (entry := landing_id_of(one.agent))
            ),
            "",
        )
        if not entry:
            return None
        landing = get_landing(repo, entry)
        if landing.state == HELD:
            why = f"{entry} waits for a person, and holds {text}: `landlane gate list`"
            return Refusal(why=why, is_for_good=True, is_for_person=True)
        if get_queue(repo, landing.target).state == "paused":
            why = f"{entry} holds {text}, and the landing queue is paused: `landlane queue list`"
            return Refusal(why=why, is_for_good=True)
        return Refusal(why=f"{entry} is about to land there: {text}", is_for_good=False)


def _why_missing(agent: Agent) -> str:
    """Why an agent cannot be started here at all; empty when it can."""
    if agent.client == COMMAND:
        return _why_no_command(agent)
    try:
        find_program(agent.client)
    except LandlaneError as error:
        return f"{error.message}. {error.hint}"
    return ""


def _why_no_command(agent: Agent) -> str:
    """Why a command cannot be started; one that lies in the repository may be there in its checkout alone."""
    program = agent.command[0]
    is_in_repository = os.sep in program and not os.path.isabs(program)
    if is_in_repository or shutil.which(program, path=search_path()):
        return ""
    return f"[agents.{agent.name}] command: there is no program {program[:200]}"


def _why_full(repo: Repository) -> Refusal | None:
    """Why this machine should not start anything more; where there will never be so much, for good."""
    settings = repo.settings
    floor = settings.run.memory_floor_bytes
    memory = _memory() if floor else {}
    free = memory.get("MemAvailable", floor)
    if free < floor:
        why = f"{free // _MB} MB of memory are free; [run] memory_floor keeps {floor // _MB}"
        return Refusal(why=why, is_for_good=memory.get("MemTotal", floor) < floor)
    floor = settings.run.disk_floor_bytes
    if floor:
        for folder in (repo.git.root or os.getcwd(), tempfile.gettempdir()):
            disk = shutil.disk_usage(folder)
            if disk.free < floor:
                why = f"{disk.free // _MB} MB are free in {folder}; [run] disk_floor keeps {floor // _MB}"
                return Refusal(why=why, is_for_good=disk.total < floor)
    return None


def _memory() -> dict[str, int]:
    """What the machine tells of its memory, in bytes; nothing where it tells nothing."""
    try:
        with open(_MEMORY, encoding="ascii") as file:
            lines = [line.split() for line in file]
    except OSError:
        return {}
    return {line[0].rstrip(":"): int(line[1]) * 1024 for line in lines if len(line) == 3}
