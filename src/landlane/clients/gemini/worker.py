"""Gemini CLI as a worker: permissions of its role, start options, JSON lines and stderr."""

from __future__ import annotations

import re
from collections.abc import Sequence

from landlane.clients.gemini.hook import TOOLS
from landlane.clients.worker_adapter import (
    OutputEvent,
    OutputKind,
    Permissions,
    RoleTools,
    StartOptions,
    WorkerAdapter,
    describe_call,
    exclude_by_settings,
    parse_line,
)
from landlane.protocol.worker.messages import Usage

# It reports its retries on stderr only.
_RETRY = re.compile(r"Attempt \d+ failed(?: with status (\d+))?.*?[Rr]etrying")


def permissions(role: RoleTools, denied: Sequence[str], is_sandboxed: bool) -> Permissions:
    """Return what Gemini CLI is started with in a role; its settings know no paths."""
    del denied
    settings_file = ".gemini/settings.json"
    return exclude_by_settings(role, TOOLS, is_sandboxed, settings_file=settings_file, approval="auto_edit")


def _arguments(options: StartOptions) -> list[str]:
    mode = options.unless_given(["--approval-mode", "--yolo", "-y"], ["--approval-mode", "yolo"])
    return ["--output-format", "stream-json", *options.model_words, *mode, *options.extra]


def _read_output(line: str) -> list[OutputEvent]:
    message = parse_line(line)
    kind, call = message.text("type"), message.text("tool_id")
    if kind == "message" and message.get("role") == "assistant":
        is_more = bool(message.get("delta"))
        return [OutputEvent(kind=OutputKind.TEXT, text=message.text("content"), is_more=is_more)]
    if kind == "tool_use":
        text = describe_call(message.text("tool_name"), message.table("parameters"))
        return [OutputEvent(kind=OutputKind.CALL, call=call, text=text)]
    if kind == "tool_result":
        return [OutputEvent(kind=OutputKind.CALL_ENDED, call=call)]
    if kind == "error" and message.get("severity") == "error":
        return [OutputEvent(kind=OutputKind.ERROR, text=message.text("message"))]
    if kind != "result":
        return []
    stats, error = message.table("stats"), message.table("error")
    used = Usage(input_tokens=stats.count("input_tokens"), output_tokens=stats.count("output_tokens"))
    events = [OutputEvent(kind=OutputKind.USAGE, usage=used)] if stats else []
    if message.get("status") == "error":
        word = error.text("type").replace("unknown", "")
        events.append(OutputEvent(kind=OutputKind.ERROR, text=error.text("message"), word=word))
    return events


def _read_errors(line: str) -> list[OutputEvent]:
    retry = _RETRY.match(line)
    return [OutputEvent(kind=OutputKind.RETRY, text=line[:200], status=int(retry[1] or 0))] if retry else []


ADAPTER = WorkerAdapter(
    name="gemini",
    arguments=_arguments,
    read_output=_read_output,
    read_errors=_read_errors,
    permissions=permissions,
    sign_in="start `gemini` once and sign in, or set GEMINI_API_KEY",
    environment={"NO_COLOR": "1", "GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_CLI_NO_RELAUNCH": "true"},
)
