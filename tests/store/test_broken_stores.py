"""Stores that cannot be used: each says what is wrong and what to do, and is left as it is."""

from __future__ import annotations

import contextlib
import os
import pwd
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane import Landlane
from landlane.app.store_place import POINTER
from landlane.errors import StoreError
from tests.mcp.speaking import McpClient
from tests.support.git import commit_text
from tests.support.shell import LANDLANE, Shell, fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.acceptance


@pytest.fixture
def used(shell: Shell) -> Shell:
    """A repository in which ann holds something; its store is closed and all in one file."""
    with Landlane(shell.folder, agent="ann") as ann:
        ann.claim("held.py")
    return shell


def store_of(shell: Shell) -> Path:
    return shell.folder / ".git" / "landlane" / "store.db"


# ------------------------------------------------------------------------------ what the environment names


def test_a_folder_gets_a_store_of_its_own_inside(shell: Shell, tmp_path: Path) -> None:
    elsewhere = shell.with_env(LANDLANE_STORE=str(tmp_path))

    elsewhere.run_json("claim", "held.py", "--as", "bob")

    assert elsewhere.run_json("store", "info")["store"]["place"] == str(tmp_path / "store.db")
    assert elsewhere.holders() == {"held.py": "bob"}


def test_a_relative_place_is_the_same_from_every_folder_and_worktree(shell: Shell) -> None:
    (shell.folder / "src").mkdir()
    shell.git("worktree", "add", "--quiet", "../linked")
    elsewhere = shell.with_env(LANDLANE_STORE="state.db")

    places = {
        where.run_json("store", "info")["store"]["place"]
        for where in (elsewhere, elsewhere.at("src"), elsewhere.at("../linked"))
    }

    assert places == {str(shell.folder / "state.db")}


def test_a_text_file_is_no_store_and_is_left_alone(shell: Shell, tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("a shopping list, long enough to be read as pages\n" * 100, encoding="utf-8")
    before = text.read_bytes()

    shell.with_env(LANDLANE_STORE=str(text)).run_error("STORE_CORRUPT", "claims", exit=1)

    assert text.read_bytes() == before


def test_the_database_of_another_program_is_left_alone(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "cookies.db"
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE cookies (name)")
        db.commit()
    before = path.read_bytes()

    shell.with_env(LANDLANE_STORE=str(path)).run_error("NOT_A_STORE", "claim", "a", "--as", "bob", exit=1)
    shell.with_env(LANDLANE_STORE=str(path)).run_json("doctor", "--fix", exit=1)

    assert path.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["cookies.db", "repository"]


def test_an_unknown_kind_of_store_is_told(shell: Shell) -> None:
    answer = shell.with_env(LANDLANE_STORE="mysql://db/landlane").run_error(
        "STORE_UNKNOWN_KIND", "claims", exit=1
    )

    assert answer["message"] == "mysql:// is not supported; use a file or postgresql://"
    assert answer["hint"] == "export LANDLANE_STORE=postgresql://db/landlane"
    answer = shell.run_error("STORE_UNKNOWN_KIND", "store", "move", "mysql://db/x", exit=1)
    assert answer["hint"] == "landlane store move postgresql://db/x"


def test_the_hint_about_an_unknown_kind_of_store_hides_the_password(shell: Shell) -> None:
    url = "mysql://ann:s3cret@db/x"
    named = shell.with_env(LANDLANE_STORE=url).run_error("STORE_UNKNOWN_KIND", "claims", exit=1)
    moved = shell.run_error("STORE_UNKNOWN_KIND", "store", "move", url, exit=1)

    assert named["hint"] == "export LANDLANE_STORE=postgresql://ann:…@db/x"
    assert "s3cret" not in str(moved)


def test_a_server_that_does_not_answer_is_told_at_once_and_without_the_password(shell: Shell) -> None:
    pytest.importorskip("psycopg")
    url = "postgresql://ann:hunter2@127.0.0.1:1/landlane"
    began = time.monotonic()

    answer = shell.with_env(LANDLANE_STORE=url).run_error("STORE_UNREACHABLE", "claims", exit=1)

    assert time.monotonic() - began < 10
    assert answer["message"] == "cannot reach PostgreSQL at 127.0.0.1:1: connection refused"
    assert answer["hint"] == "is it running? pg_isready -h 127.0.0.1 -p 1"
    assert "hunter2" not in str(answer)
    unreadable = shell.with_env(LANDLANE_STORE="postgresql://ann:hunter2@[::x/landlane")
    assert "hunter2" not in str(unreadable.run_error("STORE_UNREACHABLE", "claims", exit=1))


@pytest.mark.parametrize("place", ["/proc/store.db", "/dev/null/store.db", "/not/there/store.db"])
def test_a_place_where_nothing_can_be_written_is_told(shell: Shell, place: str) -> None:
    answer = shell.with_env(LANDLANE_STORE=place).run_json("claims", exit=1)

    assert answer["code"] in ("STORE_UNOPENABLE", "STORE_READONLY")
    assert os.path.dirname(place) in answer["message"]


# --------------------------------------------------------------------------------- damage to the file itself


def _truncate(path: Path) -> None:
    os.truncate(path, 5000)


def _empty(path: Path) -> None:
    os.truncate(path, 0)


def _scribble(path: Path) -> None:
    path.write_bytes(os.urandom(20_000))


def _spoil_a_page(path: Path) -> None:
    with path.open("r+b") as file:
        for page in range(1, 6):
            file.seek(page * 4096)
            file.write(b"\xa5" * 4096)


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (_truncate, "STORE_CORRUPT"),
        (_empty, "STORE_LOST"),
        (_scribble, "STORE_CORRUPT"),
        (Path.unlink, "STORE_LOST"),
        (_spoil_a_page, "STORE_CORRUPT"),
    ],
)
def test_a_damaged_store_stops_every_command_and_is_kept_as_it_is(used: Shell, damage, code: str) -> None:
    damage(store_of(used))
    before = fingerprint(used.folder)

    claim = used.run_error(code, "claim", "new.py", "--as", "bob", exit=1)
    status = used.run_error(code, "status", exit=1)
    checks = used.run_json("doctor", exit=1)["checks"]

    assert "doctor --fix" in claim["hint"]
    assert "doctor --fix" in status["hint"]
    assert [check["name"] for check in checks if not check["ok"]] == ["store"]
    assert fingerprint(used.folder) == before


def test_a_newer_store_is_refused_politely_and_not_touched(used: Shell) -> None:
    with contextlib.closing(sqlite3.connect(store_of(used))) as db:
        db.execute("UPDATE meta SET value = '99' WHERE key IN ('schema', 'readable_by')")
        db.commit()
    before = fingerprint(used.folder)

    for words in (["claim", "new.py", "--as", "bob"], ["claims"], ["store", "rebuild"]):
        answer = used.run_error("STORE_NEWER", *words, exit=1)
    used.run_json("doctor", "--fix", exit=1)

    assert "(schema 99)" in answer["message"]
    assert fingerprint(used.folder) == before


def make_older(shell: Shell) -> None:
    with contextlib.closing(sqlite3.connect(store_of(shell))) as db:
        db.execute("UPDATE meta SET value = '0' WHERE key IN ('schema', 'readable_by')")
        db.execute("PRAGMA user_version=0")
        db.commit()


@pytest.mark.slow
def test_an_older_store_is_refused_by_every_entry_point_and_not_touched(used: Shell) -> None:
    make_older(used)
    before = fingerprint(used.folder)

    for words in (["claim", "new.py", "--as", "bob"], ["claims"], ["status"], ["store", "info"]):
        answer = used.run_error("STORE_OLDER", *words, exit=1)
    used.run_json("doctor", "--fix", exit=1)
    with pytest.raises(StoreError) as caught:
        Landlane(used.folder, agent="bob")
    with McpClient(used.folder, "--as", "bob") as bob:
        told = bob.call("claim", paths=["new.py"])

    assert answer["hint"].endswith(": landlane store rebuild")
    assert (caught.value.code, caught.value.hint) == ("STORE_OLDER", answer["hint"])
    assert (told["code"], told["hint"]) == ("STORE_OLDER", answer["hint"])
    assert fingerprint(used.folder) == before


def test_an_older_store_is_rebuilt_from_its_journal_when_asked_to(used: Shell) -> None:
    make_older(used)
    older = store_of(used).read_bytes()

    used.run_json("store", "rebuild")

    assert used.holders() == {"held.py": "ann"}
    assert [path.read_bytes() for path in store_of(used).parent.glob("store.before-*.db")] == [older]


def test_an_id_that_was_lost_is_told_and_never_made_up(used: Shell) -> None:
    (used.folder / ".git" / "landlane" / "repository").write_bytes(b"")

    used.run_error("REPOSITORY_ID_BROKEN", "claims", exit=1)


@pytest.mark.promise("store.never-in-two", "When the location of the store is unknown, every command stops.")
def test_a_pointer_to_the_store_that_says_nothing_stops_every_command(used: Shell) -> None:
    for text in ("", "\n", "relative/path"):
        (used.folder / ".git" / "landlane" / POINTER).write_text(text, encoding="utf-8")

        used.run_error("STORE_POINTER_BROKEN", "claims", exit=1)


# ------------------------------------------------------------------------------------------------ locked


_BACKUP = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def locked(path: Path, script: Path) -> Iterator[int]:
    """Lock a store by another program, and yield its pid."""
    script.write_text(_BACKUP, encoding="utf-8")
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, script, path], stdin=pipe, stdout=pipe, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "locked\n"
        yield program.pid
        program.communicate("")


def test_a_store_that_stays_locked_is_given_up_after_the_wait_that_the_settings_allow(
    used: Shell, tmp_path: Path
) -> None:
    commit_text(used.folder, "landlane.toml", '[store]\nwait = "1s"\n')
    began = time.monotonic()

    with locked(store_of(used), tmp_path / "backup.py") as pid:
        busy = used.run_error("STORE_BUSY", "claim", "new.py", "--as", "ann", exit=5)
        assert used.holders() == {"held.py": "ann"}  # readers do not wait

    assert busy["message"] == f"the store has been locked for 1 s by process {pid} (backup.py)"
    assert busy["hint"] == f"see what it does: ps -fp {pid}"
    assert 1 < time.monotonic() - began < 20
    assert used.run_json("claim", "new.py", "--as", "ann")["ok"]


# --------------------------------------------------------------------------------------------- forbidden


@pytest.fixture
def commoner(shell: Shell) -> Shell:
    """A shell whose user may do only what the files' modes say."""
    (shell.folder / "forbidden").touch(mode=0o444)
    humble = shell.without_root()
    if humble.run_program("sh", "-c", "exec 2>/dev/null; : >> forbidden").exit == 0:
        pytest.skip("nothing is forbidden to this user")
    return humble


def test_a_store_that_may_not_be_written_is_told(commoner: Shell) -> None:
    commoner.run_json("claim", "a", "--as", "ann")
    state = commoner.folder / ".git" / "landlane"
    for path in (*state.rglob("*"), state):
        path.chmod(0o555 if path.is_dir() else 0o444)

    answer = commoner.run_error("STORE_READONLY", "claim", "b", "--as", "ann", exit=1)

    assert answer["message"] == "cannot write .git/landlane: permission denied"
    assert answer["hint"] == "make it writable: chmod -R u+rwX .git/landlane"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_store_that_belongs_to_another_user_names_the_owner(commoner: Shell) -> None:
    commoner.run_json("claim", "a", "--as", "ann")
    state = commoner.folder / ".git" / "landlane"
    for path in (*state.rglob("*"), state):
        os.chown(path, pwd.getpwnam("daemon").pw_uid, -1)

    answer = commoner.run_error("STORE_FORBIDDEN", "claim", "b", "--as", "ann", exit=1)

    assert answer["message"] == "cannot write .git/landlane: it belongs to daemon"
    assert answer["hint"] == 'sudo chown -R "$USER" .git/landlane'


def test_a_state_folder_that_may_not_be_searched_is_told(commoner: Shell) -> None:
    commoner.run_json("claim", "a", "--as", "ann")
    (commoner.folder / ".git" / "landlane").chmod(0)

    answer = commoner.run_error("STORE_READONLY", "claim", "b", "--as", "ann", exit=1)

    assert answer["hint"] == "make it writable: chmod -R u+rwX .git/landlane"


def test_a_git_directory_that_may_not_be_written_is_told(commoner: Shell) -> None:
    (commoner.folder / ".git").chmod(0o555)

    answer = commoner.run_error("STORE_READONLY", "claim", "b", "--as", "ann", exit=1)

    assert answer["message"] == "cannot write .git: permission denied"


def test_settings_that_may_not_be_read_are_told(commoner: Shell) -> None:
    settings = commoner.folder / "landlane.toml"
    settings.write_text("", encoding="utf-8")
    settings.chmod(0)

    assert commoner.run_json("claims")["claims"] == []
    reported = "landlane.toml cannot be read: Permission denied; the last valid settings hold"
    checks = commoner.run_json("doctor", exit=1)["checks"]
    assert [check["found"] for check in checks if not check["ok"]] == [reported]
    local = commoner.folder / ".git" / "landlane" / "local.toml"
    local.touch(mode=0)
    assert "local.toml" in commoner.run_error("SETTINGS_UNREADABLE", "claims")["message"]


def test_a_pointer_to_the_store_that_may_not_be_read_never_parts_the_state_in_two(commoner: Shell) -> None:
    commoner.run_json("claim", "a", "--as", "ann")
    pointer = commoner.folder / ".git" / "landlane" / POINTER
    pointer.write_text("/elsewhere/store.db\n", encoding="utf-8")
    pointer.chmod(0)

    commoner.run_error("STORE_FORBIDDEN", "claims", exit=1)


def test_a_secret_that_another_user_keeps_is_not_guessed(commoner: Shell) -> None:
    commoner.run_json("claim", "a", "--as", "ann")
    (commoner.folder / ".git" / "landlane" / "sessions" / "ann").chmod(0)

    commoner.run_error("AGENT_IN_USE", "claim", "a", "--as", "ann", exit=3)


def test_the_command_is_where_the_tests_believe() -> None:
    assert os.access(LANDLANE, os.X_OK), "make setup"
