"""Waking others on this machine: one datagram to each socket in the state folder, sent after a commit.

Losing a datagram costs time, never truth: whoever listens also looks by itself now and then.
"""

from __future__ import annotations

import _thread
import os

from landlane.ids import short_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

FREED = "freed"
ENTRY = "entry"


class Wakes:
    """The sockets of all listeners of one store, in one folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._sender: socket.socket | None = None
        self._guard = _thread.allocate_lock()

    def announce(self, what: str) -> None:
        """Wake every listener. Never fails: a listener that cannot be reached is forgotten or looks later."""
        try:
            names = os.listdir(self._folder)
        except OSError:
            return
        if names:
            self._send(names, what.encode())

    def _send(self, names: list[str], message: bytes) -> None:
        sender = self._open_sender()
        try:
            folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return
        try:
            for name in names:
                self._send_to(sender, _address(self._folder, folder, name), name, message)
        finally:
            os.close(folder)

    def _open_sender(self) -> socket.socket:
        """The socket that all threads send by; it never blocks, not even for who sees it first."""
        import socket  # noqa: PLC0415 - expensive, and few commands wait

        with self._guard:
            if self._sender is None:
                sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                sender.setblocking(False)
                self._sender = sender
            return self._sender

    def _send_to(self, sender: socket.socket, address: str, name: str, message: bytes) -> None:
        try:
            sender.sendto(message, address)
        except (ConnectionRefusedError, FileNotFoundError):
            # Its owner is gone: a killed process leaves its socket's file behind.
            _remove(os.path.join(self._folder, name))
        except OSError:
            return  # its queue is full: it has plenty of reasons to wake up already

    def close(self) -> None:
        """Wake nobody any more."""
        with self._guard:
            sender, self._sender = self._sender, None
        if sender is not None:
            sender.close()

    def listen(self) -> LocalListener:
        """A new listener."""
        return LocalListener(self._folder)


class LocalListener:
    """One socket in the folder."""

    def __init__(self, folder: str) -> None:
        import socket  # noqa: PLC0415 - expensive, and few commands wait

        self._pid = os.getpid()
        self._path = os.path.join(folder, f"{self._pid}-{short_id('w', 6)}")
        os.makedirs(folder, exist_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._socket.bind(_address(folder, handle, os.path.basename(self._path)))
            os.chmod(self._path, 0o666)  # noqa: S103 - whoever may write the store may wake us
        except BaseException:
            self.close()
            raise
        finally:
            os.close(handle)

    def __del__(self) -> None:
        # A signal may come before our owner has us, and nobody else would take the file away then. A forked
        # child has the same listener, and its parent still listens.
        if getattr(self, "_socket", None) is not None and self._pid == os.getpid():
            self.close()

    def wait(self, timeout_seconds: float) -> str:
        """Sleep until something happened: `freed` wins over `entry`; empty when the time was up."""
        self._socket.settimeout(max(timeout_seconds, 0.0001))
        heard = ""
        try:
            heard = self._socket.recv(16).decode()
            self._socket.setblocking(False)
            while True:  # take all that came together: one look answers them all
                more = self._socket.recv(16).decode()
                heard = FREED if FREED in (heard, more) else more
        except OSError:
            return heard

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()
        _remove(self._path)


def _address(folder: str, handle: int, name: str) -> str:
    """A socket's path, short enough for the kernel (108 bytes) however deep the repository lies."""
    path = os.path.join(folder, name)
    if len(os.fsencode(path)) < 100:
        return path
    return f"/proc/self/fd/{handle}/{name}"


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
