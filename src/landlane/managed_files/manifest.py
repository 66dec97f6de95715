"""The record of what init changed: written before the first change, so that a crash anywhere can be undone.

It is in the state folder, beside copies of the files as they were, byte for byte. An entry has fingerprints
of a file's content before init and of each content that init gave it. They show whether it was changed later.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

from landlane.clients.setup_files import FileForm
from landlane.errors import LandlaneError, TimedOut
from landlane.files import sync_folder, write_atomically
from landlane.managed_files.user_files import fingerprint, read_bytes, refused, remove_file
from landlane.store.file_lock import FairLock
from landlane.values import as_dict, value

_FOLDER = "init"
_RECORD = "record.json"
_LOCK = "init.lock"
_VERSION = 1
_WAIT_SECONDS = 30.0


@value
class FileRecord:
    """One file that was written: its content before and after, as fingerprints, and what of it is ours."""

    path: str
    root: str
    existed: bool
    mode: int
    before: str
    after: tuple[str, ...]
    form: FileForm
    content: Any
    folders: tuple[str, ...] = ()


@value
class InitRecord:
    """Every file that init wrote in this repository, and the clients that it set up."""

    entries: tuple[FileRecord, ...] = ()
    clients: tuple[str, ...] = ()

    def entry_of(self, path: str) -> FileRecord | None:
        """Return the entry of a file, or None."""
        return next((entry for entry in self.entries if entry.path == path), None)


def load_record(state: str) -> InitRecord:
    """Load the record; it is empty when nothing was recorded.

    Raises:
        LandlaneError: it cannot be read.
    """
    path = os.path.join(state, _FOLDER, _RECORD)
    content = read_bytes(path)
    if content is None:
        return InitRecord()
    try:
        known = json.loads(content)
        if known["version"] != _VERSION:
            raise ValueError(f"it has version {known['version']}")
        return InitRecord(
            entries=tuple(_entry(one) for one in known["entries"]), clients=tuple(known["clients"])
        )
    except (ValueError, KeyError, TypeError) as error:
        raise LandlaneError(
            f"the record of what init wrote cannot be read: {error}",
            code="INIT_RECORD_UNREADABLE",
            hint=f"use the release that wrote it, or move {path} away; the files as they were lie beside it",
        ) from error


def _entry(facts: dict[str, Any]) -> FileRecord:
    fields: dict[str, Any] = {**facts, "form": FileForm(facts["form"])}
    fields |= {key: tuple(facts[key]) for key in ("after", "folders")}
    return FileRecord(**fields)


def save_record(state: str, record: InitRecord, *, keeps_backups: bool = False) -> None:
    """Write the record durably, or delete it if it is empty, with the backups unless they are still needed.

    Raises:
        LandlaneError: the system refuses; the old record stays.
    """
    folder = os.path.join(state, _FOLDER)
    path = os.path.join(folder, _RECORD)
    if not record.entries and not record.clients:
        remove_file(path)
        if not keeps_backups:
            _delete_backups(folder)
        return
    document = {
        "version": _VERSION,
        "clients": list(record.clients),
        "entries": [as_dict(entry) for entry in record.entries],
    }
    _write(path, json.dumps(document, indent=1).encode())


def save_backup(state: str, content: bytes) -> None:
    """Save a content durably, under its fingerprint."""
    path = os.path.join(state, _FOLDER, fingerprint(content))
    if not os.path.exists(path):
        _write(path, content)


def load_backup(state: str, name: str) -> bytes:
    """Return the content with this fingerprint.

    Raises:
        LandlaneError: it does not exist any more, or was changed.
    """
    path = os.path.join(state, _FOLDER, name)
    content = read_bytes(path)
    if content is None or fingerprint(content) != name:
        raise LandlaneError(
            f"the copy of a file that init changed is gone: {path}",
            code="BACKUP_GONE",
            hint="take our entries out by hand: they name hook_entry/client_hook.py",
        )
    return content


@contextmanager
def init_lock(state: str) -> Generator[None]:
    """Hold the lock for changing what init wrote in this repository.

    Raises:
        TimedOut: another process holds it for too long.
    """
    try:
        os.makedirs(state, mode=0o700, exist_ok=True)
        lock = FairLock(os.path.join(state, _LOCK))
    except OSError as error:
        raise refused(state, error.strerror or str(error)) from error
    try:
        if not lock.acquire(_WAIT_SECONDS):
            raise TimedOut(
                "another init is at work in this repository",
                code="INIT_BUSY",
                hint="wait until it has ended, then try again",
            )
        yield
    finally:
        lock.close()


def _write(path: str, content: bytes) -> None:
    """Write a file that only this user reads: settings may hold keys."""
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        write_atomically(path, content, mode=0o600, is_durable=True)
        sync_folder(os.path.dirname(path))
    except OSError as error:
        raise refused(path, error.strerror or str(error)) from error


def _delete_backups(folder: str) -> None:
    """Delete the copies of files that are restored; all files in this folder are Landlane's."""
    with suppress(OSError):
        for name in os.listdir(folder):
            remove_file(os.path.join(folder, name))
        os.rmdir(folder)
