"""How Qwen Code is set up: our hooks in the checkout's settings, and what could keep them from working."""

from __future__ import annotations

import os

from landlane.clients import hook_command
from landlane.clients import setup_checks as conditions
from landlane.clients.detect import is_there, located, program, release
from landlane.clients.hook_command import SECONDS
from landlane.clients.qwen.hook import BEFORE_TOOL, KINDS, TITLE
from landlane.clients.setup_model import JSON, Canary, ClientFile, SetupProblem
from landlane.clients.shared_hook_format import Group, hooks_layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from landlane.clients.setup_model import ClientEnvironment


__all__ = ["TITLE", "canary", "hook_files", "is_used", "mcp_wanted", "troubles", "version", "wanted"]

SETTINGS = ".qwen/settings.json"

_GUARDED_TOOLS = "edit|write_file|notebook_edit|run_shell_command|monitor"
_READING_TOOL = "read_file"  # what is read is noted before, so that an edit of an outdated version is known
_SYSTEM = "/etc/qwen-code"


def is_used(place: ClientEnvironment) -> bool:
    """Whether Qwen Code is on this machine or in this checkout."""
    return is_there(place, "qwen", ".qwen", "QWEN.md", "~/.qwen")


def version(place: ClientEnvironment, run: Callable[[list[str]], str]) -> str:
    """The release of Qwen Code that would run here; empty when none would."""
    found = program(place, "qwen")
    return release(run([found, "--version"])) if found else ""


def wanted(command: Callable[[str, bool], str]) -> tuple[ClientFile, ...]:
    """Our hooks, where Qwen Code reads them.

    Older releases count time limits in milliseconds, newer ones take what is below 1000 for seconds; only
    milliseconds mean the same to both.
    """
    groups = [
        Group(
            event=event,
            command=command(event, event == BEFORE_TOOL),
            timeout=SECONDS * 1000,
            matcher=_GUARDED_TOOLS if event == BEFORE_TOOL else None,
        )
        for event in KINDS
    ]
    noting = command(BEFORE_TOOL, False)
    groups.append(Group(event=BEFORE_TOOL, command=noting, timeout=SECONDS * 1000, matcher=_READING_TOOL))
    why = "sessions begin, edits are checked, messages arrive"
    return (ClientFile(path=SETTINGS, form=JSON, content=hooks_layout(groups), why=why),)


def mcp_wanted(words: list[str]) -> tuple[ClientFile, ...]:
    """Our server, trusted: its tools are called without a question."""
    server = {"command": words[0], "args": words[1:], "trust": True}
    why = "its model can claim, take tasks and land through tools"
    return (ClientFile(path=SETTINGS, form=JSON, content={"mcpServers": {"landlane": server}}, why=why),)


def troubles(place: ClientEnvironment, run: Callable[[list[str]], str]) -> list[SetupProblem]:
    """Everything that keeps our hooks from firing, or from refusing when they fail."""
    del run
    settings, found = conditions.read_settings(located(place, SETTINGS))
    content = wanted(hook_command.ours)[0].content
    found += conditions.layout_troubles(TITLE, SETTINGS, BEFORE_TOOL, settings, content)
    found += conditions.switched_off(TITLE, hook_files(place), _off)
    if place.environment.get("QWEN_CODE_SAFE_MODE", "").lower() in ("1", "true"):
        hint = "take QWEN_CODE_SAFE_MODE out of the environment"
        found.append(SetupProblem(what=f"{TITLE} runs no hooks in its safe mode", hint=hint))
    return [*found, *_trust_troubles(place), conditions.late(TITLE)]


def _home(place: ClientEnvironment) -> str:
    return place.environment.get("QWEN_HOME") or os.path.join(place.home, ".qwen")


def hook_files(place: ClientEnvironment) -> list[str]:
    """Return the files that Qwen Code reads hooks from, whether they exist or not."""
    system = place.environment.get("QWEN_CODE_SYSTEM_SETTINGS_PATH") or f"{_SYSTEM}/settings.json"
    return [os.path.join(_home(place), "settings.json"), located(place, SETTINGS), system]


def _off(settings: Mapping[str, Any]) -> str:
    return "disableAllHooks" if settings.get("disableAllHooks") is True else ""


def _trust_troubles(place: ClientEnvironment) -> list[SetupProblem]:
    """Where trust is asked for, hooks of a folder without it are not run."""
    user = conditions.read_settings(os.path.join(_home(place), "settings.json"))[0]
    if conditions.at(user, "security", "folderTrust", "enabled") is not True:
        return []
    listed = place.environment.get("QWEN_CODE_TRUSTED_FOLDERS_PATH")
    if conditions.trust(listed or os.path.join(_home(place), "trustedFolders.json"), place.root):
        return []
    hint = "start `qwen` here and trust the folder, with /trust if it does not ask"
    return [SetupProblem(what=f"{TITLE} does not trust this folder, so it runs no hooks here", hint=hint)]


def canary(kind: str, cwd: str, path: str, session: str, agent: str) -> Canary:
    """An edit or a shell call as Qwen Code would announce it."""
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
    return Canary(word=BEFORE_TOOL, payload=payload, environment={"QWEN_PROJECT_DIR": cwd})
