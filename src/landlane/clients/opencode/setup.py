"""Set up opencode: our plugin in the checkout, and what could keep it from being loaded."""

from __future__ import annotations

import json
import os
import shlex
from typing import Any

from landlane.clients import setup_checks as checks
from landlane.clients.client_setup import ClientSetup, HookCommand, Run, is_on
from landlane.clients.opencode.hook import HOOKS, TOOLS
from landlane.clients.setup_checks import RUN_INIT
from landlane.clients.setup_files import (
    WHOLE,
    ClientEnvironment,
    ClientFile,
    SetupProblem,
    hooks_file,
    server_file,
)

_SERVERS = ".opencode/opencode.json"
_SETTINGS = ("opencode.json", "opencode.jsonc", _SERVERS, f"{_SERVERS}c")
_SWITCHES = ("OPENCODE_PURE", "OPENCODE_DISABLE_PROJECT_CONFIG")
# The lines of the plugin that are filled in.
_HOOK, _GUARDED, _READS = "const HOOK = ", "const GUARDED = ", "const READS = "


class _OpencodeSetup(ClientSetup):
    hooks = HOOKS
    path = ".opencode/plugins/landlane.js"

    def wanted_files(self, command: HookCommand) -> tuple[ClientFile, ...]:
        """Return our plugin, where opencode looks for plugins; it starts the hook without a shell."""
        return (hooks_file(self.path, plugin_text(shlex.split(command("", False))), WHOLE),)

    def server_files(self, words: list[str]) -> tuple[ClientFile, ...]:
        """Return our server, in the settings beside our plugin."""
        server = {"type": "local", "command": words, "enabled": True}
        return (server_file(_SERVERS, {"mcp": {"landlane": server}}),)

    def hook_files(self, env: ClientEnvironment) -> list[str]:
        """Return the plugins of opencode; `command_in_plugin` finds the command in one of ours."""
        folders = [env.path(".opencode"), env.path("~/.config/opencode")]
        return [
            path
            for folder in folders
            for name in ("plugin", "plugins")
            for path in checks.files_in(os.path.join(folder, name), ".js")
        ]

    def find_problems(self, env: ClientEnvironment, run: Run) -> list[SetupProblem]:
        """Return everything that keeps our plugin from being loaded, or from refusing when its hook fails."""
        del run
        problems = [
            self.problem("loads no plugin of a project", f"take {name} out of the environment")
            for name in _SWITCHES
            if is_on(env, name)
        ]
        # With settings that it cannot read, opencode does not start at all, so nothing is edited.
        problems += [
            self.problem(f"does not start here: {one.what}", f"fix {name}", is_open=False)
            for name in _SETTINGS
            for one in checks.read_settings(env.path(name))[1]
        ]
        try:
            with open(env.path(self.path), encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            return [*problems, self.problem(f"has no plugin of ours in {self.path}", RUN_INIT)]
        except (OSError, ValueError) as error:
            return [*problems, SetupProblem(what=f"{self.path} cannot be read: {error}", hint=RUN_INIT)]
        return [*problems, *self._plugin_problems(text)]

    def _plugin_problems(self, text: str) -> list[SetupProblem]:
        """A plugin that cannot be loaded is skipped without a word, so ours must be as we wrote it."""
        hook = command_in_plugin(text)
        if hook is None or text != plugin_text(hook):
            # It may be a plugin of an older release of ours, or its guard was removed.
            what = f"{self.path} is not as this version of Landlane writes it"
            return [SetupProblem(what=what, hint=RUN_INIT)]
        gone = checks.broken_command(shlex.join(hook))
        what = f"{self.title}'s plugin runs {gone}, which is not there"
        return [SetupProblem(what=what, hint=RUN_INIT, is_open=False)] if gone else []


SETUP = _OpencodeSetup()


def plugin_text(hook: list[str]) -> str:
    """Return the plugin with the hook's command and the names of the tools in it."""
    with open(os.path.join(os.path.dirname(__file__), "plugin.js"), encoding="utf-8") as file:
        lines = file.read().splitlines(keepends=True)
    filled = {
        _HOOK: json.dumps(hook),
        _GUARDED: f"new Set({json.dumps(TOOLS.guarded)})",
        _READS: f"new Set({json.dumps([*TOOLS.reads])})",
    }
    starts = {line: next((start for start in filled if line.startswith(start)), "") for line in lines}
    return "".join(f"{starts[line]}{filled[starts[line]]}\n" if starts[line] else line for line in lines)


def command_in_plugin(text: str) -> list[str] | None:
    """Return the hook's command in a plugin of the form that we write, or None."""
    line = next((line for line in text.splitlines() if line.startswith(_HOOK)), "")
    try:
        words: Any = json.loads(line.removeprefix(_HOOK))
    except ValueError:
        return None
    return [str(word) for word in words] if words.__class__ is list else None
