"""Codex as a worker: permissions of its role, `codex exec`, and its stream of JSON lines."""

from __future__ import annotations

from collections.abc import Sequence

from landlane.clients.model import AGENTS, EDIT, NETWORK, SHELL
from landlane.clients.worker_adapter import (
    BY_SHELL,
    NO_PATHS,
    PATHS,
    Fields,
    OutputEvent,
    OutputKind,
    Permissions,
    RoleTools,
    StartOptions,
    WorkerAdapter,
    describe_call,
    excluded_kinds,
    parse_line,
)
from landlane.protocol.worker.messages import Usage

_SANDBOXES = (
    *("--sandbox", "-s", "--full-auto", "--yolo", "--approve-for-me"),
    "--dangerously-bypass-approvals-and-sandbox",
)
_RETRIES = ("Reconnecting", "stream disconnected", "retrying")


def permissions(role: RoleTools, denied: Sequence[str], is_sandboxed: bool) -> Permissions:
    """Return what Codex is started with in a role; it has no settings for single tools or paths."""
    del denied
    excluded = excluded_kinds(role)
    is_reader = EDIT in excluded
    mode = "danger-full-access" if is_sandboxed else "read-only" if is_reader else "workspace-write"
    words = ["--sandbox", mode, "-c", 'approval_policy="never"']
    closed: list[str] = []
    left: dict[str, str] = {}
    if NETWORK in excluded:
        words += ["-c", 'web_search="disabled"']
    if AGENTS in excluded:
        words += ["-c", "features.multi_agent=false"]
        closed.append(AGENTS)
    if is_reader and is_sandboxed:
        left[EDIT] = "no setting takes its edit tool away; in our sandbox the kernel refuses it"
    elif is_reader:
        closed.append(EDIT)
    if SHELL in excluded:
        left[SHELL] = "no setting takes its shell away: left to its hooks and the kernel"
    if NETWORK in excluded:
        left[NETWORK] = BY_SHELL
    if not is_reader:
        left[PATHS] = NO_PATHS
    return Permissions(arguments=tuple(words), closed=tuple(closed), open=left)


def _arguments(options: StartOptions) -> list[str]:
    # In our sandbox, the options of its role switch Codex's own sandbox off.
    sandbox = options.unless_given(_SANDBOXES, ["--sandbox", "workspace-write"])
    words = ["exec", "--json", *options.model_words, *sandbox]
    return [*words, "-c", 'approval_policy="never"', "--skip-git-repo-check", *options.extra, "-"]


def _read_output(line: str) -> list[OutputEvent]:
    message = parse_line(line)
    kind = message.text("type")
    if kind in ("item.started", "item.completed"):
        return _read_item(message.table("item"), is_over=kind == "item.completed")
    if kind == "turn.completed":
        usage = message.table("usage")
        used = Usage(input_tokens=usage.count("input_tokens"), output_tokens=usage.count("output_tokens"))
        return [OutputEvent(kind=OutputKind.USAGE, usage=used)]
    if kind in ("error", "turn.failed"):
        text = message.text("message") or message.table("error").text("message")
        is_retry = kind == "error" and any(word in text for word in _RETRIES)
        return [OutputEvent(kind=OutputKind.RETRY if is_retry else OutputKind.ERROR, text=text)]
    return []


def _read_item(item: Fields, *, is_over: bool) -> list[OutputEvent]:
    kind, call = item.text("type"), item.text("id")
    if kind == "agent_message":
        return [OutputEvent(kind=OutputKind.TEXT, text=item.text("text"))] if is_over else []
    if kind in ("error", "reasoning"):  # an error among the items is a warning: the turn goes on
        text = item.text("message", "text")
        return [OutputEvent(kind=OutputKind.PRINTED, text=text)] if is_over and text else []
    if is_over:
        return [OutputEvent(kind=OutputKind.CALL_ENDED, call=call)]
    paths = " ".join(change.text("path") for change in item.tables("changes"))
    text = describe_call(item.text("tool") or kind, Fields({"path": paths}) if paths else item)
    return [OutputEvent(kind=OutputKind.CALL, call=call, text=text)]


ADAPTER = WorkerAdapter(
    name="codex",
    arguments=_arguments,
    read_output=_read_output,
    permissions=permissions,
    sign_in="run `codex login`, or set CODEX_API_KEY",
    environment={"NO_COLOR": "1"},
)
