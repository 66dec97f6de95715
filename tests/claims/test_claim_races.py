"""Real processes that ask for the same thing in the same instant: exactly one gets it, each time.

`LANDLANE_RACES=100000` runs about so many rounds on SQLite, and a fifth of it on PostgreSQL, instead of the
few hundred of `make test`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.project import Project

pytestmark = [pytest.mark.contract, pytest.mark.soak, pytest.mark.slow]

RACING = Path(__file__).with_name("racing.py")
# How many rounds on SQLite for each number of processes; on PostgreSQL a fifth.
ROUNDS = {2: 200, 8: 50, 64: 5}
KINDS = ("path", "globs", "sets")
# Read before the tests' home is sealed.
FACTOR = max(int(os.environ.get("LANDLANE_RACES", "0")) / (len(KINDS) * sum(ROUNDS.values())), 1.0)
LIMIT_SECONDS = 100 + 40 * (FACTOR - 1)


def race(project: Project, kind: str, processes: int, rounds: int) -> dict[str, int]:
    """Run the races in a process of their own; it checks each round and tells what the journal knows."""
    command = [sys.executable, RACING, project.repository, project.place, kind, str(processes), str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def rounds_for(project: Project, processes: int) -> int:
    return int(ROUNDS[processes] * FACTOR / (5 if project.is_postgres else 1))


@pytest.mark.promise(
    "claims.one-winner",
    "When many processes claim the same path at the same instant, exactly one gets it.",
)
@pytest.mark.timeout(LIMIT_SECONDS + 20)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("processes", ROUNDS)
def test_exactly_one_of_many_processes_gets_what_all_ask_for_at_once(
    live_project: Project, processes: int, kind: str
) -> None:
    rounds = rounds_for(live_project, processes)

    answer = race(live_project, kind, processes, rounds)

    assert answer == {"claim.taken": rounds * (2 if kind == "sets" else 1), "session.joined": processes}


@pytest.mark.promise(
    "sessions.one-name-one-session",
    "Processes that join under one name at the same time share one session.",
)
@pytest.mark.timeout(LIMIT_SECONDS + 20)
def test_processes_that_join_under_one_name_at_once_are_one_session(live_project: Project) -> None:
    rounds = int((8 if live_project.is_postgres else 20) * FACTOR)

    answer = race(live_project, "join", 8, rounds)

    assert answer == {"claim.taken": 0, "session.joined": rounds}
