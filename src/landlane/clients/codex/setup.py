"""How Codex is set up: hooks in the checkout, the trust it wants for them, and what keeps them idle."""

from __future__ import annotations

import json
import os
import shlex

from landlane.clients.codex import tools
from landlane.clients.codex.app_server import ask
from landlane.clients.codex.hook import TITLE
from landlane.clients.detect import (
    MEND,
    is_there,
    load,
    located,
    main_checkout,
    our_hooks,
    program,
    release,
)
from landlane.clients.hook_command import SECONDS, is_ours, ours
from landlane.clients.setup_checks import layout_troubles
from landlane.clients.setup_model import JSON, TOML, Canary, ClientFile, SetupProblem
from landlane.clients.shared_hook_format import Group, hooks_layout
from landlane.errors import LandlaneError, Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from landlane.clients.setup_model import ClientEnvironment


__all__ = [
    "TITLE",
    "canary",
    "distrust",
    "hook_files",
    "is_used",
    "mcp_wanted",
    "troubles",
    "trust",
    "trust_files",
    "version",
    "wanted",
]

HOOKS = ".codex/hooks.json"
SERVERS = ".codex/config.toml"

# A linked worktree takes the hooks of the checkout it belongs to, but only where it has this folder itself,
# be it empty.
WORKTREE_FOLDER = ".codex"

_END_SECONDS = 3  # Codex allows no more at the end of a session
_GUARDED_TOOLS = f"{tools.PATCH}|{tools.SHELL}"
_OWN_TOOLS = "mcp__landlane__.*"
_HANDED_ON = ("LANDLANE_SESSION", "LANDLANE_AGENT", "LANDLANE_STORE", "LANDLANE_RESIDENT")
_TOLD = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SubagentStart", "SubagentStop")
_MAKE_TRUSTED = "run `landlane init` and agree to trust the hooks, or use `/hooks` in Codex"


def is_used(place: ClientEnvironment) -> bool:
    """Whether Codex is on this machine or in this checkout."""
    return is_there(place, "codex", ".codex", "~/.codex")


def version(place: ClientEnvironment, run: Callable[..., str]) -> str:
    """The release of Codex that would run here; empty when none would."""
    found = program(place, "codex")
    return release(run([found, "--version"])) if found else ""


def wanted(command: Callable[[str, bool], str]) -> tuple[ClientFile, ...]:
    """Our hooks, where Codex reads them."""
    groups = [Group(event=event, command=command(event, False), timeout=SECONDS) for event in _TOLD]
    # Codex runs a hook by the user's own shell, which need not understand how a guard's line ends.
    guard = f"/bin/sh -c {shlex.quote(command('PreToolUse', True))}"
    groups += [
        Group(event="PreToolUse", command=guard, timeout=SECONDS, matcher=_GUARDED_TOOLS),
        Group(event="PreToolUse", command=command("PreToolUse", False), timeout=SECONDS, matcher=_OWN_TOOLS),
        Group(event="SessionEnd", command=command("SessionEnd", False), timeout=_END_SECONDS),
    ]
    why = "sessions begin, edits are checked, messages arrive"
    return (ClientFile(path=HOOKS, form=JSON, content=hooks_layout(groups), why=why),)


def mcp_wanted(words: list[str]) -> tuple[ClientFile, ...]:
    """Our server, as Codex reads it in a project that it trusts.

    Without `required` Codex does not wait for a server: in its first turn the tools would be missing. It
    gives a server next to nothing of its environment, and in a sandbox lets nobody approve a call.
    """
    lines = [
        "[mcp_servers.landlane]",
        f"command = {json.dumps(words[0])}",
        f"args = {json.dumps(words[1:])}",
        "required = true",
        'default_tools_approval_mode = "approve"',
        f"env_vars = {json.dumps(_HANDED_ON)}",
    ]
    why = "its model can claim, take tasks and land through tools"
    return (ClientFile(path=SERVERS, form=TOML, content="\n".join(lines), why=why),)


def hook_files(place: ClientEnvironment) -> list[str]:
    """Return the files that Codex reads hooks from, whether they exist or not."""
    folders = [
        _codex_home(place),
        located(place, ".codex"),
        os.path.join(main_checkout(place.root), ".codex"),
    ]
    return [os.path.join(folder, name) for folder in folders for name in ("hooks.json", "config.toml")]


def trust_files(place: ClientEnvironment) -> list[str]:
    """The files that `trust` writes, through Codex itself."""
    return [os.path.join(_codex_home(place), "config.toml")]


def trust(place: ClientEnvironment, run: Callable[..., str]) -> None:
    """Have Codex trust this project and the hooks of ours in it. The user has agreed to it before.

    Raises:
        LandlaneError: Codex does not answer.
    """
    root = main_checkout(place.root)
    if not _is_project_trusted(place, root):
        _write(place, run, "projects", {os.path.realpath(root): {"trust_level": "trusted"}})
    states = {
        str(hook["key"]): {"trusted_hash": hook["currentHash"], "enabled": True}
        for hook in _listed(place, run, root)
        if not _is_live(hook)
    }
    if states:
        _write(place, run, "hooks.state", states)


def distrust(place: ClientEnvironment, run: Callable[..., str]) -> None:
    """Have Codex forget our hooks, while they still stand in their file. The project stays trusted.

    Raises:
        LandlaneError: Codex does not answer.
    """
    edits = [
        {"keyPath": f"hooks.state.{json.dumps(hook['key'])}", "value": None, "mergeStrategy": "replace"}
        for hook in _listed(place, run, main_checkout(place.root))
    ]
    if edits:
        ask(program(place, "codex"), run, "config/batchWrite", {"edits": edits})


def troubles(place: ClientEnvironment, run: Callable[..., str]) -> list[SetupProblem]:
    """Everything that keeps our hooks from firing."""
    root = main_checkout(place.root)
    try:
        settings = load(os.path.join(root, HOOKS))
    except Malformed as problem:
        return [SetupProblem(what=problem.message, hint=problem.hint)]
    found = layout_troubles(TITLE, HOOKS, "PreToolUse", settings, wanted(ours)[0].content)
    if root != place.root and not os.path.isdir(located(place, WORKTREE_FOLDER)):
        what = f"Codex reads no hooks in {place.root}, which has no folder {WORKTREE_FOLDER}"
        found.append(SetupProblem(what=what, hint=f"make that folder, or {MEND} there"))
    if next(our_hooks(settings), None) and program(place, "codex"):
        found += _trust_troubles(place, run, root)
    return found


def _trust_troubles(place: ClientEnvironment, run: Callable[..., str], root: str) -> list[SetupProblem]:
    """What Codex itself says of our hooks."""
    if _feature_is_off(place):
        hint = f"take `hooks = false` out of {trust_files(place)[0]}"
        return [SetupProblem(what="Codex's hooks are switched off", hint=hint)]
    if not _is_project_trusted(place, root):
        return [
            SetupProblem(
                what=f"Codex does not trust {root}, and so runs none of its hooks", hint=_MAKE_TRUSTED
            )
        ]
    try:
        listed = _listed(place, run, root)
    except LandlaneError as problem:
        return [SetupProblem(what=problem.message, hint=problem.hint)]  # nobody knows whether it trusts them
    if not listed:
        return [
            SetupProblem(
                what="Codex lists none of our hooks", hint="look for its reason with `/hooks` in Codex"
            )
        ]
    idle = [hook for hook in listed if not _is_live(hook)]
    is_open = any(hook.get("eventName") == "preToolUse" for hook in idle)
    words = sorted(
        {"disabled" if hook.get("enabled") is False else str(hook.get("trustStatus")) for hook in idle}
    )
    what = f"Codex skips {len(idle)} of our {len(listed)} hooks: {', '.join(words)}"
    return [SetupProblem(what=what, hint=_MAKE_TRUSTED, is_open=is_open)] if idle else []


def _listed(place: ClientEnvironment, run: Callable[..., str], root: str) -> list[Mapping[str, Any]]:
    """Our hooks as Codex knows them in this checkout."""
    answer = ask(program(place, "codex"), run, "hooks/list", {"cwds": [root]})
    return [
        hook
        for folder in answer.get("data", [])
        for hook in folder.get("hooks", [])
        if is_ours(str(hook.get("command")))
    ]


def _is_live(hook: Mapping[str, Any]) -> bool:
    return hook.get("enabled") is not False and hook.get("trustStatus") in ("trusted", "managed")


def _write(place: ClientEnvironment, run: Callable[..., str], key: str, item: dict[str, Any]) -> None:
    edit = {"keyPath": key, "value": item, "mergeStrategy": "upsert"}
    ask(program(place, "codex"), run, "config/batchWrite", {"edits": [edit]})


def _codex_home(place: ClientEnvironment) -> str:
    return place.environment.get("CODEX_HOME") or located(place, "~/.codex")


def _config(place: ClientEnvironment) -> dict[str, Any]:
    """The user's own settings, as far as they can be read: Codex tells of the rest itself."""
    import tomllib  # noqa: PLC0415 - only when trust is in question

    try:
        with open(trust_files(place)[0], "rb") as file:
            return tomllib.load(file)
    except (OSError, ValueError):
        return {}


def _is_project_trusted(place: ClientEnvironment, root: str) -> bool:
    projects: Mapping[str, Any] = _config(place).get("projects", {})
    keys = (root, os.path.realpath(root))
    return any(projects.get(key, {}).get("trust_level") == "trusted" for key in keys)


def _feature_is_off(place: ClientEnvironment) -> bool:
    features: Mapping[str, Any] = _config(place).get("features", {})
    return features.get("hooks") is False or features.get("codex_hooks") is False


def canary(kind: str, cwd: str, path: str, session: str, agent: str) -> Canary:
    """An edit or a shell call as Codex would announce it."""
    patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** End Patch\n"
    calls = {"edit": (tools.PATCH, patch), "shell": (tools.SHELL, f"echo x > {path}")}
    name, command = calls[kind]
    payload: dict[str, Any] = {
        "session_id": session,
        "turn_id": "canary",
        "transcript_path": None,
        "cwd": cwd,
        "hook_event_name": "PreToolUse",
        "model": "canary",
        "permission_mode": "default",
        "tool_name": name,
        "tool_input": {"command": command},
        "tool_use_id": "call_canary",
    }
    if agent:
        payload |= {"agent_id": agent, "agent_type": "default"}
    return Canary(word="PreToolUse", payload=payload, environment={})
