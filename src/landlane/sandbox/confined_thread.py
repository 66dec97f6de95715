"""A thread that confines itself and starts children, so that they are confined and this process is not.

A sandbox belongs to a thread, and a child inherits that of the thread that starts it. So no code of ours runs
between fork and exec, and no helper program is needed. The thread lives until its child has ended, for two
reasons. The kernel regards it as the child's parent, and a child that must end with its parent would end with
the thread. And since it is in the sandbox itself, it can ask the kernel which processes are in there.
"""

from __future__ import annotations

import os
import queue
import signal
import threading

from landlane.platform.process import list_pids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    T = TypeVar("T")


class SandboxThread:
    """A thread in a sandbox that runs one function after the other."""

    def __init__(self, confine: Callable[[], None], *, scopes_signals: bool) -> None:
        """Start the thread and confine it; `scopes_signals` says whether signals cannot leave the sandbox.

        Raises:
            OSError: the kernel refused; nothing was started.
        """
        self._actions: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._scopes_signals = scopes_signals
        # A daemon: it ends with this process, and so does a child that must not outlive it.
        self._thread = threading.Thread(target=self._run, name="landlane-sandbox", daemon=True)
        self._thread.start()
        try:
            self.call(confine)
            self._is_exact = scopes_signals and self._reaches_no_outsider()
        except BaseException:
            self.close()
            raise

    @property
    def is_exact(self) -> bool:
        """Whether a signal from inside this sandbox provably reaches its members and no other process."""
        return self._is_exact and self._thread.is_alive()

    def kill_all(self) -> bool:
        """Kill everything in this sandbox at once; return whether that was possible.

        The kernel does it in one step in which no process can fork. A search could always miss a process that
        forks and ends all the time.
        """
        if not self.is_exact:
            return False
        self.call(_kill_all_reachable)
        return True

    def _reaches_no_outsider(self) -> bool:
        """Return whether signals from here are refused that this process itself could send.

        Nothing was started in the sandbox yet, so every process that can be reached is outside.
        """
        others = [pid for pid in list_pids() if pid != os.getpid()]
        ours = [pid for pid in others if _can_signal(pid)]
        is_reached = self.call(lambda: any(_can_signal(pid) for pid in others))
        return not is_reached and any(_can_signal(pid) for pid in ours)

    def call(self, action: Callable[[], T]) -> T:
        """Run a function in the sandbox and return its result."""
        results: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()

        def act() -> None:
            try:
                results.put((True, action()))
            except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
                results.put((False, error))

        self._actions.put(act)
        is_done, outcome = results.get()
        if not is_done:
            raise outcome
        return outcome

    def close(self) -> None:
        """End the thread."""
        self._actions.put(None)
        self._thread.join()

    def members(self, pids: list[int]) -> set[int] | None:
        """Return which of these processes are in this sandbox: those that can be signalled from there.

        Return None unless the kernel refuses some that this process itself can signal: only then is it known
        that the sandbox limits signals.
        """
        if not self._scopes_signals or not self._thread.is_alive():
            return None
        others = [pid for pid in pids if pid != os.getpid()]
        inside = self.call(lambda: {pid for pid in others if _can_signal(pid)})
        is_limited = any(pid not in inside and _can_signal(pid) for pid in others)
        return inside if is_limited else None

    def _run(self) -> None:
        while (action := self._actions.get()) is not None:
            action()


def _can_signal(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _kill_all_reachable() -> None:
    try:
        os.kill(-1, signal.SIGKILL)  # never our own process, and from here none outside the sandbox
    except ProcessLookupError:
        return
