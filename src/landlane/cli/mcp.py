"""The command `mcp`: serve the Model Context Protocol."""

from __future__ import annotations

from landlane.cli.arguments import read_number
from landlane.errors import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command import CommandCall


_SERVER = "landlane.mcp.start"  # imported by name: cli does not depend on it
_HIGHEST_PORT = 65_535


def mcp(call: CommandCall, session: str, http: bool, host: str, port: str) -> int:
    """Serve until the client or a signal ends it."""
    number = read_number(port, "--port") or 0
    if number > _HIGHEST_PORT:
        raise Malformed(f"there is no port {number}", code="BAD_NUMBER", hint="0 to 65535")
    server: Any = __import__(_SERVER, fromlist=["serve_client"])
    if http:
        server.serve_network(call.cwd, host, number, call.terminal.note)
    else:
        server.serve_client(call.cwd, call.name, session)
    return 0
