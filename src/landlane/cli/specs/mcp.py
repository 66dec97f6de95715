"""The command that serves models, as part of the table of commands."""

from __future__ import annotations

from landlane.cli.specs.model import Command, Option

MCP_COMMANDS: tuple[Command, ...] = (
    Command(
        path="mcp",
        handler="mcp:serve",
        summary="Serve the MCP tools to a coding client; `init` enters it in the clients' settings.",
        options=(
            Option(name="--session", help="act for this session: <id>:<secret>", metavar="ID:SECRET"),
            Option(name="--http", help="serve streamable HTTP instead of standard input", is_flag=True),
            Option(name="--host", help="where to listen", metavar="ADDRESS", default="127.0.0.1"),
            Option(name="--port", help="0 for any free one", metavar="N", default="8765"),
        ),
        examples=("landlane mcp", "landlane mcp --as ann", "landlane mcp --http --port 0"),
        details=(
            "The caller is the session of the client that started it, the one of --session, --as or the\n"
            "environment, or the subagent whose hook told of the call. Over HTTP every request shows the\n"
            "token of its session, as `landlane join NAME --json` answers it: Authorization: Bearer\n"
            "<id>:<secret>. Needs the extra: pip install 'landlane[mcp]'."
        ),
    ),
)
