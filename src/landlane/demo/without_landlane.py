"""The two modes without Landlane: one shared checkout, and one worktree per agent, merged at the end."""

from __future__ import annotations

import json
import os
import signal
import time

from landlane.demo.plain_agent import GO, NAIVE, READY, WORKTREES
from landlane.demo.sample_project import TARGET, git, make_shop, write
from landlane.demo.scratch import finished_tasks, has_ended, has_moved, is_stopped, now_ms, wait_until
from landlane.git.run import run_git
from landlane.values import as_dict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from landlane.demo.sample_tasks import DemoTask
    from landlane.demo.scratch import DemoRun
    from landlane.processes.child import Child

_HANG_SECONDS = 1.5  # before a person checks why there is no progress
_POLL_SECONDS = 0.05
_LIMIT_SECONDS = 90.0


def run_naive(run: DemoRun, assigned: Mapping[str, list[DemoTask]]) -> dict[str, int]:
    """Run all agents in one checkout, each committing what it finds; return when it began and ended."""
    place = run.folder_of(NAIVE)
    root = make_shop(place, len(assigned))
    began = now_ms()
    agents = [_start_agent(run, NAIVE, name, root, tasks) for name, tasks in assigned.items()]
    _signal_start(place, len(agents))
    # The deploying agent sees a commit, but not the work in progress.
    wait_until(lambda: has_moved(place), _LIMIT_SECONDS)
    _deploy(run, place, root, "ops")
    _wait_for_all(run, agents)
    _deploy(run, place, root, "pat")
    _deploy(run, place, root, "ops")
    return {"began": began, "ended": now_ms()}


def run_worktrees(run: DemoRun, assigned: Mapping[str, list[DemoTask]]) -> dict[str, int]:
    """Run each agent in a worktree with a branch per task; a person merges them all at the end."""
    place = run.folder_of(WORKTREES)
    root = make_shop(place, len(assigned))
    began = now_ms()
    git(root, "worktree", "add", "--quiet", "-b", "ops", os.path.join(place, "ops"), TARGET)
    agents: list[Child] = []
    for name, tasks in assigned.items():
        folder = os.path.join(place, name)
        git(root, "worktree", "add", "--quiet", "--detach", folder, TARGET)
        agents.append(_start_agent(run, WORKTREES, name, folder, tasks))
    _signal_start(place, len(agents))
    _wait_for_all(run, agents)
    finished = finished_tasks(place)
    ids = sorted(task.id for tasks in assigned.values() for task in tasks if task.id in finished)
    for number, task_id in enumerate(ids):
        _merge(run, place, root, task_id)
        if number == len(ids) // 2:
            _deploy(run, place, os.path.join(place, "ops"), "ops")
    _deploy(run, place, root, "pat")
    _deploy(run, place, os.path.join(place, "ops"), "ops")
    return {"began": began, "ended": now_ms()}


def _start_agent(run: DemoRun, way: str, name: str, folder: str, tasks: list[DemoTask]) -> Child:
    place = run.folder_of(way)
    order = {
        "way": way,
        "name": name,
        "folder": folder,
        "tasks": [as_dict(task) for task in tasks],
        "log": os.path.join(place, "finished.log"),
    }
    file = os.path.join(place, "orders", f"{name}.json")
    write(file, json.dumps(order))
    return run.python("landlane.demo.plain_agent", file, cwd=folder)


def _signal_start(place: str, count: int) -> None:
    """Signal the start once all agents are ready."""
    orders = os.path.join(place, "orders")
    wait_until(lambda: sum(name.endswith(READY) for name in os.listdir(orders)) == count, _LIMIT_SECONDS)
    write(os.path.join(orders, GO), "")


def _wait_for_all(run: DemoRun, agents: list[Child]) -> None:
    """Wait for the agents; those that hang are ended a while after all others have finished."""
    deadline = time.monotonic() + _LIMIT_SECONDS
    hanging_since = 0.0
    while agents and time.monotonic() < deadline:
        for agent in [agent for agent in agents if has_ended(agent)]:
            _end(run, agent, agents)
        if not agents or not all(is_stopped(agent) for agent in agents):
            hanging_since = 0.0
        elif not hanging_since:
            hanging_since = time.monotonic()
        elif time.monotonic() - hanging_since > _HANG_SECONDS:
            break
        time.sleep(_POLL_SECONDS)
    for agent in list(agents):
        run.report("  an agent hangs and is killed by hand")
        _end(run, agent, agents)


def _end(run: DemoRun, agent: Child, agents: list[Child]) -> None:
    if not has_ended(agent):
        agent.signal(signal.SIGKILL)
    run.finish(agent, _LIMIT_SECONDS)
    agents.remove(agent)


def _deploy(run: DemoRun, place: str, checkout: str, who: str) -> None:
    """Deploy a checkout with a plain script, without any check."""
    environment = {"DEMO_PLACE": place, "DEMO_WHO": who}
    run.finish(run.start(["sh", "tools/deploy.sh"], checkout, environment=environment), _LIMIT_SECONDS)


def _merge(run: DemoRun, place: str, root: str, task_id: str) -> None:
    """Merge a branch; a conflicting one is left for manual work."""
    merged = run_git("merge", "--quiet", "--no-edit", f"task/{task_id}", cwd=root)
    if merged.exit_code:
        git(root, "merge", "--abort")
        run.report(f"  task/{task_id} conflicts and stays unmerged")
        with open(os.path.join(place, "conflicts.log"), "a", encoding="utf-8") as file:
            file.write(f"{now_ms()} task/{task_id}\n")
