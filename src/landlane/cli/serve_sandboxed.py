"""Commands of sandboxed callers: which are allowed, and running them as the session they prove to be.

`sandboxed/requests.py` lists those that are allowed. A guest's folder is only used to resolve paths: settings
and git config are those of the main checkout.
"""

from __future__ import annotations

import io
import os
import select
import signal
import socket
import sys
import threading

from landlane.app.open import open_repository
from landlane.cli.command import CommandCall, run_command
from landlane.cli.parse import parse
from landlane.cli.sandboxed.requests import REQUESTS
from landlane.cli.specs.model import FILE_KEYS
from landlane.cli.terminal import Terminal, flush
from landlane.errors import LandlaneError, Malformed, NotAllowed
from landlane.git.discovery import find_checkout
from landlane.repository import not_in_sandbox
from landlane.resident.messages import (
    BEGUN,
    ERR,
    EXIT,
    MOST_BYTES,
    OUT,
    frame,
    shared_environment,
    unpack_request,
)
from landlane.sessions.client_sessions import list_subagents
from landlane.sessions.join import prove
from landlane.sessions.model import parse_credentials
from landlane.sessions.secrets import SecretFiles
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from typing_extensions import Buffer

    from landlane.cli.specs.model import Command
    from landlane.ids import Credentials
    from landlane.repository import Repository
    from landlane.sessions.model import Session


_REFUSED_OPTIONS = {"repo": "a guest has one repository"}
_REFUSED_IN = {"sync": {"update": "git would run outside the sandbox, with the settings of this checkout"}}
_TERMINAL_VARIABLES = ("TERM", "NO_COLOR", "COLUMNS")


def refusal_of(command: Command, given: Mapping[str, Any]) -> NotAllowed | None:
    """Return why a sandboxed caller may not run this command; None when it may."""
    if command.path not in REQUESTS:
        return not_in_sandbox(f"`landlane {command.path}` is not for callers in a sandbox")
    for name, why in {**_REFUSED_OPTIONS, **_REFUSED_IN.get(command.path, {})}.items():
        if given.get(name):
            return not_in_sandbox(f"`landlane {command.path}` with --{name}: {why}")
    for parameter in command.parameters:
        if parameter.key in FILE_KEYS and given.get(parameter.key) not in (None, "", "-"):
            return not_in_sandbox(f"{given[parameter.key]!r} would be read outside the sandbox")
    return None


def other_repository(folder: str) -> NotAllowed:
    """Return the error for a folder of another repository."""
    return NotAllowed(
        f"{folder[:200]} belongs to another repository",
        code="OTHER_REPOSITORY",
        hint="cd into your workspace",
    )


class _GuestSecrets(SecretFiles):
    """Gives access to the secrets of one session and its subagents only."""

    def __init__(self, folder: str, repo: Repository, guest: Credentials) -> None:
        super().__init__(folder)
        self._repo = repo
        self._guest = guest.session

    def load(self, agent: str) -> Credentials | None:
        """Return the secret of an agent's session, if it is the caller's own or a subagent's."""
        found = super().load(agent)
        if found is None or found.session == self._guest:
            return found
        children = self._repo.store.view(lambda snapshot: list_subagents(snapshot, self._guest))
        return found if any(child.id == found.session for child in children) else None


def as_guest(repo: Repository, folder: str, guest: Credentials) -> Repository:
    """Return a repository in which only the sandboxed caller can act."""
    return replace(repo, secrets=_GuestSecrets(folder, repo, guest))


class SandboxedCall(CommandCall):
    """Acts as the session whose secret was given, in the repository that the resident serves."""

    is_sandboxed = True
    state_folder = ""
    _guest: Session | None = None

    def authenticate(self) -> None:
        """Check the session's secret, whatever the command."""
        session_text = os.environ.get("LANDLANE_SESSION", "")
        if not session_text:
            raise NotAllowed(
                "the call shows no session",
                code="NOT_YOUR_SESSION",
                hint="in a sandbox LANDLANE_SESSION=<id>:<secret> says who acts",
            )
        self._guest = prove(self.repo, parse_credentials(session_text))
        if self.name not in ("", self._guest.agent):
            raise NotAllowed(
                f"this is {self._guest.agent}, who cannot act as {self.name[:80]}",
                code="NOT_YOUR_SESSION",
                hint="leave out --as",
            )

    def open(self, *, detects_restore: bool = True) -> Repository:
        """Open the repository that the resident serves; refuse any other."""
        if os.path.realpath(find_checkout(self.cwd).state_folder) != self.state_folder:
            raise other_repository(self.cwd)
        repo = open_repository(
            self.cwd, is_short_lived=True, detects_restore=detects_restore, caller=0, is_guest=True
        )
        guest = parse_credentials(os.environ["LANDLANE_SESSION"])
        self._repo = as_guest(repo, self.state_folder, guest)
        return self._repo

    def caller_name(self) -> str:
        """Return the caller's own name."""
        return self._guest.agent if self._guest else ""


def run_call(state_folder: str, connection: int, request: int) -> None:
    """Run one command for a caller and send the answer, in a child of the resident."""
    with os.fdopen(request, "rb", closefd=False) as file:
        file.seek(0)
        _, cwd, words, environment, stdin = unpack_request(file.read(MOST_BYTES))
    caller = socket.socket(fileno=os.dup(connection))
    caller.setblocking(True)
    caller.sendall(frame(BEGUN, b""))
    variables = {
        os.fsdecode(name): os.fsdecode(text) for name, text in shared_environment(environment).items()
    }
    _take_over_environment(variables, stdin, caller)
    _stop_when_disconnected(caller)
    SandboxedCall.state_folder = state_folder
    code = _run([os.fsdecode(word) for word in words], os.fsdecode(cwd))
    flush()
    caller.sendall(frame(EXIT, bytes([code & 255])))


def _run(words: list[str], cwd: str) -> int:
    terminal = Terminal(is_json="--json" in words)
    try:
        os.chdir(cwd)
    except (OSError, ValueError):
        hint = "cd into your workspace"
        return terminal.fail(Malformed(f"there is no folder {cwd[:200]}", code="NO_FOLDER", hint=hint))
    try:
        call = parse(words)
    except Malformed as error:
        return terminal.fail(error)
    command, given = call.command, call.given
    refused = refusal_of(command, given)
    if command.path == "sync" and refused is None and not _is_main_checkout(cwd):
        refused = not_in_sandbox("how far this checkout is behind only git in it can tell")
        refused.hint = "git fetch, then git status, tell it inside"
    if refused is not None:
        return terminal.fail(refused)
    try:
        return run_command(command, given, SandboxedCall)
    except LandlaneError as error:
        return terminal.fail(error)


def _is_main_checkout(cwd: str) -> bool:
    """Return whether git may run in a folder outside the sandbox: not in a caller's own checkout."""
    try:
        found = find_checkout(cwd)
    except LandlaneError:
        return True  # opening it reports the details
    return found.git_dir == found.home_dir


def _take_over_environment(variables: dict[str, str], stdin: bytes, caller: socket.socket) -> None:
    """Use the safe part of the caller's environment, its standard input, and streams that lead to it."""
    for name in [name for name in os.environ if name.startswith("LANDLANE_") or name in _TERMINAL_VARIABLES]:
        del os.environ[name]
    kept = ("LANDLANE_SESSION", *_TERMINAL_VARIABLES)
    os.environ.update({name: variables[name] for name in kept if name in variables})
    terminals = variables.get("LANDLANE_EYES", "")
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    sys.stdout = _stream(_Frames(caller, OUT, is_terminal="o" in terminals))
    sys.stderr = _stream(_Frames(caller, ERR, is_terminal="e" in terminals))


def _stream(frames: _Frames) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(frames, 65_536), encoding="utf-8", errors="backslashreplace", line_buffering=False
    )


class _Frames(io.RawIOBase):
    """A stream that sends what is written as frames of an answer."""

    def __init__(self, caller: socket.socket, kind: bytes, *, is_terminal: bool) -> None:
        self._caller = caller
        self._kind = kind
        self._is_terminal = is_terminal

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, content: Buffer, /) -> int:
        data = bytes(content)
        self._caller.sendall(frame(self._kind, data))
        return len(data)


def _stop_when_disconnected(caller: socket.socket) -> None:
    """End the command, as if stopped at the terminal, when the caller disconnects."""

    def watch() -> None:
        poll = select.poll()
        poll.register(caller.fileno(), select.POLLRDHUP | select.POLLHUP | select.POLLERR)
        poll.poll()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, daemon=True).start()
