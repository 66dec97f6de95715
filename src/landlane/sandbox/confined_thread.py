"""A thread that confines itself and starts children from there, so that they are confined and we are not.

A sandbox belongs to a thread, and a child takes over those of the thread that starts it. So no
code of ours runs between fork and exec, and no helper program is needed. The thread stays until its child has
ended, for two reasons. To the kernel it is the child's parent, and a child that is to end with its parent
would end with the thread. And being in the sandbox itself, it can ask the kernel who else is.
"""

from __future__ import annotations

import os
import queue
import signal
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    T = TypeVar("T")


class SandboxThread:
    """A thread in a sandbox, which does what it is asked to, one thing after the other."""

    def __init__(self, confine: Callable[[], None], *, scopes_signals: bool) -> None:
        """Make the thread and confine it.

        Raises:
            OSError: the kernel did not do it; nothing was started.
        """
        self._asked: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._scopes_signals = scopes_signals
        # A daemon: when we end, it ends with us, and so does what must not outlive us.
        self._thread = threading.Thread(target=self._serve, name="landlane-sandbox", daemon=True)
        self._thread.start()
        try:
            self.call(confine)
            self._is_exact = scopes_signals and self._reaches_nobody()
        except BaseException:
            self.close()
            raise

    @property
    def is_exact(self) -> bool:
        """Whether a signal from inside this sandbox reaches who is there, and provably nobody else."""
        return self._is_exact and self._thread.is_alive()

    def kill_all(self) -> bool:
        """Kill everything in this sandbox at once; tells whether that could be done.

        The kernel does it in one step, in which nobody can fork. No search, however fast, is as good: what
        forks and ends all the time is never where it was seen.
        """
        if not self.is_exact:
            return False
        self.call(_kill_whoever_is_reached)
        return True

    def _reaches_nobody(self) -> bool:
        """Whether signals are refused from here to all that we can send them to, and there are such.

        It is asked before anything is started in the sandbox: whoever can be reached then is outside.
        """
        names = os.listdir("/proc") if os.path.isdir("/proc") else []
        others = [int(name) for name in names if name.isdecimal() and int(name) != os.getpid()]
        ours = [pid for pid in others if _can_signal(pid)]
        reached = self.call(lambda: any(_can_signal(pid) for pid in others))
        return not reached and any(_can_signal(pid) for pid in ours)

    def call(self, action: Callable[[], T]) -> T:
        """Do something in the sandbox, and wait for what comes of it."""
        results: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()

        def act() -> None:
            try:
                results.put((True, action()))
            except BaseException as error:  # noqa: BLE001 - raised again where it was asked for
                results.put((False, error))

        self._asked.put(act)
        is_done, outcome = results.get()
        if not is_done:
            raise outcome
        return outcome

    def close(self) -> None:
        """Let the thread end."""
        self._asked.put(None)
        self._thread.join()

    def members(self, pids: list[int]) -> set[int] | None:
        """Which of these processes are in this sandbox: those that the kernel lets us signal from there.

        Nothing is told unless it refuses some that we can signal from here: then the sandbox holds.
        """
        if not self._scopes_signals or not self._thread.is_alive():
            return None
        others = [pid for pid in pids if pid != os.getpid()]
        inside = self.call(lambda: {pid for pid in others if _can_signal(pid)})
        is_holding = any(pid not in inside and _can_signal(pid) for pid in others)
        return inside if is_holding else None

    def _serve(self) -> None:
        while (action := self._asked.get()) is not None:
            action()


def _can_signal(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _kill_whoever_is_reached() -> None:
    try:
        os.kill(-1, signal.SIGKILL)  # never our own process, and from here nobody outside
    except ProcessLookupError:
        return
