"""Lets real processes race for the same thing, round after round, and checks each round.

Started as a program of its own, so that it can fork: it has no threads yet. The racers sleep on one pipe; one
write wakes them all. Even and odd rounds have pipes of their own, so that a quick racer cannot run twice.
"""

from __future__ import annotations

import json
import os
import select
import struct
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from landlane.claims import held as own_claims
from landlane.claims import take as claims
from landlane.claims.model import Taken
from landlane.claims.take import list_claims
from landlane.journal import read as journal
from landlane.journal import verify
from landlane.sessions import join as sessions
from landlane.testing.repositories import open_test_repository

if TYPE_CHECKING:
    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.join import Joined

ROUND_SECONDS = 60.0
REPLY = struct.Struct("<iiq10s")  # round, racer, token (0: refused), name of the holder or id of the session
READY, FAILED = -1, -2

# All of these cover src/a.py, each in another way.
GLOBS = ("{}/src/a.py", "{}/**/*.py", "{}/src/*", "{}", "{}/{{src,lib}}/a.*", "{}/s?c/[a-c].py")


def wanted(kind: str, race: int, racer: int) -> list[str]:
    """What one racer asks for in one round."""
    ground = f"race/{race}"
    if kind == "globs":
        return [GLOBS[(race + racer) % len(GLOBS)].format(ground)]
    if kind == "sets":  # in opposite orders, as two who would wait for each other
        return [f"{ground}/b", f"{ground}/a"] if racer % 2 else [f"{ground}/a", f"{ground}/b"]
    return [f"{ground}/a.py"]


def patterns(repo: Repository, texts: list[str]) -> tuple[Pattern, ...]:
    return tuple(repo.git.pattern_of(text, "glob") for text in texts)


class ClaimRacer:
    """One of the processes."""

    def __init__(self, repo: Repository, number: int, kind: str) -> None:
        self._repo = repo
        self._number = number
        self._kind = kind
        self._won: tuple[Pattern, ...] = ()
        self._joined: Joined | None = None if kind == "join" else sessions.join(repo, f"r{number}")

    def run(self, race: int) -> bytes:
        """One round; tells what came of it."""
        if self._joined is None:
            joined = sessions.join(self._repo, f"n{race}")
            return REPLY.pack(race, self._number, int(joined.is_new), joined.session.id[-10:].encode())
        asked = patterns(self._repo, wanted(self._kind, race, self._number))
        session = self._joined.session
        outcome = claims.take(self._repo, session, claims.make_request(self._repo, asked))
        if self._won:  # what was won before goes back only now, in the middle of the others' race
            own_claims.release(self._repo, session, self._won)
            self._won = ()
        if isinstance(outcome, Taken):
            self._won = asked
            return REPLY.pack(race, self._number, outcome.granted[-1].token, b"")
        return REPLY.pack(race, self._number, 0, outcome.refused[0].holder.encode())


class ClaimRace:
    """Starts the racers, gives the sign, and looks at who won."""

    def __init__(self, repository: Path, place: str, kind: str, processes: int) -> None:
        self._kind = kind
        self._processes = processes
        self._tokens = [0]
        self._signs = (os.pipe(), os.pipe())
        self._replies, reply_end = os.pipe()
        self._repo = open_test_repository(repository, place)
        for number in range(processes):
            if not os.fork():
                self._be_racer(repository, place, number, reply_end)
        self._collect(READY)

    def _be_racer(self, repository: Path, place: str, number: int, reply_end: int) -> None:
        for _, sign in self._signs:  # whoever waits for a sign wakes up when nobody is left to give it
            os.close(sign)
        try:
            racer = ClaimRacer(open_test_repository(repository, place), number, self._kind)
            os.write(reply_end, REPLY.pack(READY, number, 0, b""))
            for race in range(sys.maxsize):
                if os.read(self._signs[race % 2][0], 1) != b"g":
                    break
                os.write(reply_end, racer.run(race))
        except BaseException:  # noqa: BLE001 - told to whoever waits for the answer
            traceback.print_exc()
            os.write(reply_end, REPLY.pack(FAILED, number, 0, b""))
        finally:
            os._exit(0)

    def _collect(self, race: int) -> list[tuple[int, int, bytes]]:
        """The answers of all racers: who, token, and the word that came with it."""
        answers: list[tuple[int, int, bytes]] = []
        while len(answers) < self._processes:
            if not select.select([self._replies], [], [], ROUND_SECONDS)[0]:
                raise TimeoutError(f"round {race}: {len(answers)} of {self._processes} answered")
            answer, number, token, word = REPLY.unpack(os.read(self._replies, REPLY.size))
            assert answer != FAILED, f"round {race}: racer {number} failed, see above"
            assert answer == race, f"racer {number} is in round {answer}, not in {race}"
            answers.append((number, token, word.rstrip(b"\0")))
        return answers

    def run(self, races: int) -> None:
        for race in range(races):
            os.write(self._signs[race % 2][1], b"g" * self._processes)
            answers = self._collect(race)
            if self._kind == "join":
                self._check_join(race, answers)
            else:
                self._check_claim(race, answers)
        for _, sign in self._signs:
            os.write(sign, b"e" * self._processes)

    def _check_join(self, race: int, answers: list[tuple[int, int, bytes]]) -> None:
        assert len({word for _, _, word in answers}) == 1, f"round {race}: several sessions: {answers}"
        assert sum(is_new for _, is_new, _ in answers) == 1, f"round {race}: begun twice: {answers}"

    def _check_claim(self, race: int, answers: list[tuple[int, int, bytes]]) -> None:
        winners = [(number, token) for number, token, _ in answers if token]
        assert len(winners) == 1, f"round {race}: {len(winners)} grants: {answers}"
        ((winner, token),) = winners
        assert token > self._tokens[-1], f"round {race}: token {token} after {self._tokens[-1]}"
        self._tokens.append(token)
        named = {word for number, _, word in answers if number != winner}
        assert named <= {f"r{winner}".encode()}, f"round {race}: r{winner} won, the others name {named}"
        standing = list_claims(self._repo, patterns(self._repo, [f"race/{race}"]))
        assert {claim.agent for claim in standing} == {f"r{winner}"}, f"round {race}: {standing}"
        assert standing[-1].token == token

    def finish(self) -> dict[str, int]:
        """What the journal tells of it all."""
        for _ in range(self._processes):
            os.wait()
        trouble = verify.verify(self._repo, []).trouble
        assert not trouble, trouble
        kinds = [entry.kind for entry in journal.read_entries(self._repo)]
        return {kind: kinds.count(kind) for kind in ("claim.taken", "session.joined")}


def main() -> None:
    repository, place, kind, processes, races = sys.argv[1:]
    course = ClaimRace(Path(repository), place, kind, int(processes))
    course.run(int(races))
    print(json.dumps(course.finish()))


if __name__ == "__main__":
    main()
