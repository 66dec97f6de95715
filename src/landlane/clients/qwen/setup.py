"""Set up Qwen Code: our hooks in the checkout's settings, and what could keep them from working."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from landlane.clients import setup_checks as checks
from landlane.clients.hook_command import SECONDS, placeholder_command
from landlane.clients.model import CLIENTS
from landlane.clients.qwen.hook import BEFORE_TOOL, KINDS
from landlane.clients.qwen.tools import TOOLS
from landlane.clients.setup_model import (
    JSON,
    WHY_HOOKS,
    WHY_SERVER,
    Canary,
    ClientEnvironment,
    ClientFile,
    HookEntry,
    SetupProblem,
    hooks_table,
    server_table,
)

_TITLE = CLIENTS["qwen"].title
_SETTINGS = ".qwen/settings.json"
# Older releases count time limits in milliseconds, newer ones take what is below 1000 for seconds; only
# milliseconds mean the same to both.
_TIMEOUT = SECONDS * 1000
_SYSTEM = "/etc/qwen-code"


def wanted_files(command: Callable[[str, bool], str]) -> tuple[ClientFile, ...]:
    """Return our hooks, in the file where Qwen Code reads them."""

    def entry(event: str, is_guard: bool, matcher: str | None = None) -> HookEntry:
        return HookEntry(event=event, command=command(event, is_guard), timeout=_TIMEOUT, matcher=matcher)

    entries = [
        entry(event, True, "|".join(TOOLS.guarded)) if event == BEFORE_TOOL else entry(event, False)
        for event in KINDS
    ]
    # A read is recorded before it happens, so that an edit of an outdated version is noticed.
    entries.append(entry(BEFORE_TOOL, False, "|".join(TOOLS.reads)))
    return (ClientFile(path=_SETTINGS, form=JSON, content=hooks_table(entries), why=WHY_HOOKS),)


def server_files(words: list[str]) -> tuple[ClientFile, ...]:
    """Return our server, trusted: its tools are called without a question."""
    content = server_table(words, trust=True)
    return (ClientFile(path=_SETTINGS, form=JSON, content=content, why=WHY_SERVER),)


def find_problems(env: ClientEnvironment, run: Callable[[list[str]], str]) -> list[SetupProblem]:
    """Return everything that keeps our hooks from being called, or from refusing when they fail."""
    del run
    settings, problems = checks.read_settings(env.path(_SETTINGS))
    content = wanted_files(placeholder_command)[0].content
    problems += checks.shared_layout_problems(_TITLE, _SETTINGS, BEFORE_TOOL, settings, content)
    problems += checks.switched_off(_TITLE, hook_files(env), checks.all_hooks_off)
    if env.variables.get("QWEN_CODE_SAFE_MODE", "").lower() in ("1", "true"):
        hint = "take QWEN_CODE_SAFE_MODE out of the environment"
        problems.append(SetupProblem(what=f"{_TITLE} runs no hooks in its safe mode", hint=hint))
    return [*problems, *_trust_problems(env), checks.timeout_problem(_TITLE)]


def _home(env: ClientEnvironment) -> str:
    return env.variables.get("QWEN_HOME") or os.path.join(env.home, ".qwen")


def hook_files(env: ClientEnvironment) -> list[str]:
    """Return the files that Qwen Code reads hooks from, whether they exist or not."""
    system = env.variables.get("QWEN_CODE_SYSTEM_SETTINGS_PATH") or f"{_SYSTEM}/settings.json"
    return [os.path.join(_home(env), "settings.json"), env.path(_SETTINGS), system]


def _trust_problems(env: ClientEnvironment) -> list[SetupProblem]:
    """Where folder trust is switched on, the hooks of a folder without it are not run."""
    user = checks.read_settings(os.path.join(_home(env), "settings.json"))[0]
    if checks.get(user, "security", "folderTrust", "enabled") is not True:
        return []
    listed = env.variables.get("QWEN_CODE_TRUSTED_FOLDERS_PATH")
    if checks.folder_trust(listed or os.path.join(_home(env), "trustedFolders.json"), env.root):
        return []
    hint = "start `qwen` here and trust the folder, with /trust if it does not ask"
    return [SetupProblem(what=f"{_TITLE} does not trust this folder, so it runs no hooks here", hint=hint)]


def canary(kind: str, cwd: str, path: str, session: str, agent: str) -> Canary:
    """Return an edit or a shell call as Qwen Code would announce it."""
    tools: dict[str, tuple[str, dict[str, Any]]] = {
        "edit": ("edit", {"file_path": path, "old_string": "a", "new_string": "b"}),
        "shell": ("run_shell_command", {"command": f"echo x > {path}", "is_background": False}),
    }
    name, given = tools[kind]
    payload: dict[str, Any] = {
        "session_id": session,
        "transcript_path": "",
        "cwd": cwd,
        "hook_event_name": BEFORE_TOOL,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "permission_mode": "yolo",
        "tool_name": name,
        "tool_input": given,
        "tool_use_id": "toolu_canary",
        "tool_call_id": "call_canary",
    }
    if agent:
        payload["agent_id"] = agent
    return Canary(event_name=BEFORE_TOOL, payload=payload, variables={"QWEN_PROJECT_DIR": cwd})
