"""The commands around coding clients: their hooks by hand."""

from __future__ import annotations

from landlane.cli.specs.model import Argument, Command

HOOK_COMMANDS: tuple[Command, ...] = (
    Command(
        path="hook",
        handler="hook:hook",
        summary="Answer a coding client's hook: its JSON comes on stdin, the answer is in its own form.",
        arguments=(
            Argument(name="client", help="claude, codex, gemini, qwen, copilot, opencode or cursor"),
            Argument(name="word", help="the event, where the client does not tell it", is_optional=True),
        ),
        examples=("landlane hook claude PreToolUse",),
        details=(
            "Clients run the same through a quicker way that `landlane init` writes into their settings.\n"
            "This one is for trying things out, with the client's JSON on its input. Exit 2: refused."
        ),
    ),
)
