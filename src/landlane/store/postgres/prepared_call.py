"""One prepared statement, run directly through libpq: a psycopg cursor takes longer than a full grant."""

from __future__ import annotations

import psycopg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


_NAME = b"landlane_call"


class PreparedCall:
    """A statement that returns one array of integers, prepared on one connection.

    It cannot be interrupted while it runs, so it must not wait for a lock.
    """

    def __init__(self, connection: psycopg.Connection[Any], statement: str) -> None:
        self.connection = connection
        self._encoding = connection.info.encoding
        self._text, self._names = _numbered(statement)
        self._is_prepared = False

    def run(self, parameters: Mapping[str, object]) -> list[int] | None:
        """Return the numbers; None if the result is NULL or the statement failed."""
        values = [str(parameters[name]).encode(self._encoding) for name in self._names]
        line = self.connection.pgconn
        try:
            if not self._is_prepared:
                line.prepare(_NAME, self._text.encode(self._encoding))
                self._is_prepared = True
            result = line.exec_prepared(_NAME, values)
        except psycopg.Error:  # nothing was sent; errors of the server are results
            return None
        answer = result.get_value(0, 0) if result.ntuples else None
        return [int(number) for number in answer[1:-1].split(b",")] if answer else None


def _numbered(statement: str) -> tuple[str, list[str]]:
    """Return a statement with `$1` for `%(name)s`, and the names in order."""
    first, *others = statement.split("%(")
    pairs = [other.split(")s", 1) for other in others]
    text = first + "".join(f"${number}{rest}" for number, (_, rest) in enumerate(pairs, start=1))
    return text.replace("%%", "%"), [name for name, _ in pairs]
