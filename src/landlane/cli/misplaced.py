"""The commands for misplaced changes: files in the wrong checkout, or writes to another session's paths."""

from __future__ import annotations

from landlane.app.repair_config import prepare_git
from landlane.cli.terminal import in_one_line
from landlane.clock import rfc3339
from landlane.git.snapshot import path_text
from landlane.workspaces.fix_unauthorized_writes import (
    accept_breach,
    end_moved,
    list_open_breaches,
    move_breach,
    undo_breach,
)
from landlane.workspaces.misplaced import STRAY, find_misplaced
from landlane.workspaces.move_misplaced import locate, move_misplaced_changes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command_call import CommandCall
    from landlane.workspaces.fix_unauthorized_writes import FixResult
    from landlane.workspaces.unauthorized_writes import Breach


_MOST_NAMED = 5


def list_all(call: CommandCall) -> int:
    """List changes in the wrong checkout."""
    call.show_life()
    repo = prepare_git(call.repo, call.terminal.note)
    found = find_misplaced(repo)
    breaches = list_open_breaches(repo)
    items: list[dict[str, Any]] = [
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
    cells = [[str(item[column] or "") for column in columns] for item in items]
    strays = sum(one.state == STRAY for one in found)
    title = f"{strays} stray change{'' if strays == 1 else 's'}"
    text = call.terminal.table(title, columns, cells)
    if breaches:
        heads = ["id", "agent", "holder", "checkout", "paths"]
        lines = [[one.id, one.agent, one.holder, one.root, _some(one.paths)] for one in breaches]
        text += "\n\n" + call.terminal.table("written through a shell; undo, move or accept", heads, lines)
    answer = {"ok": True, "strays": items, "breaches": [_breach_json(one) for one in breaches]}
    call.terminal.answer(answer, text)
    return 0


def _some(paths: tuple[str, ...]) -> str:
    shown = ", ".join(in_one_line(path) for path in paths[:_MOST_NAMED])
    return f"{shown} and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else shown


def _shown(path: str) -> str:
    return path_text(path)


def _breach_json(breach: Breach) -> dict[str, Any]:
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


def undo(call: CommandCall, id: str) -> int:
    """Restore the files as they were before a shell's write."""
    repo = prepare_git(call.repo, call.terminal.note)
    return _show_resolved(call, undo_breach(repo, call.known_session(), id), "put back")


def accept(call: CommandCall, id: str) -> int:
    """Keep a shell's write."""
    repo = prepare_git(call.repo, call.terminal.note)
    return _show_resolved(call, accept_breach(repo, call.known_session(), id), "accepted")


def _show_resolved(call: CommandCall, resolved: FixResult, verb: str) -> int:
    where = f"  to {resolved.workspace.id} at {resolved.workspace.path}" if resolved.workspace else ""
    lines = [f"{verb} {in_one_line(_shown(path))}{where}" for path in resolved.paths]
    lines = lines or ["nothing had to be changed: all of it is as it was"]
    if verb != "accepted":
        lines.append(f"what was written is kept: git show {resolved.breach.ref}:after/PATH")
    answer = {
        "ok": True,
        "breach": _breach_json(resolved.breach),
        "paths": [_shown(path) for path in resolved.paths],
        "workspace": resolved.workspace.id if resolved.workspace else None,
    }
    call.terminal.answer(answer, "\n".join(lines))
    return 0


def move(call: CommandCall, paths: tuple[str, ...], to: str) -> int:
    """Move misplaced changes to their workspace, and show how to undo that."""
    repo = prepare_git(call.repo, call.terminal.note)
    session = call.known_session()
    if len(paths) == 1 and paths[0][:1] == "B" and paths[0][1:].isdecimal():
        return _show_resolved(call, move_breach(repo, session, paths[0], to), "moved")
    wanted = [locate(repo, call.cwd, path, to) for path in paths] if paths else None
    moved = move_misplaced_changes(repo, session, wanted, to)
    end_moved(repo, session, [(one.stray.root, one.stray.path) for one in moved.steps])
    items = [
        {
            "path": one.stray.path,
            "from": one.stray.root,
            "workspace": one.workspace.id,
            "to": one.workspace.path,
        }
        for one in moved.steps
    ]
    rescues = [{"checkout": root, "rescue": rescue} for root, rescue in moved.rescues]
    lines = [f"moved {in_one_line(item['path'])}  to {item['workspace']} at {item['to']}" for item in items]
    lines += [f"to see {root} as it was: landlane rescue restore {rescue}" for root, rescue in moved.rescues]
    call.terminal.answer({"ok": True, "moved": items, "rescues": rescues}, "\n".join(lines))
    return 0
