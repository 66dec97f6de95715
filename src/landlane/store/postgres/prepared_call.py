"""One prepared statement, run straight through libpq: psycopg's cursors take longer than a whole grant."""

from __future__ import annotations

import psycopg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


_NAME = b"landlane_call"


class PreparedCall:
    """A statement that answers with one array of whole numbers, prepared on one connection.

    It cannot be interrupted while it runs, so it must not wait for any lock.
    """

    def __init__(self, connection: psycopg.Connection[Any], statement: str) -> None:
        self.connection = connection
        self._encoding = connection.info.encoding
        self._text, self._names = _numbered(statement)
        self._is_prepared = False

    def run(self, parameters: Mapping[str, object]) -> list[int] | None:
        """The numbers; nothing when the answer is NULL or anything went wrong."""
        values = [str(parameters[name]).encode(self._encoding) for name in self._names]
        line = self.connection.pgconn
        try:
            if not self._is_prepared:
                line.prepare(_NAME, self._text.encode(self._encoding))
                self._is_prepared = True
            result = line.exec_prepared(_NAME, values)
        except psycopg.Error:  # nothing could be sent at all; the server's own errors are results
            return None
        answer = result.get_value(0, 0) if result.ntuples else None
        return [int(number) for number in answer[1:-1].split(b",")] if answer else None


def _numbered(statement: str) -> tuple[str, list[str]]:
    """A statement with `$1` for `%(name)s`, and the names in order."""
    first, *others = statement.split("%(")
    pairs = [other.split(")s", 1) for other in others]
    text = first + "".join(f"${number}{rest}" for number, (_, rest) in enumerate(pairs, start=1))
    return text.replace("%%", "%"), [name for name, _ in pairs]
