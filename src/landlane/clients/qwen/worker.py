"""Qwen Code as a worker: Gemini's permissions and start options, and Claude's stream of JSON lines."""

from __future__ import annotations

from collections.abc import Sequence

from landlane.clients.claude.worker import read_messages
from landlane.clients.qwen.hook import TOOLS
from landlane.clients.worker_adapter import (
    Permissions,
    RoleTools,
    StartOptions,
    WorkerAdapter,
    exclude_by_settings,
)
from landlane.values import replace


def permissions(role: RoleTools, denied: Sequence[str], is_sandboxed: bool) -> Permissions:
    """Return what Qwen Code is started with in a role; its settings know no paths."""
    del denied
    settings_file = ".qwen/settings.json"
    made = exclude_by_settings(role, TOOLS, is_sandboxed, settings_file=settings_file, approval="auto-edit")
    excluded = [word for name in made.settings["tools"]["exclude"] for word in ("--exclude-tools", name)]
    return replace(made, arguments=(*made.arguments, *excluded))


def _arguments(options: StartOptions) -> list[str]:
    words = ["--output-format", "stream-json", "--include-partial-messages", *options.model_words]
    words += options.unless_given(["--approval-mode", "--yolo", "-y"], ["--approval-mode", "yolo"])
    return [*words, *options.extra]


ADAPTER = WorkerAdapter(
    name="qwen",
    arguments=_arguments,
    read_output=read_messages,
    permissions=permissions,
    sign_in="start `qwen` once and sign in, or set OPENAI_API_KEY",
    environment={"NO_COLOR": "1"},
)
