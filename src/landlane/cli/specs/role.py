"""The commands about roles, as part of the table of commands."""

from __future__ import annotations

from landlane.cli.specs.model import Argument, Command, Option

ROLE_COMMANDS: tuple[Command, ...] = (
    Command(
        path="role list",
        handler="role_list:list_all",
        summary="Every role: what it is for, what it writes and what it may do.",
        examples=("landlane role list", "landlane role list --json"),
        details="Twelve are built in. [roles.NAME] in landlane.toml changes one, or defines another.",
    ),
    Command(
        path="role show",
        handler="role:show",
        summary="What a role really restricts, by which guards, and what is left open.",
        arguments=(Argument(name="role", help="its name"),),
        options=(Option(name="--for", help="for this coding client", metavar="CLIENT"),),
        examples=("landlane role show code", "landlane role show review --for claude"),
    ),
)
