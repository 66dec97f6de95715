"""The command that shows, follows and verifies the journal."""

from __future__ import annotations

from interlock.cli.numbers import read_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interlock.cli.main import Desk


def journal(desk: Desk, follow: bool, since: str, verify: bool, last: str) -> int:
    """Show the journal, follow it, or prove it."""
    from interlock.operations.journal import last_position, read_entries  # noqa: PLC0415
    from interlock.views.journal import entry_json, entry_text  # noqa: PLC0415

    if verify:
        return _verify(desk)
    context = desk.house.context
    after = read_number(since, "--since") or 0
    newest = read_number(last, "--last")
    if newest is not None:
        after = max(after, last_position(context) - newest)
    if follow:
        start = after if since or last else last_position(context)
        return _follow(desk, start)
    entries = list(read_entries(context, after))
    text = "\n".join(entry_text(entry) for entry in entries)
    desk.terminal.answer({"ok": True, "entries": [entry_json(entry) for entry in entries]}, text)
    return 0


def _follow(desk: Desk, after: int) -> int:
    """Print entries as they come: JSON lines with --json, because there is no end to wait for."""
    import json  # noqa: PLC0415

    from interlock.operations.journal import follow  # noqa: PLC0415
    from interlock.views.journal import entry_json, entry_text  # noqa: PLC0415

    for entry in follow(desk.house.context, after):
        as_json = desk.terminal.is_json
        desk.terminal.line(json.dumps(entry_json(entry), ensure_ascii=False) if as_json else entry_text(entry))
    return 0


def _verify(desk: Desk) -> int:
    verdict = desk.house.verify()
    answer = {
        "ok": not verdict.trouble,
        "entries": verdict.entries,
        "head": verdict.head,
        "trouble": list(verdict.trouble),
    }
    if verdict.trouble:
        answer |= {
            "code": "JOURNAL_CHANGED",
            "message": verdict.trouble[0],
            "hint": "compare with a copy: journal.jsonl, refs/interlock/journal or a backup",
        }
        desk.terminal.answer(answer, "")
        if not desk.terminal.is_json:
            desk.terminal.complain("the journal was changed", answer["hint"], answer["code"])
            for line in verdict.trouble:
                desk.terminal.note(f"  {line}")
        return 1
    desk.terminal.answer(answer, f"{verdict.entries} entries, chain whole, head {verdict.head[:16]}…")
    return 0
