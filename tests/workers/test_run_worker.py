"""Speaking with real workers: good ones are heard out, bad ones end with a reason, and nothing survives."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from landlane.errors import Malformed
from landlane.processes.tree import TREE_MARK, find_members
from landlane.processes.tree_child import WorkerChild
from landlane.protocol.worker.messages import (
    Heartbeat,
    Progress,
    Usage,
    WorkAssignment,
    WorkComplete,
    WorkerLimits,
    WorkFailed,
)
from landlane.workers.run_worker import WorkerEnd, run_worker

if TYPE_CHECKING:
    from landlane.processes.tree import ProcessTree

pytestmark = pytest.mark.integration

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "workers"
PATIENT = WorkerLimits(silence_ms=30_000)
ID = '"version":1,"assignment":"T7-1"'
BEAT = f'{{"type":"Heartbeat",{ID}}}'
DONE = f'{{"type":"WorkComplete",{ID},"summary":"done"}}'


class WorkerTestbed:
    """Runs workers, and looks afterwards whether anything of them lives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.heard: list[Any] = []
        self.trees: list[ProcessTree] = []

    def run(self, *command: str, limits: WorkerLimits = PATIENT, **more: Any) -> WorkerEnd:
        def start(streams: tuple[int, int, int]) -> WorkerChild:
            child = WorkerChild(command, cwd=str(self.folder), streams=streams)
            self.trees.append(child.tree)
            return child

        asked = {"grace_seconds": 0.3, "on_message": self.heard.append, **more}
        asked.setdefault("assignment", self.assignment())
        end = run_worker(start, limits=limits, **asked)
        assert [find_members(tree) for tree in self.trees] == [[] for _ in self.trees]
        return end

    def sh(self, script: str, **more: Any) -> WorkerEnd:
        return self.run("sh", "-c", script, **more)

    def python(self, script: str, **more: Any) -> WorkerEnd:
        return self.run(sys.executable, "-c", script, **more)

    def assignment(self, **more: Any) -> WorkAssignment:
        fields: dict[str, Any] = {
            "assignment": "T7-1",
            "task": "T7",
            "attempt": 1,
            "title": "Tidy",
            "folder": str(self.folder),
            "heartbeat_seconds": 60,
            **more,
        }
        return WorkAssignment(**fields)


@pytest.fixture
def testbed(tmp_path: Path) -> WorkerTestbed:
    return WorkerTestbed(tmp_path)


def failure(end: WorkerEnd, code: str) -> str:
    assert isinstance(end.outcome, WorkFailed), end
    assert end.outcome.code == code, end
    assert end.outcome.assignment == "T7-1"
    return end.outcome.reason


# ------------------------------------------------------------------------------------------ good ones


def test_all_messages_of_a_worker_are_read(testbed: WorkerTestbed) -> None:
    answer = f'{{"type":"Progress",{ID},"text":"half","done":0.5}}'

    end = testbed.sh(f"read line; echo warning >&2; echo '{BEAT}'; echo '{answer}'; echo '{DONE}'")

    assert end.outcome == WorkComplete(assignment="T7-1", summary="done")
    assert testbed.heard == [
        Heartbeat(assignment="T7-1"),
        Progress(assignment="T7-1", text="half", done=0.5),
        end.outcome,
    ]
    assert (end.exit_code, end.stderr, end.messages, end.was_killed) == (0, "warning\n", 3, False)


def test_lines_may_come_in_pieces(testbed: WorkerTestbed) -> None:
    pieces = [DONE[:20], DONE[20:50], DONE[50:] + "\n"]
    body = "sys.stdout.write(piece); sys.stdout.flush(); time.sleep(0.05)"
    script = f"import sys, time\nfor piece in {pieces!r}:\n  {body}"

    assert isinstance(testbed.python(script).outcome, WorkComplete)


def test_a_long_assignment_reaches_a_worker_that_takes_its_time(testbed: WorkerTestbed) -> None:
    asked = testbed.assignment(body="x" * 60_000, notes=tuple("y" * 60_000 for _ in range(20)))

    end = testbed.sh(f"sleep 0.1; test $(wc -c) -gt 1000000 && echo '{DONE}'", assignment=asked)

    assert isinstance(end.outcome, WorkComplete)


def test_a_worker_that_reports_failure_has_failed(testbed: WorkerTestbed) -> None:
    said = f'{{"type":"WorkFailed",{ID},"code":"rate_limited","reason":"429","retry_after_seconds":30}}'

    end = testbed.sh(f"echo '{said}'; exit 3")

    assert end.outcome == WorkFailed(
        assignment="T7-1", code="rate_limited", reason="429", retry_after_seconds=30
    )
    assert end.exit_code == 3


def test_a_slow_worker_with_heartbeats_continues(testbed: WorkerTestbed) -> None:
    script = f"for n in 1 2 3 4 5 6 7 8; do echo '{BEAT}'; done; echo '{DONE}'"

    # By this clock, 50 of the 60 seconds pass before each of its signs of life.
    end = testbed.sh(script, limits=WorkerLimits(silence_ms=60_000), now=lambda: 50_000 * len(testbed.heard))

    assert isinstance(end.outcome, WorkComplete)
    assert end.messages == 9


def test_a_worker_that_does_not_exit_after_its_last_message_is_ended_and_counts(
    testbed: WorkerTestbed,
) -> None:
    end = testbed.sh("exec >&-; sleep 300 & echo never", limits=WorkerLimits(silence_ms=500))
    failure(end, "died")

    end = testbed.sh(f"sleep 300 & echo '{DONE}'")  # a child of its own holds the output
    assert isinstance(end.outcome, WorkComplete)
    assert not end.was_killed


# ------------------------------------------------------------------------------------------- bad ones


def test_garbage_ends_it(testbed: WorkerTestbed) -> None:
    assert "not JSON" in failure(testbed.sh("echo hello; sleep 300"), "malformed")
    assert testbed.heard == []


def test_a_binary_flood_without_lines_ends_it(testbed: WorkerTestbed) -> None:
    assert "4,194,304" in failure(testbed.sh("cat /dev/zero"), "oversized")


def test_a_flood_of_messages_ends_it(testbed: WorkerTestbed) -> None:
    end = testbed.sh(f"yes '{BEAT}'", limits=WorkerLimits(most_messages=1000))

    assert "1,000 messages" in failure(end, "flooded")
    assert len(testbed.heard) == 1000


def test_a_flood_of_bytes_ends_it(testbed: WorkerTestbed) -> None:
    answer = f'{{"type":"Progress",{ID},"text":"{"x" * 7000}"}}'

    assert "bytes" in failure(
        testbed.sh(f"yes '{answer}'", limits=WorkerLimits(most_bytes=1_000_000)), "flooded"
    )


def test_a_flood_of_complaints_is_cut_and_does_no_harm(testbed: WorkerTestbed) -> None:
    end = testbed.sh(f"yes complaint | head -c 3000000 >&2; echo '{DONE}'")

    assert isinstance(end.outcome, WorkComplete)
    assert 0 < len(end.stderr) <= 64_000


def test_silence_ends_it_and_half_a_line_is_silence(testbed: WorkerTestbed) -> None:
    end = testbed.sh("printf '{'; sleep 300", limits=WorkerLimits(silence_ms=400))

    assert "no sign of life" in failure(end, "silent")
    assert end.was_killed


def test_hours_of_silence_by_a_given_clock_end_it_at_once(testbed: WorkerTestbed) -> None:
    hours = iter(range(0, 10**12, 3_600_000))

    end = testbed.sh("sleep 300", limits=WorkerLimits(silence_ms=7_200_000), now=lambda: next(hours))

    failure(end, "silent")


class SteppedClock:
    """A clock that runs, and that jumps when it is told to."""

    def __init__(self) -> None:
        self.ahead = 0

    def __call__(self) -> int:
        return time.monotonic_ns() // 1_000_000 + self.ahead


def waits_for(name: str) -> str:
    return f"until test -e {name}; do sleep 0.02; done"


def test_machine_sleep_does_not_count_as_silence(testbed: WorkerTestbed) -> None:
    now, ticks = SteppedClock(), [0]

    def tick() -> str:
        ticks[0] += bool(testbed.heard)
        if ticks[0] == 1:
            now.ahead = 300_000
        if ticks[0] == 3:  # it was judged twice meanwhile
            (testbed.folder / "awake").touch()
        return ""

    script = f"echo '{BEAT}'; {waits_for('awake')}; echo '{DONE}'"

    end = testbed.sh(script, limits=WorkerLimits(silence_ms=60_000), now=now, on_tick=tick)

    assert isinstance(end.outcome, WorkComplete), end


def test_output_during_a_slow_tick_is_read_before_limits_are_checked(testbed: WorkerTestbed) -> None:
    said = testbed.folder / "said"
    now = [0]

    def tick() -> str:
        if not now[0]:
            (testbed.folder / "tick").touch()
            give_up_at = time.monotonic() + 30
            while not said.exists():
                assert time.monotonic() < give_up_at
                time.sleep(0.01)
            now[0] = 500
        elif len(testbed.heard) == 1:
            (testbed.folder / "over").touch()
        return ""

    script = f"{waits_for('tick')}; echo '{BEAT}'; touch said; {waits_for('over')}; echo '{DONE}'"

    end = testbed.sh(script, limits=WorkerLimits(silence_ms=400), now=lambda: now[0], on_tick=tick)

    assert isinstance(end.outcome, WorkComplete), end


def test_a_silent_worker_is_ended_even_if_every_tick_is_slow(testbed: WorkerTestbed) -> None:
    now, ticks = SteppedClock(), [0]

    def tick() -> str:
        now.ahead += 30_000
        ticks[0] += 1
        return "" if ticks[0] < 100 else "it is not ended"

    end = testbed.sh("sleep 300", limits=WorkerLimits(silence_ms=5_000), now=now, on_tick=tick)

    failure(end, "silent")
    assert ticks[0] > 1


def test_the_time_limit_ends_a_worker_despite_heartbeats(testbed: WorkerTestbed) -> None:
    end = testbed.sh(f"while :; do echo '{BEAT}'; sleep 0.1; done", limits=WorkerLimits(total_ms=600))

    assert "not done within" in failure(end, "late")


def test_a_closed_output_ends_it(testbed: WorkerTestbed) -> None:
    assert "closed its output" in failure(testbed.sh("exec >&- 2>&-; sleep 300"), "closed")


def test_death_before_the_last_message_is_reported_with_the_exit(testbed: WorkerTestbed) -> None:
    assert "exit code 7" in failure(testbed.sh(f"echo '{BEAT}'; exit 7"), "died")
    assert "SIGKILL" in failure(testbed.sh("kill -9 $$"), "died")
    assert "no end" in failure(testbed.sh(f"printf '%s' '{DONE}'"), "malformed")


def test_a_bad_exit_after_the_last_message_is_a_failure(testbed: WorkerTestbed) -> None:
    assert "ended badly (exit code 3)" in failure(testbed.sh(f"echo '{DONE}'; exit 3"), "died")
    assert "SIGSEGV" in failure(testbed.sh(f"echo '{DONE}'; kill -SEGV $$"), "died")


def test_output_after_the_last_message_is_a_failure(testbed: WorkerTestbed) -> None:
    assert "which was the end" in failure(testbed.sh(f"echo '{DONE}'; echo '{BEAT}'"), "out_of_order")
    assert "which was the end" in failure(testbed.sh(f"echo '{DONE}'; echo '{DONE}'"), "out_of_order")


def test_another_assignment_is_not_this_one(testbed: WorkerTestbed) -> None:
    said = BEAT.replace("T7-1", "T8-1")

    assert "'T8-1'" in failure(testbed.sh(f"echo '{said}'; sleep 300"), "out_of_order")


def test_usage_is_kept_when_the_worker_goes_wrong(testbed: WorkerTestbed) -> None:
    answer = f'{{"type":"Progress",{ID},"text":"x","usage":{{"cost_usd":1.5}}}}'

    end = testbed.sh(f"echo '{answer}'; echo garbage")

    assert isinstance(end.outcome, WorkFailed)
    assert end.outcome.usage == Usage(cost_usd=1.5)


def test_a_program_that_is_not_there_did_not_start(testbed: WorkerTestbed) -> None:
    end = testbed.run("/no/such/program")

    assert "could not be started" in failure(end, "not_started")
    assert end.exit_code is None


def test_an_assignment_that_cannot_be_encoded_starts_nothing(testbed: WorkerTestbed) -> None:
    with pytest.raises(Malformed):
        testbed.sh("touch started", assignment=testbed.assignment(attempt=-1))

    assert not (testbed.folder / "started").exists()


# ------------------------------------------------------------------------------------- ending all of it

STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for number in range(3):  # in sessions of their own, and without their mark
    subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(15, 1); time.sleep(300)"],
        start_new_session=True, env={} if number else None)
sys.stdout.write(sys.argv[1] + "\\n"); sys.stdout.flush()
time.sleep(300)
"""


@pytest.mark.promise(
    "workers.none-survives",
    "A misbehaving worker is ended with everything it started, even when it ignores SIGTERM.",
)
def test_a_worker_that_ignores_sigterm_is_killed_with_its_children(testbed: WorkerTestbed) -> None:
    end = testbed.run(sys.executable, "-c", STUBBORN, "garbage")

    failure(end, "malformed")
    assert end.exit_code == -signal.SIGKILL
    mark = f"{TREE_MARK}={testbed.trees[0].id}".encode()
    assert not any(mark in environment for environment in environments())


def environments() -> list[bytes]:
    found: list[bytes] = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            found.append(Path(f"/proc/{pid}/environ").read_bytes())
        except OSError:
            continue
    return found


def test_a_polite_worker_gets_the_time_to_end_by_itself(testbed: WorkerTestbed) -> None:
    script = "trap 'echo bye >&2; exit 0' TERM; echo garbage; while :; do sleep 0.05; done"

    end = testbed.sh(script, grace_seconds=10)

    failure(end, "malformed")
    assert (end.exit_code, "bye" in end.stderr) == (0, True)


def test_the_caller_can_stop_a_worker_with_a_reason(testbed: WorkerTestbed) -> None:
    reasons = iter(["", "", "the lease is lost"])

    end = testbed.sh("sleep 300", on_tick=lambda: next(reasons))

    assert failure(end, "stopped") == "the lease is lost"


def test_the_last_message_of_a_stopped_worker_is_kept(testbed: WorkerTestbed) -> None:
    body = (
        "work.usage = Usage(cost_usd=0.5)\n"
        "try:\n  work.progress('begun')\n  time.sleep(60)\nfinally:\n  work.usage = Usage(cost_usd=0.75)"
    )

    end = testbed.python(
        serve(body),
        on_tick=lambda: "enough" if Progress in map(type, testbed.heard) else "",
        grace_seconds=10,
    )

    assert failure(end, "stopped") == "enough"
    assert isinstance(end.outcome, WorkFailed)
    assert end.outcome.usage == Usage(cost_usd=0.75)


def test_an_exception_in_a_callback_ends_the_worker(testbed: WorkerTestbed) -> None:
    def fall(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        testbed.sh(f"echo '{BEAT}'; sleep 300", on_message=fall)

    assert find_members(testbed.trees[0]) == []


def test_no_descriptor_is_left_open(testbed: WorkerTestbed) -> None:
    testbed.sh(f"echo '{DONE}'")
    gc.collect()  # what other tests of this process left to the collector is not ours to count
    before = os.listdir("/proc/self/fd")
    for _ in range(3):
        testbed.sh(f"echo '{DONE}'")
        testbed.sh("echo garbage")
        testbed.run("/no/such/program")

    assert len(os.listdir("/proc/self/fd")) == len(before)


# ---------------------------------------------------------------------------------- workers in Python


def serve(body: str) -> str:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return f"import os, sys, time\nfrom landlane.worker import *\ndef handle(work):\n{lines}\nserve(handle)\n"


def test_a_worker_in_python_needs_only_a_function(testbed: WorkerTestbed) -> None:
    body = (
        "print('this is no message')\nos.system('echo nor this')\nwork.usage = Usage(input_tokens=5)\n"
        "work.progress('half', 0.5)\nreturn work.complete(work.assignment.title, files=['a.py'], notes='n')"
    )

    end = testbed.python(serve(body))

    assert end.outcome == WorkComplete(
        assignment="T7-1", summary="Tidy", files=("a.py",), usage=Usage(input_tokens=5), notes="n"
    )
    assert "this is no message" in end.stderr
    assert "nor this" in end.stderr
    assert (end.exit_code, end.was_killed) == (0, False)


def test_the_library_sends_heartbeats_during_work(testbed: WorkerTestbed) -> None:
    asked = testbed.assignment(heartbeat_seconds=0.15)
    enough = testbed.folder / "enough"

    def hear(message: object) -> None:
        testbed.heard.append(message)
        if sum(isinstance(one, Heartbeat) for one in testbed.heard) == 5:
            enough.touch()

    body = f"while not os.path.exists({str(enough)!r}):\n  time.sleep(0.02)\nreturn work.complete('worked')"
    end = testbed.python(serve(body), assignment=asked, on_message=hear)

    assert isinstance(end.outcome, WorkComplete)
    assert sum(isinstance(one, Heartbeat) for one in testbed.heard) >= 5


@pytest.mark.parametrize(
    ("body", "code", "reason"),
    [
        ("raise ValueError('no such date')", "failed", "ValueError: no such date"),
        ("raise Failure('429', code='rate_limited', retry_after_seconds=3)", "rate_limited", "429"),
        ("return 'done'", "failed", "the handler returned str"),
        ("return work.complete('x', files=['../x'])", "failed", "not a path inside"),
        ("os.kill(os.getpid(), 15)\ntime.sleep(60)", "stopped", "SIGTERM"),
    ],
)
def test_any_error_in_the_worker_is_reported(
    testbed: WorkerTestbed, body: str, code: str, reason: str
) -> None:
    end = testbed.python(serve(body))

    assert reason in failure(end, code)
    assert (end.exit_code, end.was_killed) == (0, False)


def test_an_invalid_assignment_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-c", serve("return None")], input=b"hello\n", capture_output=True, timeout=60
    )

    assert (done.returncode, done.stdout) == (1, b"")
    assert b"cannot be understood" in done.stderr


# ------------------------------------------------------------------------------------------- examples


def tidy(testbed: WorkerTestbed, example: str) -> tuple[WorkerEnd, Path, Path]:
    checkout, scratch = testbed.folder / "checkout", testbed.folder / "scratch"
    (checkout / "src").mkdir(parents=True)
    scratch.mkdir()
    (checkout / "src" / "a.py").write_text('a = "\\\\"  \n\tb\n')
    (checkout / "src" / "b.py").write_text("b = 1\n")
    (checkout / "other.py").write_text("c = 1  \n")
    subprocess.run(["git", "init", "--quiet"], cwd=checkout, check=True)
    subprocess.run(["git", "add", "--all"], cwd=checkout, check=True)
    asked = testbed.assignment(folder=str(checkout), scratch=str(scratch), paths=("src/*.py",))
    return testbed.run(str(EXAMPLES / example), assignment=asked), checkout, scratch


def test_the_shell_example_returns_a_patch(testbed: WorkerTestbed) -> None:
    end, checkout, _ = tidy(testbed, "worker.sh")

    assert isinstance(end.outcome, WorkComplete), end
    assert end.outcome.patch is not None
    subprocess.run(["git", "apply"], cwd=checkout, input=end.outcome.patch.encode(), check=True)
    assert (checkout / "src" / "a.py").read_text() == 'a = "\\\\"\n\tb\n'
    assert (checkout / "other.py").read_text() == "c = 1  \n"
    assert {type(one) for one in testbed.heard} >= {Heartbeat, Progress}
    assert not end.was_killed


def test_the_python_example_returns_files(testbed: WorkerTestbed) -> None:
    program = os.environ["PATH"]
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{program}"
    try:
        end, checkout, scratch = tidy(testbed, "worker.py")
    finally:
        os.environ["PATH"] = program

    assert isinstance(end.outcome, WorkComplete), end
    assert end.outcome.files == ("src/a.py",)
    assert (scratch / "src" / "a.py").read_text() == 'a = "\\\\"\n\tb\n'
    assert (checkout / "src" / "a.py").read_text() == 'a = "\\\\"  \n\tb\n'


def test_the_shell_example_ends_on_request(testbed: WorkerTestbed) -> None:
    (testbed.folder / "slow").mkdir()
    git = testbed.folder / "slow" / "git"
    git.write_text("#!/bin/sh\ntouch ../begun; exec sleep 300\n")
    git.chmod(0o755)
    asked = testbed.assignment(folder=str(testbed.folder / "slow"), scratch=str(testbed.folder), paths=("a",))
    program = os.environ["PATH"]
    os.environ["PATH"] = f"{git.parent}{os.pathsep}{program}"
    give_up_at = time.monotonic() + 30

    def stop() -> str:
        assert time.monotonic() < give_up_at
        return "enough" if (testbed.folder / "begun").exists() else ""

    try:
        end = testbed.run(str(EXAMPLES / "worker.sh"), assignment=asked, on_tick=stop, grace_seconds=10)
    finally:
        os.environ["PATH"] = program

    assert failure(end, "stopped") == "enough"
    assert end.exit_code == 0
