"""Plans written as TOML: `[[task]]` tables, `[defaults]` for what most of them share.

title = "Dates everywhere"
budget = 20                       # US dollars for all of it

[defaults]
role = "code"
agent = "claude"

[[task]]
name = "api"
title = "Agree on the interface of dates"
paths = ["src/dates/api.py"]
contract = true

[[task]]
title = "Parse dates"
after = ["api"]
check = "pytest tests/test_dates.py"
"""

from __future__ import annotations

import tomllib

from landlane.plans.model import (
    FACTS,
    SHARED_FACTS,
    Plan,
    PlanTask,
    bad,
    make_plan,
    make_task,
    read_money,
    unknown_fact,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TOP = ("title", "id", "budget", "defaults", "task")


def read_toml_plan(text: str) -> Plan:
    """The plan that a TOML text holds.

    Raises:
        Malformed: it is not TOML, or says something that a plan does not know; the line is named.
    """
    document = _parse(text)
    lines = _Lines(text)
    for word in document:
        if word not in _TOP:
            raise unknown_fact(word, _TOP, lines.of_top(word))
    for word in ("title", "id"):
        if not isinstance(document.get(word, ""), str):
            raise bad(lines.of_top(word), f"{word} must be a text", f'write {word} = "…"')
    budget = document.get("budget")
    return make_plan(
        document.get("title", ""),
        _tasks(document, lines),
        id=document.get("id", ""),
        budget_micros=None if budget is None else read_money(budget, "budget", lines.of_top("budget")),
    )


def _parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except (ValueError, RecursionError) as error:
        message = str(error) if isinstance(error, ValueError) else "it is nested too deeply"
        raise bad(_line_in(message), f"this is not TOML: {message}", "mend the place it names") from None


def _line_in(message: str) -> int:
    """The line that tomllib's message names; 0 when it names none."""
    digits = message.rpartition("(at line ")[2].partition(",")[0]
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def _tasks(document: dict[str, Any], lines: _Lines) -> list[PlanTask]:
    tables: Any = document.get("task", [])
    if not isinstance(tables, list) or any(_table(one) is None for one in tables):  # pyright: ignore[reportUnknownVariableType]
        raise bad(lines.of_top("task"), "tasks must be tables", "begin each with a line [[task]]")
    shared = _defaults(document, lines)
    made: list[PlanTask] = []
    for place, one in enumerate(tables):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        table = _table(one) or {}
        given = {word: (found, lines.of_task(place, word)) for word, found in table.items()}
        made.append(make_task({**shared, **given}, lines.of_task(place)))
    return made


def _defaults(document: dict[str, Any], lines: _Lines) -> dict[str, tuple[object, int]]:
    table = _table(document.get("defaults", {}))
    if table is None:
        raise bad(lines.of_top("defaults"), "defaults must be a table", "begin it with a line [defaults]")
    for word in table:
        if word not in SHARED_FACTS:
            known = [fact for fact in FACTS if fact in SHARED_FACTS]
            raise unknown_fact(word, known, lines.of_default(word))
    return {word: (found, lines.of_default(word)) for word, found in table.items()}


def _table(found: Any) -> dict[str, Any] | None:
    return found if isinstance(found, dict) else None  # pyright: ignore[reportUnknownVariableType]


class _Lines:
    """Where tables and keys stand, as far as a plain reading of the lines tells; 0 where it does not."""

    def __init__(self, text: str) -> None:
        self._top: dict[str, int] = {}
        self._defaults: dict[str, int] = {}
        self._tasks: list[tuple[int, dict[str, int]]] = []
        current = self._top
        for number, line in _statements(text):
            if line.startswith("["):
                name = line.partition("#")[0].replace(" ", "").replace("\t", "").strip("[]")
                if line.startswith("[[") and name == "task":
                    keys: dict[str, int] = {}
                    self._tasks.append((number, keys))
                    current = keys
                elif name == "defaults":
                    current = self._defaults
                else:
                    current = self._top if "." not in name else {}
                    current.setdefault(name, number)
            elif "=" in line:
                current.setdefault(line.partition("=")[0].strip().strip("\"'"), number)

    def of_top(self, word: str) -> int:
        return self._top.get(word, 0)

    def of_default(self, word: str) -> int:
        return self._defaults.get(word, 0)

    def of_task(self, place: int, word: str = "") -> int:
        if place >= len(self._tasks):
            return self._top.get("task", 0)
        line, keys = self._tasks[place]
        return keys.get(word, line)


def _statements(text: str) -> list[tuple[int, str]]:
    """The lines on which a table or a key may begin: none that lies inside a text of several lines."""
    found: list[tuple[int, str]] = []
    quote = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if not quote:
            found.append((number, line.strip()))
        quote = _quote_after(line, quote)
    return found


def _quote_after(line: str, quote: str) -> str:
    """The quotes of a text of several lines that is still open at the end of this line; empty for none."""
    at, quote = 0, ""
    while at < len(line):
        letter = line[at]
        if quote:
            at, quote = _past_quote(line, at, quote)
        elif quote:
            at += 2 if letter == "\\" and quote == '"' else 1
            quote = "" if letter == quote else quote
        elif line.startswith(('"""', "'''"), at):
            quote = line[at : at + 3]
            at += 3
        elif letter == "#":
            break
        else:
            quote = letter if letter in "\"'" else ""
            at += 1
    return quote


def _past_quote(line: str, at: int, quote: str) -> tuple[int, str]:
    if line[at] == "\\" and quote == '"""':
        return at + 2, quote
    return (at + 3, "") if line.startswith(quote, at) else (at + 1, quote)
