"""Use the store, the repository id and the comparison of paths that the settings name, from now on.

For a clone that joins the shared state of others, and for settings that were changed on purpose. What this
clone had before stays where it is.
"""

from __future__ import annotations

import os

from landlane.app.open import open_repository, open_store
from landlane.app.plain_files import move_aside
from landlane.app.repository_record import change_case, list_repositories, read_record, rename_repository
from landlane.app.store_place import (
    JOURNAL,
    STORE_ID_FILE,
    is_same_place,
    known_place,
    named_place,
    record_id,
    record_place,
    recorded_id,
    show_place,
)
from landlane.errors import Malformed, StoreError
from landlane.git.discovery import find_checkout
from landlane.git.target_settings import settings_in_force
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.clock import Clock
    from landlane.settings.model import Settings


@value
class Adopted:
    """What holds now: the store, the repository id, and whether paths are compared without case."""

    place: str
    repository: str
    ignore_case: bool
    changed: tuple[str, ...]


def adopt_store(cwd: str, *, clock: Clock | None = None) -> Adopted:
    """Make what the settings or LANDLANE_STORE name the store and the repository of this state folder.

    Raises:
        Malformed: everything is as they say.
        StoreError: there is no state of this repository at the place they name.
    """
    checkout = find_checkout(cwd)
    settings = settings_in_force(checkout, is_person=True).settings
    folder = checkout.state_folder
    known, known_id = known_place(folder), recorded_id(folder)
    named, _ = named_place(checkout, settings)
    place, repository = named or known, settings.repository.id or known_id
    is_elsewhere = bool(known) and not is_same_place(place, known)
    changed: list[str] = []
    if known and (is_elsewhere or repository != known_id):
        _check_target(place, folder, repository, "" if is_elsewhere else known_id, settings)
        for name in (JOURNAL, STORE_ID_FILE):  # the copy of another journal
            if os.path.lexists(os.path.join(folder, name)):
                move_aside(os.path.join(folder, name))
        record_place(folder, place)
        record_id(folder, repository)
        changed += [f"store {show_place(place)}"] if is_elsewhere else []
        changed += [f"repository id {repository}"] if repository != known_id else []
    repo = open_repository(cwd, clock=clock, is_person=True)
    try:
        record = read_record(repo.store)
        wanted = settings.claims.ignore_case
        if record is not None and wanted is not None and wanted != record.ignore_case:
            change_case(repo.store, ignore_case=wanted)
            changed.append(f"paths are compared {'without' if wanted else 'with'} regard to case")
        if not changed:
            raise Malformed(
                "the settings name what is used already", code="STORE_SAME", hint="landlane store info"
            )
        return Adopted(
            place=show_place(place or known_place(folder)),
            repository=repo.store.repository,
            ignore_case=wanted if wanted is not None else bool(record and record.ignore_case),
            changed=tuple(changed),
        )
    finally:
        repo.close()


def _check_target(place: str, folder: str, repository: str, former: str, settings: Settings) -> None:
    """Check that a store holds the repository; in the same store, state under its former id gets the new one.

    Raises:
        StoreError: it does not.
    """
    store = open_store(place, folder, repository, settings, may_create=False)
    try:
        if read_record(store) is None and former:
            rename_repository(store, former)
        if repository not in list_repositories(store):
            raise StoreError(
                f"{show_place(place)} holds no state of the repository {repository}",
                code="STORE_NOT_THERE",
                hint=f"move the state of this clone there: landlane store move '{show_place(place)}'",
            )
    finally:
        store.close()
