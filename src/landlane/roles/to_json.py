"""Roles as the JSON that every door answers with."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.clients.permissions import Permissions
    from landlane.roles.model import Role
    from landlane.roles.restrictions import Line, Standing


def role_json(role: Role) -> dict[str, Any]:
    """A role as every door shows it."""
    return {
        "name": role.name,
        "summary": role.summary,
        "tools": list(role.tools),
        "writes": list(role.writes),
        "denies": list(role.denies),
        "verbs": list(role.verbs),
        "protected": role.may_change_protected,
        "connects": None if role.connects is None else list(role.connects),
        "unix_sockets": role.unix_sockets,
        "udp": role.udp,
    }


def restrictions_json(lines: Sequence[Line], standing: Standing, told: Permissions | None) -> dict[str, Any]:
    """What a role really restricts, and by which guards."""
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
            "client_hook": standing.hook,
            "client_hook_trouble": standing.hook_trouble or None,
            "git_hooks": standing.git_hooks,
            "kernel": standing.kernel or None,
        },
        "started_with": None if told is None else _permissions_json(told),
    }


def _permissions_json(told: Permissions) -> dict[str, Any]:
    return {
        "arguments": list(told.arguments),
        "settings": dict(told.settings),
        "settings_file": told.settings_file or None,
        "environment": dict(told.environment),
    }
