"""gptme as a worker: start options, JSON lines and stderr."""

from __future__ import annotations

import re

from landlane.clients.worker_adapter import OutputEvent, OutputKind, StartOptions, WorkerAdapter, parse_line
from landlane.protocol.worker.messages import Usage

_RETRY = re.compile(r".*transient error(?: \(status (\d+)\))?, retrying in")
_ERROR = re.compile(r"\W*ERROR\s+(.*)")


def _arguments(options: StartOptions) -> list[str]:
    words = ["--non-interactive", "--output-format", "json", "--no-stream"]
    return [*words, *options.model_words, *options.extra]


def _read_output(line: str) -> list[OutputEvent]:
    message = parse_line(line)
    if message.get("type") != "message":
        return []
    role, text = message.text("role"), message.text("content")
    if role == "system":  # the result of a tool
        return [OutputEvent(kind=OutputKind.CALL_ENDED, text=text)]
    if role != "assistant":
        return []
    metadata, key = message.table("metadata"), message.text("timestamp")
    usage = metadata.table("usage")
    used = Usage(
        input_tokens=usage.count("input_tokens", "cache_read_tokens", "cache_creation_tokens"),
        output_tokens=usage.count("output_tokens"),
        cost_usd=metadata.amount("cost"),
    )
    events = [OutputEvent(kind=OutputKind.TEXT, text=text)]
    return [*events, OutputEvent(kind=OutputKind.USAGE, key=key, usage=used)] if metadata and key else events


def _read_errors(line: str) -> list[OutputEvent]:
    if retry := _RETRY.match(line):
        return [OutputEvent(kind=OutputKind.RETRY, text=line.strip(), status=int(retry[1] or 0))]
    error = _ERROR.match(line)
    return [OutputEvent(kind=OutputKind.ERROR, text=error[1])] if error else []


ADAPTER = WorkerAdapter(
    name="gptme",
    arguments=_arguments,
    read_output=_read_output,
    read_errors=_read_errors,
    sign_in="set the key of its provider, such as OPENAI_API_KEY or ANTHROPIC_API_KEY",
    environment={"NO_COLOR": "1", "COLUMNS": "400", "PYTHONUNBUFFERED": "1"},
    reports_call_starts=False,
)
