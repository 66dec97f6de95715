"""What goes wrong around a run: each fault is told, bounded, and loses nothing."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

import landlane.workers.admit as admitting
import landlane.workers.orchestrator as orchestrating
import landlane.workers.supervisor_pool as pool
from landlane.app.open import open_repository
from landlane.cli.run_progress import LiveView, RunView
from landlane.cli.terminal import Terminal
from landlane.errors import NotAllowed, StoreTransient
from landlane.platform.process import read_process
from landlane.processes.fork_server import ForkedChild, ForkServer, pipe_reporter
from landlane.protocol.worker.messages import Heartbeat, Progress
from landlane.settings.model import LOCAL_NAME, RunSettings, Settings
from landlane.store.sqlite.store import SqliteStore
from landlane.tasks.records import list_tasks
from landlane.workers import attempt_resources, finish_attempt, supervisor
from landlane.workers.model import RunEvent, RunEventKind, RunRequest, RunStatus
from landlane.workers.orchestrator import Orchestrator
from landlane.workers.supervisor import MessageRelay
from tests.support.processes import fork, wait_for_exit
from tests.support.waiting import wait_until
from tests.workers.running import WorkerTestbed, kill_all, stop, work_on

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.acceptance, pytest.mark.soak, pytest.mark.sandbox]


def keep(works: WorkerTestbed, task: str, step: str, what: str) -> dict[str, Any]:
    """Run one supervisor in which a step raises what nobody expects, or refuses; what it tells last."""

    def fail(*_: object, **__: object) -> None:
        refused = NotAllowed("not so", code="NOT_SO", hint="otherwise")
        raise refused if what == "refuse" else KeyError("nobody expects")

    return keep_with(works, lambda: setattr(finish_attempt, step, fail), task=task)


def keep_with(
    works: WorkerTestbed,
    spoil: Callable[[], object],
    *,
    task: str,
    role: str = "code",
    check: Callable[[], object] = lambda: None,
) -> dict[str, Any]:
    """Run one supervisor in a process in which something is spoiled; what it tells last."""
    told = works.root.parent / "told"
    told.touch()

    def work() -> None:
        spoil()
        with told.open("w", encoding="utf-8") as file:
            work_on(works, task, lambda one: print(json.dumps(one), file=file, flush=True), role)
        check()

    assert wait_for_exit(fork(work)) == 0
    return json.loads(told.read_text(encoding="utf-8").splitlines()[-1])


def test_an_error_in_a_supervisor_is_reported_and_the_task_is_tried_again(works: WorkerTestbed) -> None:
    """A mistake of ours, a proved change that is not taken, and one whose supervisor was gone before that."""
    broken = works.edit("Meet a mistake", "a.txt")
    refused = works.edit("Be refused", "b.txt")
    left = works.edit("Be left", "c.txt")

    told = keep(works, broken, "commit_returned", "raise")
    assert told["outcome"] == "returned"
    assert "UNEXPECTED: 'nobody expects'" in told["why"]
    assert "nobody expects" in str(works.shell.run_json("task", "show", broken))

    told = keep(works, refused, "submit_branch", "refuse")
    assert (told["outcome"], told["code"]) == ("retry", "not_submitted")

    keep(works, left, "submit_branch", "raise")
    assert works.states() == {broken: "ready", refused: "ready", left: "landing"}
    works.git("branch", "--delete", "--force", f"landlane/{left}-1/work")
    works.run()

    assert [works.text(f"{name}.txt") for name in "abc"] == ["Meet a mistake", "Be refused", "Be left"]
    works.check_clean()


class StoreUnavailableOnce:
    """A store that is away for each that asks it first after the worker's last word.

    It is away before it does what it is asked, after that, or always.
    """

    def __init__(self, how: str) -> None:
        self._how = how
        self._is_over = False
        self.met: set[tuple[str, str]] = set()

    def spoil(self) -> None:
        """Make it so in this process."""
        attempt_resources.RETRY_SECONDS = 0.01
        attempt_resources.MAX_OUTAGE_SECONDS = 0.1 if self._how == "always" else 60.0
        run_worker = supervisor.run_worker  # pyright: ignore[reportPrivateImportUsage]

        def last_word(*words: Any, **more: Any) -> Any:
            end = run_worker(*words, **more)
            self._is_over = True
            return end

        supervisor.run_worker = last_word  # type: ignore[assignment]
        SqliteStore.change = self._faulty(SqliteStore.change)  # type: ignore[method-assign]
        SqliteStore.view = self._faulty(SqliteStore.view)  # type: ignore[method-assign]

    def _faulty(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*words: Any, **more: Any) -> Any:
            code = sys._getframe(1).f_code
            if code.co_name == "change" and code.co_filename.endswith("repository.py"):
                code = sys._getframe(2).f_code
            who = (code.co_filename, code.co_name)
            is_away = self._is_over and (self._how == "always" or who not in self.met)
            self.met.update([who] if self._is_over else [])
            if is_away and self._how != "after":
                raise StoreTransient("it is away", code="STORE_UNREACHABLE", hint="")
            result = real(*words, **more)
            if is_away:
                raise StoreTransient("it may have happened", code="STORE_AMBIGUOUS", hint="")
            return result

        return call

    def check(self) -> None:
        assert len(self.met) > 5


def keep_without_store(works: WorkerTestbed, task: str, role: str, how: str) -> dict[str, Any]:
    """Run one supervisor whose store is away after the worker's last word; what it tells last."""
    store = StoreUnavailableOnce(how)
    return keep_with(works, store.spoil, task=task, role=role, check=store.check)


@pytest.mark.parametrize("how", ["before", "after"])
def test_results_survive_a_short_outage_of_the_store(works: WorkerTestbed, how: str) -> None:
    """Every step behind the last word fails once; whether it was done all the same changes nothing."""
    committed = works.edit("Commit it", "a.txt")
    returned = works.edit("Hand it back", "b.txt")
    for task, role in ((committed, "code"), (returned, "propose")):
        told = keep_without_store(works, task, role, how)
        assert told["outcome"] == "landing", told

    works.run()

    for task in (committed, returned):
        found = works.task(task)
        assert (found["state"], found["attempt"], found["lapses"]) == ("done", 1, 0)
    assert [works.text(f"{name}.txt") for name in "ab"] == ["Commit it", "Hand it back"]
    works.check_clean()


def test_returned_work_is_saved_when_the_store_stays_unavailable(works: WorkerTestbed) -> None:
    task = works.edit("Hand it back", "a.txt")

    told = keep_without_store(works, task, "propose", "always")

    kept = works.root / ".git" / "landlane" / "returned" / f"{task}-1"
    assert told["outcome"] == "lost"
    assert "it is away" in told["why"]
    assert str(kept) in told["why"]
    works.run()
    assert works.task(task)["state"] == "done"
    assert "+Hand it back" in (kept / "change.patch").read_text()
    works.check_clean()


def test_a_killed_worker_is_a_lapse_and_an_empty_change_is_none(works: WorkerTestbed) -> None:
    killed = works.add("Be killed", "a.txt", script={"write": {"a.txt": "a"}}, later={1: {"die": 9}})
    empty = works.add(
        "Commit nothing", "b.txt", script={"run": "git commit -q --allow-empty -m x"}, max_attempts=1
    )

    answer = works.run(exit=7)

    found = works.task(killed)
    assert (found["state"], found["attempt"], found["failures"], found["lapses"]) == ("done", 2, 0, 1)
    assert "changed no file" in str(answer["summary"]["waiting_for_person"])
    assert works.states()[empty] in ("dead", "waiting_for_person")
    works.check_clean()


def test_a_task_that_cannot_start_is_reported_and_left(
    works: WorkerTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A remote that is not there, and settings of the clone that break: neither is tried for ever."""
    monkeypatch.setattr(pool, "RETRY_SECONDS", 0.05)
    works.git("remote", "add", "origin", str(works.root.parent / "nowhere.git"))
    task = works.edit("Not to be begun", "a.txt")
    said: list[str] = []
    repo = open_repository(str(works.root)).require_git(said.append)
    common = {"folder": str(works.root)}

    def run(before: Callable[[], object] = lambda: None) -> str:
        fork_server = ForkServer(
            [sys.executable, "-P", "-m", "landlane.cli.supervisor_server"], str(works.root), common
        )
        orchestrator = Orchestrator(repo, RunRequest(workers=1), fork_server, lambda *_: None)
        before()
        return {one.task: one.why for one in orchestrator.run().left}[task]

    monkeypatch.chdir(works.root)
    assert "origin cannot be asked" in run()
    assert "--offline" in run()
    settings = works.root / ".git" / "landlane" / LOCAL_NAME
    assert "not valid TOML" in run(lambda: settings.write_text("[[["))
    settings.unlink()


def test_a_run_waits_for_its_store(works: WorkerTestbed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orchestrating, "RETRY_SECONDS", 0.05)
    task = works.edit("Wait for the store", "a.txt")
    calls = [0]

    def away_for_a_while(*words: Any, **more: Any) -> Any:
        calls[0] += 1
        if calls[0] in (2, 3, 9):
            raise StoreTransient("it is away", code="STORE_AWAY", hint="")
        return list_tasks(*words, **more)

    monkeypatch.setattr(orchestrating, "list_tasks", away_for_a_while)
    monkeypatch.chdir(works.root)
    common = {"folder": str(works.root)}
    fork_server = ForkServer(
        [sys.executable, "-P", "-m", "landlane.cli.supervisor_server"], str(works.root), common
    )
    seen: list[RunStatus] = []

    repo = open_repository(str(works.root)).require_git(lambda _: None)
    summary = Orchestrator(repo, RunRequest(workers=1), fork_server, lambda *_: None).run(seen.append)

    assert summary.done == (task,)
    assert sum("it is away" in one.trouble for one in seen) >= 2
    works.check_clean()


def test_a_task_unblocked_by_others_is_started(works: WorkerTestbed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tasks were read before; whether all is over is judged after."""
    task = works.edit("Held back", "a.txt")
    works.shell.run_json("task", "block", task, "--why", "not yet")

    class Slow(Orchestrator):
        def _is_finished(self) -> bool:
            if works.states()[task] == "blocked":
                works.shell.run_json("task", "unblock", task)
            return super()._is_finished()

    monkeypatch.chdir(works.root)
    common = {"folder": str(works.root)}
    fork_server = ForkServer(
        [sys.executable, "-P", "-m", "landlane.cli.supervisor_server"], str(works.root), common
    )
    repo = open_repository(str(works.root)).require_git(lambda _: None)

    assert Slow(repo, RunRequest(workers=1), fork_server, lambda *_: None).run().done == (task,)


def test_a_supervisor_never_waits_for_its_reader() -> None:
    ours, theirs = os.pipe()
    tell = pipe_reporter(theirs)
    for number in range(20_000):
        tell({"event": "says", "doing": f"{number} {'x' * 80}"})
    os.set_blocking(ours, False)
    fork = ForkedChild(ours)

    heard = fork.read()
    tell({"event": "ended"})
    heard += fork.read()

    assert [told["doing"].split()[0] for told in heard[:3]] == ["0", "1", "2"]
    os.close(theirs)
    fork.read()
    assert fork.has_ended()


def test_a_supervisor_has_ended_when_its_process_has_and_not_when_it_falls_silent() -> None:
    """What is killed closes its pipe first; taken for ended then, its task would be looked for too early."""
    ours, theirs = os.pipe()
    os.set_blocking(ours, False)
    silent = "import json, os, sys; from landlane.platform.process import read_process;"
    silent += "me = read_process(os.getpid());"
    silent += "told = {'event': 'pid', 'pid': me.pid, 'started': me.started};"
    silent += "os.write(1, json.dumps(told).encode() + b'\\n');"
    silent += "sys.stdin.readline(); os.close(1); sys.stderr.write('closed\\n'); sys.stdin.readline()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", silent], stdin=pipe, stdout=theirs, stderr=pipe) as child:
        os.close(theirs)
        assert child.stdin is not None
        assert child.stderr is not None
        fork = ForkedChild(ours)
        wait_until(lambda: fork.read() == [] and fork.pid == child.pid)

        child.stdin.write(b"\n")
        child.stdin.flush()
        assert child.stderr.readline() == b"closed\n"

        assert not fork.has_ended()
        assert fork.readable_files
        assert not fork.wait(0.05)
        child.kill()
        assert fork.wait(30)
        assert fork.has_ended()
        assert not fork.readable_files


def test_a_silent_supervisor_is_waited_for_but_another_process_is_not() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        here = read_process(child.pid)
        assert here is not None
        for started, is_it in ((here.started, True), (here.started - 1, False)):
            ours, theirs = os.pipe()
            told = {"event": "pid", "pid": child.pid, "started": started}
            os.write(theirs, json.dumps(told).encode() + b"\n")
            os.close(theirs)
            fork = ForkedChild(ours)
            assert fork.has_ended() is not is_it
            fork.signal(0)
        child.kill()


def test_a_flood_of_messages_is_not_relayed() -> None:
    told: list[dict[str, Any]] = []
    relay = MessageRelay(told.append, 0.0)
    for _ in range(1000):
        relay.relay(Progress(assignment="T1-1", text="x"), 0.0)
    assert len(told) == 20
    relay.relay(Heartbeat(assignment="T1-1", doing="y"), 1.5)
    assert told[-1]["doing"] == "y"


def status(**more: Any) -> RunStatus:
    return RunStatus(rows=(), workers=0, **more)


def test_a_waiting_task_is_reported_once_for_each_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    view = RunView(Terminal(is_json=False), lambda: 0)
    for second in range(60):
        now[0] = float(second)
        why = f"needs 8 of gpu; {second} of 60 are in use"
        waits = (("T1", why), ("T2", "all workers are busy")) if second % 3 else ()  # it was tried just then
        view.on_status(status(refusals=waits, is_draining=second > 50))

    said = capsys.readouterr().err.splitlines()
    assert [line.split(" ", 1)[1][:11] for line in said] == ["T1 waits: n", "! stopping:"]


def test_a_terminal_that_is_gone_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError("Input/output error")

    monkeypatch.setattr(sys, "stderr", Gone())
    view = LiveView(Terminal(is_json=False), lambda: 0)
    with view:
        monkeypatch.setattr(view, "_draw_at", 0.0)
        view.on_status(status(total=1))
        view.on_event(RunEvent(kind=RunEventKind.FAILED, task="T1", title="Do it", text="so"))
        view.on_status(status(total=2))


@pytest.mark.parametrize(("total", "is_permanent"), [(64_000_000, False), (1_000_000, True)])
def test_nothing_begins_below_the_floor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, total: int, is_permanent: bool
) -> None:
    (tmp_path / "meminfo").write_text(f"MemTotal: {total} kB\nMemAvailable: 500000 kB\nHugePages_Total: 0\n")
    monkeypatch.setattr(admitting, "_MEMORY", str(tmp_path / "meminfo"))
    settings = Settings(run=RunSettings(memory_floor_bytes=2_000_000 * 1024))
    repo = cast("Any", SimpleNamespace(settings=settings, git=SimpleNamespace(root=str(tmp_path))))

    refusal = admitting._why_machine_full(repo)  # pyright: ignore[reportPrivateUsage]

    assert refusal is not None
    assert refusal.is_permanent is is_permanent
    settings = Settings(run=RunSettings(memory_floor_bytes=1024, disk_floor_bytes=1024))
    repo = cast("Any", SimpleNamespace(settings=settings, git=SimpleNamespace(root=str(tmp_path))))
    assert admitting._why_machine_full(repo) is None  # pyright: ignore[reportPrivateUsage]


def test_a_stop_ends_the_tests_of_a_landing_too(works: WorkerTestbed) -> None:
    settings, pid = works.root / "landlane.toml", works.root.parent / "pid"
    before = settings.read_text()
    settings.write_text(
        before.replace("test ! -e RED", f"test -e a.txt || exit 0; echo $$ > {pid}; exec sleep 60")
        + f'[landing.sandbox]\nwrite = ["{pid.parent}"]\n'
    )
    works.git("commit", "--quiet", "--all", "-m", "Test for long")
    task = works.edit("Be tested for long", "a.txt")
    process = works.begin()
    wait_until(lambda: pid.exists() and pid.read_text().strip().isdigit(), seconds=60)

    said = stop(process, times=2)

    assert "stopping" in said
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    settings.write_text(before)
    works.git("commit", "--quiet", "--all", "-m", "Test as before")
    works.run()
    assert works.states()[task] == "done"
    works.check_clean()


def test_nothing_of_a_check_lives_on(repository: Path) -> None:
    pids, late = repository.parent / "pids", repository.parent / "late"
    works = WorkerTestbed(repository, more=f'[landing.sandbox]\nwrite = ["{repository.parent}"]\n')
    check = f"setsid sh -c 'echo $$ >> {pids}; exec sleep 60' & until test -s {pids}; do sleep 0.1; done"
    works.edit("Start a daemon", "a.txt", check=check)
    works.run()
    works.edit("Be killed while it is proved", "b.txt", check=f"echo $$ > {late}; exec sleep 60")
    process = works.begin()
    wait_until(lambda: late.exists() and late.read_text().strip().isdigit(), seconds=60)

    kill_all([*works.supervisors(process), process.pid])
    process.communicate(timeout=30)
    works.shell.run("doctor", "--fix")

    for pid in [*pids.read_text().split(), late.read_text()]:
        wait_until(lambda one=int(pid): not os.path.exists(f"/proc/{one}"))
