"""Watch the journal for subscribers: one thread follows it and reports which resources have changed."""

from __future__ import annotations

import threading

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread

from landlane.errors import LandlaneError
from landlane.journal.read import last_position, read_entries
from landlane.mcp.resources import changed_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from anyio.lowlevel import EventLoopToken

    from landlane.mcp.open_repositories import RepositoryPool
    from landlane.repository import Repository

_LOOK_SECONDS = 2.0  # recovers from a lost wake-up
_GATHER_SECONDS = 0.05  # entries of one transaction are reported together


class Watch:
    """Follows the journal from the first subscription on."""

    def __init__(self, pool: RepositoryPool, publish: Callable[[str], Coroutine[Any, Any, None]]) -> None:
        self._pool = pool
        self._publish = publish
        self._thread: threading.Thread | None = None
        self._starting = anyio.Lock()
        self._after: int | None = None  # reported up to here; None: the store could not be read yet
        self._is_over = threading.Event()

    async def start(self) -> None:
        """Start following, once; called in the event loop that publishes."""
        async with self._starting:
            if self._thread is None:
                # Read before the answer, so that no later change is missed, however late the thread runs.
                self._after = await anyio.to_thread.run_sync(self._look)
                token = anyio.lowlevel.current_token()
                self._thread = threading.Thread(target=self._follow, args=(token,), daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Stop following."""
        self._is_over.set()

    def _look(self) -> int | None:
        try:
            with self._pool.borrow() as repo:
                return last_position(repo)
        except LandlaneError:
            return None

    def _follow(self, token: EventLoopToken) -> None:
        while not self._is_over.is_set():
            try:
                self._follow_once(token)
            except LandlaneError:
                self._is_over.wait(_LOOK_SECONDS)  # the store cannot be read now; it may be again
            except RuntimeError:
                return  # the event loop has ended

    def _follow_once(self, token: EventLoopToken) -> None:
        with self._pool.borrow() as repo:
            listener = repo.store.listen()
            try:
                if self._after is None:
                    self._after = last_position(repo)
                while not self._is_over.is_set():
                    self._publish_changes(repo, token)
                    listener.wait(_LOOK_SECONDS)
                    self._is_over.wait(_GATHER_SECONDS)
            finally:
                listener.close()

    def _publish_changes(self, repo: Repository, token: EventLoopToken) -> None:
        assert self._after is not None
        changed: dict[str, None] = {}
        for entry in read_entries(repo, self._after):
            self._after = entry.position
            changed.update(dict.fromkeys(changed_by(entry.kind)))
        for uri in changed:
            anyio.from_thread.run(self._publish, uri, token=token)
