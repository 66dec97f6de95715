"""Versioned state as it is typed: versions, reducers, settings, history and watching."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.git import commit_text
from tests.support.shell import fingerprint, wait_for_all
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from tests.support.shell import Shell

pytestmark = pytest.mark.acceptance

SETTINGS = """
[state]
max_bytes = 100

[state.owned]
"release/*" = "ann"
"build/**" = "role:release"

[state.reducers]
spent = "sum"

[state.monotonic]
phase = ["plan", "build", "ship"]
"""


def test_a_value_is_set_read_and_set_again_at_its_version(shell: Shell) -> None:
    made = shell.run_json("state", "set", "release/phase", "freeze", "--as", "ann")
    read = shell.run_json("state", "get", "release/phase")
    changed = shell.run_json(
        "state", "set", "release/phase", '{"ship": [1, 2]}', "--expect", "1", "--as", "bob"
    )

    assert (made["key"], made["value"], made["version"], made["agent"]) == (
        "release/phase",
        "freeze",
        1,
        "ann",
    )
    assert {**read, "ok": True} == made
    assert (changed["value"], changed["version"], changed["agent"]) == ({"ship": [1, 2]}, 2, "bob")


def test_the_second_writer_is_told_what_stands_there(shell: Shell) -> None:
    shell.run_json("state", "set", "a", "1", "--as", "ann")

    blind = shell.run_error("STATE_STALE", "state", "set", "a", "2", "--as", "bob", exit=4)
    late = shell.run_error("STATE_STALE", "state", "set", "a", "2", "--expect", "7", "--as", "bob", exit=4)
    new = shell.run_error("STATE_STALE", "state", "set", "a", "2", "--expect", "0", "--as", "bob", exit=4)

    for answer in (blind, late, new):
        assert (answer["version"], answer["value"], answer["agent"]) == (1, 1, "ann")
        assert "--expect 1" in answer["hint"]
    assert shell.run_json("state", "set", "a", "2", "--any", "--as", "bob")["version"] == 2


def test_a_refusal_for_people_stands_on_stderr(shell: Shell) -> None:
    shell.run_text("state", "set", "a", "1", "--as", "ann")

    ended = shell.run("state", "set", "a", "2", "--as", "bob")

    assert (ended.exit, ended.out) == (4, "")
    assert "a is at version 1 (1, by ann, 0 s ago); set it with --expect [STATE_STALE]" in ended.err
    assert "hint: " in ended.err


def test_a_missing_key_has_version_zero(shell: Shell) -> None:
    assert shell.run_error("NO_STATE", "state", "get", "nothing", exit=1)["version"] == 0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-5", -5),
        ("plain text", "plain text"),
        ('"12"', "12"),
        ("", ""),
        ("NaN", "NaN"),
        ("a: b", "a: b"),
    ],
)
def test_what_is_no_json_is_taken_as_a_text(shell: Shell, text: str, value: object) -> None:
    assert shell.run_json("state", "set", "k", "--as", "ann", "--", text)["value"] == value


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("BAD_KEY", ("set", "a b", "1")),
        ("BAD_NUMBER", ("set", "a", "1", "--expect", "one")),
        ("BOTH_NAMED", ("set", "a", "1", "--expect", "1", "--any")),
        ("BAD_REDUCER", ("append", "a", "1", "--with", "average")),
        ("STATE_TOO_LARGE", ("set", "a", "x" * 70_000)),
        ("BAD_VALUE", ("set", "a", "1e999")),
        ("BAD_VALUE", ("set", "a", "[" * 5000)),
        ("BAD_CALL", ("set", "a")),
        ("BAD_DURATION", ("watch", "a", "--timeout", "soon")),
        ("STATE_SHAPE", ("append", "kept", "1")),
    ],
)
def test_bad_input_is_explained_and_changes_nothing(shell: Shell, code: str, words: tuple[str, ...]) -> None:
    shell.run_json("state", "set", "kept", "1", "--as", "ann")
    before = fingerprint(shell.state)

    answer = shell.run_error(code, "state", *words, "--as", "ann")

    assert answer["hint"]
    assert fingerprint(shell.state) == before


@pytest.mark.slow
def test_ninety_six_appends_at_once_all_survive(shell: Shell) -> None:
    shell.run_json("state", "list")

    ended = wait_for_all(
        [
            shell.start("state", "append", "found", str(number), "--as", f"agent{number % 12}", "--json")
            for number in range(96)
        ]
    )

    assert {one.exit for one in ended} == {0}, ended
    found = shell.run_json("state", "get", "found")
    assert sorted(found["value"]) == list(range(96))
    assert found["version"] == 96


@pytest.mark.slow
def test_reducers_are_chosen_by_name(shell: Shell) -> None:
    for value in ("0.25", "0.5"):
        shell.run_json("state", "append", "spent", value, "--with", "sum", "--as", "ann")
    shell.run_json("state", "append", "config", '{"db": {"port": 1}}', "--with", "merge", "--as", "ann")
    shell.run_json("state", "append", "config", '{"db": {"host": "h"}}', "--with", "merge", "--as", "bob")

    told = {one["key"]: one["value"] for one in shell.run_json("state", "list")["states"]}

    assert told == {"config": {"db": {"host": "h", "port": 1}}, "spent": 0.75}


def test_the_settings_say_who_writes_how_and_in_which_order(shell: Shell) -> None:
    commit_text(shell.folder, "landlane.toml", SETTINGS)
    shell.run_json("state", "set", "release/notes", "1", "--as", "ann")
    shell.run_json("state", "append", "spent", "1", "--as", "bob")
    shell.run_json("state", "set", "phase", "build", "--as", "bob")
    shell.run_json("join", "carl", "--role", "release")
    shell.run_json("state", "set", "build/last/good", "7", "--as", "carl")

    owned = ("state", "set", "release/notes", "2", "--any", "--as", "bob")
    assert shell.run_error("STATE_OWNED", *owned, exit=6)["owner"] == "ann"
    shell.run_error("STATE_OWNED", "state", "append", "build/last/bad", "7", "--as", "ann", exit=6)
    shell.run_error("STATE_REDUCER", "state", "append", "spent", "1", "--with", "max", "--as", "bob", exit=6)
    shell.run_error("STATE_REDUCER", "state", "set", "spent", "much", "--any", "--as", "bob", exit=6)
    shell.run_error("STATE_GOES_BACK", "state", "set", "phase", "plan", "--any", "--as", "bob", exit=6)
    shell.run_error("STATE_TOO_LARGE", "state", "set", "big", "x" * 99, "--as", "bob")
    assert shell.run_json("state", "get", "phase")["value"] == "build"


def test_the_history_shows_each_version_with_its_writer(shell: Shell) -> None:
    shell.run_json("state", "set", "a", "1", "--as", "ann")
    shell.run_json("state", "set", "a", "2", "--expect", "1", "--as", "bob")

    versions = shell.run_json("state", "history", "a")["versions"]
    table = shell.run_text("state", "history", "a")

    assert [(one["version"], one["value"], one["agent"]) for one in versions] == [
        (1, 1, "ann"),
        (2, 2, "bob"),
    ]
    assert table.startswith("VALUE  VERSION  BY   SET\n1            1  ann  ")


def test_a_watcher_ends_with_the_change(shell: Shell) -> None:
    shell.run_json("state", "set", "a", "1", "--as", "ann")
    with shell.start("state", "watch", "a", "--timeout", "40s", "--json") as watcher:
        wait_until(lambda: list((shell.state / "wake").glob("*")))
        shell.run_json("state", "set", "a", "2", "--expect", "1", "--as", "bob")
        answer = watcher.end(20).json()

    assert (answer["value"], answer["version"], answer["agent"]) == (2, 2, "bob")


def test_watching_times_out_and_can_catch_up(shell: Shell) -> None:
    shell.run_json("state", "set", "a", "1", "--as", "ann")

    shell.run_error("WAIT_TIMED_OUT", "state", "watch", "a", "--timeout", "200ms", exit=5)
    assert shell.run_json("state", "watch", "a", "--since", "0", "--timeout", "0s")["version"] == 1


def test_state_moves_with_the_store_and_survives_a_rebuild(shell: Shell) -> None:
    shell.run_json("state", "set", "a", "[1]", "--as", "ann")
    shell.run_json("state", "append", "a", "2", "--as", "bob")

    def history() -> list[tuple[object, ...]]:
        # An entry bears the instant at which it was written, a moment after the change was judged: no "at".
        versions = shell.run_json("state", "history", "a")["versions"]
        return [tuple(one[name] for name in ("value", "version", "agent", "reducer")) for one in versions]

    before = history()
    shell.run_json("store", "rebuild")
    rebuilt = history()
    shell.run_json("store", "move", str(shell.folder.parent / "elsewhere.db"))

    assert before == rebuilt == history()
    assert shell.run_json("state", "append", "a", "3", "--as", "ann")["version"] == 3
