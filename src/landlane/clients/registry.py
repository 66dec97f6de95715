"""All coding clients by name, and where each one's modules are."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType


NAMES = ("claude", "codex", "gemini", "qwen", "copilot", "opencode", "cursor")


def setup_of(name: str) -> ModuleType:
    """The module that knows how a client is set up.

    It has `TITLE`, `is_used(place)`, `version(place, run)`, `wanted(command)`, `hook_files(place)`,
    `troubles(place, run)` and `canary(kind, cwd, path, session, agent)`; `run` starts a program and tells
    what it wrote. Where the client reads MCP servers from the checkout, `mcp_wanted(words)` tells what
    enters ours.
    """
    return __import__(f"landlane.clients.{name}.setup", fromlist=["TITLE"])


def is_denied(name: str, word: str, exit_code: int, stdout: str) -> bool:
    """Whether an answer of our hook makes this client refuse."""
    client = __import__(f"landlane.clients.{name}.hook", fromlist=["is_denial"])
    return bool(client.is_denial(word, exit_code, stdout))
