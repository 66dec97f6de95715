"""Serve one client over standard input and output with the SDK.

Loading the SDK takes long, so `stdio.py` answers the client until this module is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import anyio
from mcp.server.stdio import stdio_server

from landlane.mcp.server import LandlaneServer, quiet_logging, starter_for
from landlane.mcp.tool_caller import end_own_session

if TYPE_CHECKING:
    from landlane.mcp.open_repositories import RepositoryPool
    from landlane.mcp.stdio import Wire
    from landlane.mcp.tool_caller import Starter


def serve_wire(wire: Wire, pool: RepositoryPool, starter: Starter) -> None:
    """Serve until the client closes its end."""
    quiet_logging()
    known: dict[str, Starter] = {"starter": starter}
    of = starter_for(starter)

    def starter_of(request: Any) -> Starter:
        known["starter"] = of(request)
        return known["starter"]

    server = LandlaneServer(pool, starter_of)

    async def run() -> None:
        end = cast("Any", anyio.wrap_file)(wire)  # reads and writes lines; not a complete file
        async with stdio_server(end, end) as (read, write):
            wire.hand_over()
            await server.sdk.run(read, write, server.options)

    anyio.run(run)
    with pool.borrow() as repo:
        end_own_session(repo, known["starter"])
