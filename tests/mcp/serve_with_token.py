"""Serves our HTTP application with a session's token added to every request, for programs that send none."""

from __future__ import annotations

import socket
import sys
from typing import Any

import uvicorn

from landlane.mcp.http import make_app
from landlane.mcp.open_repositories import RepositoryPool


def main(folder: str, token: str) -> None:
    inner = make_app(RepositoryPool(folder, caller=0))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scope["headers"] = [*scope["headers"], (b"authorization", f"Bearer {token}".encode())]
        await inner(scope, receive, send)

    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="on")).run(sockets=[listening])


if __name__ == "__main__":
    main(*sys.argv[1:])
