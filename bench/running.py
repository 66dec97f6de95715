"""Runs: tasks a minute by scripted workers, beside the ideal and beside plain worktrees."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from bench.places import DISK, scratch
from bench.table import Row, Skipped, at_least
from landlane.app.open import open_repository
from landlane.tasks.add import add_task
from landlane.tasks.model import DONE, NewTask
from landlane.tasks.records import list_tasks

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence

    from bench.sizes import Sizes

_HOT_FILES = 8
_TRIES = 10
_SETTINGS = """\
[landing]
target = "main"
checks = ["true"]
[run]
agent = "scripted"
role = "code"
[agents.scripted]
command = ["{python}", "-m", "landlane.testing.scripted_worker"]
protocol = "messages"
"""


def bench_run(sizes: Sizes, lots: random.Random) -> Iterator[Row | Skipped]:
    """Compare a run with the same workers without coordination."""
    workers, tasks, seconds = sizes.run_workers, sizes.run_tasks, sizes.run_seconds
    what = f"{workers} workers, {tasks} tasks of {seconds:g} s"
    disjoint = [f"file{number}.txt" for number in range(tasks)]
    hot = [f"hot{number % _HOT_FILES}.txt" for number in range(tasks)]
    rates: dict[str, float] = {}
    for name in lots.sample(["ours", "plain"], 2):
        measure = _run_ours if name == "ours" else _run_plain
        rates[name] = tasks / measure(disjoint, workers, seconds) * 60
    ideal = workers / seconds * 60
    yield Row(
        what=f"{what}, disjoint paths: landed, against the ideal",
        unit="/min",
        ours=rates["ours"],
        peer=ideal,
        aim=at_least(0.9),
    )
    yield Row(
        what="  plain worktrees, committed and never landed, against the ideal",
        unit="/min",
        ours=rates["plain"],
        peer=ideal,
    )
    at_once = min(workers, _HOT_FILES)
    yield Row(
        what=f"{what}, {_HOT_FILES} mergeable files: landed, against {at_once} at once",
        unit="/min",
        ours=tasks / _run_ours(hot, workers, seconds) * 60,
        peer=at_once / seconds * 60,
        aim=at_least(0.6),
    )


def _make_repository(folder: str, paths: Sequence[str]) -> str:
    root = os.path.join(folder, "repository")
    subprocess.run(["git", "init", "--quiet", "-b", "main", root], check=True)
    for name in {*paths}:
        with open(os.path.join(root, name), "w", encoding="utf-8") as file:
            file.write("begun\n")
    with open(os.path.join(root, "landlane.toml"), "w", encoding="utf-8") as file:
        file.write(_SETTINGS.format(python=sys.executable))
    _git(root, "add", "--all")
    _git(root, "commit", "--quiet", "-m", "begin")
    return root


def _git(folder: str, *words: str) -> str:
    who = ("-c", "user.name=b", "-c", "user.email=b@localhost")
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def _run_ours(paths: Sequence[str], workers: int, seconds: float) -> float:
    """The seconds until all has landed; every line must be there."""
    with scratch(DISK) as folder:
        root = _make_repository(folder, paths)
        repo = open_repository(root)
        for number, path in enumerate(paths):
            script = json.dumps({"seconds": seconds, "append": {path: f"line {number}\n"}})
            new = NewTask(title=f"Line {number}", body=f"script: {script}", paths=(path,))
            add_task(repo, None, new, force=True)
        environment = {**os.environ, "LANDLANE_AGENT": "bench", "GIT_AUTHOR_NAME": "b"}
        environment |= {"GIT_AUTHOR_EMAIL": "b@localhost", "GIT_COMMITTER_NAME": "b"}
        environment |= {"GIT_COMMITTER_EMAIL": "b@localhost"}
        command = [sys.executable, "-m", "landlane", "run", "--workers", str(workers), "--json"]
        started = time.monotonic()
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
        took = time.monotonic() - started
        states = {task.state for task in list_tasks(repo)}
        repo.store.close()
        if done.returncode or states != {DONE}:
            raise RuntimeError(f"it ended with {done.returncode}: {done.stdout[-500:]} {done.stderr[-500:]}")
        lines = [line for path in {*paths} for line in _git(root, "show", f"main:{path}").splitlines()[1:]]
        if sorted(lines) != sorted(f"line {number}" for number in range(len(paths))):
            raise RuntimeError(f"{len(paths) - len(lines)} lines are lost")
        return took


def _add_worktree(root: str, number: int, place: str) -> None:
    """As a person does it; of two at once git may refuse one, which is tried again."""
    for tries_left in range(_TRIES - 1, -1, -1):
        try:
            _git(root, "worktree", "add", "--quiet", "--force", "-B", f"topic{number}", place)
            return
        except subprocess.CalledProcessError:
            if not tries_left:
                raise
            shutil.rmtree(place, ignore_errors=True)


def _run_plain(paths: Sequence[str], workers: int, seconds: float) -> float:
    """The seconds that the same work takes in plain worktrees, each committed and left alone."""
    with scratch(DISK) as folder:
        root = _make_repository(folder, paths)

        def work(number: int) -> None:
            place = os.path.join(folder, f"tree{number}")
            _add_worktree(root, number, place)
            time.sleep(seconds)
            with open(os.path.join(place, paths[number]), "a", encoding="utf-8") as file:
                file.write(f"line {number}\n")
            _git(place, "commit", "--quiet", "--all", "-m", f"Line {number}")

        started = time.monotonic()
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(work, range(len(paths))))
        return time.monotonic() - started
