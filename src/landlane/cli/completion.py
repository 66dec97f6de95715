"""The command `completion`."""

from __future__ import annotations

from click.shell_completion import get_completion_class

from landlane.cli.click_app import build
from landlane.errors import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command_call import CommandCall


_SHELLS = ("bash", "zsh", "fish")


def completion(call: CommandCall, shell: str) -> int:
    """Print click's completion script for a shell."""
    if shell not in _SHELLS:
        raise Malformed(
            f"there is no completion for {shell[:40]!r}",
            code="UNKNOWN_SHELL",
            hint=f"one of {', '.join(_SHELLS)}",
        )
    kind = get_completion_class(shell)
    assert kind is not None
    # click's BashComplete checks the version by running bash; the script is the same for all versions.
    text = kind.source_template % kind(build(), {}, "landlane", "_LANDLANE_COMPLETE").source_vars()
    call.terminal.answer({"ok": True, "shell": shell, "script": text}, text.strip("\n"))
    return 0
