"""The commands for misplaced changes: files in the wrong checkout, or writes to another session's paths."""

from __future__ import annotations

import shlex

from landlane.app.repair_config import prepare_git
from landlane.cli.terminal import in_one_line
from landlane.text import home_path, list_some, path_text
from landlane.units import clock_time
from landlane.workspaces.fix_unauthorized_writes import (
    accept_breach,
    end_moved,
    list_open_breaches,
    move_breach,
    undo_breach,
)
from landlane.workspaces.misplaced import STRAY, find_misplaced
from landlane.workspaces.move_misplaced import locate, move_misplaced_changes
from landlane.workspaces.to_json import breach_json, misplaced_json
from landlane.workspaces.unauthorized_writes import BreachKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.cli.command import CommandCall
    from landlane.workspaces.fix_unauthorized_writes import FixResult
    from landlane.workspaces.misplaced import MisplacedChange
    from landlane.workspaces.unauthorized_writes import Breach


_MOST_NAMED = 5


def list_all(call: CommandCall) -> int:
    """List changes in the wrong checkout."""
    call.renew_session()
    repo = prepare_git(call.repo, call.terminal.note)
    misplaced = find_misplaced(repo)
    breaches = list_open_breaches(repo)
    here = repo.checkout.root
    rows = [
        *((breach.id, _paths_text(breach.paths), _breach_text(breach, here)) for breach in breaches),
        *(("", _paths_text([path_text(one.path)]), _change_text(one, here)) for one in misplaced),
    ]
    answer = {
        "ok": True,
        "strays": [misplaced_json(one) for one in misplaced],
        "breaches": [breach_json(one) for one in breaches],
    }
    lines = _aligned(rows) or ["No misplaced changes."]
    return call.terminal.answer(answer, "\n".join([*lines, *_next_lines(breaches, misplaced)]))


def _aligned(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    first = max((len(cells[0]) for cells in rows), default=0)
    second = max((len(cells[1]) for cells in rows), default=0)
    gap = "  " if first else ""
    return [f"{cells[0]:<{first}}{gap}{cells[1]:<{second}}   {cells[2]}" for cells in rows]


def _paths_text(paths: Sequence[str]) -> str:
    return list_some([*map(in_one_line, paths)], _MOST_NAMED)


def _breach_text(breach: Breach, here: str) -> str:
    where = "" if breach.root == here else f" in {home_path(breach.root)}"
    why = {
        BreachKind.HELD: f"claimed by {breach.holder}",
        BreachKind.STRAY: "outside its workspace",
        BreachKind.ROLE: "its role does not allow it",
    }[breach.kind]
    return f"written{where} through the shell by {breach.agent} ({clock_time(breach.at)}); {why}"


def _change_text(change: MisplacedChange, here: str) -> str:
    where = "here" if change.root == here else f"in {home_path(change.root)}"
    at = f" ({clock_time(change.changed_at)})" if change.changed_at is not None else ""
    verb = "changed" if change.changed_at is not None else "deleted"
    if change.state == STRAY:
        belongs = f"claimed by {change.agent}; belongs to {' or '.join(change.choices)}"
    else:
        belongs = "no session has claimed it"
    return f"{verb} {where}{at}; {belongs}"


def _next_lines(breaches: Sequence[Breach], misplaced: Sequence[MisplacedChange]) -> list[str]:
    """Return at most two commands that deal with what was listed."""
    movable = [one.id for one in breaches if one.kind == BreachKind.STRAY]
    movable += [shlex.quote(one.path) for one in misplaced if one.to]
    others = [one.id for one in breaches if one.kind != BreachKind.STRAY]
    commands = [f"landlane misplaced move {one}" for one in movable[:1]]
    commands += [f"landlane misplaced undo {one}" for one in others[:1]]
    return [f"{label} {text}" for label, text in zip(("next:", "then:"), commands, strict=False)]


def undo(call: CommandCall, id: str) -> int:
    """Restore the files as they were before a shell's write."""
    repo = prepare_git(call.repo, call.terminal.note)
    return _show_resolved(call, undo_breach(repo, call.known_session(), id), "restored")


def accept(call: CommandCall, id: str) -> int:
    """Keep a shell's write."""
    repo = prepare_git(call.repo, call.terminal.note)
    return _show_resolved(call, accept_breach(repo, call.known_session(), id), "accepted")


def _show_resolved(call: CommandCall, resolved: FixResult, verb: str) -> int:
    to = resolved.workspace
    where = f" to {to.id} ({home_path(to.path)})" if to else ""
    lines = [f"✓ {verb} {in_one_line(path_text(path))}{where}" for path in resolved.paths]
    lines = lines or ["Nothing to change: the files are as they were."]
    if verb != "accepted":
        lines.append(f"  what was written is kept: git show {resolved.breach.ref}:after/PATH")
    answer = {
        "ok": True,
        "breach": breach_json(resolved.breach),
        "paths": [path_text(path) for path in resolved.paths],
        "workspace": to.id if to else None,
    }
    return call.terminal.answer(answer, "\n".join(lines))


def move(call: CommandCall, paths: tuple[str, ...], to: str) -> int:
    """Move misplaced changes to their workspace, and show how to undo that."""
    repo = prepare_git(call.repo, call.terminal.note)
    session = call.known_session()
    if len(paths) == 1 and paths[0][:1] == "B" and paths[0][1:].isdecimal():
        return _show_resolved(call, move_breach(repo, session, paths[0], to), "moved")
    wanted = [locate(repo, call.cwd, path, to) for path in paths] if paths else None
    moved = move_misplaced_changes(repo, session, wanted, to)
    end_moved(repo, session, [(one.change.root, one.change.path) for one in moved.moves])
    items = [
        {
            "path": one.change.path,
            "from": one.change.root,
            "workspace": one.workspace.id,
            "to": one.workspace.path,
        }
        for one in moved.moves
    ]
    rescues = [{"checkout": root, "rescue": rescue} for root, rescue in moved.rescues]
    lines = [
        f"✓ moved {in_one_line(path_text(item['path']))} to {item['workspace']} ({home_path(item['to'])})"
        for item in items
    ]
    lines += [
        f"  {home_path(root)} as it was: landlane rescue restore {rescue}" for root, rescue in moved.rescues
    ]
    return call.terminal.answer({"ok": True, "moved": items, "rescues": rescues}, "\n".join(lines))
