"""Entries of the journal as JSON and as a line for people."""

from __future__ import annotations

from interlock.clock import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from interlock.domain.journal import Entry


def entry_json(entry: Entry) -> dict[str, Any]:
    """An entry as programs read it."""
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
    """An entry as one line for people."""
    facts = entry.facts()
    what = facts.get("pattern") or facts.get("role") or facts.get("reason") or ""
    token = f"  token {facts['token']}" if "token" in facts else ""
    commit = f"  commit {str(facts['commit'])[:12]}" if "commit" in facts else ""
    return (
        f"{entry.position:>6}  {rfc3339(entry.at)}  {entry.kind:<16} {entry.agent:<12} {what}{token}{commit}"
    )
