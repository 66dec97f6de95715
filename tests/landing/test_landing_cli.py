"""Landing as a user types it: refusals and exit codes, stages, bounces, gates, the pause, the resident."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.support.shell import Shell, run_at_terminal
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.acceptance

CHECK = "test ! -e bad"


def configure(shell: Shell, more: str = "", checks: str = f'["{CHECK}"]') -> None:
    text = f"[landing]\nchecks = {checks}\nresident = false\n{more}"
    (shell.folder / "landlane.toml").write_text(text)
    shell.git("add", "landlane.toml")
    shell.git("commit", "--quiet", "-m", "Settings")


def branch(shell: Shell, name: str, **files: str) -> Shell:
    """A worktree with a branch that has one commit."""
    folder = shell.folder.parent / name
    shell.git("worktree", "add", "--quiet", "-b", name, str(folder), "main")
    for path, text in files.items():
        (folder / path).write_text(text)
    there = shell.at(folder)
    there.git("add", "--all")
    there.git("commit", "--quiet", "-m", f"Write {' '.join(files)}")
    return there


@pytest.mark.slow
def test_each_refusal_has_its_code_and_says_what_to_do(shell: Shell) -> None:
    one = branch(shell, "one", a="x")
    one.run_error("NO_CHECKS", "land", "--as", "ann", exit=2)
    configure(shell)
    one.run_error("OUTSIDE_CLAIMS", "land", "--as", "ann", exit=6)
    shell.run_json("claim", "a", "--as", "bob")
    assert one.run_error("CLAIM_HELD", "land", "--as", "ann", exit=3)["holder"] == "bob"
    shell.run_error("UNKNOWN_BRANCH", "land", "nobody/knows", "--as", "ann", exit=1)
    shell.run_error("TARGET_ITSELF", "land", "--as", "ann", exit=2)
    shell.git("branch", "empty")
    shell.run_error("EMPTY_BRANCH", "land", "empty", "--as", "ann", exit=1)
    shell.run_error("UNKNOWN_LANDING", "queue", "show", "L9")
    shell.run_error("UNKNOWN_LANDING", "queue", "eject", "L9", "--as", "ann")
    one.git("switch", "--quiet", "--detach")
    one.run_error("NO_BRANCH", "land", "--as", "ann", exit=2)
    assert shell.run_json("queue", "list", "--all")["landings"] == []


def test_land_and_wait_shows_each_stage(shell: Shell) -> None:
    configure(shell)
    one = branch(shell, "one", a="x")
    one.run_json("claim", "a", "--as", "ann")

    ended = one.run("land", "--wait", "--as", "ann")

    assert ended.exit == 0, ended
    assert ended.out.startswith("✓ L1 landed on main as ")
    stages = [line.split()[:2] for line in ended.err.splitlines()]
    assert stages == [["L1", "one"], ["✓", "merge"], ["✓", "test"]], ended.err
    assert (shell.folder / "a").read_text() == "x"
    shown = shell.run_json("queue", "show", "L1")["landing"]
    assert (shown["state"], shown["commit"]) == ("landed", shell.git("rev-parse", "main").strip())
    assert shell.run_json("queue", "list")["landings"] == []
    assert "L1       one     ann   landed" in shell.run_text("queue", "list", "--all")
    assert shell.holders() == {}


@pytest.mark.slow
def test_a_bounce_is_one_answer_with_a_task(shell: Shell) -> None:
    configure(shell, checks='["echo look here; test ! -e bad"]')
    one = branch(shell, "one", bad="x")
    one.run_json("claim", "bad", "--as", "ann")

    answer = one.run_error("CHECK_FAILED", "land", "--wait", "--as", "ann", exit=1)

    assert answer["message"] == (
        "L1 bounced: echo look here; test ! -e bad fails; main is unchanged; T1 was added to fix it"
    )
    assert answer["hint"] == "fix it, commit and land again; the full output: landlane queue show L1 -v"
    assert answer["landing"]["bounce_task"] == "T1"
    assert "look here" in shell.run_json("task", "show", "T1")["task"]["body"]
    assert "look here" in shell.run_text("queue", "show", "L1")
    assert shell.holders() == {"bad": "ann"}
    text = one.run("land", "--wait", "--as", "ann")
    assert text.exit == 1
    assert "look here" in text.err


def test_failing_target_is_reported_with_the_output_of_the_check(shell: Shell) -> None:
    configure(shell, checks='["echo broken since monday; false"]')
    one = branch(shell, "one", a="x")
    one.run_json("claim", "a", "--as", "ann")

    answer = one.run_error("TARGET_RED", "land", "--wait", "--as", "ann", exit=1)
    assert answer["message"] == (
        "main itself fails echo broken since monday; false; L1 stays queued and is not charged"
    )
    assert answer["hint"] == "see why: landlane queue show"
    assert answer["output"] == "broken since monday\n"
    ended = shell.run("queue", "run", "--drain")
    assert (ended.exit, "main itself fails" in ended.err) == (1, True), ended
    assert "     broken since monday\n" in shell.run_text("queue", "show")
    assert shell.run_json("queue", "list")["landings"][0]["state"] == "queued"


@pytest.mark.slow
def test_two_machineless_authors_and_one_runner(shell: Shell) -> None:
    configure(shell)
    for name in ("ann", "bob", "carl"):
        there = branch(shell, f"of-{name}", **{name: "x"})
        there.run_json("claim", name, "--as", name)
        assert there.run_json("land", "--as", name)["landing"]["state"] == "queued"
        shell.run_json("leave", "--as", name)
    assert (
        shell.run_error("CLAIM_HELD", "claim", "ann", "--as", "dora", exit=3)["refused"][0]["holder"] == "L1"
    )

    answer = shell.run_json("queue", "run", "--drain")

    assert [one["state"] for one in answer["landings"]] == ["landed"] * 3
    assert shell.run_json("queue", "list")["queue"] | {"tip": ""} == {
        "target": "main",
        "state": "running",
        "tip": "",
        "reason": None,
        "code": None,
        "tests": 1,
        "landed": 3,
    }
    shell.run_json("claim", "ann", "--as", "dora")


def test_resident_lands_entries_without_a_waiting_command(shell: Shell) -> None:
    configure(shell)
    (shell.folder / "landlane.toml").write_text(f'[landing]\nchecks = ["{CHECK}"]\n')
    shell.git("commit", "--quiet", "--all", "-m", "With a resident")
    one = branch(shell, "one", a="x")
    one.run_json("claim", "a", "--as", "ann")

    one.run_json("land", "--as", "ann")

    wait_until(lambda: shell.run_json("queue", "show", "L1")["landing"]["state"] == "landed", 60)
    wait_until(lambda: "runner.ended" in shell.kinds(), 60)


@pytest.mark.slow
def test_a_rewound_target_stops_with_seven_until_it_is_resumed(shell: Shell) -> None:
    configure(shell)
    for name in ("one", "two"):
        there = branch(shell, name, **{name: "x"})
        there.run_json("claim", name, "--as", "ann")
    shell.run_json("land", "one", "--wait", "--as", "ann")
    shell.git("reset", "--quiet", "--hard", "HEAD^")

    shell.run_error("QUEUE_PAUSED", "land", "two", "--wait", "--as", "ann", exit=7)
    shell.run_error("QUEUE_PAUSED", "queue", "run", "--drain", exit=7)
    assert shell.run_json("queue", "list")["queue"]["state"] == "paused"
    assert "the queue is paused: main was rewound" in shell.run_text("queue", "list")

    shell.run_json("queue", "resume", "--why", "it was meant", "--as", "pat")
    assert shell.run_json("queue", "run", "--drain")["landings"][0]["state"] == "landed"


@pytest.mark.slow
def test_the_author_takes_an_entry_out_again(shell: Shell) -> None:
    configure(shell)
    one = branch(shell, "one", a="x")
    one.run_json("claim", "a", "--as", "ann")
    one.run_json("land", "--as", "ann")

    shell.run_error("NOT_YOURS", "queue", "eject", "L1", "--as", "bob", exit=6)
    answer = shell.run_json("queue", "eject", "L1", "--why", "not yet", "--as", "ann")

    assert (answer["landing"]["state"], answer["landing"]["reason"]) == ("ejected", "ann: not yet")
    assert shell.holders() == {"a": "ann"}
    shell.run_error("LANDING_ENDED", "queue", "eject", "L1", "--as", "ann", exit=6)


@pytest.fixture
def held(shell: Shell) -> Shell:
    """An entry that waits for a person."""
    configure(shell, 'gate = ["price*"]\n')
    one = branch(shell, "one", prices="x")
    one.run_json("claim", "prices", "--as", "ann")
    answer = one.run_error("WAITS_FOR_PERSON", "land", "--wait", "--as", "ann", exit=7)
    assert answer["landing"]["state"] == "held"
    assert answer["message"] == "L1 changes prices, so a person must approve it"
    assert shell.run_json("queue", "run", "--drain")["landings"][0]["state"] == "held"
    return shell


@pytest.mark.promise("landing.a-person-approves", "No agent can approve an entry that waits for a person.")
@pytest.mark.slow
def test_an_agent_cannot_approve(held: Shell, tmp_path: Path) -> None:
    joined = held.run_json("join", "ann")
    secret = f"{joined['session']['id']}:{joined['session']['secret']}"
    ways = (
        (held, ("--as", "ann")),
        (held.with_env(LANDLANE_AGENT="ann"), ()),
        (held.with_env(LANDLANE_SESSION=secret), ()),
        (held, ()),
    )
    for shell, more in ways:
        shell.run_error("NOT_A_PERSON", "gate", "approve", "L1", *more, exit=6)
        shell.run_error("NOT_A_PERSON", "gate", "reject", "L1", "--why", "no", *more, exit=6)
    for environment in ({"LANDLANE_AGENT": "ann"}, {"LANDLANE_SESSION": secret}, {"CLAUDECODE": "1"}):
        code, said = run_at_terminal(held, "gate", "approve", "L1", **environment)
        assert (code, "NOT_A_PERSON" in said) == (6, True), said
    assert run_at_terminal(held, "gate", "approve", "L1", "--as", "pat")[0] == 6
    assert held.run_json("gate", "list")["gates"][0]["id"] == "L1"


def test_a_child_of_a_registered_agent_cannot_approve_even_at_a_terminal(held: Shell) -> None:
    held.run_json("join", "robo", "--pid", str(os.getpid()))
    try:
        code, said = run_at_terminal(held, "gate", "approve", "L1")
        assert (code, "and this is robo" in said) == (6, True), said
    finally:
        held.run_json("leave")


@pytest.mark.slow
def test_person_approves_exactly_the_held_commit(held: Shell) -> None:
    head = held.run_json("gate", "list")["gates"][0]["landing"]["head"]
    code, said = run_at_terminal(held, "gate", "approve", "L1", "--head", "0" * 12)
    assert (code, "HEAD_MOVED" in said) == (4, True), said

    code, said = run_at_terminal(held, "gate", "approve", "L1", "--head", head[:10])

    assert code == 0, said
    assert f"✓ approved {head[:8]}; L1 is queued to land (1st)" in said
    assert held.run_json("queue", "run", "--drain")["landings"][0]["state"] == "landed"
    assert held.run_json("queue", "show", "L1")["landing"]["approved_by"] == "pat"
    assert run_at_terminal(held, "gate", "approve", "L1")[0] == 6, "there is nothing to decide any more"


def test_an_approval_is_for_this_head_and_no_other(held: Shell) -> None:
    assert run_at_terminal(held, "gate", "approve", "L1")[0] == 0
    one = held.at(held.folder.parent / "one")
    (one.folder / "prices").write_text("higher")
    one.git("commit", "--quiet", "--all", "-m", "Raise them")
    held.run_json("queue", "eject", "L1", "--as", "ann")

    one.run_error("WAITS_FOR_PERSON", "land", "--as", "ann", exit=7)


def test_a_person_rejects_with_a_reason_for_the_author(held: Shell) -> None:
    held.git("worktree", "remove", "--force", "../one")
    held.git("branch", "--quiet", "-D", "one")

    code, said = run_at_terminal(held, "gate", "reject", "L1", "--why", "the price must not change")

    assert code == 0, said
    shown = held.run_json("queue", "show", "L1")["landing"]
    assert (shown["state"], shown["reason"]) == ("bounced", "pat rejected it: the price must not change")
    assert "the price must not change" in held.run_json("task", "show", shown["bounce_task"])["task"]["body"]
    assert held.git("rev-parse", "one").strip() == shown["head"], "its branch is there again"
    assert held.holders() == {"prices": "ann"}


def test_conflicts_are_shown_for_people_and_programs(shell: Shell) -> None:
    configure(shell)
    assert shell.run_text("queue", "list", "--conflicts") == "No open branches for main.\n"
    for number in (1, 2):
        there = branch(shell, f"b{number}", README=f"{number}\n")
        there.git("branch", "--quiet", "-m", f"landlane/T{number}-1/work")
    one = branch(shell, "one", README="3\n")
    one.run_json("claim", "README", "--as", "ann")
    one.run_json("land", "--as", "ann")

    assert shell.run_text("queue", "list", "--conflicts").splitlines() == [
        "one (L1) and landlane/T1-1/work conflict in README",
        "one (L1) and landlane/T2-1/work conflict in README",
        "landlane/T1-1/work and landlane/T2-1/work conflict in README",
        "hot: README (3 branches, 3 conflicts)",
        "order: one (L1) landlane/T1-1/work landlane/T2-1/work",
    ]
    assert shell.run_json("queue", "list", "--conflicts")["hot"][0]["conflicts"] == 3
