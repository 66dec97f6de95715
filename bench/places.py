"""Scratch folders on disk and in memory, and what an operation needs to run there."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

from landlane.app.open import assemble_repository
from landlane.claims.take import make_request, take
from landlane.git.discovery import Checkout
from landlane.git.repository import GitRepository
from landlane.ids import new_uuid
from landlane.patterns.pattern import parse
from landlane.platform.process import MachineProcesses
from landlane.sessions.join import join
from landlane.sessions.secrets import SecretFiles
from landlane.settings.model import Settings
from landlane.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Generator

    from landlane.claims.model import Request
    from landlane.sessions.model import Session
    from landlane.store.postgres.store import PostgresStore

DISK = "disk"
MEMORY = "tmpfs"
_SHARED_MEMORY = "/dev/shm"


def places() -> list[str]:
    """The kinds of place that this machine has."""
    return [DISK, MEMORY] if os.access(_SHARED_MEMORY, os.W_OK) else [DISK]


def quickest_place() -> str:
    """Where waiting for the disk disturbs least."""
    return places()[-1]


@contextmanager
def scratch(place: str) -> Generator[str]:
    """A folder that is gone afterwards."""
    folder = tempfile.mkdtemp(prefix="landlane-bench-", dir=_SHARED_MEMORY if place == MEMORY else None)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Claimant:
    """One session with a connection kept open, as the library, the MCP server or a worker has it."""

    def __init__(self, store: SqliteStore | PostgresStore, folder: str, agent: str) -> None:
        checkout = Checkout(root=folder, git_dir="", common_dir="")
        self.store = store
        self.repo = assemble_repository(
            settings=Settings(),
            store=store,
            git=GitRepository(checkout, folder),
            processes=MachineProcesses(),
            secrets=SecretFiles(folder),
        )
        self.session: Session = join(self.repo, agent).session

    def request(self, path: str) -> Request:
        """What it takes to ask for a file."""
        return make_request(self.repo, (parse(path, literal=True),))

    def take(self, request: Request) -> None:
        """Take a claim that must be free."""
        outcome = take(self.repo, self.session, request)
        assert not outcome.refused, f"{request.patterns[0].text} was not free"

    def claim(self, path: str) -> None:
        """All of it, from the name of a file to the answer."""
        self.take(self.request(path))


def open_sqlite(folder: str, repository: str = "", name: str = "store.db") -> SqliteStore:
    """A store of ours in a file of its own."""
    return SqliteStore(os.path.join(folder, name), repository or new_uuid())
