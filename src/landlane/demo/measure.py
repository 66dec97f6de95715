"""Measure a run of the demo: all figures come from the git history and the logs in its folder."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from fnmatch import fnmatchcase

from landlane.demo.plain_agent import NAIVE, WORKTREES
from landlane.demo.sample_project import TARGET, TEST_COMMAND, git
from landlane.demo.scratch import finished_tasks, read_log
from landlane.demo.with_landlane import LANDLANE, read_journal
from landlane.errors import Malformed
from landlane.git.run import run_git
from landlane.processes.child import Child
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STORY_FILE = "story.json"
WAYS = (NAIVE, WORKTREES, LANDLANE)
DEFINITIONS = {
    "tasks": "tasks of the demo; a duplicate counts as a task",
    "landed": "tasks whose mark `work[KEY]` is in every one of their places in the final tree of main",
    "lost": "tasks that were reported as finished, but whose mark is missing from one of their places in the "
    "final tree of main and of every other branch",
    "conflicts": "finished work that git could not merge: branches task/* that are not contained in main; "
    "with Landlane, landings that bounced with the code CONFLICT",
    "duplicates": "files in shop/features/ of the final tree that carry the mark of another file there: "
    "for each mark, all but one",
    "red_seconds": "seconds during which the tip of main failed check.py: from the move to a failing tip to "
    "the next move, or the end of the mode; times from target.log",
    "stale_deploys": "lines of deploys.log whose commit was not the tip of main when it went live, or does "
    "not contain the commit that was live before",
    "green_at_end": "whether check.py passes on the final tree of main",
    "seconds": "from the start of the first agent to the end of the last deploy",
}
_LIMIT_SECONDS = 60.0


@value
class Figures:
    """The figures of one mode of the demo."""

    tasks: int
    landed: int
    lost: int
    conflicts: int
    duplicates: int
    red_seconds: float
    stale_deploys: int
    green_at_end: bool
    seconds: float


@value
class Move:
    """A move of the target branch: when, and to which commit."""

    at: int
    commit: str


def measure_ways(folder: str) -> dict[str, Figures]:
    """Return the figures of every mode that ran in a folder of the demo.

    Raises:
        Malformed: this is not a folder of the demo.
    """
    story = _read_story(folder)
    return {way: _measure_way(folder, story, way) for way in WAYS if way in story["ways"]}


def _read_story(folder: str) -> dict[str, Any]:
    """Return the tasks, and when each mode began and ended.

    Raises:
        Malformed: this is not a folder of the demo.
    """
    try:
        with open(os.path.join(folder, STORY_FILE), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise Malformed(
            f"{folder} is not a folder of the demo: it has no {STORY_FILE}",
            code="NO_DEMO",
            hint="make one: landlane demo --keep",
        ) from error


def _measure_way(folder: str, story: dict[str, Any], way: str) -> Figures:
    """Return the figures of one mode."""
    place = os.path.join(folder, way)
    root = os.path.join(place, "shop")
    span = story["ways"][way]
    tasks: list[dict[str, Any]] = story["tasks"]
    final = _marks_in(root, TARGET)
    others = [_marks_in(root, branch) for branch in _branches(root) if branch != TARGET]
    finished = _submitted_tasks(root) if way == LANDLANE else finished_tasks(place)
    moves = _target_moves(place, root)
    is_green = _run_tests(root, [move.commit for move in moves])
    done = [task for task in tasks if _is_in(task, final)]
    return Figures(
        tasks=len(tasks),
        landed=len(done),
        lost=sum(
            task["id"] in finished and not any(_is_in(task, one) for one in (final, *others))
            for task in tasks
        ),
        conflicts=_rejected_conflicts(root) if way == LANDLANE else _unmerged_branches(root, finished),
        duplicates=_duplicates(final),
        red_seconds=round(red_ms(moves, is_green, span["began"], span["ended"]) / 1000, 1),
        stale_deploys=_stale_deploys(place, root, moves),
        green_at_end=is_green[moves[-1].commit],
        seconds=round((span["ended"] - span["began"]) / 1000, 1),
    )


def _branches(root: str) -> list[str]:
    return git(root, "for-each-ref", "--format=%(refname:short)", "refs/heads").split()


def _marks_in(root: str, branch: str) -> set[tuple[str, str]]:
    """Return all marks in a tree as (path, key)."""
    # Independent of the user's git output settings.
    plain = ("--no-color", "--no-line-number", "--no-column", "--full-name")
    found = run_git("grep", "--fixed-strings", "-z", *plain, "work[", branch, cwd=root)
    marks: set[tuple[str, str]] = set()
    for line in found.stdout.splitlines():
        where, _, text = line.partition("\0")
        for piece in text.split("work[")[1:]:
            marks.add((where.partition(":")[2], piece.partition("]")[0]))
    return marks


def _is_in(task: dict[str, Any], marks: set[tuple[str, str]]) -> bool:
    return all(
        any(key == task["key"] and fnmatchcase(path, place) for path, key in marks)
        for place in task["places"]
    )


def _duplicates(marks: set[tuple[str, str]]) -> int:
    keys = [key for path, key in marks if path.startswith("shop/features/")]
    return len(keys) - len(set(keys))


def _submitted_tasks(root: str) -> set[str]:
    """Return what workers submitted to the landing queue."""
    entries = read_journal(root)
    keys = {one["data"]["task"]: one["data"]["key"] for one in entries if one["kind"] == "task.added"}
    submitted = [one["data"]["landing"]["task"] for one in entries if one["kind"] == "landing.submitted"]
    return {keys[task] for task in submitted if task in keys}


def _rejected_conflicts(root: str) -> int:
    bounced = [one["data"]["landing"] for one in read_journal(root) if one["kind"] == "landing.bounced"]
    return sum("CONFLICT" in str(landing["code"]) for landing in bounced)


def _unmerged_branches(root: str, finished: set[str]) -> int:
    branches = [branch for branch in _branches(root) if branch.removeprefix("task/") in finished]
    return sum(not _contains(root, TARGET, branch) for branch in branches)


def _target_moves(place: str, root: str) -> list[Move]:
    """Return the moves of the target in order: each starts where the previous one ended."""
    first = git(root, "rev-list", "--max-parents=0", TARGET)
    logged = {words[1]: words for words in read_log(os.path.join(place, "target.log"))}
    moves = [Move(at=0, commit=first)]
    while (words := logged.get(moves[-1].commit)) is not None:
        moves.append(Move(at=max(int(words[0]), moves[-1].at), commit=words[2]))
    if moves[-1].commit != git(root, "rev-parse", TARGET):
        raise _damaged("target.log does not lead to the tip of main")
    return moves


def _damaged(why: str) -> Malformed:
    return Malformed(why, code="NO_DEMO", hint="make a new one: landlane demo --keep")


def _run_tests(root: str, commits: list[str]) -> dict[str, bool]:
    """Check out each commit and return whether its tests pass."""
    scratch = tempfile.mkdtemp(prefix="landlane-demo-tests-")
    tree = os.path.join(scratch, "tree")
    passed: dict[str, bool] = {}
    try:
        os.mkdir(tree)
        index = {"GIT_INDEX_FILE": os.path.join(scratch, "index")}
        words = ("--git-dir", os.path.join(root, ".git"), "--work-tree", tree)
        for commit in dict.fromkeys(commits):
            done = run_git(*words, "read-tree", "-u", "--reset", commit, cwd=tree, variables=index)
            if done.exit_code:
                raise _damaged(f"{commit[:12]} cannot be checked out: {done.stderr[-300:]}")
            passed[commit] = Child(TEST_COMMAND, cwd=tree).wait(_LIMIT_SECONDS).exit_code == 0
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return passed


def red_ms(moves: list[Move], is_green: dict[str, bool], began: int, ended: int) -> int:
    """Return how long the tip failed its tests."""
    red = 0
    for number, move in enumerate(moves):
        until = moves[number + 1].at if number + 1 < len(moves) else ended
        if not is_green[move.commit]:
            red += max(min(until, ended) - max(move.at, began), 0)
    return red


def _stale_deploys(place: str, root: str, moves: list[Move]) -> int:
    """Return how many deploys shipped an outdated commit."""
    live = ""
    stale = 0
    for at, commit, *_ in read_log(os.path.join(place, "deploys.log")):
        tip = [move.commit for move in moves if move.at <= int(at)][-1]
        stale += commit != tip or bool(live and not _contains(root, commit, live))
        live = commit
    return stale


def _contains(root: str, commit: str, other: str) -> bool:
    return not run_git("merge-base", "--is-ancestor", other, commit, cwd=root).exit_code
