"""Trails: the last commands of a session and how they ended, as its client's hooks tell of them.

Like a sign of life this is not journaled; what is handed over takes a copy along.
"""

from __future__ import annotations

from landlane.store import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from landlane.repository import Repository
    from landlane.store.interface import Snapshot, Transaction

_NOUN = "trail"
_MOST = 40
_LONGEST = 300
_WORD = r"""(?:"[^"]*"|'[^']*'|\S+)"""
_SECRETS = (
    (rf"(?i)\b(\w*(?:token|secret|passw(?:or)?d|api_?key|credential)\w*)(=|\s*:\s*|\s+){_WORD}", r"\1\2…"),
    (r"(?i)\b(bearer|basic)\s+\S+", r"\1 …"),
    (r"://[^/\s:@]+:[^/\s@]+@", "://…@"),
)


def note_command(repo: Repository, session: str, command: str, exit_code: int | None) -> None:
    """A session has run a command; without an exit code nobody knows how it ended."""
    shown = show_command(command)
    if not shown:
        return

    def work(tx: Transaction) -> None:
        known = records.lock(tx, _NOUN, session)
        before: list[dict[str, Any]] = known["commands"] if known is not None else []
        ran = {"command": shown, "exit": exit_code, "at": repo.store.wall_of(tx.now)}
        document = {"id": session, "state": "kept", "session": session, "commands": [*before, ran][-_MOST:]}
        records.put_quietly(tx, _NOUN, document)

    repo.store.change(work, areas={f"//trail:{session}": True}, is_durable=False)


def show_command(command: str) -> str:
    """A command in one line that can be kept: cut, and without what looks like a secret."""
    import re  # noqa: PLC0415 - expensive, and only those who ran a command need it

    line = " ".join(command.encode("utf-8", "replace").decode().replace("\0", " ").split())[:4000]
    for pattern, masked in _SECRETS:
        line = re.sub(pattern, masked, line)
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} …"


def commands_in(snapshot: Snapshot, sessions: Iterable[str]) -> list[dict[str, Any]]:
    """What these sessions ran last, in order."""
    found: list[dict[str, Any]] = []
    for session in dict.fromkeys(sessions):
        known = records.find(snapshot, _NOUN, session)
        found += known["commands"] if known is not None else []
    return sorted(found, key=lambda ran: ran["at"])[-_MOST:]
