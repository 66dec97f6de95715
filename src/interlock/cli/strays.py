"""The commands about stray work: what lies in the wrong checkout, and moving it to the right one."""

from __future__ import annotations

from interlock.cli.terminal import in_one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from interlock.cli.main import Desk


def list_all(desk: Desk) -> int:
    """List changes that lie in the wrong checkout."""
    from interlock.flows.strays import STRAY, find_strays

    desk.show_life()
    site = desk.house.site(desk.terminal.note)
    found = find_strays(site)
    rows: list[dict[str, Any]] = [
        {
            "path": one.path,
            "checkout": one.root,
            "state": one.state,
            "new": one.is_new,
            "agent": one.agent or None,
            "workspace": one.to or None,
            "choices": list(one.choices),
        }
        for one in found
    ]
    columns = ["path", "checkout", "state", "agent", "workspace"]
    cells = [[str(row[column] or "") for column in columns] for row in rows]
    strays = sum(one.state == STRAY for one in found)
    title = f"{strays} stray change{'' if strays == 1 else 's'}"
    answer = {"ok": True, "strays": rows}
    desk.terminal.answer(answer, desk.terminal.table(title, columns, cells))
    return 0


def move(desk: Desk, paths: tuple[str, ...], to: str) -> int:
    """Move stray changes to their workspace, and tell how that is undone."""
    from interlock.flows.stray_moves import locate, move_strays

    site = desk.house.site(desk.terminal.note)
    session = desk.known_session()
    wanted = [locate(site, desk.cwd, path, to) for path in paths] if paths else None
    moved = move_strays(site, session, wanted, to)
    rows = [
        {
            "path": one.stray.path,
            "from": one.stray.root,
            "workspace": one.workspace.id,
            "to": one.workspace.path,
        }
        for one in moved.steps
    ]
    rescues = [{"checkout": root, "rescue": rescue} for root, rescue in moved.rescues]
    lines = [f"moved {in_one_line(row['path'])}  to {row['workspace']} at {row['to']}" for row in rows]
    lines += [f"to see {root} as it was: interlock rescue restore {rescue}" for root, rescue in moved.rescues]
    desk.terminal.answer({"ok": True, "moved": rows, "rescues": rescues}, "\n".join(lines))
    return 0
