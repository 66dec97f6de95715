"""Seeded traffic of many processes on a store, and a checker of what the store acknowledged.

Each process reports every result over a pipe, after the call has returned. The parent reads the pipes, kills
some processes and starts others. Every report counts as acknowledged, and `find_violations` compares the
reports with the journal: no acknowledged change may be missing, and no two claims may ever have conflicted.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import time
import traceback
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

from landlane.app.open import open_repository
from landlane.app.verify_journal import verify_journal
from landlane.claims import check, held
from landlane.claims import take as claims
from landlane.claims.claim_paths import claim_paths
from landlane.claims.model import ClaimMode, Refused, Taken
from landlane.claims.take import list_claims
from landlane.errors import LandlaneError, StoreError
from landlane.journal import read as journal
from landlane.patterns.pattern import overlap, parse
from landlane.sessions import join as sessions
from landlane.values import value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerProcess

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Store
    from landlane.store.journal_chain import JournalEntry

    Report = dict[str, Any]


LEASES_MS = (1000, 1500, 2500, 6000, 30_000)
GONE = frozenset({"session.left", "session.lapsed", "session.gone"})
_FILES = tuple(f"src/{folder}/m{number}.py" for folder in "abcd" for number in range(6))
_GLOBS = ("src/a/**", "src/*/m3.py", "src/{b,c}/m1.py", "src/**/m5.py", "docs/**", "src/d/m[0-2].py")
_SHARED = ("CHANGELOG.md", "registry/**", "registry/names.txt")
_OWN_PATHS = 60
# What a server of forked processes imports once for all of them.
PRELOADED = (
    "tests.support.store_stress",
    "landlane.store.sqlite.store",
    "landlane.store.postgres.store",
    "psycopg",
)
_PAUSE_SECONDS = 0.02
_SLOW_NS = 500_000_000  # copying the journal is told of only when it took so long


# ------------------------------------------------------------------------------------- one process


@value
class WorkerOptions:
    """What one process of the traffic is to do: where, under which names, by which dice, and how long."""

    folder: str
    seed: int
    names: tuple[str, ...]
    environment: dict[str, str]
    steps: int = 0  # 0: until it is killed
    waits: bool = True


class Agent:
    """One process of the traffic: does one thing after the other and reports what it was told."""

    def __init__(self, orders: WorkerOptions, report: Callable[[Report], None]) -> None:
        self._orders = orders
        self._report = report
        self._dice = random.Random(orders.seed)
        self._repo: Repository | None = None
        self._session: Session | None = None
        self._tokens: dict[int, tuple[str, str]] = {}
        self._began = 0
        self._doing = ""
        actions: dict[Callable[[], None], int] = {
            self._claim_file: 30,
            self._claim_glob: 12,
            self._claim_shared: 8,
            self._claim_several: 8,
            self._claim_own: 12,
            self._wait: 4 if orders.waits else 0,
            self._renew: 6,
            self._renew_all: 3,
            self._release: 14,
            self._release_all: 2,
            self._check: 4,
            self._look: 4,
            self._read: 3,
            self._leave: 1,
            self._reopen: 1,
        }
        self._actions = list(actions)
        self._weights = list(actions.values())

    def run(self) -> None:
        """Act until the steps are done, or for ever."""
        done = 0
        while not self._orders.steps or done < self._orders.steps:
            done += 1
            self._began = time.monotonic_ns()
            self._doing = "join"
            try:
                self._step()
            except StoreError as error:
                self._tell("failed", code=error.code, message=error.message)
                self._forget()
                time.sleep(_PAUSE_SECONDS)
            except LandlaneError as error:
                self._tell("declined", code=error.code)
                if error.code in ("SESSION_OVER", "NOT_YOUR_SESSION", "AGENT_IN_USE"):
                    self._session = None
            except Exception:  # noqa: BLE001 - whatever it is, the parent must hear of it
                self._tell("broke", trace=traceback.format_exc())
                self._forget()
        if self._repo is not None:
            self._repo.close()

    def _step(self) -> None:
        repo = self._repo = self._repo or open_repository(self._orders.folder)
        if self._session is None:
            self._tokens.clear()
            joined = sessions.join(repo, self._dice.choice(self._orders.names))
            self._session = joined.session
            if joined.is_new:
                self._tell("joined", session=joined.session.id, generation=joined.session.generation)
            repo.settle()
            self._began = time.monotonic_ns()
        action = self._dice.choices(self._actions, self._weights)[0]
        self._doing = action.__name__
        action()
        self._settle()

    def _settle(self) -> None:
        if self._repo is not None:
            began = time.monotonic_ns()
            self._repo.settle()
            if time.monotonic_ns() - began > _SLOW_NS:
                self._began = began
                self._tell("settled")

    def _tell(self, what: str, **facts: object) -> None:
        ended = time.monotonic_ns()
        asked_at = (time.time_ns() - (ended - self._began)) // 1_000_000
        self._report(
            {"what": what, "did": self._doing, "began": self._began, "ended": ended, "asked_at": asked_at}
            | facts
        )

    def _forget(self) -> None:
        """Begin anew with the store, as after a failure of unknown reach; a name finds its session again."""
        repo, self._repo, self._session = self._repo, None, None
        if repo is not None:
            repo.store.close()

    def _here(self) -> tuple[Repository, Session]:
        assert self._repo is not None
        assert self._session is not None
        return self._repo, self._session

    def _take(
        self, *texts: str, mode: ClaimMode = ClaimMode.EXCLUSIVE, partial: bool = False, wait_ms: int = 0
    ) -> None:
        repo, session = self._here()
        patterns = tuple(repo.git.pattern(text) for text in texts)
        request = claims.make_request(
            repo, patterns, mode=mode, ttl_ms=self._dice.choice(LEASES_MS), is_partial=partial
        )
        self._granted(claim_paths(repo, session, request, wait_ms))

    def _granted(self, outcome: Taken | Refused) -> None:
        _, session = self._here()
        if isinstance(outcome, Taken):
            tokens = [claim.token for claim in outcome.granted]
            self._tokens.update({claim.token: (claim.pattern, claim.kind) for claim in outcome.granted})
            self._tell("taken", tokens=tokens, session=session.id)
        if outcome.refused:
            others = [[one.session, one.held] for one in outcome.refused if not one.is_waiting]
            self._tell("refused", others=others, session=session.id)

    def _claim_file(self) -> None:
        self._take(self._dice.choice(_FILES))

    def _claim_glob(self) -> None:
        self._take(self._dice.choice(_GLOBS))

    def _claim_shared(self) -> None:
        self._take(
            self._dice.choice(_SHARED),
            mode=self._dice.choice(
                (ClaimMode.SHARED, ClaimMode.SHARED, ClaimMode.SHARED, ClaimMode.EXCLUSIVE)
            ),
        )

    def _claim_several(self) -> None:
        texts = self._dice.sample(_FILES, self._dice.randint(2, 4))
        self._take(*texts, partial=self._dice.random() < 0.5)

    def _claim_own(self) -> None:
        self._take(f"own/{self._dice.randrange(_OWN_PATHS)}.txt")

    def _wait(self) -> None:
        self._take(self._dice.choice(_FILES), wait_ms=self._dice.choice((100, 300, 700)))

    def _some(self) -> int | None:
        return self._dice.choice(sorted(self._tokens)) if self._tokens else None

    def _renew(self) -> None:
        repo, session = self._here()
        token = self._some()
        if token is not None:
            pattern = repo.git.pattern_of(*self._tokens[token])
            self._granted(held.renew(repo, session, (pattern,)))

    def _renew_all(self) -> None:
        repo, session = self._here()
        self._granted(held.renew(repo, session, None))

    def _release(self) -> None:
        repo, session = self._here()
        token = self._some()
        if token is not None:
            pattern = repo.git.pattern_of(*self._tokens.pop(token))
            held.release(repo, session, (pattern,), token=token)
            self._tell("released", tokens=[token], session=session.id)

    def _release_all(self) -> None:
        repo, session = self._here()
        held.release(repo, session, None)
        self._tokens.clear()

    def _check(self) -> None:
        repo, session = self._here()
        token = self._some()
        if token is not None:
            check.check(repo, session, repo.git.pattern_of(*self._tokens[token]), token)

    def _look(self) -> None:
        repo, _ = self._here()
        list_claims(repo)
        sessions.live_sessions(repo)

    def _read(self) -> None:
        repo, _ = self._here()
        newest = journal.last_position(repo)
        list(journal.read_entries(repo, max(0, newest - self._dice.randrange(200))))

    def _leave(self) -> None:
        repo, session = self._here()
        self._session = None
        sessions.leave(repo, session)
        self._tell("left", session=session.id)

    def _reopen(self) -> None:
        repo, _ = self._here()
        self._repo = self._session = None
        repo.close()
        self._repo = open_repository(self._orders.folder)


def run_agent(orders: WorkerOptions, pipe: Connection) -> None:
    """The whole life of one process of the traffic."""
    os.environ.clear()
    os.environ.update(orders.environment)
    # One write below the size of a pipe's buffer is whole or not there: a kill cannot tear a report.
    Agent(orders, lambda report: pipe.send_bytes(json.dumps(report).encode()[:4000])).run()
    pipe.close()


def run_reader(orders: WorkerOptions, pipe: Connection) -> None:
    """Lists all claims again and again, and reports how long that took and what went wrong."""
    os.environ.clear()
    os.environ.update(orders.environment)
    repo = open_repository(orders.folder)
    while True:
        began, failure = time.monotonic_ns(), ""
        try:
            list_claims(repo)
        except Exception:  # noqa: BLE001 - a reader must never fail, whatever the reason
            failure = traceback.format_exc()[-2000:]
        ended = time.monotonic_ns()
        pipe.send_bytes(
            json.dumps({"what": "read", "began": began, "ended": ended, "failure": failure}).encode()
        )
        time.sleep(0.005)


def run_verifier(orders: WorkerOptions, pipe: Connection) -> None:
    """Proves the journal again and again while it grows, and reports what it found wrong."""
    os.environ.clear()
    os.environ.update(orders.environment)
    while True:
        repo = open_repository(orders.folder)
        verdict = verify_journal(repo)
        pipe.send_bytes(json.dumps({"what": "verified", "trouble": verdict.trouble[:5]}).encode()[:4000])
        repo.close()
        time.sleep(0.5)


def run_follower(orders: WorkerOptions, pipe: Connection) -> None:
    """Follows the journal from its start and reports every entry as it comes."""
    os.environ.clear()
    os.environ.update(orders.environment)
    repo = open_repository(orders.folder)
    for entry in journal.follow(repo, 0):
        report = {"what": "entry", "position": entry.position, "number": entry.number, "at": entry.at}
        report |= {"kind": entry.kind, "agent": entry.agent, "session": entry.session, "data": entry.data}
        pipe.send_bytes(json.dumps(report | {"hash": entry.hash}).encode())


# --------------------------------------------------------------------------------------- the swarm


class ProcessGroup:
    """Many processes on one repository, and all that they reported.

    They are forked from a server that has everything imported, so that a killed one is replaced in
    milliseconds; leaving the `with` block kills whoever is left.
    """

    def __init__(self, folder: str | os.PathLike[str], *, seed: int, environment: Mapping[str, str]) -> None:
        self._folder = os.fspath(folder)
        self._environment = dict(environment)
        self._dice = random.Random(seed)
        self._repo = multiprocessing.get_context("forkserver")
        self._repo.set_forkserver_preload(list(PRELOADED))
        self._pipes: dict[Connection, ForkServerProcess] = {}
        self.agents: list[ForkServerProcess] = []
        self.reports: list[Report] = []
        self.kills = 0

    def start(
        self,
        target: Callable[[WorkerOptions, Connection], None] = run_agent,
        *,
        names: Sequence[str] = (),
        steps: int = 0,
        waits: bool = True,
    ) -> ForkServerProcess:
        """Start one more process."""
        reader, writer = self._repo.Pipe(duplex=False)
        orders = WorkerOptions(
            folder=self._folder,
            seed=self._dice.randrange(2**32),
            names=tuple(names),
            environment=self._environment,
            steps=steps,
            waits=waits,
        )
        process = self._repo.Process(target=target, args=(orders, writer), daemon=True)
        process.start()
        writer.close()
        self._pipes[reader] = process
        if target is run_agent:
            self.agents.append(process)
        return process

    def listen(self, seconds: float) -> None:
        """Collect what is reported within so many seconds."""
        until = time.monotonic() + seconds
        while self._pipes and (left := until - time.monotonic()) > 0:
            for reader in wait(list(self._pipes), left):
                self._take_from(reader)  # type: ignore[arg-type]

    def _take_from(self, reader: Connection) -> None:
        try:
            for _ in range(100):
                self.reports.append(json.loads(reader.recv_bytes()))
                if not reader.poll():
                    return
        except EOFError:
            self._pipes.pop(reader)
            reader.close()

    def kill(self, process: ForkServerProcess) -> None:
        """Kill a process as hard as can be; what it reported before still counts."""
        if process in self.agents:
            self.agents.remove(process)
        if process.pid is not None and process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            self.kills += 1
        process.join(30)

    def alive(self) -> list[ForkServerProcess]:
        """The processes that have neither ended nor been killed."""
        return [process for process in self._pipes.values() if process.is_alive()]

    def finish(self, seconds: float) -> bool:
        """Collect until all have ended by themselves; tells whether they did so in time."""
        until = time.monotonic() + seconds
        while self._pipes and time.monotonic() < until:
            self.listen(0.1)
        return not self._pipes

    def close(self) -> None:
        """Kill everybody, and collect what they had reported."""
        for process in list(self._pipes.values()):
            self.kill(process)
        self.finish(10)

    def __enter__(self) -> ProcessGroup:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# ------------------------------------------------------------------------------------- the checker


def all_entries(store: Store) -> list[JournalEntry]:
    """Every sealed entry, read without ending what has lapsed meanwhile."""
    found: list[JournalEntry] = []
    while page := store.entries(found[-1].position if found else 0, 1000):
        found += page
    return found


@value
class ReplayedClaim:
    """A claim as the journal tells it."""

    token: int
    pattern: str
    kind: str
    mode: str
    session: str


class Replay:
    """Walks a journal in order, keeps what stands, and notes whatever could not have happened."""

    def __init__(self) -> None:
        self.standing: dict[int, ReplayedClaim] = {}
        self.living: dict[str, str] = {}  # session → agent
        self.taken: dict[int, JournalEntry] = {}
        self.freed: dict[int, JournalEntry] = {}
        self.known: set[tuple[str, str]] = set()  # (session, pattern) of every grant
        self.joined: dict[str, JournalEntry] = {}
        self.ended: dict[str, JournalEntry] = {}
        self.trouble: list[str] = []
        self._generations: dict[str, int] = {}
        self._highest: dict[tuple[str, str], int] = {}  # (pattern, kind) → its highest token so far
        self._overlaps: dict[tuple[str, str, str, str], bool] = {}

    def walk(self, entries: Iterable[JournalEntry]) -> Replay:
        """Take in these entries."""
        for entry in entries:
            if entry.kind == "session.joined":
                self._join(entry)
            elif entry.kind in GONE:
                self._end(entry)
            elif entry.kind == "claim.taken":
                self._take(entry)
            elif entry.kind in ("claim.released", "claim.lapsed"):
                self._free(entry)
        return self

    def _complain(self, entry: JournalEntry, words: str) -> None:
        self.trouble.append(f"entry {entry.position} ({entry.kind} by {entry.agent}): {words}")

    def _join(self, entry: JournalEntry) -> None:
        if entry.agent in self.living.values():
            self._complain(entry, "the agent has a living session already")
        generation = entry.facts()["generation"]
        if generation != self._generations.get(entry.agent, 0) + 1:
            self._complain(entry, f"generation {generation} follows {self._generations.get(entry.agent, 0)}")
        self._generations[entry.agent] = generation
        self.living[entry.session] = entry.agent
        self.joined[entry.session] = entry

    def _end(self, entry: JournalEntry) -> None:
        if self.living.pop(entry.session, None) is None:
            self._complain(entry, "the session was over already")
        self.ended[entry.session] = entry
        for token in [claim.token for claim in self.standing.values() if claim.session == entry.session]:
            self._complain(entry, f"it ended while its claim {token} stood")
            del self.standing[token]

    def _take(self, entry: JournalEntry) -> None:
        facts = entry.facts()
        new = ReplayedClaim(
            session=entry.session, **{key: facts[key] for key in ("token", "pattern", "kind", "mode")}
        )
        if entry.session not in self.living:
            self._complain(entry, f"its session is over, but it was given {new.pattern} under {new.token}")
        if new.token in self.taken:
            self._complain(entry, f"token {new.token} was given out before")
        for old in self.standing.values():
            if (
                old.session != new.session
                and ClaimMode.EXCLUSIVE in (old.mode, new.mode)
                and self._meet(old, new)
            ):
                self._complain(entry, f"{new.pattern} was granted while {old.pattern} of {old.session} stood")
        for (pattern, kind), highest in self._highest.items():
            if highest >= new.token and self._overlap(pattern, kind, new.pattern, new.kind):
                self._complain(entry, f"token {new.token} follows {highest} on {pattern}")
        key = (new.pattern, new.kind)
        self._highest[key] = max(new.token, self._highest.get(key, 0))
        self.taken[new.token] = entry
        self.known.add((new.session, new.pattern))
        self.standing[new.token] = new

    def _free(self, entry: JournalEntry) -> None:
        token = entry.facts()["token"]
        if self.standing.pop(token, None) is None:
            self._complain(entry, f"claim {token} did not stand")
        self.freed[token] = entry

    def _meet(self, one: ReplayedClaim, other: ReplayedClaim) -> bool:
        return self._overlap(one.pattern, one.kind, other.pattern, other.kind)

    def _overlap(self, one: str, one_kind: str, other: str, other_kind: str) -> bool:
        key = (one, one_kind, other, other_kind)
        found = self._overlaps.get(key)
        if found is None:
            patterns = (
                parse(one, literal=one_kind == "literal"),
                parse(other, literal=other_kind == "literal"),
            )
            found = self._overlaps[key] = overlap(*patterns)
        return found


def find_violations(replay: Replay, reports: Sequence[Report]) -> list[str]:
    """What was acknowledged but is not in the journal, or stands there in an impossible order."""
    trouble = list(replay.trouble)
    placed: list[tuple[int, Report]] = []
    known: set[int] = set()
    for report in sorted(reports, key=lambda one: one.get("began", 0)):
        for entry, words in _entries_of(replay, report):
            if entry is None:
                trouble.append(f"acknowledged, but not in the journal: {words} {report}")
            # Asking again for what one holds gives the same grant, whose entry is older than the question.
            # Its time alone does not tell: in memory both may be in the same millisecond.
            elif entry.at >= report["asked_at"] and entry.position not in known:
                placed.append((entry.position, report))
                known.add(entry.position)
    return trouble + _out_of_order(placed)


def _entries_of(replay: Replay, report: Report) -> Iterator[tuple[JournalEntry | None, str]]:
    """The entries that must be there for what was reported."""
    what, session = report["what"], report.get("session", "")
    if what == "joined":
        yield replay.joined.get(session), "joined"
    elif what == "left":
        yield replay.ended.get(session), "left"
    elif what in ("taken", "released"):
        book = replay.taken if what == "taken" else replay.freed
        for token in report["tokens"]:
            entry = book.get(token)
            yield entry if entry is not None and entry.session == session else None, f"{what} {token}"
    elif what == "refused":
        for other, pattern in report["others"]:
            if (other, pattern) not in replay.known:
                yield None, f"refused for {pattern} of {other}"


def _out_of_order(placed: list[tuple[int, Report]]) -> list[str]:
    """Whoever was answered before another one asked must stand before it in the journal."""
    trouble: list[str] = []
    latest: Report | None = None
    for position, report in sorted(placed, key=lambda pair: pair[0]):
        if latest is not None and report["ended"] < latest["began"]:
            trouble.append(
                f"entry {position} was acknowledged before an earlier one was asked for: {report}, {latest}"
            )
        if latest is None or report["began"] > latest["began"]:
            latest = report
    return trouble
