"""Set up Copilot CLI: our own file of hooks in the checkout, and what could keep it from working."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

from landlane.clients import setup_checks as checks
from landlane.clients.copilot.hook import BEFORE_TOOL, KINDS
from landlane.clients.copilot.tools import TOOLS
from landlane.clients.hook_command import SECONDS, placeholder_command
from landlane.clients.model import CLIENTS
from landlane.clients.setup_files import (
    WHOLE,
    ClientEnvironment,
    ClientFile,
    SetupProblem,
    hooks_file,
    server_file,
    server_table,
)

_TITLE = CLIENTS["copilot"].title
_HOOKS = ".github/hooks/landlane.json"
_SERVERS = ".mcp.json"  # it shares this list with Claude Code

# Copilot also reads Claude's settings, and obeys `disableAllHooks` there; in its user's own settings it
# does not.
_SWITCHES = (
    ".github/copilot/settings.json",
    ".github/copilot/settings.local.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
)


def wanted_files(command: Callable[[str, bool], str]) -> tuple[ClientFile, ...]:
    """Return our hooks, in the file where Copilot CLI reads them."""
    text = json.dumps(_hooks(command), indent=2) + "\n"
    return hooks_file(_HOOKS, text, WHOLE)


def server_files(words: list[str]) -> tuple[ClientFile, ...]:
    """Return our server in the project's list."""
    return (server_file(_SERVERS, server_table(words)),)


def _hooks(command: Callable[[str, bool], str]) -> dict[str, Any]:
    """Return the hooks; a payload names no event, so each command does."""

    def hook(line: str, **more: str) -> dict[str, Any]:
        return {"type": "command", "bash": line, "timeoutSec": SECONDS, **more}

    hooks = {event: [hook(command(event, False))] for event in KINDS}
    # Copilot takes any failure of a hook before a tool for a no, and reading must go on.
    hooks[BEFORE_TOOL] = [
        hook(command(BEFORE_TOOL, True), matcher="|".join(TOOLS.guarded)),
        hook(f"{command(BEFORE_TOOL, False)} || true", matcher="|".join(TOOLS.reads)),
    ]
    return {"version": 1, "hooks": hooks}


def find_problems(env: ClientEnvironment, run: Callable[[list[str]], str]) -> list[SetupProblem]:
    """Return everything that keeps our hooks from being called, or from refusing when they fail."""
    del run
    hooks, problems = checks.read_settings(env.path(_HOOKS))
    wanted = _hooks(placeholder_command)
    problems += checks.flat_layout_problems(_TITLE, _HOOKS, BEFORE_TOOL, hooks, wanted)
    if hooks and hooks.get("version") != 1:
        what = f"{_HOOKS} is of a version that {_TITLE} does not read"
        problems.append(SetupProblem(what=what, hint="delete it"))
    problems += checks.switched_off(_TITLE, map(env.path, _SWITCHES), checks.all_hooks_off)
    return [*problems, *_trust_problems(env), checks.timeout_problem(_TITLE)]


def _home(env: ClientEnvironment) -> str:
    return env.variables.get("COPILOT_HOME") or os.path.join(env.home, ".copilot")


def hook_files(env: ClientEnvironment) -> list[str]:
    """Return the files that Copilot CLI reads hooks from; Claude Code's settings are not among them."""
    folders = (env.path(os.path.dirname(_HOOKS)), f"{_home(env)}/hooks")
    return [path for folder in folders for path in checks.files_in(folder, ".json")]


def _trust_problems(env: ClientEnvironment) -> list[SetupProblem]:
    """In a folder that it does not trust, Copilot runs without its hooks, and does not say so."""
    if env.variables.get("COPILOT_ALLOW_ALL") == "true":
        return []
    config = checks.read_settings(os.path.join(_home(env), "config.json"))[0]
    folders = [*checks.items(config.get("trustedFolders")), *checks.items(config.get("trusted_folders"))]
    if any(checks.is_below(env.root, str(folder)) for folder in folders):
        return []
    hint = "start `copilot` here once and trust the folder for good, or start it with --trust-folder"
    return [SetupProblem(what=f"{_TITLE} does not trust this folder, so it runs no hooks here", hint=hint)]
