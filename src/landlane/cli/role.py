"""The commands for roles: role list, role show."""

from __future__ import annotations

from landlane.clients.registry import permissions_for
from landlane.roles.model import find_role, roles_of
from landlane.roles.restrictions import denied_paths, find_active_guards, list_restrictions
from landlane.roles.to_json import restrictions_json, role_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import CommandCall
    from landlane.roles.model import Role
    from landlane.roles.restrictions import ActiveGuards, Restriction


def list_all(call: CommandCall) -> int:
    """Show every role."""
    roles = roles_of(call.repo.settings)
    rows = [[role.name, _writes(role), ", ".join(role.verbs) or "-", role.summary] for role in roles.values()]
    table = call.terminal.table(f"{len(roles)} roles", ["role", "writes", "may", "summary"], rows)
    return call.terminal.answer({"ok": True, "roles": [role_json(role) for role in roles.values()]}, table)


def _writes(role: Role) -> str:
    if role.is_read_only:
        return "nothing"
    return ", ".join([*role.writes, *(f"not {denied}" for denied in role.denies)])


def show(call: CommandCall, role: str, for_: str) -> int:
    """Show what one role restricts here."""
    repo = call.repo
    client = for_
    found = find_role(repo.settings, role)
    denied = denied_paths(found, repo.settings)
    permissions = permissions_for(client, found, denied) if client else None
    active = find_active_guards(repo.checkout, repo.checkout.home_checkout, found, client)
    lines = list_restrictions(found, repo.settings, client, active)
    answer = {"ok": True, "role": role_json(found), **restrictions_json(lines, active, permissions)}
    if client:
        answer["client"] = client
    return call.terminal.answer(answer, _restrictions_text(call, found, lines, active, client))


def _restrictions_text(
    call: CommandCall, role: Role, lines: list[Restriction], active: ActiveGuards, client: str
) -> str:
    rows = [[line.capability, line.verdict, line.what, ", ".join(line.guards) or "-"] for line in lines]
    title = f"{role.name}: {role.summary}" + (f" (for {client})" if client else "")
    text = call.terminal.table(title, ["to", "verdict", "what", "held by"], rows)
    unrestricted = [f"{line.capability}: {line.open}" for line in lines if line.open]
    if client:
        unrestricted.append("client settings: they hold where it is started with them; --json shows them")
    if client and not active.hook:
        unrestricted.append(
            f"client hook: it does not stand ({active.hook_trouble}); `landlane init --client {client}`"
        )
    if not client:
        unrestricted.append("client hook: `--for CLIENT` tells whether it stands")
    if not active.git_hooks:
        unrestricted.append("git hooks: they are not set up; `landlane init` does")
    if not active.kernel:
        unrestricted.append("kernel: neither bubblewrap nor Landlock works here")
    return f"{text}\n\nnot restricted:\n" + "\n".join(f"  {line}" for line in unrestricted)
