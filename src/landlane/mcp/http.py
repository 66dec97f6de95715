"""Serve over streamable HTTP: every request has a session's token and comes from an allowed origin.

The token is the value of `LANDLANE_SESSION`, the id and the secret of a session. Host and Origin are checked
by the SDK, against web pages that send requests to loopback; the token is checked here, before anything
else. Refused requests are written to the journal, as one entry when there are many.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import anyio.to_thread
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from landlane.error_json import error_json
from landlane.errors import LandlaneError, Malformed, NotAllowed
from landlane.mcp.server import LandlaneServer, client_name, quiet_logging
from landlane.mcp.tool_caller import Starter
from landlane.rules.violations import record_violation
from landlane.sessions.join import prove
from landlane.sessions.model import parse_credentials

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from landlane.ids import Credentials
    from landlane.mcp.open_repositories import RepositoryPool


PATH = "/mcp"
_CREDENTIALS = "landlane.credentials"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_BEARER = "bearer "
_MOST_BYTES = 1024 * 1024
_RECORD_SECONDS = 60.0
_MOST_OWNERS = 10_000
_RULE = "show the token of your session"


def make_app(pool: RepositoryPool, host: str = "127.0.0.1") -> ASGIApp:
    """Return the server as an ASGI application."""
    quiet_logging()

    def starter_of(context: Any) -> Starter:
        return Starter(client=client_name(context), credentials=context.request.scope[_CREDENTIALS])

    names = _LOOPBACK if host in ("127.0.0.1", "::1", "localhost") else (*_LOOPBACK, _bracketed(host))
    security = TransportSecuritySettings(
        allowed_hosts=[f"{name}:*" for name in names],
        allowed_origins=[f"http://{name}:*" for name in names],
    )
    server = LandlaneServer(pool, starter_of)
    inner = server.sdk.streamable_http_app(
        streamable_http_path=PATH, transport_security=security, host=host, max_request_body_size=_MOST_BYTES
    )
    return _Guard(inner, pool)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class _Guard:
    """Accepts only requests that prove a session; an older-protocol connection keeps its first session."""

    def __init__(self, inner: ASGIApp, pool: RepositoryPool) -> None:
        self._inner = inner
        self._pool = pool
        self._owners: dict[str, str] = {}
        self._refused = _Refused(pool)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        headers = {name.decode("latin-1"): text.decode("latin-1") for name, text in scope["headers"]}
        try:
            credentials = await anyio.to_thread.run_sync(self._prove, headers)
        except LandlaneError as error:
            where = scope.get("client")
            await anyio.to_thread.run_sync(self._refused.note, where[0] if where else "", error)
            await _refuse(send, 404 if error.code == "NOT_YOUR_CONNECTION" else 401, error)
            return
        scope[_CREDENTIALS] = credentials

        async def send_noting_owner(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._note_owner(message, credentials)
            await send(message)

        await self._inner(scope, receive, send_noting_owner)

    def _prove(self, headers: dict[str, str]) -> Credentials:
        token = headers.get("authorization", "")
        if not token.lower().startswith(_BEARER):
            raise NotAllowed(
                "the request shows no token",
                code="NO_TOKEN",
                hint="send Authorization: Bearer <id>:<secret>, as `landlane join NAME --json` answers",
            )
        try:
            credentials = parse_credentials(token[len(_BEARER) :].strip())
        except Malformed as error:
            raise NotAllowed(
                "the token is not of the form id:secret", code="BAD_TOKEN", hint=error.hint
            ) from None
        with self._pool.borrow() as repo:
            prove(repo, credentials)
        connection = headers.get("mcp-session-id", "")
        if self._owners.get(connection, credentials.session) != credentials.session:
            raise NotAllowed(
                "this connection began with another session's token",
                code="NOT_YOUR_CONNECTION",
                hint="open a connection of your own: initialize without Mcp-Session-Id",
            )
        return credentials

    def _note_owner(self, message: Message, credentials: Credentials) -> None:
        for name, text in message.get("headers", ()):
            if name.lower() == b"mcp-session-id":
                if len(self._owners) >= _MOST_OWNERS:
                    self._owners.pop(next(iter(self._owners)))
                self._owners.setdefault(text.decode("latin-1"), credentials.session)


async def _refuse(send: Send, status: int, error: LandlaneError) -> None:
    body = json.dumps(error_json(error)).encode()
    headers = [(b"content-type", b"application/json"), (b"www-authenticate", b'Bearer realm="landlane"')]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class _Refused:
    """Records refused requests; repetitions within a minute are counted and recorded later."""

    def __init__(self, pool: RepositoryPool) -> None:
        self._pool = pool
        self._guard = threading.Lock()
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}

    def note(self, address: str, error: LandlaneError) -> None:
        """Record one refused request."""
        now = time.monotonic()
        key = (address, error.code)
        with self._guard:
            recorded_at, count = self._seen.get(key, (float("-inf"), 0))
            if now - recorded_at < _RECORD_SECONDS:
                self._seen[key] = (recorded_at, count + 1)
                return
            if len(self._seen) >= _MOST_OWNERS:
                self._seen.clear()
            self._seen[key] = (now, 0)
        more = f", and {count} more since the last entry" if count else ""
        try:
            with self._pool.borrow() as repo:
                what = f"{error.code}: {error.message} (from {address or 'unknown'}{more})"
                record_violation(repo, None, rule=_RULE, guard="mcp", what=what)
                repo.settle()
        except LandlaneError:
            return  # the request is refused even if the store cannot be written


def serve_http(pool: RepositoryPool, host: str, port: int, report: Callable[[str], None]) -> None:
    """Serve until a signal.

    Raises:
        LandlaneError: the address is not available.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(128)  # connections from now on are answered, possibly after a moment
    except OSError as error:
        listening.close()
        raise LandlaneError(
            f"{host}:{port} cannot be listened on: {error.strerror or error}",
            code="ADDRESS_IN_USE",
            hint="choose another with --port, or 0 for any free one",
        ) from error
    config = uvicorn.Config(make_app(pool, host), log_level="critical", lifespan="on", access_log=False)
    report(f"serving http://{_bracketed(host)}:{listening.getsockname()[1]}{PATH}")
    uvicorn.Server(config).run(sockets=[listening])
