"""A warm interpreter that forks one process for each `landlane` command: real processes without the start-up.

The server has imported the command line and never runs a command itself. Each command gets a child of its own
with its own arguments, environment, folder and standard streams, and ends as a freshly started one would. Set
LANDLANE_TEST_STARTS to start the program itself every time, as `make soak` does.
"""

from __future__ import annotations

import atexit
import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

# Read now: the sealed home of a test takes the variable away.
STARTS = bool(os.environ.get("LANDLANE_TEST_STARTS"))
# What an interpreter reads when it starts, too early for a process that was forked.
_AT_START = ("PYTHON", "LC_", "LANG", "COVERAGE_PROCESS")
_STATUS = struct.Struct("=id")
_MOST_FILES = 256


def can_fork(environment: Mapping[str, str]) -> bool:
    """Whether a command in this environment may be forked; else it has to be started."""
    if STARTS or not hasattr(os, "pidfd_open"):
        return False
    return all(
        environment.get(name) == _server_environment().get(name)
        for name in (*environment, *_server_environment())
        if name.startswith(_AT_START)
    )


def run_forked(
    words: Sequence[str], folder: str, environment: Mapping[str, str], stdin: bytes, limit_seconds: float
) -> tuple[int, bytes, bytes]:
    """Run a command to its end: its exit code (negative for a signal) and what it wrote.

    Raises:
        subprocess.TimeoutExpired: it took longer than the limit, and was killed.
    """
    os.stat(folder)
    pipes = [os.pipe() for _ in range(3)]
    (given, feed), (out, said), (err, noted) = pipes
    try:
        call = _server().call(words, folder, environment, (given, said, noted))
    except BaseException:
        _close(feed, out, err)
        raise
    finally:
        _close(given, said, noted)
    try:
        texts = _communicate(feed, stdin, out, err, time.monotonic() + limit_seconds)
        if texts is None:
            call.kill()
            raise subprocess.TimeoutExpired(list(words), limit_seconds)
        return call.status(), *texts
    finally:
        call.close()


def _communicate(feed: int, stdin: bytes, out: int, err: int, until: float) -> tuple[bytes, bytes] | None:
    """Feed and read until both outputs are closed; nothing if that takes too long."""
    kept: dict[int, list[bytes]] = {out: [], err: []}
    left = memoryview(stdin)
    open_files = {out, err, feed}
    try:
        with selectors.DefaultSelector() as selector:
            for file in (out, err):
                selector.register(file, selectors.EVENT_READ)
            if left:
                os.set_blocking(feed, False)
                selector.register(feed, selectors.EVENT_WRITE)
            else:
                open_files.discard(feed)
                os.close(feed)
            while open_files & {out, err}:
                remaining = until - time.monotonic()
                if remaining <= 0:
                    return None
                for key, _ in selector.select(remaining):
                    is_done = False
                    if key.fd == feed:
                        try:
                            left = left[os.write(feed, left[:65536]) :]
                        except BrokenPipeError:
                            left = left[:0]
                        is_done = not left
                    else:
                        more = os.read(key.fd, 65536)
                        kept[key.fd].append(more)
                        is_done = not more
                    if is_done:
                        selector.unregister(key.fd)
                        open_files.discard(key.fd)
                        os.close(key.fd)
    finally:
        _close(*open_files)
    return b"".join(kept[out]), b"".join(kept[err])


def _close(*files: int) -> None:
    for file in files:
        os.close(file)


# ------------------------------------------------------------------------------------------ the caller's side


class _Call:
    """A command that runs in a child of the server."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self.pid = int.from_bytes(self._receive(4), sys.byteorder)
        self.cpu_seconds = 0.0

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)  # it stays a zombie until the server has sent its status
        self.status()

    def status(self) -> int:
        status, self.cpu_seconds = _STATUS.unpack(self._receive(_STATUS.size))
        return os.waitstatus_to_exitcode(status)

    def close(self) -> None:
        self._line.close()

    def _receive(self, count: int) -> bytes:
        got = b""
        while len(got) < count:
            more = self._line.recv(count - len(got))
            assert more, "the server of commands is gone"
            got += more
        return got


class _Server:
    """The warm interpreter, and the socket over which it is asked."""

    def __init__(self) -> None:
        self.environment = dict(os.environ)
        self._line, theirs = socket.socketpair()
        self._guard = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            cwd="/",
        )
        theirs.close()
        atexit.register(self.close)

    def call(
        self, words: Sequence[str], folder: str, environment: Mapping[str, str], files: tuple[int, int, int]
    ) -> _Call:
        body = json.dumps([list(words), folder, dict(environment)]).encode()
        ours, theirs = socket.socketpair()
        with self._guard:
            socket.send_fds(self._line, [len(body).to_bytes(4, sys.byteorder)], [theirs.fileno(), *files])
            self._line.sendall(body)
        theirs.close()
        return _Call(ours)

    def close(self) -> None:
        self._line.close()
        self._process.wait(30)


_running: list[_Server] = []
_starting = threading.Lock()


def _server() -> _Server:
    with _starting:
        if not _running:
            _running.append(_Server())
        return _running[0]


def _server_environment() -> Mapping[str, str]:
    return _server().environment


# ------------------------------------------------------------------------------------------ the server's side


def _serve(line: socket.socket) -> None:
    import gc

    from landlane.cli.resident import _warm_up  # pyright: ignore[reportPrivateUsage]

    _warm_up()
    gc.collect()
    gc.freeze()  # what is never looked at again is never copied to a child
    running: dict[int, tuple[int, socket.socket]] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(line, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd in running:
                    selector.unregister(key.fd)
                    _report(key.fd, *running.pop(key.fd))
                    continue
                head, files, _, _ = socket.recv_fds(line, 4, 4)
                if not head:
                    return
                pid = _fork(line, int.from_bytes(head, sys.byteorder), files)
                watch = os.pidfd_open(pid)
                caller = socket.socket(fileno=files[0])
                running[watch] = (pid, caller)
                selector.register(watch, selectors.EVENT_READ)
                _close(*files[1:])
                try:
                    caller.sendall(pid.to_bytes(4, sys.byteorder))
                except OSError:
                    pass


def _fork(line: socket.socket, length: int, files: list[int]) -> int:
    body = b""
    while len(body) < length:
        body += line.recv(length - len(body))
    pid = os.fork()
    if pid == 0:
        try:
            _be_command(body, files)
        finally:
            os._exit(70)
    return pid


def _be_command(body: bytes, files: list[int]) -> NoReturn:
    words, folder, environment = json.loads(body)
    for number, file in enumerate(files[1:]):
        os.dup2(file, number)
    os.closerange(3, _MOST_FILES)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(folder)
    sys.argv = words
    sys.path[0:0] = [os.path.dirname(words[0])]  # as where the program lies

    from landlane.cli.main import run

    try:
        run()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - as an interpreter ends
        sys.excepthook(*sys.exc_info())
        code = 1
    else:
        code = 0
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _report(watch: int, pid: int, caller: socket.socket) -> None:
    os.close(watch)
    _, status, used = os.wait4(pid, 0)
    try:
        caller.sendall(_STATUS.pack(status, used.ru_utime + used.ru_stime))
    except OSError:
        pass
    caller.close()


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
