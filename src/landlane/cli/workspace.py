"""The commands for workspaces: open, list, close, prune, env."""

from __future__ import annotations

import os

from landlane.app.repair_config import prepare_git
from landlane.cli.command import stop_on_signals
from landlane.cli.table import empty_text
from landlane.errors import LandlaneError
from landlane.landing.model import LANDED
from landlane.rescue.save import pack_old_rescues
from landlane.store.records import find_all
from landlane.text import home_path
from landlane.units import byte_size, count
from landlane.workspaces.clean_up import WOULD_CLOSE, finish_interrupted
from landlane.workspaces.clean_up import prune as prune_all
from landlane.workspaces.close import close_workspace
from landlane.workspaces.disk_space import evict_caches
from landlane.workspaces.environment import shell_environment
from landlane.workspaces.locate import find_workspace, workspaces_folder
from landlane.workspaces.open import open_workspace
from landlane.workspaces.survey import survey
from landlane.workspaces.to_json import surveyed_json, workspace_cells, workspace_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import CommandCall
    from landlane.repository import Repository
    from landlane.workspaces.close import Closed


def open_one(call: CommandCall, task: str, kind: str, offline: bool) -> int:
    """Open a workspace for a task and print its folder."""
    stop_on_signals()
    repo = prepare_git(call.repo, call.terminal.note)
    _clean_up_landed(repo)
    opened = open_workspace(repo, call.session(), task, kind=kind, is_offline=offline)
    item = workspace_json(opened.workspace)
    for note in opened.notes:
        call.terminal.note(note)
    before = [*opened.branches, *opened.rescues]
    if before:
        call.terminal.note(f"earlier attempts left {', '.join(before)}")
    answer = {
        "ok": True,
        "workspace": item,
        "new": opened.is_new,
        "notes": list(opened.notes),
        "branches": list(opened.branches),
        "rescues": list(opened.rescues),
    }
    return call.terminal.answer_value(answer, opened.workspace.path)


def _resolve_folder(call: CommandCall, workspace: str) -> str:
    """Return the name of a workspace; a folder is resolved against the caller's folder."""
    is_folder = "/" in workspace or workspace in (".", "..")
    return os.path.join(call.cwd, workspace) if is_folder else workspace


def close(call: CommandCall, workspace: str, force: bool) -> int:
    """Close a workspace and show what was saved."""
    stop_on_signals()
    repo = prepare_git(call.repo, call.terminal.note)
    session = call.session()
    found = find_workspace(repo, _resolve_folder(call, workspace))
    closed = close_workspace(repo, session, found, force=force)  # also if closing it was interrupted
    for line in finish_interrupted(repo, session):
        call.terminal.note(line)
    lines = [f"✓ closed {closed.workspace.id}", *(f"  {note}" for note in closed.notes)]
    if closed.rescue:
        lines[0] += f"; its unlanded work is saved as {closed.rescue}"
        lines.append(f"next: landlane rescue show {closed.rescue}")
    answer = {
        "ok": True,
        "workspace": workspace_json(closed.workspace),
        "rescue": closed.rescue or None,
        "merged": closed.is_merged,
        "notes": list(closed.notes),
    }
    return call.terminal.answer(answer, "\n".join(lines), quiet=closed.rescue)


def prune(call: CommandCall, dry_run: bool) -> int:
    """Close finished and abandoned workspaces."""
    stop_on_signals()
    repo = prepare_git(call.repo, call.terminal.note)
    _clean_up_landed(repo)
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
    lines = [_prune_line(one.id, outcome, closed) for one, outcome, closed in found]
    lines += [f"✓ deleted the cache {home_path(path)} ({byte_size(size)})" for path, size in evicted]
    caches = [{"path": path, "bytes": size} for path, size in evicted]
    return call.terminal.answer(
        {"ok": True, "workspaces": items, "evicted": caches, "packed": packed},
        "\n".join(lines) or empty_text("workspace"),
    )


def _prune_line(workspace: str, outcome: str, closed: Closed | None) -> str:
    if closed is not None:
        saved = f"; its unlanded work is saved as {closed.rescue}" if closed.rescue else ""
        return f"✓ removed {workspace}{saved}"
    return f"{workspace} {outcome}" if outcome == WOULD_CLOSE else f"– kept {workspace}: {outcome}"


def env(call: CommandCall, workspace: str) -> int:
    """Print the environment of a workspace for a shell."""
    found = find_workspace(call.repo.require_git(), _resolve_folder(call, workspace))
    return call.terminal.answer({"ok": True, "environment": found.environment}, shell_environment(found))


def list_all(call: CommandCall, all: bool) -> int:
    """List workspaces with what matters before closing one."""
    call.renew_session()
    repo = prepare_git(call.repo, call.terminal.note)
    for line in finish_interrupted(repo):
        call.terminal.note(line)
    _clean_up_landed(repo)
    found = survey(repo, with_closed=all, with_changes=True)
    answer = {"ok": True, "workspaces": [surveyed_json(one) for one in found]}
    if not found:
        return call.terminal.answer(answer, empty_text("workspace"))
    columns = ["workspace", "task", "agent", "state", "base", "size"]
    if call.terminal.is_verbose:
        columns.append("path")
    cells = [workspace_cells(one, repo.wall_ms()) for one in found]
    rows = [[row[column] for column in columns] for row in cells]
    text = call.terminal.table("", columns, rows, right=("SIZE",), cut="TASK")
    size = byte_size(sum(one.size for one in found))
    text += f"\n{count(len(found), 'workspace')} in {home_path(workspaces_folder(repo))} ({size})"
    if any(one.is_removable for one in found):
        text += "\nnext: landlane workspace prune"
    return call.terminal.answer(answer, text, quiet="\n".join(one.workspace.id for one in found))


def _clean_up_landed(repo: Repository) -> None:
    """Close workspaces that have landed in the meantime, perhaps from another machine."""
    landed = repo.store.view(lambda snapshot: find_all(snapshot, "landing", (LANDED,)))
    if all(landing.get("is_settled") for landing in landed):
        return
    from landlane.landing.after_landing import clean_up_here  # noqa: PLC0415 - slow to load, rarely needed

    try:
        clean_up_here(repo)
    except LandlaneError as error:
        repo.report(error.message)
