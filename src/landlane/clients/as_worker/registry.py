"""The coding clients that can be workers: their adapters, commands, and whether they are installed.

A client does not speak the worker protocol. `landlane.clients.as_worker.main` does, inside the same sandbox:
it starts the client, reads its stream, and reports what it saw. Arguments after `--` are the client's own.
"""

from __future__ import annotations

import shutil
import sys

from landlane.clients.aider import worker as aider_work
from landlane.clients.claude import worker as claude_work
from landlane.clients.codex import worker as codex_work
from landlane.clients.copilot import worker as copilot_work
from landlane.clients.gemini import worker as gemini_work
from landlane.clients.gptme import worker as gptme_work
from landlane.clients.opencode import worker as opencode_work
from landlane.clients.qwen import worker as qwen_work
from landlane.errors import LandlaneError, Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.clients.worker_adapter import WorkerAdapter

MODULE = "landlane.clients.as_worker.main"
WORKERS: dict[str, WorkerAdapter] = {
    module.ADAPTER.name: module.ADAPTER
    for module in (
        claude_work,
        codex_work,
        gemini_work,
        qwen_work,
        copilot_work,
        opencode_work,
        aider_work,
        gptme_work,
    )
}
_INSTALLING = {
    "claude": "npm install -g @anthropic-ai/claude-code",
    "codex": "npm install -g @openai/codex",
    "gemini": "npm install -g @google/gemini-cli",
    "qwen": "npm install -g @qwen-code/qwen-code",
    "copilot": "npm install -g @github/copilot",
    "opencode": "npm install -g opencode-ai",
    "aider": "pip install aider-chat",
    "gptme": "pip install gptme",
}


def adapter_of(client: str) -> WorkerAdapter:
    """The adapter of a client.

    Raises:
        Malformed: nobody knows this client.
    """
    found = WORKERS.get(client)
    if found is None:
        raise Malformed(
            f"{client[:40]!r} is no client that can work by itself",
            code="UNKNOWN_CLIENT",
            hint=f"one of {', '.join(WORKERS)}; any other command can speak the worker protocol itself",
        )
    return found


def program_of(client: str) -> str:
    """The name of the program that a client needs.

    Raises:
        Malformed: nobody knows this client.
    """
    return adapter_of(client).program


def find_program(client: str, search_path: str | None = None) -> str:
    """Where the program of a client lies; to be asked before anything is started.

    Raises:
        Malformed: nobody knows this client.
        LandlaneError: it is not installed.
    """
    adapter = adapter_of(client)
    found = shutil.which(adapter.program, path=search_path)
    if found is None:
        raise LandlaneError(
            f"{adapter.title} is not installed: there is no program {adapter.program} on the PATH",
            code="NOT_INSTALLED",
            hint=f"install it, for example with `{_INSTALLING[client]}`",
        )
    return found


def worker_command(
    client: str, *, model: str = "", extra: Sequence[str] = (), options: Sequence[str] = ()
) -> tuple[str, ...]:
    """The command that runs a client as a worker. `extra` are words for the client itself.

    `options` are words for the translator, such as `--quiet 900`.

    Raises:
        Malformed: nobody knows this client.
    """
    adapter_of(client)
    named = ("--model", model) if model else ()
    # -P: the checkout that it works in must not be where Python looks for modules.
    return (sys.executable, "-P", "-m", MODULE, *options, *named, client, "--", *extra)


def client_of_worker(command: Sequence[str]) -> str:
    """Which client a command runs as a worker; empty when it is no such command."""
    words = list(command)
    end = words.index("--") if "--" in words else len(words)
    is_worker = words[1:4] == ["-P", "-m", MODULE] and end < len(words)
    return words[end - 1] if is_worker and words[end - 1] in WORKERS else ""
