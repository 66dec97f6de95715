"""Which process a hook was called by: the coding client, behind the shells that it starts hooks with."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.platform.process_identity import Process


_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "fish", "env", "timeout", "busybox", "ash"))
# What a person's terminals hang from. Taken for a client, all that is typed there would be the client's.
_HOSTS = frozenset(("tmux: server", "screen", "SCREEN", "sshd", "sshd-session", "login", "systemd", "init"))


def client_process(chain: Sequence[Process], told_pid: int = 0) -> Process | None:
    """The nearest parent that is no shell, or the one the client says it is if that is among them."""
    for process in chain:
        if process.pid == told_pid:
            return process
    for process in chain:
        name = _name(process.pid)
        if name not in _SHELLS:
            return None if process.pid <= 1 or name in _HOSTS else process
    return None


def _name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""
