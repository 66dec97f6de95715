"""Moving the state to another store and back: everything comes along, and the old store is out of use."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from landlane import Landlane
from landlane.app.store_place import ID_FILE, POINTER
from landlane.errors import StoreError
from tests.support.shell import Answer, Shell

if TYPE_CHECKING:
    from pathlib import Path

    from landlane.testing.postgres_server import PostgresServer

pytestmark = pytest.mark.acceptance

EPOCH = 2**32


@pytest.fixture
def used(shell: Shell) -> Shell:
    """A repository with sessions, claims of all kinds and a lease that was lost."""
    with Landlane(shell.folder, agent="ann") as ann:
        ann.claim("old.py")
        ann.leave()
    with Landlane(shell.folder, agent="ann", role="code") as ann:
        ann.claim("src/**", "{a,b}/x", note="at work: ü", task="T1")
        ann.claim("app/[id].tsx", literal=True, shared=True)
    shell.run_json("claim", "lost.py", "--as", "bob", "--ttl", "1s")
    shell.run_json("claim", "lost.py", "--as", "ann", "--wait", "20s")
    return shell


def portrait(shell: Shell) -> Answer:
    """All that must come along."""
    keys = ("pattern", "kind", "mode", "token", "holder", "session", "task", "note")
    status = shell.run_json("status")
    return {
        "claims": [{key: claim[key] for key in keys} for claim in status["claims"]],
        "until": [claim["until"][:15] for claim in status["claims"]],
        "sessions": [
            {key: one[key] for key in ("agent", "id", "generation", "role")} for one in status["sessions"]
        ],
        "journal": shell.run_json("log")["entries"],
    }


def assert_same(after: Answer, before: Answer) -> None:
    assert after["claims"] == before["claims"]
    assert after["sessions"] == before["sessions"]
    assert after["journal"][:-1] == before["journal"]
    assert after["journal"][-1]["kind"] == "store.moved"


def test_a_move_to_another_file_copies_everything(used: Shell, tmp_path: Path) -> None:
    before = portrait(used)
    secret = used.run_json("join", "ann")["session"]

    moved = used.run_json("store", "move", str(tmp_path / "elsewhere"))["moved"]

    assert moved["place"] == str(tmp_path / "elsewhere")
    assert (moved["entries"], moved["claims"]) == (len(before["journal"]), 4)
    after = portrait(used)
    assert_same(after, before)
    assert after["until"] == before["until"]
    assert used.run_json("log", "--verify")["trouble"] == []
    child = used.with_env(LANDLANE_SESSION=f"{secret['id']}:{secret['secret']}")
    assert child.run_json("claim", "new.py")["granted"][0]["token"] // EPOCH == moved["epoch"]
    assert used.run_error("LEASE_OVER", "renew", "lost.py", "--as", "bob", exit=4)["holder"] == "ann"


@pytest.mark.postgres
def test_a_move_to_postgresql_and_back_keeps_everything(used: Shell, postgres_server: PostgresServer) -> None:
    before = portrait(used)
    url = postgres_server.create_database()

    there = used.run_json("store", "move", url)["moved"]
    assert_same(portrait(used), before)
    assert used.run_json("store", "info")["store"]["kind"].startswith("PostgreSQL")
    token = used.run_json("claim", "new.py", "--as", "cat")["granted"][0]["token"]
    assert token // EPOCH == there["epoch"]
    used.run_json("release", "new.py", "--as", "cat")
    used.run_json("leave", "--as", "cat")
    middle = portrait(used)

    back = used.run_json("store", "move", str(used.state / "store.db"))["moved"]

    assert_same(portrait(used), middle)
    assert back["epoch"] > there["epoch"]
    assert used.run_json("log", "--verify")["trouble"] == []
    assert used.run_json("doctor")["ok"]
    assert used.run_json("store", "info")["store"]["place"] == str(used.state / "store.db")
    assert (used.state / POINTER).read_text(encoding="utf-8") == "store.db\n"
    assert len(list(used.state.glob("store.before-*.db"))) == 1
    (used.state / POINTER).write_text(url, encoding="utf-8")
    used.run_error("STORE_MOVED", "claims", exit=1)


@pytest.mark.postgres
def test_a_password_stays_out_of_every_answer(used: Shell, postgres_server: PostgresServer) -> None:
    url = postgres_server.create_database().replace("postgres@", "postgres:hunter2@")

    answers = [
        used.run_json("store", "move", url),
        used.run_json("store", "info"),
        used.run_json("log"),
        used.run_json("doctor"),
        used.with_env(LANDLANE_STORE="other.db").run_error("STORE_ELSEWHERE", "claims", exit=1),
    ]

    assert "hunter2" in (used.state / POINTER).read_text(encoding="utf-8")
    assert "hunter2" not in str(answers)
    assert (used.state / POINTER).stat().st_mode & 0o077 == 0


@pytest.mark.promise(
    "store.moved-is-out-of-use",
    "A store that was moved refuses every command, even read-only ones.",
)
def test_the_old_store_refuses_reads_after_a_move(used: Shell, tmp_path: Path) -> None:
    used.run_json("store", "move", str(tmp_path / "new.db"))
    (used.state / POINTER).write_text("store.db\n", encoding="utf-8")

    for words in (["claim", "x", "--as", "ann"], ["claims"], ["check", "src/a", "--as", "ann"], ["status"]):
        answer = used.run_error("STORE_MOVED", *words, exit=1)

    assert str(tmp_path / "new.db") in answer["message"]


def test_a_process_that_had_the_old_store_open_cannot_write_to_it_any_more(
    used: Shell, tmp_path: Path
) -> None:
    with Landlane(used.folder, agent="ann") as ann:
        used.run_json("store", "move", str(tmp_path / "new.db"))
        for write in (lambda: ann.claim("late.py"), lambda: ann.release("src/**"), ann.renew, ann.leave):
            with pytest.raises(StoreError) as caught:
                write()
            assert caught.value.code == "STORE_MOVED"

    assert "late.py" not in used.holders()
    assert used.holders()["src/**"] == "ann"


def test_a_target_that_holds_this_repository_is_refused(used: Shell, tmp_path: Path) -> None:
    target = str(tmp_path / "new.db")
    other = Shell(tmp_path / "other")
    used.git("clone", "--quiet", str(used.folder), str(other.folder))
    other.state.mkdir()
    shutil.copy(used.state / ID_FILE, other.state / ID_FILE)
    other.with_env(LANDLANE_STORE=target).run_json("claim", "theirs.py", "--as", "eve")

    used.run_error("STORE_NOT_EMPTY", "store", "move", target, exit=1)

    assert used.run_json("claim", "more.py", "--as", "ann")["ok"]  # the old store stays in use
    assert "theirs.py" not in used.holders()


def test_a_target_with_other_repositories_is_accepted(used: Shell, tmp_path: Path) -> None:
    other = Shell(tmp_path / "other")
    other.folder.mkdir()
    other.git("init", "--quiet")
    other.with_env(LANDLANE_STORE=str(tmp_path / "shared.db")).run_json("claim", "src/api.py", "--as", "eve")

    used.run_json("store", "move", str(tmp_path / "shared.db"))

    assert used.holders()["src/**"] == "ann"
    assert other.with_env(LANDLANE_STORE=str(tmp_path / "shared.db")).holders() == {"src/api.py": "eve"}


def test_a_move_to_the_same_place_is_refused(used: Shell) -> None:
    used.run_error("STORE_SAME", "store", "move", str(used.state / "store.db"))
    used.run_error("STORE_SAME", "store", "move", str(used.state))


def test_a_store_set_by_the_environment_is_not_moved(used: Shell, tmp_path: Path) -> None:
    pinned = used.with_env(LANDLANE_STORE=str(used.state / "store.db"))

    pinned.run_error("STORE_PINNED", "store", "move", str(tmp_path / "new.db"))

    assert not (tmp_path / "new.db").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "exit", "code"),
    [
        ("mysql://db/x", 1, "STORE_UNKNOWN_KIND"),
        ("postgresql://127.0.0.1:1/x", 1, "STORE_UNREACHABLE"),
        ("/not/there/store.db", 1, "STORE_UNOPENABLE"),
        ("README.md", 1, "STORE_CORRUPT"),
    ],
)
def test_an_unusable_target_changes_nothing(used: Shell, target: str, exit: int, code: str) -> None:
    if target.startswith("postgresql"):
        pytest.importorskip("psycopg")
    (used.folder / "README.md").write_text("# A page of text, no database at all\n" * 50, encoding="utf-8")
    held = used.holders()

    used.run_error(code, "store", "move", target, exit=exit)

    assert used.holders() == held
    assert (used.state / POINTER).read_text(encoding="utf-8") == "store.db\n"
    assert (used.folder / "README.md").read_text(encoding="utf-8").startswith("# A page")


@pytest.mark.slow
def test_a_waiter_learns_that_the_store_has_moved(used: Shell, tmp_path: Path) -> None:
    with used.start("claim", "src/api.py", "--as", "cat", "--wait", "60s", "--json") as waiter:
        used.wait_for_waiter()
        used.run_json("store", "move", str(tmp_path / "new.db"))
        ended = waiter.end(20)

    assert ended.exit == 1
    assert ended.json()["code"] == "STORE_MOVED"
