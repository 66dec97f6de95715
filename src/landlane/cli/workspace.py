"""The commands about workspaces: open, list, close, prune, env."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import Desk
    from landlane.context import Site


def _settle(site: Site) -> None:
    """Close first what has landed meanwhile, perhaps by another machine's doing."""
    from landlane.errors import LandlaneError
    from landlane.store.records import all_of

    landed = site.context.store.view(lambda reading: all_of(reading, "landing", ("landed",)))
    if all(one.get("is_settled") for one in landed):
        return  # loading what settling needs takes longer than all the rest
    from landlane.landing.after_landing import settle_here

    try:
        settle_here(site)
    except LandlaneError as error:
        site.tell(error.message)


def open_one(desk: Desk, task: str, kind: str, offline: bool) -> int:
    """Open a workspace for a task; its folder is the answer."""
    from landlane.cli.command import heed_signals
    from landlane.workspaces.open import open_workspace
    from landlane.workspaces.to_json import workspace_json

    heed_signals()
    house = desk.house
    site = house.site(desk.terminal.note)
    _settle(site)
    opened = open_workspace(site, desk.session(), task, kind=kind, is_offline=offline)
    row = workspace_json(opened.workspace)
    for note in opened.notes:
        desk.terminal.note(note)
    before = [*opened.branches, *opened.rescues]
    if before:
        desk.terminal.note(f"earlier attempts left: {', '.join(before)}")
    answer = {
        "ok": True,
        "workspace": row,
        "new": opened.is_new,
        "notes": list(opened.notes),
        "branches": list(opened.branches),
        "rescues": list(opened.rescues),
    }
    desk.terminal.answer(answer, opened.workspace.path)
    return 0


def list_all(desk: Desk, all: bool) -> int:
    """List workspaces with what one wants to know before closing any."""
    from landlane.workspaces.recover import mend
    from landlane.workspaces.survey import survey
    from landlane.workspaces.to_json import surveyed_json

    house = desk.house
    desk.show_life()
    site = house.site(desk.terminal.note)
    for told in mend(site):
        desk.terminal.note(told)
    _settle(site)
    rows = [surveyed_json(one) for one in survey(site, with_closed=all)]
    columns = ["id", "task", "agent", "state", "age", "size", "holder", "base", "path"]
    cells = [[str(row["text"][column]) for column in columns] for row in rows]
    for row in rows:
        del row["text"]
    title = f"{len(rows)} workspace{'' if len(rows) == 1 else 's'}"
    desk.terminal.answer({"ok": True, "workspaces": rows}, desk.terminal.table(title, columns, cells))
    return 0


def _seen_from(desk: Desk, workspace: str) -> str:
    """The name of a workspace, where a folder counts from where the caller stands."""
    is_folder = "/" in workspace or workspace in (".", "..")
    return os.path.join(desk.cwd, workspace) if is_folder else workspace


def close(desk: Desk, workspace: str, force: bool) -> int:
    """Close a workspace; what was saved is named."""
    from landlane.cli.command import heed_signals
    from landlane.workspaces.close import close_workspace
    from landlane.workspaces.locate import find_workspace
    from landlane.workspaces.recover import mend
    from landlane.workspaces.to_json import workspace_json

    heed_signals()
    site = desk.house.site(desk.terminal.note)
    session = desk.session()
    for told in mend(site, session):
        desk.terminal.note(told)
    found = find_workspace(site, _seen_from(desk, workspace))
    closed = close_workspace(site, session, found, force=force)
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
    desk.terminal.answer(answer, "\n".join(lines))
    return 0


def prune(desk: Desk, dry_run: bool) -> int:
    """Close what is finished or forsaken."""
    from landlane.cli.command import heed_signals
    from landlane.rescue.save import pack_old_rescues
    from landlane.workspaces.disk_space import evict_caches
    from landlane.workspaces.prune import prune as prune_all

    heed_signals()
    site = desk.house.site(desk.terminal.note)
    _settle(site)
    session = desk.session()
    # First: closing itself needs room, for what it rescues.
    evicted = [] if dry_run else evict_caches(site)
    found = prune_all(site, session, is_dry=dry_run)
    packed = 0 if dry_run else pack_old_rescues(site)
    rows = [
        {
            "id": one.id,
            "path": one.path,
            "outcome": outcome,
            "closed": closed is not None,
            "rescue": (closed.rescue or None) if closed else None,
        }
        for one, outcome, closed in found
    ]
    lines = [f"{row['id']}: {row['outcome']}" for row in rows]
    lines += [f"evicted {path} ({size:,} bytes)" for path, size in evicted]
    caches = [{"path": path, "bytes": size} for path, size in evicted]
    desk.terminal.answer(
        {"ok": True, "workspaces": rows, "evicted": caches, "packed": packed},
        "\n".join(lines) or "nothing to do",
    )
    return 0


def environment(desk: Desk, workspace: str) -> int:
    """Print the environment of a workspace for a shell."""
    from landlane.workspaces.environment import shell_environment
    from landlane.workspaces.locate import find_workspace

    found = find_workspace(desk.house.site(), _seen_from(desk, workspace))
    desk.terminal.answer({"ok": True, "environment": found.environment}, shell_environment(found))
    return 0
