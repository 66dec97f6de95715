"""The public JSON forms of workspaces and commits."""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.text import home_path, path_text
from landlane.units import byte_size, count, time_ago
from landlane.workspaces.model import ON_DISK, OPEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.workspaces.commit import CommitResult
    from landlane.workspaces.json_types import (
        BreachJson,
        MisplacedChangeJson,
        SurveyedWorkspaceJson,
        WorkspaceJson,
    )
    from landlane.workspaces.misplaced import MisplacedChange
    from landlane.workspaces.model import Workspace
    from landlane.workspaces.survey import WorkspaceStatus
    from landlane.workspaces.unauthorized_writes import Breach


def workspace_json(workspace: Workspace) -> WorkspaceJson:
    """Return the public JSON form of a workspace."""
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


def surveyed_json(one: WorkspaceStatus) -> SurveyedWorkspaceJson:
    """Return a workspace with its status on disk."""
    return {
        **workspace_json(one.workspace),
        "bytes": one.size,
        "age_seconds": one.age_ms // 1000,
        "is_there": one.is_there,
        "is_held": one.is_held,
        "behind": one.behind,
        "stale": one.is_stale,
        "task_title": one.title or None,
        "task_ended_as": one.ended_as or None,
        "uncommitted": one.uncommitted,
        "seen_at": rfc3339(one.seen_at) if one.seen_at is not None else None,
        "removable": one.is_removable,
    }


def workspace_cells(one: WorkspaceStatus, now: int) -> dict[str, str]:
    """Return a workspace as the cells of a table, by the name of the column."""
    workspace = one.workspace
    return {
        "workspace": workspace.id,
        "task": f"{workspace.task} {one.title}".rstrip(),
        "agent": workspace.agent,
        "state": _state_text(one, now),
        "base": _base_text(one),
        "size": byte_size(one.size) if one.is_there else "",
        "path": home_path(workspace.path),
    }


def _state_text(one: WorkspaceStatus, now: int) -> str:
    if one.workspace.state != OPEN:
        return one.workspace.state
    if not one.is_there:
        return "not on this machine" if one.is_elsewhere else "folder is missing"
    if one.is_removable:
        outcome = {"": "abandoned", "done": "landed"}.get(one.ended_as, one.ended_as)
        changed = f", {count(one.uncommitted, 'uncommitted file')}" if one.uncommitted else ""
        return f"{outcome}{changed}, can be removed"
    if one.uncommitted:
        return count(one.uncommitted, "uncommitted file")
    return f"active {time_ago(one.seen_at, now)}" if one.is_held and one.seen_at is not None else "not in use"


def _base_text(one: WorkspaceStatus) -> str:
    if one.is_removable or one.workspace.state not in ON_DISK:
        return "–"
    if one.behind is None:
        return "unknown"
    behind = f"{one.behind} behind" if one.behind else "current"
    return f"{behind}, in claimed paths" if one.is_stale else behind


def misplaced_json(change: MisplacedChange) -> MisplacedChangeJson:
    """Return the public JSON form of a change in the wrong checkout."""
    return {
        "path": path_text(change.path),
        "checkout": change.root,
        "state": change.state,
        "new": change.is_new,
        "agent": change.agent or None,
        "workspace": change.to or None,
        "choices": list(change.choices),
        "changed_at": rfc3339(change.changed_at) if change.changed_at is not None else None,
    }


def breach_json(breach: Breach) -> BreachJson:
    """Return the public JSON form of an unauthorized write."""
    return {
        "id": breach.id,
        "state": breach.state,
        "kind": breach.kind,
        "agent": breach.agent,
        "holder": breach.holder or None,
        "task": breach.task or None,
        "checkout": breach.root,
        "paths": list(breach.paths),
        "blocking": breach.is_blocking,
        "at": rfc3339(breach.at),
        "ref": breach.ref,
    }


def commit_json(made: CommitResult) -> dict[str, Any]:
    """Return the public JSON form of a commit that was made."""
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
