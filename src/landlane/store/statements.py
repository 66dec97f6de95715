"""Reads the `.sql` files: named statements with `:name` parameters, in the form each database wants."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_NOUNS = ("statements", "state", "tasks", "records", "hooks")
_FOLDER = os.path.join(os.path.dirname(__file__), "sql")


def read_statements(database: str) -> dict[str, str]:
    """All statements for a database: the common ones, then its own in place of or beside them."""
    found: dict[str, str] = {}
    for noun in _NOUNS:
        found.update(_split(f"{noun}.sql"))
        found.update(_split(f"{noun}.{database}.sql"))
    return found


def read_migrations(database: str) -> list[tuple[int, str]]:
    """The migrations for a database in order: (schema version, script)."""
    ending = f".{database}.sql"
    names = sorted(name for name in os.listdir(_FOLDER) if name.endswith(ending) and name[:4].isdigit())
    return [(int(name[:4]), _read(name)) for name in names]


def _split(file_name: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for block in _read(file_name).split("\n-- ")[1:]:
        heading, _, text = block.partition("\n")
        name, colon, _ = heading.partition(": ")
        statement = text.strip().rstrip(";")
        if colon and statement and " " not in name:
            found[name] = statement
    return found


def _read(file_name: str) -> str:
    with open(os.path.join(_FOLDER, file_name), encoding="utf-8") as file:
        return file.read()


def spread(statement: str, parameters: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Write out `IN (:*name)` as one parameter for each element, for a database without arrays."""
    given = dict(parameters)
    while (start := statement.find(":*")) >= 0:
        end = statement.index(")", start)
        name = statement[start + 2 : end]
        items = given[name]
        marks = ", ".join(f":{name}_{index}" for index in range(len(items)))
        statement = statement[:start] + marks + statement[end:]
        given.update({f"{name}_{index}": item for index, item in enumerate(items)})
    for name in [name for name, item in given.items() if isinstance(item, list)]:
        del given[name]
    return statement, given


def for_psycopg(statement: str) -> str:
    """The same statement with `%(name)s` parameters and arrays."""
    out: list[str] = []
    position = 0
    while position < len(statement):
        at = statement.find(":", position)
        if at < 0:
            break
        if statement.startswith("::", at):
            out.append(statement[position : at + 2].replace("%", "%%"))
            position = at + 2
            continue
        is_list = statement.startswith(":*", at)
        start = at + 2 if is_list else at + 1
        end = start
        while end < len(statement) and (statement[end].isalnum() or statement[end] == "_"):
            end += 1
        before = statement[position:at].replace("%", "%%")
        if is_list:  # `IN (:*name)` → `= ANY (%(name)s)`
            before = before[: before.rindex("IN (")] + "= ANY ("
        out.append(f"{before}%({statement[start:end]})s")
        position = end
    out.append(statement[position:].replace("%", "%%"))
    return "".join(out)
