"""Claude Code as a worker: permissions of its role, start options, and its stream of JSON lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from landlane.clients.claude.hook import TOOLS
from landlane.clients.model import EDIT
from landlane.clients.worker_adapter import (
    ONLY_DENIED,
    PATHS,
    Fields,
    OutputEvent,
    OutputKind,
    Permissions,
    RoleTools,
    StartOptions,
    WorkerAdapter,
    add_usage,
    describe_call,
    excluded_tools,
    left_open,
    parse_line,
)
from landlane.protocol.worker.messages import Usage

# Without a person, a tool that is not allowed is refused. What the role denies stays denied.
_ALLOWED = (*TOOLS.guarded, *TOOLS.reads, "Glob", "Grep", *TOOLS.network, *TOOLS.agents, "mcp__landlane")
_REFUSAL = "refusal"
_READ_TOKENS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
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


def read_messages(line: str) -> list[OutputEvent]:
    """Return the events in a line of the JSON stream, which Qwen Code shares."""
    message = parse_line(line)
    reader = _READERS.get(message.text("type"))
    return reader(message) if reader else []


def _read_assistant(message: Fields) -> list[OutputEvent]:
    answer = message.table("message")
    parts = answer.tables("content")
    text = "".join(part.text("text") for part in parts if part.get("type") == "text")
    if message.get("is_api_error_message"):
        status = message.count("api_error_status") or 0
        return [OutputEvent(kind=OutputKind.ERROR, text=text, status=status, word=message.text("error"))]
    events: list[OutputEvent] = []
    if text and not message.get("parent_tool_use_id"):  # what a subagent writes is for its parent
        events.append(OutputEvent(kind=OutputKind.TEXT, text=text))
    for part in parts:
        if part.get("type") == "tool_use":
            call = describe_call(part.text("name"), part.table("input"))
            events.append(OutputEvent(kind=OutputKind.CALL, call=part.text("id"), text=call))
    usage, key = answer.table("usage"), answer.text("id")
    # Each part of one answer reports the same usage: the id of the answer counts it once.
    used = Usage(input_tokens=usage.count(*_READ_TOKENS), output_tokens=usage.count("output_tokens"))
    return [*events, OutputEvent(kind=OutputKind.USAGE, key=key, usage=used)] if key and usage else events


def _read_user(message: Fields) -> list[OutputEvent]:
    return [
        OutputEvent(kind=OutputKind.CALL_ENDED, call=part.text("tool_use_id"))
        for part in message.table("message").tables("content")
        if part.get("type") == "tool_result"
    ]


def _read_system(message: Fields) -> list[OutputEvent]:
    if message.get("subtype") != "api_retry":
        return []
    status, word = message.count("error_status") or 0, message.text("error")
    text = f"the provider answered {status or word or 'nothing'}; trying again"
    return [OutputEvent(kind=OutputKind.RETRY, text=text, status=status, word=word)]


def _read_result(message: Fields) -> list[OutputEvent]:
    events = [OutputEvent(kind=OutputKind.USAGE, usage=_total_usage(message))]
    subtype, is_refusal = message.text("subtype"), message.get("stop_reason") == _REFUSAL
    if message.get("is_error") or subtype.startswith("error") or is_refusal:
        errors = "; ".join(message.texts("errors"))
        text = message.text("result") or message.table("error").text("message") or errors or subtype
        status = message.count("api_error_status") or 0
        word = _REFUSAL if is_refusal else subtype.removeprefix("success")
        events.append(OutputEvent(kind=OutputKind.ERROR, text=text, status=status, word=word))
    return events


def _total_usage(message: Fields) -> Usage:
    """Return the usage of the run; the table by model includes subagents and earlier results."""
    models, usage = message.tables("modelUsage"), message.table("usage")
    names = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    parts = [Usage(input_tokens=one.count(*names), output_tokens=one.count("outputTokens")) for one in models]
    if not parts:
        parts = [Usage(input_tokens=usage.count(*_READ_TOKENS), output_tokens=usage.count("output_tokens"))]
    return add_usage([*parts, Usage(cost_usd=message.amount("total_cost_usd"))])


_READERS = {
    "assistant": _read_assistant,
    "user": _read_user,
    "system": _read_system,
    "result": _read_result,
}


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
