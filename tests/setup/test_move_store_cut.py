"""A move of the store that is cut short at any step: nothing is lost, and the same command continues."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.support.processes import fork, wait_for_exit
from tests.support.shell import Shell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from landlane.testing.postgres_server import PostgresServer

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(120), pytest.mark.soak]

IS_SOAK = bool(os.environ.get("LANDLANE_EVERY_DAMAGE"))  # `make soak` cuts at every step
DIED = 99


@pytest.fixture
def used(shell: Shell) -> Shell:
    shell.run_json("claim", "README.md", "--as", "ann")
    shell.run_json("task", "add", "Something", "--as", "ann")
    return shell


def cut_move(folder: Path, target: str, steps: int) -> bool:
    """Start a move that dies after so many steps; return whether it did not get that far."""

    def move() -> None:
        left = steps

        def dying(function: Callable[..., object]) -> Callable[..., object]:
            def step(*given: object, **named: object) -> object:
                nonlocal left
                left -= 1
                if left < 0:
                    os._exit(DIED)
                return function(*given, **named)

            return step

        from landlane.setup import move_store
        from landlane.store.postgres.store import PostgresStore
        from landlane.store.sqlite.store import SqliteStore

        for name in ("replace", "link", "unlink", "rename"):
            setattr(os, name, dying(getattr(os, name)))
        for kind in (SqliteStore, PostgresStore):
            kind.change = dying(dying_after(kind.change, dying(lambda: None)))  # type: ignore[method-assign]
        move_store.move_store(str(folder), target)

    return wait_for_exit(fork(move)) != DIED


def dying_after(function: Callable[..., object], die: Callable[[], object]) -> Callable[..., object]:
    """Return the function, with a step after it."""

    def both(*given: object, **named: object) -> object:
        result = function(*given, **named)
        die()
        return result

    return both


def check_after_cut(shell: Shell, target: str) -> None:
    """Repeat the move and check that everything is there, once."""
    answer = shell.run("store", "move", target, "--json").json()
    assert answer["ok"] or answer["code"] == "STORE_SAME", answer
    assert shell.holders() == {"README.md": "ann"}
    shell.run_error("CLAIM_HELD", "claim", "README.md", "--as", "bob", exit=3)
    assert [task["title"] for task in shell.run_json("task", "list")["tasks"]] == ["Something"]
    assert shell.run_json("log", "--verify")["trouble"] == []
    assert shell.run_json("doctor")["ok"]


def cuts() -> Iterator[int]:
    """Yield after how many steps to cut: all in `make soak`, else around the two commits and the renames."""
    yield from range(60) if IS_SOAK else (3, 6, 9)


@pytest.mark.promise(
    "store.move-can-be-repeated",
    "A move of the store that was killed at any step loses nothing and can be repeated.",
)
@pytest.mark.parametrize("target", ["file", pytest.param("server", marks=pytest.mark.postgres)])
def test_a_move_that_is_cut_short_can_be_repeated(
    used: Shell, tmp_path: Path, target: str, request: pytest.FixtureRequest
) -> None:
    home = str(used.state / "store.db")
    for number in cuts():
        place = str(tmp_path / f"new{number}.db")
        if target == "server":
            place = request.getfixturevalue("postgres_server").create_database()
        is_through = cut_move(used.folder, place, number)
        check_after_cut(used, place)
        cut_move(used.folder, home, number)
        check_after_cut(used, home)
        if is_through:
            break


def test_doctor_finishes_a_move_that_was_cut_short(used: Shell, tmp_path: Path) -> None:
    place = str(tmp_path / "new.db")
    for number in range(60):
        if cut_move(used.folder, place, number):
            break
        used.run_json("doctor", "--fix")
        assert used.holders() == {"README.md": "ann"}, number
        used.run_json("doctor")
        if used.run_json("store", "info")["store"]["place"] == place:
            break
    assert used.run_json("store", "info")["store"]["place"] == place


@pytest.mark.postgres
def test_journal_numbers_never_repeat_after_a_server_with_another_repository(
    used: Shell, tmp_path: Path, postgres_server: PostgresServer
) -> None:
    url = postgres_server.create_database()
    other = Shell(tmp_path / "other")
    used.git("clone", "--quiet", str(used.folder), str(other.folder))
    other.with_env(LANDLANE_STORE=url).run_json("claim", "README.md", "--as", "eve")
    for _ in range(2):  # there and back, to places that were used before
        used.run_json("store", "move", url)
        for number in range(3):
            other.run_json("claim", f"other{number}", "--as", "eve")
            used.run_json("claim", f"own{number}", "--as", "ann")
        used.run_json("store", "move", str(used.state / "store.db"))
        used.run_json("claim", "more", "--as", "ann")

    lines = (used.state / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    numbers = [json.loads(line)["number"] for line in lines]
    assert len(set(numbers)) == len(numbers)
    used.run_json("store", "rebuild")
    used.run_json("claim", "last", "--as", "ann")
    used.run_json("store", "move", url)
    assert used.run_json("log", "--verify")["trouble"] == []
    assert set(other.holders()) == {"README.md", "other0", "other1", "other2"}


@pytest.mark.parametrize("left", ["empty", "folder"])
def test_what_is_in_the_way_at_home_is_set_aside(used: Shell, tmp_path: Path, left: str) -> None:
    used.run_json("store", "move", str(tmp_path / "new.db"))
    for path in used.state.glob("store.db*"):
        path.unlink()
    home = used.state / "store.db"
    if left == "empty":
        home.touch()
    else:
        home.mkdir()

    used.run_json("store", "move", str(home))

    assert used.holders() == {"README.md": "ann"}
    assert home.is_file()
    assert used.run_json("doctor")["ok"]
