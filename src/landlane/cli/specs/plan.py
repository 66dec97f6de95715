"""The commands about plans, as part of the table of commands."""

from __future__ import annotations

from landlane.cli.specs.model import Argument, Command

PLAN_COMMANDS: tuple[Command, ...] = (
    Command(
        path="plan check",
        handler="plan:check",
        summary="Show what a plan comes to before anything starts; exit 1 when it cannot be carried out.",
        arguments=(Argument(name="plan", help="a TOML file or a Markdown checklist, - for standard input"),),
        examples=("landlane plan check plan.toml", "landlane plan check PLAN.md --json"),
        details=(
            "Shows the waves of what can run at the same time, the critical path, what is put in sequence\n"
            "and why, duplicates, unknown names, and what it may cost at most. Nothing is changed."
        ),
    ),
)
