"""A client that says exactly what a test wants: JSON-RPC lines to `landlane mcp`, in either era."""

from __future__ import annotations

import io
import json
import os
import subprocess
from typing import IO, TYPE_CHECKING, Any, Self

from tests.support.command_server import Forked, can_fork
from tests.support.shell import LANDLANE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MODERN = "2026-07-28"
HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
VERSIONS = (*HANDSHAKES, MODERN)
CLIENT = {"name": "speaker", "version": "1"}

_PREFIX = "io.modelcontextprotocol/"
ENVELOPE = {
    f"{_PREFIX}protocolVersion": MODERN,
    f"{_PREFIX}clientInfo": CLIENT,
    f"{_PREFIX}clientCapabilities": {},
}


class McpClient:
    """One server process and the messages to and from it."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        version: str = "2025-11-25",
        environment: Mapping[str, str] | None = None,
        is_started: bool = False,
    ) -> None:
        """Fork the server from an interpreter that has the SDK imported, or start it as a client does."""
        self.version = version
        self.notes: list[dict[str, Any]] = []
        self._number = 0
        words = [LANDLANE, "mcp", *arguments]
        around = {**os.environ, **(environment or {})}
        if not is_started and can_fork(around):
            forked = Forked(words, str(folder), around, b"")
            self.process: Forked | subprocess.Popen[bytes] = forked
            self._stdin, self._stdout = forked.take_stdin(), io.BufferedReader(forked.stdout)
            self._stderr: IO[bytes] = forked.stderr
            return
        pipe = subprocess.PIPE
        started = subprocess.Popen(words, cwd=folder, env=around, stdin=pipe, stdout=pipe, stderr=pipe)
        assert started.stdin is not None
        assert started.stdout is not None
        assert started.stderr is not None
        self.process = started
        self._stdin, self._stdout, self._stderr = started.stdin, started.stdout, started.stderr

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> dict[str, Any]:
        """Open the connection as a client of this era does; tells what the server says of itself."""
        if self.version == MODERN:
            return self.ask("server/discover")["result"]
        hello = {"protocolVersion": self.version, "capabilities": {}, "clientInfo": CLIENT}
        said = self.ask("initialize", hello)["result"]
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return said

    def say(self, message: Any) -> None:
        text = message if isinstance(message, str) else json.dumps(message)
        self._stdin.write(text.encode("utf-8", "surrogatepass") + b"\n")
        self._stdin.flush()

    def send(self, method: str, params: Any = None, **meta: Any) -> int:
        """Send a request; tells its number."""
        self._number += 1
        given: Any = params
        if given is None or isinstance(given, dict):
            given = dict(given or {})
            envelope = ENVELOPE if self.version == MODERN else {}
            if envelope or meta:
                given["_meta"] = {**envelope, **meta}
        self.say({"jsonrpc": "2.0", "id": self._number, "method": method, "params": given})
        return self._number

    def hear_next(self) -> dict[str, Any]:
        """The next message, whatever it is."""
        return json.loads(self._stdout.readline())

    def hear(self, number: int) -> dict[str, Any]:
        """The answer to a request; what comes in between is kept in `notes`."""
        while line := self._stdout.readline():
            message = json.loads(line)
            if message.get("id") == number and "method" not in message:
                return message
            self.notes.append(message)
        raise AssertionError(f"the server has ended: {self.end()}")

    def ask(self, method: str, params: Any = None, **meta: Any) -> dict[str, Any]:
        return self.hear(self.send(method, params, **meta))

    def call(self, name: str, /, **given: Any) -> dict[str, Any]:
        """Call a tool; tells its structured answer."""
        return self.answer_to(self.ask("tools/call", {"name": name, "arguments": given}))

    def answer_to(self, message: dict[str, Any]) -> dict[str, Any]:
        result = message["result"]
        found = result["structuredContent"]
        assert result.get("isError", False) is not found["ok"], result
        assert json.loads(result["content"][0]["text"]) == found
        return found

    def end(self) -> str:
        """Close our end, and tell what the server said on its stderr."""
        if not self._stdin.closed:
            self._stdin.close()
        self.process.wait(30)
        return self._stderr.read().decode()

    def close(self) -> None:
        try:
            self.end()
        finally:
            for pipe in (self._stdin, self._stdout, self._stderr):
                pipe.close()
