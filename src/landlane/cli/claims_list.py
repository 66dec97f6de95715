"""The commands that show claims: claims, who."""

from __future__ import annotations

from landlane.claims.read import list_claims
from landlane.claims.to_json import claim_json
from landlane.cli.claims import read_paths, read_patterns
from landlane.cli.terminal import in_one_line
from landlane.journal.read import last_word_on
from landlane.journal.to_json import entry_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command_call import CommandCall


def claims(call: CommandCall, paths: tuple[str, ...]) -> int:
    """List live claims."""
    repo = call.repo
    call.show_life()
    wanted = read_patterns(call, paths, False)
    items = [claim_json(item, repo.store) for item in list_claims(repo, wanted)]
    columns = ["pattern", "holder", "mode", "token", "until", "task", "note"]
    cells = [[str(item[column] or "") for column in columns] for item in items]
    title = f"{len(items)} live claim{'' if len(items) == 1 else 's'}"
    call.terminal.answer({"ok": True, "claims": items}, call.terminal.table(title, columns, cells))
    return 0


def who(call: CommandCall, path: str) -> int:
    """Show who holds a path and who last changed it."""
    repo = call.repo
    call.show_life()
    (pattern,) = read_paths(call, (path,))
    items = [claim_json(item, repo.store) for item in list_claims(repo, (pattern,))]
    entry = last_word_on(repo, pattern)
    is_path = pattern.kind == "literal"
    change: dict[str, Any] = repo.git.last_change(pattern.text) if is_path else {}
    lines = [f"{item['holder']} holds {in_one_line(item['pattern'])} until {item['until']}" for item in items]
    lines = lines or ["nobody holds it"]
    if entry is not None:
        last = entry_json(entry)
        lines.append(f"last in the journal: {last['kind']} by {last['agent']} at {last['at']}")
    if change:
        task = f" for {change['task']}" if change["task"] else ""
        by = f"{change['agent'] or change['author']}{task}"
        line = f"last changed by {by} at {change['at']}: {change['commit'][:12]} {change['subject']}"
        lines.append(in_one_line(line))
    answer = {
        "ok": True,
        "path": pattern.text,
        "claims": items,
        "last_entry": entry_json(entry) if entry else None,
        "last_change": change or None,
    }
    call.terminal.answer(answer, "\n".join(lines))
    return 0
