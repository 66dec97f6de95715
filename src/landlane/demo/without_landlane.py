"""The two modes without Landlane: one shared checkout, and one worktree per agent, merged at the end."""

from __future__ import annotations

import json
import os
import signal
import time

from landlane.demo.plain_agent import GO, NAIVE, READY, WORKTREES
from landlane.demo.sample_project import TARGET, git, make_shop, write
from landlane.demo.scratch import deploy, has_ended, has_moved, is_stopped, now_ms, task_facts, wait_until
from landlane.git.run import run_git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from landlane.demo.sample_tasks import DemoTask
    from landlane.demo.scratch import Stage
    from landlane.processes.child import Child

_PATIENCE_SECONDS = 1.5  # before a person checks why there is no progress
_LOOK_SECONDS = 0.05
_LIMIT_SECONDS = 90.0


def run_naive(stage: Stage, hands: Mapping[str, list[DemoTask]]) -> dict[str, int]:
    """Run all agents in one checkout, each committing what it finds; return when it began and ended."""
    place = stage.place(NAIVE)
    root = make_shop(place, len(hands))
    began = now_ms()
    agents = [_start_agent(stage, NAIVE, name, root, tasks) for name, tasks in hands.items()]
    _let_begin(place, len(agents))
    # The deploying agent sees a commit, but not the work in progress.
    wait_until(lambda: has_moved(place), _LIMIT_SECONDS)
    deploy(stage, place, root, "ops")
    _wait_for_all(stage, agents)
    deploy(stage, place, root, "pat")
    deploy(stage, place, root, "ops")
    return {"began": began, "ended": now_ms()}


def run_worktrees(stage: Stage, hands: Mapping[str, list[DemoTask]]) -> dict[str, int]:
    """Run each agent in a worktree with a branch per task; a person merges them all at the end."""
    place = stage.place(WORKTREES)
    root = make_shop(place, len(hands))
    began = now_ms()
    git(root, "worktree", "add", "--quiet", "-b", "ops", os.path.join(place, "ops"), TARGET)
    agents: list[Child] = []
    for name, tasks in hands.items():
        folder = os.path.join(place, name)
        git(root, "worktree", "add", "--quiet", "--detach", folder, TARGET)
        agents.append(_start_agent(stage, WORKTREES, name, folder, tasks))
    _let_begin(place, len(agents))
    _wait_for_all(stage, agents)
    finished = _finished(place)
    ids = sorted(task.id for tasks in hands.values() for task in tasks if task.id in finished)
    for number, task_id in enumerate(ids):
        _merge(stage, place, root, task_id)
        if number == len(ids) // 2:
            deploy(stage, place, os.path.join(place, "ops"), "ops")
    deploy(stage, place, root, "pat")
    deploy(stage, place, os.path.join(place, "ops"), "ops")
    return {"began": began, "ended": now_ms()}


def _start_agent(stage: Stage, way: str, name: str, folder: str, tasks: list[DemoTask]) -> Child:
    place = stage.place(way)
    order = {
        "way": way,
        "name": name,
        "folder": folder,
        "tasks": [task_facts(task) for task in tasks],
        "log": os.path.join(place, "finished.log"),
    }
    file = os.path.join(place, "orders", f"{name}.json")
    write(file, json.dumps(order))
    return stage.python("landlane.demo.plain_agent", file, cwd=folder)


def _let_begin(place: str, count: int) -> None:
    """Signal the start once all agents are ready."""
    orders = os.path.join(place, "orders")
    wait_until(lambda: sum(name.endswith(READY) for name in os.listdir(orders)) == count, _LIMIT_SECONDS)
    write(os.path.join(orders, GO), "")


def _finished(place: str) -> set[str]:
    try:
        with open(os.path.join(place, "finished.log"), encoding="utf-8") as file:
            return {line.split()[1] for line in file}
    except FileNotFoundError:
        return set()


def _wait_for_all(stage: Stage, agents: list[Child]) -> None:
    """Wait for the agents; those that hang are ended a while after all others have finished."""
    deadline = time.monotonic() + _LIMIT_SECONDS
    noticed = 0.0
    while agents and time.monotonic() < deadline:
        for agent in [agent for agent in agents if has_ended(agent)]:
            _end(stage, agent, agents)
        if not agents or not all(is_stopped(agent) for agent in agents):
            noticed = 0.0
        elif not noticed:
            noticed = time.monotonic()
        elif time.monotonic() - noticed > _PATIENCE_SECONDS:
            break
        time.sleep(_LOOK_SECONDS)
    for agent in list(agents):
        stage.say("  an agent hangs, and is ended by hand")
        _end(stage, agent, agents)


def _end(stage: Stage, agent: Child, agents: list[Child]) -> None:
    if not has_ended(agent):
        agent.signal(signal.SIGKILL)
    stage.finish(agent, _LIMIT_SECONDS)
    agents.remove(agent)


def _merge(stage: Stage, place: str, root: str, task_id: str) -> None:
    """Merge a branch; a conflicting one is left for manual work."""
    merged = run_git("merge", "--quiet", "--no-edit", f"task/{task_id}", cwd=root)
    if merged.exit_code:
        git(root, "merge", "--abort")
        stage.say(f"  task/{task_id} does not merge")
        with open(os.path.join(place, "conflicts.log"), "a", encoding="utf-8") as file:
            file.write(f"{now_ms()} task/{task_id}\n")
