"""Set up Qwen Code: our hooks in the checkout's settings, and what could keep them from working."""

from __future__ import annotations

import os
from collections.abc import Callable

from landlane.clients import setup_checks as checks
from landlane.clients.hook_command import placeholder_command
from landlane.clients.model import CLIENTS
from landlane.clients.qwen.hook import BEFORE_TOOL, KINDS
from landlane.clients.qwen.tools import TOOLS
from landlane.clients.setup_files import (
    ClientEnvironment,
    ClientFile,
    SetupProblem,
    guarded_entries,
    hooks_file,
    hooks_table,
    server_file,
    server_table,
)

_TITLE = CLIENTS["qwen"].title
_SETTINGS = ".qwen/settings.json"
_SYSTEM = "/etc/qwen-code"


def wanted_files(command: Callable[[str, bool], str]) -> tuple[ClientFile, ...]:
    """Return our hooks, in the file where Qwen Code reads them.

    Older releases count time limits in milliseconds, newer ones take what is below 1000 for seconds; only
    milliseconds mean the same to both.
    """
    return hooks_file(_SETTINGS, hooks_table(guarded_entries(KINDS, BEFORE_TOOL, TOOLS, command)))


def server_files(words: list[str]) -> tuple[ClientFile, ...]:
    """Return our server, trusted: its tools are called without a question."""
    return (server_file(_SETTINGS, server_table(words, trust=True)),)


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
