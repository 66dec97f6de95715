"""The journal: entries that are never changed, and the chain of hashes that shows if one was.

Each sealed entry carries the hash of its own content and of the entry before it. Whoever edits or removes one
has to rewrite all that follow, and then disagrees with every copy that was made before.
"""

from __future__ import annotations

import json

from landlane.clock import rfc3339
from landlane.ids import digest
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from landlane.values import Row

START = "0" * 64

# Compact and in a fixed order of keys, so that a copy read back gives the same text and so the same hash.
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


@value
class Entry:
    """One fact, sealed at its position. `data` is its JSON text, exactly as it was hashed."""

    position: int
    number: int
    at: int
    kind: str
    agent: str
    session: str
    data: str
    hash: str

    @classmethod
    def from_row(cls, row: Row) -> Entry:
        return cls(
            position=row["position"],
            number=row["number"],
            at=row["at"],
            kind=row["kind"],
            agent=row["agent"],
            session=row["session"],
            data=row["data"],
            hash=row["hash"],
        )

    def facts(self) -> dict[str, Any]:
        """The data of the entry."""
        return json.loads(self.data)


@value
class Verdict:
    """What checking the chain found; `trouble` is empty when all is well."""

    entries: int
    head: str
    trouble: tuple[str, ...]


def encode_data(facts: dict[str, Any]) -> str:
    """The one JSON text of some facts."""
    return _encode(facts)


def seal(
    previous: str, position: int, number: int, at: int, kind: str, agent: str, session: str, data: str
) -> str:
    """The hash of an entry that follows the one with the hash `previous`."""
    return digest(f"{previous}\n{position}\n{number}\n{at}\n{kind}\n{agent}\n{session}\n{data}")


def as_line(entry: Entry) -> str:
    """The entry as one line of `journal.jsonl`, without the line's end."""
    head = _encode({"agent": entry.agent, "at": rfc3339(entry.at), "at_ms": entry.at, "hash": entry.hash})
    tail = _encode(
        {"kind": entry.kind, "number": entry.number, "position": entry.position, "session": entry.session}
    )
    return f'{head[:-1]},"data":{entry.data},{tail[1:]}'


def from_line(line: str) -> Entry:
    """The entry that a line of `journal.jsonl` holds.

    Raises:
        ValueError: the line is not one of ours.
    """
    found = json.loads(line)
    try:
        return Entry(
            position=int(found["position"]),
            number=int(found["number"]),
            at=int(found["at_ms"]),
            kind=str(found["kind"]),
            agent=str(found["agent"]),
            session=str(found["session"]),
            data=encode_data(found["data"]),
            hash=str(found["hash"]),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a line of the journal: {line[:80]}") from error


def check_chain(entries: Iterable[Entry], *, after: int = 0, head: str = START) -> Verdict:
    """Walk the entries in order and tell where the chain is broken.

    After a broken link the walk goes on from what stands there, so that one edit is told once.
    """
    trouble: list[str] = []
    count = 0
    for entry in entries:
        count += 1
        if entry.position != after + 1:
            trouble.append(f"entries {after + 1} to {entry.position - 1} are missing")
        elif entry.hash != seal(
            head, entry.position, entry.number, entry.at, entry.kind, entry.agent, entry.session, entry.data
        ):
            trouble.append(f"entry {entry.position} ({entry.kind}) was changed, or the one before it")
        after, head = entry.position, entry.hash
    return Verdict(entries=count, head=head, trouble=tuple(trouble))
