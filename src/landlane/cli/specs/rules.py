"""The commands about the rules, as part of the table of commands."""

from __future__ import annotations

from landlane.cli.specs.model import Argument, Command, Option

RULES_COMMANDS: tuple[Command, ...] = (
    Command(
        path="rules",
        handler="rules:show",
        summary="The rules, their version, and who has not read the newest.",
        examples=("landlane rules", "landlane rules --json"),
        details=(
            "The rules are read from RULES.md in the main checkout, or the file that [rules] file names.\n"
            "A version is told by their content."
        ),
    ),
    Command(
        path="rules ack",
        handler="rules:acknowledge",
        summary="Say that you have read the rules; exit 4 when the version named is not the newest.",
        arguments=(Argument(name="version", help="the version that you read", is_optional=True),),
        examples=("landlane rules ack --as ann", "landlane rules ack 3f2a91c07b4d"),
    ),
    Command(
        path="rules report",
        handler="rules:report",
        summary="Which rules are broken most, and by whom: the violations that guards found.",
        options=(Option(name="--since", help="only what was caught in so long", metavar="7d"),),
        examples=("landlane rules report", "landlane rules report --since 7d --json"),
    ),
)
