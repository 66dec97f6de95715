"""Shared state in the words of the practice guides: append-only keys, several keys, what was read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.shell import Shell, run_at_terminal
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.acceptance

SETTINGS = """
[landing]
target = "main"
checks = []

[state.reducers]
log = "append"
found = "union"
highest = "max"

[state.monotonic]
stage = ["plan", "build", "ship"]
"""


@pytest.fixture
def shell(repository: Path) -> Shell:
    (repository / "landlane.toml").write_text(SETTINGS)
    shell = Shell(repository, {"LANDLANE_AGENT": "ann"})
    shell.git("add", "--all")
    shell.git("commit", "--quiet", "-m", "Set up")
    return shell


@pytest.mark.promise(
    "state.append-only-is-not-overwritten",
    "Only a person, with --force, overwrites an append-only or monotonic key, and the journal says so.",
)
def test_append_only_and_monotonic_keys_are_overwritten_by_a_person_with_force_alone(shell: Shell) -> None:
    shell.run_json("state", "append", "log", "one")
    shell.run_json("state", "append", "found", "bug")
    shell.run_json("state", "append", "highest", "7")
    shell.run_json("state", "set", "stage", "ship")
    attempts = {
        "log": ('["two"]', "STATE_APPEND_ONLY"),
        "found": ("[]", "STATE_APPEND_ONLY"),
        "highest": ("3", "STATE_GOES_BACK"),
        "stage": ("plan", "STATE_GOES_BACK"),
    }
    for key, (value, code) in attempts.items():
        for words in (["--any"], ["--expect", "1"]):
            shell.run_error(code, "state", "set", key, value, *words, exit=6)
        shell.run_error("NOT_A_PERSON", "state", "set", key, value, "--force", exit=6)
    shell.run_json("state", "set", "log", '["one", "two"]', "--expect", "1")  # continues what was there

    for key, (value, _) in attempts.items():
        code, said = run_at_terminal(shell.with_env(LANDLANE_AGENT=""), "state", "set", key, value, "--force")
        assert code == 0, said

    assert shell.run_json("state", "get", "log")["value"] == ["two"]
    entries = shell.run_json("log", "--since", "all", "-v")["entries"]
    forced = [one["data"] for one in entries if one["kind"] == "state.set" and one["data"].get("forced")]
    assert [one["key"] for one in forced] == list(attempts)
    assert forced[0]["was"] == ["one", "two"]


@pytest.mark.promise("state.several-at-once", "Several keys are set in one transaction: all, or none.")
def test_a_version_over_several_keys_at_once(shell: Shell) -> None:
    shell.run_json("state", "set", "k1", "a")
    shell.run_json("state", "set", "k2", "b")

    refused = shell.run_error(
        "STATE_STALE", "state", "set", "k1", "x", "k2", "y", "--expect", "k1=1", "--expect", "k2=7", exit=4
    )
    assert (refused["key"], refused["version"], refused["expected"]) == ("k2", 1, 7)
    assert shell.run_text("state", "get", "k1").startswith("a\n")

    both = shell.run_json("state", "set", "k1", "x", "k2", "y", "--expect", "k1=1", "--expect", "k2=1")
    assert [(one["key"], one["version"]) for one in both["states"]] == [("k1", 2), ("k2", 2)]
    # A key that is only read decides as well.
    shell.run_error("STATE_STALE", "state", "set", "k3", "z", "--expect", "k1=1", exit=4)
    shell.run_error("BAD_CALL", "state", "set", "k1", "x", "k2", "y", "--expect", "2")


def test_acting_on_what_was_read_is_checked(shell: Shell) -> None:
    shell.run_json("state", "set", "k1", "a")
    shell.run_json("state", "set", "k2", "b")

    assert shell.run_json("state", "check", "k1=1", "k2=1")["versions"] == {"k1": 1, "k2": 1}
    shell.run_json("state", "set", "k2", "c", "--expect", "1")

    moved = shell.run_error("STATE_STALE", "state", "check", "k1=1", "k2=1", exit=4)["moved"]
    assert [(one["key"], one["expected"], one["version"]) for one in moved] == [("k2", 1, 2)]
    shell.run_error("STATE_STALE", "state", "check", "gone=1", exit=4)
    shell.run_error("BAD_CALL", "state", "check", "k1")


@pytest.mark.promise(
    "state.acts-on-what-was-read",
    "done, land and deploy with --expect change nothing when a key has moved, and exit with 4.",
)
def test_done_land_and_deploy_act_on_what_was_read(shell: Shell) -> None:
    shell.run_json("state", "set", "plan", "a")
    task = shell.run_json("task", "add", "Do it", "--kind", "chore")["task"]["id"]
    shell.run_json("next")
    shell.run_json("state", "set", "plan", "b", "--expect", "1")

    shell.run_error("STATE_STALE", "done", task, "--expect", "plan=1", exit=4)
    assert shell.run_json("task", "show", task)["task"]["state"] == "active"
    assert shell.run_json("done", task, "--expect", "plan=2")["task"]["state"] == "done"

    shell.git("switch", "--quiet", "-c", "work")
    shell.run_json("claim", "a.txt")
    (shell.folder / "a.txt").write_text("a\n")
    shell.git("add", "a.txt")
    shell.git("commit", "--quiet", "-m", "Add a")
    shell.run_error("STATE_STALE", "land", "--expect", "plan=1", exit=4)
    assert shell.run_json("queue", "list", "--all")["landings"] == []

    shell.git("switch", "--quiet", "main")
    shell.run_error("STATE_STALE", "deploy", "prod", "--expect", "plan=1", "--", "touch", "deployed", exit=4)
    assert not (shell.folder / "deployed").exists()


def test_a_key_that_moves_while_a_landing_is_tested_keeps_it_from_landing(shell: Shell) -> None:
    """The versions are judged again in the transaction in which the target is about to move."""
    release = shell.folder.parent / "release"
    shell.run_json("state", "set", "plan", "a")
    toml = shell.folder / "landlane.toml"
    check = f"while ! test -e {release}; do sleep 0.05; done"
    toml.write_text(SETTINGS.replace("checks = []", f'checks = ["{check}"]'))
    shell.git("commit", "--quiet", "-am", "A check that waits")
    before = shell.git("rev-parse", "main").strip()
    shell.git("switch", "--quiet", "-c", "work")
    shell.run_json("claim", "a.txt")
    (shell.folder / "a.txt").write_text("a\n")
    shell.git("add", "a.txt")
    shell.git("commit", "--quiet", "-m", "Add a")

    with shell.start("land", "--wait", "--expect", "plan=1", "--json") as landing:
        wait_until(lambda: "testing" in str(shell.run_json("queue", "list")["landings"]))
        shell.run_json("state", "set", "plan", "b", "--expect", "1")
        release.touch()
        ended = landing.end().json()

    assert (ended["code"], ended["landing"]["state"]) == ("STATE_STALE", "bounced"), ended
    assert "plan is at version 2, not at 1" in ended["landing"]["reason"]
    assert shell.git("rev-parse", "main").strip() == before
