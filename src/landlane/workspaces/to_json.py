"""Workspaces and commits as JSON."""

from __future__ import annotations

from landlane.clock import duration_text, rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.workspaces.commit import Made
    from landlane.workspaces.model import Workspace
    from landlane.workspaces.survey import WorkspaceStatus


def workspace_json(workspace: Workspace) -> dict[str, Any]:
    """A workspace as every door shows it."""
    return {
        "id": workspace.id,
        "task": workspace.task,
        "attempt": workspace.attempt,
        "agent": workspace.agent,
        "session": workspace.session,
        "kind": workspace.kind,
        "path": workspace.path,
        "branch": workspace.branch,
        "base": workspace.base or None,
        "target": workspace.target or None,
        "offline": workspace.is_offline,
        "state": workspace.state,
        "environment": workspace.environment,
        "rescue": workspace.rescue or None,
        "merged": workspace.is_merged,
        "why": workspace.why or None,
        "opened_at": rfc3339(workspace.opened_at),
        "closed_at": rfc3339(workspace.closed_at) if workspace.closed_at else None,
    }


def surveyed_json(one: WorkspaceStatus) -> dict[str, Any]:
    """A workspace with what was found on the disk; `text` is how a table shows it."""
    item = workspace_json(one.workspace)
    item |= {
        "bytes": one.size,
        "age_seconds": one.age_ms // 1000,
        "is_there": one.is_there,
        "is_held": one.is_held,
        "behind": one.behind,
        "stale": one.is_stale,
    }
    base = "?" if one.behind is None else "current" if not one.behind else f"{one.behind} behind"
    item["text"] = {
        **item,
        "age": duration_text(max(one.age_ms, 1000) // 1000 * 1000),
        "size": size_text(one.size),
        "holder": one.workspace.agent if one.is_held else "nobody",
        "state": one.workspace.state if one.is_there or one.workspace.state == "closed" else "missing",
        "base": f"{base}, touches your paths" if one.is_stale else base,
    }
    return item


def size_text(size: int) -> str:
    """A size for people."""
    amount = float(size)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            break
        amount /= 1000
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"


def commit_json(made: Made) -> dict[str, Any]:
    """A commit that was made."""
    return {
        "ok": True,
        "commit": made.commit,
        "branch": made.branch or None,
        "subject": made.subject,
        "paths": list(made.paths),
        "trailers": {
            "agent": made.trailers.agent,
            "session": made.trailers.session,
            "task": made.trailers.task or None,
            "tokens": list(made.trailers.tokens),
        },
        "changed_by_hooks": list(made.changed_by_hooks),
        "left_alone": made.left_alone,
    }
