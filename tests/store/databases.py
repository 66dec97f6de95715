"""Change and read a store's database as another program would."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import psycopg
import pytest

from landlane.errors import LandlaneError

if TYPE_CHECKING:
    from tests.support.project import Project


def run_sql(project: Project, *commands: str) -> None:
    """Run statements in the database of a project, on either kind of store."""
    if project.is_postgres:
        with psycopg.connect(project.place, options="-c search_path=public,landlane") as connection:
            for command in commands:
                connection.execute(command.encode())
    else:
        database = sqlite3.connect(project.place)
        with database:
            for command in commands:
                database.execute(command)
        database.close()


def facts_of(project: Project) -> dict[str, str]:
    """Return what the store records about itself."""
    return {row["key"]: row["value"] for row in project.rows("meta_all")}


def refusal(project: Project) -> LandlaneError:
    """Return the error with which opening the store is refused."""
    with pytest.raises(LandlaneError) as caught:
        project.repo()
    return caught.value
