"""Gemini CLI as a worker (used inside the worker process): start options, JSON lines and stderr."""

from __future__ import annotations

import re

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
    unless_given,
)
from landlane.protocol.worker.messages import Usage

# Of its retries only its stderr tells.
_RETRY = re.compile(r"Attempt \d+ failed(?: with status (\d+))?.*?[Rr]etrying")


def _words(wish: StartOptions) -> list[str]:
    words = ["--output-format", "stream-json"]
    words += ["--model", wish.model] if wish.model else []
    words += unless_given(wish.extra, ["--approval-mode", "--yolo", "-y"], ["--approval-mode", "yolo"])
    return [*words, *wish.extra]


def _read(line: str) -> list[OutputEvent]:
    found = read_object(line)
    kind = as_text(found.get("type"))
    call = as_text(found.get("tool_id"))
    if kind == "message" and found.get("role") == "assistant":
        return [OutputEvent(kind=TEXT, text=as_text(found.get("content")), is_more=bool(found.get("delta")))]
    if kind == "tool_use":
        shown = shown_call(as_text(found.get("tool_name")), found.get("parameters"))
        return [OutputEvent(kind=CALL, call=call, text=shown)]
    if kind == "tool_result":
        return [OutputEvent(kind=CALL_ENDED, call=call)]
    if kind == "error" and found.get("severity") == "error":
        return [OutputEvent(kind=ERROR, text=as_text(found.get("message")))]
    if kind != "result":
        return []
    stats = as_object(found.get("stats"))
    spent = Usage(
        input_tokens=count(stats.get("input_tokens")), output_tokens=count(stats.get("output_tokens"))
    )
    events = [OutputEvent(kind=SPENT, usage=spent)] if stats else []
    if found.get("status") == "error":
        error = as_object(found.get("error"))
        word = as_text(error.get("type")).replace("unknown", "")
        events.append(OutputEvent(kind=ERROR, text=as_text(error.get("message")), word=word))
    return events


def _read_trouble(line: str) -> list[OutputEvent]:
    found = _RETRY.match(line)
    if not found:
        return []
    return [OutputEvent(kind=RETRY, text=line[:200], status=int(found[1] or 0))]


ADAPTER = WorkerAdapter(
    name="gemini",
    title="Gemini CLI",
    words=_words,
    read=_read,
    read_trouble=_read_trouble,
    facts=BY_HOOKS,
    sign_in="start `gemini` once and sign in, or set GEMINI_API_KEY",
    environment={"NO_COLOR": "1", "GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_CLI_NO_RELAUNCH": "true"},
)
