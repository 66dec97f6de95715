"""Owners are killed at random while tasks with dependencies are worked off: each ends once, in order."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import time
import traceback
from typing import TYPE_CHECKING

import pytest

from landlane.app.open import open_repository
from landlane.app.verify_journal import verify_journal
from landlane.errors import LandlaneError, StoreError
from landlane.patterns.pattern import overlap, parse
from landlane.repository import Repository
from landlane.sessions import join as sessions
from landlane.tasks.change import fail_task
from landlane.tasks.finish import finish_without_evidence
from landlane.tasks.import_checklist import import_checklist
from landlane.tasks.pick import NothingReady, next_task, resume_task
from landlane.tasks.records import count_tasks
from tests.support.git import commit_text
from tests.support.store_stress import PRELOADED, all_entries

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.context import ForkServerProcess
    from pathlib import Path

    from landlane.store.journal_chain import JournalEntry

TASKS = int(os.environ.get("LANDLANE_FAULT_TASKS", "40"))  # 500 for the whole of it
WORKERS = int(os.environ.get("LANDLANE_FAULT_WORKERS", "8"))
LIMIT_SECONDS = 60 + TASKS
SEED = int(os.environ.get("LANDLANE_FAULT_SEED", "0")) or random.SystemRandom().randrange(2**32)
# Owners are killed more often here than any lineage would bear.
SETTINGS = '[sessions]\nlease = "2s"\n[retries]\nmax_attempts = 100\nbackoff = "1s"\n'
PATHS = ("src/a.py", "src/*.py", "docs/**", "docs/x.md", "lib/b.py", "lib")

pytestmark = [pytest.mark.simulation, pytest.mark.slow, pytest.mark.timeout(LIMIT_SECONDS + 60)]


def work_off(folder: str, name: str, seed: int, environment: dict[str, str]) -> None:
    """The life of a worker: take, work for a moment, end, sometimes fail; until nothing is left."""
    os.environ.clear()
    os.environ.update(environment)
    dice = random.Random(seed)
    try:
        repo = open_repository(folder)
        while True:
            try:
                if not _work_once(repo, name, dice):
                    return
            except StoreError:
                raise
            except LandlaneError as error:  # too slow: the lease was over before the work was
                if error.code not in ("SESSION_OVER", "TASK_NOT_YOURS"):
                    raise
    except BaseException:  # noqa: BLE001 - told on the test's own output
        traceback.print_exc()
        os._exit(1)


def _work_once(repo: Repository, name: str, dice: random.Random) -> bool:
    session = sessions.join(repo, name).session
    picked = resume_task(repo, session)
    outcome = picked or next_task(repo, session, wait_ms=1000)
    if isinstance(outcome, NothingReady):
        return any(outcome.counts.get(state) for state in ("ready", "blocked", "active"))
    time.sleep(dice.choice((0.0, 0.01, 0.05)))
    if dice.random() < 0.05:
        # In other words each time: the same twice would stop the task and ask a person.
        luck = "".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=12))
        fail_task(repo, session, outcome.task.id, f"bad luck, called {luck}")
    else:
        finish_without_evidence(repo, session, outcome.task.id, name)
    return True


class WorkerPool:
    """Workers that are killed and replaced, half of them under the same name."""

    def __init__(self, folder: Path, dice: random.Random) -> None:
        self._folder = str(folder)
        self._dice = dice
        self._repo = multiprocessing.get_context("forkserver")
        self._repo.set_forkserver_preload(list(PRELOADED))
        self._names = 0
        self.workers: dict[str, ForkServerProcess] = {}
        self.kills = 0

    def hire(self, name: str = "") -> None:
        if not name:
            self._names += 1
            name = f"w{self._names}"
        orders = (self._folder, name, self._dice.randrange(2**32), dict(os.environ))
        process = self._repo.Process(target=work_off, args=orders, daemon=True)
        process.start()
        self.workers[name] = process

    def kill_one(self) -> None:
        name = self._dice.choice(list(self.workers))
        process = self.workers.pop(name)
        if process.is_alive() and process.pid:
            os.kill(process.pid, signal.SIGKILL)
            self.kills += 1
        process.join(30)
        self.hire(name if self._dice.random() < 0.5 else "")

    def close(self) -> None:
        for process in self.workers.values():
            process.kill()
            process.join(30)


@pytest.fixture
def pool(repository: Path, store: str) -> Iterator[WorkerPool]:
    commit_text(repository, "landlane.toml", SETTINGS)
    made = WorkerPool(repository, random.Random(SEED))
    yield made
    made.close()


def make_plan(dice: random.Random) -> str:
    """Tasks that wait for up to three of those before them, some with paths in each other's way."""
    lines: list[str] = []
    for number in range(TASKS):
        before = dice.sample(range(max(0, number - 40), number), min(number, dice.choice((0, 0, 1, 2, 3))))
        facts = [f"(after: n{other})" for other in before] + ["(kind: chore)", "(attempts: 100)"]
        facts += [f"(path: {dice.choice(PATHS)})"] if dice.random() < 0.3 else []
        lines.append(f"- [ ] n{number} {' '.join(facts)}")
    return "\n".join(lines)


@pytest.mark.promise(
    "tasks.end-once-in-order",
    "Every task ends exactly once and after its dependencies, however many owners are killed.",
)
def test_every_task_ends_exactly_once_and_in_order_while_owners_are_killed(
    pool: WorkerPool, repository: Path
) -> None:
    print(f"seed {SEED}, {TASKS} tasks, {WORKERS} workers")
    dice = random.Random(SEED + 1)
    repo = open_repository(str(repository))
    added = import_checklist(repo, None, make_plan(dice), force=True).added
    assert len(added) == TASKS
    for _ in range(WORKERS):
        pool.hire()
    until = time.monotonic() + LIMIT_SECONDS
    while count_tasks(repo):
        assert time.monotonic() < until, f"seed {SEED}: {count_tasks(repo)} after {LIMIT_SECONDS} s"
        time.sleep(dice.uniform(0.05, 0.4))
        pool.kill_one()
    entries = all_entries(repo.store)
    print(f"{pool.kills} kills, {sum(entry.kind == 'task.returned' for entry in entries)} tasks came back")
    assert find_trouble(entries) == []
    assert verify_journal(repo).trouble == ()
    repo.close()


def find_trouble(entries: list[JournalEntry]) -> list[str]:
    """What the journal tells that must not have happened."""
    after: dict[str, list[str]] = {}
    paths: dict[str, list[str]] = {}
    at_work: dict[str, str] = {}
    done: set[str] = set()
    trouble: list[str] = []
    for entry in entries:
        facts = json.loads(entry.data)
        task = facts.get("task", "")
        if entry.kind == "task.added":
            after[task] = facts["after"]
            paths[task] = [text for text, _ in facts["paths"]]
        elif entry.kind == "task.taken":
            if task in at_work or task in done:
                trouble.append(f"{task} was given to {entry.agent} while {at_work.get(task, 'it was done')}")
            trouble += [f"{task} began before {one} was done" for one in after[task] if one not in done]
            trouble += [f"{task} and {one} on one path" for one in at_work if _meet(paths[task], paths[one])]
            at_work[task] = entry.session
        elif entry.kind in ("task.failed", "task.returned", "task.done"):
            if at_work.pop(task, "") != entry.session:
                trouble.append(f"{task}: {entry.kind} by {entry.agent}, who did not have it")
            if entry.kind == "task.done":
                done.add(task)
    return trouble + [f"{task} never ended" for task in after if task not in done]


def _meet(mine: list[str], theirs: list[str]) -> bool:
    return any(overlap(parse(one), parse(other)) for one in mine for other in theirs)
