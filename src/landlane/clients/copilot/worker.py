"""Copilot CLI as a worker: permissions of its role, start options, and its stream of JSON lines."""

from __future__ import annotations

from collections.abc import Sequence

from landlane.clients.model import AGENTS, EDIT, NETWORK, SHELL
from landlane.clients.worker_adapter import (
    Fields,
    OutputEvent,
    OutputKind,
    Permissions,
    RoleTools,
    StartOptions,
    WorkerAdapter,
    add_usage,
    describe_call,
    excluded_kinds,
    left_open,
    parse_line,
)
from landlane.protocol.worker.messages import Usage

# Its names for kinds of tools, by which they are denied.
_KINDS = {EDIT: "write", SHELL: "shell", NETWORK: "url"}


def permissions(role: RoleTools, denied: Sequence[str], is_sandboxed: bool) -> Permissions:
    """Return what Copilot CLI is started with in a role; its options know no paths."""
    del denied, is_sandboxed
    excluded = [kind for kind in excluded_kinds(role) if kind in _KINDS]
    words = [word for kind in excluded for word in ("--deny-tool", _KINDS[kind])]
    left = left_open(role, excluded)
    if AGENTS not in role.tools:
        left[AGENTS] = "no setting takes its subagents away: they are bound as it is"
    return Permissions(arguments=("--allow-all-tools", *words), closed=tuple(excluded), open=left)


def _arguments(options: StartOptions) -> list[str]:
    words = ["--output-format", "json", "--no-auto-update", "--no-ask-user", "--trust-folder"]
    words += options.model_words
    words += options.unless_given(["--allow-all-tools", "--allow-all", "--yolo"], ["--allow-all-tools"])
    return [*words, *options.extra]


def _read_output(line: str) -> list[OutputEvent]:
    message = parse_line(line)
    kind, data = message.text("type"), message.table("data")
    status = data.count("statusCode") or 0
    if kind == "assistant.message" and data.text("content") and not data.get("parentToolCallId"):
        return [OutputEvent(kind=OutputKind.TEXT, text=data.text("content"))]
    if kind == "tool.execution_start":
        text = describe_call(data.text("toolName"), data.table("arguments"))
        return [OutputEvent(kind=OutputKind.CALL, call=data.text("toolCallId"), text=text)]
    if kind == "tool.execution_complete":
        return [OutputEvent(kind=OutputKind.CALL_ENDED, call=data.text("toolCallId"))]
    if kind == "model.call_failure":
        text = f"the provider answered {status or 'nothing'}"
        return [OutputEvent(kind=OutputKind.RETRY, text=text, status=status)]
    if kind == "session.error":
        text, word = data.text("message"), data.text("errorType")
        return [OutputEvent(kind=OutputKind.ERROR, text=text, status=status, word=word)]
    if kind == "assistant.usage" and message.text("id"):
        # It also reports a cost, but in requests and not in money.
        return [OutputEvent(kind=OutputKind.USAGE, key=message.text("id"), usage=_usage(data))]
    models = data.tables("modelMetrics") if kind == "session.shutdown" else []
    used = add_usage(_usage(model.table("usage")) for model in models)
    return [OutputEvent(kind=OutputKind.USAGE, usage=used)] if models else []


def _usage(fields: Fields) -> Usage:
    return Usage(input_tokens=fields.count("inputTokens"), output_tokens=fields.count("outputTokens"))


ADAPTER = WorkerAdapter(
    name="copilot",
    arguments=_arguments,
    read_output=_read_output,
    permissions=permissions,
    sign_in="start `copilot` once and use /login, or set COPILOT_GITHUB_TOKEN",
    environment={"NO_COLOR": "1", "COPILOT_AUTO_UPDATE": "false"},
)
