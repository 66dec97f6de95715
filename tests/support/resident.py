"""What tests of the resident share: a copy of the package that nobody else changes, and a place it serves."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import landlane
from landlane.resident.messages import (
    AnswerLost,
    BadMessage,
    find_socket,
    pack_request,
    send_request,
    shared_environment,
)
from landlane.resident.start import ensure_resident
from tests.support.processes import is_alive
from tests.support.shell import Ended, Shell
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NO_NEW_PRIVILEGES = 38  # PR_SET_NO_NEW_PRIVS in <sys/prctl.h>


def copy_package(into: Path, seconds: Mapping[str, float] | None = None) -> Path:
    """A copy of the package: what changes in the checkout meanwhile does not end its residents.

    `seconds` gives intervals other lengths, such as `{"resident/server.py:_CODE_CHECK_SECONDS": 0.2}`.
    """
    source = Path(landlane.__file__).parent
    # With what is compiled already: the times of the files are kept, so that it counts.
    shutil.copytree(source, into / "landlane")
    for place, length in (seconds or {}).items():
        file, _, name = place.partition(":")
        path = into / "landlane" / file
        text, count = re.subn(rf"(?m)^{name} = [\d.]+", f"{name} = {length}", path.read_text())
        assert count == 1, place
        path.write_text(text)
    return into


class Served:
    """A repository, its state folder, and commands typed inside and outside a sandbox."""

    def __init__(self, repository: Path, package: Path) -> None:
        self.repository = repository
        self.state = repository / ".git" / "landlane"
        self.state.mkdir(exist_ok=True)
        self.outside = Module(repository, {"PYTHONPATH": str(package)})

    def begin(self, *more: str) -> str:
        """The socket of the resident, started if need be."""
        path = ensure_resident(str(self.state), 30.0, *more)
        assert path, (self.state / "resident.log").read_text()
        return path

    @property
    def pid(self) -> int:
        """The process that serves; 0 when none does."""
        try:
            found = send_request(find_socket(str(self.state)), pack_request(b"ping", b"", (), {}, b""), 10.0)
        except (AnswerLost, BadMessage):
            return 0
        return int(found[1]) if found else 0

    def join(self, agent: str) -> str:
        """Begin a session; its credentials as a sandboxed worker is given them."""
        session = self.outside.ask("join", agent)["session"]
        return f"{session['id']}:{session['secret']}"

    def inside(self, credentials: str) -> Module:
        """Commands as a worker in the sandbox gives them."""
        return self.outside.where(
            LANDLANE_RESIDENT=str(self.state / "door" / "resident.sock"), LANDLANE_SESSION=credentials
        )

    def hook(self, tool: str, path: str, session: str, event: str = "PreToolUse", shown: str = "") -> bytes:
        """What Claude Code would say before or after a tool works on a path, as a request."""
        document = {
            "session_id": session,
            "cwd": str(self.repository),
            "hook_event_name": event,
            "tool_name": tool,
            "tool_input": {"file_path": str(self.repository / path)},
        }
        told = shared_environment(os.environb)
        if shown:
            told[b"LANDLANE_SESSION"] = shown.encode()
        return pack_request(b"hook", b"/", [b"claude", b""], told, json.dumps(document).encode())

    def kill(self) -> None:
        """End the resident the hard way."""
        pid = self.pid
        if pid:
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not is_alive(pid))


class Module(Shell):
    """Commands as `python -m landlane`, from whatever package the environment names."""

    def run(self, *words: str, stdin: str = "", limit_seconds: float = 60.0) -> Ended:
        return self.run_program(
            sys.executable, "-P", "-m", "landlane", *words, stdin=stdin, limit_seconds=limit_seconds
        )

    def at(self, folder: Path | str) -> Module:
        return Module(self.folder / folder, self.environment, self.prefix)

    def where(self, **environment: str) -> Module:
        return Module(self.folder, {**self.environment, **environment}, self.prefix)

    def popen(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a command and go on."""
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "landlane", *words],
            cwd=self.folder,
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


def in_child(work: Callable[[], object]) -> str:
    """What a forked child makes of some work, as text."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            said = repr(work())
        except BaseException as error:  # noqa: BLE001 - the test judges it
            said = f"{type(error).__name__}: {error}"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    return said


def give_up_privileges() -> None:
    """Give up new privileges for ever, as every sandbox begins."""
    assert ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0
