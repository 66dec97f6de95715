"""Slots, numbers and running once as they are typed, with many processes and with killed ones."""

from __future__ import annotations

import json
import os
import signal
import socket
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from landlane.sessions.wait_queue import ALIVE_MS
from tests.support.git import commit_text
from tests.support.shell import fingerprint, wait_for_all
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.shell import Shell

pytestmark = pytest.mark.acceptance

SETTINGS = """
[slots.gpu]
capacity = 24

[slots.database]
names = ["a", "b"]

[slots.api]
capacity = 60
per = "1m"

[numbers.migration]
path = "migrations/{n}_*.sql"
width = 4
"""


@pytest.fixture
def furnished(shell: Shell) -> Shell:
    """A shell in a repository whose settings know slots and numbers."""
    commit_text(shell.folder, "landlane.toml", SETTINGS)
    return shell


# ------------------------------------------------------------------------------------------------- slots


@pytest.mark.slow
def test_sixty_four_processes_get_sixty_four_ports(shell: Shell) -> None:
    shell.run_json("slot", "list")

    ended = wait_for_all(
        [shell.start("slot", "take", "port", "--as", f"a{number}", "--json") for number in range(64)]
    )

    ports = [one.json()["slot"]["port"] for one in ended]
    assert len(set(ports)) == 64, ended
    for port in ports:
        with closing(socket.socket()) as server:
            server.bind(("127.0.0.1", port))


def test_seventeen_made_eight_freed_eight_made_are_all_distinct(shell: Shell) -> None:
    taken = [shell.run_json("slot", "take", "port", "--as", f"a{number}")["slot"] for number in range(17)]
    for number in range(8):
        shell.run_json("slot", "free", taken[number]["id"], "--as", f"a{number}")
    for number in range(8):
        shell.run_json("slot", "take", "port", "--name", "new", "--as", f"a{number}")

    ports = [slot["port"] for slot in shell.run_json("slot", "list", "port")["slots"]]

    assert len(ports) == len(set(ports)) == 17


@pytest.mark.slow
def test_the_same_checkout_gets_the_same_port_again(shell: Shell) -> None:
    first = shell.run_json("slot", "take", "port", "--as", "ann")
    again = shell.run_json("slot", "take", "port", "--as", "ann")
    shell.run_json("leave", "--as", "ann")
    later = shell.run_json("slot", "take", "port", "--as", "bob")

    assert (first["new"], again["new"]) == (True, False)
    assert first["slot"]["token"] == again["slot"]["token"] < later["slot"]["token"]
    assert first["slot"]["port"] == later["slot"]["port"]


def test_a_full_kind_names_its_holders_and_what_to_do(furnished: Shell) -> None:
    furnished.run_json("slot", "take", "gpu", "--amount", "20", "--as", "ann")

    refused = furnished.run_error("SLOT_TAKEN", "slot", "take", "gpu", "--amount", "8", "--as", "bob", exit=3)
    text = furnished.run("slot", "take", "gpu", "--amount", "8", "--as", "bob")

    assert (refused["holder"], refused["left"], refused["amount"]) == ("ann", 4, 8)
    assert refused["until"].endswith("Z")
    assert "--wait" in refused["hint"]
    assert (text.exit, text.out) == (3, "")
    assert "gpu has 4 of 24 free; ann holds 20 [SLOT_TAKEN]" in text.err


def test_a_waiter_is_served_when_the_holder_leaves(furnished: Shell) -> None:
    furnished.run_json("slot", "take", "gpu", "--amount", "24", "--as", "ann")
    with furnished.start("slot", "take", "gpu", "--wait", "40s", "--as", "bob", "--json") as waiter:
        furnished.wait_for_waiter()
        refused = furnished.run_error("SLOT_TAKEN", "slot", "take", "gpu", "--as", "carl", exit=3)
        furnished.run_json("leave", "--as", "ann")
        answer = waiter.end(20).json()

    assert answer["slot"]["holder"] == "bob"
    assert refused["waiters"] == ["bob"]


def test_waiting_too_long_ends_with_five(furnished: Shell) -> None:
    furnished.run_json("slot", "take", "gpu", "--amount", "24", "--as", "ann")

    furnished.run_error("WAIT_TIMED_OUT", "slot", "take", "gpu", "--wait", "300ms", "--as", "bob", exit=5)


def test_a_killed_waiter_is_passed_over(furnished: Shell) -> None:
    slot = furnished.run_json("slot", "take", "gpu", "--amount", "24", "--as", "ann")["slot"]
    with furnished.start("slot", "take", "gpu", "--wait", "60s", "--as", "bob") as dead:
        furnished.wait_for_waiter()
        dead.signal(signal.SIGKILL)
        dead.end(20)
    furnished.run_json("slot", "free", slot["id"], "--as", "ann")
    furnished.pass_time(ALIVE_MS / 1000)

    assert (
        furnished.run_json("slot", "take", "gpu", "--wait", "20s", "--as", "carl")["slot"]["holder"] == "carl"
    )


def test_names_and_used_up_amounts_are_told_apart(furnished: Shell) -> None:
    places = {
        furnished.run_json("slot", "take", "database", "--as", who)["slot"]["place"] for who in ("ann", "bob")
    }
    furnished.run_json("slot", "take", "api", "--amount", "60", "--as", "ann")

    assert places == {"a", "b"}
    refused = furnished.run_error("SLOT_TAKEN", "slot", "take", "api", "--as", "ann", exit=3)
    assert "free again in" in refused["hint"]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("UNKNOWN_KIND", ("slot", "take", "gpus")),
        ("AMOUNT_OUT_OF_RANGE", ("slot", "take", "gpu", "--amount", "25")),
        ("AMOUNT_OUT_OF_RANGE", ("slot", "take", "port", "--amount", "2")),
        ("BAD_NUMBER", ("slot", "take", "gpu", "--amount", "some")),
        ("BAD_DURATION", ("slot", "take", "gpu", "--wait", "long")),
        ("UNKNOWN_SLOT", ("slot", "take", "database", "--name", "z")),
        ("BAD_KIND", ("number", "A B")),
        ("UNKNOWN_KIND", ("number", "lst")),
        ("UNKNOWN_KIND", ("number", "list", "migratoin")),
        ("TEXT_TOO_LONG", ("number", "migration", "--for", "x" * 201)),
        ("BAD_CALL", ("number", "list")),
        ("NO_PROGRAM", ("once", "k", "--", "no-such-program-anywhere")),
        ("BAD_KEY", ("once", "a b", "--", "true")),
        ("BAD_CALL", ("once", "k")),
        ("BAD_CALL", ("once", "k", "--")),
    ],
)
def test_bad_input_is_explained_and_changes_nothing(
    furnished: Shell, code: str, words: tuple[str, ...]
) -> None:
    furnished.run_json("join", "ann")
    before = fingerprint(furnished.state)

    answer = furnished.with_env(LANDLANE_AGENT="ann").run_error(code, *words)

    assert answer["hint"]
    assert fingerprint(furnished.state) == before


def test_an_unknown_kind_names_the_known_ones(furnished: Shell) -> None:
    answer = furnished.run_error("UNKNOWN_KIND", "slot", "take", "gpus", "--as", "ann")
    assert answer["known"] == ["api", "database", "gpu", "port"]


def test_freeing_what_another_holds_is_refused(furnished: Shell) -> None:
    slot = furnished.run_json("slot", "take", "gpu", "--as", "ann")["slot"]

    refused = furnished.run_error("SLOT_TAKEN", "slot", "free", slot["id"], "--as", "bob", exit=3)
    furnished.run_error("NOT_HELD", "slot", "free", "gpu:0", "--as", "bob", exit=1)

    assert refused["holder"] == "ann"
    assert furnished.run_json("slot", "free", slot["id"], "--as", "ann")["freed"] == slot["id"]


# ----------------------------------------------------------------------------------------------- numbers


@pytest.mark.slow
def test_thirty_two_worktrees_get_thirty_two_numbers(furnished: Shell, tmp_path: Path) -> None:
    (furnished.folder / "migrations").mkdir()
    (furnished.folder / "migrations" / "0041_begin.sql").write_text("--\n", encoding="utf-8")
    furnished.git("add", "--all")
    furnished.git("commit", "--quiet", "-m", "Begin to migrate")
    trees = [tmp_path / f"tree{number}" for number in range(32)]
    for tree in trees:
        furnished.git("worktree", "add", "--quiet", "--detach", str(tree))

    ended = wait_for_all(
        [furnished.at(tree).start("number", "migration", "--as", tree.name, "--json") for tree in trees]
    )

    assert [one for one in ended if one.exit] == []
    told = [one.json() for one in ended]
    assert sorted(int(str(answer["number"])) for answer in told) == list(range(42, 74)), ended
    assert {answer["state"] for answer in told} == {"pending"}


def test_a_number_has_its_width_and_its_place(furnished: Shell) -> None:
    answer = furnished.run_json("number", "migration", "--for", "add users", "--as", "ann")

    assert (answer["number"], answer["text"], answer["path"]) == (1, "0001", "migrations/0001_*.sql")
    assert furnished.run_text("number", "migration", "--as", "ann") == "0002\n"
    listed = furnished.run_json("number", "list", "migration")["numbers"]
    assert [(one["number"], one["for"], one["state"]) for one in listed] == [
        (1, "add users", "pending"),
        (2, None, "pending"),
    ]


def test_a_number_that_was_not_used_is_reported_and_not_given_again(furnished: Shell) -> None:
    furnished.run_json("number", "migration", "--as", "ann")
    furnished.run_json("leave", "--as", "ann")

    assert furnished.run_json("number", "migration", "--as", "bob")["number"] == 2
    listed = furnished.run_json("number", "list", "migration")["numbers"]
    assert [one["state"] for one in listed] == ["abandoned", "pending"]


def test_number_is_a_command_and_a_noun(shell: Shell) -> None:
    assert "list" in shell.run_text("number", "--help")
    assert shell.run_json("number", "--for", "x", "adr", "--new", "--as", "ann")["number"] == 1
    assert shell.run_json("--as", "ann", "number", "adr")["number"] == 2
    assert len(shell.run_json("number", "list", "adr")["numbers"]) == 2


# -------------------------------------------------------------------------------------------------- once


def test_a_command_runs_once_and_its_output_passes_through(shell: Shell) -> None:
    script = "echo out; echo err >&2; echo x >> runs"
    first = shell.run("once", "build", "--as", "ann", "--", "sh", "-c", script)
    second = shell.run("once", "build", "--as", "bob", "--", "sh", "-c", script)

    assert (first.exit, first.out, first.err) == (0, "out\n", "err\n")
    assert (second.exit, second.out) == (0, "")
    assert "build already ran: by ann, " in second.err
    assert (shell.folder / "runs").read_text() == "x\n"


def test_with_json_the_output_goes_to_stderr_and_the_exit_into_the_answer(shell: Shell) -> None:
    ended = shell.run("once", "t", "--json", "--", "sh", "-c", "echo out; exit 7")
    remembered = shell.run_json("once", "t", "--", "true", exit=1)

    answer = ended.json()
    assert (ended.exit, ended.err) == (7, "out\n")
    assert (answer["ran"], answer["exit"], answer["output"], answer["code"]) == (
        True,
        7,
        "out\n",
        "ONCE_FAILED",
    )
    assert (remembered["ran"], remembered["exit"], remembered["output"]) == (False, 7, "out\n")


def test_the_words_behind_the_dashes_belong_to_the_command(shell: Shell) -> None:
    ended = shell.run("once", "words", "--", "echo", "--json", "--", "--as", "x")

    assert (ended.exit, ended.out) == (0, "--json -- --as x\n")


@pytest.mark.slow
def test_a_failed_run_is_run_again_only_with_again(shell: Shell) -> None:
    shell.run_json("once", "t", "--", "false", exit=1)
    shell.run_json("once", "t", "--", "true", exit=1)

    assert shell.run_json("once", "t", "--again", "--", "true")["run"] == 2
    assert shell.run_json("once", "t", "--", "false")["ran"] is False


@pytest.mark.promise("once.runs-once", "When many callers use one key, the command runs once.")
@pytest.mark.slow
def test_many_at_once_run_it_once(shell: Shell) -> None:
    shell.run_json("status")
    command = ("sh", "-c", "echo x >> runs; sleep 0.3; exit 3")
    ended = wait_for_all(
        [shell.start("once", "build", "--as", f"a{number}", "--json", "--", *command) for number in range(16)]
    )

    told = [json.loads(one.out) for one in ended]
    assert [answer["ran"] for answer in told].count(True) == 1
    assert {answer["exit"] for answer in told} == {3}
    assert (shell.folder / "runs").read_text() == "x\n"


def test_a_killed_runner_has_crashed(shell: Shell) -> None:
    with shell.start("once", "build", "--as", "ann", "--", "sh", "-c", "echo $$; exec sleep 60") as runner:
        child = int(runner.read_line())
        shell.run_error(
            "ONCE_RUNNING", "once", "build", "--wait", "200ms", "--as", "bob", "--", "true", exit=5
        )
        runner.signal(signal.SIGKILL)
        os.kill(child, signal.SIGKILL)
        runner.end(20)

    crashed = shell.run_error("ONCE_CRASHED", "once", "build", "--as", "bob", "--", "true", exit=1)
    again = shell.run_json("once", "build", "--again", "--as", "bob", "--", "true")

    assert "--again" in crashed["hint"]
    assert (crashed["agent"], crashed["exit"], again["exit"], again["run"]) == ("ann", None, 0, 2)


def test_a_stopped_runner_takes_the_whole_command_with_it(shell: Shell) -> None:
    script = "sleep 60 & echo $!; wait"
    with shell.start("once", "build", "--as", "ann", "--", "sh", "-c", script) as runner:
        grandchild = int(runner.read_line())
        runner.signal(signal.SIGTERM)
        ended = runner.end(30)

    assert ended.exit == 128 + signal.SIGTERM

    def is_gone() -> bool:
        try:
            with open(f"/proc/{grandchild}/stat", encoding="ascii") as file:
                return file.read().rpartition(")")[2].split()[0] in "ZX"
        except FileNotFoundError:
            return True

    wait_until(is_gone)
    assert shell.run_json("once", "build", "--as", "bob", "--", "true", exit=1)["exit"] == 130


def test_a_background_child_that_keeps_the_output_open_is_not_waited_for(shell: Shell) -> None:
    ended = shell.run("once", "serve", "--", "sh", "-c", "sleep 30 & echo started", limit_seconds=20)

    assert (ended.exit, ended.out) == (0, "started\n")


def test_only_the_end_of_a_long_output_is_kept(shell: Shell) -> None:
    ended = shell.run("once", "long", "--", "sh", "-c", "yes 0123456 | head -n 20000; echo end")

    answer = shell.run_json("once", "long", "--", "true")

    assert len(ended.out) == 160_004
    assert len(answer["output"]) == 65_536
    assert answer["output"].endswith("end\n")
