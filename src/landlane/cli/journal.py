"""The command `journal`: show, follow or verify it."""

from __future__ import annotations

import json

from landlane.cli.command import heed_signals
from landlane.cli.parse_number import read_number
from landlane.cli.terminal import in_one_line
from landlane.journal.read import follow, last_position, read_entries
from landlane.journal.to_json import entry_json, entry_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command_call import CommandCall


def journal(call: CommandCall, follow: bool, since: str, verify: bool, last: str) -> int:
    """Show, follow or verify the journal."""
    if verify:
        return _verify(call)
    repo = call.repo
    call.show_life()
    after = read_number(since, "--since") or 0
    newest = read_number(last, "--last")
    if newest is not None:
        after = max(after, last_position(repo) - newest)
    if follow:
        start = after if since or last else last_position(repo)
        return _follow(call, start)
    entries = list(read_entries(repo, after))
    text = "\n".join(in_one_line(entry_text(entry)) for entry in entries)
    call.terminal.answer({"ok": True, "entries": [entry_json(entry) for entry in entries]}, text)
    return 0


def _follow(call: CommandCall, after: int) -> int:
    """Print entries as they arrive; with --json as JSON lines, because there is no end."""
    heed_signals()
    for entry in follow(call.repo, after):
        as_json = call.terminal.is_json
        text = json.dumps(entry_json(entry), ensure_ascii=False) if as_json else entry_text(entry)
        call.terminal.line(text if as_json else in_one_line(text))
    return 0


def _verify(call: CommandCall) -> int:
    from landlane.app.verify_journal import verify_journal  # noqa: PLC0415 - it starts git

    verdict = verify_journal(call.open(detects_restore=False))
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
        call.terminal.answer(answer, "")
        if not call.terminal.is_json:
            call.terminal.complain("the journal was changed", answer["hint"], answer["code"])
            for line in verdict.trouble:
                call.terminal.note(f"  {line}")
        return 1
    call.terminal.answer(answer, f"{verdict.entries} entries, chain whole, head {verdict.head[:16]}…")
    return 0
