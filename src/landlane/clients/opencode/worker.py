"""opencode as a worker: permissions of its role, `opencode run`, and its stream of JSON lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from landlane.clients.model import AGENTS, EDIT, NETWORK, SHELL
from landlane.clients.opencode.hook import TOOLS
from landlane.clients.worker_adapter import (
    ONLY_DENIED,
    PATHS,
    OutputEvent,
    OutputKind,
    Permissions,
    RoleTools,
    StartOptions,
    WorkerAdapter,
    describe_call,
    excluded_kinds,
    left_open,
    parse_line,
)
from landlane.protocol.worker.messages import Usage

# Its names of permissions. One for edits and one for shells cover all tools of that kind.
_NAMES = {EDIT: ("edit",), SHELL: ("bash",), NETWORK: TOOLS.network, AGENTS: TOOLS.agents}


def permissions(role: RoleTools, denied: Sequence[str], is_sandboxed: bool) -> Permissions:
    """Return what opencode is started with in a role."""
    del is_sandboxed
    excluded = excluded_kinds(role)
    rules: dict[str, Any] = {
        name: "deny" if kind in excluded else "allow" for kind, names in _NAMES.items() for name in names
    }
    has_paths = EDIT not in excluded and bool(denied)
    if has_paths:
        rules["edit"] = {"*": "allow", **dict.fromkeys(denied, "deny")}
    settings = {"permission": rules}
    return Permissions(
        settings=settings,
        environment={"OPENCODE_CONFIG_CONTENT": json.dumps(settings, separators=(",", ":"))},
        closed=(*excluded, *([PATHS] if has_paths else [])),
        open=left_open(role, excluded, ONLY_DENIED),
    )


def _arguments(options: StartOptions) -> list[str]:
    return ["run", "--format", "json", *options.model_words, *options.extra]


def _read_output(line: str) -> list[OutputEvent]:
    message = parse_line(line)
    kind, part = message.text("type"), message.table("part")
    if kind == "text":
        return [OutputEvent(kind=OutputKind.TEXT, text=part.text("text"))]
    if kind == "tool_use":  # reported when it has ended
        text = describe_call(part.text("tool"), part.table("state").table("input"))
        return [OutputEvent(kind=OutputKind.CALL_ENDED, call=part.text("callID"), text=text)]
    if kind == "step_finish":
        tokens = part.table("tokens")
        cache = tokens.table("cache").count("read", "write")
        read = tokens.count("input")
        used = Usage(
            input_tokens=read if cache is None else cache + (read or 0),
            output_tokens=tokens.count("output", "reasoning"),
            cost_usd=part.amount("cost") or None,  # it reports 0 for a model whose price it does not know
        )
        return [OutputEvent(kind=OutputKind.USAGE, key=part.text("id"), usage=used)]
    if kind == "error":
        error = message.table("error")
        data = error.table("data")
        text = data.text("message") or error.text("message")
        wait = data.table("responseHeaders").text("retry-after")
        text = f"{text} (retry-after: {wait})" if wait else text
        status = data.count("statusCode") or 0
        return [OutputEvent(kind=OutputKind.ERROR, text=text, status=status, word=error.text("name"))]
    return []


ADAPTER = WorkerAdapter(
    name="opencode",
    arguments=_arguments,
    read_output=_read_output,
    permissions=permissions,
    sign_in="run `opencode auth login`",
    environment={"NO_COLOR": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"},
    reports_call_starts=False,
)
