"""Claude Code as a worker: permissions of its role, start options, and its stream of JSON lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from landlane.clients.claude.tools import TOOLS
from landlane.clients.permissions import (
    EDIT,
    ONLY_DENIED,
    PATHS,
    Permissions,
    RoleTools,
    excluded_tools,
    left_open,
)
from landlane.clients.worker_adapter import StartOptions, WorkerAdapter
from landlane.clients.worker_stream_json import read_messages

# Without a person, a tool that is not allowed is refused. What the role denies stays denied.
_ALLOWED = (*TOOLS.guarded, *TOOLS.reads, "Glob", "Grep", *TOOLS.network, *TOOLS.agents, "mcp__landlane")
_MODES = ("--permission-mode", "--dangerously-skip-permissions")


def permissions(role: RoleTools, denied: Sequence[str], is_sandboxed: bool) -> Permissions:
    """Return what Claude Code is started with in a role."""
    excluded = excluded_tools(role, TOOLS)
    names = [name for group in excluded.values() for name in group]
    # Its rules spell a path from the root of the folder it works in with `./`.
    paths = [f"Edit({path if path.startswith('**') else f'./{path}'})" for path in denied]
    paths = [] if EDIT in excluded else paths
    settings: dict[str, Any] = {"permissions": {"deny": [*names, *paths]}}
    if is_sandboxed:
        settings["sandbox"] = {"enabled": False}
    words = ["--settings", json.dumps(settings, separators=(",", ":"))]
    if names:
        words += ["--disallowedTools", ",".join(names)]
    closed = (*excluded, *([PATHS] if paths else []))
    left = left_open(role, tuple(excluded), ONLY_DENIED)
    return Permissions(arguments=tuple(words), settings=settings, closed=closed, open=left)


def _arguments(options: StartOptions) -> list[str]:
    # Partial messages show that it is alive while the model writes a long answer.
    words = ["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"]
    words += options.model_words
    if options.budget_usd:
        budget = ["--max-budget-usd", f"{options.budget_usd:.4f}"]
        words += options.unless_given(budget[:1], budget)
    words += options.unless_given(_MODES, ["--permission-mode", "acceptEdits"])
    allowed = ["--allowedTools", ",".join(_ALLOWED)]
    words += options.unless_given(["--allowedTools", "--allowed-tools", *_MODES[1:]], allowed)
    return [*words, *options.extra]


ADAPTER = WorkerAdapter(
    name="claude",
    arguments=_arguments,
    read_output=read_messages,
    permissions=permissions,
    sign_in="start `claude` once and sign in, or set ANTHROPIC_API_KEY",
    environment={
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "NO_COLOR": "1",
    },
)
