"""Change and read a store's database as another program would."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import psycopg
import pytest

from landlane.errors import LandlaneError

if TYPE_CHECKING:
    from tests.support.sites import Site


def run_sql(site: Site, *commands: str) -> None:
    """Run statements in the database of a site, on either kind of store."""
    if site.is_postgres:
        with psycopg.connect(site.place, options="-c search_path=public,landlane") as connection:
            for command in commands:
                connection.execute(command.encode())
    else:
        database = sqlite3.connect(site.place)
        with database:
            for command in commands:
                database.execute(command)
        database.close()


def facts_of(site: Site) -> dict[str, str]:
    """Return what the store records about itself."""
    return {row["key"]: row["value"] for row in site.rows("meta_all")}


def refusal(site: Site) -> LandlaneError:
    """Return the error with which opening the store is refused."""
    with pytest.raises(LandlaneError) as caught:
        site.repo()
    return caught.value
