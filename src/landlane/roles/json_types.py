"""The types of roles in JSON answers."""

from __future__ import annotations

from typing import Any, TypedDict

from landlane.roles.model import Safety
from landlane.roles.restrictions import RoleVerdict


class RoleJson(TypedDict):
    """What a role may do; `connects` is null if it may connect anywhere."""

    name: str
    summary: str
    safety: Safety
    tools: list[str]
    writes: list[str]
    denies: list[str]
    verbs: list[str]
    protected: bool
    connects: list[int] | None
    unix_sockets: bool
    udp: bool


class RestrictionJson(TypedDict):
    """Whether a role has a capability, the guards that enforce that, and what stays open."""

    capability: str
    verdict: RoleVerdict
    what: str
    guards: list[str]
    open: str | None


class ActiveGuardsJson(TypedDict):
    """The guards that are active here."""

    client_hook: bool
    client_hook_trouble: str | None
    git_hooks: bool
    kernel: str | None


class PermissionsJson(TypedDict):
    """What a coding client is started with; `settings` are in the client's own format."""

    arguments: list[str]
    settings: dict[str, Any]
    settings_file: str | None
    environment: dict[str, str]


class RestrictionsJson(TypedDict):
    """What a role restricts, and by which guards."""

    restrictions: list[RestrictionJson]
    guards: ActiveGuardsJson
    started_with: PermissionsJson | None
