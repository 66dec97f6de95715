"""The command that shows, follows and verifies the journal."""

from __future__ import annotations

from landlane.app.verify_journal import verify_journal
from landlane.cli.parse_number import read_number
from landlane.cli.terminal import in_one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command import Desk


def journal(desk: Desk, follow: bool, since: str, verify: bool, last: str) -> int:
    """Show the journal, follow it, or prove it."""
    from landlane.journal.read import last_position, read_entries
    from landlane.journal.to_json import entry_json, entry_text

    if verify:
        return _verify(desk)
    context = desk.house.context
    desk.show_life()
    after = read_number(since, "--since") or 0
    newest = read_number(last, "--last")
    if newest is not None:
        after = max(after, last_position(context) - newest)
    if follow:
        start = after if since or last else last_position(context)
        return _follow(desk, start)
    entries = list(read_entries(context, after))
    text = "\n".join(in_one_line(entry_text(entry)) for entry in entries)
    desk.terminal.answer({"ok": True, "entries": [entry_json(entry) for entry in entries]}, text)
    return 0


def _follow(desk: Desk, after: int) -> int:
    """Print entries as they come: JSON lines with --json, because there is no end to wait for."""
    import json

    from landlane.cli.command import heed_signals
    from landlane.journal.read import follow
    from landlane.journal.to_json import entry_json, entry_text

    heed_signals()
    for entry in follow(desk.house.context, after):
        as_json = desk.terminal.is_json
        text = json.dumps(entry_json(entry), ensure_ascii=False) if as_json else entry_text(entry)
        desk.terminal.line(text if as_json else in_one_line(text))
    return 0


def _verify(desk: Desk) -> int:
    verdict = verify_journal(desk.open(notices_restore=False))
    answer: dict[str, Any] = {
        "ok": not verdict.trouble,
        "entries": verdict.entries,
        "head": verdict.head,
        "trouble": list(verdict.trouble),
    }
    if verdict.trouble:
        answer |= {
            "code": "JOURNAL_CHANGED",
            "message": verdict.trouble[0],
            "hint": "compare with a copy: journal.jsonl, refs/landlane/journal or a backup",
        }
        desk.terminal.answer(answer, "")
        if not desk.terminal.is_json:
            desk.terminal.complain("the journal was changed", answer["hint"], answer["code"])
            for line in verdict.trouble:
                desk.terminal.note(f"  {line}")
        return 1
    desk.terminal.answer(answer, f"{verdict.entries} entries, chain whole, head {verdict.head[:16]}…")
    return 0
