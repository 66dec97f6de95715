"""Run the demo: the three modes one after the other, then the measured figures."""

from __future__ import annotations

import os

from landlane.demo.measure import DEFINITIONS, WAYS, recount
from landlane.demo.plain_agent import NAIVE, WORKTREES
from landlane.demo.sample_tasks import deal, make_tasks
from landlane.demo.scratch import note_story, task_facts
from landlane.demo.with_landlane import LANDLANE, run_coordinated
from landlane.demo.without_landlane import run_naive, run_worktrees
from landlane.values import as_dict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.demo.measure import Figures
    from landlane.demo.scratch import Stage

_BUILD_SECONDS = 0.04  # of a deploy, per task
FEWEST_AGENTS, MOST_AGENTS = 4, 64
TITLES = {NAIVE: "one checkout", WORKTREES: "worktrees", LANDLANE: "landlane"}
_HEADINGS = {
    NAIVE: "all in one checkout, at once",
    WORKTREES: "a worktree for each, merged at the end",
    LANDLANE: "with Landlane",
}
# figure → its label
_ROWS = {
    "landed": "tasks landed",
    "lost": "updates lost",
    "conflicts": "conflicts",
    "duplicates": "duplicates",
    "red_seconds": "red seconds of main",
    "stale_deploys": "stale deploys",
    "green_at_end": "tests at the end",
    "seconds": "seconds",
}


def play(stage: Stage, *, agents: int, seed: int, tasks: int, ways: Sequence[str] = WAYS) -> None:
    """Run all three modes, or some of them; the results stay in the folder of the stage."""
    workers = agents - 2  # besides the deploying agent and the person
    todo = make_tasks(seed, tasks)
    os.environ["DEMO_BUILD_SECONDS"] = f"{len(todo) * _BUILD_SECONDS:.2f}"
    hands = deal(todo, workers, seed)
    story: dict[str, Any] = {
        "seed": seed,
        "agents": [*hands, "ops", "pat"],
        "tasks": [task_facts(task) for task in todo],
        "ways": {},
    }
    stage.say(
        f"{agents} agents, {len(todo)} tasks: {workers - 1} Python workers, a shell worker, one who deploys, "
        "and a person"
    )
    stage.say(
        "they collide: a held file, a shared registry, a changed signature and a new caller, the same work "
        "twice,\na hanging and a killed worker, one that fails twice the same way, migration numbers, deploys"
    )
    for number, way in enumerate(ways, 1):
        stage.say(f"\n{number}. {_HEADINGS[way]}")
        if way == NAIVE:
            story["ways"][way] = run_naive(stage, hands)
        elif way == WORKTREES:
            story["ways"][way] = run_worktrees(stage, hands)
        else:
            story["ways"][way] = run_coordinated(stage, todo, workers)
    note_story(stage.folder, story)


def judge(figures: dict[str, Figures]) -> str:
    """Return the promises that Landlane did not keep."""
    ours = figures.get(LANDLANE)
    if ours is None:
        return ""
    broken = [
        f"{_ROWS[name]}: {getattr(ours, name)}"
        for name in ("lost", "duplicates", "red_seconds", "stale_deploys")
        if getattr(ours, name)
    ]
    broken += [] if ours.landed == ours.tasks else [f"tasks landed: {ours.landed} of {ours.tasks}"]
    broken += [] if ours.green_at_end else ["tests at the end: red"]
    return ", ".join(broken)


def answer_of(folder: str) -> dict[str, Any]:
    """Return the table as JSON, measured from the folder, with a description of each figure."""
    figures = recount(folder)
    broken = judge(figures)
    answer: dict[str, Any] = {"ok": not broken}
    if broken:
        answer |= {"code": "DEMO_FAILED", "message": f"a promise was not kept: {broken}"}
        answer["hint"] = "run it with --keep, and look at landlane/run.log in the folder"
    return answer | {
        "ways": {way: as_dict(one) for way, one in figures.items()},
        "definitions": DEFINITIONS,
    }


def rows_of(answer: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the table."""
    ways = answer["ways"]
    return ["", *(TITLES[way] for way in ways)], [
        [title, *(_cell(name, figures) for figures in ways.values())] for name, title in _ROWS.items()
    ]


def _cell(name: str, figures: dict[str, Any]) -> str:
    found = figures[name]
    if name == "landed":
        return f"{found} of {figures['tasks']}"
    if name == "green_at_end":
        return "green" if found else "red"
    return str(found)
