"""Parse the JSON stream that Claude Code and Qwen Code share."""

from __future__ import annotations

from landlane.clients.worker_adapter import (
    CALL,
    CALL_ENDED,
    ERROR,
    RETRY,
    SPENT,
    TEXT,
    OutputEvent,
    amount,
    as_list,
    as_object,
    as_text,
    count,
    read_object,
    shown_call,
    total,
)
from landlane.protocol.worker.messages import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_REFUSAL = "refusal"


def read_messages(line: str) -> list[OutputEvent]:
    """What a line tells."""
    found = read_object(line)
    reader = _READERS.get(as_text(found.get("type")))
    return reader(found) if reader else []


def _assistant(found: dict[str, Any]) -> list[OutputEvent]:
    message = as_object(found.get("message"))
    parts = [as_object(part) for part in as_list(message.get("content"))]
    text = "".join(as_text(part.get("text")) for part in parts if part.get("type") == "text")
    if found.get("is_api_error_message"):
        status, word = count(found.get("api_error_status")) or 0, as_text(found.get("error"))
        return [OutputEvent(kind=ERROR, text=text, status=status, word=word)]
    events: list[OutputEvent] = []
    if text and not found.get("parent_tool_use_id"):  # what a subagent says is for its parent
        events.append(OutputEvent(kind=TEXT, text=text))
    for part in parts:
        if part.get("type") == "tool_use":
            shown = shown_call(as_text(part.get("name")), part.get("input"))
            events.append(OutputEvent(kind=CALL, call=as_text(part.get("id")), text=shown))
    usage = as_object(message.get("usage"))
    # Of an answer in several parts each tells the same: it is known by its id, and counted once.
    spent = Usage(input_tokens=_read_tokens(usage), output_tokens=count(usage.get("output_tokens")))
    key = as_text(message.get("id"))
    return [*events, OutputEvent(kind=SPENT, key=key, usage=spent)] if key and usage else events


def _user(found: dict[str, Any]) -> list[OutputEvent]:
    parts = [as_object(part) for part in as_list(as_object(found.get("message")).get("content"))]
    ended = [as_text(part.get("tool_use_id")) for part in parts if part.get("type") == "tool_result"]
    return [OutputEvent(kind=CALL_ENDED, call=call) for call in ended]


def _system(found: dict[str, Any]) -> list[OutputEvent]:
    if found.get("subtype") != "api_retry":
        return []
    status, word = count(found.get("error_status")) or 0, as_text(found.get("error"))
    text = f"the provider answered {status or word or 'nothing'}; trying again"
    return [OutputEvent(kind=RETRY, text=text, status=status, word=word)]


def _result(found: dict[str, Any]) -> list[OutputEvent]:
    events = [OutputEvent(kind=SPENT, usage=_whole(found))]
    reason = as_text(found.get("stop_reason"))
    if found.get("is_error") or as_text(found.get("subtype")).startswith("error") or reason == _REFUSAL:
        told = as_object(found.get("error")).get("message")
        errors = "; ".join(as_text(one) for one in as_list(found.get("errors")))
        text = as_text(found.get("result")) or as_text(told) or errors or as_text(found.get("subtype"))
        word = as_text(found.get("subtype")).removeprefix("success")
        status = count(found.get("api_error_status")) or 0
        word = _REFUSAL if reason == _REFUSAL else word
        events.append(OutputEvent(kind=ERROR, text=text, status=status, word=word))
    return events


def _whole(found: dict[str, Any]) -> Usage:
    """What all of it has used; the table by model counts subagents, and earlier results."""
    models = [as_object(one) for one in as_object(found.get("modelUsage")).values()]
    usage = as_object(found.get("usage"))
    read: int | None = _read_tokens(usage)
    written: int | None = count(usage.get("output_tokens"))
    if models:
        names = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
        read = total(*(one.get(name) for one in models for name in names))
        written = total(*(one.get("outputTokens") for one in models))
    return Usage(input_tokens=read, output_tokens=written, cost_usd=amount(found.get("total_cost_usd")))


def _read_tokens(usage: dict[str, Any]) -> int | None:
    """Tokens read, those from the provider's cache among them."""
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return total(*(usage.get(name) for name in names))


_READERS = {"assistant": _assistant, "user": _user, "system": _system, "result": _result}
