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
from landlane.store.journal_chain import EMPTY_CHAIN_HASH, check_chain, hash_entry
from tests.support.project import MINUTE, SECOND, Background, granted, opened
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.store.interface import Transaction
    from landlane.store.journal_chain import JournalEntry
    from tests.support.project import Project

pytestmark = pytest.mark.contract


def spoil(project: Project, *commands: str) -> None:
    """What somebody with a database shell can do; the triggers against accidents are removed first."""
    project.entries()  # whoever reads seals
    if project.is_postgres:
        with psycopg.connect(project.place, options="-c search_path=landlane") as connection:
            connection.execute("DROP TRIGGER journal_is_append_only ON journal")
            for command in commands:
                connection.execute(command.encode())
    else:
        with sqlite3.connect(project.place) as database:
            database.execute("DROP TRIGGER journal_is_never_changed")
            database.execute("DROP TRIGGER journal_is_never_cut")
            for command in commands:
                database.execute(command)
        database.close()


def trouble(project: Project) -> tuple[str, ...]:
    return verify.verify(project.repo(), []).trouble


# -------------------------------------------------------------------------------------------- recording


@pytest.mark.promise(
    "journal.one-entry-per-change",
    "Each change has exactly one journal entry, and a call without a change has none.",
)
def test_each_change_has_one_entry(project: Project) -> None:
    ann = project.agent("ann")
    ann.take("src", "docs/{a,b}")
    ann.take("src")
    ann.renew()
    ann.authenticate()
    ann.release("src")
    ann.take("lib", ttl_ms=SECOND)
    project.clock.advance(MINUTE)
    ann.renew("lib")
    ann.leave()

    answer = [(entry.kind, entry.facts().get("pattern")) for entry in project.entries()]

    assert answer == [
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


def test_a_grant_is_recorded_with_all_that_is_needed_to_build_it_again(project: Project) -> None:
    ann = project.agent("ann")
    claim = granted(ann.claim("src/*.py", ttl_ms=MINUTE, task="T1", note="why", is_shared=True))[0]

    newest = project.entries()[-1]

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


def test_entries_bear_the_calendars_time(project: Project) -> None:
    ann = project.agent("ann")
    project.clock.advance(5 * MINUTE)
    ann.take("src")

    joined, taken = project.entries()[-2:]

    assert taken.at - joined.at == 5 * MINUTE
    assert taken.at == project.clock.wall_ms()


def test_a_change_that_fails_leaves_no_entry(project: Project) -> None:
    ann = project.agent("ann")
    before = project.entries()

    def work(tx: Transaction) -> None:
        tx.record("claim.taken", "ann", ann.session.id, {"pattern": "x"})
        raise LookupError("at the last moment")

    with pytest.raises(LookupError):
        ann.repo.store.change(work)
    with pytest.raises(LandlaneError):
        ann.release("src")

    assert project.entries() == before


def test_positions_have_no_gaps_and_the_chain_holds(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    for number in range(20):
        ann.take(f"a/{number}")
        bob.expect_refusal(f"a/{number}")
        bob.take(f"b/*/{number}")

    entries = project.entries()
    verdict = verify.verify(ann.repo, [])

    assert [entry.position for entry in entries] == list(range(1, len(entries) + 1))
    assert (verdict.entries, verdict.head, verdict.trouble) == (len(entries), entries[-1].hash, ())
    assert check_chain(entries, head=EMPTY_CHAIN_HASH).trouble == ()


def test_a_stretch_of_the_journal_can_be_read(project: Project) -> None:
    ann = project.agent("ann")
    ann.take("a", "b", "c")

    read = journal.read_entries(ann.repo, after=2, most=2)

    assert [entry.facts()["pattern"] for entry in read] == ["a", "b"]
    assert journal.last_position(ann.repo) == 5


def test_the_last_word_on_a_path_is_found(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    ann.take("src/**/*.py")
    ann.release()
    bob.take("docs")

    found = journal.find_last_claim_entry(bob.repo, bob.pattern("src/api/users.py"))

    assert found is not None
    assert (found.kind, found.agent) == ("claim.released", "ann")
    assert journal.find_last_claim_entry(bob.repo, bob.pattern("lib")) is None


# -------------------------------------------------------------------------------------------- tampering


@pytest.mark.promise(
    "journal.accidents-are-refused",
    "The database itself refuses accidental edits of the journal.",
)
@pytest.mark.parametrize("command", ["UPDATE journal SET agent = 'eve'", "DELETE FROM journal"])
def test_an_accidental_edit_is_refused_by_the_database(project: Project, command: str) -> None:
    project.agent("ann").take("src")
    before = project.entries()

    if project.is_postgres:
        with (
            psycopg.connect(project.place, options="-c search_path=landlane") as connection,
            pytest.raises(psycopg.errors.RaiseException, match="append-only"),
        ):
            connection.execute(command.encode())
    else:
        database = sqlite3.connect(project.place)
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            database.execute(command)
        database.close()

    assert project.entries() == before


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
def test_an_edited_entry_shows(project: Project, change: str) -> None:
    ann = project.agent("ann")
    ann.take("src")
    ann.take("docs")
    assert trouble(project) == ()

    spoil(project, f"UPDATE journal SET {change} WHERE position = 3")

    found = trouble(project)
    assert found
    assert all("entry 3" in line or "entry 4" in line or "granted src" in line for line in found)


@pytest.mark.promise("journal.cuts-show", "An entry removed from the middle of the journal is detected.")
@pytest.mark.own_database
def test_an_entry_cut_out_of_the_middle_shows(project: Project) -> None:
    ann = project.agent("ann")
    ann.take("a", "b", "c")
    ann.release()

    spoil(project, "DELETE FROM journal WHERE position IN (3, 4)")

    assert trouble(project) == ("entries 3 to 4 are missing",)


@pytest.mark.own_database
def test_two_entries_that_changed_places_show(project: Project) -> None:
    project.agent("ann").take("a", "b", "c")

    spoil(
        project,
        "UPDATE journal SET position = position + 1000 WHERE position IN (4, 5)",
        "UPDATE journal SET position = 1009 - position WHERE position > 1000",
    )

    assert trouble(project)


@pytest.mark.promise(
    "journal.tail-cuts-show",
    "Entries removed from the end of the journal are detected by comparing with journal.jsonl.",
)
@pytest.mark.own_database
def test_a_tail_cut_off_shows_against_the_file(project: Project) -> None:
    with opened(project) as repo:
        ann = project.agent("ann")
        ann.take("a", "b")
        ann.release()
        repo.settle()
        assert verify_journal(repo).trouble == ()

        spoil(project, "DELETE FROM journal WHERE position > 4")

        assert verify_journal(repo).trouble == (
            "the store was cut: journal.jsonl knows 2 newer entries, up to 6",
        )


@pytest.mark.own_database
def test_a_tail_cut_off_shows_by_what_is_still_held(project: Project) -> None:
    project.agent("ann").take("a", "b")

    spoil(project, "DELETE FROM journal WHERE position > 3")

    assert trouble(project) == ("the store was cut: the entry that granted b is gone",)


@pytest.mark.own_database
def test_a_chain_that_was_rewritten_with_care_still_shows_against_the_file(project: Project) -> None:
    with opened(project) as repo:
        ann = project.agent("ann")
        ann.take("a")
        ann.release()
        repo.settle()
        before, last = project.entries()[-2:]
        forged = hash_entry(
            before.hash, last.position, last.number, last.at, last.kind, "eve", last.session, last.data
        )

        spoil(
            project, f"UPDATE journal SET agent = 'eve', hash = '{forged}' WHERE position = {last.position}"
        )

        assert trouble(project) == ()
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


def start_writer(project: Project, name: str, claims: int) -> subprocess.Popen[str]:
    """A real process that has joined, and takes claims as soon as it is told to."""
    command = [
        sys.executable,
        "-c",
        WRITING_PROCESS,
        str(project.repository),
        project.place,
        name,
        str(claims),
    ]
    writer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ready\n"
    return writer


def follow_until(
    project: Project, after: int, is_enough: Callable[[list[JournalEntry]], bool]
) -> list[JournalEntry]:
    """Entries as they come, until there are enough."""
    seen: list[JournalEntry] = []
    for entry in journal.follow(project.repo(), after):
        seen.append(entry)
        if is_enough(seen):
            break
    return seen


@pytest.mark.promise(
    "journal.followers-are-woken",
    "A follower of the journal is woken when another process writes.",
)
def test_a_follower_is_woken_by_what_another_process_writes(
    live_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "_POLL_SECONDS", 60.0)  # polling alone would come too late
    writer = start_writer(live_project, "ann", 2)
    after = journal.last_position(live_project.repo())
    follower = Background(lambda: follow_until(live_project, after, lambda seen: len(seen) == 4))
    wait_until(lambda: live_project.listeners() == 1)

    writer.communicate("go\n", timeout=30)

    assert [entry.kind for entry in follower.result(20)] == ["claim.taken"] * 2 + ["claim.released"] * 2


@pytest.mark.promise(
    "journal.followers-miss-nothing",
    "Followers of the journal miss no entry while several processes write.",
)
def test_followers_miss_nothing_while_several_processes_write(live_project: Project) -> None:
    writers = [start_writer(live_project, name, 30) for name in ("ann", "bob", "cid")]
    total = journal.last_position(live_project.repo()) + 3 * 60
    followers = [
        Background(lambda: follow_until(live_project, 0, lambda seen: len(seen) == total)) for _ in range(2)
    ]

    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    one, two = (follower.result(60) for follower in followers)
    for writer in writers:
        writer.communicate(timeout=30)

    assert one == two == live_project.entries()
    assert [entry.position for entry in one] == list(range(1, total + 1))
    assert check_chain(one).trouble == ()


def test_a_follower_begins_behind_the_position_it_names(live_project: Project) -> None:
    ann = live_project.agent("ann")
    ann.take("a", "b", "c")

    seen = follow_until(live_project, 4, lambda seen: len(seen) == 1)

    assert [entry.facts()["pattern"] for entry in seen] == ["c"]


def test_a_follower_ends_when_it_is_told_to(live_project: Project) -> None:
    live_project.agent("ann")

    assert list(journal.follow(live_project.repo(), 0, is_done=lambda: True)) == []
