"""How Claude Code is set up: hooks in the checkout's local settings, and what would keep them from firing."""

from __future__ import annotations

import os

from landlane.clients.claude.hook import TITLE
from landlane.clients.claude.tools import EDITS, READS, SHELLS
from landlane.clients.detect import (
    MEND,
    is_older,
    is_there,
    load,
    located,
    main_checkout,
    our_hooks,
    program,
    release,
)
from landlane.clients.hook_command import SECONDS, ours
from landlane.clients.setup_checks import layout_troubles
from landlane.clients.setup_model import JSON, Canary, ClientFile, SetupProblem
from landlane.clients.shared_hook_format import Group, hooks_layout
from landlane.errors import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from landlane.clients.setup_model import ClientEnvironment


__all__ = ["TITLE", "canary", "hook_files", "is_used", "mcp_wanted", "troubles", "version", "wanted"]

# Our paths are this machine's own, so they go into the file that stays out of the repository. Claude Code
# reads it in the linked worktrees of a checkout too.
SETTINGS = ".claude/settings.local.json"
SERVERS = ".mcp.json"

_MANAGED = "/etc/claude-code"
_FAIL_CLOSED = (2, 1, 295)  # since then `onFailure` is obeyed; before, it is taken without a word

_GUARDED_TOOLS = "|".join([*EDITS, *SHELLS])
# Reading is noted, and who calls a tool of ours: the call itself does not tell one subagent from another.
_READING_TOOLS = "|".join([*READS, "mcp__landlane__.*"])
_TOLD = (
    "SessionStart",
    "UserPromptSubmit",
    "PostToolUse",
    "PostToolUseFailure",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "SessionEnd",
)


def is_used(place: ClientEnvironment) -> bool:
    """Whether Claude Code is on this machine or in this checkout."""
    return is_there(place, "claude", ".claude", "~/.claude", "~/.claude.json")


def version(place: ClientEnvironment, run: Callable[..., str]) -> str:
    """The release of Claude Code that would run here; empty when none would."""
    found = program(place, "claude")
    return release(run([found, "--version"])) if found else ""


def wanted(command: Callable[[str, bool], str]) -> tuple[ClientFile, ...]:
    """Our hooks, where Claude Code reads them."""
    closed = {"onFailure": "block"}
    guard = command("PreToolUse", True)
    groups = [Group(event=event, command=command(event, False), timeout=SECONDS) for event in _TOLD]
    groups += [
        Group(event="PreToolUse", command=guard, timeout=SECONDS, matcher=_GUARDED_TOOLS, extra=closed),
        Group(
            event="PreToolUse",
            command=command("PreToolUse", False),
            timeout=SECONDS,
            matcher=_READING_TOOLS,
        ),
        Group(event="ConfigChange", command=command("ConfigChange", True), timeout=SECONDS, extra=closed),
    ]
    why = "sessions begin, edits are checked, messages arrive"
    return (ClientFile(path=SETTINGS, form=JSON, content=hooks_layout(groups), why=why),)


def mcp_wanted(words: list[str]) -> tuple[ClientFile, ...]:
    """Our server in the project's list, and the leave to start it and to call its tools without asking."""
    why = "its model can claim, take tasks and land through tools"
    server = {"mcpServers": {"landlane": {"command": words[0], "args": words[1:]}}}
    leave = {"enabledMcpjsonServers": ["landlane"], "permissions": {"allow": ["mcp__landlane"]}}
    return (
        ClientFile(path=SERVERS, form=JSON, content=server, why=why),
        ClientFile(path=SETTINGS, form=JSON, content=leave, why=why),
    )


def troubles(place: ClientEnvironment, run: Callable[..., str]) -> list[SetupProblem]:
    """Everything that keeps our hooks from firing, or from refusing when they fail."""
    path = os.path.join(main_checkout(place.root), SETTINGS)
    found = _switched_off(place, path)
    try:
        settings = load(path)
    except Malformed as problem:
        return [*found, SetupProblem(what=problem.message, hint=problem.hint)]
    found += layout_troubles(TITLE, SETTINGS, "PreToolUse", settings, wanted(ours)[0].content)
    if any(
        event == "PreToolUse" and not _is_closed(matcher, hook)
        for event, matcher, hook in our_hooks(settings)
    ):
        found.append(
            SetupProblem(what=f"{SETTINGS} lets edits pass when our hook fails", hint=MEND, is_open=False)
        )
    release_here = version(place, run)
    if is_older(release_here, _FAIL_CLOSED):
        what = f"Claude Code {release_here} lets an edit pass when a hook fails"
        found.append(SetupProblem(what=what, hint="update Claude Code to 2.1.295 or later", is_open=False))
    return found


def _is_closed(matcher: str, hook: Mapping[str, Any]) -> bool:
    return matcher == _READING_TOOLS or hook.get("onFailure") == "block"


def hook_files(place: ClientEnvironment) -> list[str]:
    """Return the files that Claude Code reads hooks from, whether they exist or not."""
    home = place.environment.get("CLAUDE_CONFIG_DIR") or located(place, "~/.claude")
    return [
        os.path.join(home, "settings.json"),
        located(place, ".claude/settings.json"),
        located(place, SETTINGS),
        os.path.join(main_checkout(place.root), SETTINGS),
        *_managed(),
    ]


def _switched_off(place: ClientEnvironment, path_of_ours: str) -> list[SetupProblem]:
    """Settings that switch all hooks off, ours with them."""
    found: list[SetupProblem] = []
    for path in dict.fromkeys(hook_files(place)):
        try:
            settings = load(path)
        except Malformed as problem:
            if path != path_of_ours:
                found.append(SetupProblem(what=problem.message, hint=problem.hint, is_open=False))
            continue
        if settings.get("disableAllHooks") is True:
            hint = f"take `disableAllHooks` out of {path}"
            found.append(SetupProblem(what="Claude Code's hooks are switched off", hint=hint))
        if path.startswith(_MANAGED) and settings.get("allowManagedHooksOnly") is True:
            hint = f"ask whoever manages {path} to allow this project's hooks"
            found.append(SetupProblem(what="Claude Code runs managed hooks only", hint=hint))
    return found


def _managed() -> list[str]:
    """The files by which an organisation rules this machine."""
    drops = os.path.join(_MANAGED, "managed-settings.d")
    try:
        names = sorted(name for name in os.listdir(drops) if name.endswith(".json"))
    except OSError:
        names = []
    return [os.path.join(_MANAGED, "managed-settings.json"), *(os.path.join(drops, name) for name in names)]


def canary(kind: str, cwd: str, path: str, session: str, agent: str) -> Canary:
    """An edit or a shell call as Claude Code would announce it."""
    tools: dict[str, tuple[str, dict[str, Any]]] = {
        "edit": ("Edit", {"file_path": path, "old_string": "a", "new_string": "b", "replace_all": False}),
        "shell": ("Bash", {"command": f"echo x > {path}", "description": "canary"}),
    }
    name, given = tools[kind]
    payload: dict[str, Any] = {
        "session_id": session,
        "transcript_path": "",
        "cwd": cwd,
        "permission_mode": "acceptEdits",
        "hook_event_name": "PreToolUse",
        "tool_name": name,
        "tool_input": given,
        "tool_use_id": "toolu_canary",
    }
    if agent:
        payload |= {"agent_id": agent, "agent_type": "general-purpose"}
    return Canary(word="PreToolUse", payload=payload, environment={"CLAUDE_PROJECT_DIR": cwd})
