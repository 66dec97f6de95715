"""Checks before a run starts any worker: programs, scripts and the target branch, each with its fix."""

from __future__ import annotations

import os
import shlex
import shutil

from landlane.clients.model import CLIENTS
from landlane.errors import LandlaneError
from landlane.exec.sandboxed_run import search_path
from landlane.git.run import run_in
from landlane.git.target import find_target, target_tip
from landlane.landing.estimate import estimate_check
from landlane.landing.model import QUEUED, TESTING
from landlane.landing.records import get_queue, list_landings
from landlane.landing.run_checks import CheckRunner
from landlane.landing.target_failure import check_target
from landlane.landing.target_rules import settings_at
from landlane.landing.to_text import fix_task_command
from landlane.sandbox.model import BackendKind
from landlane.sandbox.start import choose_backend
from landlane.tasks.model import BLOCKED, READY, effective_kind, is_open_fix
from landlane.values import value
from landlane.workers.agents import agent_for
from landlane.workers.model import COMMAND, EXIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.repository import Repository
    from landlane.tasks.model import Task
    from landlane.workers.model import Agent, RunRequest

_MOST_LINES = 3
_LONGEST_LINE = 160


@value
class Problem:
    """Why no worker is started: what is wrong, the output that shows it, and the command that fixes it."""

    text: str
    fix: str
    lines: tuple[str, ...] = ()


@value
class Preflight:
    """The result of all checks."""

    checks: int
    problems: tuple[Problem, ...] = ()
    tasks: int = 0  # that are open
    branch: str = ""  # the target, if something has to land, and its tip
    tip: str = ""
    is_sandboxed: bool = False
    is_failing: bool = False  # the target fails its checks; a task or a landing may repair it


def check_before_run(
    repo: Repository,
    tasks: Sequence[Task],
    request: RunRequest,
    on_check: Callable[[str, str, int | None], None] = lambda _, __, ___: None,
    on_tick: Callable[[], None] = lambda: None,
) -> Preflight:
    """Check what every attempt needs.

    `on_check` gets each landing check that has to be run, the branch, and how many milliseconds it usually
    takes; `on_tick` is called while one runs.

    Raises:
        RepositoryError: there is no target branch, or its settings cannot be read.
        SettingsError: the settings do not say how to test what lands.
    """
    open_tasks = [task for task in tasks if task.state in (READY, BLOCKED)]
    if not open_tasks:
        return Preflight(checks=0)
    checks, problems, is_failing = 0, list[Problem](), False
    agents = _agents_of(repo, open_tasks, request)
    for agent in agents:
        checks += 1
        problems += _check_program(agent)
    is_sandboxed = choose_backend().name != BackendKind.NONE
    if not any(_needs_landing(task) for task in open_tasks):
        return Preflight(
            checks=checks, problems=tuple(problems), tasks=len(open_tasks), is_sandboxed=is_sandboxed
        )
    target = find_target(repo.home, repo.settings)
    tip = target_tip(repo.home, target)
    for script in dict.fromkeys(script for agent in agents for script in _scripts_of(repo, agent)):
        checks += 1
        problems += _check_committed(repo, script, target.branch, tip)
    if not request.is_continuous:  # it goes on while others fix the target
        settings = settings_at(repo, target, tip)
        checks += len(settings.landing.checks or ())
        queue = get_queue(repo, target.branch)
        runner = CheckRunner(repo, settings, target.branch, on_tick)

        def on_begin(name: str, _: object) -> None:
            on_check(name, target.branch, estimate_check(queue, name))

        try:
            # A saved failure may be the machine's fault or fixed since, so it does not stop the run.
            result = check_target(repo, None, target.branch, tip, runner, on_begin, rerun_failed=True)
        finally:
            runner.close()
        is_failing = not result.is_green
        if is_failing and not _may_be_fixed(repo, tasks, target.branch):
            lines = [line.strip()[:_LONGEST_LINE] for line in result.output.splitlines() if line.strip()]
            text = f"{result.check} fails on {target.branch}, so only a fix could land"
            fix = fix_task_command(target.branch, result.check)
            problems.append(Problem(text=text, fix=fix, lines=tuple(lines[-_MOST_LINES:])))
    return Preflight(
        checks=checks,
        problems=tuple(problems),
        tasks=len(open_tasks),
        branch=target.branch,
        tip=tip,
        is_sandboxed=is_sandboxed,
        is_failing=is_failing,
    )


def _may_be_fixed(repo: Repository, tasks: Sequence[Task], branch: str) -> bool:
    """Return whether a task is to repair the target, or something waits to land that may do so."""
    if any(is_open_fix(task) for task in tasks):
        return True
    return any(one.target == branch for one in list_landings(repo, (QUEUED, TESTING)))


def _agents_of(repo: Repository, tasks: Sequence[Task], request: RunRequest) -> list[Agent]:
    """Return the agents that the tasks need. A task whose agent is unknown is left, and the run says why."""
    agents: dict[str, Agent] = {}
    for task in tasks:
        try:
            agent = agent_for(repo.settings, task, request.agent)
        except LandlaneError:
            continue
        agents[agent.name] = agent
    return list(agents.values())


def _needs_landing(task: Task) -> bool:
    return effective_kind(task.kind, has_output=bool(task.output), is_in_git=True) == "code"


def _check_program(agent: Agent) -> list[Problem]:
    """Return a problem if the program of an agent is not installed."""
    if agent.client != COMMAND:
        client = CLIENTS[agent.client]
        if shutil.which(client.name, path=search_path()):
            return []
        return [Problem(text=f"{client.title} is not installed", fix=client.install)]
    program = agent.command[0]
    if os.sep in program or shutil.which(program, path=search_path()):
        return []
    value = shlex.quote(f'["./{program}"]')
    return [
        Problem(
            text=f"there is no program {program[:80]} on the PATH (agent {agent.name})",
            fix=f"landlane config set agents.{agent.name}.command {value}",
        )
    ]


def _scripts_of(repo: Repository, agent: Agent) -> list[str]:
    """Return the files of the repository that an agent's command names."""
    if agent.client != COMMAND:
        return []
    first, *others = agent.command
    scripts = [word for word in others if os.path.isfile(os.path.join(repo.home.root, word))]
    if agent.protocol == EXIT and os.sep in first:
        scripts.insert(0, first)
    return [os.path.normpath(word) for word in scripts if not os.path.isabs(word)]


def _check_committed(repo: Repository, script: str, branch: str, tip: str) -> list[Problem]:
    """Return a problem if the target branch does not have a script, or has it without permission to run."""
    if run_in(repo.home, "cat-file", "-e", f"{tip}:{script}").exit_code == 0:
        return []
    quoted = shlex.quote(script)
    if not os.path.isfile(os.path.join(repo.home.root, script)):
        return [Problem(text=f"there is no file {script}", fix=f"git log --oneline --all -- {quoted}")]
    if run_in(repo.home, "cat-file", "-e", f"HEAD:{script}").exit_code == 0:
        text = f"{script} is not on {branch}, so no workspace has it"
        return [Problem(text=text, fix="landlane land --wait")]
    fix = f"git add {quoted} && git commit -m 'Add a worker'"
    return [Problem(text=f"{script} is not committed, so no workspace has it", fix=fix)]
