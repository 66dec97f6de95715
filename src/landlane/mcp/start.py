"""Start the server for `landlane mcp`, on standard input and output or over HTTP."""

from __future__ import annotations

from landlane.clients.setup_files import sdk_release
from landlane.errors import LandlaneError
from landlane.mcp.open_repositories import RepositoryPool
from landlane.mcp.stdio import open_wire
from landlane.mcp.tool_caller import Starter
from landlane.version import install_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def serve_client(folder: str, name: str, session: str) -> None:
    """Serve the client that started us, until it closes its end.

    Raises:
        LandlaneError: the SDK is not installed, or there is no repository.
    """
    _check_sdk()
    pool = RepositoryPool(folder)
    wire = open_wire(pool.state_folder)
    from landlane.mcp.serve_wire import serve_wire  # noqa: PLC0415 - loads the SDK while the wire answers

    serve_wire(wire, pool, Starter(name=name, session_text=session))


def serve_network(folder: str, host: str, port: int, report: Callable[[str], None]) -> None:
    """Serve clients that show a session's token, until a signal.

    Raises:
        LandlaneError: the SDK is not installed, there is no repository, or the address is not available.
    """
    _check_sdk()
    from landlane.mcp.http import serve_http  # noqa: PLC0415 - loads the SDK, an extra

    serve_http(RepositoryPool(folder, caller=0), host, port, report)


def _check_sdk() -> None:
    if not sdk_release():
        raise LandlaneError(
            "the MCP SDK is not installed",
            code="NO_MCP",
            hint=install_command("mcp"),
        )
