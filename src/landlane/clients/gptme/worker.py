"""gptme as a worker (used inside the worker process): start options, JSON lines and stderr."""

from __future__ import annotations

import re

from landlane.clients.worker_adapter import (
    BY_NOTES,
    CALL_ENDED,
    ERROR,
    RETRY,
    SPENT,
    TEXT,
    OutputEvent,
    StartOptions,
    WorkerAdapter,
    amount,
    as_object,
    as_text,
    count,
    read_object,
    total,
)
from landlane.protocol.worker.messages import Usage

_RETRY = re.compile(r".*transient error(?: \(status (\d+)\))?, retrying in")
_ERROR = re.compile(r"\W*ERROR\s+(.*)")


def _words(wish: StartOptions) -> list[str]:
    words = ["--non-interactive", "--output-format", "json", "--no-stream"]
    words += ["--model", wish.model] if wish.model else []
    return [*words, *wish.extra]


def _read(line: str) -> list[OutputEvent]:
    found = read_object(line)
    if found.get("type") != "message":
        return []
    role, text = as_text(found.get("role")), as_text(found.get("content"))
    if role == "system":  # what a tool answered
        return [OutputEvent(kind=CALL_ENDED, text=text)]
    if role != "assistant":
        return []
    told = as_object(found.get("metadata"))
    usage = as_object(told.get("usage"))
    names = ("input_tokens", "cache_read_tokens", "cache_creation_tokens")
    spent = Usage(
        input_tokens=total(*(usage.get(name) for name in names)),
        output_tokens=count(usage.get("output_tokens")),
        cost_usd=amount(told.get("cost")),
    )
    events = [OutputEvent(kind=TEXT, text=text)]
    key = as_text(found.get("timestamp"))
    return [*events, OutputEvent(kind=SPENT, key=key, usage=spent)] if told and key else events


def _read_trouble(line: str) -> list[OutputEvent]:
    found = _RETRY.match(line)
    if found:
        return [OutputEvent(kind=RETRY, text=line.strip(), status=int(found[1] or 0))]
    found = _ERROR.match(line)
    return [OutputEvent(kind=ERROR, text=found[1])] if found else []


ADAPTER = WorkerAdapter(
    name="gptme",
    title="gptme",
    words=_words,
    read=_read,
    read_trouble=_read_trouble,
    facts=BY_NOTES,
    sign_in="set the key of its provider, such as OPENAI_API_KEY or ANTHROPIC_API_KEY",
    environment={"NO_COLOR": "1", "COLUMNS": "400", "PYTHONUNBUFFERED": "1"},
    tells_calls=False,
)
