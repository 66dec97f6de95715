"""How Copilot CLI is set up: our own file of hooks in the checkout, and what could keep it from working."""

from __future__ import annotations

import json
import os

from landlane.clients import hook_command
from landlane.clients import setup_checks as conditions
from landlane.clients.copilot.hook import BEFORE_TOOL, KINDS, TITLE
from landlane.clients.copilot.tools import EDITS, SHELLS
from landlane.clients.detect import files_in, is_there, located, program, release
from landlane.clients.hook_command import SECONDS
from landlane.clients.setup_model import JSON, WHOLE, Canary, ClientFile, SetupProblem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from landlane.clients.setup_model import ClientEnvironment


__all__ = ["TITLE", "canary", "hook_files", "is_used", "mcp_wanted", "troubles", "version", "wanted"]

HOOKS = ".github/hooks/landlane.json"
SERVERS = ".mcp.json"  # it shares this list with Claude Code

_GUARDED_TOOLS = "|".join([*EDITS, *SHELLS])
_READING_TOOL = "view"  # what is read is noted before, so that an edit of an outdated version is known

# Copilot reads Claude's settings too, and obeys this key there; in its user's own settings it does not.
_SWITCHES = (
    ".github/copilot/settings.json",
    ".github/copilot/settings.local.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
)


def is_used(place: ClientEnvironment) -> bool:
    """Whether Copilot CLI is on this machine or in this checkout."""
    return is_there(place, "copilot", ".github/hooks", ".github/copilot", "~/.copilot")


def version(place: ClientEnvironment, run: Callable[[list[str]], str]) -> str:
    """The release of Copilot CLI that would run here; empty when none would."""
    found = program(place, "copilot")
    return release(run([found, "--version"])).rstrip(".") if found else ""


def wanted(command: Callable[[str, bool], str]) -> tuple[ClientFile, ...]:
    """Our hooks, where Copilot CLI reads them. A payload names no event, so each command does."""
    text = json.dumps(_hooks(command), indent=2) + "\n"
    why = "sessions begin, edits are checked, messages arrive"
    return (ClientFile(path=HOOKS, form=WHOLE, content=text, why=why),)


def mcp_wanted(words: list[str]) -> tuple[ClientFile, ...]:
    """Our server in the project's list."""
    server = {"mcpServers": {"landlane": {"command": words[0], "args": words[1:]}}}
    why = "its model can claim, take tasks and land through tools"
    return (ClientFile(path=SERVERS, form=JSON, content=server, why=why),)


def _hooks(command: Callable[[str, bool], str]) -> dict[str, Any]:
    hooks: dict[str, list[dict[str, Any]]] = {}
    for event in KINDS:
        is_guard = event == BEFORE_TOOL
        matcher = {"matcher": _GUARDED_TOOLS} if is_guard else {}
        hook = {"type": "command", "bash": command(event, is_guard), "timeoutSec": SECONDS, **matcher}
        hooks[event] = [hook]
    # Copilot takes any failure of a hook here for a no, and looking must go on.
    noting = f"{command(BEFORE_TOOL, False)} || true"
    hooks[BEFORE_TOOL].append(
        {"type": "command", "bash": noting, "timeoutSec": SECONDS, "matcher": _READING_TOOL}
    )
    return {"version": 1, "hooks": hooks}


def troubles(place: ClientEnvironment, run: Callable[[list[str]], str]) -> list[SetupProblem]:
    """Everything that keeps our hooks from firing, or from refusing when they fail."""
    del run
    hooks, found = conditions.read_settings(located(place, HOOKS))
    found += conditions.flat_troubles(TITLE, HOOKS, BEFORE_TOOL, hooks, _hooks(hook_command.ours))
    if hooks and hooks.get("version") != 1:
        found.append(
            SetupProblem(what=f"{HOOKS} is of a version that {TITLE} does not read", hint="delete it")
        )
    found += conditions.switched_off(TITLE, [located(place, path) for path in _SWITCHES], _off)
    return [*found, *_trust_troubles(place), conditions.late(TITLE)]


def _off(settings: Mapping[str, Any]) -> str:
    return "disableAllHooks" if settings.get("disableAllHooks") is True else ""


def _home(place: ClientEnvironment) -> str:
    return place.environment.get("COPILOT_HOME") or os.path.join(place.home, ".copilot")


def hook_files(place: ClientEnvironment) -> list[str]:
    """Return the files that Copilot CLI reads hooks from; Claude Code's settings are not among them."""
    return files_in(located(place, os.path.dirname(HOOKS)), ".json") + files_in(
        f"{_home(place)}/hooks", ".json"
    )


def _trust_troubles(place: ClientEnvironment) -> list[SetupProblem]:
    """In a folder that it does not trust Copilot runs without its hooks, and says nothing."""
    if place.environment.get("COPILOT_ALLOW_ALL") == "true":
        return []
    config = conditions.read_settings(os.path.join(_home(place), "config.json"))[0]
    folders = [
        *conditions.items(config.get("trustedFolders")),
        *conditions.items(config.get("trusted_folders")),
    ]
    if any(conditions.is_below(place.root, str(folder)) for folder in folders):
        return []
    hint = "start `copilot` here once and trust the folder for good, or start it with --trust-folder"
    return [SetupProblem(what=f"{TITLE} does not trust this folder, so it runs no hooks here", hint=hint)]


def canary(kind: str, cwd: str, path: str, session: str, agent: str) -> Canary:
    """An edit or a shell call as Copilot CLI would announce it."""
    tools: dict[str, tuple[str, dict[str, Any]]] = {
        "edit": ("edit", {"path": path, "old_str": "a", "new_str": "b"}),
        "shell": ("bash", {"command": f"echo x > {path}", "description": "canary"}),
    }
    name, given = tools[kind]
    payload: dict[str, Any] = {
        "sessionId": agent or session,
        "timestamp": 0,
        "cwd": cwd,
        "toolName": name,
        "toolArgs": given,
    }
    if agent:
        payload |= {"agentId": agent, "agentType": "general-purpose", "parentAgentId": session}
    return Canary(word=BEFORE_TOOL, payload=payload, environment={"COPILOT_PROJECT_DIR": cwd})
