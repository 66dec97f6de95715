"""The four wire formats in which coding clients talk with a model: what was asked, and how to answer it.

A turn is a list of parts: `{"text": …}`, `{"tool": name, "input": {…}}`, or `{"tool": name, "raw": text}` for
a tool that takes free text. Each `answer_…` gives either one object, or the events of a stream.
"""

from __future__ import annotations

import itertools
import json
import time
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Json = dict[str, Any]
Turn = list[Json]
Event = tuple[str, Json | str]  # its name, where the format has names, and its data
Answer = Json | list[Event]

# What the model said itself, among the items of an OpenAI Responses request.
_OWN_ITEMS = frozenset(
    {"function_call", "custom_tool_call", "local_shell_call", "reasoning", "tool_search_call"}
)

_numbers = itertools.count(1)


def strings(item: Any) -> Iterator[str]:
    """Every string inside a JSON value, in order."""
    if isinstance(item, str):
        yield item
    elif isinstance(item, dict):
        for one in cast("Json", item).values():
            yield from strings(one)
    elif isinstance(item, list):
        for one in cast("list[Any]", item):
            yield from strings(one)


def conversation(body: Json) -> list[tuple[bool, Any]]:
    """What a request holds of the conversation: for each item, whether the model said it, and the item."""
    if "contents" in body:  # Gemini
        return [(item.get("role") == "model", item) for item in body["contents"]]
    if "input" in body:  # OpenAI Responses
        if isinstance(body["input"], str):
            return [(False, body["input"])]
        return [
            (item.get("role") == "assistant" or item.get("type") in _OWN_ITEMS, item)
            for item in body["input"]
        ]
    return [(item.get("role") == "assistant", item) for item in body.get("messages", [])]


def has_tools(body: Json) -> bool:
    """Whether the model may call tools. Without, it is asked aside: for a title, or a summary."""
    added = (cast("Json", item) for _, item in conversation(body) if isinstance(item, dict))
    return bool(body.get("tools")) or any(item.get("type") == "additional_tools" for item in added)


def answerer(path: str) -> Callable[[Json, Turn], Answer] | None:
    """Who answers a request to this path of the API; None where no model is asked."""
    if path.endswith("/messages"):
        return answer_anthropic
    if path.endswith("/responses"):
        return answer_responses
    if path.endswith("/chat/completions"):
        return answer_chat
    if path.endswith(":streamGenerateContent"):
        return lambda body, turn: [("", answer_gemini(body, turn))]
    if path.endswith(":generateContent"):
        return answer_gemini
    return None


def answer_anthropic(body: Json, turn: Turn) -> Answer:
    """Anthropic Messages."""
    blocks: list[Json] = [
        {
            "type": "tool_use",
            "id": f"toolu_{next(_numbers):08d}",
            "name": part["tool"],
            "input": part["input"],
        }
        if "tool" in part
        else {"type": "text", "text": part["text"]}
        for part in turn
    ]
    reason = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    usage = {
        "input_tokens": 10,
        "output_tokens": 5,
        "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 0,
    }
    message: Json = {
        "id": f"msg_{next(_numbers):08d}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "scripted"),
        "content": blocks,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": usage,
    }
    if not body.get("stream"):
        return message
    events: list[tuple[str, Json]] = [
        ("message_start", {"message": {**message, "content": [], "stop_reason": None}})
    ]
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            begun: Json = {"type": "text", "text": ""}
            delta: Json = {"type": "text_delta", "text": block["text"]}
        else:
            begun = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events += [
            ("content_block_start", {"index": index, "content_block": begun}),
            ("content_block_delta", {"index": index, "delta": delta}),
            ("content_block_stop", {"index": index}),
        ]
    ended = {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 5}}
    events += [("message_delta", ended), ("message_stop", {})]
    return [(name, {"type": name, **data}) for name, data in events]


def answer_responses(body: Json, turn: Turn) -> Answer:
    """OpenAI Responses."""
    items = [_responses_item(part) for part in turn]
    response: Json = {
        "id": f"resp_{next(_numbers)}",
        "object": "response",
        "created_at": int(time.time()),
        "status": "completed",
        "model": body.get("model", "scripted"),
        "output": items,
        "usage": {
            "input_tokens": 10,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 15,
        },
    }
    if not body.get("stream"):
        return response
    begun: Json = {**response, "status": "in_progress", "output": []}
    events: list[tuple[str, Json]] = [("response.created", {"response": begun})]
    for index, item in enumerate(items):
        started = {"output_index": index, "item": {**item, "status": "in_progress"}}
        events.append(("response.output_item.added", started))
        events += _responses_deltas(index, item)
        events.append(("response.output_item.done", {"output_index": index, "item": item}))
    events.append(("response.completed", {"response": response}))
    return [(name, {"type": name, "sequence_number": i, **data}) for i, (name, data) in enumerate(events)]


def _responses_item(part: Json) -> Json:
    number = next(_numbers)
    if "raw" in part:
        return {
            "type": "custom_tool_call",
            "id": f"ctc_{number}",
            "call_id": f"call_{number}",
            "name": part["tool"],
            "input": part["raw"],
            "status": "completed",
        }
    if "tool" in part:
        call: Json = {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": f"call_{number}",
            "name": part["tool"],
            "arguments": json.dumps(part["input"]),
            "status": "completed",
        }
        return {**call, "namespace": part["namespace"]} if "namespace" in part else call
    return {
        "type": "message",
        "id": f"msg_{number}",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": part["text"], "annotations": []}],
    }


def _responses_deltas(index: int, item: Json) -> list[tuple[str, Json]]:
    about: Json = {"item_id": item["id"], "output_index": index}
    if item["type"] == "function_call":
        return [
            ("response.function_call_arguments.delta", {**about, "delta": item["arguments"]}),
            ("response.function_call_arguments.done", {**about, "arguments": item["arguments"]}),
        ]
    if item["type"] != "message":
        return []
    about["content_index"] = 0
    text: str = item["content"][0]["text"]
    empty: Json = {"type": "output_text", "text": "", "annotations": []}
    return [
        ("response.content_part.added", {**about, "part": empty}),
        ("response.output_text.delta", {**about, "delta": text}),
        ("response.output_text.done", {**about, "text": text}),
        ("response.content_part.done", {**about, "part": item["content"][0]}),
    ]


def answer_chat(body: Json, turn: Turn) -> Answer:
    """OpenAI Chat Completions."""
    calls: list[Json] = [
        {
            "index": index,
            "id": f"call_{next(_numbers)}",
            "type": "function",
            "function": {"name": part["tool"], "arguments": json.dumps(part["input"])},
        }
        for index, part in enumerate(part for part in turn if "tool" in part)
    ]
    said = "".join(part["text"] for part in turn if "text" in part) or None
    message: Json = {"role": "assistant", "content": said, **({"tool_calls": calls} if calls else {})}
    reason = "tool_calls" if calls else "stop"
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    head: Json = {
        "id": f"chatcmpl-{next(_numbers)}",
        "created": int(time.time()),
        "model": body.get("model", "scripted"),
    }
    if not body.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return {**head, "object": "chat.completion", "usage": usage, "choices": [choice]}
    head["object"] = "chat.completion.chunk"
    answer = {"index": 0, "delta": message, "finish_reason": None}
    ended: Json = {"index": 0, "delta": {}, "finish_reason": reason}
    return [
        ("", {**head, "choices": [answer]}),
        ("", {**head, "choices": [ended], "usage": usage}),
        ("", "[DONE]"),
    ]


def answer_gemini(_: Json, turn: Turn) -> Json:
    """Gemini, whole or as the only event of a stream."""
    parts: list[Json] = [
        {"functionCall": {"name": part["tool"], "args": part["input"]}}
        if "tool" in part
        else {"text": part["text"]}
        for part in turn
    ]
    return {
        "candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": parts}}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        "modelVersion": "scripted",
        "responseId": f"response-{next(_numbers)}",
    }
