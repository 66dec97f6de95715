"""Records: workspaces, landings, attempts and the like, each stored as one JSON document.

A journal entry about a record contains the full document, so the newest entry is enough to rebuild it.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.store.interface import Actor, Snapshot, Transaction
    from landlane.store.journal_chain import JournalEntry

    Document = dict[str, Any]

# noun → the field by which its records are found besides their id, and the letter of its ids, if numbered
NOUNS = {
    "workspace": ("task", "W"),
    "landing": ("target", "L"),
    "deploy": ("target", "D"),
    "queue": ("target", ""),
    "notice": ("session", "N"),
    "breach": ("session", "B"),
    "rules": ("about", ""),
    "told": ("session", ""),
    "run": ("session", "X"),
    "attempt": ("task", "A"),
    "lineage": ("id", ""),
    "pool": ("id", ""),
    "handoff": ("task", "H"),
    "gate": ("task", "G"),
    "event": ("about", "E"),
    "review": ("task", "V"),
    "fan": ("task", "F"),
    "usage": ("lineage", "U"),
    "trail": ("session", ""),
    "refusal": ("session", ""),
    "activity": ("session", ""),
    "shown": ("item", ""),
    "step": ("task", ""),
    "checklist": ("path", ""),
}
SETTLED = "settled"
INTEGRATED = "integrated"  # settled, and part of a combination that a reviewer was asked to look at


def next_id(tx: Transaction, noun: str) -> str:
    """Return an id that was never given out before, such as W1, L2 or D3."""
    row = tx.one("record_next", noun=noun)
    assert row is not None
    return f"{NOUNS[noun][1]}{row['last']}"


def find(snapshot: Snapshot, noun: str, id: str) -> Document | None:
    """Return one record, or None."""
    row = snapshot.one("record_get", noun=noun, id=id)
    return json.loads(row["data"]) if row else None


def lock(tx: Transaction, noun: str, id: str) -> Document | None:
    """Return one record, locked until the transaction ends, or None."""
    row = tx.one("record_lock", noun=noun, id=id)
    return json.loads(row["data"]) if row else None


def find_all(snapshot: Snapshot, noun: str, states: Sequence[str] = ()) -> list[Document]:
    """Return all records of a noun, or those in these states, oldest first."""
    if states:
        rows = snapshot.all("records_in", noun=noun, states=list(states))
    else:
        rows = snapshot.all("records_all", noun=noun)
    return [json.loads(row["data"]) for row in rows]


def find_by_key(snapshot: Snapshot, noun: str, key: str, state: str = "") -> list[Document]:
    """Return the records of a noun with this key (a task, a target), optionally only those in one state."""
    if state:
        rows = snapshot.all("records_of_in", noun=noun, key=key, state=state)
    else:
        rows = snapshot.all("records_of", noun=noun, key=key)
    return [json.loads(row["data"]) for row in rows]


def put(
    tx: Transaction,
    noun: str,
    document: Mapping[str, Any],
    verb: str,
    session: Actor | None = None,
    **more: object,
) -> None:
    """Write a record and the journal entry about it."""
    put_without_entry(tx, noun, document)
    agent, session_id = (session.agent, session.id) if session is not None else ("", "")
    tx.record(f"{noun}.{verb}", agent, session_id, {noun: dict(document), **more})


def put_without_entry(tx: Transaction, noun: str, document: Mapping[str, Any]) -> None:
    """Write a record whose change does not belong into the journal."""
    tx.run(
        "record_put",
        noun=noun,
        id=document["id"],
        state=_stored_state(document),
        key=document[NOUNS[noun][0]],
        data=json.dumps(dict(document), ensure_ascii=True, separators=(",", ":")),
    )


def _stored_state(document: Mapping[str, Any]) -> str:
    """Return the state to find a record by; settled ones are kept apart, so that searches skip them."""
    if not document.get("is_settled"):
        return str(document["state"])
    return INTEGRATED if document.get("is_integrated") else SETTLED


def replay_record(tx: Transaction, entry: JournalEntry) -> None:
    """Apply a journal entry about a record to a store that is being rebuilt."""
    noun = entry.kind.partition(".")[0]
    document: Document | None = entry.facts().get(noun)
    if noun not in NOUNS or document is None:
        return
    put_without_entry(tx, noun, document)
    digits = str(document["id"])[1:]
    if NOUNS[noun][1] and digits.isdecimal():
        tx.run("record_count_at_least", noun=noun, last=int(digits))
