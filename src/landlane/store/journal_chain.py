"""The journal: append-only entries, and the chain of hashes that reveals a change.

Each sealed entry has a hash of its own content and of the hash before it. Changing or removing an entry
breaks the chain, unless all later entries are rewritten; then the journal differs from every earlier copy.
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

EMPTY_CHAIN_HASH = "0" * 64

# Compact and with sorted keys, so that an entry read from a copy has the same text and the same hash.
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


@value
class JournalEntry:
    """A sealed entry. `data` is its JSON text, exactly as it was hashed."""

    position: int
    number: int
    at: int
    kind: str
    agent: str
    session: str
    data: str
    hash: str

    @classmethod
    def from_row(cls, row: Row) -> JournalEntry:
        return cls(**row)

    def facts(self) -> dict[str, Any]:
        """Return the data of the entry."""
        return json.loads(self.data)


@value
class JournalCheck:
    """The result of checking the chain; `trouble` is empty if it is intact."""

    entries: int
    head: str
    trouble: tuple[str, ...]


def encode_data(facts: dict[str, Any]) -> str:
    """Return the canonical JSON text of some facts."""
    return _encode(facts)


def hash_entry(
    previous: str, position: int, number: int, at: int, kind: str, agent: str, session: str, data: str
) -> str:
    """Return the hash of an entry that follows the one with the hash `previous`."""
    return digest(f"{previous}\n{position}\n{number}\n{at}\n{kind}\n{agent}\n{session}\n{data}")


def format_line(entry: JournalEntry) -> str:
    """Return the entry as a line of `journal.jsonl`, without the newline."""
    head = _encode({"agent": entry.agent, "at": rfc3339(entry.at), "at_ms": entry.at, "hash": entry.hash})
    tail = _encode(
        {"kind": entry.kind, "number": entry.number, "position": entry.position, "session": entry.session}
    )
    return f'{head[:-1]},"data":{entry.data},{tail[1:]}'


def parse_line(line: str) -> JournalEntry:
    """Return the entry in a line of `journal.jsonl`.

    Raises:
        ValueError: the line is not a journal entry.
    """
    fields = json.loads(line)
    try:
        return JournalEntry(
            position=int(fields["position"]),
            number=int(fields["number"]),
            at=int(fields["at_ms"]),
            kind=str(fields["kind"]),
            agent=str(fields["agent"]),
            session=str(fields["session"]),
            data=encode_data(fields["data"]),
            hash=str(fields["hash"]),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a line of the journal: {line[:80]}") from error


def check_chain(
    entries: Iterable[JournalEntry], *, after: int = 0, head: str = EMPTY_CHAIN_HASH
) -> JournalCheck:
    """Check the entries in order and report where the chain is broken.

    After a broken link the check continues from the hash found there, so one edit is reported once.
    """
    trouble: list[str] = []
    count = 0
    for entry in entries:
        count += 1
        if entry.position != after + 1:
            trouble.append(f"entries {after + 1} to {entry.position - 1} are missing")
        elif entry.hash != hash_entry(
            head, entry.position, entry.number, entry.at, entry.kind, entry.agent, entry.session, entry.data
        ):
            trouble.append(f"entry {entry.position} ({entry.kind}) was changed, or the one before it")
        after, head = entry.position, entry.hash
    return JournalCheck(entries=count, head=head, trouble=tuple(trouble))
