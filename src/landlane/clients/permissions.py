"""Roles in the words of each coding client: what to start it with, and what that leaves open.

They are the first of the guards and the weakest: their meaning may change with the client's next release.
What they cannot say is told in `open`, and is left to the hooks, the kernel and the landing check.
"""

from __future__ import annotations

import json

from landlane.errors import Malformed
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Protocol
else:
    Protocol = object

EDIT, SHELL, NETWORK, AGENTS, PATHS = "edit", "shell", "network", "agents", "paths"
_KINDS = (EDIT, SHELL, NETWORK, AGENTS)

# client → kind of tool → the client's own names of the tools of that kind
_TOOLS: dict[str, dict[str, tuple[str, ...]]] = {
    "claude": {
        EDIT: ("Edit", "MultiEdit", "Write", "NotebookEdit"),
        SHELL: ("Bash", "PowerShell", "Monitor"),
        NETWORK: ("WebFetch", "WebSearch"),
        AGENTS: ("Agent", "Task"),
    },
    "gemini": {
        EDIT: ("replace", "write_file"),
        SHELL: ("run_shell_command",),
        NETWORK: ("web_fetch", "google_web_search"),
        AGENTS: ("invoke_agent",),
    },
    "qwen": {
        EDIT: ("edit", "write_file", "notebook_edit"),
        SHELL: ("run_shell_command",),
        NETWORK: ("web_fetch", "web_search"),
        AGENTS: ("agent", "task"),
    },
    "copilot": {EDIT: ("write",), SHELL: ("shell",), NETWORK: ("url",)},
    "opencode": {
        EDIT: ("edit",),
        SHELL: ("bash",),
        NETWORK: ("webfetch", "websearch"),
        AGENTS: ("task",),
    },
    "codex": {},
}
CLIENTS = tuple(_TOOLS)
_NOTHING: Mapping[str, Any] = {}


class RoleTools(Protocol):
    """What a client has to know of a role."""

    @property
    def tools(self) -> tuple[str, ...]:
        """The kinds of tools the role has."""
        ...

    @property
    def is_read_only(self) -> bool:
        """Whether the role may change nothing."""
        ...


@value
class Permissions:
    """What a client is started with. `settings` go into `settings_file`, which lies in its home."""

    arguments: tuple[str, ...] = ()
    settings: Mapping[str, Any] = _NOTHING
    settings_file: str = ""
    environment: Mapping[str, str] = _NOTHING  # type: ignore[assignment]
    closed: tuple[str, ...] = ()  # what the client itself refuses by this
    open: Mapping[str, str] = _NOTHING  # type: ignore[assignment]  # what it does not, and why


def permissions_for(
    client: str, role: RoleTools, denied: Sequence[str] = (), *, is_sandboxed: bool = True
) -> Permissions:
    """How a client is started in a role; `denied` are patterns of paths that the role may not change.

    `is_sandboxed`: it runs in our sandbox, where no client can make one of its own.

    Raises:
        Malformed: nobody knows this client.
    """
    make = _MAKERS.get(client)
    if make is None:
        raise Malformed(
            f"there are no permissions for {client[:40]!r}",
            code="UNKNOWN_CLIENT",
            hint=f"one of {', '.join(CLIENTS)}",
        )
    return make(role, tuple(denied), is_sandboxed)


def _shut(client: str, role: RoleTools) -> dict[str, tuple[str, ...]]:
    """The kinds of tools that a role does not have, with the client's names for them."""
    shut = [kind for kind in _KINDS if kind not in role.tools or (kind == EDIT and role.is_read_only)]
    return {kind: _TOOLS[client][kind] for kind in shut if kind in _TOOLS[client]}


def _names(shut: Mapping[str, tuple[str, ...]]) -> list[str]:
    return [name for names in shut.values() for name in names]


_BY_SHELL = "its web tools are off; what the shell reaches is left to the kernel"
_NO_PATHS = "its settings know no paths: left to its hooks and to the landing check"


def _left_open(
    role: RoleTools, shut: Mapping[str, tuple[str, ...]], paths: str = _NO_PATHS
) -> dict[str, str]:
    left: dict[str, str] = {}
    if SHELL in role.tools and NETWORK in shut:
        left[NETWORK] = _BY_SHELL
    if SHELL in role.tools and EDIT in shut:
        left[SHELL] = "what the shell writes is left to the kernel, its hooks and the landing check"
    if EDIT in role.tools and paths:
        left[PATHS] = paths
    return left


def _claude(role: RoleTools, denied: tuple[str, ...], is_sandboxed: bool) -> Permissions:
    shut = _shut("claude", role)
    may_edit = EDIT not in shut
    paths = [f"Edit({_claude_path(text)})" for text in denied] if may_edit else []
    settings: dict[str, Any] = {"permissions": {"deny": [*_names(shut), *paths]}}
    if is_sandboxed:
        settings["sandbox"] = {"enabled": False}
    words = ["--settings", json.dumps(settings, separators=(",", ":"))]
    if shut:
        words += ["--disallowedTools", ",".join(_names(shut))]
    left = _left_open(role, shut, "only what is denied is told to it, not what the shell writes")
    closed = (*shut, *([PATHS] if paths else []))
    return Permissions(arguments=tuple(words), settings=settings, closed=closed, open=left)


def _claude_path(pattern: str) -> str:
    """A pattern from the root of the folder it works in, as its rules spell that."""
    return pattern if pattern.startswith("**") else f"./{pattern}"


def _codex(role: RoleTools, denied: tuple[str, ...], is_sandboxed: bool) -> Permissions:
    del denied
    is_reader = EDIT not in role.tools or role.is_read_only
    mode = "danger-full-access" if is_sandboxed else "read-only" if is_reader else "workspace-write"
    words = ["--sandbox", mode, "-c", 'approval_policy="never"']
    if NETWORK not in role.tools:
        words += ["-c", 'web_search="disabled"']
    if AGENTS not in role.tools:
        words += ["-c", "features.multi_agent=false"]
    closed = [kind for kind in (AGENTS,) if kind not in role.tools]
    left: dict[str, str] = {}
    if is_reader and is_sandboxed:
        left[EDIT] = "no setting takes its edit tool away; in our sandbox the kernel refuses it"
    elif is_reader:
        closed.append(EDIT)
    if SHELL not in role.tools:
        left[SHELL] = "no setting takes its shell away: left to its hooks and the kernel"
    if NETWORK not in role.tools:
        left[NETWORK] = _BY_SHELL
    if not is_reader:
        left[PATHS] = _NO_PATHS
    return Permissions(arguments=tuple(words), closed=tuple(closed), open=left)


def _gemini(role: RoleTools, denied: tuple[str, ...], is_sandboxed: bool) -> Permissions:
    del denied
    shut = _shut("gemini", role)
    settings: dict[str, Any] = {"tools": {"exclude": _names(shut)}}
    if is_sandboxed:
        settings["tools"]["sandbox"] = False
    return Permissions(
        arguments=("--approval-mode", "yolo" if SHELL in role.tools else "auto_edit"),
        settings=settings,
        settings_file=".gemini/settings.json",
        closed=tuple(shut),
        open=_left_open(role, shut),
    )


def _qwen(role: RoleTools, denied: tuple[str, ...], is_sandboxed: bool) -> Permissions:
    del denied
    shut = _shut("qwen", role)
    settings: dict[str, Any] = {"tools": {"exclude": _names(shut)}}
    if is_sandboxed:
        settings["tools"]["sandbox"] = False
    words = ["--approval-mode", "yolo" if SHELL in role.tools else "auto-edit"]
    for name in _names(shut):
        words += ["--exclude-tools", name]
    return Permissions(
        arguments=tuple(words),
        settings=settings,
        settings_file=".qwen/settings.json",
        closed=tuple(shut),
        open=_left_open(role, shut),
    )


def _copilot(role: RoleTools, denied: tuple[str, ...], is_sandboxed: bool) -> Permissions:
    del denied, is_sandboxed
    shut = _shut("copilot", role)
    words = ["--allow-all-tools"]
    for name in _names(shut):
        words += ["--deny-tool", name]
    left = _left_open(role, shut)
    if AGENTS not in role.tools:
        left[AGENTS] = "no setting takes its subagents away: they are bound as it is"
    return Permissions(arguments=tuple(words), closed=tuple(shut), open=left)


def _opencode(role: RoleTools, denied: tuple[str, ...], is_sandboxed: bool) -> Permissions:
    del is_sandboxed
    shut = _shut("opencode", role)
    kinds: dict[str, Any] = {
        name: "deny" if kind in shut else "allow"
        for kind, names in _TOOLS["opencode"].items()
        for name in names
    }
    has_paths = EDIT not in shut and bool(denied)
    if has_paths:
        kinds["edit"] = {"*": "allow", **dict.fromkeys(denied, "deny")}
    settings = {"permission": kinds}
    left = _left_open(role, shut, "only what is denied is told to it, not what the shell writes")
    return Permissions(
        settings=settings,
        environment={"OPENCODE_CONFIG_CONTENT": json.dumps(settings, separators=(",", ":"))},
        closed=(*shut, *([PATHS] if has_paths else [])),
        open=left,
    )


_MAKERS: dict[str, Callable[[RoleTools, tuple[str, ...], bool], Permissions]] = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "qwen": _qwen,
    "copilot": _copilot,
    "opencode": _opencode,
}
