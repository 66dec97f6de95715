"""The frame of `status` as lines: what needs you, who works, what lands, who waits, and the money."""

from __future__ import annotations

from landlane.cli.inbox import item_lines
from landlane.cli.table import pad, shorten, text_width
from landlane.cli.terminal import WIDEST, cut_width, in_one_line, terminal_width
from landlane.text import list_some
from landlane.units import (
    clock_time,
    join_words,
    money,
    money_limit,
    ordinal,
    rough_duration,
    running_time,
    time_left,
)
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.inbox.json_types import InboxItemJson

_MICROS = 1_000_000
_MOST_NAMED = 3
_BAR = 13
_GAPS = (2, 3, 2, 3, 2, 0)  # behind each column: id, title, agent, try, activity, cost
_SHORTEST_TITLE = 12


@value
class FrameLine:
    """A line of the frame, and the id of the item that it is about; empty if there is none."""

    text: str
    opens: str = ""


def frame_text(facts: Mapping[str, Any], now: int, lost: str = "") -> str:
    """Return the frame as text; `lost` says why the caller's session is over."""
    return "\n".join(line.text for line in frame_lines(facts, now, lost))


def frame_lines(facts: Mapping[str, Any], now: int, lost: str = "") -> list[FrameLine]:
    """Return the frame: the headline with the time, then a section for each thing there is."""
    working = [_working_cells(row) for row in facts["working"]]
    landing = [_landing_cells(row) for row in facts["landing"]]
    waiting = [_waiting_cells(row) for row in facts["waiting"]]
    widths = _common_widths(working + landing, waiting)
    sections = {
        "Needs you": _item_rows(facts["inbox"]),
        "Working": _rows(working, widths),
        f"Landing on {facts['headline']['target']}": _rows(landing, widths),
        "Waiting": _rows(waiting, widths),
        "Slots": [FrameLine(text=f"  {slot['id']}  {slot['holder']}") for slot in facts["slots"]],
        "Money": [FrameLine(text=line) for line in _money_lines(facts["money"])],
    }
    lines = [_first_line(facts["headline"]["text"], clock_time(now))]
    lines += [lost] if lost else []
    if not facts["troubles"] and not any(sections[title] for title in sections if title != "Money"):
        lines.append(facts["overview"])
    lines += ["", *facts["troubles"]] if facts["troubles"] else []
    frame = [FrameLine(text=in_one_line(line)) for line in lines]
    for title, body in sections.items():
        frame += [FrameLine(text=""), FrameLine(text=title), *body] if body else []
    return frame + [FrameLine(text=f"notice: {in_one_line(text)}") for text in facts["notices"]]


def _item_rows(items: Sequence[InboxItemJson]) -> list[FrameLine]:
    lines = zip(items, item_lines(items), strict=True)
    return [FrameLine(text=line, opens=item["id"]) for item, line in lines]


def _first_line(text: str, clock: str) -> str:
    space = max(min(terminal_width(), WIDEST) - text_width(text) - len(clock), 3)
    return f"{text}{' ' * space}{clock}"


def _common_widths(full: Sequence[Sequence[str]], short: Sequence[Sequence[str]]) -> list[int]:
    """Return the widths of the columns, the same in all sections; the titles are cut to fit the terminal."""
    widths = [
        max((text_width(row[column]) for row in (*full, *(short if column < 2 else ()))), default=0)
        for column in range(len(_GAPS))
    ]
    lengths = [
        2 + sum(widths[:2]) + sum(_GAPS[:2]) + max((text_width(cells[2]) for cells in short), default=0)
    ]
    if full:
        lengths.append(2 + sum(size + gap for size, gap in zip(widths, _GAPS, strict=True) if size))
    excess = max(lengths) - (cut_width() or max(lengths))
    widths[1] = max(widths[1] - max(excess, 0), min(widths[1], _SHORTEST_TITLE))
    return widths


def _rows(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> list[FrameLine]:
    return [
        FrameLine(text=_row_text(cells, widths), opens=cells[0] if cells[0][1:].isdecimal() else "")
        for cells in rows
    ]


def _row_text(row: Sequence[str], widths: Sequence[int]) -> str:
    text = "  "
    for column, cell in enumerate(row):
        is_last, size = column == len(row) - 1, widths[column]
        shown = shorten(cell, size) if column == 1 else cell
        if is_last:
            text += pad(shown, size, is_right=True) if column == len(_GAPS) - 1 else shown
        elif size:
            text += pad(shown, size) + " " * _GAPS[column]
    return text.rstrip()


def _working_cells(row: Mapping[str, Any]) -> list[str]:
    what = row["title"] if row["task"] else _some(row["claims"])
    tries = f"{row['tries']}/{row['max_tries']}" if row["tries"] else ""
    cost = row["cost_usd"]
    spent = "" if cost is None else money(round(cost * _MICROS), has_unknown=not row["is_cost_known"])
    cells = [row["task"] or "–", what, row["agent"], tries, _activity(row), spent]
    return list(map(in_one_line, cells))


def _activity(row: Mapping[str, Any]) -> str:
    """Return what a worker does and when it was last active, or why it cannot go on."""
    left = row["limit_ends_in_seconds"]
    if left is not None:
        return f"{row['client'].capitalize()} limit resets {time_left(left * 1000)}"
    idle = row["idle_seconds"]
    seen = "" if idle is None else f"{rough_duration(idle * 1000)} ago"
    return ", ".join(filter(None, (row["doing"], seen))) if row["doing"] else f"active {seen}".rstrip()


def _landing_cells(row: Mapping[str, Any]) -> list[str]:
    return list(map(in_one_line, [row["landing"], row["title"], row["agent"], "", _check_text(row), ""]))


def _check_text(row: Mapping[str, Any]) -> str:
    """Return the check that runs, with a bar if it is known how long it takes; else what it waits for."""
    if not row["check"]:
        return row["doing"]
    elapsed, about = row["check_seconds"], row["check_estimate_seconds"]
    if not about:
        return f"{row['check']}  {running_time(elapsed * 1000)}"
    filled = min(round(_BAR * elapsed / about), _BAR)
    bar = "━" * filled + "─" * (_BAR - filled)
    return f"{row['check']}  {bar} {running_time(elapsed * 1000)} of about {running_time(about * 1000)}"


def _waiting_cells(row: Mapping[str, Any]) -> list[str]:
    if row["agent"]:
        holders = f"claimed by {join_words(row['holders'])}; " if row["holders"] else ""
        cells = [row["agent"], _some(row["paths"]), f"{holders}{ordinal(row['position'])} in line"]
    elif row["paths"]:
        why = f"{_some(row['paths'])}, claimed by {join_words(row['holders'])}"
        cells = [row["task"], row["title"], why]
    else:
        waits = f"blocked by {join_words(row['waits_for'])}" if row["waits_for"] else row["why"] or "blocked"
        cells = [row["task"], row["title"], waits]
    return list(map(in_one_line, cells))


def _some(names: Sequence[str]) -> str:
    return list_some(names, _MOST_NAMED)


def _money_lines(spent: Mapping[str, Any]) -> list[str]:
    if not spent["today_usd"]:  # nothing was spent, or what ran reports no cost
        budget = spent["day_budget_usd"]
        if spent["is_known"] or budget is None:
            return []
        return [f"  no cost was reported today; the budget is {_limit(budget)}"]
    today = money(round(spent["today_usd"] * _MICROS), has_unknown=not spent["is_known"])
    budget = spent["day_budget_usd"]
    parts = [today + (f" of {_limit(budget)}" if budget is not None else "") + " today"]
    if spent["per_landed_usd"] is not None:
        each = money(round(spent["per_landed_usd"] * _MICROS), has_unknown=not spent["is_known"])
        parts.append(f"{each} per landed task")
    if spent["closest_task"]:
        used = money(round(spent["closest_usd"] * _MICROS))
        limit = _limit(spent["task_budget_usd"])
        parts.append(f"closest to its budget: {spent['closest_task']}, {used} of {limit}")
    return ["  " + " · ".join(parts)]


def _limit(usd: float) -> str:
    return money_limit(round(usd * _MICROS))
