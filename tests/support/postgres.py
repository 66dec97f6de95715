"""PostgreSQL servers for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.testing.postgres_install import PostgresUnavailable
from landlane.testing.postgres_server import PostgresServer

if TYPE_CHECKING:
    from pathlib import Path

NO_POSTGRES = "no PostgreSQL"


def start_postgres(options: dict[str, str] | None = None, temp: Path | None = None) -> PostgresServer:
    """Start a server that does not wait for the disk; where there is none, skip the test.

    Its data lies below `temp`, or where temporary files usually do.
    """
    try:
        return PostgresServer.start(temp=temp, fsync=False, options=options)
    except PostgresUnavailable as unavailable:
        pytest.skip(f"{NO_POSTGRES}: {unavailable.reason}")
