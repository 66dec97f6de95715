"""The journal: one entry for each change, a chain that shows every edit, and followers that miss nothing."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING

import psycopg
import pytest

from landlane.app.verify_journal import verify_journal
from landlane.errors import LandlaneError
from landlane.journal import read as journal
from landlane.journal import verify
from landlane.store.journal_chain import START, check_chain, seal
from tests.support.sites import MINUTE, SECOND, Background, granted, opened
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.store.interface import Transaction
    from landlane.store.journal_chain import Entry
    from tests.support.sites import Site

pytestmark = pytest.mark.contract


def spoil(site: Site, *commands: str) -> None:
    """What somebody with a database shell can do; the triggers against accidents are removed first."""
    site.entries()  # whoever reads seals
    if site.is_postgres:
        with psycopg.connect(site.place, options="-c search_path=landlane") as connection:
            connection.execute("DROP TRIGGER journal_is_append_only ON journal")
            for command in commands:
                connection.execute(command.encode())
    else:
        with sqlite3.connect(site.place) as database:
            database.execute("DROP TRIGGER journal_is_never_changed")
            database.execute("DROP TRIGGER journal_is_never_cut")
            for command in commands:
                database.execute(command)
        database.close()


def trouble(site: Site) -> tuple[str, ...]:
    return verify.verify(site.repo(), []).trouble


# -------------------------------------------------------------------------------------------- recording


@pytest.mark.promise(
    "journal.one-entry-per-change",
    "Each change has exactly one journal entry, and a call without a change has none.",
)
def test_each_change_has_one_entry(site: Site) -> None:
    ann = site.agent("ann")
    ann.take("src", "docs/{a,b}")
    ann.take("src")
    ann.renew()
    ann.shows_life()
    ann.release("src")
    ann.take("lib", ttl_ms=SECOND)
    site.clock.advance(MINUTE)
    ann.renew("lib")
    ann.leave()

    told = [(entry.kind, entry.facts().get("pattern")) for entry in site.entries()]

    assert told == [
        ("repository.begun", None),
        ("session.joined", None),
        ("claim.taken", "src"),
        ("claim.taken", "docs/{a,b}"),
        ("claim.released", "src"),
        ("claim.taken", "lib"),
        ("claim.lapsed", "lib"),
        ("claim.taken", "lib"),
        ("claim.released", "docs/{a,b}"),
        ("claim.released", "lib"),
        ("session.left", None),
    ]


def test_a_grant_is_recorded_with_all_that_is_needed_to_build_it_again(site: Site) -> None:
    ann = site.agent("ann")
    claim = granted(ann.claim("src/*.py", ttl_ms=MINUTE, task="T1", note="why", is_shared=True))[0]

    newest = site.entries()[-1]

    assert (newest.kind, newest.agent, newest.session) == ("claim.taken", "ann", ann.session.id)
    assert newest.facts() == {
        "kind": "glob",
        "mode": "shared",
        "note": "why",
        "pattern": "src/*.py",
        "task": "T1",
        "token": claim.token,
        "ttl_ms": MINUTE,
    }


def test_entries_bear_the_calendars_time(site: Site) -> None:
    ann = site.agent("ann")
    site.clock.advance(5 * MINUTE)
    ann.take("src")

    joined, taken = site.entries()[-2:]

    assert taken.at - joined.at == 5 * MINUTE
    assert taken.at == site.clock.wall_ms()


def test_a_change_that_fails_leaves_no_entry(site: Site) -> None:
    ann = site.agent("ann")
    before = site.entries()

    def work(tx: Transaction) -> None:
        tx.record("claim.taken", "ann", ann.session.id, {"pattern": "x"})
        raise LookupError("at the last moment")

    with pytest.raises(LookupError):
        ann.repo.store.change(work)
    with pytest.raises(LandlaneError):
        ann.release("src")

    assert site.entries() == before


def test_positions_have_no_gaps_and_the_chain_holds(site: Site) -> None:
    ann, bob = site.agent("ann"), site.agent("bob")
    for number in range(20):
        ann.take(f"a/{number}")
        bob.is_refused(f"a/{number}")
        bob.take(f"b/*/{number}")

    entries = site.entries()
    verdict = verify.verify(ann.repo, [])

    assert [entry.position for entry in entries] == list(range(1, len(entries) + 1))
    assert (verdict.entries, verdict.head, verdict.trouble) == (len(entries), entries[-1].hash, ())
    assert check_chain(entries, head=START).trouble == ()


def test_a_stretch_of_the_journal_can_be_read(site: Site) -> None:
    ann = site.agent("ann")
    ann.take("a", "b", "c")

    read = journal.read_entries(ann.repo, after=2, most=2)

    assert [entry.facts()["pattern"] for entry in read] == ["a", "b"]
    assert journal.last_position(ann.repo) == 5


def test_the_last_word_on_a_path_is_found(site: Site) -> None:
    ann, bob = site.agent("ann"), site.agent("bob")
    ann.take("src/**/*.py")
    ann.release()
    bob.take("docs")

    found = journal.last_word_on(bob.repo, bob.pattern("src/api/users.py"))

    assert found is not None
    assert (found.kind, found.agent) == ("claim.released", "ann")
    assert journal.last_word_on(bob.repo, bob.pattern("lib")) is None


# -------------------------------------------------------------------------------------------- tampering


@pytest.mark.promise(
    "journal.accidents-are-refused",
    "The database itself refuses accidental edits of the journal.",
)
@pytest.mark.parametrize("command", ["UPDATE journal SET agent = 'eve'", "DELETE FROM journal"])
def test_an_accidental_edit_is_refused_by_the_database(site: Site, command: str) -> None:
    site.agent("ann").take("src")
    before = site.entries()

    if site.is_postgres:
        with (
            psycopg.connect(site.place, options="-c search_path=landlane") as connection,
            pytest.raises(psycopg.errors.RaiseException, match="append-only"),
        ):
            connection.execute(command.encode())
    else:
        database = sqlite3.connect(site.place)
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            database.execute(command)
        database.close()

    assert site.entries() == before


@pytest.mark.promise("journal.edits-show", "An edited journal entry is detected.")
@pytest.mark.own_database
@pytest.mark.parametrize(
    "change",
    [
        "kind = 'claim.released'",
        "agent = 'eve'",
        "session = 's-eve'",
        "at = at + 1",
        "number = number + 1000",
        "data = replace(data, 'src', 'lib')",
        "hash = 'abc'",
    ],
)
def test_an_edited_entry_shows(site: Site, change: str) -> None:
    ann = site.agent("ann")
    ann.take("src")
    ann.take("docs")
    assert trouble(site) == ()

    spoil(site, f"UPDATE journal SET {change} WHERE position = 3")

    found = trouble(site)
    assert found
    assert all("entry 3" in line or "entry 4" in line or "granted src" in line for line in found)


@pytest.mark.promise("journal.cuts-show", "An entry removed from the middle of the journal is detected.")
@pytest.mark.own_database
def test_an_entry_cut_out_of_the_middle_shows(site: Site) -> None:
    ann = site.agent("ann")
    ann.take("a", "b", "c")
    ann.release()

    spoil(site, "DELETE FROM journal WHERE position IN (3, 4)")

    assert trouble(site) == ("entries 3 to 4 are missing",)


@pytest.mark.own_database
def test_two_entries_that_changed_places_show(site: Site) -> None:
    site.agent("ann").take("a", "b", "c")

    spoil(
        site,
        "UPDATE journal SET position = position + 1000 WHERE position IN (4, 5)",
        "UPDATE journal SET position = 1009 - position WHERE position > 1000",
    )

    assert trouble(site)


@pytest.mark.promise(
    "journal.tail-cuts-show",
    "Entries removed from the end of the journal are detected by comparing with journal.jsonl.",
)
@pytest.mark.own_database
def test_a_tail_cut_off_shows_against_the_file(site: Site) -> None:
    with opened(site) as repo:
        ann = site.agent("ann")
        ann.take("a", "b")
        ann.release()
        repo.settle()
        assert verify_journal(repo).trouble == ()

        spoil(site, "DELETE FROM journal WHERE position > 4")

        assert verify_journal(repo).trouble == (
            "the store was cut: journal.jsonl knows 2 newer entries, up to 6",
        )


@pytest.mark.own_database
def test_a_tail_cut_off_shows_by_what_is_still_held(site: Site) -> None:
    site.agent("ann").take("a", "b")

    spoil(site, "DELETE FROM journal WHERE position > 3")

    assert trouble(site) == ("the store was cut: the entry that granted b is gone",)


@pytest.mark.own_database
def test_a_chain_that_was_rewritten_with_care_still_shows_against_the_file(site: Site) -> None:
    with opened(site) as repo:
        ann = site.agent("ann")
        ann.take("a")
        ann.release()
        repo.settle()
        before, last = site.entries()[-2:]
        forged = seal(
            before.hash, last.position, last.number, last.at, last.kind, "eve", last.session, last.data
        )

        spoil(site, f"UPDATE journal SET agent = 'eve', hash = '{forged}' WHERE position = {last.position}")

        assert trouble(site) == ()
        assert verify_journal(repo).trouble == (
            f"entry {last.position} in journal.jsonl differs from the store",
        )


# -------------------------------------------------------------------------------------------- following


WRITING_PROCESS = """
import sys
from pathlib import Path
from landlane.claims import held, take as claims
from landlane.sessions import join as sessions
from landlane.testing.repositories import open_test_repository
repo = open_test_repository(Path(sys.argv[1]), sys.argv[2])
session = sessions.join(repo, sys.argv[3]).session
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[4])):
    pattern = repo.git.pattern_of(f"{session.agent}/{number}", "literal")
    claims.take(repo, session, claims.make_request(repo, (pattern,)))
    if number % 2:
        held.release(repo, session, None)
"""


def start_writer(site: Site, name: str, claims: int) -> subprocess.Popen[str]:
    """A real process that has joined, and takes claims as soon as it is told to."""
    command = [sys.executable, "-c", WRITING_PROCESS, str(site.repository), site.place, name, str(claims)]
    writer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ready\n"
    return writer


def follow_until(site: Site, after: int, is_enough: Callable[[list[Entry]], bool]) -> list[Entry]:
    """Entries as they come, until there are enough."""
    seen: list[Entry] = []
    for entry in journal.follow(site.repo(), after):
        seen.append(entry)
        if is_enough(seen):
            break
    return seen


@pytest.mark.promise(
    "journal.followers-are-woken",
    "A follower of the journal is woken when another process writes.",
)
def test_a_follower_is_woken_by_what_another_process_writes(
    live_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "_POLL_SECONDS", 60.0)  # polling alone would come too late
    writer = start_writer(live_site, "ann", 2)
    after = journal.last_position(live_site.repo())
    follower = Background(lambda: follow_until(live_site, after, lambda seen: len(seen) == 4))
    wait_until(lambda: live_site.listeners() == 1)

    writer.communicate("go\n", timeout=30)

    assert [entry.kind for entry in follower.result(20)] == ["claim.taken"] * 2 + ["claim.released"] * 2


@pytest.mark.promise(
    "journal.followers-miss-nothing",
    "Followers of the journal miss no entry while several processes write.",
)
def test_followers_miss_nothing_while_several_processes_write(live_site: Site) -> None:
    writers = [start_writer(live_site, name, 30) for name in ("ann", "bob", "cid")]
    total = journal.last_position(live_site.repo()) + 3 * 60
    followers = [
        Background(lambda: follow_until(live_site, 0, lambda seen: len(seen) == total)) for _ in range(2)
    ]

    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    one, two = (follower.result(60) for follower in followers)
    for writer in writers:
        writer.communicate(timeout=30)

    assert one == two == live_site.entries()
    assert [entry.position for entry in one] == list(range(1, total + 1))
    assert check_chain(one).trouble == ()


def test_a_follower_begins_behind_the_position_it_names(live_site: Site) -> None:
    ann = live_site.agent("ann")
    ann.take("a", "b", "c")

    seen = follow_until(live_site, 4, lambda seen: len(seen) == 1)

    assert [entry.facts()["pattern"] for entry in seen] == ["c"]


def test_a_follower_ends_when_it_is_told_to(live_site: Site) -> None:
    live_site.agent("ann")

    assert list(journal.follow(live_site.repo(), 0, is_done=lambda: True)) == []
