"""aider as a worker: one message from a file, and its plain output."""

from __future__ import annotations

import os
import re

from landlane.clients.worker_adapter import OutputEvent, OutputKind, StartOptions, WorkerAdapter
from landlane.protocol.worker.messages import Usage

_TOKENS = re.compile(r"Tokens: (?P<counts>.*?received)\b\.?(?: Cost: \$(?P<cost>[\d.,]+) message)?")
_COUNT = re.compile(r"([\d.,]+)(k|M)? (sent|cache write|cache hit|received)")
_ERROR = re.compile(r"litellm\.(\w+)(?:: (.*))?")
_DONE = re.compile(r"(Applied edit to|Commit|Running|Added) .*")
# What it prints about itself at its start, and about errors that it has reported already.
_ASIDE = (
    *("The API provider ", "Retrying in ", "Detected dumb terminal", "HTTPSConnectionPool", "Aider v"),
    *("Main model:", "Weak model:", "Editor model:", "Model:", "Git repo:", "Repo-map:", "Using "),
)
_TIMES = {"": 1, "k": 1_000, "M": 1_000_000}


def _arguments(options: StartOptions) -> list[str]:
    words = ["--message-file", options.prompt_file, "--yes-always", "--no-pretty", "--no-stream"]
    words += options.model_words
    # The worker process commits: aider would commit file by file, and under another name.
    words += ["--no-auto-commits", "--no-dirty-commits", "--no-gitignore", "--no-check-update"]
    words += ["--no-analytics", "--no-show-release-notes", "--no-show-model-warnings", "--no-fancy-input"]
    words += ["--no-suggest-shell-commands", "--no-detect-urls"]
    for option, name in (("--chat-history-file", "chat.md"), ("--input-history-file", "input")):
        words += [option, os.path.join(options.scratch, f"aider-{name}")]
    return [*words, *options.extra]


def _read_output(line: str) -> list[OutputEvent]:
    if tokens := _TOKENS.search(line):
        used = _usage(tokens["counts"], tokens["cost"] or "")
        return [OutputEvent(kind=OutputKind.USAGE, is_added=True, usage=used)]
    if error := _ERROR.match(line):
        word, text = error[1], error[2] or error[1]
        if word == "RateLimitError":
            return [OutputEvent(kind=OutputKind.RETRY, text=text, word=word, status=429)]
        return [OutputEvent(kind=OutputKind.ERROR, text=text, word=word)]
    if _DONE.match(line):
        return [OutputEvent(kind=OutputKind.CALL_ENDED, text=line)]
    if line.startswith(_ASIDE):
        return []
    return [OutputEvent(kind=OutputKind.PRINTED, text=f"{line}\n", is_more=True)]


def _usage(counts: str, cost: str) -> Usage:
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
    arguments=_arguments,
    read_output=_read_output,
    sign_in="set the key of its provider, such as OPENAI_API_KEY or ANTHROPIC_API_KEY",
    takes_prompt_file=True,
    environment={"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "400", "PYTHONUNBUFFERED": "1"},
    own_files=(".aider*",),
    reports_call_starts=False,
)
