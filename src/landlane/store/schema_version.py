"""The version of the schema: its scripts, and which stores of other versions are refused.

Until release 0.2.0 a change edits `schema.sqlite.sql` and `schema.postgres.sql` and raises SCHEMA_VERSION,
and a store with any other number is refused. With 0.2.0 STABLE_SINCE gets the number that the schema has
then, the two files stay as they are, and each later change is a script in `migrations/`.
See docs/design/0015-schema-versions.md.
"""

from __future__ import annotations

import os

from landlane.errors import StoreCorrupt, StoreError
from landlane.version import __version__, upgrade_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SCHEMA_VERSION = 4
READABLE_BY = 4  # the oldest SCHEMA_VERSION of a program that may use what this one writes
STABLE_SINCE: int | None = None
WRITTEN_BY = "written_by"  # the release that created or last migrated the store

FOLDER = os.path.dirname(__file__)


def version_facts() -> dict[str, str]:
    """Return what a store of this version says about its schema."""
    return {"schema": str(SCHEMA_VERSION), "readable_by": str(READABLE_BY), WRITTEN_BY: __version__}


def is_current(facts: Mapping[str, str]) -> bool:
    """Return whether a store has exactly this version."""
    return facts.get("schema") == str(SCHEMA_VERSION)


def scripts_after(database: str, version: int) -> list[str]:
    """Return the scripts that bring a store of a version (0: a new one) to SCHEMA_VERSION."""
    first = STABLE_SINCE or SCHEMA_VERSION
    scripts = [(first, _read(os.path.join(FOLDER, f"schema.{database}.sql"))), *_migrations(database)]
    return [script for number, script in scripts if number > version]


def _migrations(database: str) -> list[tuple[int, str]]:
    """Return the migrations in order: (schema version, script)."""
    if STABLE_SINCE is None:
        return []
    folder = os.path.join(FOLDER, "migrations")
    names = sorted(name for name in os.listdir(folder) if name.endswith(f".{database}.sql"))
    return [(int(name[:4]), _read(os.path.join(folder, name))) for name in names]


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def check_version(facts: Mapping[str, str], place: str, way_out: Callable[[], str]) -> None:
    """Refuse a store that this program must not use or cannot migrate.

    `way_out` completes the hint for an older store: how to go on without it.

    Raises:
        StoreError: it was written by a newer or an older Landlane.
        StoreCorrupt: it does not say which version it has.
    """
    version, readable_by = _number(facts, "schema", place), _number(facts, "readable_by", place)
    if version > SCHEMA_VERSION and (STABLE_SINCE is None or readable_by > SCHEMA_VERSION):
        raise StoreError(
            f"the state was written by {_writer(facts, 'a newer Landlane', version)}",
            code="STORE_NEWER",
            hint=upgrade_command(),
            place=place,
            schema=version,
        )
    if version < SCHEMA_VERSION and (STABLE_SINCE is None or version < STABLE_SINCE):
        raise StoreError(
            f"the state was written by {_writer(facts, 'an older Landlane', version)}",
            code="STORE_OLDER",
            hint=f"use the version that wrote it, or {way_out()}",
            place=place,
            schema=version,
        )


def _writer(facts: Mapping[str, str], unknown: str, version: int) -> str:
    """Return which Landlane wrote a store, and which this one is."""
    writer = facts.get(WRITTEN_BY, "")
    if writer and writer != __version__:
        return f"Landlane {writer}; this is {__version__}"
    return f"{unknown} (schema {version}); this is {__version__} (schema {SCHEMA_VERSION})"


def _number(facts: Mapping[str, str], key: str, place: str) -> int:
    try:
        return int(facts[key])
    except (KeyError, ValueError) as error:
        raise StoreCorrupt(
            f"the store {place} is damaged: its schema version is missing",
            code="STORE_CORRUPT",
            hint="rebuild a SQLite store, or restore PostgreSQL from a backup: landlane doctor --fix",
        ) from error
