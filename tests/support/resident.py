"""A repository served by a resident that runs from a private copy of the package; shared by its tests."""

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
from tests.support.shell import CommandResult, Shell
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NO_NEW_PRIVILEGES = 38  # PR_SET_NO_NEW_PRIVS in <sys/prctl.h>


def copy_package(into: Path, seconds: Mapping[str, float] | None = None) -> Path:
    """Copy the package, so that edits in the checkout during the test do not end its residents.

    `seconds` gives intervals other lengths, such as `{"resident/server.py:_CODE_CHECK_SECONDS": 0.2}`.
    """
    source = Path(landlane.__file__).parent
    # The times of the files are kept, so the compiled modules stay valid.
    shutil.copytree(source, into / "landlane")
    for place, length in (seconds or {}).items():
        file, _, name = place.partition(":")
        path = into / "landlane" / file
        text, count = re.subn(rf"(?m)^{name} = [\d.]+", f"{name} = {length}", path.read_text())
        assert count == 1, place
        path.write_text(text)
    return into


class ResidentTestbed:
    """A repository with its state folder, and shells inside and outside a sandbox."""

    def __init__(self, repository: Path, package: Path) -> None:
        self.repository = repository
        self.state = repository / ".git" / "landlane"
        self.state.mkdir(exist_ok=True)
        self.outside = ModuleShell(repository, {"PYTHONPATH": str(package)})

    def start(self, *more: str) -> str:
        """Start the resident unless it runs, and return its socket."""
        path = ensure_resident(str(self.state), 30.0, *more)
        assert path, (self.state / "resident.log").read_text()
        return path

    @property
    def pid(self) -> int:
        """The pid of the resident; 0 when none runs."""
        try:
            found = send_request(find_socket(str(self.state)), pack_request(b"ping", b"", (), {}, b""), 10.0)
        except (AnswerLost, BadMessage):
            return 0
        return int(found[1]) if found else 0

    def join(self, agent: str) -> str:
        """Join, and return the credentials in the form that a sandboxed worker gets."""
        session = self.outside.run_json("join", agent)["session"]
        return f"{session['id']}:{session['secret']}"

    def inside_sandbox(self, credentials: str) -> ModuleShell:
        """Return a shell whose commands are sent as those of a sandboxed worker."""
        return self.outside.with_env(
            LANDLANE_RESIDENT=str(self.state / "door" / "resident.sock"), LANDLANE_SESSION=credentials
        )

    def hook(
        self, tool: str, path: str, session: str, event: str = "PreToolUse", credentials: str = ""
    ) -> bytes:
        """Return the request that Claude Code sends before or after a tool changes a path."""
        document = {
            "session_id": session,
            "cwd": str(self.repository),
            "hook_event_name": event,
            "tool_name": tool,
            "tool_input": {"file_path": str(self.repository / path)},
        }
        environment = shared_environment(os.environb)
        if credentials:
            environment[b"LANDLANE_SESSION"] = credentials.encode()
        return pack_request(b"hook", b"/", [b"claude", b""], environment, json.dumps(document).encode())

    def kill(self) -> None:
        """Kill the resident."""
        pid = self.pid
        if pid:
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not is_alive(pid))


class ModuleShell(Shell):
    """Runs commands as `python -m landlane`, from the package that the environment names."""

    def run(self, *words: str, stdin: str = "", limit_seconds: float = 60.0) -> CommandResult:
        return self.run_program(
            sys.executable, "-P", "-m", "landlane", *words, stdin=stdin, limit_seconds=limit_seconds
        )

    def at(self, folder: Path | str) -> ModuleShell:
        return ModuleShell(self.folder / folder, self.environment, self.prefix)

    def with_env(self, **environment: str) -> ModuleShell:
        return ModuleShell(self.folder, {**self.environment, **environment}, self.prefix)

    def popen(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a command in the background."""
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "landlane", *words],
            cwd=self.folder,
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


def run_in_child(work: Callable[[], object]) -> str:
    """Call a function in a forked child, and return the `repr` of its result or its error."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            text = repr(work())
        except BaseException as error:  # noqa: BLE001 - the test judges it
            text = f"{type(error).__name__}: {error}"
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return text


def set_no_new_privileges() -> None:
    """Set `no_new_privs` for this process, as every sandbox does."""
    assert ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0
