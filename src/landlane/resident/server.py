"""The resident at work: takes requests at its socket, has each done at the right door, and ends itself.

One thread listens, reads and hands on; it never waits for anybody. Hooks are answered by a few threads, from
stores that are open already. A command is handed over, with its connection, to a child that answers by
itself: it goes on when the resident ends. Nothing is kept here that is not in the store, so the resident may
be killed at any moment; whoever was not answered asks again.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from landlane.platform.socket_peer import is_same_user, peer_of
from landlane.processes.prefork_server import PreforkServer
from landlane.resident.messages import (
    BEGUN,
    ERR,
    EXIT,
    HEAD,
    OUT,
    REFUSED,
    BadMessage,
    body_length,
    frame,
    unpack_request,
)
from landlane.resident.single_instance import ResidentLock, code_stamp
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.platform.socket_peer import Peer
    from landlane.resident.messages import Request

    Said = tuple[int, bytes, bytes]

THREADS = 16
_MOST_OPEN = 256  # half-sent requests and holds; whoever waited longest goes first
_MOST_BUSY = 128  # hooks that are being answered or wait for a thread
_MOST_KEPT = 192 * 1024 * 1024  # bytes of half-sent requests
_SEND_SECONDS = 5.0  # for a whole request to arrive
_ANSWER_SECONDS = 10.0  # for an answer to be taken
_TICK_SECONDS = 1.0
_LOOK_SECONDS = 5.0  # how often the package is looked at when nobody asks
_LAST_SECONDS = 0.2  # for those who found the socket just before it went away


@value
class Handlers:
    """What the resident's work is done by; whoever starts it hands them in.

    `answer_hook` answers a hook in a thread. `run_call` does a command in a child, with the connection and a
    file that holds the request; `warm_up` loads what it needs. `keep_up` is called every second in a thread
    of its own; what it returns says why there is no point in going on, or nothing.
    """

    answer_hook: Callable[[Request, Peer], Said]
    run_call: Callable[[int, int], None]
    warm_up: Callable[[], None]
    keep_up: Callable[[], str]


class ResidentServer:
    """Serves one state folder until nobody needs it."""

    def __init__(self, post: ResidentLock, doors: Handlers, idle_seconds: float) -> None:
        self._post = post
        self._doors = doors
        self._idle_seconds = idle_seconds
        self._code = code_stamp()
        self._code_seen_at = time.monotonic()
        # Before any thread begins, and before the socket is there.
        self._prefork = PreforkServer(_call_with(doors.run_call), _too_many, doors.warm_up, [post.file])
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="hook")
        self._selector = selectors.DefaultSelector()
        self._open: dict[int, _Half | _Hold] = {}
        self._busy = 0
        self._guard = threading.Lock()
        self._last_at = time.monotonic()
        self._why_not = ""
        self._prefork_lives = True

    def serve(self) -> str:
        """Serve until there is a reason to end; tells which."""
        listener = self._post.listen()
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ)
        threading.Thread(target=self._keep_up, daemon=True).start()
        try:
            while not (why := self._reason_to_end()):
                self._turn(listener, _TICK_SECONDS)
            self._post.leave()
            self._serve_the_last(listener)
        finally:
            self._post.leave()
            listener.close()
            self._prefork.close()
            self._pool.shutdown(wait=True)
        return why

    def _keep_up(self) -> None:
        while not self._why_not:
            try:
                self.end(self._doors.keep_up())
            except Exception as error:  # noqa: BLE001 - what is wrong is found out again, with a new resident
                self.end(f"{type(error).__name__}: {error}")
            time.sleep(_TICK_SECONDS)

    def _serve_the_last(self, listener: socket.socket) -> None:
        """Those who connected before the socket went away are served; nobody new can come."""
        until = time.monotonic() + _LAST_SECONDS
        while time.monotonic() < until:
            self._turn(listener, 0.05)

    def _reason_to_end(self) -> str:
        if self._why_not:
            return self._why_not
        if not self._post.holds():
            return "its lock or its socket is gone"
        if self._is_outdated(_LOOK_SECONDS):
            return "the package has changed"
        if not self._prefork_lives:
            return "its helper is gone"
        is_held = any(isinstance(one, _Hold) for one in self._open.values())
        if self._busy or is_held:
            self._last_at = time.monotonic()
        if time.monotonic() - self._last_at > self._idle_seconds:
            return "nobody needed it"
        return ""

    def end(self, why: str) -> None:
        """Let it end soon, after those who are served now; without a reason it goes on."""
        self._why_not = self._why_not or why

    def _is_outdated(self, every_seconds: float = _TICK_SECONDS) -> bool:
        now = time.monotonic()
        if now - self._code_seen_at < every_seconds:
            return False
        self._code_seen_at = now
        try:
            return code_stamp() != self._code
        except OSError:
            return True

    def _turn(self, listener: socket.socket, seconds: float) -> None:
        """Take in what there is, and hand on what is whole."""
        for key, _ in self._selector.select(seconds):
            if key.fileobj is listener:
                self._accept(listener)
            elif key.fd in self._open:  # room may have been made of it just now
                self._read_safely(key.fd)
        now = time.monotonic()
        for file in [file for file, one in self._open.items() if one.until < now]:
            self._drop(file)

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except BlockingIOError:  # gone already
            return
        except OSError:  # too many files are open: the next turn has room
            self._make_room(_MOST_OPEN // 2)
            return
        connection.setblocking(False)
        try:
            peer = peer_of(connection)
        except OSError:
            connection.close()
            return
        if not is_same_user(peer):
            connection.close()
            return
        self._make_room(_MOST_OPEN)
        file = connection.fileno()
        self._open[file] = _Half(connection, peer)
        self._selector.register(file, selectors.EVENT_READ)
        self._read_safely(file)  # most have sent all of it already

    def _read_safely(self, file: int) -> None:
        """One caller's trouble, whatever it is, ends its own connection and nobody else's."""
        try:
            self._read(file)
        except Exception as error:  # noqa: BLE001 - one caller's trouble is nobody else's
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            if file in self._open:
                self._drop(file)

    def _make_room(self, most: int) -> None:
        """Let go of those who have been longest about sending a request."""
        halves = [file for file, one in self._open.items() if isinstance(one, _Half)]
        for file in halves[: max(len(self._open) - most + 1, 0)]:
            self._drop(file)

    def _read(self, file: int) -> None:
        one = self._open[file]
        try:
            more = one.connection.recv(1 << 20)
        except BlockingIOError:
            return
        except OSError:
            more = b""
        if not more or isinstance(one, _Hold):
            self._drop(file)
            return
        one.kept += more
        try:
            body = one.whole()
        except BadMessage as error:
            self._refuse(file, str(error))
            return
        if body is not None:
            self._hand_on(file, one, body)
        elif sum(len(half.kept) for half in self._open.values() if isinstance(half, _Half)) > _MOST_KEPT:
            self._refuse(file, "too much is being sent at once")

    def _hand_on(self, file: int, one: _Half, body: bytes) -> None:
        try:
            request = unpack_request(body)
        except BadMessage as error:
            self._refuse(file, str(error))
            return
        self._last_at = time.monotonic()
        verb = request[0]
        if verb == b"hold":
            one.connection.send(frame(BEGUN, b""))
            self._open[file] = _Hold(one.connection)
        elif verb == b"ping":
            self._finish(file, frame(OUT, b"%d" % os.getpid()) + frame(EXIT, b"\0"))
        elif verb in (b"hook", b"call") and self._is_outdated():
            self.end("the package has changed")
            self._drop(file)  # unanswered: the caller takes the road through the new code
        elif verb == b"hook" and self._busy >= _MOST_BUSY:
            self._refuse(file, "too many hooks are being answered")
        elif verb == b"hook":
            self._let_go(file)
            with self._guard:
                self._busy += 1
            self._pool.submit(self._answer_hook, one.connection, request, one.peer)
        elif verb == b"call":
            self._let_go(file)
            self._hand_over(one.connection, body)
        else:
            self._refuse(file, "no such verb")

    def _answer_hook(self, connection: socket.socket, request: Request, peer: Peer) -> None:
        try:
            code, out, err = self._doors.answer_hook(request, peer)
            said = frame(OUT, out) + frame(ERR, err) + frame(EXIT, bytes([code & 255]))
        except Exception as error:  # noqa: BLE001 - one caller's trouble is nobody else's
            said = frame(REFUSED, f"{type(error).__name__}: {error}".encode("utf-8", "replace")[:2000])
        try:
            connection.settimeout(_ANSWER_SECONDS)
            connection.sendall(said)
        except OSError:
            pass  # it did not wait
        finally:
            connection.close()
            with self._guard:
                self._busy -= 1

    def _hand_over(self, connection: socket.socket, body: bytes) -> None:
        """A child does it and answers; our own copy of the connection is closed."""
        request = os.memfd_create("request", os.MFD_CLOEXEC)
        try:
            with os.fdopen(os.dup(request), "wb") as file:
                file.write(body)
            self._prefork_lives = self._prefork.hand_over([connection.fileno(), request])
        finally:
            os.close(request)
            connection.close()

    def _refuse(self, file: int, why: str) -> None:
        self._finish(file, frame(REFUSED, why.encode()))

    def _finish(self, file: int, said: bytes) -> None:
        """A short answer, which the kernel takes at once, or the caller does without."""
        try:
            self._open[file].connection.send(said)
        except OSError:
            pass
        self._drop(file)

    def _let_go(self, file: int) -> None:
        self._selector.unregister(file)
        del self._open[file]

    def _drop(self, file: int) -> None:
        one = self._open[file]
        self._let_go(file)
        one.connection.close()


class _Half:
    """A connection whose request is still arriving."""

    def __init__(self, connection: socket.socket, peer: Peer) -> None:
        self.connection = connection
        self.peer = peer
        self.kept = bytearray()
        self.until = time.monotonic() + _SEND_SECONDS

    def whole(self) -> bytes | None:
        """The body of the request, if all of it is there."""
        if len(self.kept) < HEAD:
            if not b"ILK1".startswith(bytes(self.kept[:4])):
                raise BadMessage("this is not a request of this version")
            return None
        length = body_length(bytes(self.kept[:HEAD]))
        if len(self.kept) > HEAD + length:
            raise BadMessage("there is more than one request")
        return bytes(self.kept[HEAD:]) if len(self.kept) == HEAD + length else None


class _Hold:
    """A connection that only wants the resident to stay."""

    until = float("inf")

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection


def _call_with(run_call: Callable[[int, int], None]) -> Callable[[list[int]], None]:
    def work(files: list[int]) -> None:
        run_call(files[0], files[1])

    return work


def _too_many(files: list[int]) -> None:
    try:
        os.write(files[0], frame(REFUSED, b"too many commands are running; try again in a moment"))
    except OSError:
        return
