"""A landing whose waiter was killed: it is shown, and taken over by any agent or by the resident."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.shell import Shell

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

# Waits for a file the first time that it runs, and marks that it has begun.
CHECK = "touch ../begun; test -e ../go || sleep 600"


def set_up(shell: Shell, *, resident: bool) -> Path:
    """Queue a branch of ann's; return the folder above the test checkout, in which the check leaves marks."""
    text = f'[landing]\nchecks = ["{CHECK}"]\nresident = {str(resident).lower()}\nsandbox.write = [".."]\n'
    (shell.folder / "landlane.toml").write_text(text)
    shell.git("add", "--all")
    shell.git("commit", "--quiet", "-m", "Set up")
    shell.git("switch", "--quiet", "-c", "one")
    (shell.folder / "a.txt").write_text("a\n")
    shell.git("add", "--all")
    shell.git("commit", "--quiet", "-m", "One")
    shell.git("switch", "--quiet", "main")
    shell.run_json("claim", "a.txt", "--as", "ann")
    folder = shell.folder.parent / f"{shell.folder.name}.workspaces"
    folder.mkdir(exist_ok=True)
    return folder


def kill_waiter(shell: Shell, folder: Path) -> None:
    """Let ann wait for her landing, and kill that process while its check runs."""
    with shell.start("land", "one", "--wait", "--as", "ann") as waiter:
        wait_until((folder / "begun").exists)
        os.kill(waiter.pid, signal.SIGKILL)
    (folder / "go").touch()


@pytest.mark.promise(
    "landing.killed-waiter",
    "A landing whose waiter was killed is shown, and any agent can take it over at once.",
)
def test_another_agent_takes_the_landing_of_a_killed_waiter_over(shell: Shell) -> None:
    folder = set_up(shell, resident=False)
    kill_waiter(shell, folder)

    for command in ((), ("inbox",)):
        shown = shell.run_text(*command)
        assert "waiting: L1" in shown, command
        assert "landlane queue run --drain" in shown
    doctor = shell.run("doctor")
    assert "landings: L1: the process that ran the queue was killed" in doctor.out

    answer = shell.run_json("queue", "run", "--drain", "--as", "bob")

    assert [one["state"] for one in answer["landings"]] == ["landed"]
    assert "killed" not in shell.run_text()


def test_the_resident_takes_the_landing_of_a_killed_waiter_over(shell: Shell) -> None:
    folder = set_up(shell, resident=True)
    kill_waiter(shell, folder)

    wait_until(lambda: shell.run_json("queue", "show", "L1")["landing"]["state"] == "landed")


def test_doctor_fix_runs_the_queue_again(shell: Shell) -> None:
    folder = set_up(shell, resident=False)
    kill_waiter(shell, folder)

    fixed = shell.run("doctor", "--fix")

    assert "the queue runs again for L1" in fixed.out
    wait_until(lambda: shell.run_json("queue", "show", "L1")["landing"]["state"] == "landed")
