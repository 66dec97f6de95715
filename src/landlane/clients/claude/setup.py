"""Set up Claude Code: hooks in the checkout's local settings, and what would keep them from being called."""

from __future__ import annotations

import os
from typing import Any

from landlane.clients.claude.hook import HOOKS
from landlane.clients.client_setup import ClientSetup, HookCommand, Run, all_hooks_off, join_home, our_hooks
from landlane.clients.setup_checks import (
    RUN_INIT,
    files_in,
    installed_version,
    is_older,
    load_json,
    main_checkout,
)
from landlane.clients.setup_files import ClientEnvironment, ClientFile, SetupProblem, server_file
from landlane.errors import Malformed

_MANAGED = "/etc/claude-code"  # by which an organisation configures this machine
_FAIL_CLOSED = (2, 1, 295)  # earlier versions accept `onFailure` and ignore it


class _ClaudeSetup(ClientSetup):
    hooks = HOOKS
    # Our paths are valid on this machine only, so they go into the file that stays out of the repository.
    # Claude Code also reads it in the linked worktrees of a checkout.
    path = ".claude/settings.local.json"
    # A call of our server's tools does not tell one subagent from another.
    noted_own_tools = ("mcp__landlane__.*",)

    def hook_table(self, command: HookCommand) -> dict[str, Any]:
        content = super().hook_table(command)
        content["hooks"]["ConfigChange"] = [self.hook_group(command("ConfigChange", True))]
        for event in (HOOKS.before_tool, "ConfigChange"):
            content["hooks"][event][0]["hooks"][0]["onFailure"] = "block"
        return content

    def server_files(self, words: list[str]) -> tuple[ClientFile, ...]:
        """Return our server in the project's list, and the permission to start it and to call its tools."""
        allowed = {"enabledMcpjsonServers": ["landlane"], "permissions": {"allow": ["mcp__landlane"]}}
        return (*super().server_files(words), server_file(self.path, allowed))

    def hook_files(self, env: ClientEnvironment) -> list[str]:
        return [
            os.path.join(join_home(env, "CLAUDE_CONFIG_DIR", ".claude"), "settings.json"),
            env.path(".claude/settings.json"),
            env.path(self.path),
            os.path.join(main_checkout(env.root), self.path),
            os.path.join(_MANAGED, "managed-settings.json"),
            *files_in(os.path.join(_MANAGED, "managed-settings.d"), ".json"),
        ]

    def find_problems(self, env: ClientEnvironment, run: Run) -> list[SetupProblem]:
        path = os.path.join(main_checkout(env.root), self.path)
        problems = self._settings_problems(env, path)
        try:
            settings = load_json(path)
        except Malformed as error:
            return [*problems, SetupProblem(what=error.message, hint=error.hint)]
        problems += self.hook_problems(settings)
        if any(
            event == HOOKS.before_tool and matcher != self.noted_tools and hook.get("onFailure") != "block"
            for event, matcher, hook in our_hooks(settings)
        ):
            what = f"{self.path} lets edits pass when our hook fails"
            problems.append(SetupProblem(what=what, hint=RUN_INIT, is_open=False))
        version = installed_version(env, "claude", run)
        if is_older(version, _FAIL_CLOSED):
            hint = "update Claude Code to 2.1.295 or later"
            problems.append(self.problem(f"{version} lets an edit pass when a hook fails", hint, False))
        return problems

    def _settings_problems(self, env: ClientEnvironment, our_path: str) -> list[SetupProblem]:
        """Return the settings that switch all hooks off, ours with them."""
        problems: list[SetupProblem] = []
        for path in dict.fromkeys(self.hook_files(env)):
            try:
                settings = load_json(path)
            except Malformed as error:
                if path != our_path:
                    problems.append(SetupProblem(what=error.message, hint=error.hint, is_open=False))
                continue
            if key := all_hooks_off(settings):
                hint = f"take `{key}` out of {path}"
                problems.append(SetupProblem(what="Claude Code's hooks are switched off", hint=hint))
            if path.startswith(_MANAGED) and settings.get("allowManagedHooksOnly") is True:
                hint = f"ask the administrator of {path} to allow this project's hooks"
                problems.append(self.problem("runs managed hooks only", hint))
        return problems


SETUP = _ClaudeSetup()
