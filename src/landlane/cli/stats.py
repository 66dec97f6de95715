"""The command `stats`: this week beside the last, or one period."""

from __future__ import annotations

from textwrap import fill

from landlane.stats.calculate import period_of, stats
from landlane.stats.metrics import DEFINITIONS
from landlane.stats.to_json import definitions_json, period_json, period_words, stats_json
from landlane.stats.weeks import period_rows, week_rows, weekly_stats
from landlane.status.headline import read_headline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import CommandCall

_DEFINE = "Definitions: landlane stats --define"
_COLUMNS = ("this week", "last week", "4 weeks")


def show(call: CommandCall, since: str, until: str, *, define: bool) -> int:
    """Show the metrics of this week and the weeks before, of a period, or their definitions."""
    if define:
        return call.terminal.answer({"ok": True, "definitions": definitions_json()}, _definitions())
    call.renew_session()
    repo, table = call.repo, call.terminal.table
    target = read_headline(repo).target
    if since or until:
        found = stats(repo, period_of(repo, since, until))
        title = period_words(found.period)
        text = table("", ["", title], period_rows(found, target), right=(title.upper(),))
        return call.terminal.answer({"ok": True, **stats_json(found)}, f"{text}\n{_DEFINE}")
    weeks = weekly_stats(repo)
    right = tuple(name.upper() for name in _COLUMNS[:2])
    text = table("", ["", *_COLUMNS], week_rows(weeks, target), right=right, gap="   ")
    document = {"ok": True, **stats_json(weeks[0]), "weeks": [period_json(week) for week in weeks]}
    return call.terminal.answer(document, f"{text}\n{_DEFINE}")


def _definitions() -> str:
    """Return every metric with its definition, wrapped for a terminal."""
    entries = [
        f"{called}\n{fill(meaning, 96, initial_indent='  ', subsequent_indent='  ')}"
        for _, called, meaning in DEFINITIONS.values()
    ]
    return "\n".join(entries)
