"""Who acts: names, sessions, registered processes, the person at the terminal, and pretenders."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.git import commit_text
from tests.support.shell import LANDLANE, Shell
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.acceptance


def test_one_name_is_one_session_from_whatever_process(shell: Shell) -> None:
    first = shell.run_json("claim", "a", "--as", "ann")["granted"][0]
    second = shell.run_json("claim", "b", "--as", "ann")["granted"][0]
    third = shell.with_env(LANDLANE_AGENT="ann").run_json("claim", "c")["granted"][0]

    assert first["session"] == second["session"] == third["session"]
    assert shell.kinds().count("session.joined") == 1


def test_two_names_of_one_user_are_two_owners(shell: Shell) -> None:
    shell.with_env(LANDLANE_AGENT="ann").run_json("claim", "a")

    answer = shell.with_env(LANDLANE_AGENT="bob").run_error("CLAIM_HELD", "claim", "a", exit=3)

    assert answer["refused"][0]["holder"] == "ann"


@pytest.mark.promise(
    "sessions.reserved-names",
    "No agent can take a name that Landlane uses for its ids, its workers or itself.",
)
def test_no_agent_can_take_the_name_of_a_landing_a_gate_or_a_worker(shell: Shell) -> None:
    for name in ("L1", "l1", "G1", "T1", "codex-T1", "landlane"):
        for words in (
            ["join", name],
            ["claim", "a", "--as", name],
            ["exec", "--name", name, "--as", "ann", "--", "true"],
        ):
            shell.run_error("NAME_RESERVED", *words, exit=2)
        shell.with_env(LANDLANE_AGENT=name).run_error("NAME_RESERVED", "claim", "a", exit=2)

    assert shell.run_json("claims")["claims"] == []


def test_a_person_whose_login_is_reserved_can_work(shell: Shell) -> None:
    granted = shell.with_env(USER="t1", LOGNAME="t1").run_json("claim", "a")["granted"][0]

    assert granted["holder"] == "t1-user"


def test_as_wins_over_the_variable(shell: Shell) -> None:
    granted = shell.with_env(LANDLANE_AGENT="ann").run_json("claim", "a", "--as", "bob")["granted"][0]

    assert granted["holder"] == "bob"


def test_joining_twice_attaches_and_gives_the_same_secret(shell: Shell) -> None:
    first = shell.run_json("join", "ann", "--role", "code")
    second = shell.run_json("join", "ann")

    assert (first["new"], second["new"]) == (True, False)
    assert first["session"]["id"] == second["session"]["id"]
    assert first["session"]["secret"] == second["session"]["secret"]
    assert second["session"]["role"] == "code"


def test_the_secret_lies_where_only_its_user_can_read_it(shell: Shell) -> None:
    shell.run_json("join", "ann")

    secrets = shell.state / "sessions"

    assert secrets.stat().st_mode & 0o077 == 0
    assert [path.stat().st_mode & 0o077 for path in secrets.iterdir()] == [0]


def test_children_act_for_the_session_that_their_environment_names(shell: Shell) -> None:
    session = shell.run_json("join", "ann")["session"]
    child = shell.with_env(LANDLANE_SESSION=f"{session['id']}:{session['secret']}", LANDLANE_AGENT="bob")

    assert child.run_json("claim", "a")["granted"][0]["holder"] == "ann"
    assert child.run_json("status")["you"]["id"] == session["id"]
    child.run_error("NOT_YOUR_SESSION", "claim", "b", "--as", "bob", exit=6)


def test_a_wrong_secret_is_refused_with_exit_6(shell: Shell) -> None:
    session = shell.run_json("join", "ann")["session"]
    position = shell.position()

    for secret in ("0" * 48, session["secret"][:-1], session["secret"] + "0", session["id"]):
        pretender = shell.with_env(LANDLANE_SESSION=f"{session['id']}:{secret}")
        pretender.run_error("NOT_YOUR_SESSION", "claim", "a", exit=6)
        pretender.run_error("NOT_YOUR_SESSION", "leave", exit=6)
    shell.with_env(LANDLANE_SESSION="s-aaaaaaaaaa:0123").run_error("NOT_YOUR_SESSION", "claim", "a", exit=6)

    assert shell.position() == position


def test_a_session_that_is_over_is_stale_and_its_successor_is_the_next_generation(shell: Shell) -> None:
    first = shell.run_json("join", "ann")["session"]
    shell.run_json("claim", "a", "--as", "ann")
    left = shell.run_json("leave", "--as", "ann")
    second = shell.run_json("join", "ann")

    old = shell.with_env(LANDLANE_SESSION=f"{first['id']}:{first['secret']}")

    assert left["released"] == ["a"]
    assert second["new"]
    assert (first["generation"], second["session"]["generation"]) == (1, 2)
    assert first["secret"] != second["session"]["secret"]
    old.run_error("SESSION_OVER", "claim", "a", exit=4)
    old.run_error("SESSION_OVER", "leave", exit=4)
    assert old.run_json("claims")["claims"] == []  # looking is free
    assert old.run_json("status")["you"] is None


def test_a_session_text_that_is_none_is_malformed(shell: Shell) -> None:
    for text in ("garbage", ":", "s-abc", "s-abc:", "x-abc:secret", "\x1b[31m", "💥" * 100):
        shell.with_env(LANDLANE_SESSION=text).run_error("BAD_SESSION", "claim", "a")


def test_leaving_without_a_session_is_stale(shell: Shell) -> None:
    shell.run_error("SESSION_OVER", "leave", "--as", "nobody", exit=4)


def test_a_person_needs_no_name(shell: Shell) -> None:
    at_terminal = shell.with_env(USER="Zoë Müller", LANDLANE_AGENT="", LANDLANE_SESSION="")

    granted = at_terminal.run_json("claim", "a")["granted"][0]
    status = at_terminal.run_json("status")

    assert granted["holder"] == "Zo--M-ller"
    assert status["you"]["kind"] == "person"
    assert shell.with_env(USER="", LOGNAME="").run_json("status")["ok"]


def test_children_of_a_registered_shell_are_its_agent(shell: Shell) -> None:
    ended = shell.sh("landlane join ann --pid $$ >&2; landlane claim a --json")

    assert ended.exit == 0, ended
    assert ended.json()["granted"][0]["holder"] == "ann"


def test_a_registered_shell_cannot_act_as_another(shell: Shell) -> None:
    bob = shell.run_json("join", "bob")["session"]
    in_disguise = shell.with_env(LANDLANE_SESSION=f"{bob['id']}:{bob['secret']}", LANDLANE_AGENT="bob")

    named = shell.sh("landlane join ann --pid $$ >&2; landlane claim a --as bob --json")
    dressed = in_disguise.sh("landlane join ann --pid $$ >&2; landlane claim a --json")

    assert named.exit == 6
    assert named.json()["code"] == "NOT_YOUR_SESSION"
    assert dressed.json()["granted"][0]["holder"] == "ann"


def test_the_nearest_registered_ancestor_counts(shell: Shell) -> None:
    script = """
    landlane join ann --pid $$ >&2
    sh -c 'landlane join helper --pid $$ >&2; sh -c "landlane claim a --json"; true'
    """

    assert shell.sh(script).json()["granted"][0]["holder"] == "helper"


def test_outside_the_registered_shell_nobody_is_its_agent(shell: Shell) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        shell.run_json("join", "ann", "--pid", str(other.pid))
        mine = shell.with_env(USER="someone").run_json("claim", "a")["granted"][0]
        other.kill()

    assert mine["holder"] == "someone"


@pytest.mark.promise(
    "sessions.lost-is-told",
    "A registered process whose session has expired gets an error and is never treated as the person at "
    "the terminal.",
)
@pytest.mark.slow
def test_a_registered_shell_whose_lease_ran_out_is_told_so_and_never_taken_for_the_person(
    shell: Shell,
) -> None:
    commit_text(shell.folder, "landlane.toml", '[sessions]\nlease = "8s"\n')
    script = """
    landlane join ann --pid $$ && landlane claim x --ttl 8s && read go
    for try in 1 2; do landlane claim a; echo $?; done
    landlane status
    landlane join ann && landlane claim a && landlane status
    """
    path = f"{os.path.dirname(LANDLANE)}:{os.environ['PATH']}"
    with subprocess.Popen(
        ["sh", "-c", script],
        cwd=shell.folder,
        env={**os.environ, "PATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as registered:
        wait_until(lambda: "claim.taken" in shell.kinds())
        shell.pass_time(8)
        shell.run_json("claim", "x", "--as", "bob", "--wait", "60s")
        told, _ = registered.communicate("go\n", timeout=60)

    assert told.count("[SESSION_OVER]") == 2
    assert told.count("\n4\n") == 2
    assert "the session of ann is over" in told
    assert "joined ann, generation 2" in told
    assert "a   ann  active" in told.partition("Working")[2]


def test_join_as_somebody_else_contradicts_itself(shell: Shell) -> None:
    shell.run_error("NOT_YOUR_SESSION", "join", "ann", "--as", "bob", exit=6)


def test_a_process_that_is_not_there_cannot_stand_for_anybody(shell: Shell) -> None:
    shell.run_error("NO_PROCESS", "join", "ann", "--pid", "999999999")
    for pid in ("0x1", "-1", "one", "12345678901234567890", "١"):
        shell.run_error("BAD_NUMBER", "join", "ann", f"--pid={pid}")


def test_another_user_cannot_take_over_a_name(shell: Shell) -> None:
    shell.run_json("claim", "a", "--as", "ann")
    (shell.state / "sessions" / "ann").unlink()  # as good as not being allowed to read it

    answer = shell.run_error("AGENT_IN_USE", "claim", "b", "--as", "ann", exit=3)

    assert answer["holder"] == "ann"
    assert answer["until"].endswith("Z")
    assert shell.holders() == {"a": "ann"}


def test_the_same_name_in_two_repositories_is_two_sessions(shell: Shell, tmp_path: Path) -> None:
    other = Shell(tmp_path / "other")
    other.folder.mkdir()
    other.git("init", "--quiet")

    here = shell.run_json("join", "ann")["session"]
    there = other.run_json("join", "ann")["session"]

    assert here["id"] != there["id"]
    other.with_env(LANDLANE_SESSION=f"{here['id']}:{here['secret']}").run_error(
        "NOT_YOUR_SESSION", "claim", "a", exit=6
    )
