"""Copilot CLI as a worker (used inside the worker process): start options and its stream of JSON lines."""

from __future__ import annotations

from landlane.clients.worker_adapter import (
    BY_HOOKS,
    CALL,
    CALL_ENDED,
    ERROR,
    RETRY,
    SPENT,
    TEXT,
    OutputEvent,
    StartOptions,
    WorkerAdapter,
    as_object,
    as_text,
    count,
    read_object,
    shown_call,
    total,
    unless_given,
)
from landlane.protocol.worker.messages import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _words(wish: StartOptions) -> list[str]:
    words = ["--output-format", "json", "--no-auto-update", "--no-ask-user", "--trust-folder"]
    words += ["--model", wish.model] if wish.model else []
    words += unless_given(wish.extra, ["--allow-all-tools", "--allow-all", "--yolo"], ["--allow-all-tools"])
    return [*words, *wish.extra]


def _read(line: str) -> list[OutputEvent]:
    found = read_object(line)
    data = as_object(found.get("data"))
    reader = _READERS.get(as_text(found.get("type")))
    return reader(data, as_text(found.get("id"))) if reader else []


def _message(data: dict[str, Any], _: str) -> list[OutputEvent]:
    text = as_text(data.get("content"))
    return [OutputEvent(kind=TEXT, text=text)] if text and not data.get("parentToolCallId") else []


def _tool_begun(data: dict[str, Any], _: str) -> list[OutputEvent]:
    shown = shown_call(as_text(data.get("toolName")), data.get("arguments"))
    return [OutputEvent(kind=CALL, call=as_text(data.get("toolCallId")), text=shown)]


def _tool_ended(data: dict[str, Any], _: str) -> list[OutputEvent]:
    return [OutputEvent(kind=CALL_ENDED, call=as_text(data.get("toolCallId")))]


def _call_failed(data: dict[str, Any], _: str) -> list[OutputEvent]:
    status = count(data.get("statusCode")) or 0
    return [OutputEvent(kind=RETRY, text=f"the provider answered {status or 'nothing'}", status=status)]


def _error(data: dict[str, Any], _: str) -> list[OutputEvent]:
    status = count(data.get("statusCode")) or 0
    text, word = as_text(data.get("message")), as_text(data.get("errorType"))
    return [OutputEvent(kind=ERROR, text=text, status=status, word=word)]


def _usage(data: dict[str, Any], key: str) -> list[OutputEvent]:
    """One answer. It tells a cost too, but in requests and not in money."""
    return [OutputEvent(kind=SPENT, key=key, usage=_tokens(data))] if key else []


def _shutdown(data: dict[str, Any], _: str) -> list[OutputEvent]:
    models = [as_object(as_object(one).get("usage")) for one in as_object(data.get("modelMetrics")).values()]
    if not models:
        return []
    told = [_tokens(one) for one in models]
    spent = Usage(
        input_tokens=total(*(one.input_tokens for one in told)),
        output_tokens=total(*(one.output_tokens for one in told)),
    )
    return [OutputEvent(kind=SPENT, usage=spent)]


def _tokens(found: dict[str, Any]) -> Usage:
    return Usage(input_tokens=count(found.get("inputTokens")), output_tokens=count(found.get("outputTokens")))


_READERS = {
    "assistant.message": _message,
    "tool.execution_start": _tool_begun,
    "tool.execution_complete": _tool_ended,
    "model.call_failure": _call_failed,
    "session.error": _error,
    "assistant.usage": _usage,
    "session.shutdown": _shutdown,
}

ADAPTER = WorkerAdapter(
    name="copilot",
    title="Copilot CLI",
    words=_words,
    read=_read,
    facts=BY_HOOKS,
    sign_in="start `copilot` once and use /login, or set COPILOT_GITHUB_TOKEN",
    environment={"NO_COLOR": "1", "COPILOT_AUTO_UPDATE": "false"},
)
