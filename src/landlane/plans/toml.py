"""Plans written as TOML: `[[task]]` tables, `[defaults]` for what most of them share.

title = "Dates everywhere"
budget = 20                       # US dollars for all tasks together

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

import re
import tomllib
from typing import cast

from landlane.plans.fields import FIELDS, make_task, read_amount, unknown_field
from landlane.plans.model import Plan, PlanTask, bad_plan, make_plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TOP_LEVEL = ("title", "id", "budget", "defaults", "task")
_NOT_SHARED = ("name", "title", "body", "paths", "after", "check", "output", "priority", "contract")
_SHARED = [field for field in FIELDS if field not in _NOT_SHARED]
# Comments and strings; only those with three quotes can span lines.
_TOKEN = re.compile(r"""#[^\n]*|"{3}(?:\\.|.)*?"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\\n])*"|'[^'\n]*'""", re.DOTALL)


def read_toml_plan(text: str) -> Plan:
    """Return the plan in a TOML text.

    Raises:
        Malformed: it is not TOML, or has unknown fields; the error has the line.
    """
    document = _parse(text)
    lines = _TomlLines(text)
    for word in document:
        if word not in _TOP_LEVEL:
            raise unknown_field(word, _TOP_LEVEL, lines.top.get(word, 0))
    for word in ("title", "id"):
        if not isinstance(document.get(word, ""), str):
            raise bad_plan(lines.top.get(word, 0), f"{word} must be a text", f'write {word} = "…"')
    budget = document.get("budget")
    return make_plan(
        document.get("title", ""),
        _tasks(document, lines),
        id=document.get("id", ""),
        budget_micros=None if budget is None else read_amount(budget, "budget", lines.top.get("budget", 0)),
    )


def _parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except (ValueError, RecursionError) as error:
        message = str(error) if isinstance(error, ValueError) else "it is nested too deeply"
        line = re.search(r"\(at line (\d+),", message)
        raise bad_plan(
            int(line[1]) if line else 0,
            f"not valid TOML: {message.partition(' (at ')[0]}",
            "a complete example: landlane help plan check",
        ) from None


def _tasks(document: dict[str, Any], lines: _TomlLines) -> list[PlanTask]:
    tables: Any = document.get("task", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):  # pyright: ignore[reportUnknownVariableType]
        raise bad_plan(lines.top.get("task", 0), "tasks must be tables", "begin each with a line [[task]]")
    shared = _defaults(document, lines)
    tasks: list[PlanTask] = []
    for at, table in enumerate(cast("list[dict[str, Any]]", tables)):
        line, keys = lines.tasks[at] if at < len(lines.tasks) else (lines.top.get("task", 0), {})
        fields = {word: (item, keys.get(word, line)) for word, item in table.items()}
        tasks.append(make_task({**shared, **fields}, line))
    return tasks


def _defaults(document: dict[str, Any], lines: _TomlLines) -> dict[str, tuple[object, int]]:
    table: dict[str, Any] = document.get("defaults", {})
    if not isinstance(table, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
        line = lines.top.get("defaults", 0)
        raise bad_plan(line, "defaults must be a table", "begin it with a line [defaults]")
    for word in table:
        if word not in _SHARED:
            raise unknown_field(word, _SHARED, lines.defaults.get(word, 0))
    return {word: (item, lines.defaults.get(word, 0)) for word, item in table.items()}


class _TomlLines:
    """The line numbers of tables and keys, found without a full parse; unusual spellings are missing."""

    def __init__(self, text: str) -> None:
        self.top: dict[str, int] = {}
        self.defaults: dict[str, int] = {}
        self.tasks: list[tuple[int, dict[str, int]]] = []
        keys = self.top
        for number, line in enumerate(_blank_long_strings(text).splitlines(), start=1):
            line = line.strip()
            if line.startswith("["):
                name = re.sub(r"[\s\[\]]", "", line.partition("#")[0])
                if line.startswith("[[") and name == "task":
                    keys = dict[str, int]()
                    self.tasks.append((number, keys))
                elif name == "defaults":
                    keys = self.defaults
                else:
                    keys = self.top if "." not in name else {}
                    keys.setdefault(name, number)
            elif "=" in line:
                keys.setdefault(line.partition("=")[0].strip().strip("\"'"), number)


def _blank_long_strings(text: str) -> str:
    """Return the text with only the line breaks of multi-line strings left."""
    return _TOKEN.sub(
        lambda token: "\n" * token[0].count("\n") if token[0].startswith(('"""', "'''")) else token[0], text
    )
