"""opencode as a worker (used inside the worker process): `opencode run` and its stream of JSON lines."""

from __future__ import annotations

from landlane.clients.worker_adapter import (
    BY_HOOKS,
    CALL_ENDED,
    ERROR,
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
    shown_call,
    total,
)
from landlane.protocol.worker.messages import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _words(wish: StartOptions) -> list[str]:
    words = ["run", "--format", "json"]
    words += ["--model", wish.model] if wish.model else []
    return [*words, *wish.extra]


def _read(line: str) -> list[OutputEvent]:
    found = read_object(line)
    kind, part = as_text(found.get("type")), as_object(found.get("part"))
    if kind == "text":
        return [OutputEvent(kind=TEXT, text=as_text(part.get("text")))]
    if kind == "tool_use":  # told when it is through
        state = as_object(part.get("state"))
        shown = shown_call(as_text(part.get("tool")), state.get("input"))
        return [OutputEvent(kind=CALL_ENDED, call=as_text(part.get("callID")), text=shown)]
    if kind == "step_finish":
        return [OutputEvent(kind=SPENT, key=as_text(part.get("id")), usage=_spent(part))]
    if kind == "error":
        error = as_object(found.get("error"))
        data = as_object(error.get("data"))
        text = as_text(data.get("message")) or as_text(error.get("message"))
        wait = as_text(as_object(data.get("responseHeaders")).get("retry-after"))
        text = f"{text} (retry-after: {wait})" if wait else text
        return [
            OutputEvent(
                kind=ERROR,
                text=text,
                status=count(data.get("statusCode")) or 0,
                word=as_text(error.get("name")),
            )
        ]
    return []


def _spent(part: dict[str, Any]) -> Usage:
    tokens = as_object(part.get("tokens"))
    cache = as_object(tokens.get("cache"))
    return Usage(
        input_tokens=total(tokens.get("input"), cache.get("read"), cache.get("write")),
        output_tokens=total(tokens.get("output"), tokens.get("reasoning")),
        cost_usd=amount(part.get("cost")) or None,  # it says 0 of a model whose price it does not know
    )


ADAPTER = WorkerAdapter(
    name="opencode",
    title="opencode",
    words=_words,
    read=_read,
    facts=BY_HOOKS,
    sign_in="run `opencode auth login`",
    environment={"NO_COLOR": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"},
    tells_calls=False,
)
