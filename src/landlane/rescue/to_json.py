"""Rescues as JSON."""

from __future__ import annotations

from landlane.clock import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.rescue.json_types import RescuedChangeJson, RescueJson
    from landlane.rescue.list_changes import RescuedChange
    from landlane.rescue.refs import Rescue


def rescue_json(rescue: Rescue) -> RescueJson:
    """Return the public JSON form of a rescue."""
    facts = rescue.facts
    return {
        "id": rescue.id,
        "agent": facts.get("agent") or None,
        "session": facts.get("session") or None,
        "task": facts.get("task") or None,
        "attempt": facts.get("attempt") or None,
        "workspace": facts.get("workspace") or None,
        "reason": facts.get("reason") or "",
        "at": rfc3339(rescue.at),
        "bytes": rescue.bytes,
        "files": rescue.files,
        "commits": rescue.commits,
        "kind": rescue.kind,
        "head": rescue.head or None,
        "branch": rescue.branch or None,
        "operation": rescue.operation or None,
        "ref": rescue.ref,
        "commit": rescue.commit,
        "root": rescue.root,
        "notes": list(rescue.notes),
    }


def rescued_change_json(change: RescuedChange) -> RescuedChangeJson:
    """Return the public JSON form of one file in a rescue."""
    return {"path": change.path, "change": change.kind, "added": change.added, "removed": change.removed}
