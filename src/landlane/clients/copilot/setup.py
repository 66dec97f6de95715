"""Set up Copilot CLI: our own file of hooks in the checkout, and what could keep it from working."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from landlane.clients import setup_checks as checks
from landlane.clients.client_setup import ClientSetup, HookCommand, Run, join_home
from landlane.clients.copilot.hook import HOOKS
from landlane.clients.setup_files import WHOLE, ClientEnvironment, SetupProblem

# Copilot also reads Claude's settings, and obeys `disableAllHooks` there; in its user's own settings it
# does not.
_SWITCHES = (
    ".github/copilot/settings.json",
    ".github/copilot/settings.local.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
)


class _CopilotSetup(ClientSetup):
    hooks = HOOKS
    path = ".github/hooks/landlane.json"
    form = WHOLE
    lets_slow_hooks_pass = True

    def hook_table(self, command: HookCommand) -> dict[str, Any]:
        content = super().hook_table(command)
        reading = content["hooks"][HOOKS.before_tool][1]
        reading["bash"] += " || true"  # any failure of a hook before a tool refuses, and reading must go on
        return {"version": 1, **content}

    def hook_group(self, command: str, matcher: str = "") -> dict[str, Any]:
        hook = {"type": "command", "bash": command, "timeoutSec": self.timeout}
        return {**hook, "matcher": matcher} if matcher else hook

    def hook_files(self, env: ClientEnvironment) -> list[str]:
        """Return the files that Copilot CLI reads hooks from; Claude Code's settings are not among them."""
        folders = (env.path(os.path.dirname(self.path)), f"{_home(env)}/hooks")
        return [path for folder in folders for path in checks.files_in(folder, ".json")]

    def more_problems(
        self, env: ClientEnvironment, run: Run, settings: Mapping[str, Any]
    ) -> list[SetupProblem]:
        del run
        problems: list[SetupProblem] = []
        if settings and settings.get("version") != 1:
            what = f"{self.path} is of a version that {self.title} does not read"
            problems.append(SetupProblem(what=what, hint="delete it"))
        problems += self.switched_off(map(env.path, _SWITCHES))
        # In a folder that it does not trust, Copilot runs without its hooks, and does not say so.
        config = checks.read_settings(os.path.join(_home(env), "config.json"))[0]
        folders = [*checks.items(config.get("trustedFolders")), *checks.items(config.get("trusted_folders"))]
        is_trusted = any(checks.is_below(env.root, str(folder)) for folder in folders)
        if not is_trusted and env.variables.get("COPILOT_ALLOW_ALL") != "true":
            hint = "start `copilot` here once and trust the folder for good, or start it with --trust-folder"
            problems.append(self.problem("does not trust this folder, so it runs no hooks here", hint))
        return problems


def _home(env: ClientEnvironment) -> str:
    return join_home(env, "COPILOT_HOME", ".copilot")


SETUP = _CopilotSetup()
