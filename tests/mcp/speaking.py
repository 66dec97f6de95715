"""A client that says exactly what a test wants: JSON-RPC lines to `landlane mcp`, in either era."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Self

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


class Speaker:
    """One server process and the messages to and from it."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        version: str = "2025-11-25",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.version = version
        self.notes: list[dict[str, Any]] = []
        self._number = 0
        self.process = subprocess.Popen(
            [sys.executable, "-m", "landlane", "mcp", *arguments],
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

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
        assert self.process.stdin is not None
        text = message if isinstance(message, str) else json.dumps(message)
        self.process.stdin.write(text.encode("utf-8", "surrogatepass") + b"\n")
        self.process.stdin.flush()

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

    def hear(self, number: int) -> dict[str, Any]:
        """The answer to a request; what comes in between is kept in `notes`."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
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
        assert self.process.stdin is not None
        if not self.process.stdin.closed:
            self.process.stdin.close()
        self.process.wait(30)
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def close(self) -> None:
        try:
            self.end()
        finally:
            for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
                if pipe is not None:
                    pipe.close()
