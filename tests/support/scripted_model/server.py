"""A model API on loopback that answers from a script, so that real coding clients can run without a model.

Scripts have names, and a script is a list of turns. A conversation chooses its script by the marker
`[[script:name]]` in its prompt; how often the model has answered since is the turn. So the server remembers
nothing about a conversation: retries, side requests, subagents and several clients at once cannot put it out
of step.

Besides what the client is told to do (see `scripted_model_wire`), a turn may hold `{"gate": name}`, which
keeps the answer back until `open_gate(name)`; `{"after": script}`, which keeps it back until that script has
been played to its end; and `{"status": 529}`, which answers with that HTTP error.
"""

from __future__ import annotations

import itertools
import json
import re
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self, cast

from landlane.values import value
from tests.support.scripted_model.api_formats import Json, Turn, answerer, conversation, has_tools, strings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tests.support.scripted_model.api_formats import Event

MARKER = re.compile(r"\[\[script:([\w.-]+)\]\]")
OVER = "(script over)"
# No gate stays shut for ever; a client gives up sooner or later too.
HOLD_SECONDS = 60.0

_NOT_FOUND: Json = {"error": {"type": "not_found_error", "message": "scripted model: no such path"}}
_SCRIPTED_ERROR: Json = {
    "type": "error",
    "error": {"type": "overloaded_error", "message": "scripted failure"},
}


def marker(script: str) -> str:
    """What to put into a prompt, for its conversation to follow the script."""
    return f"[[script:{script}]]"


@value
class Request:
    """One request of a client: where to, and, when it belongs to a script, which turn it asks for."""

    path: str
    script: str
    turn: int
    body: Json

    def contains(self, text: str) -> bool:
        """Whether the model was told this text, anywhere in the request."""
        return any(text in one for one in strings(self.body))


def choose(body: Json, scripts: Mapping[str, Sequence[Turn]]) -> tuple[str, int, Turn]:
    """Script, number and parts of the turn a request asks for; "" for a request outside of any script."""
    items = conversation(body)
    marked = next(
        (
            (index, found.group(1))
            for index, (is_own, item) in enumerate(items)
            if not is_own
            for text in strings(item)
            if (found := MARKER.search(text))
        ),
        None,
    )
    if marked is None or marked[1] not in scripts:
        return "", 0, [{"text": "ok"}]
    start, name = marked
    turns = scripts[name]
    if not has_tools(body) and any("tool" in part for turn in turns for part in turn):
        return "", 0, [{"text": "ok"}]
    number = sum(1 for is_own, _ in itertools.groupby(items[start:], key=lambda pair: pair[0]) if is_own)
    return name, number, turns[number] if number < len(turns) else [{"text": OVER}]


class ScriptedModel:
    """The server, in a thread of this process; `with` it, or `close` it in the end."""

    def __init__(
        self,
        scripts: Mapping[str, Sequence[Turn]],
        *,
        listening: socket.socket | None = None,
        log: Path | None = None,
    ) -> None:
        """Serve on a socket that listens already, perhaps in another network namespace, or on a free port."""
        self.scripts = {name: list(turns) for name, turns in scripts.items()}
        self._requests: list[Request] = []
        self._open_gates: set[str] = set()
        self._changed = threading.Condition()
        self._log = log
        self._server = _Server(self, listening or socket.create_server(("127.0.0.1", 0)))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving. What was requested can still be read."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def requests(self) -> list[Request]:
        """Every request so far, in the order of arrival."""
        with self._changed:
            return list(self._requests)

    def open_gate(self, name: str) -> None:
        """Let the turns go on that wait at this gate."""
        with self._changed:
            self._open_gates.add(name)
            self._changed.notify_all()

    def wait_for_turn(self, script: str, turn: int, seconds: float = HOLD_SECONDS) -> bool:
        """Wait until a client asks for this turn: all before it are done then. Tell whether it did."""
        return self._wait_until(lambda: self._has_asked_for(script, turn), seconds)

    def record(self, request: Request) -> None:
        """Remember a request, and wake whoever waited for it."""
        with self._changed:
            self._requests.append(request)
            self._changed.notify_all()
            if self._log is not None:
                entry = {
                    "path": request.path,
                    "script": request.script,
                    "turn": request.turn,
                    "body": request.body,
                }
                with self._log.open("a", encoding="utf-8") as log:
                    log.write(json.dumps({"at": time.time(), **entry}) + "\n")

    def hold(self, turn: Turn) -> None:
        """Keep the answer back as long as the turn wants it."""
        for part in turn:
            if "gate" in part:
                self._wait_until(lambda gate=part["gate"]: gate in self._open_gates)
            if "after" in part:
                self._wait_until(lambda script=part["after"]: self._is_over(script))

    def _has_asked_for(self, script: str, turn: int) -> bool:
        return any(one.script == script and one.turn >= turn for one in self._requests)

    def _is_over(self, script: str) -> bool:
        """Whether all tools of a script have been called: the client came back with the last result."""
        turns = self.scripts[script]
        last_call = max(
            (i for i, turn in enumerate(turns) if any("tool" in part for part in turn)), default=-1
        )
        return self._has_asked_for(script, last_call + 1)

    def _wait_until(self, is_true: Callable[[], bool], seconds: float = HOLD_SECONDS) -> bool:
        with self._changed:
            return self._changed.wait_for(is_true, seconds)


class _Server(ThreadingHTTPServer):
    """Requests in threads, on a socket that was made elsewhere."""

    daemon_threads = True
    # A client that was killed in the middle of a request must not keep the test waiting.
    block_on_close = False

    def __init__(self, model: ScriptedModel, listening: socket.socket) -> None:
        super().__init__(listening.getsockname(), _Handler, bind_and_activate=False)
        self.model = model
        self.socket.close()
        self.socket = listening

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that hang up; a reply that cannot be made shows in the client."""


class _Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """The library does not print."""

    def do_GET(self) -> None:
        self._model.record(Request(path=self.path, script="", turn=0, body={}))
        if self.path.split("?")[0].endswith("/models"):
            self._reply(200, {"object": "list", "data": [], "models": []})
        else:
            self._reply(404, _NOT_FOUND)

    do_HEAD = do_GET  # noqa: N815 - the name is inherited

    def do_POST(self) -> None:
        body = _read_json(self.rfile.read(int(self.headers.get("content-length") or 0)))
        script, number, turn = choose(body, self._model.scripts)
        self._model.record(Request(path=self.path, script=script, turn=number, body=body))
        path = self.path.split("?")[0]
        answer = answerer(path)
        if path.endswith("/count_tokens"):
            self._reply(200, {"input_tokens": 10})
        elif path.endswith(":countTokens"):
            self._reply(200, {"totalTokens": 10})
        elif answer is None:
            self._reply(404, _NOT_FOUND)
        elif status := next((part["status"] for part in turn if "status" in part), None):
            self._reply(status, _SCRIPTED_ERROR)
        else:
            self._model.hold(turn)
            shown = answer(
                body, [part for part in turn if "text" in part or "tool" in part] or [{"text": "ok"}]
            )
            if isinstance(shown, list):
                self._stream(shown)
            else:
                self._reply(200, shown)

    @property
    def _model(self) -> ScriptedModel:
        return cast("_Server", self.server).model

    def _reply(self, status: int, content: Json) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _stream(self, events: list[Event]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for name, data in events:
            text = data if isinstance(data, str) else json.dumps(data)
            self.wfile.write((f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode())
            self.wfile.flush()
        self.close_connection = True


def _read_json(raw: bytes) -> Json:
    try:
        body: Any = json.loads(raw or b"{}")
    except ValueError:
        body = None
    return cast("Json", body) if isinstance(body, dict) else {}
