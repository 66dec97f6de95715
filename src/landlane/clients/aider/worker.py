"""aider as a worker (used inside the worker process): one message from a file, and its plain output."""

from __future__ import annotations

import os
import re

from landlane.clients.worker_adapter import (
    BY_FILE,
    BY_NOTES,
    CALL_ENDED,
    ERROR,
    MORE,
    RETRY,
    SAID,
    SPENT,
    OutputEvent,
    StartOptions,
    WorkerAdapter,
)
from landlane.protocol.worker.messages import Usage

_TOKENS = re.compile(r"Tokens: (?P<counts>.*?received)\b\.?(?: Cost: \$(?P<cost>[\d.,]+) message)?")
_COUNT = re.compile(r"([\d.,]+)(k|M)? (sent|cache write|cache hit|received)")
_ERROR = re.compile(r"litellm\.(\w+)(?:: (.*))?")
_DONE = re.compile(r"(Applied edit to|Commit|Running|Added) .*")
# What it says of itself at its start, and of errors that it has told already.
_ASIDE = (
    *("The API provider ", "Retrying in ", "Detected dumb terminal", "HTTPSConnectionPool", "Aider v"),
    *("Main model:", "Weak model:", "Editor model:", "Model:", "Git repo:", "Repo-map:", "Using "),
)
_TIMES = {"": 1, "k": 1_000, "M": 1_000_000}


def _words(wish: StartOptions) -> list[str]:
    words = ["--message-file", wish.prompt_file, "--yes-always", "--no-pretty", "--no-stream"]
    words += ["--model", wish.model] if wish.model else []
    # Who it works for commits: it would commit file by file, and as somebody else.
    words += ["--no-auto-commits", "--no-dirty-commits", "--no-gitignore", "--no-check-update"]
    words += ["--no-analytics", "--no-show-release-notes", "--no-show-model-warnings", "--no-fancy-input"]
    words += ["--no-suggest-shell-commands", "--no-detect-urls"]
    for option, name in (("--chat-history-file", "chat.md"), ("--input-history-file", "input")):
        words += [option, os.path.join(wish.scratch, f"aider-{name}")]
    return [*words, *wish.extra]


def _read(line: str) -> list[OutputEvent]:
    found = _TOKENS.search(line)
    if found:
        return [OutputEvent(kind=SPENT, key=MORE, usage=_spent(found["counts"], found["cost"] or ""))]
    found = _ERROR.match(line)
    if found:
        is_limit = found[1] == "RateLimitError"
        text = found[2] or found[1]
        return [
            OutputEvent(
                kind=RETRY if is_limit else ERROR, text=text, word=found[1], status=429 if is_limit else 0
            )
        ]
    if _DONE.match(line):
        return [OutputEvent(kind=CALL_ENDED, text=line)]
    if line.startswith(_ASIDE):
        return []
    return [OutputEvent(kind=SAID, text=f"{line}\n", is_more=True)]


def _spent(counts: str, cost: str) -> Usage:
    read = written = 0
    for number, unit, what in _COUNT.findall(counts):
        tokens = round(float(number.replace(",", "")) * _TIMES[unit])
        if what == "received":
            written += tokens
        else:
            read += tokens
    price = float(cost.replace(",", "")) if cost.strip(".,") else None
    return Usage(input_tokens=read, output_tokens=written, cost_usd=price)


ADAPTER = WorkerAdapter(
    name="aider",
    title="aider",
    words=_words,
    read=_read,
    facts=BY_NOTES,
    sign_in="set the key of its provider, such as OPENAI_API_KEY or ANTHROPIC_API_KEY",
    prompt_by=BY_FILE,
    environment={"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "400", "PYTHONUNBUFFERED": "1"},
    leavings=(".aider*",),
    tells_calls=False,
)
