"""Load the `queries.sql` files of all packages, in the dialect of each database."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# Names of folders, not imports, because most of these packages are above this one. Opening a store reads them
# all: that takes a fifth of a millisecond, and any transaction may need any statement.
_PACKAGES = ("store", "sessions", "claims", "state", "tasks", "landing")
_ROOT = os.path.dirname(os.path.dirname(__file__))


def read_statements(database: str) -> dict[str, str]:
    """Return all statements for a database: the common ones, and its own in addition or in their place."""
    found: dict[str, str] = {}
    for package in _PACKAGES:
        folder = os.path.join(_ROOT, package)
        found.update(split_statements(_read(os.path.join(folder, "queries.sql"))))
        try:
            own = _read(os.path.join(folder, f"queries.{database}.sql"))
        except FileNotFoundError:
            continue
        found.update(split_statements(own))
    return found


def split_statements(text: str) -> dict[str, str]:
    """Return the statements of a file by name."""
    found: dict[str, str] = {}
    for block in text.split("\n-- ")[1:]:
        heading, _, body = block.partition("\n")
        name, colon, _ = heading.partition(": ")
        statement = body.strip().rstrip(";")
        if colon and statement and " " not in name:
            found[name] = statement
    return found


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
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
    """Return a statement with `%(name)s` parameters and arrays, as psycopg needs it."""
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
