"""One run of the demo: a scratch folder, an isolated environment, and child processes."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time

from landlane.demo.sample_project import write
from landlane.git.run import LOCATION_VARIABLES
from landlane.processes.child import Child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Self

    from landlane.processes.child import ChildResult

# Variables that coding clients set for child processes; the scripted person must not inherit them.
_CLIENTS = ("CLAUDECODE", "CODEX_SANDBOX", "GEMINI_CLI", "QWEN_CODE", "OPENCODE", "CURSOR_AGENT")
_GIT_SETTINGS = "[user]\n\tname = pat\n\temail = pat@localhost\n[init]\n\tdefaultBranch = main\n"
_END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STOP_SECONDS = 30.0
_NOW_SECONDS = 1.0  # for a child that has already ended, or that is no longer waited for
_POLL_SECONDS = 0.03


def _isolate_environment(home: str, temporary: str) -> None:
    """Isolate the demo from the user's repository, store, session, home and git settings."""
    for name in list(os.environ):
        if (
            name in LOCATION_VARIABLES
            or name in _CLIENTS
            or name.startswith(("LANDLANE_", "GIT_", "XDG_", "DEMO_"))
        ):
            del os.environ[name]
    write(os.path.join(home, ".gitconfig"), _GIT_SETTINGS)
    os.makedirs(temporary, exist_ok=True)
    os.environ |= {"HOME": home, "TMPDIR": temporary, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8"}
    os.environ["GIT_CONFIG_GLOBAL"] = os.path.join(home, ".gitconfig")
    os.environ["USER"] = os.environ["LOGNAME"] = "pat"


class DemoRun:
    """The folder and the processes of one demo; its end removes both, the folder unless it is kept."""

    def __init__(
        self, folder: str, *, is_kept: bool, report: Callable[[str], None], has_terminal: bool
    ) -> None:
        self.folder = folder
        self.report = report
        self.has_terminal = has_terminal
        self._is_kept = is_kept
        self._children: list[Child] = []
        self._services: list[Child] = []  # ended after all other children

    def __enter__(self) -> Self:
        _isolate_environment(os.path.join(self.folder, "home"), os.path.join(self.folder, "tmp"))
        return self

    def __exit__(self, *_: object) -> None:
        # An interrupt must leave nothing behind.
        before = {number: signal.signal(number, signal.SIG_IGN) for number in _END_SIGNALS}
        try:
            self.end_all()
            if not self._is_kept:
                shutil.rmtree(self.folder, ignore_errors=True)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def folder_of(self, way: str) -> str:
        """Return the folder of one of the three modes."""
        folder = os.path.join(self.folder, way)
        os.makedirs(folder, exist_ok=True)
        return folder

    def start(self, command: Sequence[str], cwd: str, **more: Any) -> Child:
        """Start a child process that ends with the demo."""
        child = Child(command, cwd=cwd, **more)
        self._children.append(child)
        return child

    def python(
        self, module: str, *words: str, cwd: str, environment: Mapping[str, str] | None = None
    ) -> Child:
        """Start a Python module of the demo."""
        return self.start([sys.executable, "-P", "-m", module, *words], cwd, environment=environment)

    def serve(self, module: str, *words: str, cwd: str) -> None:
        """Start a service that the others need; it is ended after all of them."""
        command = (sys.executable, "-P", "-m", module, *words)
        with open(os.devnull, "r+b") as null:
            streams = (null.fileno(), null.fileno(), null.fileno())
            self._services.append(Child(command, cwd=cwd, streams=streams))

    def finish(
        self, child: Child, limit_seconds: float, on_tick: Callable[[], None] = lambda: None
    ) -> ChildResult:
        """Wait for a child to end; one that takes too long is ended with the demo."""
        if not wait_until(lambda: has_ended(child), limit_seconds, on_tick):
            child.signal(signal.SIGTERM)
            wait_until(lambda: has_ended(child), _STOP_SECONDS)
        ended = child.wait(_NOW_SECONDS)
        self._children.remove(child)
        return ended

    def end_all(self) -> None:
        """End the running children, with SIGTERM first so that they can clean up."""
        for children in (self._children, self._services):
            for child in children:
                child.signal(signal.SIGCONT)
                child.signal(signal.SIGTERM)
            deadline = time.monotonic() + _STOP_SECONDS
            for child in children:
                wait_until(lambda one=child: has_ended(one), deadline - time.monotonic())
                child.wait(_NOW_SECONDS)
            children.clear()


def has_ended(child: Child) -> bool:
    """Return whether a child has ended, without reaping it."""
    return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def is_stopped(child: Child) -> bool:
    """Return whether a child hangs, as a person would see with `ps`."""
    try:
        with open(f"/proc/{child.pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] == "T"
    except (OSError, IndexError):
        return False


def wait_until(
    condition: Callable[[], bool], limit_seconds: float, on_tick: Callable[[], None] = lambda: None
) -> bool:
    """Wait until a condition holds or the time is up; return whether it holds."""
    deadline = time.monotonic() + limit_seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        on_tick()
        time.sleep(_POLL_SECONDS)
    return True


def has_moved(place: str) -> bool:
    """Return whether the target has moved since the start."""
    return os.path.exists(os.path.join(place, "target.log"))


def now_ms() -> int:
    """Return the wall-clock time in milliseconds, as in all logs of the demo."""
    return time.time_ns() // 1_000_000


def read_log(path: str) -> list[list[str]]:
    """Return the words of every line of a log; nothing when there is no such file."""
    try:
        with open(path, encoding="utf-8") as file:
            return [line.split() for line in file if line.strip()]
    except FileNotFoundError:
        return []


def finished_tasks(folder: str) -> set[str]:
    """Return the ids of the tasks that agents without Landlane reported as finished."""
    return {words[1] for words in read_log(os.path.join(folder, "finished.log"))}
