"""Ending a command ends everything it started, and no other process."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from landlane.platform.file_users import processes_in
from landlane.platform.process import Process, list_pids, read_dead_process, read_process
from landlane.processes.tree import ProcessTree, end_tree, find_members, record_tree
from landlane.sandbox.confined_thread import SandboxThread
from landlane.sandbox.guarantees import ABI_SCOPE
from landlane.sandbox.model import Backend, BackendKind, Sandbox
from landlane.sandbox.start import SandboxedChild, choose_backend
from landlane.values import as_dict, replace
from tests.sandbox.escapes import pick_backend
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.sandbox, pytest.mark.on_disk]

WAIT_SECONDS = 30.0  # a longer wait means that something hangs

# Three processes that stay: one in the group, one in a session of its own, and one that has also dropped its
# parents and its environment. Each works in the workspace and creates a file when it runs.
SCATTER = """
sh -c 'touch ready-1; exec sleep 600' &
setsid sh -c 'touch ready-2; exec sleep 600' &
(setsid env -i PATH="$PATH" sh -c 'touch ready-3; exec sleep 600' >/dev/null 2>&1 &)
wait
"""
SCATTERED = ("ready-1", "ready-2", "ready-3")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def bystander(workspace: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start another program of the same name in the same folder that does not belong to the tree."""
    with subprocess.Popen(["sleep", "600"], cwd=workspace, start_new_session=True) as process:
        yield process
        process.kill()


def wait_for_files(workspace: Path, names: tuple[str, ...]) -> None:
    wait_until(lambda: all((workspace / name).exists() for name in names))


def live_pids(workspace: Path) -> set[int]:
    return {pid for pid, _ in processes_in(str(workspace))}


@pytest.mark.promise(
    "sandbox.end-all-of-it",
    "Ending a sandboxed command ends every process it started, even one that left its process group, "
    "session and environment.",
)
def test_ending_reaches_processes_that_left_group_session_and_environment(
    backend: Backend,
    make_sandbox: Callable[..., Sandbox],
    workspace: Path,
    bystander: subprocess.Popen[bytes],
) -> None:
    child = SandboxedChild(["sh", "-c", SCATTER], make_sandbox(), cwd=str(workspace), backend=backend)
    wait_for_files(workspace, SCATTERED)

    count = child.end(grace_seconds=5)

    assert count >= 4
    assert live_pids(workspace) == {bystander.pid}
    child.wait(WAIT_SECONDS)


def test_what_a_command_leaves_behind_ends_with_it(
    backend: Backend,
    make_sandbox: Callable[..., Sandbox],
    workspace: Path,
    bystander: subprocess.Popen[bytes],
) -> None:
    gone = SCATTER.replace(
        "wait\n", "while ! [ -e ready-1 -a -e ready-2 -a -e ready-3 ]; do sleep 0.01; done\n"
    )
    child = SandboxedChild(
        ["sh", "-c", gone + "echo done"], make_sandbox(), cwd=str(workspace), backend=backend
    )

    ended = child.wait(WAIT_SECONDS)

    assert (ended.exit_code, ended.stdout, ended.has_timed_out) == (0, "done\n", False)
    assert live_pids(workspace) == {bystander.pid}


def test_a_command_that_takes_too_long_is_ended_with_its_tree(
    backend: Backend, make_sandbox: Callable[..., Sandbox], workspace: Path
) -> None:
    child = SandboxedChild(["sh", "-c", SCATTER], make_sandbox(), cwd=str(workspace), backend=backend)
    wait_for_files(workspace, SCATTERED)

    assert child.wait(0.01).has_timed_out
    assert live_pids(workspace) == set()


def test_every_process_gets_sigterm_before_any_gets_sigkill(
    backend: Backend, make_sandbox: Callable[..., Sandbox], workspace: Path
) -> None:
    polite = "trap 'touch bye; exit 0' TERM; touch ready; while :; do sleep 0.01; done"
    script = f'trap "wait; exit 0" TERM; setsid sh -c "{polite}" & wait'
    child = SandboxedChild(["sh", "-c", script], make_sandbox(), cwd=str(workspace), backend=backend)
    wait_for_files(workspace, ("ready",))

    child.end(grace_seconds=WAIT_SECONDS)

    assert (workspace / "bye").exists()
    assert live_pids(workspace) == set()
    child.wait(WAIT_SECONDS)


def test_a_process_that_ignores_sigterm_is_killed_after_the_grace(
    backend: Backend, make_sandbox: Callable[..., Sandbox], workspace: Path
) -> None:
    stubborn = "trap '' TERM; touch ready; while :; do sleep 0.01; done"
    child = SandboxedChild(["sh", "-c", stubborn], make_sandbox(), cwd=str(workspace), backend=backend)
    wait_for_files(workspace, ("ready",))

    child.end(grace_seconds=0.1)

    assert live_pids(workspace) == set()
    child.wait(WAIT_SECONDS)


STARTER = """
import json, sys
from landlane.sandbox.model import Backend, Sandbox
from landlane.sandbox.confined_thread import SandboxThread
from landlane.sandbox.start import SandboxedChild
from landlane.values import as_dict
backend, sandbox, script, cwd = json.load(sys.stdin)
sandbox = {name: tuple(item) if isinstance(item, list) else item for name, item in sandbox.items()}
child = SandboxedChild(["sh", "-c", script], Sandbox(**sandbox), cwd=cwd, backend=Backend(**backend))
print(json.dumps({**as_dict(child.tree), "root": as_dict(child.tree.root)}), flush=True)
child.wait(600)
"""


def test_a_recorded_tree_can_be_ended_after_its_starter_was_killed(
    backend: Backend,
    make_sandbox: Callable[..., Sandbox],
    workspace: Path,
    bystander: subprocess.Popen[bytes],
) -> None:
    script = SCATTER.replace("env -i", "env")  # the last process keeps its mark
    starter = subprocess.Popen([sys.executable, "-c", STARTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert starter.stdin is not None
    assert starter.stdout is not None
    starter.stdin.write(
        json.dumps([as_dict(backend), as_dict(make_sandbox()), script, str(workspace)]).encode()
    )
    starter.stdin.close()
    answer = json.loads(starter.stdout.readline())
    starter.stdout.close()
    wait_for_files(workspace, SCATTERED)

    starter.kill()
    starter.wait()
    if backend.bwrap:  # the kernel ends it together with its starter
        wait_until(lambda: live_pids(workspace) == {bystander.pid})
    else:
        end_tree(ProcessTree(**{**answer, "root": Process(**answer["root"])}))

    assert live_pids(workspace) == {bystander.pid}


def test_a_reused_pid_is_left_alone(bystander: subprocess.Popen[bytes]) -> None:
    tree = record_tree("no-such-mark", bystander.pid, is_wrapped=False)
    earlier = replace(tree, root=replace(tree.root, started=tree.root.started - 1))
    elsewhere = replace(tree, root=replace(tree.root, boot_id="another"))

    assert [one.pid for one in find_members(tree)] == [bystander.pid]
    assert end_tree(earlier) == 0
    assert end_tree(elsewhere) == 0
    assert bystander.poll() is None


# Each link forks the next and ends, some in a session of their own; the last one also drops its environment.
CHAIN = """
import os, sys, time
def forked(number):
    if os.fork():
        os._exit(0)
    if number % 7 == 0:
        os.setsid()
    with open("links", "a") as file:
        file.write(".")
    if number == 20:
        open("up", "w").close()
    time.sleep(float(sys.argv[1]))
if sys.argv[2] == "waits" and os.fork():
    time.sleep(600)
for number in range(1500):
    forked(number)
os.execve("/bin/sleep", ["sleep", "600"], {})
"""


@pytest.fixture(params=["exact", "adopting"])
def landlock(request: pytest.FixtureRequest) -> Backend:
    """Return Landlock alone: as it is here, and as a version that cannot tell its members."""
    found = pick_backend(BackendKind.LANDLOCK)
    if found is None:
        pytest.skip(f"no Landlock: {' '.join(choose_backend().reasons)}")
    if request.param == "exact" and found.landlock_abi < ABI_SCOPE:
        pytest.skip("this kernel's Landlock does not tell who is behind it")
    return found if request.param == "exact" else replace(found, landlock_abi=ABI_SCOPE - 1)


@pytest.mark.parametrize("pause", ["0.004", "0"])
@pytest.mark.parametrize("ending", ["by itself", "asked"])
def test_forking_all_the_time_does_not_escape_the_kill(
    landlock: Backend,
    make_sandbox: Callable[..., Sandbox],
    workspace: Path,
    bystander: subprocess.Popen[bytes],
    pause: str,
    ending: str,
) -> None:
    for _ in range(3):
        (workspace / "up").unlink(missing_ok=True)
        words = [sys.executable, "-c", CHAIN, pause, "waits" if ending == "asked" else "ends"]
        child = SandboxedChild(words, make_sandbox(), cwd=str(workspace), backend=landlock)
        # A child of ours that does not belong to the tree: only its missing sandbox shows that.
        with subprocess.Popen(["sleep", "600"], start_new_session=True) as own:
            wait_for_files(workspace, ("up",))

            if ending == "asked":
                child.end(grace_seconds=0.1)
            child.wait(WAIT_SECONDS)
            has_own = own.poll() is None
            own.kill()

        # A chain that survived may escape this look as well, but it would go on writing.
        links = (workspace / "links").stat().st_size
        time.sleep(0.2)
        assert (workspace / "links").stat().st_size == links
        assert live_pids(workspace) == {bystander.pid}
        assert has_own


def test_orphans_are_adopted_only_while_the_command_runs(
    make_sandbox: Callable[..., Sandbox], workspace: Path
) -> None:
    leaves = "(sh -c 'echo $$ > orphan; exec sleep 600' &); touch left; while :; do sleep 0.01; done"
    for backend, is_adopted in (
        (Backend(name=BackendKind.NONE), True),
        (pick_backend(BackendKind.LANDLOCK), False),
    ):
        if backend is None or (backend.name == BackendKind.LANDLOCK and backend.landlock_abi < ABI_SCOPE):
            continue
        child = SandboxedChild(["sh", "-c", leaves], make_sandbox(), cwd=str(workspace), backend=backend)
        wait_for_files(workspace, ("left", "orphan"))
        wait_until(lambda: (workspace / "orphan").read_text().endswith("\n"))
        orphan = read_process(int((workspace / "orphan").read_text()))
        assert orphan is not None
        assert (orphan.parent == os.getpid()) == is_adopted

        child.end(grace_seconds=0)
        child.wait(WAIT_SECONDS)
        (workspace / "orphan").unlink()
        (workspace / "left").unlink()

        assert live_pids(workspace) == set()
        assert not adopts_orphans()


def adopts_orphans() -> bool:
    setting = ctypes.c_int(-1)
    assert ctypes.CDLL(None).prctl(37, ctypes.byref(setting), 0, 0, 0) == 0
    return bool(setting.value)


def test_adopted_processes_are_reaped(make_sandbox: Callable[..., Sandbox], workspace: Path) -> None:
    words = [sys.executable, "-c", CHAIN.replace("1500", "30").replace("{}", "os.environ"), "0", "waits"]
    child = SandboxedChild(words, make_sandbox(), cwd=str(workspace), backend=Backend(name=BackendKind.NONE))
    wait_for_files(workspace, ("up",))

    def tick() -> None:
        dead = [one for one in map(read_dead_process, list_pids()) if one and one.parent == os.getpid()]
        if len(dead) <= 1:
            child.end(grace_seconds=0)

    assert not child.wait(WAIT_SECONDS, tick).has_timed_out
    assert live_pids(workspace) == set()


def test_a_sandbox_that_does_not_limit_signals_kills_no_process(
    bystander: subprocess.Popen[bytes],
) -> None:
    thread = SandboxThread(lambda: None, scopes_signals=True)

    assert not thread.is_exact
    assert not thread.kill_all()
    assert bystander.poll() is None
    thread.close()


def test_a_signal_reaches_the_command_through_its_wrapping(
    backend: Backend, make_sandbox: Callable[..., Sandbox], workspace: Path
) -> None:
    heard = "trap 'touch heard; exit 3' USR1; touch ready; while :; do sleep 0.01; done"
    child = SandboxedChild(["sh", "-c", heard], make_sandbox(), cwd=str(workspace), backend=backend)
    wait_for_files(workspace, ("ready",))

    child.signal(signal.SIGUSR1)

    assert child.wait(WAIT_SECONDS).exit_code == 3
    assert (workspace / "heard").exists()


def test_a_sandbox_that_does_not_limit_signals_reports_no_members(bystander: subprocess.Popen[bytes]) -> None:
    thread = SandboxThread(lambda: None, scopes_signals=True)

    assert thread.members([bystander.pid, os.getpid()]) is None
    thread.close()


def test_our_own_process_is_never_part_of_a_tree() -> None:
    tree = record_tree("no-such-mark", os.getpid(), is_wrapped=False)

    assert os.getpid() not in [one.pid for one in find_members(tree)]
