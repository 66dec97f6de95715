"""The resident: a process that starts by itself where nobody waits, does what is left, and ends itself."""

from __future__ import annotations

import os
import sys
import time

from landlane.git.run import LOCATION_VARIABLES
from landlane.processes.child import start_detached
from landlane.resident.messages import AnswerLost, BadMessage, find_socket, pack_request, send_request
from landlane.resident.single_instance import is_running, may_start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.context import Site

_LOG = "resident.log"
_MOST_LOG = 1_000_000
_OURS = "LANDLANE_"
_STORE = "LANDLANE_STORE"
# What a coding client told its children: the resident serves all of them, and belongs to none.
_CLIENTS = (
    "CLAUDE",
    "CODEX_",
    "GEMINI_",
    "QWEN_",
    "COPILOT_",
    "OPENCODE",
    "CURSOR_",
    "ANTHROPIC_",
    "OPENAI_",
)
_LOOK_SECONDS = 0.01
_START_SECONDS = 0.3  # between two looks whether one has to be started
_PING = pack_request(b"ping", b"", (), {}, b"")


def start_queue_runner(site: Site) -> str:
    """Let the queue be run in the background; tells why not, or nothing.

    Several at once do no harm, one of them gets the lease. It acts for nobody: what it needs to know of a
    session it reads in the store.
    """
    words = ("queue", "run", "--drain", "--as", "resident", "--json")
    acts_for = [name for name in os.environ if name.startswith(_OURS) and name != _STORE]
    trouble = _start(os.path.join(site.common_dir, "landlane"), site.home.root, words, acts_for)
    return f"nothing runs the queue in the background: {trouble}" if trouble else ""


def start_server(folder: str, *more: str) -> str:
    """Start what serves a state folder at its socket, unless it is there; tells why not, or nothing.

    It knows the store by the folder alone, whatever the environment of its first caller says.
    """
    try:
        if is_running(folder) or not may_start(folder):
            return ""
    except OSError as error:
        return str(error)
    others = [name for name in os.environ if name.startswith((_OURS, *_CLIENTS))]
    return _start(folder, folder, ("resident", "--state", folder, *more), others)


def ensure_resident(folder: str, wait_seconds: float, *more: str) -> str | None:
    """The socket of the resident that serves a state folder, started if there is none; else nothing.

    `more` are options of `landlane resident`, for one that has to be started.
    """
    give_up_at = time.monotonic() + wait_seconds
    start_at = 0.0
    while True:
        path = find_socket(folder)
        if path and is_answering(path):
            return path
        now = time.monotonic()
        if now >= start_at:  # again and again: the one that was started may have been killed, too
            start_at = now + _START_SECONDS
            if start_server(folder, *more):
                return None
        if now >= give_up_at:
            return None
        time.sleep(_LOOK_SECONDS)


def is_answering(path: str) -> bool:
    """Whether somebody answers at a socket."""
    try:
        return send_request(path, _PING, 5.0) is not None
    except (AnswerLost, BadMessage):
        return False


def _start(folder: str, cwd: str, words: Sequence[str], without: Sequence[str]) -> str:
    """Start a command of ours that goes on without us; tells why not, or nothing."""
    log = os.path.join(folder, _LOG)
    # -P: what lies in the repository's root must not be taken for a module of Python's.
    command = [sys.executable, "-P", "-m", "landlane", *words]
    try:
        _keep_short(log)
        start_detached(command, cwd=cwd, log=log, without=(*LOCATION_VARIABLES, *without))
    except (OSError, ValueError) as error:
        return str(error)
    return ""


def _keep_short(log: str) -> None:
    """Begin the log anew when it is long; whoever writes to it now goes on at its new end."""
    try:
        if os.path.getsize(log) > _MOST_LOG:
            os.truncate(log, 0)
    except FileNotFoundError:
        return
