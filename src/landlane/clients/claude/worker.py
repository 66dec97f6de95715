"""Claude Code as a worker (used inside the worker process): start options and its stream of JSON lines."""

from __future__ import annotations

from landlane.clients.worker_adapter import BY_HOOKS, StartOptions, WorkerAdapter, unless_given
from landlane.clients.worker_stream_json import read_messages

# What its role denies stays denied. Without a person, a tool that nobody allowed is refused.
_ALLOWED = "Bash,Edit,Write,NotebookEdit,Read,Glob,Grep,WebFetch,WebSearch,Task,Agent,mcp__landlane"
_MODES = ("--permission-mode", "--dangerously-skip-permissions")


def _words(wish: StartOptions) -> list[str]:
    # Partial messages are its sign of life while the model writes a long answer.
    words = ["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"]
    words += ["--model", wish.model] if wish.model else []
    if wish.budget_usd:
        words += unless_given(
            wish.extra, ["--max-budget-usd"], ["--max-budget-usd", f"{wish.budget_usd:.4f}"]
        )
    words += unless_given(wish.extra, _MODES, ["--permission-mode", "acceptEdits"])
    allowed = ["--allowedTools", _ALLOWED]
    words += unless_given(wish.extra, ["--allowedTools", "--allowed-tools", *_MODES[1:]], allowed)
    return [*words, *wish.extra]


ADAPTER = WorkerAdapter(
    name="claude",
    title="Claude Code",
    words=_words,
    read=read_messages,
    facts=BY_HOOKS,
    sign_in="start `claude` once and sign in, or set ANTHROPIC_API_KEY",
    environment={
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "NO_COLOR": "1",
    },
)
