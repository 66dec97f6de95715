"""The commands for workspaces: open, close, prune, env."""

from __future__ import annotations

import os

from landlane.app.repair_config import prepare_git
from landlane.cli.command import heed_signals
from landlane.cli.workspace_list import settle_landed
from landlane.rescue.save import pack_old_rescues
from landlane.workspaces.close import close_workspace
from landlane.workspaces.disk_space import evict_caches
from landlane.workspaces.environment import shell_environment
from landlane.workspaces.locate import find_workspace
from landlane.workspaces.open import open_workspace
from landlane.workspaces.prune import prune as prune_all
from landlane.workspaces.recover import mend
from landlane.workspaces.to_json import workspace_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command_call import CommandCall


def open_one(call: CommandCall, task: str, kind: str, offline: bool) -> int:
    """Open a workspace for a task and print its folder."""
    heed_signals()
    repo = call.repo
    repo = prepare_git(repo, call.terminal.note)
    settle_landed(repo)
    opened = open_workspace(repo, call.session(), task, kind=kind, is_offline=offline)
    item = workspace_json(opened.workspace)
    for note in opened.notes:
        call.terminal.note(note)
    before = [*opened.branches, *opened.rescues]
    if before:
        call.terminal.note(f"earlier attempts left: {', '.join(before)}")
    answer = {
        "ok": True,
        "workspace": item,
        "new": opened.is_new,
        "notes": list(opened.notes),
        "branches": list(opened.branches),
        "rescues": list(opened.rescues),
    }
    call.terminal.answer(answer, opened.workspace.path)
    return 0


def _seen_from(call: CommandCall, workspace: str) -> str:
    """Return the name of a workspace; a folder is resolved against the caller's folder."""
    is_folder = "/" in workspace or workspace in (".", "..")
    return os.path.join(call.cwd, workspace) if is_folder else workspace


def close(call: CommandCall, workspace: str, force: bool) -> int:
    """Close a workspace and show what was saved."""
    heed_signals()
    repo = prepare_git(call.repo, call.terminal.note)
    session = call.session()
    for line in mend(repo, session):
        call.terminal.note(line)
    found = find_workspace(repo, _seen_from(call, workspace))
    closed = close_workspace(repo, session, found, force=force)
    lines = [f"closed {closed.workspace.id}"]
    if closed.rescue:
        lines.append(f"saved as {closed.rescue}: landlane rescue restore {closed.rescue}")
    lines += closed.notes
    answer = {
        "ok": True,
        "workspace": workspace_json(closed.workspace),
        "rescue": closed.rescue or None,
        "merged": closed.is_merged,
        "notes": list(closed.notes),
    }
    call.terminal.answer(answer, "\n".join(lines))
    return 0


def prune(call: CommandCall, dry_run: bool) -> int:
    """Close finished and abandoned workspaces."""
    heed_signals()
    repo = prepare_git(call.repo, call.terminal.note)
    settle_landed(repo)
    session = call.session()
    # First, because closing needs disk space for what it saves.
    evicted = [] if dry_run else evict_caches(repo)
    found = prune_all(repo, session, is_dry=dry_run)
    packed = 0 if dry_run else pack_old_rescues(repo)
    items = [
        {
            "id": one.id,
            "path": one.path,
            "outcome": outcome,
            "closed": closed is not None,
            "rescue": (closed.rescue or None) if closed else None,
        }
        for one, outcome, closed in found
    ]
    lines = [f"{item['id']}: {item['outcome']}" for item in items]
    lines += [f"evicted {path} ({size:,} bytes)" for path, size in evicted]
    caches = [{"path": path, "bytes": size} for path, size in evicted]
    call.terminal.answer(
        {"ok": True, "workspaces": items, "evicted": caches, "packed": packed},
        "\n".join(lines) or "nothing to do",
    )
    return 0


def environment(call: CommandCall, workspace: str) -> int:
    """Print the environment of a workspace for a shell."""
    found = find_workspace(call.repo.require_git(), _seen_from(call, workspace))
    call.terminal.answer({"ok": True, "environment": found.environment}, shell_environment(found))
    return 0
