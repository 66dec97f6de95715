"""Set up Claude Code: hooks in the checkout's local settings, and what would keep them from being called."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from landlane.clients.claude.hook import BEFORE_TOOL
from landlane.clients.claude.tools import TOOLS
from landlane.clients.hook_command import SECONDS, placeholder_command
from landlane.clients.model import CLIENTS
from landlane.clients.setup_checks import (
    RUN_INIT,
    all_hooks_off,
    files_in,
    installed_version,
    is_older,
    load_json,
    main_checkout,
    our_hooks,
    shared_layout_problems,
)
from landlane.clients.setup_files import (
    ClientEnvironment,
    ClientFile,
    HookEntry,
    SetupProblem,
    hooks_file,
    hooks_table,
    server_file,
    server_table,
)
from landlane.errors import Malformed

_TITLE = CLIENTS["claude"].title
# Our paths are valid on this machine only, so they go into the file that stays out of the repository. Claude
# Code also reads it in the linked worktrees of a checkout.
SETTINGS = ".claude/settings.local.json"
_SERVERS = ".mcp.json"

_MANAGED = "/etc/claude-code"  # by which an organisation configures this machine
_FAIL_CLOSED = (2, 1, 295)  # earlier versions accept `onFailure` and ignore it

_GUARDED_TOOLS = "|".join(TOOLS.guarded)
# Reads are recorded, and who calls a tool of ours: the call itself does not tell one subagent from another.
_READING_TOOLS = "|".join([*TOOLS.reads, "mcp__landlane__.*"])
_OTHER_EVENTS = (
    *("SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop"),
    *("SubagentStart", "SubagentStop", "SessionEnd"),
)


def wanted_files(command: Callable[[str, bool], str]) -> tuple[ClientFile, ...]:
    """Return our hooks, in the file where Claude Code reads them."""
    closed = {"onFailure": "block"}

    def entry(event: str, is_guard: bool, **more: Any) -> HookEntry:
        return HookEntry(event=event, command=command(event, is_guard), timeout=SECONDS, **more)

    entries = [
        *(entry(event, False) for event in _OTHER_EVENTS),
        entry(BEFORE_TOOL, True, matcher=_GUARDED_TOOLS, extra=closed),
        entry(BEFORE_TOOL, False, matcher=_READING_TOOLS),
        entry("ConfigChange", True, extra=closed),
    ]
    return hooks_file(SETTINGS, hooks_table(entries))


def server_files(words: list[str]) -> tuple[ClientFile, ...]:
    """Return our server in the project's list, and the permission to start it and to call its tools."""
    allowed = {"enabledMcpjsonServers": ["landlane"], "permissions": {"allow": ["mcp__landlane"]}}
    return (server_file(_SERVERS, server_table(words)), server_file(SETTINGS, allowed))


def find_problems(env: ClientEnvironment, run: Callable[[list[str]], str]) -> list[SetupProblem]:
    """Return everything that keeps our hooks from being called, or from refusing when they fail."""
    path = os.path.join(main_checkout(env.root), SETTINGS)
    problems = _switched_off(env, path)
    try:
        settings = load_json(path)
    except Malformed as error:
        return [*problems, SetupProblem(what=error.message, hint=error.hint)]
    content = wanted_files(placeholder_command)[0].content
    problems += shared_layout_problems(_TITLE, SETTINGS, BEFORE_TOOL, settings, content)
    if any(
        event == BEFORE_TOOL and not _fails_closed(matcher, hook)
        for event, matcher, hook in our_hooks(settings)
    ):
        what = f"{SETTINGS} lets edits pass when our hook fails"
        problems.append(SetupProblem(what=what, hint=RUN_INIT, is_open=False))
    version = installed_version(env, "claude", run)
    if is_older(version, _FAIL_CLOSED):
        what = f"Claude Code {version} lets an edit pass when a hook fails"
        hint = "update Claude Code to 2.1.295 or later"
        problems.append(SetupProblem(what=what, hint=hint, is_open=False))
    return problems


def _fails_closed(matcher: str, hook: Mapping[str, Any]) -> bool:
    return matcher == _READING_TOOLS or hook.get("onFailure") == "block"


def hook_files(env: ClientEnvironment) -> list[str]:
    """Return the files that Claude Code reads hooks from, whether they exist or not."""
    home = env.variables.get("CLAUDE_CONFIG_DIR") or env.path("~/.claude")
    return [
        os.path.join(home, "settings.json"),
        env.path(".claude/settings.json"),
        env.path(SETTINGS),
        os.path.join(main_checkout(env.root), SETTINGS),
        os.path.join(_MANAGED, "managed-settings.json"),
        *files_in(os.path.join(_MANAGED, "managed-settings.d"), ".json"),
    ]


def _switched_off(env: ClientEnvironment, our_path: str) -> list[SetupProblem]:
    """Return the settings that switch all hooks off, ours with them."""
    problems: list[SetupProblem] = []
    for path in dict.fromkeys(hook_files(env)):
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
            hint = f"ask whoever manages {path} to allow this project's hooks"
            problems.append(SetupProblem(what="Claude Code runs managed hooks only", hint=hint))
    return problems
