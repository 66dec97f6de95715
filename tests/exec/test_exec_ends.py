"""However a run ends, and whoever is killed: all of its processes end, nothing of its work is lost."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.sandbox.model import BackendKind
from tests.exec.support import ExecTestbed, living
from tests.support.resident import copy_package
from tests.support.shell import LANDLANE
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.acceptance, pytest.mark.sandbox, pytest.mark.on_disk]

# Children of every kind: in the group, in a session of their own, without a parent. Each bears a number of
# seconds by which only it is found.
TREE = """
echo precious > src/draft.py
sleep {0} &
setsid sleep {0} &
(setsid sh -c 'sleep {0} & exec sleep {0}' &)
{1}
echo up
wait
"""
DEAF = """sh -c 'trap "" TERM HUP INT; sleep {0}; sleep {0}' &"""


@pytest.fixture(scope="session")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What to set for a package that waits less before it kills, and looks more often for killed starters."""
    seconds = {
        "cli/resident.py:_RUNS_SECONDS": 0.2,
        "processes/passthrough.py:_GRACE_SECONDS": 0.5,
        "processes/tree_child.py:_GRACE_SECONDS": 0.5,
        "sandbox/start.py:_GRACE_SECONDS": 0.5,
    }
    return {"PYTHONPATH": str(copy_package(tmp_path_factory.mktemp("impatient"), seconds))}


@pytest.fixture
def mark() -> Iterator[str]:
    """A word by which the processes of one test are found; none of them outlives it."""
    word = f"{100_000 + os.getpid() % 10_000}.{time.monotonic_ns() % 1_000_000_000}"
    yield word
    for pid in living(word):
        os.kill(pid, signal.SIGKILL)


def start_words(mark: str, *, is_deaf: bool = False) -> tuple[str, ...]:
    script = TREE.format(mark, DEAF.format(mark) if is_deaf else "")
    return ("exec", "--role", "code", "--name", "ann", "--", "sh", "-c", script)


@pytest.mark.promise("exec.nothing-is-lost", "Uncommitted changes of a stopped command are kept.")
@pytest.mark.parametrize(
    ("testbed", "number"),
    [
        (BackendKind.LANDLOCK, signal.SIGTERM),
        (BackendKind.BUBBLEWRAP, signal.SIGTERM),
        (BackendKind.LANDLOCK, signal.SIGINT),
        (BackendKind.LANDLOCK, signal.SIGHUP),
    ],
    indirect=["testbed"],
)
def test_a_signal_ends_all_of_it_and_keeps_the_work(
    testbed: ExecTestbed, mark: str, number: int, impatient: dict[str, str]
) -> None:
    with testbed.shell.with_env(**impatient).start(
        *start_words(mark, is_deaf=number == signal.SIGTERM)
    ) as running:
        assert running.read_line() == "up\n"
        bystander = testbed.shell.start("log", "--follow")
        with bystander:
            running.signal(number)
            ended = running.end()
            assert bystander.is_running

    assert (ended.exit, "INTERRUPTED" in ended.err) == (128 + number, True), ended
    assert living(mark) == []
    assert testbed.left_over() == []
    (run,) = testbed.runs()
    assert not os.path.exists(run["scratch"])
    assert draft_of(testbed) == "precious\n"


def draft_of(testbed: ExecTestbed) -> str:
    """What the run wrote and did not commit, brought back from where it was saved."""
    (saved,) = testbed.shell.run_json("rescue", "list")["rescues"]
    back = testbed.repository.parent / "back"
    testbed.shell.run_json("rescue", "restore", saved["id"], "--into", str(back))
    return (back / "src" / "draft.py").read_text()


@pytest.mark.promise(
    "exec.nothing-goes-on",
    "When the parent of a sandboxed command is killed, the next Landlane process ends the processes it left.",
)
@pytest.mark.parametrize(
    ("testbed", "who"),
    [
        (BackendKind.LANDLOCK, "exec"),
        (BackendKind.LANDLOCK, "doctor"),
        (BackendKind.LANDLOCK, "resident"),
        (BackendKind.BUBBLEWRAP, "resident"),
    ],
    indirect=["testbed"],
)
def test_after_its_starter_was_killed_whoever_comes_ends_it(
    testbed: ExecTestbed, mark: str, who: str, impatient: dict[str, str]
) -> None:
    with testbed.shell.with_env(**impatient).start(*start_words(mark)) as running:
        assert running.read_line() == "up\n"
        wait_until(lambda: testbed.runs()[0]["tree"]["root"]["pid"] > 0)  # the starter may write it later
        (run,) = testbed.runs()
        resident = testbed.resident()
        assert resident
        if who != "resident":
            os.kill(resident, signal.SIGSTOP)  # so that it is not the one who finds out
        running.signal(signal.SIGKILL)
        wait_until(lambda: not running.is_running)
        if who != "resident":
            os.kill(resident, signal.SIGKILL)
        if who == "exec":
            assert testbed.execute("review", "true").exit == 0
        elif who == "doctor":
            looked = testbed.shell.run("doctor", "--json").json()
            assert not next(one for one in looked["checks"] if one["name"] == "sandboxed runs")["ok"]
            assert living(mark)
            testbed.shell.run("doctor", "--fix")
        wait_until(lambda: not living(mark), 40)
        running.end()
    wait_until(lambda: testbed.left_over() == [], 40)
    assert not os.path.exists(run["scratch"])
    # What it wrote is in its workspace still, and saved by whoever takes that away.
    (workspace,) = testbed.shell.run_json("workspace", "list")["workspaces"]
    assert Path(workspace["path"], "src", "draft.py").read_text() == "precious\n"


def test_what_lives_of_a_run_that_is_over_is_told_and_ended(weak_testbed: ExecTestbed) -> None:
    testbed = weak_testbed
    assert testbed.execute("review", "true").exit == 0
    (run,) = testbed.runs()
    marked = {**os.environ, "LANDLANE_TREE": run["tree"]["id"]}
    with subprocess.Popen(["sleep", "600"], env=marked, start_new_session=True) as left:
        try:
            looked = testbed.shell.run("doctor", "--json").json()
            row = next(one for one in looked["checks"] if one["name"] == "sandboxed runs")
            assert not row["ok"]
            assert f"1 of {run['id']}" in row["found"], row
            assert left.poll() is None
            testbed.shell.run("doctor", "--fix")
            assert left.wait(30) == -signal.SIGTERM
        finally:
            left.kill()


def test_another_process_with_the_same_pid_is_left_alone(weak_testbed: ExecTestbed) -> None:
    testbed = weak_testbed
    testbed.shell.run_json("status")
    # A record that was never ended, as if its pid were used again by somebody else since.
    with testbed.shell.start("log", "--follow") as bystander:
        forge_run(testbed, bystander.pid)
        answer = testbed.execute("review", "true")
        assert "was left by its starter: none went on" in answer.err, answer
        assert bystander.is_running


def forge_run(testbed: ExecTestbed, pid: int) -> None:
    from landlane.app.open import open_repository
    from landlane.platform.process import Process
    from landlane.processes.tree import ProcessTree
    from landlane.sessions.join import join
    from landlane.sessions.sandbox_runs import begin_run, change_run

    repo = open_repository(str(testbed.repository))
    here = repo.processes.identify(pid)
    old = Process(boot_id=here.boot_id, namespace=here.namespace, pid=pid, started=here.started - 1)
    tree = ProcessTree(id="no such mark", root=old, is_wrapped=False)
    run = begin_run(
        repo,
        join(repo, "gone").session,
        tree,
        program="sh",
        home=str(testbed.repository / ".git"),
        user=os.geteuid(),
        scratch="/nowhere/landlane-gone",
    )
    change_run(repo, run, "started", starter=old)
    repo.close()


def test_while_it_runs_there_is_always_a_resident(testbed: ExecTestbed) -> None:
    go_on = f"while ! test -e {testbed.repository}/go-on; do sleep 0.05; done"
    script = f"echo up; {go_on}; landlane claim src/app.py"
    with testbed.shell.start("exec", "--role", "code", "--", "sh", "-c", script) as running:
        assert running.read_line() == "up\n"
        first = testbed.resident()
        assert first
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: testbed.resident() not in (0, first))
        (testbed.repository / "go-on").write_text("")
        ended = running.end()
    assert ended.exit == 0, ended
    assert ended.out.startswith("✓ claimed"), ended


def test_a_store_that_goes_away_meanwhile_takes_nothing_with_it(weak_testbed: ExecTestbed) -> None:
    testbed = weak_testbed
    script = (
        f"echo kept > src/kept.py; echo up; while ! test -e {testbed.repository}/go-on; do sleep 0.05; done"
    )
    task = testbed.shell.run_json("task", "add", "Long")["task"]["id"]
    words = ("exec", "--role", "code", "--task", task, "--", "sh", "-c", f"{script}; exit 5")
    with testbed.shell.start(*words) as running:
        assert running.read_line() == "up\n"
        (workspace,) = testbed.shell.run_json("workspace", "list")["workspaces"]
        away = testbed.repository.parent / "away"
        testbed.state.rename(away)
        (testbed.repository / "go-on").write_text("")
        ended = running.end()
    assert ended.exit == 5, ended
    assert Path(workspace["path"], "src", "kept.py").read_text() == "kept\n"
    assert "Traceback" not in ended.err, ended


def test_at_a_terminal_ctrl_c_is_for_the_program(testbed: ExecTestbed) -> None:
    program = (
        "import os, signal, sys\n"
        "assert os.isatty(0) and os.isatty(1)\n"
        "def heard(*_):\n    print('interrupted', flush=True)\n"
        "signal.signal(signal.SIGINT, heard)\n"
        "print('ready', flush=True)\n"
        "line = input()\n"
        "print('read ' + line, flush=True)\n"
        "sys.exit(9)\n"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(testbed.repository)
        os.environ.update(testbed.shell.environment)
        words = ["exec", "--role", "review", "--", sys.executable, "-c", program]
        os.execv(LANDLANE, [LANDLANE, *words])
    said = ""

    def await_word(word: str) -> None:
        nonlocal said
        give_up_at = time.monotonic() + 30
        while word not in said:
            assert time.monotonic() < give_up_at, said
            if select.select([terminal], [], [], 0.1)[0]:
                try:
                    said += os.read(terminal, 4096).decode(errors="replace")
                except OSError:  # its other end is closed
                    assert word in said, said

    await_word("ready")
    os.write(terminal, b"\x03")
    await_word("interrupted")
    os.write(terminal, b"hello\n")
    await_word("read hello")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 9, said
