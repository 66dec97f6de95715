"""The connection to a client over standard input and output: a reader that answers at once."""

from __future__ import annotations

import io
import json
import os
import queue
import threading
from typing import Any

from landlane.mcp.answer_while_loading import EarlyAnswers, distrust, is_trusted, table_of

_INVALID_PARAMS = -32602
_STDIN, _STDOUT, _STDERR = 0, 1, 2


class Wire(io.TextIOBase):
    """Both ends of the connection to the client, as line streams for the SDK's transport."""

    def __init__(self, source: int, sink: int, state_folder: str) -> None:
        self._source = source
        self._sink = sink
        self._state_folder = state_folder
        self._early: EarlyAnswers | None = EarlyAnswers() if is_trusted(state_folder) else None
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._answered: dict[object, tuple[str, dict[str, Any]]] = {}
        self._guard = threading.Lock()
        self._is_over = False

    def start(self) -> None:
        """Start reading."""
        threading.Thread(target=self._pump, daemon=True).start()

    def hand_over(self) -> None:
        """Let the SDK answer alone from now on."""
        with self._guard:
            self._early = None

    def _pump(self) -> None:
        with open(self._source, "rb", closefd=False) as file:
            for raw in file:
                line = raw.decode("utf-8", "replace")
                if line.strip():
                    self._take(line)
        self._lines.put("")

    def _take(self, line: str) -> None:
        if "\\ud" in line.lower() and self._refuse_invalid_text(line):
            return
        with self._guard:
            if self._early is not None:
                self._answer(self._early, line)
        self._lines.put(line)

    def _refuse_invalid_text(self, line: str) -> bool:
        """Answer a message with lone surrogates with an error, and return whether it was one.

        The SDK would drop it, and the sender would wait.
        """
        message: Any = None
        try:
            message = json.loads(line)
            json.dumps(message, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            number = table_of(message).get("id")
            if number is not None:
                error = {"code": _INVALID_PARAMS, "message": "the message holds what is not valid Unicode"}
                with self._guard:
                    self._send(json.dumps({"jsonrpc": "2.0", "id": number, "error": error}) + "\n")
            return True
        except (ValueError, RecursionError):
            return False
        return False

    def _answer(self, front: EarlyAnswers, line: str) -> None:
        try:
            message: Any = json.loads(line)
        except (ValueError, RecursionError):
            return
        result = front.answer(message)
        if result is not None:
            self._answered[message["id"]] = (str(message["method"]), result)
            self._send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")

    def _send(self, text: str) -> None:
        rest = memoryview(text.encode("utf-8", "replace"))
        try:
            while rest:
                rest = rest[os.write(self._sink, rest) :]
        except OSError:
            self._is_over = True  # the client is gone; reading reports that, too

    def readline(self, size: int | None = -1, /) -> str:
        """Return the client's next message; empty at the end."""
        del size
        return self._lines.get()

    def write(self, text: str, /) -> int:
        """Send a message, unless it repeats an answer that was already sent."""
        with self._guard:
            if not (self._answered and self._is_answered(text)) and not self._is_over:
                self._send(text)
        return len(text)

    def _is_answered(self, text: str) -> bool:
        message: Any = json.loads(text)
        known = self._answered.pop(message.get("id"), None) if "method" not in message else None
        if known is None:
            return False
        method, result = known
        if message.get("result") != result:
            distrust(self._state_folder, method, result, message)
        return True

    def writable(self) -> bool:
        """Return True."""
        return True

    def readable(self) -> bool:
        """Return True."""
        return True

    def flush(self) -> None:
        """Do nothing: messages are sent unbuffered."""


def open_wire(state_folder: str) -> Wire:
    """Take over standard input and output, and start answering the client."""
    source, sink = os.dup(_STDIN), os.dup(_STDOUT)
    for old in (source, sink):
        os.set_inheritable(old, False)
    # Output of a child or a stray print must not mix with the messages.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, _STDIN)
    os.dup2(_STDERR, _STDOUT)
    wire = Wire(source, sink, state_folder)
    wire.start()
    return wire
