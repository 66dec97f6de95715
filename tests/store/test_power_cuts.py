"""Power cuts under SQLite: whatever was acknowledged is there afterwards, and nothing is there by halves.

The real store runs over a simulated disk: a VFS that passes everything on, and remembers for each file what
was written and what was synced. A cut lays out, in another repository, what the disk could hold at that
moment: all that was synced, and of the rest nothing, a part, or everything. There the ordinary store opens it
after a "reboot".
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from landlane.api import Landlane, Refused, Taken
from landlane.app.open import open_repository
from landlane.app.verify_journal import verify_journal
from landlane.errors import LandlaneError, StoreError
from landlane.ids import epoch_of
from landlane.store.journal_chain import JournalEntry
from landlane.testing.fake_clock import FakeClock
from tests.support.store_stress import Replay, all_entries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from landlane.repository import Repository

apsw = pytest.importorskip("apsw", reason="no apsw here: it comes with requirements/faults.txt")

pytestmark = [pytest.mark.simulation, pytest.mark.faults, pytest.mark.timeout(120)]

SEED = int(os.environ.get("LANDLANE_FAULT_SEED", "0")) or random.SystemRandom().randrange(2**32)
ROUNDS = 5 * int(float(os.environ.get("LANDLANE_FAULT_SECONDS", "5")))
SECTOR = 512
CODES = {apsw.IOError: apsw.SQLITE_IOERR}  # of what this VFS raises itself
CHECKPOINT_PAGES = 12  # so that the log is emptied into the file again and again
_numbers = itertools.count()


# ------------------------------------------------------------------------------- the simulated disk


class DiskFile:
    """One file: what is safe, and what was written since the last sync, in order."""

    def __init__(self) -> None:
        self.safe = b""
        self.is_named = False  # whether its name would survive
        self.unsynced: list[tuple[int, bytes | None]] = []  # (offset, data), or (size, None) for a truncation

    def sync(self) -> None:
        self.safe, self.unsynced, self.is_named = patched(self.safe, self.unsynced), [], True

    def copy(self) -> DiskFile:
        other = DiskFile()
        other.safe, other.is_named, other.unsynced = self.safe, self.is_named, list(self.unsynced)
        return other


def patched(content: bytes, writes: list[tuple[int, bytes | None]]) -> bytes:
    if not writes:
        return content
    new = bytearray(content)
    for offset, data in writes:
        if data is None:
            del new[offset:]
            new.extend(bytes(offset - len(new)))
        else:
            new.extend(bytes(max(0, offset + len(data) - len(new))))
            new[offset : offset + len(data)] = data
    return bytes(new)


class Disk:
    """All files of one folder, as a power cut would leave them."""

    def __init__(self, files: dict[str, DiskFile] | None = None) -> None:
        self.files: dict[str, DiskFile] = files or {}
        self.on_write: Callable[[], None] = lambda: None
        self.fails_to_sync = False

    def file(self, path: str) -> DiskFile:
        return self.files.setdefault(path, DiskFile())

    def picture(self) -> Disk:
        """The disk as it is now, to be cut later."""
        return Disk({path: file.copy() for path, file in self.files.items()})

    def lay_out(self, folder: Path, dice: random.Random | None = None) -> None:
        """Write what is left after a cut: only what was synced, or with dice also some of the rest."""
        for path, file in self.files.items():
            content = patched(file.safe, chosen(file.unsynced, dice) if dice else [])
            if file.is_named or content:
                (folder / os.path.basename(path)).write_bytes(content)


def chosen(writes: list[tuple[int, bytes | None]], dice: random.Random) -> list[tuple[int, bytes | None]]:
    """What the disk may have got done of some writes: the first few, or any, the last of them torn."""
    if dice.random() < 0.5:
        picked = writes[: dice.randint(0, len(writes))]
    else:
        picked = [write for write in writes if dice.random() < 0.6]
    if picked and dice.random() < 0.5:
        offset, data = picked[-1]
        if data is not None and len(data) > SECTOR:
            picked[-1] = (offset, data[: dice.randrange(0, len(data), SECTOR)])
    return picked


class DiskVFS(apsw.VFS):  # type: ignore[misc, name-defined]
    """Passes every call on to the real files, and tells the simulated disk."""

    def __init__(self, disk: Disk) -> None:
        self.name = f"power-cut-{next(_numbers)}"
        self.disk = disk
        super().__init__(self.name, "")

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        return DiskVFSFile(self.disk, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        super().xDelete(filename, syncdir)
        self.disk.files.pop(filename, None)


class DiskVFSFile(apsw.VFSFile):  # type: ignore[misc, name-defined]
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self._disk = disk
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else name
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._disk.on_write()
        super().xWrite(data, offset)
        self._disk.file(self._path).unsynced.append((offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:
        self._disk.on_write()
        super().xTruncate(newsize)
        self._disk.file(self._path).unsynced.append((newsize, None))

    def xSync(self, flags: int) -> None:
        self._disk.on_write()
        if self._disk.fails_to_sync:
            raise apsw.IOError("the disk could not write")
        super().xSync(flags)
        self._disk.file(self._path).sync()


class SimulatedCursor:
    """What `sqlite3` calls a cursor."""

    def __init__(self, rows: list[tuple[Any, ...]], count: int) -> None:
        self._rows = iter(rows)
        self.rowcount = count

    def fetchone(self) -> tuple[Any, ...] | None:
        return next(self._rows, None)

    def fetchall(self) -> list[tuple[Any, ...]]:
        return list(self._rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._rows


def _named_row(cursor: Any, values: Any) -> dict[str, Any]:
    return {column[0]: value for column, value in zip(cursor.get_description(), values, strict=True)}


class ApswConnection:
    """As much of `sqlite3.Connection` as the store uses, over apsw and so over the simulated disk."""

    forced_sync = ""  # to see what a more careless store would lose

    def __init__(self, path: str, vfs: str) -> None:
        self._db = apsw.Connection(path, vfs=vfs)
        self._db.row_trace = _named_row

    @property
    def in_transaction(self) -> bool:
        return self._db.in_transaction

    def execute(self, statement: str, parameters: Any = ()) -> SimulatedCursor:
        if statement.startswith("PRAGMA wal_autocheckpoint"):
            statement = f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}"
        if self.forced_sync and statement.startswith("PRAGMA synchronous"):
            statement = f"PRAGMA synchronous={self.forced_sync}"
        try:
            rows = list(self._db.execute(statement, parameters))
        except apsw.Error as problem:
            error = sqlite3.OperationalError(str(problem))
            error.sqlite_errorcode = getattr(problem, "extendedresult", 0) or CODES.get(type(problem), 1)
            raise error from problem
        return SimulatedCursor(rows, self._db.changes())

    def close(self) -> None:
        self._db.close()


# ------------------------------------------------------------------------------------ the test bench


class PowerCutTestbed:
    """A repository on the simulated disk, and another one in which its wrecks are opened."""

    def __init__(self, live: Path, wreck: Path, dice: random.Random) -> None:
        self.live = live
        self.dice = dice
        self.disk = Disk()
        self.clock = FakeClock()
        self._wreck = wreck
        self.pictures: list[Disk] = []
        self.disk.on_write = self._maybe_take_picture

    @property
    def state(self) -> Path:
        return self.live / ".git/landlane"

    def _maybe_take_picture(self) -> None:
        if self.dice.random() < 0.2:
            self.pictures.append(self.disk.picture())

    @contextlib.contextmanager
    def after_cut(self, disk: Disk, dice: random.Random | None, journal_text: bytes) -> Iterator[Repository]:
        """The repository as found when the machine is up again."""
        state = self._wreck / ".git/landlane"
        shutil.rmtree(state, ignore_errors=True)
        state.mkdir()
        for name in ("repository", "sessions"):  # plain files that are older than what this is about
            source = self.state / name
            if source.is_dir():
                shutil.copytree(source, state / name)
            elif source.exists():
                shutil.copy(source, state / name)
        disk.lay_out(state, dice)
        if journal_text:
            (state / "journal.jsonl").write_bytes(journal_text)
        clock = FakeClock(boot_ms=30_000, wall_ms=self.clock.wall_ms() + 90_000)  # of another boot
        repo = open_repository(str(self._wreck), clock=clock)
        try:
            yield repo
        finally:
            repo.close()

    def journal_text(self) -> bytes:
        path = self.state / "journal.jsonl"
        return path.read_bytes() if path.exists() else b""

    def damaged(self, text: bytes) -> bytes:
        """The journal's copy, which nobody syncs, after a cut: whole, torn, padded, behind, or gone."""
        ends = [index + 1 for index, byte in enumerate(text) if byte == 10]
        choice = self.dice.randrange(5)
        if choice == 0 or not ends:
            return text
        if choice == 1:
            return text[: self.dice.randrange(len(text))]
        if choice == 2:
            return text[: self.dice.choice(ends)] + bytes(self.dice.randrange(1, 5000))
        return text[: self.dice.choice(ends)] if choice == 3 else b""


@pytest.fixture
def testbed(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PowerCutTestbed]:
    print(f"seed {SEED}")
    wreck = tmp_path / "wreck"
    subprocess.run(["git", "init", "--quiet", "--template=", str(wreck)], check=True, timeout=30)
    made = PowerCutTestbed(repository, wreck, random.Random(SEED))
    vfs = DiskVFS(made.disk)
    ordinary = sqlite3.connect

    def connect(path: str, **options: Any) -> Any:
        # Two copies of SQLite must never open one file in one process: each would drop the other's locks.
        if Path(path).is_relative_to(made.live):
            return ApswConnection(path, vfs.name)
        return ordinary(path, **options)

    monkeypatch.setattr(sqlite3, "connect", connect)
    yield made
    vfs.unregister()


def entries_of(repo: Repository) -> list[JournalEntry]:
    return all_entries(repo.store)


def stored_tokens(repo: Repository) -> set[int]:
    return {row["token"] for row in repo.store.view(lambda snapshot: snapshot.all("claims_all"))}


def assert_sound(repo: Repository) -> None:
    assert repo.store.find_damage() == ""
    assert verify_journal(repo).trouble == ()


class RandomAgents:
    """Three agents on the live repository, who do something at random."""

    def __init__(self, testbed: PowerCutTestbed) -> None:
        self._bench = testbed
        self._dice = testbed.dice
        self.agents = {
            name: Landlane(testbed.live, agent=name, clock=testbed.clock) for name in ("ann", "bob", "cy")
        }
        self.acknowledged: set[int] = set()

    def act(self) -> str:
        name = self._dice.choice(sorted(self.agents))
        agent = self.agents[name]
        action = self._dice.choices(
            (self._claim, self._renew, self._release, self._leave, self._pause), (10, 3, 4, 1, 2)
        )[0]
        with contextlib.suppress(LandlaneError):  # stale or held: an answer as good as any other
            action(agent, name)
        return f"{name} {action.__name__}"

    def _claim(self, agent: Landlane, _: str) -> None:
        text = self._dice.choice(
            ("src/a.py", "src/b.py", "src/*.py", "docs/**", "{src,lib}/c.py", "x/y/z.txt")
        )
        text = text if self._dice.random() < 0.5 else f"many/{self._dice.randrange(10**6)}.txt"
        ttl = self._dice.choice(("5s", "60s", "10m"))
        outcome = agent.claim(text, ttl=ttl, shared=self._dice.random() < 0.2)
        if isinstance(outcome, Taken):
            self.acknowledged.update(claim.token for claim in outcome.granted)

    def _renew(self, agent: Landlane, _: str) -> None:
        self.acknowledged.update(claim.token for claim in agent.renew())

    def _release(self, agent: Landlane, _: str) -> None:
        mine = [claim for claim in agent.claims() if claim.session == agent.session.id]
        if mine:
            chosen_claim = self._dice.choice(mine)
            agent.release(chosen_claim.pattern, literal=chosen_claim.kind == "literal")

    def _leave(self, agent: Landlane, name: str) -> None:
        agent.leave()
        agent.close()
        self.agents[name] = Landlane(self._bench.live, agent=name, clock=self._bench.clock)

    def _pause(self, agent: Landlane, _: str) -> None:
        self._bench.clock.advance(self._dice.choice((1000, 20_000, 120_000)))
        agent.check("src/a.py")  # a sign of life, which is not forced to the disk

    def close(self) -> None:
        for agent in self.agents.values():
            agent.close()


# ------------------------------------------------------------------------------------------- the tests


def test_whatever_was_acknowledged_is_there_after_a_power_cut(testbed: PowerCutTestbed) -> None:
    agents = RandomAgents(testbed)
    live = open_repository(str(testbed.live), clock=testbed.clock)
    for _ in range(ROUNDS):
        did = agents.act()
        live.settle()
        with testbed.after_cut(testbed.disk, None, testbed.damaged(testbed.journal_text())) as repo:
            assert stored_tokens(repo) == stored_tokens(live), did
            assert entries_of(repo)[: len(entries_of(live))] == entries_of(live), did
            assert_sound(repo)
            assert_tokens_rise(repo, agents.acknowledged)
    agents.close()
    live.close()


def test_the_simulated_disk_forgets_what_a_careless_store_would_lose(
    testbed: PowerCutTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without this, the tests here could not fail."""
    monkeypatch.setattr(ApswConnection, "forced_sync", "NORMAL")
    agents = RandomAgents(testbed)
    live = open_repository(str(testbed.live), clock=testbed.clock)
    losses = 0
    for _ in range(20):
        agents.act()
        with testbed.after_cut(testbed.disk, None, b"") as repo:
            losses += len(entries_of(repo)) < len(entries_of(live))
    assert losses
    agents.close()
    live.close()


def assert_tokens_rise(repo: Repository, before: set[int]) -> None:
    newcomer = Landlane(repo.checkout.root, agent="newcomer", clock=repo.store.clock)
    outcome = newcomer.claim("after/the/cut.txt")
    assert isinstance(outcome, Taken)
    token = outcome.granted[0].token
    assert token > max(before, default=0)
    assert epoch_of(token) > epoch_of(max(before, default=0))
    newcomer.close()


def test_a_power_cut_in_the_middle_leaves_before_or_after_and_never_between(testbed: PowerCutTestbed) -> None:
    agents = RandomAgents(testbed)
    live = open_repository(str(testbed.live), clock=testbed.clock)
    cuts = rounds = 0
    while rounds < ROUNDS or cuts <= ROUNDS / 2:  # some schedules write little: go on
        assert rounds < 10 * ROUNDS
        rounds += 1
        before = entries_of(live)
        journal_before = testbed.journal_text()
        testbed.pictures.clear()
        did = agents.act()
        live.settle()
        after = entries_of(live)
        for picture in testbed.dice.sample(testbed.pictures, min(3, len(testbed.pictures))):
            cuts += 1
            with testbed.after_cut(picture, testbed.dice, testbed.damaged(journal_before)) as repo:
                assert_before_or_after(repo, before, after, did)
    print(f"{cuts} cuts")
    agents.close()
    live.close()


def assert_before_or_after(
    repo: Repository, before: list[JournalEntry], after: list[JournalEntry], did: str
) -> None:
    found = entries_of(repo)
    assert len(before) <= len(found) <= len(after), did
    assert found == after[: len(found)], did
    assert stored_tokens(repo) == set(Replay().walk(found).standing), did
    assert_sound(repo)


@pytest.mark.slow
def test_a_power_cut_while_the_store_is_made_leaves_none_or_a_whole_one(testbed: PowerCutTestbed) -> None:
    testbed.disk.on_write = lambda: testbed.pictures.append(testbed.disk.picture())
    live = open_repository(str(testbed.live), clock=testbed.clock)
    whole = entries_of(live)
    cuts = [(picture, dice) for picture in testbed.pictures for dice in (None, testbed.dice, testbed.dice)]
    for picture, dice in testbed.dice.sample(cuts, min(60, len(cuts))):
        with testbed.after_cut(picture, dice, b"") as repo:
            assert [entry.kind for entry in entries_of(repo)] == [entry.kind for entry in whole]
            assert_sound(repo)
            assert_tokens_rise(repo, set())
    live.close()


def test_a_store_older_than_its_journal_begins_an_epoch_above_all_that_the_journal_knows(
    testbed: PowerCutTestbed,
) -> None:
    """A disk that promised more than it kept, or a backup: the plain file beside the store knows more."""
    agents = RandomAgents(testbed)
    live = open_repository(str(testbed.live), clock=testbed.clock)
    for _ in range(10):
        agents.act()
    old = testbed.disk.picture()
    head = len(entries_of(live))
    while len(entries_of(live)) < head + 5:
        agents.act()
        live.settle()
    for text in (testbed.journal_text(), testbed.journal_text()[:-7]):
        with testbed.after_cut(old, None, text) as repo:
            assert [entry.kind for entry in entries_of(repo)[head:]] == ["store.restored"]
            assert_sound(repo)
            assert_tokens_rise(repo, agents.acknowledged)
            assert len(list((Path(repo.state_folder)).glob("journal.before-*.jsonl"))) == 1
    agents.close()
    live.close()


def test_a_lease_found_after_a_power_cut_is_still_held_against_others(testbed: PowerCutTestbed) -> None:
    ann = Landlane(testbed.live, agent="ann", clock=testbed.clock)
    assert isinstance(ann.claim("src/**", ttl="10m"), Taken)
    with testbed.after_cut(testbed.disk, None, testbed.journal_text()) as repo:
        bob = Landlane(repo.checkout.root, agent="bob", clock=repo.store.clock)
        outcome = bob.claim("src/a.py")
        assert isinstance(outcome, Refused)
        assert outcome.refused[0].holder == "ann"
        again = Landlane(repo.checkout.root, agent="ann", clock=repo.store.clock)
        assert again.session.id == ann.session.id
        assert again.check("src/a.py").state == "held"
        bob.close()
        again.close()
    ann.close()


def test_a_disk_that_cannot_sync_fails_the_call_and_harms_nothing_acknowledged(
    testbed: PowerCutTestbed,
) -> None:
    ann = Landlane(testbed.live, agent="ann", clock=testbed.clock)
    acknowledged: set[int] = set()
    failed = 0
    codes: set[str] = set()
    for number in range(40):
        testbed.disk.fails_to_sync = testbed.dice.random() < 0.4
        try:
            outcome = ann.claim(f"src/{number}.py")
            assert isinstance(outcome, Taken)
            acknowledged.update(claim.token for claim in outcome.granted)
        except StoreError as error:
            codes.add(error.code)
            failed += 1
        testbed.disk.fails_to_sync = False
        with testbed.after_cut(testbed.disk, None, b"") as repo:
            assert acknowledged <= stored_tokens(repo)
            assert_sound(repo)
    assert failed > 3
    assert codes == {"STORE_IO"}
    assert acknowledged <= {claim.token for claim in ann.claims()}
    ann.close()
