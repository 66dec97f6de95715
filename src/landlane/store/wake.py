"""Wake other processes on this machine after a commit, by a datagram to their sockets in the state folder.

A listener that watches a key (a claim or a ticket in the way) has the key in the name of its socket, which is
in a subfolder that the key chooses. Only the end of that key wakes it, and only that subfolder is listed, so
that a release costs the same however many wait behind the next one. A lost datagram only delays a listener,
because every listener also looks by itself from time to time.
"""

from __future__ import annotations

import _thread
import os
from enum import StrEnum

from landlane.files import make_folder_beside
from landlane.ids import short_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Collection

_AFTER_KEY = "."  # between a key and the rest of the name of a socket
_SUBFOLDERS = 64


class WakeReason(StrEnum):
    """Why a listener stopped waiting."""

    FREED = "freed"
    ENTRY = "entry"
    TIMEOUT = ""


class WakeSockets:
    """The sockets of all listeners of one store, in one folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._sender: socket.socket | None = None
        self._guard = _thread.allocate_lock()

    def wake(self, reason: WakeReason, freed: Collection[str] = ()) -> None:
        """Wake the listeners that watch one of the freed keys, and all that watch none.

        Never fails: a listener that cannot be reached is removed or looks later.
        """
        self._wake_in(self._folder, reason, None)
        if len(freed) < _SUBFOLDERS:
            for key in freed:
                self._wake_in(_subfolder(self._folder, key), reason, (key,))
        else:
            for number in range(_SUBFOLDERS):
                self._wake_in(os.path.join(self._folder, f"{number:02x}"), reason, freed)

    def _wake_in(self, place: str, reason: WakeReason, keys: Collection[str] | None) -> None:
        """Wake the listeners in one folder; `keys` limits it to those that watch one of them."""
        try:
            names = [name for name in os.listdir(place) if _is_watched(name, keys)]
            if not names:
                return
            folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return
        try:
            sender = self._open_sender()
            for name in names:
                path = os.path.join(place, name)
                self._send(sender, _address(place, folder, name), path, reason.encode())
        finally:
            os.close(folder)

    def _open_sender(self) -> socket.socket:
        """Return the socket that all threads send with; it never blocks."""
        with self._guard:
            if self._sender is None:
                sender = _new_socket()
                sender.setblocking(False)
                self._sender = sender
            return self._sender

    def _send(self, sender: socket.socket, address: str, path: str, message: bytes) -> None:
        try:
            sender.sendto(message, address)
        except (ConnectionRefusedError, FileNotFoundError):
            # Its owner is gone: a killed process leaves the file of its socket behind.
            _remove(path)
        except OSError:
            return  # its queue is full, so it wakes up anyway

    def close(self) -> None:
        """Close the socket; later calls of `wake` open it again."""
        with self._guard:
            sender, self._sender = self._sender, None
        if sender is not None:
            sender.close()

    def listen(self) -> SocketListener:
        """Return a new listener."""
        return SocketListener(self._folder)


class SocketListener:
    """One socket in the folder."""

    def __init__(self, folder: str) -> None:
        self._pid = os.getpid()
        self._folder = folder
        self._name = f"{self._pid}-{short_id('w', 6)}"
        self._path = os.path.join(folder, self._name)
        make_folder_beside(folder)
        self._socket = _new_socket()
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._socket.bind(_address(folder, handle, os.path.basename(self._path)))
            os.chmod(self._path, 0o666)  # noqa: S103 - any user of the store may wake us
        except BaseException:
            self.close()
            raise
        finally:
            os.close(handle)

    def __del__(self) -> None:
        # Removes the file when a signal arrived before the caller got this object. A forked child has a copy
        # of the listener, but its parent still listens.
        if getattr(self, "_socket", None) is not None and self._pid == os.getpid():
            self.close()

    def watch(self, key: str) -> None:
        """Wake up only when this key is freed; for an empty one, whenever something happens."""
        path = os.path.join(self._folder, self._name)
        if key:
            path = os.path.join(_subfolder(self._folder, key), f"{key}{_AFTER_KEY}{self._name}")
        if path == self._path:
            return
        try:
            make_folder_beside(os.path.dirname(path))
            os.rename(self._path, path)
            self._path = path
        except OSError:
            return  # it is gone: the listener looks by itself

    def wait(self, timeout_seconds: float) -> WakeReason:
        """Sleep until another process wakes us or the time is over; FREED takes precedence over ENTRY.

        Any process of this machine may write to the socket: a datagram with unknown content counts as ENTRY.
        """
        self._socket.settimeout(max(timeout_seconds, 0.0001))
        reason = WakeReason.TIMEOUT
        try:
            while True:  # read all that arrived: the caller looks once for all of them
                is_freed = self._socket.recv(16) == WakeReason.FREED.encode() or reason == WakeReason.FREED
                reason = WakeReason.FREED if is_freed else WakeReason.ENTRY
                self._socket.setblocking(False)
        except OSError:
            return reason

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()
        _remove(self._path)


def _new_socket() -> socket.socket:
    import socket  # noqa: PLC0415 - expensive, and few commands wait

    return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)


def _subfolder(folder: str, key: str) -> str:
    """Return where the sockets of the listeners are that watch a key."""
    return os.path.join(folder, f"{sum(key.encode()) % _SUBFOLDERS:02x}")


def _is_watched(name: str, keys: Collection[str] | None) -> bool:
    """Return whether a socket of this name watches one of the keys; without keys, whether it watches none."""
    key, dot, _ = name.partition(_AFTER_KEY)
    return bool(dot) and key in keys if keys is not None else not dot and len(name) > 2


def _address(folder: str, handle: int, name: str) -> str:
    """Return the address of a socket, within the kernel's limit of 108 bytes for any folder."""
    path = os.path.join(folder, name)
    if len(os.fsencode(path)) < 100:
        return path
    return f"/proc/self/fd/{handle}/{name}"


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
