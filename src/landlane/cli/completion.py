"""The command that prints what lets a shell complete `landlane`'s words."""

from __future__ import annotations

from click.shell_completion import get_completion_class

from landlane.cli.click_app import build
from landlane.errors import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command_call import CommandCall


_SHELLS = ("bash", "zsh", "fish")


def completion(call: CommandCall, shell: str) -> int:
    """Print the script of a shell: click wrote it, and it asks `landlane` for every word."""
    if shell not in _SHELLS:
        raise Malformed(
            f"there is no completion for {shell[:40]!r}",
            code="UNKNOWN_SHELL",
            hint=f"one of {', '.join(_SHELLS)}",
        )
    kind = get_completion_class(shell)
    assert kind is not None
    # Bash's own start-up asks for its release, which needs a bash: the text itself is the same for all.
    text = kind.source_template % kind(build(), {}, "landlane", "_LANDLANE_COMPLETE").source_vars()
    call.terminal.answer({"ok": True, "shell": shell, "script": text}, text.strip("\n"))
    return 0
