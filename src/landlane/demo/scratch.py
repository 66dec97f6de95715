"""The stage of the demo: a scratch folder, a clean environment, and child processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time

from landlane.demo.sample_project import write
from landlane.git.run import LOCATION_VARIABLES
from landlane.processes.child import Child
from landlane.values import as_dict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Self

    from landlane.demo.sample_tasks import DemoTask
    from landlane.processes.child import ChildResult

STORY_FILE = "story.json"
# Variables that coding clients set for child processes; the scripted person must not inherit them.
_CLIENTS = ("CLAUDECODE", "CODEX_SANDBOX", "GEMINI_CLI", "QWEN_CODE", "OPENCODE", "CURSOR_AGENT")
_GIT_SETTINGS = "[user]\n\tname = pat\n\temail = pat@localhost\n[init]\n\tdefaultBranch = main\n"
_HEEDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STOP_SECONDS = 30.0
_NOW_SECONDS = 1.0  # for a child that has already ended, or that is no longer waited for
_LOOK_SECONDS = 0.03


def _nothing() -> None:
    """Do nothing while waiting."""


def forget_surroundings(home: str, temporary: str) -> None:
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


class Stage:
    """The folder of one demo run; at the end its processes are ended and it is removed unless kept."""

    def __init__(self, folder: str, *, is_kept: bool, say: Callable[[str], None], is_watched: bool) -> None:
        self.folder = folder
        self.say = say
        self.is_watched = is_watched  # a person watches at a terminal
        self._is_kept = is_kept
        self._children: list[Child] = []
        self._servants: list[Child] = []  # services, ended after all other children

    def __enter__(self) -> Self:
        forget_surroundings(os.path.join(self.folder, "home"), os.path.join(self.folder, "tmp"))
        return self

    def __exit__(self, *_: object) -> None:
        # An interrupt must leave nothing behind.
        before = {number: signal.signal(number, signal.SIG_IGN) for number in _HEEDED}
        try:
            self.end_all()
            if not self._is_kept:
                shutil.rmtree(self.folder, ignore_errors=True)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def place(self, way: str) -> str:
        """Return the folder of one of the three modes."""
        found = os.path.join(self.folder, way)
        os.makedirs(found, exist_ok=True)
        return found

    def start(self, command: Sequence[str], cwd: str, **more: Any) -> Child:
        """Start a child process that ends with the demo."""
        child = Child(command, cwd=cwd, **more)
        self._children.append(child)
        return child

    def python(
        self, module: str, *words: str, cwd: str, environment: Mapping[str, str] | None = None
    ) -> Child:
        """Start a Python module of the demo."""
        return self.start([sys.executable, "-m", module, *words], cwd, environment=environment)

    def serve(self, module: str, *words: str, cwd: str) -> None:
        """Start a service that the others need; it is ended after all of them."""
        nowhere = os.open(os.devnull, os.O_RDWR)
        try:
            words = (sys.executable, "-m", module, *words)
            self._servants.append(Child(words, cwd=cwd, streams=(nowhere, nowhere, nowhere)))
        finally:
            os.close(nowhere)

    def finish(
        self, child: Child, limit_seconds: float, on_tick: Callable[[], None] = _nothing
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
        for some in (self._children, self._servants):
            for child in some:
                child.signal(signal.SIGCONT)
                child.signal(signal.SIGTERM)
            deadline = time.monotonic() + _STOP_SECONDS
            for child in some:
                wait_until(lambda one=child: has_ended(one), deadline - time.monotonic())
                child.wait(_NOW_SECONDS)
            some.clear()


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


def deploy(stage: Stage, place: str, checkout: str, who: str) -> None:
    """Deploy a checkout with a plain script, without any check."""
    environment = {"DEMO_PLACE": place, "DEMO_WHO": who}
    child = stage.start(["sh", "tools/deploy.sh"], checkout, environment=environment)
    stage.finish(child, _STOP_SECONDS)


def wait_until(
    condition: Callable[[], bool], limit_seconds: float, on_tick: Callable[[], None] = _nothing
) -> bool:
    """Wait until a condition holds or the time is up; return whether it holds."""
    deadline = time.monotonic() + limit_seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        on_tick()
        time.sleep(_LOOK_SECONDS)
    return True


def has_moved(place: str) -> bool:
    """Return whether the target has moved since the start."""
    return os.path.exists(os.path.join(place, "target.log"))


def now_ms() -> int:
    """Return the wall-clock time in milliseconds, as in all logs of the demo."""
    return time.time_ns() // 1_000_000


def note_story(folder: str, story: Mapping[str, Any]) -> None:
    """Record the tasks, and when each mode began and ended."""
    write(os.path.join(folder, STORY_FILE), json.dumps(story, indent=1) + "\n")


def task_facts(task: DemoTask) -> dict[str, Any]:
    """Return a task as recorded."""
    return as_dict(task)
