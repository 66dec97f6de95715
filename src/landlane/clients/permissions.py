"""Roles as permissions of a coding client: what to start it with, and what that leaves open.

They are the first and weakest of the guards: their meaning may change with the client's next release. What a
client cannot restrict is listed in `open`, and is left to the hooks, the kernel and the landing check.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from landlane.clients.model import AGENTS, EDIT, NETWORK, SHELL, TOOL_KINDS, ClientTools
from landlane.values import value

__all__ = ["AGENTS", "EDIT", "NETWORK", "PATHS", "SHELL", "Permissions", "RoleTools"]

PATHS = "paths"
_NOTHING: Mapping[str, Any] = {}

BY_SHELL = "its web tools are off; what the shell reaches is left to the kernel"
NO_PATHS = "its settings know no paths: left to its hooks and to the landing check"
ONLY_DENIED = "only what is denied is told to it, not what the shell writes"


class RoleTools(Protocol):
    """What a client has to know about a role."""

    @property
    def tools(self) -> tuple[str, ...]: ...
    @property
    def is_read_only(self) -> bool: ...


@value
class Permissions:
    """What a client is started with. `settings` go into `settings_file`, which lies in its home."""

    arguments: tuple[str, ...] = ()
    settings: Mapping[str, Any] = _NOTHING
    settings_file: str = ""
    environment: Mapping[str, str] = _NOTHING
    closed: tuple[str, ...] = ()  # what the client itself refuses by this
    open: Mapping[str, str] = _NOTHING  # what it does not, and why


def excluded_kinds(role: RoleTools) -> list[str]:
    """Return the kinds of tools that a role does not have."""
    return [kind for kind in TOOL_KINDS if kind not in role.tools or (kind == EDIT and role.is_read_only)]


def excluded_tools(role: RoleTools, tools: ClientTools) -> dict[str, tuple[str, ...]]:
    """Return the tools of a client that a role does not have, by their kind."""
    return {kind: names for kind in excluded_kinds(role) if (names := tools.of_kind(kind))}


def left_open(role: RoleTools, excluded: Sequence[str], paths: str = NO_PATHS) -> dict[str, str]:
    """Return what a client does not refuse although the role has no such tools, and why."""
    left: dict[str, str] = {}
    if SHELL in role.tools and NETWORK in excluded:
        left[NETWORK] = BY_SHELL
    if SHELL in role.tools and EDIT in excluded:
        left[SHELL] = "what the shell writes is left to the kernel, its hooks and the landing check"
    if EDIT in role.tools:
        left[PATHS] = paths
    return left


def exclude_by_settings(
    role: RoleTools, tools: ClientTools, is_sandboxed: bool, *, settings_file: str, approval: str
) -> Permissions:
    """Return the permissions for clients that exclude tools in their settings, as Gemini and Qwen do."""
    excluded = excluded_tools(role, tools)
    names = [name for group in excluded.values() for name in group]
    settings: dict[str, Any] = {"tools": {"exclude": names}}
    if is_sandboxed:
        settings["tools"]["sandbox"] = False
    return Permissions(
        arguments=("--approval-mode", "yolo" if SHELL in role.tools else approval),
        settings=settings,
        settings_file=settings_file,
        closed=tuple(excluded),
        open=left_open(role, tuple(excluded)),
    )
