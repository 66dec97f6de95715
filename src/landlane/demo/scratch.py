"""The stage of the demo: a scratch folder, an environment without anybody's own settings, and children."""

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
# What coding clients put into the environment of what they start: the scripted person is not theirs.
_CLIENTS = ("CLAUDECODE", "CODEX_SANDBOX", "GEMINI_CLI", "QWEN_CODE", "OPENCODE", "CURSOR_AGENT")
_GIT_SETTINGS = "[user]\n\tname = pat\n\temail = pat@localhost\n[init]\n\tdefaultBranch = main\n"
_HEEDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STOP_SECONDS = 30.0
_NOW_SECONDS = 1.0  # for a child that has ended already, or is not waited for any longer
_LOOK_SECONDS = 0.03


def _nothing() -> None:
    """What is done meanwhile where nothing else is."""


def forget_surroundings(home: str, temporary: str) -> None:
    """Keep the demo away from the repository, store, session, home and git settings of whoever started it."""
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
    """The folder of one run of the demo; whatever happens, no process of it is left, nor it unless kept."""

    def __init__(self, folder: str, *, is_kept: bool, say: Callable[[str], None], is_watched: bool) -> None:
        self.folder = folder
        self.say = say
        self.is_watched = is_watched  # somebody sits at a terminal
        self._is_kept = is_kept
        self._children: list[Child] = []
        self._servants: list[Child] = []  # needed by the others until they have ended

    def __enter__(self) -> Self:
        forget_surroundings(os.path.join(self.folder, "home"), os.path.join(self.folder, "tmp"))
        return self

    def __exit__(self, *_: object) -> None:
        # Impatience must leave nothing behind.
        before = {number: signal.signal(number, signal.SIG_IGN) for number in _HEEDED}
        try:
            self.end_all()
            if not self._is_kept:
                shutil.rmtree(self.folder, ignore_errors=True)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def place(self, way: str) -> str:
        """The folder of one of the three ways."""
        found = os.path.join(self.folder, way)
        os.makedirs(found, exist_ok=True)
        return found

    def start(self, command: Sequence[str], cwd: str, **more: Any) -> Child:
        """Start a child that is ended with the demo."""
        child = Child(command, cwd=cwd, **more)
        self._children.append(child)
        return child

    def python(
        self, module: str, *words: str, cwd: str, environment: Mapping[str, str] | None = None
    ) -> Child:
        """Start a program of ours."""
        return self.start([sys.executable, "-m", module, *words], cwd, environment=environment)

    def serve(self, module: str, *words: str, cwd: str) -> None:
        """Start a program that the others need; it is ended after all of them."""
        nowhere = os.open(os.devnull, os.O_RDWR)
        try:
            words = (sys.executable, "-m", module, *words)
            self._servants.append(Child(words, cwd=cwd, streams=(nowhere, nowhere, nowhere)))
        finally:
            os.close(nowhere)

    def finish(
        self, child: Child, limit_seconds: float, on_tick: Callable[[], None] = _nothing
    ) -> ChildResult:
        """Wait for the end of a child; when it takes too long it is ended as all are at the end."""
        if not wait_until(lambda: has_ended(child), limit_seconds, on_tick):
            child.signal(signal.SIGTERM)
            wait_until(lambda: has_ended(child), _STOP_SECONDS)
        ended = child.wait(_NOW_SECONDS)
        self._children.remove(child)
        return ended

    def end_all(self) -> None:
        """End what still runs: first politely, since some have to clear up after themselves."""
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
    """Whether a child has ended; it is still to be waited for."""
    return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def is_stopped(child: Child) -> bool:
    """Whether a child just hangs there, as a person would see with `ps`."""
    try:
        with open(f"/proc/{child.pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] == "T"
    except (OSError, IndexError):
        return False


def deploy(stage: Stage, place: str, checkout: str, who: str) -> None:
    """Deploy what a checkout has, as a script does: nobody is asked."""
    environment = {"DEMO_PLACE": place, "DEMO_WHO": who}
    child = stage.start(["sh", "tools/deploy.sh"], checkout, environment=environment)
    stage.finish(child, _STOP_SECONDS)


def wait_until(
    condition: Callable[[], bool], limit_seconds: float, on_tick: Callable[[], None] = _nothing
) -> bool:
    """Wait until something is so, for so long at most; tells whether it is."""
    deadline = time.monotonic() + limit_seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        on_tick()
        time.sleep(_LOOK_SECONDS)
    return True


def has_moved(place: str) -> bool:
    """Whether the target has moved since the beginning."""
    return os.path.exists(os.path.join(place, "target.log"))


def now_ms() -> int:
    """The time of the calendar in milliseconds, as all logs of the demo have it."""
    return time.time_ns() // 1_000_000


def note_story(folder: str, story: Mapping[str, Any]) -> None:
    """Keep what was to be done, and when each way began and ended."""
    write(os.path.join(folder, STORY_FILE), json.dumps(story, indent=1) + "\n")


def task_facts(task: DemoTask) -> dict[str, Any]:
    """A task as it is kept."""
    return as_dict(task)
