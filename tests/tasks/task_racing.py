"""Lets real processes race for tasks, round after round: one task, one owner, no overlap.

Started as a program of its own, so that it can fork: it has no threads yet. The racers sleep on one pipe; one
write wakes them all. Even and odd rounds have pipes of their own, so that a quick racer cannot run twice.
"""

from __future__ import annotations

import json
import os
import random
import select
import struct
import sys
import traceback
from pathlib import Path

from landlane.patterns.pattern import overlap
from landlane.sessions import join as sessions
from landlane.tasks.change import drop_task
from landlane.tasks.import_checklist import import_checklist
from landlane.tasks.pick import Picked, next_task
from landlane.tasks.records import declared_patterns, list_tasks
from landlane.testing.repositories import open_test_repository

ROUND_SECONDS = 60.0
REPLY = struct.Struct("<iiq")  # round, racer, number of the task (0: none)
READY, FAILED = -1, -2

# Some overlap, some do not.
PATHS = ("src/a.py", "src/*.py", "src/**", "docs/x.md", "docs", "lib/{a,b}.py", "lib/b.py", "tests/t.py", "")


class TaskRacer:
    """One of the processes; ends what it won in the round before, then asks for more."""

    def __init__(self, repository: Path, place: str, number: int) -> None:
        self._repo = open_test_repository(repository, place)
        # Two racers of each name: sessions are shared, as by the processes of one agent.
        self._session = sessions.join(self._repo, f"r{number // 2}").session
        self._number = number

    def run(self, race: int) -> bytes:
        outcome = next_task(self._repo, self._session)
        won = outcome.task.id[1:] if isinstance(outcome, Picked) else 0
        return REPLY.pack(race, self._number, int(won))


class TaskRace:
    """Starts the racers, adds tasks, gives the sign, and looks at who won."""

    def __init__(self, repository: Path, place: str, processes: int, seed: int) -> None:
        self._dice = random.Random(seed)
        self._processes = processes
        self._signs = (os.pipe(), os.pipe())
        self._replies, reply_end = os.pipe()
        self._repo = open_test_repository(repository, place)
        self._session = sessions.join(self._repo, "starter").session
        self.won: list[int] = []
        for number in range(processes):
            if not os.fork():
                self._be_racer(repository, place, number, reply_end)
        self._collect(READY)

    def _be_racer(self, repository: Path, place: str, number: int, reply_end: int) -> None:
        try:
            racer = TaskRacer(repository, place, number)
            os.write(reply_end, REPLY.pack(READY, number, 0))
            for race in range(sys.maxsize):
                if os.read(self._signs[race % 2][0], 1) != b"g":
                    break
                os.write(reply_end, racer.run(race))
        except BaseException:  # noqa: BLE001 - told to whoever waits for the answer
            traceback.print_exc()
            os.write(reply_end, REPLY.pack(FAILED, number, 0))
        finally:
            os._exit(0)

    def _collect(self, race: int) -> list[int]:
        """The tasks that the racers have won."""
        answers: list[int] = []
        while len(answers) < self._processes:
            if not select.select([self._replies], [], [], ROUND_SECONDS)[0]:
                raise TimeoutError(f"round {race}: {len(answers)} of {self._processes} answered")
            answer, number, task = REPLY.unpack(os.read(self._replies, REPLY.size))
            assert answer != FAILED, f"round {race}: racer {number} failed, see above"
            assert answer == race, f"racer {number} is in round {answer}, not in {race}"
            answers.append(task)
        return [task for task in answers if task]

    def run(self, races: int, count: int, *, with_paths: bool) -> None:
        for race in range(races):
            self._add(count, with_paths=with_paths)
            os.write(self._signs[race % 2][1], b"g" * self._processes)
            won = self._collect(race)
            self._check(race, won, count, with_paths=with_paths)
            for task in list_tasks(self._repo, ("active", "ready")):
                drop_task(self._repo, self._session, task.id, "the round is over")
        for _, sign in self._signs:
            os.write(sign, b"e" * self._processes)
        for _ in range(self._processes):
            os.wait()

    def _add(self, count: int, *, with_paths: bool) -> None:
        lines: list[str] = []
        for number in range(count):
            path = self._dice.choice(PATHS) if with_paths else ""
            lines.append(
                f"- [ ] n{number}" + (f" (path: {path})" if path else "") + f" (key: {random.random()})"
            )
        import_checklist(self._repo, self._session, "\n".join(lines), force=True)

    def _check(self, race: int, won: list[int], count: int, *, with_paths: bool) -> None:
        assert len(won) == len(set(won)), f"round {race}: one task to two owners: {sorted(won)}"
        self.won += won
        active = list_tasks(self._repo, ("active",))
        assert {int(task.id[1:]) for task in active} == set(won), f"round {race}: {active} {won}"
        if not with_paths:
            assert len(won) == min(count, self._processes), f"round {race}: {len(won)} of {count} were taken"
            return
        pattern_of = self._repo.git.pattern_of
        paths = [
            (task.id, pattern_of(*pair)) for task in active for pair in declared_patterns(task.stored_paths)
        ]
        meet = [
            (one, other)
            for index, (one, mine) in enumerate(paths)
            for other, theirs in paths[:index]
            if one != other and overlap(mine, theirs)
        ]
        assert not meet, f"round {race}: these overlap and are both active: {meet}"


def main() -> None:
    repository, place, processes, races, count, paths, seed = sys.argv[1:]
    course = TaskRace(Path(repository), place, int(processes), int(seed))
    course.run(int(races), int(count), with_paths=paths == "paths")
    assert len(course.won) == len(set(course.won))
    print(json.dumps({"won": len(course.won)}))


if __name__ == "__main__":
    main()
