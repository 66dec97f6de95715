"""Journal entries as JSON and as one line of text."""

from __future__ import annotations

from landlane.clock import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.store.journal_chain import Entry


# The fact to show for an entry: the first of these that it has.
_TELLING = (
    "pattern",
    "task",
    "key",
    "slot",
    "number",
    "role",
    "reason",
    "to",
    "kept",
    "former",
    "generation",
    "rule",
    "version",
)


def entry_json(entry: Entry) -> dict[str, Any]:
    """Return an entry as JSON."""
    return {
        "position": entry.position,
        "at": rfc3339(entry.at),
        "kind": entry.kind,
        "agent": entry.agent,
        "session": entry.session,
        "data": entry.facts(),
        "hash": entry.hash,
    }


def entry_text(entry: Entry) -> str:
    """Return an entry as one line of text."""
    facts = entry.facts()
    what = next((str(facts[name]) for name in _TELLING if facts.get(name)), "") or _record(entry, facts)
    token = f"  token {facts['token']}" if "token" in facts else ""
    commit = f"  commit {str(facts['commit'])[:12]}" if "commit" in facts else ""
    return (
        f"{entry.position:>6}  {rfc3339(entry.at)}  {entry.kind:<16} {entry.agent:<12} {what}{token}{commit}"
    )


def _record(entry: Entry, facts: dict[str, Any]) -> str:
    """Return the record and the task that an entry is about."""
    record = facts.get(entry.kind.partition(".")[0])
    if not isinstance(record, dict):
        return ""
    named: dict[str, Any] = record  # pyright: ignore[reportUnknownVariableType]
    return f"{named.get('id', '')} {named.get('task', '')}".strip()
