"""A process that is stopped in the middle of writing: all are told which one it is, and nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.shell import Shell

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

# A writer of our own kind: it stands in the line, has the store, and has written something.
WRITER = """
import sys, time
from landlane.app.open import open_repository

def work(tx):
    print("writes", flush=True)
    time.sleep(600)

open_repository(sys.argv[1]).store.change(work)
"""
FOREIGN = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1] + "/.git/landlane/store.db", isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("writes", flush=True)
time.sleep(600)
"""


@pytest.fixture(params=[WRITER, FOREIGN], ids=["ours", "foreign"])
def stopped(request: pytest.FixtureRequest, shell: Shell) -> Iterator[int]:
    shell.run_json("claim", "before.py", "--as", "ann")
    (shell.folder / "landlane.toml").write_text('[store]\nwait = "1s"\n')  # or each test takes half a minute
    command = [sys.executable, "-c", request.param, str(shell.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writes\n"
        os.kill(writer.pid, signal.SIGSTOP)
        yield writer.pid
        writer.kill()


def test_the_doctor_names_the_process_and_how_it_goes_on(shell: Shell, stopped: int) -> None:
    for words in (["doctor"], ["doctor", "--fix"]):
        answer = shell.run_json(*words, exit=1)

        row = answer["checks"][-1]
        assert (row["name"], row["ok"]) == ("store", False)
        assert f"process {stopped} (" in row["found"]
        assert row["found"].endswith("which is stopped")
        assert f"kill -CONT {stopped}" in row["hint"]


def test_a_claim_that_waited_in_vain_is_told_behind_whom(shell: Shell, stopped: int) -> None:
    refused = shell.run_error("STORE_BUSY", "claim", "x.py", "--as", "ann", exit=5)

    assert f"process {stopped} (" in refused["message"]
    assert f"kill -CONT {stopped}" in refused["hint"]


def test_looking_goes_on_and_so_does_work_once_the_writer_is_gone(shell: Shell, stopped: int) -> None:
    assert shell.holders() == {"before.py": "ann"}
    assert shell.run_json("status")["ok"]

    os.kill(stopped, signal.SIGKILL)

    wait_until(lambda: shell.run("claim", "after.py", "--as", "ann").exit == 0)
    assert shell.holders() == {"before.py": "ann", "after.py": "ann"}
    assert shell.run_json("log", "--verify")["trouble"] == []
