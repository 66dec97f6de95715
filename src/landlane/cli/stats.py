"""The command `stats`."""

from __future__ import annotations

from textwrap import fill

from landlane.stats.calculate import period_of, stats
from landlane.stats.metrics import DEFINITIONS
from landlane.stats.to_json import definitions_json, metric_row, period_words, stats_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import CommandCall


def show(call: CommandCall, since: str, until: str, *, define: bool) -> int:
    """Show the metrics of a period, or their definitions."""
    if define:
        return call.terminal.answer({"ok": True, "definitions": definitions_json()}, _definitions())
    call.renew_session()
    repo = call.repo
    found = stats(repo, period_of(repo, since, until))
    rows = [metric_row(metric, found) for metric in found.metrics]
    columns = ["metric", "value", "counted from", "by day"]
    text = call.terminal.table(period_words(found.period), columns, rows)
    return call.terminal.answer(
        {"ok": True, **stats_json(found)}, f"{text}\n`landlane stats --define` says what each means"
    )


def _definitions() -> str:
    """Return every metric with its definition, wrapped for a terminal."""
    entries = [
        f"{called}\n{fill(meaning, 96, initial_indent='  ', subsequent_indent='  ')}"
        for _, called, meaning in DEFINITIONS.values()
    ]
    return "\n".join(entries)
