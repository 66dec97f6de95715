"""What Codex's user does in its dialog about hooks: look at them, and trust them."""

from __future__ import annotations

import json
import subprocess
import threading
from typing import IO, TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from tests.support.real_clients.environment import ClientTestbed
    from tests.support.scripted_model.api_formats import Json

_SECONDS = 30.0


def list_codex_hooks(world: ClientTestbed, *, home: str = "home") -> list[Json]:
    """The hooks that Codex finds for the repository, each with its `key`, `currentHash` and `trustStatus`."""
    answer = _ask_codex(world, home, "hooks/list", {"cwds": [str(world.repository)]})
    return [hook for folder in answer["data"] for hook in folder["hooks"]]


def trust_hooks(world: ClientTestbed, *, home: str = "home") -> int:
    """Trust all hooks that Codex finds for the repository, and tell how many those are."""
    hooks = list_codex_hooks(world, home=home)
    state = {hook["key"]: {"trusted_hash": hook["currentHash"], "enabled": True} for hook in hooks}
    edit = {"keyPath": "hooks.state", "value": state, "mergeStrategy": "upsert"}
    _ask_codex(world, home, "config/batchWrite", {"edits": [edit]})
    return len(hooks)


def _ask_codex(world: ClientTestbed, home: str, method: str, given: Json) -> Json:
    server = subprocess.Popen(
        [*world.network.enter(), str(world.program_of("codex")), "app-server"],
        cwd=world.repository,
        env=world.environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    # A server that does not answer is ended, and its output with it.
    deadline = threading.Timer(_SECONDS, server.kill)
    deadline.start()
    try:
        assert server.stdin is not None
        assert server.stdout is not None
        about_us = {"name": "landlane-tests", "title": "Landlane's tests", "version": "0"}
        _ask(server.stdin, server.stdout, 1, "initialize", {"clientInfo": about_us})
        return _ask(server.stdin, server.stdout, 2, method, given)
    finally:
        deadline.cancel()
        server.kill()
        server.communicate()


def _ask(to: IO[str], answers: IO[str], number: int, method: str, given: Json) -> Json:
    to.write(json.dumps({"id": number, "method": method, "params": given}) + "\n")
    to.flush()
    for line in answers:
        answer: dict[str, Any] = json.loads(line)
        if answer.get("id") == number:
            return cast("Json", answer["result"])
    raise ConnectionError(f"Codex's app server ended without an answer to {method}")
