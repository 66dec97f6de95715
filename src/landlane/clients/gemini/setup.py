"""Set up Gemini CLI: our hooks in the checkout's settings, and what could keep them from working."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from landlane.clients import setup_checks as checks
from landlane.clients.gemini.hook import BEFORE_TOOL, KINDS
from landlane.clients.gemini.tools import TOOLS
from landlane.clients.hook_command import placeholder_command
from landlane.clients.model import CLIENTS
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

_TITLE = CLIENTS["gemini"].title
_SETTINGS = ".gemini/settings.json"
_HOOKS_ON = (0, 26)  # from this version on, hooks need no setting
_SYSTEM = "/etc/gemini-cli"


def wanted_files(command: Callable[[str, bool], str]) -> tuple[ClientFile, ...]:
    """Return our hooks, in the file where Gemini CLI reads them.

    Any exit code from 2 on discards a prompt, and repeats a turn without end. So a hook that guards nothing
    ends with 1 when it cannot be started.
    """
    entries = guarded_entries(KINDS, BEFORE_TOOL, TOOLS, command, " || exit 1")
    return hooks_file(_SETTINGS, hooks_table(entries))


def server_files(words: list[str]) -> tuple[ClientFile, ...]:
    """Return our server, trusted: its tools are called without a question."""
    return (server_file(_SETTINGS, server_table(words, trust=True)),)


def find_problems(env: ClientEnvironment, run: Callable[[list[str]], str]) -> list[SetupProblem]:
    """Return everything that keeps our hooks from being called, or from refusing when they fail."""
    settings, problems = checks.read_settings(env.path(_SETTINGS))
    content = wanted_files(placeholder_command)[0].content
    problems += checks.shared_layout_problems(_TITLE, _SETTINGS, BEFORE_TOOL, settings, content)
    names = {str(hook.get("name") or hook["command"]) for _, _, hook in checks.our_hooks(settings)}
    problems += checks.switched_off(_TITLE, hook_files(env), lambda found: _off_key(found, names))
    problems += _trust_problems(env)
    version = checks.installed_version(env, "gemini", run)
    if checks.is_older(version, _HOOKS_ON):
        what = f"{_TITLE} {version} runs no hooks by itself"
        problems.append(SetupProblem(what=what, hint="update Gemini CLI"))
    return [*problems, checks.timeout_problem(_TITLE)]


def _home(env: ClientEnvironment) -> str:
    return os.path.join(env.variables.get("GEMINI_CLI_HOME") or env.home, ".gemini")


def hook_files(env: ClientEnvironment) -> list[str]:
    """Return the files that Gemini CLI reads hooks from, whether they exist or not."""
    system = env.variables.get("GEMINI_CLI_SYSTEM_SETTINGS_PATH") or f"{_SYSTEM}/settings.json"
    user = os.path.join(_home(env), "settings.json")
    return [user, env.path(_SETTINGS), system, f"{_SYSTEM}/system-defaults.json"]


def _off_key(settings: Mapping[str, Any], names: set[str]) -> str:
    """Return the key that switches our hooks off, if one does."""
    if checks.get(settings, "hooksConfig", "enabled") is False:
        return "hooksConfig.enabled"
    listed = map(str, checks.items(checks.get(settings, "hooksConfig", "disabled")))
    return "" if names.isdisjoint(listed) else "hooksConfig.disabled"


def _trust_problems(env: ClientEnvironment) -> list[SetupProblem]:
    """Without trust in the folder none of its settings are read, and no hooks."""
    wanted = env.variables.get("GEMINI_CLI_TRUST_WORKSPACE", "")
    if env.variables.get("GEMINI_RESTRICTED_MODE") == "true" or wanted == "false":
        hint = "take GEMINI_RESTRICTED_MODE and GEMINI_CLI_TRUST_WORKSPACE out of the environment"
        return [SetupProblem(what=f"{_TITLE} is told not to trust this folder", hint=hint)]
    user = checks.read_settings(os.path.join(_home(env), "settings.json"))[0]
    is_asked = checks.get(user, "security", "folderTrust", "enabled") is not False
    listed = env.variables.get("GEMINI_CLI_TRUSTED_FOLDERS_PATH")
    trusted = checks.folder_trust(listed or os.path.join(_home(env), "trustedFolders.json"), env.root)
    if wanted == "true" or not is_asked or trusted:
        return []
    hint = "start `gemini` here and trust the folder, with /permissions if it does not ask"
    if trusted is None:
        # A run without a terminal ends at once then, and one with a terminal asks first.
        return [SetupProblem(what=f"{_TITLE} does not trust this folder yet", hint=hint, is_open=False)]
    return [SetupProblem(what=f"{_TITLE} does not trust this folder, so it reads no hooks here", hint=hint)]
