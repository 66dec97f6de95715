"""Start the resident and the queue runner in the background."""

from __future__ import annotations

import os
import sys
import time

from landlane.clients.model import VARIABLE_PREFIXES
from landlane.git.run import LOCATION_VARIABLES
from landlane.processes.child import start_detached
from landlane.resident.messages import AnswerLost, BadMessage, find_socket, pack_request, send_request
from landlane.resident.single_instance import is_running, may_start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.repository import Repository

_LOG = "resident.log"
_MOST_LOG = 1_000_000
_OURS = "LANDLANE_"
_STORE = "LANDLANE_STORE"
# Variables that coding clients set for their children: the resident serves all clients and belongs to none.
_CLIENTS = (*VARIABLE_PREFIXES, "ANTHROPIC_", "OPENAI_")
_POLL_SECONDS = 0.01
_START_SECONDS = 0.3  # between two attempts to start one
_PING = pack_request(b"ping", b"", (), {}, b"")


def start_queue_runner(repo: Repository) -> str:
    """Run the landing queue in the background; return why that failed, or an empty text.

    Several may start at once; one of them gets the lease. It acts for no session: what it needs is in the
    store.
    """
    # It does not wait for another process that runs the queue: that one lands everything that is queued.
    words = ("queue", "run", "--drain", "--wait", "1ms", "--as", "resident", "--json")
    acts_for = [name for name in os.environ if name.startswith(_OURS) and name != _STORE]
    trouble = _start(os.path.join(repo.common_dir, "landlane"), repo.home.root, words, acts_for)
    return f"nothing runs the queue in the background: {trouble}" if trouble else ""


def start_server(folder: str, *more: str) -> str:
    """Start the resident of a state folder unless it runs; return why that failed, or an empty text.

    It finds the store by the folder alone, whatever the environment of its first caller says.
    """
    try:
        if is_running(folder) or not may_start(folder):
            return ""
    except OSError as error:
        return str(error)
    others = [name for name in os.environ if name.startswith((_OURS, *_CLIENTS))]
    return _start(folder, folder, ("resident", "--state", folder, *more), others)


def ensure_resident(folder: str, wait_seconds: float, *more: str) -> str | None:
    """Return the socket of the resident of a state folder, started if need be; None when that fails.

    `more` are options of `landlane resident`, for one that has to be started.
    """
    give_up_at = time.monotonic() + wait_seconds
    start_at = 0.0
    while True:
        path = find_socket(folder)
        if path and is_answering(path):
            return path
        now = time.monotonic()
        if now >= start_at:  # repeatedly: the one that was started may have been killed, too
            start_at = now + _START_SECONDS
            if start_server(folder, *more):
                return None
        if now >= give_up_at:
            return None
        time.sleep(_POLL_SECONDS)


def is_answering(path: str) -> bool:
    """Return whether a resident answers at a socket."""
    try:
        return send_request(path, _PING, 5.0) is not None
    except (AnswerLost, BadMessage):
        return False


def _start(folder: str, cwd: str, words: Sequence[str], without: Sequence[str]) -> str:
    """Start a command of ours that continues without us; return why that failed, or an empty text."""
    log = os.path.join(folder, _LOG)
    # -P: files in the repository's root must not be imported as modules.
    command = [sys.executable, "-P", "-m", "landlane", *words]
    try:
        _limit_log(log)
        start_detached(command, cwd=cwd, log=log, without=(*LOCATION_VARIABLES, *without))
    except (OSError, ValueError) as error:
        return str(error)
    return ""


def _limit_log(log: str) -> None:
    """Truncate a long log; running writers continue at its new end."""
    try:
        if os.path.getsize(log) > _MOST_LOG:
            os.truncate(log, 0)
    except FileNotFoundError:
        return
