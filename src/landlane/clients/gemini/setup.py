"""Set up Gemini CLI: our hooks in the checkout's settings, and what could keep them from working."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from landlane.clients import setup_checks as checks
from landlane.clients.client_setup import ClientSetup, Run, our_hooks
from landlane.clients.gemini.hook import HOOKS
from landlane.clients.setup_files import SECONDS, ClientEnvironment, SetupProblem

_HOOKS_ON = (0, 26)  # from this version on, hooks need no setting
_SYSTEM = "/etc/gemini-cli"


class _GeminiSetup(ClientSetup):
    hooks = HOOKS
    path = servers_path = ".gemini/settings.json"
    trusts_server = True
    timeout = SECONDS * 1000
    # Any exit code from 2 on discards a prompt, and repeats a turn without end. So a hook that guards
    # nothing ends with 1 when it cannot be started.
    after_unguarded = " || exit 1"
    lets_slow_hooks_pass = True

    def hook_files(self, env: ClientEnvironment) -> list[str]:
        system = env.variables.get("GEMINI_CLI_SYSTEM_SETTINGS_PATH") or f"{_SYSTEM}/settings.json"
        return [
            _in_home(env, "settings.json"),
            env.path(self.path),
            system,
            f"{_SYSTEM}/system-defaults.json",
        ]

    def more_problems(
        self, env: ClientEnvironment, run: Run, settings: Mapping[str, Any]
    ) -> list[SetupProblem]:
        names = {str(hook.get("name") or hook["command"]) for _, _, hook in our_hooks(settings)}
        problems = self.switched_off(self.hook_files(env), lambda found: _off_key(found, names))
        problems += self._trust_problems(env)
        version = checks.installed_version(env, "gemini", run)
        if checks.is_older(version, _HOOKS_ON):
            problems.append(self.problem(f"{version} runs no hooks by itself", "update Gemini CLI"))
        return problems

    def _trust_problems(self, env: ClientEnvironment) -> list[SetupProblem]:
        """Without trust in the folder none of its settings are read, and no hooks."""
        wanted = env.variables.get("GEMINI_CLI_TRUST_WORKSPACE", "")
        if env.variables.get("GEMINI_RESTRICTED_MODE") == "true" or wanted == "false":
            hint = "take GEMINI_RESTRICTED_MODE and GEMINI_CLI_TRUST_WORKSPACE out of the environment"
            return [self.problem("is configured not to trust this folder", hint)]
        user = checks.read_settings(_in_home(env, "settings.json"))[0]
        is_asked = checks.get(user, "security", "folderTrust", "enabled") is not False
        listed = env.variables.get("GEMINI_CLI_TRUSTED_FOLDERS_PATH")
        trusted = checks.folder_trust(listed or _in_home(env, "trustedFolders.json"), env.root)
        if wanted == "true" or not is_asked or trusted:
            return []
        hint = "start `gemini` here and trust the folder, with /permissions if it does not ask"
        if trusted is None:
            # A run without a terminal ends at once then, and one with a terminal asks first.
            return [self.problem("does not trust this folder yet", hint, is_open=False)]
        return [self.problem("does not trust this folder, so it reads no hooks here", hint)]


def _in_home(env: ClientEnvironment, name: str) -> str:
    return os.path.join(env.variables.get("GEMINI_CLI_HOME") or env.home, ".gemini", name)


def _off_key(settings: Mapping[str, Any], names: set[str]) -> str:
    """Return the key that switches our hooks off, if one does."""
    if checks.get(settings, "hooksConfig", "enabled") is False:
        return "hooksConfig.enabled"
    listed = map(str, checks.items(checks.get(settings, "hooksConfig", "disabled")))
    return "" if names.isdisjoint(listed) else "hooksConfig.disabled"


SETUP = _GeminiSetup()
