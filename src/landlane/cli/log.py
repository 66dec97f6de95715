"""`landlane log`: show, follow or verify the journal."""

from __future__ import annotations

from landlane.cli.arguments import read_number
from landlane.cli.command import stop_on_signals
from landlane.cli.parse import call_text
from landlane.cli.terminal import in_one_line
from landlane.clock import rfc3339
from landlane.journal.read import follow as follow_journal
from landlane.journal.read import last_position, read_entries
from landlane.journal.select import make_filter
from landlane.journal.sentences import entry_line, is_for_people
from landlane.journal.to_json import sentence_entry_json
from landlane.tasks.records import list_tasks
from landlane.units import count, day_name
from landlane.usage.period import read_period

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.store.journal_chain import JournalEntry

_SINCE = ["--since", "2d"]
_MOST_SHOWN = 50  # without --since, --after or --last


def log(call: CommandCall, about: str, follow: bool, since: str, after: str, verify: bool, last: str) -> int:
    """Show, follow or verify the journal."""
    if verify:
        return _verify(call)
    repo = call.repo
    call.renew_session()
    position = read_number(after, "--after") or 0
    newest = read_number(last, "--last")
    begin = read_period(since, "", call.wall_now()).since if since else 0
    if newest is not None:
        position = max(position, last_position(repo) - newest)
    if follow:
        return _follow(call, about, position if after or last else last_position(repo))
    is_wanted = make_filter(repo, about)
    entries = [entry for entry in read_entries(repo, position) if entry.at >= begin and is_wanted(entry)]
    titles = _titles(call)
    is_limited = not (since or after or last)
    text = _text(call, entries, titles, is_limited=is_limited, has_filters=not about)
    return call.terminal.answer(
        {"ok": True, "entries": [sentence_entry_json(one, titles) for one in entries]}, text
    )


def _titles(call: CommandCall) -> dict[str, str]:
    return {task.id: task.title for task in list_tasks(call.repo)}


def _text(
    call: CommandCall,
    entries: Sequence[JournalEntry],
    titles: Mapping[str, str],
    *,
    is_limited: bool,
    has_filters: bool,
) -> str:
    """Return the entries by day; bookkeeping only with -v."""
    shown = [entry for entry in entries if call.terminal.is_verbose or is_for_people(entry)]
    if not shown:
        return "No entries."
    lines: list[str] = []
    if is_limited and len(shown) > _MOST_SHOWN:
        earlier = count(len(shown) - _MOST_SHOWN, "earlier entry", "earlier entries")
        lines.append(f"{earlier}: landlane log --since all")
        shown = shown[-_MOST_SHOWN:]
    now, day = call.wall_now(), ""
    for entry in shown:
        if (name := day_name(entry.at, now)) != day:
            day = name
            lines.append(day[:1].upper() + day[1:])
        lines.append(_line(call, entry, titles))
    return "\n".join([*lines, *([_filters(shown)] if is_limited and has_filters else [])])


def _filters(entries: Sequence[JournalEntry]) -> str:
    """Return how to see less, with the last task and the last path that the entries name."""
    facts = [entry.facts() for entry in reversed(entries)]
    tasks = (str(one["task"]) for one in facts if isinstance(one.get("task"), str) and one["task"])
    paths = (str(one["pattern"]) for one in facts if one.get("pattern"))
    about = [name for name in (next(tasks, ""), next(paths, "")) if name]
    return f"Filter: {', '.join(call_text(['log', *words]) for words in (*([one] for one in about), _SINCE))}"


def _line(call: CommandCall, entry: JournalEntry, titles: Mapping[str, str]) -> str:
    if not call.terminal.is_verbose:
        return in_one_line(entry_line(entry, titles))
    return in_one_line(
        f"{entry.position:>6}  {rfc3339(entry.at)}  {entry_line(entry, titles)}  [{entry.kind}]"
    )


def _follow(call: CommandCall, about: str, after: int) -> int:
    """Print entries as they arrive; with --json as JSON lines, because there is no end."""
    stop_on_signals()
    is_wanted, titles = make_filter(call.repo, about), _titles(call)
    for entry in follow_journal(call.repo, after):
        if not is_wanted(entry):
            continue
        if entry.kind == "task.added":
            titles = _titles(call)
        if call.terminal.is_json or call.terminal.is_verbose or is_for_people(entry):
            call.terminal.line(sentence_entry_json(entry, titles), _line(call, entry, titles))
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
            "hint": "compare with a copy (journal.jsonl, a backup): git log refs/landlane/journal",
        }
        if call.terminal.is_json:
            return call.terminal.answer(answer, code=1)
        call.terminal.print_error("the journal was changed", answer["hint"], answer["code"])
        for line in verdict.trouble:
            call.terminal.note(f"  {line}")
        return 1
    entries = count(verdict.entries, "entry", "entries")
    return call.terminal.answer(
        answer, f"✓ {entries}, unchanged since they were written (head {verdict.head[:8]})"
    )
