"""The MCP server: its first answer, its calls per second over HTTP, and the length of its list of tools."""

from __future__ import annotations

import http.client
import json
import math
import os
import re
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.fresh import make_repository, plain_environment
from bench.places import quickest_place, scratch
from bench.table import Row, Skipped, at_least, at_most
from bench.timing import medians
from landlane.app.open import open_repository
from landlane.clients.setup_files import sdk_release, server_words
from landlane.mcp.tool_schemas import INSTRUCTIONS, TOOLS
from landlane.sessions.join import join

if TYPE_CHECKING:
    import random
    from collections.abc import Generator, Iterator

    from bench.sizes import Sizes

_MODERN = "2026-07-28"
_META = {
    "io.modelcontextprotocol/protocolVersion": _MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
_MOST_TOKENS = 2_500

# The least that the SDK allows: one tool, that says what it is given.
_BARE = """
import sys
from mcp.server.mcpserver import MCPServer
server = MCPServer("bare", version="1")
@server.tool()
def echo(text: str) -> str:
    "Say it back."
    return text
if len(sys.argv) > 1:
    import uvicorn, socket
    listening = socket.create_server(("127.0.0.1", 0))
    print("http://127.0.0.1:%d/mcp" % listening.getsockname()[1], file=sys.stderr, flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="critical")
    uvicorn.Server(config).run(sockets=[listening])
else:
    server.run(transport="stdio")
"""
# No SDK at all: as quick as an answer from Python can be.
_PLAIN = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        said = {"protocolVersion": "2025-06-18", "capabilities": {}}
        result = {**said, "serverInfo": {"name": "plain", "version": "1"}}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\\n")
        sys.stdout.flush()
"""


def bench_mcp(sizes: Sizes, lots: random.Random) -> Iterator[Row | Skipped]:
    """All about the server."""
    yield Row(what="mcp: tokens of the tool list", unit="", ours=_tokens(), peer=_MOST_TOKENS, aim=at_most(1))
    if not sdk_release():
        yield Skipped(what="mcp", reason="the extra `mcp` is not installed")
        return
    with scratch(quickest_place()) as folder:
        root = make_repository(Path(folder, "repository"))
        rounds = max(min(2, sizes.process_rounds), sizes.process_rounds // 16)
        yield from _first_answers(root, rounds, lots)
        yield from _rates(root, sizes, lots)


def _tokens() -> float:
    """About what a model's tokenizer makes of the list: words in pieces of six letters, signs by threes."""
    text = json.dumps(TOOLS, separators=(",", ":")) + INSTRUCTIONS
    pieces = re.findall(r"[A-Za-z0-9]+|[^A-Za-z0-9\s]+", text)
    return sum(math.ceil(len(piece) / (6 if piece.isalnum() else 3)) for piece in pieces)


def _first_answers(root: str, rounds: int, lots: random.Random) -> Iterator[Row]:
    bare = [sys.executable, "-c", _BARE]
    found = medians(
        {
            "ours": lambda: _answer_ms(server_words(), root),
            "bare": lambda: _answer_ms(bare, root),
            "plain": lambda: _answer_ms([sys.executable, "-I", "-c", _PLAIN], root),
            "our tool": lambda: _answer_ms(server_words(), root, ("status", {})),
            "bare tool": lambda: _answer_ms(bare, root, ("echo", {"text": "x"})),
        },
        rounds,
        lots,
        warm=1,
    )
    for name, what, limit in (("bare", "a bare SDK server", 0.5), ("plain", "a plain-Python one", 6)):
        what = f"mcp: first answer, against {what}"
        yield Row(what=what, unit="ms", ours=found["ours"], peer=found[name], aim=at_most(limit))
    what = "mcp: first call of a tool, against a bare SDK server"
    yield Row(what=what, unit="ms", ours=found["our tool"], peer=found["bare tool"])


def _answer_ms(words: list[str], root: str, call: tuple[str, dict[str, Any]] | None = None) -> float:
    """How long a new server takes to its first answer, or to that of a tool."""
    environment = plain_environment()
    began = time.perf_counter()
    with subprocess.Popen(
        words,
        cwd=root,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        _say(server.stdin, {"id": 1, "method": "initialize", "params": _HELLO})
        answer = server.stdout.readline()
        if call is not None:
            _say(server.stdin, {"method": "notifications/initialized"})
            params = {"name": call[0], "arguments": call[1]}
            _say(server.stdin, {"id": 2, "method": "tools/call", "params": params})
            answer = server.stdout.readline()
        taken = time.perf_counter() - began
        server.stdin.close()
    if b'"result"' not in answer:
        raise RuntimeError(f"no answer: {answer[:200]!r}")
    return taken * 1000


def _say(pipe: Any, message: dict[str, Any]) -> None:
    pipe.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    pipe.flush()


def _rates(root: str, sizes: Sizes, lots: random.Random) -> Iterator[Row]:
    """Calls per second of one server: ours takes a claim with each, the bare one only says something back."""
    most = max(sizes.clients)
    repo = open_repository(root)
    joined = [join(repo, f"agent{number}") for number in range(most)]
    tokens = [f"{one.session.id}:{one.secret}" for one in joined]
    repo.close()
    ours = [*server_words(), "--http", "--port", "0"]
    with _serving(ours, root) as port, _serving([sys.executable, "-c", _BARE, "http"], root) as bare:
        for clients in sizes.clients:
            found = medians(
                {
                    "ours": partial(_rate, port, clients, sizes.rate_seconds, tokens, "claim"),
                    "bare": partial(_rate, bare, clients, sizes.rate_seconds, tokens, "echo"),
                },
                max(min(2, sizes.rate_rounds), sizes.rate_rounds // 3),
                lots,
                warm=1,
            )
            what = f"mcp: claims a second over HTTP, {clients} clients, against a bare echo"
            aim = at_least(0.1) if clients == most else None
            yield Row(what=what, unit="/s", ours=found["ours"], peer=found["bare"], aim=aim)


@contextmanager
def _serving(words: list[str], root: str) -> Generator[int]:
    environment = {**os.environ, **plain_environment()}
    with subprocess.Popen(words, cwd=root, env=environment, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        said = server.stderr.readline()
        try:
            yield int(said.rpartition(":")[2].partition("/")[0])
        finally:
            server.terminate()


_NUMBERS = count()


def _rate(port: int, clients: int, seconds: float, tokens: list[str], tool: str) -> float:
    """Answers a second to clients that each ask again and again."""
    answered: list[int] = []
    barrier = threading.Barrier(clients)

    def ask(token: str) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        barrier.wait()
        give_up_at, done = time.perf_counter() + seconds, 0
        while time.perf_counter() < give_up_at:
            path = f"own/file{next(_NUMBERS)}.py"
            given = {"text": path} if tool == "echo" else {"paths": [path]}
            _call(connection, token, tool, given)
            done += 1
        answered.append(done)
        connection.close()

    threads = [threading.Thread(target=ask, args=(token,)) for token in tokens[:clients]]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(answered) != clients:
        raise RuntimeError("a client got no answer")
    return sum(answered) / (time.perf_counter() - began)


def _call(connection: http.client.HTTPConnection, token: str, tool: str, given: dict[str, Any]) -> None:
    params = {"name": tool, "arguments": given, "_meta": _META}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Authorization": f"Bearer {token}",
        "MCP-Protocol-Version": _MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }
    connection.request("POST", "/mcp", body, headers)
    answer = connection.getresponse().read()
    if b'"isError":false' not in answer.replace(b" ", b""):
        raise RuntimeError(f"no good answer: {answer[:200]!r}")
