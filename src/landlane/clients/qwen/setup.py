"""Set up Qwen Code: our hooks in the checkout's settings, and what could keep them from working."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from landlane.clients import setup_checks as checks
from landlane.clients.client_setup import ClientSetup, Run, is_on, join_home
from landlane.clients.qwen.hook import HOOKS
from landlane.clients.setup_files import SECONDS, ClientEnvironment, SetupProblem


class _QwenSetup(ClientSetup):
    hooks = HOOKS
    path = servers_path = ".qwen/settings.json"
    trusts_server = True
    # Older releases count milliseconds, newer ones take what is below 1000 for seconds; only milliseconds
    # mean the same to both.
    timeout = SECONDS * 1000
    lets_slow_hooks_pass = True

    def hook_files(self, env: ClientEnvironment) -> list[str]:
        system = env.variables.get("QWEN_CODE_SYSTEM_SETTINGS_PATH") or "/etc/qwen-code/settings.json"
        return [_in_home(env, "settings.json"), env.path(self.path), system]

    def more_problems(
        self, env: ClientEnvironment, run: Run, settings: Mapping[str, Any]
    ) -> list[SetupProblem]:
        del run, settings
        problems = self.switched_off(self.hook_files(env))
        if is_on(env, "QWEN_CODE_SAFE_MODE"):
            hint = "take QWEN_CODE_SAFE_MODE out of the environment"
            problems.append(self.problem("runs no hooks in its safe mode", hint))
        # Where folder trust is switched on, the hooks of a folder without it are not run.
        user = checks.read_settings(_in_home(env, "settings.json"))[0]
        listed = env.variables.get("QWEN_CODE_TRUSTED_FOLDERS_PATH") or _in_home(env, "trustedFolders.json")
        is_needed = checks.get(user, "security", "folderTrust", "enabled") is True
        if is_needed and not checks.folder_trust(listed, env.root):
            hint = "start `qwen` here and trust the folder, with /trust if it does not ask"
            problems.append(self.problem("does not trust this folder, so it runs no hooks here", hint))
        return problems


def _in_home(env: ClientEnvironment, name: str) -> str:
    return os.path.join(join_home(env, "QWEN_HOME", ".qwen"), name)


SETUP = _QwenSetup()
