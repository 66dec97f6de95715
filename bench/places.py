"""Scratch folders on disk and in memory, and what an operation needs to run there."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

from interlock.config import Settings
from interlock.domain.patterns import parse
from interlock.git.layout import Checkout
from interlock.git.repository import GitRepository
from interlock.ids import new_uuid
from interlock.operations.claims import make_request, take
from interlock.operations.context import Context
from interlock.operations.sessions import join
from interlock.runners.processes import MachineProcesses
from interlock.store.secrets import SecretFiles
from interlock.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Generator

    from interlock.domain.agents import Session
    from interlock.domain.claims import Request
    from interlock.store.postgres import PostgresStore

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
    folder = tempfile.mkdtemp(prefix="interlock-bench-", dir=_SHARED_MEMORY if place == MEMORY else None)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Claimant:
    """One session with a connection kept open, as the library, the MCP server or a worker has it."""

    def __init__(self, store: SqliteStore | PostgresStore, folder: str, agent: str) -> None:
        checkout = Checkout(root=folder, git_dir="", common_dir="")
        self.store = store
        self.context = Context(
            store=store,
            settings=Settings(),
            repository=GitRepository(checkout, folder),
            processes=MachineProcesses(),
            secrets=SecretFiles(folder),
        )
        self.session: Session = join(self.context, agent).session

    def request(self, path: str) -> Request:
        """What it takes to ask for a file."""
        return make_request(self.context, (parse(path, literal=True),))

    def take(self, request: Request) -> None:
        """Take a claim that must be free."""
        outcome = take(self.context, self.session, request)
        assert not outcome.refused, f"{request.patterns[0].text} was not free"

    def claim(self, path: str) -> None:
        """The whole of it, from the name of a file to the answer."""
        self.take(self.request(path))


def open_sqlite(folder: str, repository: str = "", name: str = "store.db") -> SqliteStore:
    """A store of ours in a file of its own."""
    return SqliteStore(os.path.join(folder, name), repository or new_uuid())
