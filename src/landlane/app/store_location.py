"""Find and open the store of a repository."""

from __future__ import annotations

import os

from landlane.errors import StoreError
from landlane.git.discovery import Checkout
from landlane.store.sqlite.store import SqliteStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.clock import Clock
    from landlane.settings.model import Settings
    from landlane.store.interface import Store


STORE_NAME = "store.db"

POINTER = "store-url"

_URL = ("postgresql://", "postgres://")


def store_place(checkout: Checkout, settings: Settings) -> str:
    """Return where the store is, by the environment, the last `store move`, the settings or the default."""
    place = os.environ.get("LANDLANE_STORE", "") or _pointed_to(checkout.state_folder) or settings.store.url
    if "://" in place:
        return place
    # A relative path must mean the same in every folder and worktree: it starts where the git directory is.
    base = os.path.dirname(checkout.home_dir) if checkout.home_dir else checkout.root
    return os.path.join(base, place or os.path.join(checkout.state_folder, STORE_NAME))


def _pointed_to(folder: str) -> str:
    """Return where the last `store move` went; empty if there was none."""
    path = os.path.join(folder, POINTER)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            place = file.read().strip()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise StoreError(
            f"{path} cannot be read: {error.strerror}",
            code="STORE_FORBIDDEN",
            hint="it says where the store is: ask the user who moved it, or set LANDLANE_STORE",
        ) from error
    if "://" not in place and not os.path.isabs(place):
        raise StoreError(
            f"{path} does not say where the store is",
            code="STORE_POINTER_BROKEN",
            hint="write the store's URL or path into it; remove it only if the store was never moved",
        )
    return place


def open_store(
    place: str,
    folder: str,
    repository_id: str,
    settings: Settings,
    *,
    clock: Clock | None = None,
    is_short_lived: bool = False,
    is_fresh: bool = False,
) -> Store:
    """Open the store at a path or URL; with `is_fresh` it may be new, and the caller fills it."""
    if place.startswith(_URL):
        try:
            from landlane.store.postgres.store import PostgresStore  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise StoreError(
                "the driver for PostgreSQL is not installed",
                code="POSTGRES_MISSING",
                hint="pip install 'landlane[postgres]'",
            ) from error

        return PostgresStore(place, repository_id, folder=folder, clock=clock, wait_ms=settings.store.wait_ms)
    if "://" in place:
        raise StoreError(
            f"{place.split('://', maxsplit=1)[0]}:// is no kind of store",
            code="STORE_UNKNOWN_KIND",
            hint="give a path for SQLite or a postgresql:// URL",
        )
    return SqliteStore(
        sqlite_path(place),
        repository_id,
        clone=os.path.dirname(folder),
        clock=clock,
        wait_ms=settings.store.wait_ms,
        # A command exits without closing the store, to save emptying its log. The next command reads that
        # log, so it is kept short.
        checkpoint_pages=200 if is_short_lived else 1000,
        is_fresh=is_fresh,
    )


def sqlite_path(place: str) -> str:
    """Return the file that a path means: itself, or the store in that folder."""
    path = os.path.abspath(place)
    return os.path.join(path, STORE_NAME) if os.path.isdir(path) else path
