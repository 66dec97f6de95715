"""Roles as JSON, the same for the command line, the API and MCP."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.clients.worker_adapter import Permissions
    from landlane.roles.json_types import PermissionsJson, RestrictionsJson, RoleJson
    from landlane.roles.model import Role
    from landlane.roles.restrictions import ActiveGuards, Restriction


def role_json(role: Role) -> RoleJson:
    """Return a role as JSON."""
    return {
        "name": role.name,
        "summary": role.summary,
        "safety": role.safety,
        "tools": list(role.tools),
        "writes": list(role.writes),
        "denies": list(role.denies),
        "verbs": list(role.verbs),
        "protected": role.may_change_protected,
        "connects": None if role.connects is None else list(role.connects),
        "unix_sockets": role.unix_sockets,
        "udp": role.udp,
    }


def restrictions_json(
    lines: Sequence[Restriction], active: ActiveGuards, permissions: Permissions | None
) -> RestrictionsJson:
    """Return what a role restricts, and by which guards, as JSON."""
    return {
        "restrictions": [
            {
                "capability": one.capability,
                "verdict": one.verdict,
                "what": one.what,
                "guards": list(one.guards),
                "open": one.open or None,
            }
            for one in lines
        ],
        "guards": {
            "client_hook": active.hook,
            "client_hook_trouble": active.hook_trouble or None,
            "git_hooks": active.git_hooks,
            "kernel": active.kernel or None,
        },
        "started_with": None if permissions is None else _permissions_json(permissions),
    }


def _permissions_json(permissions: Permissions) -> PermissionsJson:
    return {
        "arguments": list(permissions.arguments),
        "settings": dict(permissions.settings),
        "settings_file": permissions.settings_file or None,
        "environment": dict(permissions.environment),
    }
