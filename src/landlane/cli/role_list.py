"""`landlane role list`: every role."""

from __future__ import annotations

from landlane.roles.built_in import roles_of
from landlane.roles.to_json import role_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command_call import CommandCall
    from landlane.roles.model import Role


def list_all(call: CommandCall) -> int:
    """Show every role."""
    roles = roles_of(call.repo.settings)
    rows = [[role.name, _writes(role), ", ".join(role.verbs) or "-", role.summary] for role in roles.values()]
    table = call.terminal.table(f"{len(roles)} roles", ["role", "writes", "may", "summary"], rows)
    call.terminal.answer({"ok": True, "roles": [role_json(role) for role in roles.values()]}, table)
    return 0


def _writes(role: Role) -> str:
    if role.is_read_only:
        return "nothing"
    return ", ".join([*role.writes, *(f"not {denied}" for denied in role.denies)])
