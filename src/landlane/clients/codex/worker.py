"""Codex as a worker (used inside the worker process): `codex exec` and its stream of JSON lines."""

from __future__ import annotations

from landlane.clients.worker_adapter import (
    BY_HOOKS,
    CALL,
    CALL_ENDED,
    ERROR,
    RETRY,
    SAID,
    SPENT,
    TEXT,
    OutputEvent,
    StartOptions,
    WorkerAdapter,
    as_list,
    as_object,
    as_text,
    count,
    read_object,
    shown_call,
    unless_given,
)
from landlane.protocol.worker.messages import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SANDBOXES = (
    *("--sandbox", "-s", "--full-auto", "--yolo", "--approve-for-me"),
    "--dangerously-bypass-approvals-and-sandbox",
)
_RETRIES = ("Reconnecting", "stream disconnected", "retrying")


def _words(wish: StartOptions) -> list[str]:
    words = ["exec", "--json"]
    words += ["--model", wish.model] if wish.model else []
    # The options of its role switch Codex's own sandbox off where it runs in ours.
    words += unless_given(wish.extra, _SANDBOXES, ["--sandbox", "workspace-write"])
    words += ["-c", 'approval_policy="never"', "--skip-git-repo-check"]
    return [*words, *wish.extra, "-"]


def _read(line: str) -> list[OutputEvent]:
    found = read_object(line)
    kind = as_text(found.get("type"))
    if kind in ("item.started", "item.completed"):
        return _read_item(as_object(found.get("item")), is_over=kind == "item.completed")
    if kind == "turn.completed":
        usage = as_object(found.get("usage"))
        spent = Usage(
            input_tokens=count(usage.get("input_tokens")), output_tokens=count(usage.get("output_tokens"))
        )
        return [OutputEvent(kind=SPENT, usage=spent)]
    if kind in ("error", "turn.failed"):
        text = as_text(found.get("message")) or as_text(as_object(found.get("error")).get("message"))
        is_retry = kind == "error" and any(word in text for word in _RETRIES)
        return [OutputEvent(kind=RETRY if is_retry else ERROR, text=text)]
    return []


def _read_item(item: dict[str, Any], *, is_over: bool) -> list[OutputEvent]:
    kind, call = as_text(item.get("type")), as_text(item.get("id"))
    if kind == "agent_message":
        return [OutputEvent(kind=TEXT, text=as_text(item.get("text")))] if is_over else []
    if kind in ("error", "reasoning"):  # an error among the items is a warning: the turn goes on
        text = as_text(item.get("message")) or as_text(item.get("text"))
        return [OutputEvent(kind=SAID, text=text)] if is_over and text else []
    if is_over:
        return [OutputEvent(kind=CALL_ENDED, call=call)]
    paths = " ".join(as_text(as_object(one).get("path")) for one in as_list(item.get("changes")))
    about = {"path": paths} if paths else item
    return [OutputEvent(kind=CALL, call=call, text=shown_call(as_text(item.get("tool")) or kind, about))]


ADAPTER = WorkerAdapter(
    name="codex",
    title="Codex",
    words=_words,
    read=_read,
    facts=BY_HOOKS,
    sign_in="run `codex login`, or set CODEX_API_KEY",
    environment={"NO_COLOR": "1"},
)
