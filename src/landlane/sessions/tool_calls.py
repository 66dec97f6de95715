"""Calls of tools by coding clients: of shells, to tell whose a change is; of our own, to tell who calls."""

from __future__ import annotations

from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.store.interface import Row, Snapshot, Transaction

_KEPT_MS = 24 * 3_600_000
_ANNOUNCED_MS = 10 * 60_000  # a client may ask its user in between
_SHELL = "shell"
_OWN = "mcp"
_LAST_LOOK = "last look"  # stands in the place of a call's id; such a row has ended as soon as it began


@value
class ToolCall:
    """A call that runs or ran. `snapshot` is what the checkout held before it."""

    session: str
    call: str
    root: str
    snapshot: str
    began_at: int
    agent: str
    ended_at: int | None

    @classmethod
    def from_row(cls, row: Row) -> ToolCall:
        return cls(
            session=row["session"],
            call=row["call"],
            root=row["root"],
            snapshot=row["snapshot"],
            began_at=row["began_at"],
            agent=row["agent"],
            ended_at=row["ended_at"],
        )


def begin_call(repo: Repository, session: str, call: str, root: str, snapshot: str) -> None:
    """A shell call begins in the checkout at `root`."""

    def work(tx: Transaction) -> None:
        tx.run("tool_calls_forget", before=tx.now - _KEPT_MS)
        facts = {"kind": _SHELL, "root": root, "paths": "[]", "snapshot": snapshot}
        tx.run("tool_call_begin", session=session, call=call, **facts)

    repo.store.change(work, is_durable=False)


def end_call(repo: Repository, session: str, call: str) -> None:
    """It has ended."""
    repo.store.change(lambda tx: tx.run("tool_call_end", session=session, call=call), is_durable=False)


def open_call(repo: Repository, session: str, call: str) -> ToolCall | None:
    """The call of this id that runs; a client that gives no ids is taken to mean its newest."""
    return next((one for one in open_calls(repo, session) if not call or one.call == call), None)


def open_calls(repo: Repository, session: str) -> list[ToolCall]:
    """The calls of a session that have not ended, the newest first."""
    rows = repo.store.view(lambda snapshot: snapshot.all("tool_calls_open", session=session))
    return [ToolCall.from_row(row) for row in rows if row["kind"] == _SHELL]


def note_look(repo: Repository, session: str, snapshot: str) -> None:
    """What was there when the last shell call of a session had ended."""

    def work(tx: Transaction) -> None:
        # Without a root: nobody else's call ran beside it.
        facts = {"kind": _SHELL, "root": "", "paths": "[]", "snapshot": snapshot}
        tx.run("tool_call_begin", session=session, call=_LAST_LOOK, **facts)
        tx.run("tool_call_end", session=session, call=_LAST_LOOK)

    repo.store.change(work, is_durable=False)


def last_look(repo: Repository, session: str) -> tuple[str, int]:
    """What was there at the end of a session's last shell call, and when that was; empty when it had none."""
    row = repo.store.view(lambda snapshot: snapshot.one("tool_call_get", session=session, call=_LAST_LOOK))
    return (row["snapshot"], row["began_at"]) if row is not None else ("", 0)


@value
class Announced:
    """A call of one of our own tools that a hook told of before it reached the server."""

    session: str
    agent: str
    call: str
    tool: str
    parent: str


def announce_call(repo: Repository, session: str, call: str, tool: str) -> None:
    """A session is about to call one of our own tools."""

    def work(tx: Transaction) -> None:
        tx.run("tool_calls_forget", before=tx.now - _KEPT_MS)
        facts = {"kind": _OWN, "root": "", "paths": "[]", "snapshot": tool}
        tx.run("tool_call_begin", session=session, call=call, **facts)

    repo.store.change(work, is_durable=False)


def announced_calls(repo: Repository) -> list[Announced]:
    """The calls of our own tools that were told of lately and not answered, the newest first."""

    def look(snapshot: Snapshot) -> list[Row]:
        return snapshot.all("tool_calls_announced", since=snapshot.now - _ANNOUNCED_MS)

    return [
        Announced(
            session=row["session"],
            agent=row["agent"],
            call=row["call"],
            tool=row["snapshot"],
            parent=row["parent"],
        )
        for row in repo.store.view(look)
    ]


def calls_during(repo: Repository, root: str, since: int) -> list[ToolCall]:
    """The calls of live sessions in a checkout that ran at some time since an instant."""
    rows = repo.store.view(lambda snapshot: snapshot.all("tool_calls_during", root=root, since=since))
    return [ToolCall.from_row(row) for row in rows]
