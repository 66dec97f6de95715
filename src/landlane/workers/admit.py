"""Decide whether a run can start, and which task may start now: agent, resources, claims."""

from __future__ import annotations

import os
import shutil
import tempfile

from landlane.claims.model import ClaimMode
from landlane.claims.take import list_claims
from landlane.clients.as_worker.command import find_program
from landlane.errors import LandlaneError, Malformed, RepositoryError
from landlane.exec.sandboxed_run import search_path
from landlane.git.run import run_in
from landlane.git.target import find_base, find_target, target_tip
from landlane.git.target_settings import not_committed
from landlane.handoffs.transfer import open_handoff
from landlane.landing.model import HELD, is_landing_id
from landlane.landing.records import get_landing, get_queue
from landlane.landing.target_rules import settings_at
from landlane.patterns.pattern import alternatives_overlap
from landlane.reviews.model import PERSON, UNDECIDED
from landlane.reviews.records import reviews_in
from landlane.roles.model import find_role
from landlane.settings.model import FILE_NAME
from landlane.state.slot_kinds import known_kinds
from landlane.state.slots import count_in_use
from landlane.tasks.lineage import held_in
from landlane.tasks.model import (
    ANYBODY,
    BLOCKED,
    READY,
    REVIEW_KIND,
    Wait,
    WaitKind,
    assignee_of,
    effective_kind,
    is_for_person,
)
from landlane.tasks.records import declared_patterns, task_patterns
from landlane.tasks.role_fit import why_unfit
from landlane.tasks.text import limit_text
from landlane.tasks.waits import find_waits
from landlane.tasks.worker_caps import agents_running, why_full
from landlane.tasks.worker_pool import get_pool
from landlane.units import exact_duration, time_left
from landlane.usage.budget import over_budget, reached_text
from landlane.workers.agents import agent_for, find_agent, needs_of, role_for
from landlane.workers.model import COMMAND, StartRefusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.git.target import TargetBranch
    from landlane.patterns.pattern import Alternative
    from landlane.repository import Repository
    from landlane.roles.model import Role
    from landlane.settings.model import Settings
    from landlane.tasks.model import Task
    from landlane.workers.model import Agent, FailingTarget, RunRequest


_MEMORY = "/proc/meminfo"
_MB = 1024 * 1024


def check_can_run(repo: Repository, tasks: list[Task], request: RunRequest) -> None:
    """Refuse a run in which no task has an agent, or no change could land.

    Raises:
        Malformed: no task that is ready or blocked has a known agent.
        SettingsError: there are tasks whose changes have to land, and no checks are set.
        RepositoryError: git has no committer identity, or the remote is unreachable or lacks commits, or the
            settings are not on the target branch yet.
    """
    open_tasks = [task for task in tasks if task.state in (READY, BLOCKED)]
    if repo.held.is_own:
        raise RepositoryError(
            not_committed(repo.held.branch),
            code="SETTINGS_NOT_COMMITTED",
            hint=f"git add {FILE_NAME} && git commit -m 'Set up Landlane' {FILE_NAME}",
        )
    errors: list[Malformed] = []
    for task in open_tasks:
        try:
            agent_for(repo.settings, task, request.agent)
            break
        except Malformed as error:
            errors.append(error)
    else:
        if errors:
            raise errors[0]
    if any(
        effective_kind(task.kind, has_output=bool(task.output), is_in_git=True) == "code"
        for task in open_tasks
    ):
        target = find_target(repo.home, repo.settings)
        if not request.is_continuous:  # a continuous run waits until the remote can be reached
            find_base(repo.home, target, is_offline=request.is_offline)
        _check_pushed(repo, target)
        tip = target_tip(repo.home, target)
        if tip:
            settings_at(repo, target, tip)
        _check_identity(repo)


def _check_pushed(repo: Repository, target: TargetBranch) -> None:
    """Refuse to start from commits that the remote lacks: every change would contain them, too."""
    if not target.remote_ref:
        return
    ahead = run_in(repo.home, "rev-list", "--count", f"{target.remote_ref}..{target.ref}")
    count = ahead.stdout.strip()
    if not ahead.exit_code and count != "0":
        raise RepositoryError(
            f"{target.branch} has {count} commit{'s' if count != '1' else ''} that {target.remote} lacks",
            code="NOT_PUSHED",
            hint=f"git push {target.remote} {target.branch}; or, to land here and push yourself, say "
            '[landing] remote = "none" in landlane.toml',
        )


def _check_identity(repo: Repository) -> None:
    """Refuse to start where git cannot commit."""
    if run_in(repo.home, "var", "GIT_COMMITTER_IDENT").exit_code:
        raise RepositoryError(
            "git does not know who commits here",
            code="NO_IDENTITY",
            hint="git config user.name 'Your Name', and git config user.email you@example.org",
        )


def _why_unbound(settings: Settings, task: Task) -> str:
    """Return why a task that names no paths may not start; empty if it may."""
    if settings.run.paths != "required" or declared_patterns(task.stored_paths) or task.output:
        return ""
    return "it names no paths, and [run] paths requires them: add it again with --path"


class Admission:
    """Decides about many tasks from one view of the pool, the slots and the machine."""

    def __init__(
        self,
        repo: Repository,
        default: str,
        running: Sequence[tuple[Task, str]],
        run: str = "",
        failing: FailingTarget | None = None,
    ) -> None:
        self._repo = repo
        self._run = run  # the orchestrator, whose attempts share a budget
        self._failing = failing
        self._default = default
        self._pool = get_pool(repo)
        self._used = count_in_use(repo)
        own = {task.id for task, _ in running}
        others = repo.store.view(lambda snapshot: agents_running(snapshot, own))
        self._running = others + [agent for _, agent in running]  # the agent of each attempt, in all runs
        self._paths: list[tuple[str, Alternative]] = []  # task, and a path it changes
        self._landing: dict[tuple[str, str], StartRefusal | None] = {}
        self._now = repo.store.wall_of(repo.store.view(lambda snapshot: snapshot.now))
        self._machine = _why_machine_full(repo)
        for task, _ in running:
            self._add_paths(task)

    def begin(self, task: Task) -> None:
        """Count a task that was just started."""
        agent = self.agent_of(task)
        self._running.append(agent.name)
        for kind, amount in needs_of(task, agent).items():
            self._used[kind] = self._used.get(kind, 0) + amount
        self._add_paths(task)

    def agent_of(self, task: Task) -> Agent:
        """Return the agent for a task: the one it was handed to, or the one it names.

        Raises:
            Malformed: no agent is named, or it is unknown.
        """
        handed = self._handed_to(task) or self._assigned_to(task)
        settings = self._repo.settings
        return (
            find_agent(settings, handed)
            if isinstance(handed, str) and handed
            else agent_for(settings, task, self._default)
        )

    def _assigned_to(self, task: Task) -> str | StartRefusal:
        """Return the agent that a task is for, or a refusal if that is a person or another session."""
        assignee = assignee_of(task.labels)
        if not assignee:
            return ""
        why = f"it is for {assignee}: landlane next --as {assignee}"
        if is_for_person(assignee):
            why = f"it is for a person ({assignee}): landlane task show {task.id}"
            return StartRefusal(why=why, is_permanent=True, is_for_person=True)
        try:
            return find_agent(self._repo.settings, assignee).name
        except LandlaneError:
            return StartRefusal(why=why, is_permanent=True)

    def _handed_to(self, task: Task) -> str | StartRefusal:
        """Return the agent that a task was handed to, or a refusal if it was handed to another session."""
        handoff = self._repo.store.view(lambda snapshot: open_handoff(snapshot, task.id))
        if handoff is None or handoff.to == ANYBODY or handoff.to.startswith("role:"):
            return ""
        if is_for_person(handoff.to):
            why = f"it is handed to {handoff.to}: landlane inbox {handoff.id}"
            return StartRefusal(why=why, is_permanent=True, is_for_person=True)
        until = handoff.until
        if until <= self._now:
            return ""
        try:
            return find_agent(self._repo.settings, handoff.to).name
        except LandlaneError:
            why = f"it is handed to {handoff.to} for {exact_duration(until - self._now)} more"
            return StartRefusal(why=why, is_permanent=False)

    def why_not(self, task: Task) -> StartRefusal | None:
        """Return why a task may not start now; None if it may."""
        settings = self._repo.settings
        try:
            handed = self._handed_to(task) or self._assigned_to(task)
            if isinstance(handed, StartRefusal):
                return handed
            agent = self.agent_of(task)
            role = find_role(settings, role_for(settings, task, agent))
            missing = (
                _why_missing(agent) or _why_unfit(self._repo, task, role) or _why_unbound(settings, task)
            )
        except LandlaneError as error:
            return StartRefusal(why=f"{error.message}. {error.hint}", is_permanent=True)
        if missing:
            return StartRefusal(why=missing, is_permanent=True)
        if review := self._review_by_person(task):
            why = f"a person gives this review: landlane inbox {review}"
            return StartRefusal(why=why, is_permanent=True, is_for_person=True)
        if self._failing is not None and not self._failing.may_start(task):
            return StartRefusal(why=self._failing.why, is_permanent=True)
        if self._pool.paused:
            return StartRefusal(why=f"workers are paused: {self._pool.paused}", is_permanent=False)
        return (
            self._why_not_needs(task, agent)
            or self._why_not_yet(task)
            or self._why_agent_busy(agent)
            or self._why_paths_busy(task)
        )

    def _review_by_person(self, task: Task) -> str:
        """Return the id of the review that a task asks a person for; empty for any other task."""
        if task.kind != REVIEW_KIND:
            return ""
        reviews = self._repo.store.view(lambda snapshot: reviews_in(snapshot, UNDECIDED))
        found = (
            review.id
            for review in reviews
            for entry in review.awaited
            if (entry.task, entry.name) == (task.id, PERSON)
        )
        return next(found, "")

    def _why_not_needs(self, task: Task, agent: Agent) -> StartRefusal | None:
        kinds = known_kinds(self._repo.settings.slots)
        for name, amount in needs_of(task, agent).items():
            kind = kinds.get(name)
            if kind is None:
                hint = f"declare it: [slots.{name}] capacity = {amount} in landlane.toml"
                return StartRefusal(why=f"needs {name}, which is not declared. {hint}", is_permanent=True)
            if amount > kind.size:
                return StartRefusal(why=f"needs {amount} of {name}; there are {kind.size}", is_permanent=True)
            used = self._used.get(name, 0)
            if used + amount > kind.size:
                why = f"needs {amount} of {name}; {used} of {kind.size} are in use"
                return StartRefusal(why=why, is_permanent=False)
        return None

    def _why_not_yet(self, task: Task) -> StartRefusal | None:
        until = self._repo.store.view(held_in).get(task.id, 0)
        if until > self._now:
            waits = find_waits(self._repo, [task]).get(task.id, ())
            limits = [limit_text(wait, self._now) for wait in waits if wait.kind == WaitKind.LIMIT]
            why = limits[0] if limits else f"tried again {time_left(until - self._now)}"
            return StartRefusal(why=why, is_permanent=False)
        over = over_budget(self._repo, task, run=self._run)
        if over is not None:
            if over.is_shared:
                return StartRefusal(
                    why=f"budget reached: {reached_text(over)}", is_permanent=True, budget=over
                )
            return StartRefusal(why=over.why, is_permanent=True)
        return self._machine

    def _why_agent_busy(self, agent: Agent) -> StartRefusal | None:
        if why := why_full(self._repo.settings, agent.name, self._running):
            return StartRefusal(why=f"waits for {why}", is_permanent=False)
        running = self._running.count(agent.name)
        limit = self._pool.admission.get(agent.name, {})
        until = int(limit.get("until") or 0)
        if until > self._now:
            resets_at = int(limit.get("resets_at") or 0)
            wait = Wait(kind=WaitKind.LIMIT, holder=agent.provider, until=until, resets_at=resets_at)
            return StartRefusal(why=limit_text(wait, self._now), is_permanent=False)
        most = limit.get("limit")
        if most is not None and running >= int(most):
            return StartRefusal(
                why=f"after a provider's limit, {most} {agent.name} at once for now", is_permanent=False
            )
        return None

    def _add_paths(self, task: Task) -> None:
        for pattern in task_patterns(self._repo, task):
            self._paths += [(task.id, path) for path in pattern.alternatives]

    def _why_paths_busy(self, task: Task) -> StartRefusal | None:
        """Return a refusal if a running task or a queued landing changes the same paths.

        Other claims are checked when the task is taken: the claim of a dead session does not last.
        """
        pattern_of = self._repo.git.pattern_of
        for text, kind in declared_patterns(task.stored_paths):
            for path in pattern_of(text, kind).alternatives:
                for other, busy in self._paths:
                    if alternatives_overlap(path, busy):
                        return StartRefusal(why=f"{other} is changing {text}", is_permanent=False)
            if (text, kind) not in self._landing:
                self._landing[text, kind] = self._about_to_land(text, kind)
            landing = self._landing[text, kind]
            if landing is not None:
                return landing
        return None

    def _about_to_land(self, text: str, kind: str) -> StartRefusal | None:
        """Return a refusal if an entry of the landing queue holds a path."""
        repo = self._repo
        claims = list_claims(repo, [repo.git.pattern_of(text, kind)])
        holders = (claim.agent for claim in claims if claim.mode == ClaimMode.EXCLUSIVE)
        entry = next(filter(is_landing_id, holders), "")
        if not entry:
            return None
        landing = get_landing(repo, entry)
        if landing.state == HELD:
            why = f"{entry} waits for a person, and holds {text}: landlane inbox {entry}"
            return StartRefusal(why=why, is_permanent=True, is_for_person=True)
        if get_queue(repo, landing.target).is_paused:
            why = f"{entry} holds {text}, and the landing queue is paused: `landlane queue list`"
            return StartRefusal(why=why, is_permanent=True)
        return StartRefusal(why=f"{entry} is about to land there: {text}", is_permanent=False)


def _why_unfit(repo: Repository, task: Task, role: Role) -> str:
    return why_unfit(
        repo.settings,
        role,
        task_patterns(repo, task),
        kind=task.kind,
        has_output=bool(task.output),
        is_in_git=bool(repo.common_dir),
    )


def _why_missing(agent: Agent) -> str:
    """Return why an agent cannot be started on this machine; empty when it can."""
    if agent.client == COMMAND:
        return _why_no_command(agent)
    try:
        find_program(agent.client)
    except LandlaneError as error:
        return f"{error.message}. {error.hint}"
    return ""


def _why_no_command(agent: Agent) -> str:
    """Return why a command cannot be started. A program of the repository may exist only in its clone."""
    program = agent.command[0]
    is_in_repository = os.sep in program and not os.path.isabs(program)
    if is_in_repository or shutil.which(program, path=search_path()):
        return ""
    return f"[agents.{agent.name}] command: there is no program {program[:200]}"


def _why_machine_full(repo: Repository) -> StartRefusal | None:
    """Return why this machine has no room for another attempt; permanent if it is too small."""
    settings = repo.settings
    floor = settings.run.memory_floor_bytes
    memory = _read_memory() if floor else {}
    free = memory.get("MemAvailable", floor)
    if free < floor:
        why = f"{free // _MB} MB of memory are free; [run] memory_floor keeps {floor // _MB}"
        return StartRefusal(why=why, is_permanent=memory.get("MemTotal", floor) < floor)
    floor = settings.run.disk_floor_bytes
    if floor:
        for folder in (repo.git.root or os.getcwd(), tempfile.gettempdir()):
            disk = shutil.disk_usage(folder)
            if disk.free < floor:
                why = f"{disk.free // _MB} MB are free in {folder}; [run] disk_floor keeps {floor // _MB}"
                return StartRefusal(why=why, is_permanent=disk.total < floor)
    return None


def _read_memory() -> dict[str, int]:
    """Return the memory figures of this machine in bytes; empty where there are none."""
    try:
        with open(_MEMORY, encoding="ascii") as file:
            lines = [line.split() for line in file]
    except OSError:
        return {}
    return {line[0].rstrip(":"): int(line[1]) * 1024 for line in lines if len(line) == 3}
