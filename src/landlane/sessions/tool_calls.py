"""What a client session did: its tool calls, the files it read, its newest commands."""

from __future__ import annotations

from enum import StrEnum

from landlane.store import records
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from landlane.files import FileVersion
    from landlane.repository import Repository
    from landlane.store.interface import Row, Snapshot, Transaction


_KEPT_MS = 24 * 3_600_000
_ANNOUNCED_MS = 10 * 60_000  # a client may ask its user in between
_LAST_SNAPSHOT = "last look"  # in place of a call's id; such a row ends as soon as it begins


class CallKind(StrEnum):
    """The tool that was called."""

    SHELL = "shell"
    MCP = "mcp"  # a tool of our own MCP server


@value
class ToolCall:
    """A running or ended call. `snapshot` is the content of the checkout before it."""

    session: str
    agent: str
    call: str
    kind: str
    root: str
    snapshot: str
    began_at: int
    ended_at: int | None

    @classmethod
    def from_row(cls, row: Row) -> ToolCall:
        return cls(**row)


@value
class AnnouncedCall:
    """A call of one of our own tools that a hook reported before it reached the server."""

    session: str
    agent: str
    call: str
    tool: str
    parent: str


def begin_call(repo: Repository, session: str, call: str, root: str, snapshot: str) -> None:
    """Record that a shell call begins in the checkout at `root`."""
    repo.store.change(lambda tx: _begin(tx, session, call, CallKind.SHELL, snapshot, root), is_durable=False)


def announce_call(repo: Repository, session: str, call: str, tool: str) -> None:
    """Record that a session is about to call one of our own tools."""
    repo.store.change(lambda tx: _begin(tx, session, call, CallKind.MCP, tool), is_durable=False)


def _begin(tx: Transaction, session: str, call: str, kind: CallKind, snapshot: str, root: str = "") -> None:
    tx.run("tool_calls_forget", before=tx.now - _KEPT_MS)
    columns = {"kind": kind, "root": root, "paths": "[]", "snapshot": snapshot}
    tx.run("tool_call_begin", session=session, call=call, **columns)


def end_call(repo: Repository, session: str, call: str) -> None:
    """Record that a call has ended."""
    repo.store.change(lambda tx: tx.run("tool_call_end", session=session, call=call), is_durable=False)


def find_open_call(repo: Repository, session: str, call: str) -> ToolCall | None:
    """Return the running call with this id, or the newest one if the client gives no ids."""
    return next((one for one in list_open_calls(repo, session) if not call or one.call == call), None)


def list_open_calls(repo: Repository, session: str) -> list[ToolCall]:
    """Return the shell calls of a session that have not ended, newest first."""
    rows = repo.store.view(lambda snapshot: snapshot.all("tool_calls_open", session=session))
    return [ToolCall.from_row(row) for row in rows if row["kind"] == CallKind.SHELL]


def list_calls_since(repo: Repository, root: str, since: int) -> list[ToolCall]:
    """Return the calls of live sessions in a checkout that ran at some time since an instant."""
    rows = repo.store.view(lambda snapshot: snapshot.all("tool_calls_during", root=root, since=since))
    return [ToolCall.from_row(row) for row in rows]


def list_announced_calls(repo: Repository) -> list[AnnouncedCall]:
    """Return the recently announced calls of our own tools that were not answered yet, newest first."""

    def look(snapshot: Snapshot) -> list[Row]:
        return snapshot.all("tool_calls_announced", since=snapshot.now - _ANNOUNCED_MS)

    return [AnnouncedCall(**row) for row in repo.store.view(look)]


def save_last_snapshot(repo: Repository, session: str, snapshot: str) -> None:
    """Save the content of the checkout at the end of a session's last shell call."""

    def work(tx: Transaction) -> None:
        # Without a root it does not count as a call that ran at the same time as others.
        _begin(tx, session, _LAST_SNAPSHOT, CallKind.SHELL, snapshot)
        tx.run("tool_call_end", session=session, call=_LAST_SNAPSHOT)

    repo.store.change(work, is_durable=False)


def find_last_snapshot(repo: Repository, session: str) -> tuple[str, int]:
    """Return the last snapshot that was saved for a session, and its time; empty if there is none."""
    row = repo.store.view(
        lambda snapshot: snapshot.one("tool_call_get", session=session, call=_LAST_SNAPSHOT)
    )
    return (row["snapshot"], row["began_at"]) if row is not None else ("", 0)


def record_reads(repo: Repository, session: str, versions: Mapping[str, FileVersion]) -> None:
    """Record the versions that a session has just read, by absolute path. This is not durable."""
    if not versions:
        return

    def work(tx: Transaction) -> None:
        for path, (digest, stamp) in versions.items():
            tx.run("read_put", session=session, path=path, digest=digest, stamp=stamp)

    repo.store.change(work, is_durable=False)


def find_read(repo: Repository, session: str, path: str) -> FileVersion | None:
    """Return the version of a file that a session has read last."""
    row = repo.store.view(lambda snapshot: snapshot.one("read_get", session=session, path=path))
    return (row["digest"], row["stamp"]) if row else None


def list_reads(snapshot: Snapshot, session: str) -> dict[str, FileVersion]:
    """Return all versions that a session has read, by absolute path."""
    rows = snapshot.all("reads_of", session=session)
    return {row["path"]: (row["digest"], row["stamp"]) for row in rows}


def forget_reads(repo: Repository, session: str) -> None:
    """Forget all that a session has read."""
    repo.store.change(lambda tx: tx.run("reads_forget", session=session), is_durable=False)


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
    """Record a command that a session has run; without an exit code, it is unknown how it ended."""
    line = mask_command(command)
    if not line:
        return

    def work(tx: Transaction) -> None:
        known = records.lock(tx, _NOUN, session)
        before: list[dict[str, Any]] = known["commands"] if known is not None else []
        ran = {"command": line, "exit": exit_code, "at": repo.store.wall_of(tx.now)}
        document = {"id": session, "state": "kept", "session": session, "commands": [*before, ran][-_MOST:]}
        records.put_without_entry(tx, _NOUN, document)

    repo.store.change(work, areas={f"//trail:{session}": True}, is_durable=False)


def mask_command(command: str) -> str:
    """Return a command as one line to store: shortened, and without anything that looks like a secret."""
    import re  # noqa: PLC0415 - expensive, and few hooks record a command

    line = " ".join(command.encode("utf-8", "replace").decode().replace("\0", " ").split())[:4000]
    for pattern, masked in _SECRETS:
        line = re.sub(pattern, masked, line)
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} …"


def commands_in(snapshot: Snapshot, sessions: Iterable[str]) -> list[dict[str, Any]]:
    """Return the last commands of these sessions, oldest first."""
    found: list[dict[str, Any]] = []
    for session in dict.fromkeys(sessions):
        known = records.find(snapshot, _NOUN, session)
        found += known["commands"] if known is not None else []
    return sorted(found, key=lambda ran: ran["at"])[-_MOST:]
