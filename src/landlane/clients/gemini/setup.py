"""How Gemini CLI is set up: our hooks in the checkout's settings, and what could keep them from working."""

from __future__ import annotations

import os

from landlane.clients import hook_command
from landlane.clients import setup_checks as conditions
from landlane.clients.detect import is_older, is_there, located, our_hooks, program, release
from landlane.clients.gemini.hook import BEFORE_TOOL, KINDS, TITLE
from landlane.clients.gemini.tools import READS
from landlane.clients.hook_command import SECONDS
from landlane.clients.setup_model import JSON, Canary, ClientFile, SetupProblem
from landlane.clients.shared_hook_format import Group, hooks_layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from landlane.clients.setup_model import ClientEnvironment


__all__ = ["TITLE", "canary", "hook_files", "is_used", "mcp_wanted", "troubles", "version", "wanted"]

SETTINGS = ".gemini/settings.json"

_GUARDED_TOOLS = "replace|write_file|run_shell_command"
_READING_TOOLS = "|".join(
    READS
)  # what is read is noted before, so that an edit of an outdated version is known
_HOOKS_ON = (0, 26)  # since then hooks are on without a setting
_SYSTEM = "/etc/gemini-cli"


def is_used(place: ClientEnvironment) -> bool:
    """Whether Gemini CLI is on this machine or in this checkout."""
    return is_there(place, "gemini", ".gemini", "GEMINI.md", "~/.gemini")


def version(place: ClientEnvironment, run: Callable[[list[str]], str]) -> str:
    """The release of Gemini CLI that would run here; empty when none would."""
    found = program(place, "gemini")
    return release(run([found, "--version"])) if found else ""


def wanted(command: Callable[[str, bool], str]) -> tuple[ClientFile, ...]:
    """Our hooks, where Gemini CLI reads them. Its time limits are in milliseconds.

    Any exit from 2 on throws a prompt away, and asks for a turn again without end. So a hook that only tells
    something ends with 1 when it cannot even be started.
    """
    groups = [
        Group(
            event=event,
            command=command(event, True) if event == BEFORE_TOOL else f"{command(event, False)} || exit 1",
            timeout=SECONDS * 1000,
            matcher=_GUARDED_TOOLS if event == BEFORE_TOOL else None,
        )
        for event in KINDS
    ]
    noting = f"{command(BEFORE_TOOL, False)} || exit 1"
    groups.append(Group(event=BEFORE_TOOL, command=noting, timeout=SECONDS * 1000, matcher=_READING_TOOLS))
    why = "sessions begin, edits are checked, messages arrive"
    return (ClientFile(path=SETTINGS, form=JSON, content=hooks_layout(groups), why=why),)


def mcp_wanted(words: list[str]) -> tuple[ClientFile, ...]:
    """Our server, trusted: its tools are called without a question."""
    server = {"command": words[0], "args": words[1:], "trust": True}
    why = "its model can claim, take tasks and land through tools"
    return (ClientFile(path=SETTINGS, form=JSON, content={"mcpServers": {"landlane": server}}, why=why),)


def troubles(place: ClientEnvironment, run: Callable[[list[str]], str]) -> list[SetupProblem]:
    """Everything that keeps our hooks from firing, or from refusing when they fail."""
    settings, found = conditions.read_settings(located(place, SETTINGS))
    content = wanted(hook_command.ours)[0].content
    found += conditions.layout_troubles(TITLE, SETTINGS, BEFORE_TOOL, settings, content)
    names = {str(hook.get("name") or hook["command"]) for _, _, hook in our_hooks(settings)}
    found += conditions.switched_off(TITLE, hook_files(place), lambda one: _off(one, names))
    found += _trust_troubles(place, settings)
    here = version(place, run)
    if is_older(here, _HOOKS_ON):
        found.append(SetupProblem(what=f"{TITLE} {here} runs no hooks by itself", hint="update Gemini CLI"))
    return [*found, conditions.late(TITLE)]


def _home(place: ClientEnvironment) -> str:
    return os.path.join(place.environment.get("GEMINI_CLI_HOME") or place.home, ".gemini")


def hook_files(place: ClientEnvironment) -> list[str]:
    """Return the files that Gemini CLI reads hooks from, whether they exist or not."""
    system = place.environment.get("GEMINI_CLI_SYSTEM_SETTINGS_PATH") or f"{_SYSTEM}/settings.json"
    return [
        os.path.join(_home(place), "settings.json"),
        located(place, SETTINGS),
        system,
        f"{_SYSTEM}/system-defaults.json",
    ]


def _off(settings: Mapping[str, Any], names: set[str]) -> str:
    """The key that switches our hooks off, if one does."""
    if conditions.at(settings, "hooksConfig", "enabled") is False:
        return "hooksConfig.enabled"
    listed = map(str, conditions.items(conditions.at(settings, "hooksConfig", "disabled")))
    return "" if names.isdisjoint(listed) else "hooksConfig.disabled"


def _trust_troubles(place: ClientEnvironment, settings: Mapping[str, Any]) -> list[SetupProblem]:
    """Without trust in the folder nothing of its settings is read, hooks least of all."""
    said = place.environment.get("GEMINI_CLI_TRUST_WORKSPACE", "")
    if place.environment.get("GEMINI_RESTRICTED_MODE") == "true" or said == "false":
        hint = "take GEMINI_RESTRICTED_MODE and GEMINI_CLI_TRUST_WORKSPACE out of the environment"
        return [SetupProblem(what=f"{TITLE} is told not to trust this folder", hint=hint)]
    user = conditions.read_settings(os.path.join(_home(place), "settings.json"))[0]
    is_asked = conditions.at(user, "security", "folderTrust", "enabled") is not False
    listed = place.environment.get("GEMINI_CLI_TRUSTED_FOLDERS_PATH")
    trusted = conditions.trust(listed or os.path.join(_home(place), "trustedFolders.json"), place.root)
    if said == "true" or not is_asked or trusted:
        return []
    hint = "start `gemini` here and trust the folder, with /permissions if it does not ask"
    if trusted is None:
        # A run without a terminal ends at once then, and one with a terminal asks first.
        what = f"{TITLE} does not trust this folder yet"
        return [SetupProblem(what=what, hint=hint, is_open=False)]
    return [SetupProblem(what=f"{TITLE} does not trust this folder, so it reads no hooks here", hint=hint)]


def canary(kind: str, cwd: str, path: str, session: str, agent: str) -> Canary:
    """An edit or a shell call as Gemini CLI would announce it. It does not tell subagents apart."""
    del agent
    tools: dict[str, tuple[str, dict[str, Any]]] = {
        "edit": ("replace", {"file_path": path, "old_string": "a", "new_string": "b", "instruction": "x"}),
        "shell": ("run_shell_command", {"command": f"echo x > {path}", "description": "canary"}),
    }
    name, given = tools[kind]
    payload: dict[str, Any] = {
        "session_id": session,
        "transcript_path": "",
        "cwd": cwd,
        "hook_event_name": BEFORE_TOOL,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "tool_name": name,
        "tool_input": given,
    }
    return Canary(word=BEFORE_TOOL, payload=payload, environment={"GEMINI_PROJECT_DIR": cwd})
