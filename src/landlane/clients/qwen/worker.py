"""Qwen Code as a worker: Gemini's words for a run without a person, and Claude's stream of JSON lines."""

from __future__ import annotations

from landlane.clients.worker_adapter import BY_HOOKS, StartOptions, WorkerAdapter, unless_given
from landlane.clients.worker_stream_json import read_messages


def _words(wish: StartOptions) -> list[str]:
    words = ["--output-format", "stream-json", "--include-partial-messages"]
    words += ["--model", wish.model] if wish.model else []
    words += unless_given(wish.extra, ["--approval-mode", "--yolo", "-y"], ["--approval-mode", "yolo"])
    return [*words, *wish.extra]


ADAPTER = WorkerAdapter(
    name="qwen",
    title="Qwen Code",
    words=_words,
    read=read_messages,
    facts=BY_HOOKS,
    sign_in="start `qwen` once and sign in, or set OPENAI_API_KEY",
    environment={"NO_COLOR": "1"},
)
