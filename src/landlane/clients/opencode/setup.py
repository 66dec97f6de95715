"""How opencode is set up: our plugin in the checkout, and what could keep it from being loaded."""

from __future__ import annotations

import json
import os
import shlex

from landlane.clients import setup_checks as conditions
from landlane.clients.detect import MEND, broken_command, files_in, is_there, located, program, release
from landlane.clients.opencode.hook import TITLE
from landlane.clients.setup_model import JSON, WHOLE, Canary, ClientFile, SetupProblem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from landlane.clients.setup_model import ClientEnvironment

__all__ = [
    "TITLE",
    "canary",
    "hook_files",
    "hook_of",
    "is_used",
    "mcp_wanted",
    "plugin_text",
    "troubles",
    "version",
    "wanted",
]

PLUGIN = ".opencode/plugins/landlane.js"
SERVERS = ".opencode/opencode.json"

_SETTINGS = ("opencode.json", "opencode.jsonc", SERVERS, f"{SERVERS}c")
_HOOK = "const HOOK = "
_BEFORE_TOOL = "tool.execute.before"
_SWITCHES = ("OPENCODE_PURE", "OPENCODE_DISABLE_PROJECT_CONFIG")


def is_used(place: ClientEnvironment) -> bool:
    """Whether opencode is on this machine or in this checkout."""
    return is_there(
        place, "opencode", ".opencode", "opencode.json", "opencode.jsonc", "~/.config/opencode", "~/.opencode"
    )


def version(place: ClientEnvironment, run: Callable[[list[str]], str]) -> str:
    """The release of opencode that would run here; empty when none would."""
    found = program(place, "opencode")
    return release(run([found, "--version"])) if found else ""


def wanted(command: Callable[[str, bool], str]) -> tuple[ClientFile, ...]:
    """Our plugin, where opencode looks for plugins. It starts the hook without a shell."""
    text = plugin_text(shlex.split(command("", False)))
    why = "sessions begin, edits are checked, messages arrive"
    return (ClientFile(path=PLUGIN, form=WHOLE, content=text, why=why),)


def mcp_wanted(words: list[str]) -> tuple[ClientFile, ...]:
    """Our server, in the settings that lie beside our plugin."""
    server = {"type": "local", "command": words, "enabled": True}
    why = "its model can claim, take tasks and land through tools"
    return (ClientFile(path=SERVERS, form=JSON, content={"mcp": {"landlane": server}}, why=why),)


def plugin_text(hook: list[str]) -> str:
    """The plugin with the hook's command in it."""
    with open(os.path.join(os.path.dirname(__file__), "plugin.js"), encoding="utf-8") as file:
        lines = file.read().splitlines(keepends=True)
    return "".join(f"{_HOOK}{json.dumps(hook)}\n" if line.startswith(_HOOK) else line for line in lines)


def hook_files(place: ClientEnvironment) -> list[str]:
    """Return the plugins of opencode; `hook_of` finds the command in one of ours."""
    folders = [located(place, ".opencode"), located(place, "~/.config/opencode")]
    return [
        path
        for folder in folders
        for name in ("plugin", "plugins")
        for path in files_in(os.path.join(folder, name), ".js")
    ]


def troubles(place: ClientEnvironment, run: Callable[[list[str]], str]) -> list[SetupProblem]:
    """Everything that keeps our plugin from being loaded, or from refusing when its hook fails."""
    del run
    found = [
        SetupProblem(what=f"{TITLE} loads no plugin of a project", hint=f"take {name} out of the environment")
        for name in _SWITCHES
        if place.environment.get(name, "").lower() in ("1", "true")
    ]
    found += _settings_troubles(place)
    try:
        with open(located(place, PLUGIN), encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return [*found, SetupProblem(what=f"{TITLE} has no plugin of ours in {PLUGIN}", hint=MEND)]
    except (OSError, ValueError) as problem:
        return [*found, SetupProblem(what=f"{PLUGIN} cannot be read: {problem}", hint=MEND)]
    return [*found, *_plugin_troubles(text)]


def _settings_troubles(place: ClientEnvironment) -> list[SetupProblem]:
    """With settings that it cannot read opencode does not start at all: nothing is edited, held or not."""
    found: list[SetupProblem] = []
    for name in _SETTINGS:
        for problem in conditions.read_settings(located(place, name))[1]:
            what = f"{TITLE} does not start here: {problem.what}"
            found.append(SetupProblem(what=what, hint=f"mend {name}", is_open=False))
    return found


def _plugin_troubles(text: str) -> list[SetupProblem]:
    """A plugin that cannot be loaded is skipped without a word, so ours must be as we wrote it."""
    hook = hook_of(text)
    if hook is None or text != plugin_text(hook):
        # It may be a plugin of an older release of ours, or one that somebody opened up.
        return [SetupProblem(what=f"{PLUGIN} is not as this version of Landlane writes it", hint=MEND)]
    gone = broken_command(shlex.join(hook))
    if gone:
        return [
            SetupProblem(what=f"{TITLE}'s plugin runs {gone}, which is not there", hint=MEND, is_open=False)
        ]
    return []


def hook_of(text: str) -> list[str] | None:
    """Return the hook's command in a plugin of the form that we write, or None."""
    line = next((line for line in text.splitlines() if line.startswith(_HOOK)), "")
    try:
        found: Any = json.loads(line.removeprefix(_HOOK))
    except ValueError:
        return None
    return [str(word) for word in found] if found.__class__ is list else None


def canary(kind: str, cwd: str, path: str, session: str, agent: str) -> Canary:
    """An edit or a shell call as our plugin would announce it."""
    tools: dict[str, tuple[str, dict[str, Any]]] = {
        "edit": ("edit", {"filePath": path, "oldString": "a", "newString": "b"}),
        "shell": ("bash", {"command": f"echo x > {path}", "description": "canary"}),
    }
    name, given = tools[kind]
    payload: dict[str, Any] = {
        "hook_event_name": _BEFORE_TOOL,
        "session_id": session,
        "cwd": cwd,
        "tool_name": name,
        "tool_input": given,
        "tool_use_id": "call_canary",
    }
    if agent:
        payload["agent_id"] = agent
    return Canary(word="", payload=payload, environment={"OPENCODE": "1"})
