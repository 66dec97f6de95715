"""`landlane role show`: what a role may do here."""

from __future__ import annotations

from landlane.clients.registry import permissions_for
from landlane.roles.built_in import find_role
from landlane.roles.restrictions import denied_paths, look_around, restrictions
from landlane.roles.to_json import restrictions_json, role_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command_call import CommandCall
    from landlane.roles.model import Role
    from landlane.roles.restrictions import Line, Standing


def show(call: CommandCall, role: str, **options: Any) -> int:
    """Show what one role restricts here."""
    repo = call.repo
    client = str(options.get("for") or "")
    found = find_role(repo.settings, role)
    denied = denied_paths(found, repo.settings)
    permissions = permissions_for(client, found, denied) if client else None
    standing = look_around(repo.checkout, repo.checkout.home_checkout, found, client)
    lines = restrictions(found, repo.settings, client, standing)
    answer = {"ok": True, "role": role_json(found), **restrictions_json(lines, standing, permissions)}
    if client:
        answer["client"] = client
    call.terminal.answer(answer, _in_words(call, found, lines, standing, client))
    return 0


def _in_words(call: CommandCall, role: Role, lines: list[Line], standing: Standing, client: str) -> str:
    rows = [[line.capability, line.verdict, line.what, ", ".join(line.guards) or "-"] for line in lines]
    title = f"{role.name}: {role.summary}" + (f" (for {client})" if client else "")
    text = call.terminal.table(title, ["to", "verdict", "what", "held by"], rows)
    left = [f"{line.capability}: {line.open}" for line in lines if line.open]
    if client:
        left.append("client settings: they hold where it is started with them; --json shows them")
    if client and not standing.hook:
        left.append(
            f"client hook: it does not stand ({standing.hook_trouble}); `landlane init --client {client}`"
        )
    if not client:
        left.append("client hook: `--for CLIENT` tells whether it stands")
    if not standing.git_hooks:
        left.append("git hooks: they are not set up; `landlane init` does")
    if not standing.kernel:
        left.append("kernel: neither bubblewrap nor Landlock works here")
    return f"{text}\n\nnot restricted:\n" + "\n".join(f"  {line}" for line in left)
