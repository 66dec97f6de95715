"""What tests of `run` share: a repository with scripted workers, runs as processes, and what may be left."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from landlane.processes.tree import TREE_MARK
from tests.support.shell import LANDLANE, Shell
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

LIMIT_SECONDS = 100.0
SETTINGS = """\
[landing]
target = "main"
checks = ["test ! -e RED"]

[run]
workers = {workers}
agent = "scripted"
role = "code"
heartbeat = "{heartbeat}"

[agents.scripted]
command = ["{python}", "-m", "landlane.testing.scripted_worker"]
protocol = "messages"
{more}
"""

_BEGUN: list[subprocess.Popen[str]] = []


class WorkerTestbed:
    """A repository in which scripted workers do tasks."""

    def __init__(self, repository: Path, *, workers: int = 3, heartbeat: str = "60s", more: str = "") -> None:
        self.root = repository
        # Whoever types these commands is an agent of this name, not the person who runs the tests.
        self.shell = Shell(repository, {"LANDLANE_AGENT": "lead"})
        text = SETTINGS.format(workers=workers, heartbeat=heartbeat, python=sys.executable, more=more)
        (repository / "landlane.toml").write_text(text, encoding="utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", "Set up")

    @classmethod
    def there(cls, folder: Path) -> WorkerTestbed:
        """A clone of a repository that was set up elsewhere."""
        works = cls.__new__(cls)
        works.root = folder
        works.shell = Shell(folder, {"LANDLANE_AGENT": "lead"})
        return works

    def git(self, *words: str) -> str:
        return self.shell.git(*words).strip()

    def add(self, title: str, *paths: str, script: Mapping[str, Any] | None = None, **more: object) -> str:
        """A task that does what the script says; its id. `later` are scripts of later attempts."""
        later: Mapping[int, Mapping[str, Any]] = more.pop("later", {})  # type: ignore[assignment]
        lines = [f"script {attempt}: {json.dumps(one)}" for attempt, one in later.items()]
        lines += [f"script: {json.dumps(script)}"] if script is not None else []
        words = ["task", "add", title, "--force", "--body", "-"]
        for path in paths:
            words += ["--path", path]
        for name, value in more.items():
            for one in value if isinstance(value, (list, tuple)) else [value]:
                words += [f"--{name.replace('_', '-')}", str(one)]
        ended = self.shell.run(*words, "--json", stdin="\n".join(lines))
        assert ended.exit == 0, ended
        return ended.json()["task"]["id"]

    def edit(self, title: str, path: str, text: str = "", **script: object) -> str:
        """A task that puts a line at the end of a file."""
        more = {key: script.pop(key) for key in ("after", "role", "label", "check") if key in script}
        return self.add(title, path, script={"append": {path: text or f"{title}\n"}, **script}, **more)

    def run(self, *words: str, exit: int = 0) -> dict[str, Any]:
        """Run to the end; the answer."""
        ended = self.shell.run("run", "--json", *words, limit_seconds=LIMIT_SECONDS)
        assert ended.exit == exit, ended
        return ended.json()

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """Start a run and go on."""
        begun = subprocess.Popen(
            [LANDLANE, "run", *words],
            cwd=self.root,
            env={**os.environ, **self.shell.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        _BEGUN.append(begun)
        return begun

    def task(self, task_id: str) -> dict[str, Any]:
        return self.shell.run_json("task", "show", task_id)["task"]

    def states(self) -> dict[str, str]:
        return {one["id"]: one["state"] for one in self.shell.run_json("task", "list", "--all")["tasks"]}

    def wait_for(self, task_id: str, *states: str) -> None:
        wait_until(lambda: self.states()[task_id] in states)

    def text(self, path: str) -> str:
        """What the target branch has at a path."""
        return self.git("show", f"main:{path}")

    def workers_running(self) -> list[int]:
        """The processes of workers and checks, wherever they are: they are marked, for this repository."""
        return self._find_marked()

    def wait_for_worker(self, seconds: float = LIMIT_SECONDS) -> None:
        """Go on when a worker is running. The checks of the target, which run before, have no session."""
        wait_until(lambda: bool(self._find_marked("LANDLANE_SESSION=")), seconds=seconds)

    def _find_marked(self, variable: str = "") -> list[int]:
        marks = [f"{TREE_MARK}=".encode(), str(self.root).encode(), variable.encode()]
        found: list[int] = []
        for folder in Path("/proc").iterdir():
            try:
                environment = (folder / "environ").read_bytes() if folder.name.isdigit() else b""
            except OSError:
                continue
            if all(mark in environment for mark in marks):
                found.append(int(folder.name))
        return found

    def check_clean(self) -> None:
        """Nothing is left: no process, claim, workspace, scratch, session, half-done record."""
        wait_until(lambda: self.workers_running() == [])
        assert self.shell.run_json("claims")["claims"] == []
        assert [one["id"] for one in self.shell.run_json("workspace", "list")["workspaces"]] == []
        # What an earlier attempt committed and was not used stays on its branch: it may be worth looking at.
        tasks = self.shell.run_json("task", "list", "--all")["tasks"]
        over = [
            f"refs/heads/landlane/{one['id']}-{one['attempt']}/" for one in tasks if one["state"] == "done"
        ]
        branches = self.git("for-each-ref", "--format=%(refname)", "refs/heads", "refs/landlane").splitlines()
        left = [one for one in branches if one.startswith(("refs/landlane/exec", "refs/landlane/pin", *over))]
        assert left == []

    def kill(self, process: subprocess.Popen[str]) -> None:
        process.kill()
        process.communicate(timeout=30)

    def supervisors(self, process: subprocess.Popen[str]) -> list[int]:
        """The supervisors of a run: its helper forks them."""
        return [pid for helper in _children(process.pid) for pid in _children(helper)]

    def helpers(self, process: subprocess.Popen[str]) -> list[int]:
        """The processes that fork supervisors."""
        return _children(process.pid)


def work_on(
    works: WorkerTestbed, task: str, tell: Callable[[dict[str, Any]], None], role: str = "code"
) -> None:
    """Keep one worker on a task, as a process of a run does; for a process that was forked for it."""
    from landlane.cli import supervisor_server

    os.environ.update(works.shell.environment)
    os.chdir(works.root)
    order = {
        "kind": "supervise",
        "folder": str(works.root),
        "task": task,
        "agent": "scripted",
    }
    order |= {"role": role, "orchestrator": "test", "is_offline": False}
    supervisor_server._work(order, tell)  # pyright: ignore[reportPrivateUsage]


def _children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def kill_all(pids: Iterable[int]) -> None:
    """Kill processes, and go on when all have ended: until then each of them may still be taken for alive."""
    killed = list(pids)
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: all(_has_ended(pid) for pid in killed))


def _has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def interrupt(process: subprocess.Popen[str]) -> str:
    """Press Ctrl-C once, and go on when it says that it begins nothing more; what it said for people."""
    assert process.stderr is not None
    process.send_signal(signal.SIGINT)
    give_up_at = time.monotonic() + LIMIT_SECONDS
    said = b""
    while b"stopping: no new attempts" not in said:
        # From the pipe itself: what the text layer had read ahead, `communicate` would not find.
        is_ready = select.select([process.stderr], [], [], max(give_up_at - time.monotonic(), 0))[0]
        got = os.read(process.stderr.fileno(), 65_536) if is_ready else b""
        assert got, f"it does not say that it is stopping: {said!r}"
        said += got
    return said.decode()


def stop(process: subprocess.Popen[str], number: int = signal.SIGINT, times: int = 1) -> str:
    """Send a signal, and after Ctrl-C perhaps a second, and wait for the end; what it said for people."""
    # Two signals that come together are one: the second is sent when the first has been heeded.
    said = interrupt(process) if times > 1 else ""
    process.send_signal(number)
    return said + process.communicate(timeout=LIMIT_SECONDS)[1]


def end_what_was_begun() -> None:
    """End what a failed test left running, or another test would be told of it."""
    while _BEGUN:
        process = _BEGUN.pop()
        if process.poll() is None:
            process.kill()
        if process.stdout is not None and not process.stdout.closed:
            process.communicate(timeout=30)
