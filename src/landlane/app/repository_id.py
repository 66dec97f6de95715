"""The id of the repository."""

from __future__ import annotations

import os

from landlane.errors import StoreError
from landlane.files import write_whole
from landlane.ids import is_uuid, new_uuid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.settings.model import Settings
    from landlane.store.postgres.store import PostgresStore
    from landlane.store.sqlite.store import SqliteStore

    AnyStore = SqliteStore | PostgresStore


ID_FILE = "repository"


def unwritable(path: str, error: OSError) -> StoreError:
    """Return the error for a state folder that this user cannot write."""
    return StoreError(
        f"{path} cannot be written: {error.strerror}",
        code="STORE_READONLY",
        hint="make the folder landlane in the git directory writable for this user",
    )


def repository_id_of(folder: str, settings: Settings) -> tuple[str, str]:
    """The repository's id, and the one it had before the settings named another.

    Raises:
        StoreError: the id cannot be kept, or what is there is none.
    """
    path = os.path.join(folder, ID_FILE)
    known = _read_id(path)
    if settings.repository.id:
        if not known:
            write_id(path, settings.repository.id)
        return settings.repository.id, known if known != settings.repository.id else ""
    if known:
        return known, ""
    # Two first commands at once: whoever links its file first has named the repository.
    scratch = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    write_id(scratch, new_uuid())
    try:
        os.link(scratch, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(scratch)
    found = _read_id(path)
    if not found:
        raise StoreError(
            f"{path} does not hold the id of this repository",
            code="REPOSITORY_ID_BROKEN",
            hint="the store knows the id: sqlite3 store.db 'SELECT id FROM repositories'; write it back",
        )
    return found, ""


def _read_id(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            text = file.read().strip()
    except OSError:
        return ""
    return text if is_uuid(text) else ""


def write_id(path: str, repository_id: str) -> None:
    """Keep the id so that not even a power cut makes the repository another one."""
    try:
        write_whole(path, repository_id + "\n", is_durable=True)
    except OSError as error:
        raise unwritable(path, error) from error
