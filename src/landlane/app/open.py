"""Open the repository of a folder: find its checkout, read its settings, open its store."""

from __future__ import annotations

import os
import pwd

from landlane.app.plain_files import detect_restore
from landlane.app.repository_record import (
    ID_FILE,
    begin_repository,
    change_case,
    repository_id_of,
    unwritable,
    write_id,
)
from landlane.app.store_location import open_store, store_place
from landlane.app.wiring import assemble_repository
from landlane.errors import StoreError
from landlane.git.discovery import Checkout, find_checkout
from landlane.git.repository import GitRepository, is_case_insensitive
from landlane.platform.process_identity import MachineProcesses
from landlane.sessions.secrets import SecretFiles
from landlane.settings.load import read_settings
from landlane.settings.model import FILE_NAME
from landlane.store.sqlite.schema import moved_away
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.clock import Clock
    from landlane.repository import Repository
    from landlane.settings.model import Settings
    from landlane.store.interface import Store


# A file in the git directory of a checkout in which hooks were answered (see hook_entry/checkout_cache.py).
ANSWERED = "landlane-hook"


def open_repository(
    cwd: str,
    *,
    clock: Clock | None = None,
    is_short_lived: bool = False,
    detects_restore: bool = True,
    most_wait_ms: int | None = None,
    caller: int | None = None,
    is_guest: bool = False,
    borrow: Callable[[str, Callable[[], Store]], Store] | None = None,
) -> Repository:
    """Open the repository that contains a folder; create its state on first use.

    A store that is older than the journal file counts as restored from a backup; `detects_restore=False`
    skips that, to compare the two. `most_wait_ms` limits the wait for a busy store for callers with less time
    than the settings allow.

    `caller` is the pid of the process on whose behalf it is opened, 0 for none. With `is_guest` the caller is
    sandboxed: it may write in that folder and is not trusted, so settings and git config come from the main
    checkout. `borrow` gets the store's key and a function that opens it, and may return a store that is open.

    Raises:
        RepositoryError: there is no usable repository.
        SettingsError: its settings cannot be used.
        StoreError: its store cannot be opened.
    """
    checkout = _as_seen_by_guest(find_checkout(cwd)) if is_guest else find_checkout(cwd)
    folder = checkout.state_folder
    _make_folder(folder, checkout)
    of_settings = checkout.home_checkout if is_guest else checkout
    settings = _read_settings(of_settings, os.path.join(folder, "settings.cache"))
    if most_wait_ms is not None and most_wait_ms < settings.store.wait_ms:
        settings = replace(settings, store=replace(settings.store, wait_ms=most_wait_ms))
    repository_id, former_id = repository_id_of(folder, settings)
    place = store_place(checkout, settings)

    def open_this() -> Store:
        return open_store(place, folder, repository_id, settings, clock=clock, is_short_lived=is_short_lived)

    store = borrow(f"{repository_id} {place}", open_this) if borrow is not None else open_this()
    try:
        ignore_case = _ignores_case(store, checkout, settings, former_id)
        if former_id:  # only now: after an earlier failure the former id must still be known
            write_id(os.path.join(folder, ID_FILE), repository_id)
        if detects_restore:
            detect_restore(store, folder)
    except BaseException:
        store.close()
        raise
    return assemble_repository(
        settings=settings,
        store=store,
        git=GitRepository(checkout, cwd, ignore_case=ignore_case),
        processes=MachineProcesses(caller),
        secrets=SecretFiles(folder),
    )


def _as_seen_by_guest(checkout: Checkout) -> Checkout:
    """Return the checkout with the main git directory, whose config a sandboxed caller cannot write."""
    home = checkout.home_dir
    return Checkout(root=checkout.root, git_dir=home, common_dir=home)


def _read_settings(checkout: Checkout, memory: str) -> Settings:
    """Return the settings of a checkout, or those of the main checkout if it has no settings file."""
    root = checkout.root
    if checkout.git_dir != checkout.home_dir and not os.path.lexists(os.path.join(root, FILE_NAME)):
        root = checkout.home_checkout.root
    return read_settings(root, memory)


def _make_folder(folder: str, checkout: Checkout) -> None:
    """Create the state folder on first use.

    Raises:
        StoreError: it is missing although hooks were answered from it; claims must not be forgotten.
    """
    marker = os.path.join(checkout.git_dir, ANSWERED)
    if checkout.git_dir and not os.path.isdir(folder) and os.path.exists(marker):
        raise StoreError(
            f"the state in {folder} is gone, and with it who holds what",
            code="STATE_GONE",
            hint="bring the folder back from a backup; to begin anew with nothing held: landlane init",
        )
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from error


def _ignores_case(store: Store, checkout: Checkout, settings: Settings, former_id: str) -> bool:
    """Return whether paths are compared without case: decided once per repository, for all machines.

    Raises:
        StoreError: the repository's state was moved away from this store.
    """
    row, moved = store.view(
        lambda snapshot: (
            snapshot.one("repository_get"),
            snapshot.one("meta_get", key=f"moved_to/{store.repository}"),
        )
    )
    if moved is not None:  # even a read would return outdated state
        raise moved_away(str(store.describe()["place"]), moved["value"])
    if row is None:
        ignore_case = settings.claims.ignore_case
        if ignore_case is None:
            ignore_case = is_case_insensitive(checkout)
        begin_repository(store, former_id, ignore_case=ignore_case)
        row = store.view(lambda snapshot: snapshot.one("repository_get"))
        assert row is not None
    if settings.claims.ignore_case is not None and settings.claims.ignore_case != bool(row["ignore_case"]):
        change_case(store, ignore_case=settings.claims.ignore_case)
        return settings.claims.ignore_case
    return bool(row["ignore_case"])


def person_name() -> str:
    """Return the user's name, in the form of an agent name."""
    name = os.environ.get("USER") or os.environ.get("LOGNAME") or ""
    if not name:
        try:
            name = pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            name = f"user{os.getuid()}"
    cleaned = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "._@-") else "-" for letter in name
    )
    return cleaned.lstrip(".-")[:64] or "person"
