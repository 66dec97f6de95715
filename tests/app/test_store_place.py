"""Which store and which repository hold: the state folder decides, and nothing odd is an empty state."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from landlane.app import open as app_open
from landlane.app import store_place
from landlane.app.store_place import ID_FILE, POINTER, STORE_NAME, is_same_place
from tests.support.git import commit_text
from tests.support.shell import Shell, fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.testing.postgres_server import PostgresServer

pytestmark = pytest.mark.acceptance

IS_SOAK = bool(os.environ.get("LANDLANE_EVERY_DAMAGE"))  # `make soak` damages every file in every way

ID = "11111111-2222-4333-8444-5555555555c1"
OTHER_ID = "11111111-2222-4333-8444-5555555555c2"


@pytest.fixture
def held(repository: Path, store: str) -> Shell:
    """A repository in which ann holds a file."""
    shell = Shell(repository)
    shell.run_json("claim", "README.md", "--as", "ann")
    return shell


def write_settings(shell: Shell, text: str) -> None:
    commit_text(shell.folder, "landlane.toml", text)


def clone(shell: Shell, folder: Path) -> Shell:
    shell.git("clone", "--quiet", str(shell.folder), str(folder))
    return Shell(folder)


# ---------------------------------------------------------------------------------------- which store


@pytest.mark.promise(
    "store.state-folder-decides",
    "The state folder decides which store holds; a checkout or an environment that names another is refused.",
)
@pytest.mark.parametrize("source", ["settings", "variable"])
def test_another_store_than_that_of_the_state_folder_is_refused(
    held: Shell, source: str, tmp_path: Path
) -> None:
    held.git("worktree", "add", "--quiet", "-b", "x", "../linked")
    linked = held.at("../linked")
    if source == "settings":
        write_settings(held, '[store]\nurl = "../other.db"\n')
    else:
        linked = linked.with_env(LANDLANE_STORE=str(tmp_path / "other.db"))

    for words in (["claim", "README.md", "--as", "bob"], ["claims"], ["status"], ["store", "info"]):
        answer = linked.run_error("STORE_ELSEWHERE", *words, exit=1)

    assert "other.db" in answer["message"]
    assert not (tmp_path / "other.db").exists()
    if source == "settings":
        write_settings(held, "")
    assert held.holders() == {"README.md": "ann"}


@pytest.mark.parametrize("variable", [True, False])
def test_a_place_that_agrees_with_the_state_folder_is_accepted(
    held: Shell, store: str, variable: bool
) -> None:
    same = store.replace("postgres@", "postgres:secret@") if "://" in store else f"{store}/../store.db"
    if variable:
        held = held.with_env(LANDLANE_STORE=same)
    else:
        write_settings(held, f'[store]\nurl = "{same}"\n')

    assert held.holders() == {"README.md": "ann"}


def test_the_first_command_decides_where_the_store_is(shell: Shell, tmp_path: Path) -> None:
    elsewhere = shell.with_env(LANDLANE_STORE=str(tmp_path / "first.db"))
    elsewhere.run_json("claim", "README.md", "--as", "ann")

    assert shell.holders() == {"README.md": "ann"}
    shell.with_env(LANDLANE_STORE=str(tmp_path / "second.db")).run_error("STORE_ELSEWHERE", "claims", exit=1)
    assert not (tmp_path / "second.db").exists()


def test_a_first_command_that_fails_decides_nothing(shell: Shell) -> None:
    shell.with_env(LANDLANE_STORE="mysql://db/x").run_error("STORE_UNKNOWN_KIND", "claims", exit=1)

    shell.run_json("claim", "README.md", "--as", "ann")


def test_a_git_hook_follows_the_state_folder(held: Shell, tmp_path: Path) -> None:
    held.run_json("init", "--yes", "--no-clients")
    held.git("checkout", "--quiet", "-b", "work")
    (held.folder / "README.md").write_text("changed\n", encoding="utf-8")
    elsewhere = held.with_env(LANDLANE_STORE=str(tmp_path / "other.db"))

    ended = elsewhere.run_program("git", "commit", "--quiet", "-am", "theirs")

    assert ended.exit != 0
    assert "names" in ended.err
    assert "other.db" in ended.err
    assert not (tmp_path / "other.db").exists()


def test_a_repository_can_be_moved_to_another_folder(shell: Shell, tmp_path: Path) -> None:
    shell.run_json("claim", "README.md", "--as", "ann")

    shell.folder.rename(tmp_path / "renamed")

    assert Shell(tmp_path / "renamed").holders() == {"README.md": "ann"}


@pytest.mark.parametrize(
    ("second", "is_same"),
    [
        ("postgresql://bob:x@db.example:5432/app?sslmode=require", True),
        ("postgres://DB.example/app", True),
        ("postgresql:///app?host=db.example&port=5432", True),
        ("postgresql://db.example:5433/app", False),
        ("postgresql://db.example/other", False),
        ("postgresql://other.example/app", False),
        ("postgresql://db.example/app?service=x", False),
        ("/db.example/app", False),
    ],
)
def test_two_urls_are_one_place_if_they_name_one_database(second: str, is_same: bool) -> None:
    assert is_same_place("postgresql://ann@db.example/app", second) is is_same


def test_a_clone_joins_the_state_of_others_by_command(held: Shell, store: str, tmp_path: Path) -> None:
    other = clone(held, tmp_path / "clone")
    other.run_json("claim", "own.py", "--as", "bob")
    repository = (held.state / ID_FILE).read_text(encoding="utf-8").strip()
    write_settings(other, f'[store]\nurl = "{store}"\n[repository]\nid = "{repository}"\n')
    other.run_error("STORE_ELSEWHERE", "claims", exit=1)

    other.run_json("store", "adopt")

    assert other.holders() == held.holders() == {"README.md": "ann"}
    assert other.run_json("log", "--verify")["trouble"] == []
    other.run_error("CLAIM_HELD", "claim", "README.md", "--as", "bob", exit=3)
    other.run_error("STORE_SAME", "store", "adopt")


def test_a_store_without_this_repository_is_not_adopted(held: Shell, tmp_path: Path) -> None:
    other = clone(held, tmp_path / "clone").with_env(LANDLANE_STORE=str(tmp_path / "theirs.db"))
    other.run_json("claim", "own.py", "--as", "bob")
    write_settings(held, f'[store]\nurl = "{tmp_path}/theirs.db"\n')

    held.run_error("STORE_NOT_THERE", "store", "adopt", exit=1)

    write_settings(held, "")
    assert held.holders() == {"README.md": "ann"}


@pytest.mark.promise(
    "repository.odd-paths-are-refused",
    "A repository whose path is not valid UTF-8, or has a line break, is refused by every command.",
)
@pytest.mark.parametrize(("name", "shown"), [(b"odd\xff", "odd\\udcff"), (b"odd\nx", "odd\\nx")])
def test_a_path_that_is_not_text_is_refused_before_anything_is_written(
    shell: Shell, tmp_path: Path, name: bytes, shown: str
) -> None:
    odd = tmp_path / os.fsdecode(name)
    shutil.copytree(shell.folder, odd)
    before = fingerprint(odd)

    for words in (["init", "--yes", "--no-clients"], ["task", "add", "x", "--as", "ann"], ["claims"]):
        answer = Shell(odd).run_error("PATH_NOT_TEXT", *words, exit=1)

    assert shown in answer["message"]
    assert fingerprint(odd) == before


# -------------------------------------------------------------------------------------- which repository


@pytest.mark.own_database
@pytest.mark.promise(
    "repository.looking-never-writes",
    "A look from a checkout with another repository id is refused and changes nothing for anybody.",
)
def test_a_look_from_a_checkout_with_another_id_changes_nothing(
    repository: Path, store: str, tmp_path: Path
) -> None:
    first = Shell(repository)
    write_settings(first, f'[repository]\nid = "{ID}"\n[store]\nurl = "{store}"\n')
    first.run_json("claim", "README.md", "--as", "ann")
    second = clone(first, tmp_path / "second")
    second.run_error("CLAIM_HELD", "claim", "README.md", "--as", "bob", exit=3)
    before = first.run_json("log")["entries"]
    write_settings(first, f'[repository]\nid = "{OTHER_ID}"\n[store]\nurl = "{store}"\n')

    for words in (["claims"], ["claim", "README.md", "--as", "eve"], ["doctor", "--fix"]):
        first.run_json(*words, exit=1)

    write_settings(first, f'[repository]\nid = "{ID}"\n[store]\nurl = "{store}"\n')
    second.run_error("CLAIM_HELD", "claim", "README.md", "--as", "bob", exit=3)
    assert first.run_json("log")["entries"] == before


@pytest.mark.own_database
def test_other_clones_are_told_of_a_new_id(repository: Path, store: str, tmp_path: Path) -> None:
    first = Shell(repository)
    settings = f'[repository]\nid = "{ID}"\n[store]\nurl = "{store}"\n'
    write_settings(first, settings)
    first.run_json("claim", "README.md", "--as", "ann")
    second = clone(first, tmp_path / "second")
    second.run_json("claims")
    write_settings(first, settings.replace(ID, OTHER_ID))

    first.run_json("store", "adopt")

    assert first.holders() == {"README.md": "ann"}
    answer = second.run_error("STORE_MOVED", "claim", "README.md", "--as", "bob", exit=1)
    assert OTHER_ID in answer["message"]
    write_settings(second, settings.replace(ID, OTHER_ID))
    second.run_json("store", "adopt")
    assert second.holders() == {"README.md": "ann"}


def test_a_look_never_changes_how_paths_are_compared(held: Shell) -> None:
    before = held.run_json("log")["entries"]
    write_settings(held, "[claims]\nignore_case = true\n")

    held.run_json("claims")
    failed = [check["name"] for check in held.run_json("doctor", exit=1)["checks"] if not check["ok"]]

    assert "paths" in failed
    assert held.run_json("log")["entries"] == before


@pytest.mark.promise(
    "repository.id-is-given-back",
    "A lost repository id is taken from the store, or every command stops; none is made up.",
)
def test_an_id_that_is_gone_is_taken_from_the_store(shell: Shell, tmp_path: Path) -> None:
    place = str(tmp_path / "store.db")
    shell.with_env(LANDLANE_STORE=place).run_json("claim", "README.md", "--as", "ann")
    before = (shell.state / ID_FILE).read_bytes()
    (shell.state / ID_FILE).unlink()

    shell.run_error("CLAIM_HELD", "claim", "README.md", "--as", "bob", exit=3)

    assert (shell.state / ID_FILE).read_bytes() == before


def test_an_id_that_is_gone_is_not_guessed_among_several(shell: Shell, tmp_path: Path) -> None:
    place = str(tmp_path / "store.db")
    shell.with_env(LANDLANE_STORE=place).run_json("claim", "README.md", "--as", "ann")
    other = clone(shell, tmp_path / "other").with_env(LANDLANE_STORE=place)
    other.run_json("claim", "README.md", "--as", "eve")
    known = (shell.state / ID_FILE).read_text(encoding="utf-8").strip()
    (shell.state / ID_FILE).unlink()

    answer = shell.run_error("STORE_LOST", "claim", "README.md", "--as", "bob", exit=1)

    assert "2 repositories" in answer["message"]
    assert not (shell.state / ID_FILE).exists()
    write_settings(shell, f'[repository]\nid = "{known}"\n')
    assert shell.holders() == {"README.md": "ann"}


# ----------------------------------------------------------------------------------- what is missing or odd


def _remove(path: Path) -> None:
    path.unlink()


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _scribble(path: Path) -> None:
    path.write_bytes(b"\xa5" * 5000)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "inside").touch()


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _dangle(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("nowhere"))


DAMAGES = (_remove, _empty, _scribble, _folder, _pipe, _dangle)
FILES = (
    *("store.db", "store.db.lock", POINTER, ID_FILE, "journal.jsonl", "journal.store"),
    *("claims.json", "tasks.json", "mirror.lock"),
)
USUAL = [(_folder, "store.db"), (_pipe, "journal.jsonl"), (_dangle, "store.db"), (_scribble, POINTER)]
EVERY = [(damage, name) for name in FILES for damage in DAMAGES]


@pytest.mark.promise(
    "store.any-file-is-repaired",
    "Any one file of the state folder that is missing, damaged or not a file is no new state: "
    "`doctor --fix` repairs it, and everything held is still held.",
)
@pytest.mark.soak
@pytest.mark.parametrize(("damage", "name"), EVERY if IS_SOAK else USUAL)
def test_any_one_damaged_file_is_repaired(shell: Shell, damage: Callable[[Path], None], name: str) -> None:
    shell.run_json("claim", "README.md", "--as", "ann")
    shell.run_json("task", "add", "Something", "--as", "ann")
    close_database(shell.state)
    damage(shell.state / name)

    told = shell.run("claim", "README.md", "--as", "bob", "--json").json()
    shell.run("doctor", "--json").json()
    shell.run_json("doctor", "--fix")

    assert told["code"] in {
        *("CLAIM_HELD", "STORE_CORRUPT", "STORE_LOST", "STORE_POINTER_BROKEN", "REPOSITORY_ID_BROKEN"),
        *("STORE_UNOPENABLE", "STORE_IO"),
    }
    assert shell.run_json("doctor")["ok"]
    assert shell.holders() == {"README.md": "ann"}
    assert [task["title"] for task in shell.run_json("task", "list")["tasks"]] == ["Something"]
    shell.run_error("CLAIM_HELD", "claim", "README.md", "--as", "bob", exit=3)


@pytest.mark.parametrize("name", ["target-settings.cache", "sessions/ann"])
def test_a_pipe_in_the_state_folder_blocks_no_command(shell: Shell, name: str) -> None:
    write_settings(shell, "[claims]\nfree = []\n")
    shell.run_json("claim", "README.md", "--as", "ann")
    _pipe(shell.state / name)

    ended = shell.run("claim", "README.md", "--as", "ann", "--json", limit_seconds=20)

    assert ended.json()["ok"] or ended.json()["code"] == "AGENT_IN_USE"
    assert shell.holders() == {"README.md": "ann"}


@pytest.mark.parametrize("damage", [_empty, _pipe])
def test_a_clone_that_cannot_tell_its_home_has_no_state_of_its_own(
    shell: Shell, damage: Callable[[Path], None]
) -> None:
    shell.run_json("task", "add", "Something", "--as", "ann")
    path = shell.run_json("workspace", "open", "T1", "--kind", "clone", "--as", "ann")["workspace"]["path"]
    damage(Path(path, ".git", "landlane-home"))

    Shell(Path(path)).run_error("HOME_GONE", "claim", "README.md", "--as", "bob", exit=1)


def close_database(state: Path) -> None:
    """Write the log back, so that the file alone is the store."""
    database = sqlite3.connect(state / "store.db")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    for ending in ("-wal", "-shm"):
        (state / f"store.db{ending}").unlink(missing_ok=True)


def _pages(state: Path) -> int:
    return (state / "store.db").stat().st_size // 4096


def spoil(state: Path, page: int) -> None:
    with (state / "store.db").open("r+b") as file:
        file.seek(page * 4096)
        file.write(b" " * 4095 + b"x")


@pytest.mark.soak
def test_a_store_with_any_one_damaged_page_is_rebuilt_from_the_journal(shell: Shell, tmp_path: Path) -> None:
    shell.run_json("claim", "README.md", "--as", "ann")
    close_database(shell.state)
    shutil.copytree(shell.state, tmp_path / "kept")
    facts_about_the_store = 2
    for page in range(_pages(shell.state)) if IS_SOAK else [facts_about_the_store]:
        shutil.rmtree(shell.state)
        shutil.copytree(tmp_path / "kept", shell.state)
        spoil(shell.state, page)

        shell.run_json("doctor", "--fix")

        assert shell.holders() == {"README.md": "ann"}, page
        assert shell.run_json("doctor")["ok"], page


def test_a_store_elsewhere_that_is_gone_is_not_begun_again(shell: Shell, tmp_path: Path) -> None:
    place = tmp_path / "elsewhere.db"
    shell.with_env(LANDLANE_STORE=str(place)).run_json("claim", "README.md", "--as", "ann")
    for path in tmp_path.glob("elsewhere.db*"):
        path.unlink()

    shell.run_error("STORE_LOST", "claim", "README.md", "--as", "bob", exit=1)
    assert not place.exists()
    shell.run_json("doctor", "--fix")

    assert shell.holders() == {"README.md": "ann"}
    assert place.exists()


@pytest.mark.postgres
def test_a_database_that_was_emptied_is_not_begun_again(
    shell: Shell, postgres_server: PostgresServer
) -> None:
    url = postgres_server.create_database()
    shell.run_json("claim", "README.md", "--as", "ann")
    shell.run_json("store", "move", url)
    (shell.state / POINTER).write_text(postgres_server.create_database(), encoding="utf-8")

    shell.run_error("STORE_LOST", "claim", "README.md", "--as", "bob", exit=1)
    shell.run_json("doctor", "--fix", exit=1)

    (shell.state / POINTER).write_text(url, encoding="utf-8")
    assert shell.holders() == {"README.md": "ann"}


@pytest.mark.postgres
@pytest.mark.parametrize("damage", [_remove, _scribble])
def test_a_lost_pointer_to_a_server_is_found_again(
    shell: Shell, postgres_server: PostgresServer, damage: Callable[[Path], None]
) -> None:
    shell.run_json("claim", "README.md", "--as", "ann")
    shell.run_json("store", "move", postgres_server.create_database())
    damage(shell.state / POINTER)

    shell.run_json("claim", "README.md", "--as", "bob", exit=1)
    shell.run_json("doctor", "--fix")

    assert shell.holders() == {"README.md": "ann"}
    assert shell.run_json("store", "info")["store"]["kind"].startswith("PostgreSQL")


def test_an_emptied_state_folder_is_not_an_empty_state(shell: Shell) -> None:
    shell.run_json("init", "--yes", "--no-clients")
    shell.run_json("claim", "README.md", "--as", "ann")
    shell.git("checkout", "--quiet", "-b", "work")
    (shell.folder / "new.py").write_text("x\n", encoding="utf-8")
    shell.git("add", "new.py")
    shell.git("commit", "--quiet", "-m", "a hook answers")
    shutil.rmtree(shell.state)
    shell.state.mkdir()

    shell.run_error("STATE_GONE", "claim", "README.md", "--as", "bob", exit=1)

    shell.run_json("init", "--yes", "--no-clients")
    shell.run_json("claim", "README.md", "--as", "bob")


def test_looking_at_a_damaged_state_changes_nothing(shell: Shell) -> None:
    shell.run_json("claim", "README.md", "--as", "ann")
    (shell.state / POINTER).write_bytes(b"")
    before = fingerprint(shell.folder)

    for words in (["claims"], ["status"], ["doctor"]):
        shell.run_json(*words, exit=1)

    assert fingerprint(shell.folder) == before


def test_a_first_use_by_another_process_at_the_same_moment_is_not_a_loss(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = app_open.read_record
    journal = repository / ".git" / "landlane" / "journal.jsonl"

    def look_while_another_begins(store: Any) -> Any:
        found = original(store)
        journal.write_text("the first entry of another process\n", encoding="utf-8")
        monkeypatch.setattr(app_open, "read_record", original)
        return found

    monkeypatch.setattr(app_open, "read_record", look_while_another_begins)

    repo = app_open.open_repository(str(repository))

    assert repo.store.repository
    repo.close()


@pytest.mark.parametrize(
    ("name", "text", "look"),
    [(ID_FILE, ID, store_place.recorded_id), (POINTER, STORE_NAME, store_place.recorded_place)],
)
def test_what_another_process_writes_at_the_same_moment_is_not_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, look: Callable[[str], str]
) -> None:
    """It is not there when it is read, and there when the error is looked at."""
    original = store_place.read_regular

    def read_regular(path: str, most_bytes: int) -> bytes:
        try:
            return original(path, most_bytes)
        finally:
            Path(path).write_text(f"{text}\n")

    monkeypatch.setattr(store_place, "read_regular", read_regular)

    assert look(str(tmp_path)) == ""
    assert look(str(tmp_path)).endswith(text)


@pytest.mark.parametrize(
    "place", ["host=127.0.0.1 port=1 password=hunter22", "password=hunter22", "service=x  user = ann"]
)
def test_keywords_are_no_store_and_do_not_become_the_name_of_a_file(shell: Shell, place: str) -> None:
    for ended in (
        shell.with_env(LANDLANE_STORE=place).run("claims", "--json"),
        shell.run("store", "move", place, "--json"),
    ):
        assert ended.json()["code"] == "STORE_UNKNOWN_KIND"
        assert "hunter22" not in ended.out + ended.err
    assert [name for name in os.listdir(shell.folder) if "=" in name] == []
