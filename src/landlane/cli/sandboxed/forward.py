"""The caller's side in a sandbox: send a command to the resident and print its answer."""

from __future__ import annotations

import os
import sys
import time

from landlane.cli.arguments import read_bytes
from landlane.cli.specs.model import FILE_KEYS
from landlane.cli.specs.table import COMMON
from landlane.cli.terminal import Terminal
from landlane.errors import LandlaneError, Malformed
from landlane.git.discovery import find_checkout
from landlane.platform.terminal import is_terminal
from landlane.resident.messages import (
    OUT,
    SOCKET,
    AnswerLost,
    BadMessage,
    find_socket,
    pack_request,
    shared_environment,
    shown_address,
    stream_request,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.specs.model import Command

_TAKE_SECONDS = 30.0  # for the resident to start
_MISSING_SECONDS = 10.0  # for a replacement when it was killed
_START_SECONDS = 5.0
_LOOK_SECONDS = 0.05
_MOST_READ = 16 * 1024 * 1024
_TWO_FILES = b"\0"  # separates the texts on standard input; no text contains it
# These need no state, or ask the resident themselves.
_RUN_HERE = ("resident", "demo", "commit", "git", "completion", "help")


def runs_here(command: Command) -> bool:
    """Return whether a command runs in this process, even in a sandbox."""
    return command.path in _RUN_HERE


def forward(command: Command, given: dict[str, Any]) -> int:
    """Have the resident run a command, print its answer as it arrives, and return the exit code."""
    terminal = Terminal(is_json=bool(given.get("json")))
    try:
        folder = os.path.abspath(given.get("repo") or "") if given.get("repo") else os.getcwd()
        stdin = _read_input(command, given)
        if command.path == "land" and not given.get("branch"):
            given["branch"] = _branch_at(folder)
        return _send(folder, words_of(command, given), stdin)
    except LandlaneError as error:
        return terminal.fail(error)
    except FileNotFoundError as error:
        hint = "cd to a folder that is there"
        return terminal.fail(Malformed(f"{error.strerror}", code="NO_FOLDER", hint=hint))
    except BrokenPipeError:
        return 1


def words_of(command: Command, given: dict[str, Any]) -> list[str]:
    """Return the command line again in an unambiguous form."""
    words = command.path.split()
    for option in (*COMMON, *command.options):
        content = given.get(option.key)
        if option.name == "--repo" or not content or content == option.value_if_absent:
            continue
        values: tuple[object, ...] = tuple(content) if option.is_repeated else (content,)
        words += [option.name] if option.is_flag else [f"{option.name}={text}" for text in values]
    plain: list[str] = []
    rest: list[str] = []
    for argument in command.arguments:
        content = given.get(argument.key) or ()
        texts = content if argument.is_many or argument.is_rest else (content,) if content else ()
        (rest if argument.is_rest else plain).extend(map(str, texts))
    if rest:
        return [*words, *plain, "--", *rest]
    return [*words, "--", *plain] if plain else words


def _read_input(command: Command, given: dict[str, Any]) -> bytes:
    """Return what the command reads from a file or standard input; the resident reads it from the latter."""
    keys = {parameter.key for parameter in command.parameters}
    named = {name: str(given[name]) for name in FILE_KEYS if name in keys and given.get(name)}
    given |= dict.fromkeys(named, "-")
    if list(named.values()).count("-") > 1:  # the resident refuses that
        return sys.stdin.buffer.read(_MOST_READ)
    return _TWO_FILES.join([_read_here(path) for path in named.values()])


def _read_here(path: str) -> bytes:
    try:
        return read_bytes(path, _MOST_READ)
    except (OSError, ValueError) as error:
        raise Malformed(
            f"{path[:80]!r} cannot be read: {getattr(error, 'strerror', None) or error}",
            code="UNREADABLE_FILE",
            hint="give the path of a text file, or - for standard input",
        ) from error


def _branch_at(folder: str) -> str:
    """Return the current branch; processes outside the sandbox do not look into this checkout."""
    with open(os.path.join(find_checkout(folder).git_dir, "HEAD"), encoding="utf-8") as file:
        named = file.readline().strip()
    if not named.startswith("ref: refs/heads/"):
        raise Malformed(
            "this checkout is on no branch", code="NO_BRANCH", hint="name the branch: landlane land BRANCH"
        )
    return named.removeprefix("ref: refs/heads/")


def _send(cwd: str, words: list[str], stdin: bytes) -> int:
    environment = shared_environment(os.environb)
    terminals = [letter for letter, stream in ((b"o", sys.stdout), (b"e", sys.stderr)) if is_terminal(stream)]
    environment[b"LANDLANE_EYES"] = b"".join(terminals)
    try:
        encoded = [os.fsencode(word) for word in words]
        request = pack_request(b"call", os.fsencode(cwd), encoded, environment, stdin)
        give_up_at = time.monotonic() + _MISSING_SECONDS
        while True:
            folder, path = _find_resident()
            code = stream_request(path, request, _TAKE_SECONDS, _show) if path else None
            if code is not None:
                return code
            if time.monotonic() > give_up_at:
                raise _no_resident(path)
            _await_resident(folder)
    except AnswerLost as error:
        raise LandlaneError(
            f"the resident took the command and did not answer: {error}",
            code="RESIDENT_LOST",
            hint="look with `landlane status` whether it was done, then ask again",
        ) from error
    except BadMessage as error:
        raise LandlaneError(
            f"the resident refused: {error}", code="RESIDENT_REFUSED", hint="try again in a moment"
        ) from error


def _find_resident() -> tuple[str, str]:
    """Return the state folder, if known, and the socket that the environment names; either is enough."""
    named = os.environ["LANDLANE_RESIDENT"]
    if os.path.isdir(named):
        return named, find_socket(named)
    folder = named.removesuffix(f"/{SOCKET}") if named.endswith(f"/{SOCKET}") else ""
    return folder, find_socket(folder) if folder else named


def _await_resident(folder: str) -> None:
    """Wait for a resident: start one when outside a sandbox; inside, the sandbox's starter does."""
    if folder and os.access(folder, os.W_OK):
        from landlane.resident.start import ensure_resident  # noqa: PLC0415 - rarely needed

        ensure_resident(folder, _START_SECONDS)
    time.sleep(_LOOK_SECONDS)


def _no_resident(path: str) -> LandlaneError:
    return LandlaneError(
        f"no resident answers at {shown_address(path or os.environ['LANDLANE_RESIDENT'])}",
        code="RESIDENT_GONE",
        hint="outside the sandbox, look at: landlane status",
    )


def _show(kind: bytes, content: bytes) -> None:
    stream = sys.stdout if kind == OUT else sys.stderr
    if stream is not None:  # closed by a caller that wants only the exit code
        stream.buffer.write(content)
        stream.flush()
