"""Records: workspaces, landings, attempts and the like, each kept whole, and every change in the journal.

An entry about a record tells all of it, so that the newest entry is enough to build it again.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.store.interface import Actor, Snapshot, Transaction
    from landlane.store.journal_chain import Entry

    Document = dict[str, Any]

# noun → the field by which its records are found beside their id
KEYS = {
    "workspace": "task",
    "landing": "target",
    "deploy": "target",
    "queue": "target",
    "notice": "session",
    "breach": "session",
    "rules": "about",
    "told": "session",
    "run": "session",
    "attempt": "task",
    "lineage": "id",
    "pool": "id",
    "handoff": "task",
    "gate": "task",
    "event": "about",
    "review": "task",
    "fan": "task",
    "usage": "lineage",
    "trail": "session",
    "step": "task",
}
SETTLED = "settled"
INTEGRATED = "integrated"  # settled, and part of a whole that somebody was asked to look at
LETTERS = {
    "workspace": "W",
    "landing": "L",
    "deploy": "D",
    "notice": "N",
    "breach": "B",
    "run": "X",
    "attempt": "A",
    "handoff": "H",
    "gate": "G",
    "event": "E",
    "review": "V",
    "fan": "F",
    "usage": "U",
}


def next_id(tx: Transaction, noun: str) -> str:
    """An id that was never given out: W1, L2, D3."""
    row = tx.one("record_next", noun=noun)
    assert row is not None
    return f"{LETTERS[noun]}{row['last']}"


def find(snapshot: Snapshot, noun: str, id: str) -> Document | None:
    """One record, if there is such a one."""
    row = snapshot.one("record_get", noun=noun, id=id)
    return json.loads(row["data"]) if row else None


def lock(tx: Transaction, noun: str, id: str) -> Document | None:
    """One record, held still until the transaction ends."""
    row = tx.one("record_lock", noun=noun, id=id)
    return json.loads(row["data"]) if row else None


def all_of(snapshot: Snapshot, noun: str, states: Sequence[str] = ()) -> list[Document]:
    """All records of a noun in the order of their ids, or those in these states."""
    if states:
        rows = snapshot.all("records_in", noun=noun, states=list(states))
    else:
        rows = snapshot.all("records_all", noun=noun)
    return [json.loads(row["data"]) for row in rows]


def by_key(snapshot: Snapshot, noun: str, key: str, state: str = "") -> list[Document]:
    """The records of a noun that are found by a key: a task, a target; or those of them in this state."""
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
    """Write a record as it is now, and the entry that tells of it."""
    _write(tx, noun, document)
    who = (session.agent, session.id) if session is not None else ("", "")
    tx.record(f"{noun}.{verb}", *who, {noun: dict(document), **more})


def put_quietly(tx: Transaction, noun: str, document: Mapping[str, Any]) -> None:
    """Write a record whose change tells nobody anything."""
    _write(tx, noun, document)


def _write(tx: Transaction, noun: str, document: Mapping[str, Any]) -> None:
    tx.run(
        "record_put",
        noun=noun,
        id=document["id"],
        state=_shelf(document),
        key=document[KEYS[noun]],
        data=json.dumps(dict(document), ensure_ascii=True, separators=(",", ":")),
    )


def _shelf(document: Mapping[str, Any]) -> str:
    """Where a record is kept: whoever looks for work must not read all that needs nothing more."""
    if not document.get("is_settled"):
        return str(document["state"])
    return INTEGRATED if document.get("is_integrated") else SETTLED


def replay_record(tx: Transaction, entry: Entry) -> None:
    """Do again what an entry of the journal tells."""
    noun = entry.kind.partition(".")[0]
    document: Document | None = entry.facts().get(noun)
    if noun not in KEYS or document is None:
        return
    _write(tx, noun, document)
    digits = str(document["id"])[1:]
    if noun in LETTERS and digits.isdecimal():
        tx.run("record_count_at_least", noun=noun, last=int(digits))
