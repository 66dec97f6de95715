"""The command that runs a coding client as a worker, and whether the client is installed.

A client does not speak the worker protocol. `landlane.clients.as_worker.main` does, inside the same sandbox:
it starts the client, reads its output, and reports what it saw. Arguments after `--` are the client's own.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

from landlane.clients.model import CLIENTS, WORKER_CLIENTS
from landlane.clients.registry import adapter_of
from landlane.errors import LandlaneError

MODULE = "landlane.clients.as_worker.main"
PLAIN_MODULE = "landlane.clients.as_worker.plain_command"


def find_program(client: str, search_path: str | None = None) -> str:
    """Return the path of a client's program.

    Raises:
        Malformed: no such client can be a worker.
        LandlaneError: it is not installed.
    """
    name = adapter_of(client).name
    program = shutil.which(name, path=search_path)
    if program is None:
        raise LandlaneError(
            f"{CLIENTS[name].title} is not installed: there is no program {name} on the PATH",
            code="NOT_INSTALLED",
            hint=f"install it, for example with `{CLIENTS[name].install}`",
        )
    return program


def worker_command(
    client: str, *, model: str = "", extra: Sequence[str] = (), options: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the command that runs a client as a worker.

    `extra` are arguments for the client, `options` for the worker process, such as `--quiet 900`.

    Raises:
        Malformed: no such client can be a worker.
    """
    name = adapter_of(client).name
    chosen = ("--model", model) if model else ()
    # -P: Python must not look for modules in the checkout that it works in.
    return (sys.executable, "-P", "-m", MODULE, *options, *chosen, name, "--", *extra)


def plain_worker_command(command: Sequence[str]) -> tuple[str, ...]:
    """Return the command that runs a plain command as a worker: its exit code says whether it is done."""
    return (sys.executable, "-P", "-m", PLAIN_MODULE, "--", *command)


def client_of_worker(command: Sequence[str]) -> str:
    """Return which client a command runs as a worker; empty for any other command."""
    words = list(command)
    end = words.index("--") if "--" in words else len(words)
    is_worker = words[1:4] == ["-P", "-m", MODULE] and end < len(words)
    return words[end - 1] if is_worker and words[end - 1] in WORKER_CLIENTS else ""
