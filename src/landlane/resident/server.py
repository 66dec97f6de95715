"""The resident's server: it takes requests at its socket, dispatches them, and ends itself when idle.

One thread accepts, reads and dispatches; it never blocks. Hooks are answered by a few threads, from stores
that are already open. A command is passed, with its connection, to a child that answers by itself and
continues when the resident ends. All state is in the store, so the resident can be killed at any moment; a
caller without an answer asks again.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from landlane.platform.socket_peer import Peer, is_same_user, peer_of
from landlane.processes.fork_server import fork_helper, serve_orders
from landlane.resident.messages import (
    BEGUN,
    ERR,
    EXIT,
    GUEST,
    HEAD,
    MAGIC,
    OUT,
    REFUSED,
    BadMessage,
    body_length,
    frame,
    unpack_request,
)
from landlane.resident.single_instance import ResidentLock, code_stamp
from landlane.text import in_one_line
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.resident.messages import Request

    Answer = tuple[int, bytes, bytes]  # exit code, stdout, stderr

THREADS = 16
_MOST_OPEN = 256  # partial requests and holds; the oldest partial request is dropped first
_MOST_BUSY = 128  # hooks that are being answered or wait for a thread
_MOST_PARTIAL = 192 * 1024 * 1024  # bytes of partial requests
_REQUEST_SECONDS = 5.0  # for a full request to arrive
_ANSWER_SECONDS = 10.0  # for an answer to be read
_TICK_SECONDS = 1.0
_CODE_CHECK_SECONDS = 5.0  # how often the package is checked for changes when there are no requests
_LAST_SECONDS = 0.2  # for callers that found the socket just before it was removed


@value
class Handlers:
    """The functions that do the resident's work.

    `answer_hook` answers a hook in a thread. `run_call` runs a command in a child, with the connection and a
    file that holds the request; `warm_up` loads what it needs. `keep_up` is called every second in a thread
    of its own; it returns why the resident should end, or an empty text.
    """

    answer_hook: Callable[[Request, Peer], Answer]
    run_call: Callable[[int, int], None]
    warm_up: Callable[[], None]
    keep_up: Callable[[], str]


class ResidentServer:
    """Serves one state folder until it has been idle for long enough."""

    def __init__(self, lock: ResidentLock, handlers: Handlers, idle_seconds: float) -> None:
        self._lock = lock
        self._handlers = handlers
        self._idle_seconds = idle_seconds
        self._code = code_stamp()
        self._code_checked_at = time.monotonic()
        # Before the first thread starts, and before the socket exists.
        self._helper = fork_helper(self._serve_calls, [lock.file])
        self._is_helper_running = True
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="hook")
        self._selector = selectors.DefaultSelector()
        self._open: dict[int, _Partial | _OpenConnection] = {}
        self._busy = 0
        self._busy_guard = threading.Lock()
        self._used_at = time.monotonic()
        self._end_reason = ""

    def _serve_calls(self, control: socket.socket) -> None:
        self._handlers.warm_up()
        serve_orders(control, lambda _, files: self._handlers.run_call(*files), refuse=_refuse_call)

    def serve(self) -> str:
        """Serve until there is a reason to end; return the reason."""
        listener = self._lock.listen()
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ)
        threading.Thread(target=self._keep_up, daemon=True).start()
        try:
            while not (reason := self._find_end_reason()):
                self._handle_events(listener, _TICK_SECONDS)
            self._lock.remove_socket()
            self._serve_last(listener)
        finally:
            self._lock.remove_socket()
            listener.close()
            self._helper.close()
            self._pool.shutdown(wait=True)
        return reason

    def _keep_up(self) -> None:
        while not self._end_reason:
            try:
                self.end(self._handlers.keep_up())
            except Exception as error:  # noqa: BLE001 - a new resident will report the same problem
                self.end(f"{type(error).__name__}: {error}")
            time.sleep(_TICK_SECONDS)

    def _serve_last(self, listener: socket.socket) -> None:
        """Serve callers that connected before the socket was removed."""
        until = time.monotonic() + _LAST_SECONDS
        while time.monotonic() < until:
            self._handle_events(listener, 0.05)

    def _find_end_reason(self) -> str:
        if self._end_reason:
            return self._end_reason
        if not self._lock.is_valid():
            return "its lock or its socket is gone"
        if self._is_outdated(_CODE_CHECK_SECONDS):
            return "the package has changed"
        if not self._is_helper_running:
            return "its helper is gone"
        if self._busy or any(isinstance(connected, _OpenConnection) for connected in self._open.values()):
            self._used_at = time.monotonic()
        if time.monotonic() - self._used_at > self._idle_seconds:
            return "it was idle"
        return ""

    def end(self, reason: str) -> None:
        """End soon, after the running requests; an empty reason changes nothing."""
        self._end_reason = self._end_reason or reason

    def _is_outdated(self, every_seconds: float = _TICK_SECONDS) -> bool:
        now = time.monotonic()
        if now - self._code_checked_at < every_seconds:
            return False
        self._code_checked_at = now
        try:
            return code_stamp() != self._code
        except OSError:
            return True

    def _handle_events(self, listener: socket.socket, seconds: float) -> None:
        """Accept connections, read from them, and drop those that take too long."""
        for key, _ in self._selector.select(seconds):
            if key.fileobj is listener:
                self._accept(listener)
            elif key.fd in self._open:  # it may have been dropped just now
                self._read_safely(key.fd)
        now = time.monotonic()
        for file in [file for file, connected in self._open.items() if connected.until < now]:
            self._drop(file)

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except BlockingIOError:  # the caller is gone already
            return
        except OSError:  # too many files are open
            self._make_room(_MOST_OPEN // 2)
            return
        connection.setblocking(False)
        try:
            peer = peer_of(connection)
        except OSError:
            peer = None
        if peer is None or not is_same_user(peer):
            connection.close()
            return
        self._make_room(_MOST_OPEN)
        file = connection.fileno()
        self._open[file] = _Partial(connection, peer)
        self._selector.register(file, selectors.EVENT_READ)
        self._read_safely(file)  # most callers have sent the full request already

    def _read_safely(self, file: int) -> None:
        try:
            self._read(file)
        except Exception as error:  # noqa: BLE001 - it must end this connection only
            sys.stderr.write(f"{type(error).__name__}: {in_one_line(str(error))}\n")
            if file in self._open:
                self._drop(file)

    def _make_room(self, most: int) -> None:
        """Drop the oldest partial requests."""
        partial = [file for file, connected in self._open.items() if isinstance(connected, _Partial)]
        for file in partial[: max(len(self._open) - most + 1, 0)]:
            self._drop(file)

    def _read(self, file: int) -> None:
        connected = self._open[file]
        try:
            data = connected.connection.recv(1 << 20)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data or isinstance(connected, _OpenConnection):
            self._drop(file)
            return
        connected.received += data
        try:
            body = connected.body()
            if body is not None:
                self._dispatch(file, connected, body)
            elif self._partial_bytes() > _MOST_PARTIAL:
                self._refuse(file, "too much is being sent at once")
        except BadMessage as error:
            self._refuse(file, str(error))

    def _partial_bytes(self) -> int:
        return sum(len(one.received) for one in self._open.values() if isinstance(one, _Partial))

    def _dispatch(self, file: int, partial: _Partial, body: bytes) -> None:
        request = unpack_request(body)
        self._used_at = time.monotonic()
        verb = request[0]
        if verb == b"hold":
            partial.connection.send(frame(BEGUN, b""))
            self._open[file] = _OpenConnection(partial.connection)
        elif verb == b"ping":
            self._finish(file, frame(OUT, b"%d" % os.getpid()) + frame(EXIT, b"\0"))
        elif verb in (b"hook", b"call") and self._is_outdated():
            self.end("the package has changed")
            self._drop(file)  # without an answer, the caller runs the new code itself
        elif verb == b"hook" and self._busy >= _MOST_BUSY:
            self._refuse(file, "too many hooks are being answered")
        elif verb == b"hook":
            self._unregister(file)
            with self._busy_guard:
                self._busy += 1
            self._pool.submit(self._answer_hook, partial.connection, request, partial.peer)
        elif verb == b"call":
            self._unregister(file)
            self._run_call(partial.connection, body)
        else:
            self._refuse(file, "no such verb")

    def _answer_hook(self, connection: socket.socket, request: Request, peer: Peer) -> None:
        try:
            code, out, err = self._handlers.answer_hook(request, peer)
            answer = frame(OUT, out) + frame(ERR, err) + frame(EXIT, bytes([code & 255]))
        except Exception as error:  # noqa: BLE001 - it must end this request only
            answer = frame(REFUSED, f"{type(error).__name__}: {error}".encode("utf-8", "replace")[:2000])
        try:
            connection.settimeout(_ANSWER_SECONDS)
            connection.sendall(answer)
        except OSError:
            pass  # the caller did not wait
        finally:
            connection.close()
            with self._busy_guard:
                self._busy -= 1

    def _run_call(self, connection: socket.socket, body: bytes) -> None:
        """Let a child run the command and answer; our own copy of the connection is closed."""
        request = os.memfd_create("request", os.MFD_CLOEXEC)
        try:
            with os.fdopen(os.dup(request), "wb") as file:
                file.write(body)
            self._is_helper_running = self._helper.send(b"call", [connection.fileno(), request])
        finally:
            os.close(request)
            connection.close()

    def _refuse(self, file: int, reason: str) -> None:
        self._finish(file, frame(REFUSED, reason.encode()))

    def _finish(self, file: int, answer: bytes) -> None:
        """Send a short answer without waiting, and close the connection."""
        try:
            self._open[file].connection.send(answer)
        except OSError:
            pass
        self._drop(file)

    def _unregister(self, file: int) -> None:
        self._selector.unregister(file)
        del self._open[file]

    def _drop(self, file: int) -> None:
        connection = self._open[file].connection
        self._unregister(file)
        connection.close()


class _Partial:
    """A connection whose request is still arriving."""

    def __init__(self, connection: socket.socket, peer: Peer) -> None:
        self.connection = connection
        self.peer = peer
        self.received = bytearray()
        self.until = time.monotonic() + _REQUEST_SECONDS

    def body(self) -> bytes | None:
        """Return the body of the request once all of it has arrived."""
        if self.received.startswith(GUEST):
            del self.received[: len(GUEST)]
            self.peer = Peer(pid=0, uid=self.peer.uid)  # an unknown process counts as sandboxed
        if len(self.received) < HEAD:
            if GUEST.startswith(bytes(self.received)):
                return None
            if not MAGIC.startswith(bytes(self.received[:4])):
                raise BadMessage("this is not a request of this version")
            return None
        length = body_length(bytes(self.received[:HEAD]))
        if len(self.received) > HEAD + length:
            raise BadMessage("there is more than one request")
        return bytes(self.received[HEAD:]) if len(self.received) == HEAD + length else None


class _OpenConnection:
    """A connection that keeps the resident running while it is open."""

    until = float("inf")

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection


def _refuse_call(files: list[int]) -> None:
    try:
        os.write(files[0], frame(REFUSED, b"too many commands are running; try again in a moment"))
    except OSError:
        return
