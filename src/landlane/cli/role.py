"""The commands for roles: role list, role show."""

from __future__ import annotations

from landlane.cli.table import align
from landlane.cli.terminal import in_one_line
from landlane.clients.model import CLIENTS
from landlane.clients.registry import permissions_for
from landlane.roles.model import find_role, roles_of
from landlane.roles.restrictions import denied_paths, find_active_guards, list_restrictions
from landlane.roles.text import enforcement_text, may_text, not_text, safety_text, writes_text
from landlane.roles.to_json import restrictions_json, role_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import CommandCall
    from landlane.roles.model import Role
    from landlane.roles.restrictions import ActiveGuards, Restriction


def list_all(call: CommandCall) -> int:
    """Show every role."""
    roles = roles_of(call.repo.settings)
    rows = [
        [role.name, role.safety, writes_text(role), ", ".join(role.verbs) or "–", role.summary]
        for role in roles.values()
    ]
    table = call.terminal.table("", ["role", "safety", "writes", "may", "for"], rows, cut="FOR")
    answer = {"ok": True, "roles": [role_json(role) for role in roles.values()]}
    return call.terminal.answer(answer, table, quiet="\n".join(roles))


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
    return call.terminal.answer(answer, _role_text(call, found, lines, active, client))


def _role_text(
    call: CommandCall, role: Role, restrictions: list[Restriction], active: ActiveGuards, client: str
) -> str:
    title = CLIENTS[client].title if client else ""
    lines = [f"{role.name}: {role.summary}" + (f" (in {title})" if title else "")]
    lines.append(f"  safety    {safety_text(role)}")
    lines.append(f"  ✓ may     {may_text(restrictions)}")
    rows = [(not_text(role, one), enforcement_text(one, title)) for one in restrictions]
    for number, line in enumerate(align([cells for cells in rows if cells[0]], cut=0)):
        lines.append(f"  {'✗ not  ' if not number else '       '} {line}")
    lines += _guard_lines(active, client)
    if call.terminal.is_verbose:
        lines += ["", "What stays possible"]
        lines += [f"  {one.capability}: {one.open}" for one in restrictions if one.open]
    return "\n".join(map(in_one_line, lines))


def _guard_lines(active: ActiveGuards, client: str) -> list[str]:
    """Return what would enforce a role but is not active here, each with its remedy."""
    lines: list[str] = []
    if client and not active.hook:
        title = CLIENTS[client].title
        lines.append(
            f"! the hook of {title} is not active ({active.hook_trouble}): landlane init --client {client}"
        )
    if not active.git_hooks:
        lines.append("! the git hooks are not installed: landlane init")
    if not active.kernel:
        lines.append("! no sandbox works here; see why: landlane doctor")
    return lines
