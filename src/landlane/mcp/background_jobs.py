"""Work that may outlast a call: it continues in its own thread, and a repeated call gets its result."""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class _Job:
    def __init__(self, work: Callable[[], dict[str, Any]]) -> None:
        self._work = work
        self.found: dict[str, Any] | None = None
        self.trouble: BaseException | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self.found = self._work()
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting call
            self.trouble = error


class Jobs:
    """Running jobs, by a key that identifies the work."""

    def __init__(self) -> None:
        self._running: dict[object, _Job] = {}
        self._guard = threading.Lock()

    def run(self, key: object, work: Callable[[], dict[str, Any]], seconds: float) -> dict[str, Any] | None:
        """Start the job, or wait for the one that is running; None when the time was too short."""
        with self._guard:
            job = self._running.get(key)
            if job is None:
                job = self._running[key] = _Job(work)
                job.thread.start()
        job.thread.join(seconds)
        if job.thread.is_alive():
            return None
        with self._guard:
            if self._running.get(key) is job:  # another caller may have started a new one since
                del self._running[key]
        if job.trouble is not None:
            raise job.trouble
        return job.found
