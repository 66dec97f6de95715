"""A crowd of real processes that all want the same at once; tells as JSON what each of them got.

Started as a program of its own, so that it can fork: it has no threads yet. All sleep on one pipe until the
last of them is ready.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from landlane.sessions import join as sessions
from landlane.state import keys as state
from landlane.state import numbers, slots
from landlane.testing.repositories import open_test_repository

if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from tests.support.project import Project

LIMIT_SECONDS = 100


def append(repo: Repository, session: Session, who: int, turn: int) -> Any:
    return state.append_state(repo, session, "crowd/list", f"{who}.{turn}").version


def add(repo: Repository, session: Session, who: int, turn: int) -> Any:
    return state.append_state(repo, session, "crowd/sum", who, reducer="sum").version


def create(repo: Repository, session: Session, who: int, turn: int) -> Any:
    return type(state.set_state(repo, session, f"crowd/{turn}", who, expect=0)).__name__


def number(repo: Repository, session: Session, who: int, turn: int) -> Any:
    return numbers.give_number(repo, session, "migration", is_new_kind=True).number


def port(repo: Repository, session: Session, who: int, turn: int) -> Any:
    outcome = slots.take_slot(repo, session, slots.make_slot_request(repo, "port", name=f"turn{turn}"))
    assert isinstance(outcome, slots.SlotTaken), outcome
    return outcome.slot.place


JOBS: dict[str, Callable[[Repository, Session, int, int], Any]] = {
    "append": append,
    "add": add,
    "create": create,
    "number": number,
    "port": port,
}


def ask_crowd(project: Project, job: str, processes: int, turns: int = 1) -> list[list[Any]]:
    """What each process got in each of its turns."""
    words = [
        sys.executable,
        __file__,
        str(project.repository),
        project.place,
        job,
        str(processes),
        str(turns),
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def main() -> None:
    repository, place, job, processes, turns = sys.argv[1:]
    if "://" in place:  # once, and not in each of the processes that are forked
        importlib.import_module("landlane.store.postgres.store")
        importlib.import_module("psycopg")
    ready, start, answers = os.pipe(), os.pipe(), [os.pipe() for _ in range(int(processes))]
    for who in range(int(processes)):
        if not os.fork():
            try:
                repo = open_test_repository(Path(repository), place)
                session = sessions.join(repo, f"crowd{who}").session
                os.write(ready[1], b"r")
                os.read(start[0], 1)
                got = [JOBS[job](repo, session, who, turn) for turn in range(int(turns))]
                os.write(answers[who][1], json.dumps(got).encode() + b"\n")
            except BaseException:  # noqa: BLE001 - told to whoever waits for the answer
                traceback.print_exc()
                os.write(ready[1], b"r")
                os.write(answers[who][1], b"\n")
            finally:
                os._exit(0)
    waiting = int(processes)
    while waiting:
        waiting -= len(os.read(ready[0], waiting))
    os.write(start[1], b"g" * int(processes))
    shown = [os.read(answer[0], 65_536) for answer in answers]
    if b"\n" in shown:
        sys.exit("somebody failed, see above")
    print(json.dumps([json.loads(one) for one in shown]))


if __name__ == "__main__":
    main()
