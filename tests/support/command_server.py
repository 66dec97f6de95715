"""A warm interpreter that forks one process for each `landlane` command: real processes without the start-up.

The server has imported the command line and never runs a command itself. Each command gets a child of its own
with its own arguments, environment, folder and standard streams, and ends as a freshly started one would. Set
LANDLANE_TEST_STARTS to start the program itself every time, as `make soak` does.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
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
    from typing import BinaryIO, NoReturn

# Read now: the sealed home of a test takes the variable away.
STARTS = bool(os.environ.get("LANDLANE_TEST_STARTS"))
# What an interpreter reads when it starts, too early for a process that was forked.
_AT_START = ("PYTHONPATH", "PYTHONHOME", "PYTHONUTF8", "PYTHONIOENCODING", "COVERAGE_PROCESS")
_LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")  # the first that is set counts
_STATUS = struct.Struct("=id")
_MOST_FILES = 256
# What a command imports, beyond what most do; imported when it is asked for, and kept.
_NEEDED = {"mcp": ("landlane.mcp.server", "landlane.mcp.serve_wire")}


def can_fork(environment: Mapping[str, str]) -> bool:
    """Whether a command in this environment may be forked; else it has to be started."""
    if STARTS or not hasattr(os, "pidfd_open"):
        return False
    return _read_at_start(environment) == _read_at_start(_server().environment)


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    found = {name: text for name, text in environment.items() if name.startswith(_AT_START)}
    return found | {"locale": next((environment[name] for name in _LOCALE if environment.get(name)), "")}


class Forked:
    """A command that runs in a child of the server; used like a `Popen` with pipes.

    Without `stdin` it reads from nothing.
    """

    def __init__(
        self, words: Sequence[str], folder: str, environment: Mapping[str, str], stdin: bytes | None = None
    ) -> None:
        os.stat(folder)
        self.args = list(words)
        self.returncode: int | None = None
        self.cpu_seconds = 0.0
        given, self._feed = (os.open(os.devnull, os.O_RDONLY), -1) if stdin is None else os.pipe()
        (out, said), (err, noted) = os.pipe(), os.pipe()
        self.stdout = os.fdopen(out, "rb", buffering=0)
        self.stderr = os.fdopen(err, "rb", buffering=0)
        self._left = memoryview(stdin or b"")
        self._line = _server().call(words, folder, environment, (given, said, noted))
        for file in (given, said, noted):
            os.close(file)
        self.pid = int.from_bytes(self._receive(4), sys.byteorder)
        try:
            self._watch = os.pidfd_open(self.pid)
        except ProcessLookupError:  # it has ended already
            self._watch = -1

    def take_stdin(self) -> BinaryIO:
        """Write to it from now on, instead of `communicate`; for a command that was given `stdin`."""
        feed, self._feed = self._feed, -1
        return os.fdopen(feed, "wb", buffering=0)

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._line], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._line], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            status, self.cpu_seconds = _STATUS.unpack(self._receive(_STATUS.size))
            self.returncode = os.waitstatus_to_exitcode(status)
            self._line.close()
            if self._watch >= 0:
                os.close(self._watch)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None and self._watch >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._watch, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float) -> tuple[bytes, bytes]:
        """Wait for its end; what it wrote, and nobody has read yet.

        Raises:
            subprocess.TimeoutExpired: that took too long.
        """
        kept: dict[int, list[bytes]] = {self.stdout.fileno(): [], self.stderr.fileno(): []}
        out, err = kept.values()
        until = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            for file in kept:
                selector.register(file, selectors.EVENT_READ)
            if self._feed >= 0:
                os.set_blocking(self._feed, False)
                selector.register(self._feed, selectors.EVENT_WRITE)
            while selector.get_map():
                ready = selector.select(until - time.monotonic())
                if not ready and time.monotonic() >= until:
                    raise subprocess.TimeoutExpired(self.args, timeout)
                for key, _ in ready:
                    if key.fd == self._feed:
                        is_done = self._write_some()
                    else:
                        kept[key.fd].append(os.read(key.fd, 65536))
                        is_done = not kept[key.fd][-1]
                    if is_done:
                        selector.unregister(key.fd)
                        if key.fd == self._feed:
                            self._close_feed()
        self.wait()
        self.close()
        return b"".join(out), b"".join(err)

    def close(self) -> None:
        """Close our ends of its pipes."""
        self.stdout.close()
        self.stderr.close()
        self._close_feed()

    def _write_some(self) -> bool:
        """Feed it; tells whether that was all, or nobody reads any more."""
        try:
            self._left = self._left[os.write(self._feed, self._left[:65536]) :] if self._left else self._left
        except BrokenPipeError:
            self._left = self._left[:0]
        return not self._left

    def _close_feed(self) -> None:
        if self._feed >= 0:
            os.close(self._feed)
            self._feed = -1

    def _receive(self, count: int) -> bytes:
        got = b""
        while len(got) < count:
            more = self._line.recv(count - len(got))
            assert more, "the server of commands is gone"
            got += more
        return got


# ------------------------------------------------------------------------------------------ the caller's side


class _Server:
    """The warm interpreter, and the socket over which it is asked."""

    def __init__(self) -> None:
        # As in the sealed home of a test, also when the first who asks is a fixture outside of it.
        self.environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        self._line, theirs = socket.socketpair()
        self._guard = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=self.environment,
            pass_fds=[theirs.fileno()],
            cwd="/",
        )
        theirs.close()
        atexit.register(self.close)

    def call(
        self, words: Sequence[str], folder: str, environment: Mapping[str, str], files: tuple[int, int, int]
    ) -> socket.socket:
        body = json.dumps([list(words), folder, dict(environment)]).encode()
        ours, theirs = socket.socketpair()
        with self._guard:
            socket.send_fds(self._line, [len(body).to_bytes(4, sys.byteorder)], [theirs.fileno(), *files])
            self._line.sendall(body)
        theirs.close()
        return ours

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
                for file in files[1:]:
                    os.close(file)
                try:
                    caller.sendall(pid.to_bytes(4, sys.byteorder))
                except OSError:
                    pass


def _fork(line: socket.socket, length: int, files: list[int]) -> int:
    body = b""
    while len(body) < length:
        body += line.recv(length - len(body))
    words, folder, environment = json.loads(body)
    for name in _NEEDED.get(words[1], ()) if len(words) > 1 else ():
        with contextlib.suppress(ImportError):
            __import__(name)
    pid = os.fork()
    if pid == 0:
        try:
            _be_command(words, folder, environment, files)
        finally:
            os._exit(70)
    return pid


def _be_command(words: list[str], folder: str, environment: dict[str, str], files: list[int]) -> NoReturn:
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
    except BaseException as error:  # noqa: BLE001 - as an interpreter ends
        sys.excepthook(type(error), error, error.__traceback__)
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
