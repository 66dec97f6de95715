"""Run the demo: the three modes one after the other, then the measured figures."""

from __future__ import annotations

import json
import os

from landlane.demo.measure import DEFINITIONS, STORY_FILE, WAYS, measure_ways
from landlane.demo.plain_agent import NAIVE, WORKTREES
from landlane.demo.sample_project import write
from landlane.demo.sample_tasks import assign, make_tasks
from landlane.demo.with_landlane import LANDLANE, run_coordinated
from landlane.demo.without_landlane import run_naive, run_worktrees
from landlane.values import as_dict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.demo.measure import Figures
    from landlane.demo.scratch import DemoRun

_BUILD_SECONDS = 0.04  # of a deploy, per task
FEWEST_AGENTS, MOST_AGENTS = 4, 64
TITLES = {NAIVE: "one checkout", WORKTREES: "worktrees", LANDLANE: "landlane"}
_HEADINGS = {
    NAIVE: "One checkout: every agent edits and commits in the same folder",
    WORKTREES: "Worktrees: one per agent, merged at the end",
    LANDLANE: "Landlane: the same tasks through the queue",
}
# figure → its label
ROWS = {
    "landed": "tasks landed",
    "lost": "updates lost",
    "conflicts": "merge conflicts",
    "duplicates": "duplicate work",
    "red_seconds": "main failing",
    "stale_deploys": "stale deploys",
    "green_at_end": "tests at the end",
    "seconds": "time",
}


def run_demo(run: DemoRun, *, agents: int, seed: int, tasks: int, ways: Sequence[str] = WAYS) -> None:
    """Run all three modes, or some of them; the results stay in the folder of the run."""
    workers = agents - 2  # besides the deploying agent and the person
    demo_tasks = make_tasks(seed, tasks)
    os.environ["DEMO_BUILD_SECONDS"] = f"{len(demo_tasks) * _BUILD_SECONDS:.2f}"
    assigned = assign(demo_tasks, workers, seed)
    story: dict[str, Any] = {
        "seed": seed,
        "agents": [*assigned, "ops", "pat"],
        "tasks": [as_dict(task) for task in demo_tasks],
        "ways": {},
    }
    run.report(
        f"{len(demo_tasks)} tasks that collide, {agents} scripted agents ({workers - 1} Python workers, "
        "1 shell worker, 1 that deploys, 1 person), 3 ways to work."
    )
    run.report(
        "Trouble is built in: a contested file, a shared registry, a changed signature with a new caller,\n"
        "the same task twice, a worker that hangs, one that is killed, one that fails twice the same way,\n"
        "two migrations with the same number, a stale deploy."
    )
    for number, way in enumerate(ways, 1):
        run.report(f"\n{number}. {_HEADINGS[way]}")
        if way == NAIVE:
            story["ways"][way] = run_naive(run, assigned)
        elif way == WORKTREES:
            story["ways"][way] = run_worktrees(run, assigned)
        else:
            story["ways"][way] = run_coordinated(run, demo_tasks, workers)
    write(os.path.join(run.folder, STORY_FILE), json.dumps(story, indent=1) + "\n")


def find_broken_promises(figures: dict[str, Figures]) -> str:
    """Return the promises that Landlane did not keep."""
    ours = figures.get(LANDLANE)
    if ours is None:
        return ""
    broken = [
        f"{ROWS[name]}: {getattr(ours, name)}"
        for name in ("lost", "duplicates", "red_seconds", "stale_deploys")
        if getattr(ours, name)
    ]
    broken += [] if ours.landed == ours.tasks else [f"tasks landed: {ours.landed} of {ours.tasks}"]
    broken += [] if ours.green_at_end else ["tests at the end: fail"]
    return ", ".join(broken)


def demo_json(folder: str) -> dict[str, Any]:
    """Return the table as JSON, measured from the folder, with a description of each figure."""
    figures = measure_ways(folder)
    broken = find_broken_promises(figures)
    answer: dict[str, Any] = {"ok": not broken}
    if broken:
        answer |= {"code": "DEMO_FAILED", "message": f"the run with Landlane broke a promise: {broken}"}
        answer["hint"] = "keep its folder and read landlane/run.log there: landlane demo --keep"
    return answer | {
        "ways": {way: as_dict(one) for way, one in figures.items()},
        "definitions": DEFINITIONS,
    }


def table_rows(answer: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the table."""
    ways = answer["ways"]
    return ["", *(TITLES[way] for way in ways)], [
        [title, *(_cell(name, figures) for figures in ways.values())] for name, title in ROWS.items()
    ]


def _cell(name: str, figures: dict[str, Any]) -> str:
    found = figures[name]
    if name == "landed":
        return f"{found} of {figures['tasks']}"
    if name == "green_at_end":
        return "pass" if found else "fail"
    if name in ("red_seconds", "seconds"):
        return f"{found:.1f} s" if found else "0 s"
    return str(found)
