"""Landing as a user types it: refusals and exit codes, stages, bounces, gates, the pause, the resident."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.support.shell import Shell, at_terminal
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
    one.refuse("NO_CHECKS", "land", "--as", "ann", exit=2)
    configure(shell)
    one.refuse("OUTSIDE_CLAIMS", "land", "--as", "ann", exit=6)
    shell.ask("claim", "a", "--as", "bob")
    assert one.refuse("CLAIM_HELD", "land", "--as", "ann", exit=3)["holder"] == "bob"
    shell.refuse("UNKNOWN_BRANCH", "land", "nobody/knows", "--as", "ann", exit=1)
    shell.refuse("TARGET_ITSELF", "land", "--as", "ann", exit=6)
    shell.git("branch", "empty")
    shell.refuse("EMPTY_BRANCH", "land", "empty", "--as", "ann", exit=6)
    shell.refuse("UNKNOWN_LANDING", "queue", "show", "L9")
    shell.refuse("UNKNOWN_LANDING", "queue", "eject", "L9", "--as", "ann")
    one.git("switch", "--quiet", "--detach")
    one.refuse("NO_BRANCH", "land", "--as", "ann", exit=2)
    assert shell.ask("queue", "list", "--all")["landings"] == []


def test_land_and_wait_shows_each_stage(shell: Shell) -> None:
    configure(shell)
    one = branch(shell, "one", a="x")
    one.ask("claim", "a", "--as", "ann")

    ended = one.run("land", "--wait", "--as", "ann")

    assert ended.exit == 0, ended
    assert ended.out.startswith("L1 landed on main as ")
    stages = [line.partition(": ")[2] for line in ended.err.splitlines() if line.startswith("L1: ")]
    wanted = ["queued", "merging", f"testing: {CHECK}", "landing", "landed"]
    assert [stage for stage in stages if stage in wanted] == wanted, ended.err
    assert (shell.folder / "a").read_text() == "x"
    shown = shell.ask("queue", "show", "L1")["landing"]
    assert (shown["state"], shown["commit"]) == ("landed", shell.git("rev-parse", "main").strip())
    assert shell.ask("queue", "list")["landings"] == []
    assert "L1  landed" in shell.tell("queue", "list", "--all")
    assert shell.holders() == {}


@pytest.mark.slow
def test_a_bounce_is_one_answer_with_a_task(shell: Shell) -> None:
    configure(shell, checks='["echo look here; test ! -e bad"]')
    one = branch(shell, "one", bad="x")
    one.ask("claim", "bad", "--as", "ann")

    answer = one.refuse("CHECK_FAILED", "land", "--wait", "--as", "ann", exit=1)

    assert answer["message"] == "L1 bounced: `echo look here; test ! -e bad` ended with 1"
    assert answer["hint"] == "mend it, commit, and land again; `landlane task show T1` tells more"
    assert answer["landing"]["bounce_task"] == "T1"
    assert "look here" in shell.ask("task", "show", "T1")["task"]["body"]
    assert "look here" in shell.tell("queue", "show", "L1")
    assert shell.holders() == {"bad": "ann"}
    text = one.run("land", "--wait", "--as", "ann")
    assert text.exit == 1
    assert "look here" in text.err


def test_a_red_target_is_told_with_what_the_check_said(shell: Shell) -> None:
    configure(shell, checks='["echo broken since monday; false"]')
    one = branch(shell, "one", a="x")
    one.ask("claim", "a", "--as", "ann")

    answer = one.refuse("TARGET_RED", "land", "--wait", "--as", "ann", exit=1)
    assert answer["message"] == "main itself is red: `echo broken since monday; false` ended with 1"
    assert answer["hint"] == "land a branch that mends it"
    assert answer["output"] == "broken since monday\n"
    ended = shell.run("queue", "run", "--drain")
    assert (ended.exit, "broken since monday\n" in ended.err) == (1, True), ended
    assert shell.ask("queue", "list")["landings"][0]["state"] == "queued"


@pytest.mark.slow
def test_two_machineless_authors_and_one_runner(shell: Shell) -> None:
    configure(shell)
    for name in ("ann", "bob", "carl"):
        there = branch(shell, f"of-{name}", **{name: "x"})
        there.ask("claim", name, "--as", name)
        assert there.ask("land", "--as", name)["landing"]["state"] == "queued"
        shell.ask("leave", "--as", name)
    assert (
        shell.refuse("CLAIM_HELD", "claim", "ann", "--as", "dora", exit=3)["refused"][0]["holder"]
        == "landing-L1"
    )

    answer = shell.ask("queue", "run", "--drain")

    assert [one["state"] for one in answer["landings"]] == ["landed"] * 3
    assert shell.ask("queue", "list")["queue"] | {"tip": ""} == {
        "target": "main",
        "state": "running",
        "tip": "",
        "reason": None,
        "code": None,
        "tests": 1,
        "landed": 3,
    }
    shell.ask("claim", "ann", "--as", "dora")


def test_the_resident_lands_what_nobody_waits_for(shell: Shell) -> None:
    configure(shell)
    (shell.folder / "landlane.toml").write_text(f'[landing]\nchecks = ["{CHECK}"]\n')
    shell.git("commit", "--quiet", "--all", "-m", "With a resident")
    one = branch(shell, "one", a="x")
    one.ask("claim", "a", "--as", "ann")

    one.ask("land", "--as", "ann")

    wait_until(lambda: shell.ask("queue", "show", "L1")["landing"]["state"] == "landed", 60)
    wait_until(lambda: "runner.ended" in shell.kinds(), 60)


@pytest.mark.slow
def test_a_rewound_target_stops_with_seven_until_it_is_resumed(shell: Shell) -> None:
    configure(shell)
    for name in ("one", "two"):
        there = branch(shell, name, **{name: "x"})
        there.ask("claim", name, "--as", "ann")
    shell.ask("land", "one", "--wait", "--as", "ann")
    shell.git("reset", "--quiet", "--hard", "HEAD^")

    shell.refuse("QUEUE_PAUSED", "land", "two", "--wait", "--as", "ann", exit=7)
    shell.refuse("QUEUE_PAUSED", "queue", "run", "--drain", exit=7)
    assert shell.ask("queue", "list")["queue"]["state"] == "paused"
    assert "paused: main was rewound" in shell.tell("queue", "list")

    shell.ask("queue", "resume", "--why", "it was meant", "--as", "pat")
    assert shell.ask("queue", "run", "--drain")["landings"][0]["state"] == "landed"


@pytest.mark.slow
def test_the_author_takes_an_entry_out_again(shell: Shell) -> None:
    configure(shell)
    one = branch(shell, "one", a="x")
    one.ask("claim", "a", "--as", "ann")
    one.ask("land", "--as", "ann")

    shell.refuse("NOT_YOURS", "queue", "eject", "L1", "--as", "bob", exit=6)
    answer = shell.ask("queue", "eject", "L1", "--why", "not yet", "--as", "ann")

    assert (answer["landing"]["state"], answer["landing"]["reason"]) == ("ejected", "ann: not yet")
    assert shell.holders() == {"a": "ann"}
    shell.refuse("LANDING_ENDED", "queue", "eject", "L1", "--as", "ann", exit=6)


@pytest.fixture
def held(shell: Shell) -> Shell:
    """An entry that waits for a person."""
    configure(shell, 'gate = ["price*"]\n')
    one = branch(shell, "one", prices="x")
    one.ask("claim", "prices", "--as", "ann")
    answer = one.refuse("WAITS_FOR_PERSON", "land", "--wait", "--as", "ann", exit=7)
    assert answer["landing"]["state"] == "held"
    assert answer["message"] == "L1 waits for a person: it changes prices (price*)"
    assert shell.ask("queue", "run", "--drain")["landings"][0]["state"] == "held"
    return shell


@pytest.mark.promise("landing.a-person-approves", "No agent can approve an entry that waits for a person.")
@pytest.mark.slow
def test_an_agent_cannot_approve(held: Shell, tmp_path: Path) -> None:
    joined = held.ask("join", "ann")
    secret = f"{joined['session']['id']}:{joined['session']['secret']}"
    ways = (
        (held, ("--as", "ann")),
        (held.where(LANDLANE_AGENT="ann"), ()),
        (held.where(LANDLANE_SESSION=secret), ()),
        (held, ()),
    )
    for shell, more in ways:
        shell.refuse("NOT_A_PERSON", "gate", "approve", "L1", *more, exit=6)
        shell.refuse("NOT_A_PERSON", "gate", "reject", "L1", "--why", "no", *more, exit=6)
    for environment in ({"LANDLANE_AGENT": "ann"}, {"LANDLANE_SESSION": secret}, {"CLAUDECODE": "1"}):
        code, said = at_terminal(held, "gate", "approve", "L1", **environment)
        assert (code, "NOT_A_PERSON" in said) == (6, True), said
    assert at_terminal(held, "gate", "approve", "L1", "--as", "pat")[0] == 6
    assert held.ask("gate", "list")["gates"][0]["id"] == "L1"


def test_a_child_of_a_registered_agent_cannot_approve_even_at_a_terminal(held: Shell) -> None:
    held.ask("join", "robo", "--pid", str(os.getpid()))
    try:
        code, said = at_terminal(held, "gate", "approve", "L1")
        assert (code, "the session of robo, an agent" in said) == (6, True), said
    finally:
        held.ask("leave")


@pytest.mark.slow
def test_a_person_approves_exactly_what_waits(held: Shell) -> None:
    head = held.ask("gate", "list")["gates"][0]["landing"]["head"]
    code, said = at_terminal(held, "gate", "approve", "L1", "--head", "0" * 12)
    assert (code, "HEAD_MOVED" in said) == (4, True), said

    code, said = at_terminal(held, "gate", "approve", "L1", "--head", head[:10])

    assert code == 0, said
    assert "prices" in said, "what would land is shown"
    assert "L1 is approved" in said
    assert held.ask("queue", "run", "--drain")["landings"][0]["state"] == "landed"
    assert held.ask("queue", "show", "L1")["landing"]["approved_by"] == "pat"
    assert at_terminal(held, "gate", "approve", "L1")[0] == 6, "there is nothing to decide any more"


def test_an_approval_is_for_this_head_and_no_other(held: Shell) -> None:
    assert at_terminal(held, "gate", "approve", "L1")[0] == 0
    one = held.at(held.folder.parent / "one")
    (one.folder / "prices").write_text("higher")
    one.git("commit", "--quiet", "--all", "-m", "Raise them")
    held.ask("queue", "eject", "L1", "--as", "ann")

    one.refuse("WAITS_FOR_PERSON", "land", "--as", "ann", exit=7)


def test_a_person_rejects_with_a_reason_for_the_author(held: Shell) -> None:
    held.git("worktree", "remove", "--force", "../one")
    held.git("branch", "--quiet", "-D", "one")

    code, said = at_terminal(held, "gate", "reject", "L1", "--why", "the price must not change")

    assert code == 0, said
    shown = held.ask("queue", "show", "L1")["landing"]
    assert (shown["state"], shown["reason"]) == ("bounced", "pat rejected it: the price must not change")
    assert "the price must not change" in held.ask("task", "show", shown["bounce_task"])["task"]["body"]
    assert held.git("rev-parse", "one").strip() == shown["head"], "its branch is there again"
    assert held.holders() == {"prices": "ann"}


def test_conflicts_are_shown_for_people_and_programs(shell: Shell) -> None:
    configure(shell)
    assert shell.tell("queue", "list", "--conflicts") == "no open branches on the way to main\n"
    for number in (1, 2):
        there = branch(shell, f"b{number}", README=f"{number}\n")
        there.git("branch", "--quiet", "-m", f"landlane/T{number}-1/work")
    one = branch(shell, "one", README="3\n")
    one.ask("claim", "README", "--as", "ann")
    one.ask("land", "--as", "ann")

    assert shell.tell("queue", "list", "--conflicts").splitlines() == [
        "one (L1) and landlane/T1-1/work conflict in README",
        "one (L1) and landlane/T2-1/work conflict in README",
        "landlane/T1-1/work and landlane/T2-1/work conflict in README",
        "hot: README (3 branches, 3 conflicts)",
        "order: one (L1) landlane/T1-1/work landlane/T2-1/work",
    ]
    assert shell.ask("queue", "list", "--conflicts")["hot"][0]["conflicts"] == 3
