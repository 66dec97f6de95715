"""Which process called: the coding client behind a hook, and whether a person is at the terminal."""

from __future__ import annotations

import os
import sys

from landlane.clients.model import CLIENT_VARIABLES
from landlane.platform.process import read_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.platform.process import Process


_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "fish", "env", "timeout", "busybox", "ash"))
# The parents of a person's terminals. If one of them counted as a client, so would everything typed there.
_TERMINAL_HOSTS = frozenset(
    ("tmux: server", "screen", "SCREEN", "sshd", "sshd-session", "login", "systemd", "init")
)


def client_process(chain: Sequence[Process], claimed_pid: int = 0) -> Process | None:
    """Return the nearest parent that is not a shell, or the one that the client claims to be."""
    for process in chain:
        if process.pid == claimed_pid:
            return process
    for process in chain:
        name = read_name(process.pid)
        if name not in _SHELLS:
            return None if process.pid <= 1 or name in _TERMINAL_HOSTS else process
    return None


def why_not_a_person() -> str:
    """Return why no person sits at the terminal of this process; empty when one does."""
    if name := next((name for name in CLIENT_VARIABLES if name in os.environ), ""):
        return f"this terminal belongs to an agent: {name} is set"
    if not (os.isatty(0) and sys.stderr is not None and os.isatty(2)):
        return "there is no terminal here"
    return ""
