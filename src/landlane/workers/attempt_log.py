"""Logs of attempts: the messages of a worker, one timed line each, in files of limited size.

A log is a head and a tail in two pieces. The head is kept once it is full. When the newer piece of the tail
is full, it replaces the older one. A piece begins with the number of tail lines before it, so that a reader
can count the lines that were left out, even after the writer was killed.
"""

from __future__ import annotations

import contextlib
import os
import time

from landlane.errors import Malformed
from landlane.protocol.worker.messages import Heartbeat, Progress, WorkComplete
from landlane.redact import redact
from landlane.text import in_one_line
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from landlane.workers.run_worker import WorkerEnd, WorkerMessage

FOLDER = "attempts"
_HEAD_BYTES = 512 * 1024
_PIECE_BYTES = 256 * 1024
_LINE_BYTES = 8 * 1024
_MAX_LOGS = 500
_MAX_BYTES = 100 * 1024 * 1024  # of all logs together
_POLL_SECONDS = 0.2
_NEWER, _OLDER = ".tail", ".tail.1"
_MARK = b"#after "
_NEW = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


@value
class LogText:
    """The lines of a log: its head, the number of lines left out, and its tail."""

    head: tuple[str, ...]
    left_out: int
    tail: tuple[str, ...]

    @property
    def lines(self) -> list[str]:
        """The complete log for display."""
        return [*self.head, *([_gap(self.left_out)] if self.left_out else []), *self.tail]


def log_path(state: str, task: str, attempt: int) -> str:
    """Return the path of the log of an attempt."""
    if not task or task.startswith(".") or "/" in task or "\0" in task:
        raise Malformed(f"{task[:40]!r} is not a task", code="UNKNOWN_TASK", hint="`landlane task list`")
    return os.path.join(state, FOLDER, f"{task}-{attempt}.log")


class AttemptLog:
    """The log of one attempt, written by one process. A failure to write does not fail the attempt."""

    def __init__(
        self,
        state: str,
        task: str,
        attempt: int,
        *,
        secrets: tuple[str, ...] = (),
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.path = log_path(state, task, attempt)
        self.error = ""  # why it is not written any more
        self._secrets = secrets
        self._wall = wall
        self._doing: str | None = None
        try:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            prune_logs(state, keep=self.path)
            self._end_torn_line()
        except OSError as error:
            self.error = str(error)

    def hide(self, secret: str) -> None:
        """Redact another secret from now on."""
        self._secrets = (*self._secrets, secret)

    def write(self, kind: str, text: str) -> None:
        """Add an entry; further lines of its text are indented."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(self._wall()))
        first, *more = redact(text, self._secrets).splitlines() or [""]
        lines = [f"{at}Z {kind:<8} {first}", *(f"{'':<21}{'':<8} {line}" for line in more)]
        self._append(b"".join(_as_line(line) for line in lines))

    def write_message(self, message: WorkerMessage) -> None:
        """Add a message of the worker; a heartbeat only when it names a new activity."""
        if isinstance(message, Heartbeat):
            if message.doing and message.doing != self._doing:
                self._doing = message.doing
                self.write("doing", message.doing)
        elif isinstance(message, Progress):
            done = f" ({round(message.done * 100)} %)" if message.done is not None else ""
            self.write("says", message.text + done)
        elif isinstance(message, WorkComplete):
            forms = {"commit": message.commit, "patch": message.patch, "files": message.files}
            kinds = [name for name, given in forms.items() if given is not None]
            self.write("done", f"{message.summary}\n({kinds[0] if kinds else 'no change'})")
        else:
            self.write("failed", f"{message.code}: {message.reason}")

    def write_end(self, end: WorkerEnd) -> None:
        """Add the worker's stderr and how its process ended."""
        if end.stderr.strip():
            self.write("stderr", end.stderr.strip())
        code = "never began" if end.exit_code is None else f"exit {end.exit_code}"
        if end.exit_code is not None and end.exit_code < 0:
            code = f"signal {-end.exit_code}"
        self.write("ended", f"{code}, after {end.messages} messages{', by us' if end.was_killed else ''}")

    def _end_torn_line(self) -> None:
        """End a line that was cut off because its writer was killed."""
        for path in (self.path, self.path + _NEWER):
            with contextlib.suppress(FileNotFoundError), open(path, "rb+") as file:
                if file.seek(0, os.SEEK_END) and (file.seek(-1, os.SEEK_END), file.read(1))[1] != b"\n":
                    file.write(b"\n")

    def _append(self, data: bytes) -> None:
        if self.error:
            return
        try:
            for piece in _pieces(data):
                self._append_piece(piece)
        except OSError as error:  # a full disk, most likely; the work goes on
            self.error = str(error)

    def _append_piece(self, data: bytes) -> None:
        newer = self.path + _NEWER
        if not os.path.lexists(newer) and _size(self.path) + len(data) <= _HEAD_BYTES:
            _add(self.path, data)
            return
        if _size(newer) + len(data) > _PIECE_BYTES:
            before = _count_lines_up_to(newer)
            os.replace(newer, self.path + _OLDER)
            _add(newer, _MARK + str(before).encode() + b"\n")
        elif not os.path.lexists(newer):
            _add(newer, _MARK + b"0\n")
        _add(newer, data)


def _pieces(data: bytes) -> Iterator[bytes]:
    """Split data at line ends, so that no part fills more than half a piece of the tail."""
    limit = _PIECE_BYTES // 2
    start = 0
    while len(data) - start > limit:
        end = data.rindex(b"\n", start, start + limit) + 1
        yield data[start:end]
        start = end
    yield data[start:]


def _as_line(text: str) -> bytes:
    """Encode one line of plain text: control characters are escaped, a long line is cut."""
    plain = "\t".join(map(in_one_line, text.split("\t")))
    data = plain.encode("utf-8", "backslashreplace")
    if len(data) > _LINE_BYTES:
        data = data[:_LINE_BYTES].decode("utf-8", "ignore").encode() + f" … {len(data):,} bytes".encode()
    return data.rstrip() + b"\n"


def _add(path: str, data: bytes) -> None:
    descriptor = os.open(path, _NEW, 0o600)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    finally:
        os.close(descriptor)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _count_lines_up_to(piece: str) -> int:
    """Return how many tail lines there were up to the end of a piece."""
    before, lines = _read_piece(piece)
    return before + len(lines)


def _read_piece(path: str) -> tuple[int, list[str]]:
    """Return how many tail lines came before a piece, and its own lines without an unfinished last one."""
    try:
        with open(path, "rb") as file:
            data = file.read(_HEAD_BYTES + _PIECE_BYTES)
    except FileNotFoundError:
        return 0, []
    lines = data[: data.rfind(b"\n") + 1].decode("utf-8", "replace").splitlines()
    if lines and lines[0].startswith(_MARK.decode()):
        number = lines[0].removeprefix(_MARK.decode())
        return int(number) if number.isdecimal() else 0, lines[1:]
    return 0, lines


def read_log(state: str, task: str, attempt: int) -> LogText | None:
    """Return the log of an attempt; None when there is none on this machine."""
    path = log_path(state, task, attempt)
    if not os.path.lexists(path):
        return None
    # The newer piece first: if it becomes the older one meanwhile, it is read twice, but not missed.
    before_newer, newer = _read_piece(path + _NEWER)
    before, older = _read_piece(path + _OLDER)
    if before_newer == before:
        older = []
    left_out = before if older else before_newer
    head = [redact(line) for line in _read_piece(path)[1]]
    return LogText(head=tuple(head), left_out=left_out, tail=tuple(redact(line) for line in [*older, *newer]))


def follow_log(
    state: str,
    task: str,
    attempt: int,
    is_over: Callable[[], bool],
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[str]:
    """Yield the lines of a log as they are written, until it is over; lines that were missed are counted."""
    heads = tails = 0  # lines that were yielded already
    while True:
        is_last = is_over()  # before reading, so that everything written until then is read
        log = read_log(state, task, attempt)
        if log is not None:
            yield from log.head[heads:]
            heads = len(log.head)
            if log.left_out > tails:
                yield _gap(log.left_out - tails)
                tails = log.left_out
            yield from log.tail[tails - log.left_out :]
            tails = log.left_out + len(log.tail)
        if is_last:
            return
        sleep(_POLL_SECONDS)


def _gap(lines: int) -> str:
    return f"… {lines:,} line{'s' if lines != 1 else ''} left out …"


def prune_logs(state: str, *, keep: str = "", max_logs: int = _MAX_LOGS, max_bytes: int = _MAX_BYTES) -> int:
    """Remove the oldest logs beyond a number and a size, except `keep`; return how many."""
    folder = os.path.join(state, FOLDER)
    logs: list[tuple[float, int, str]] = []
    with contextlib.suppress(FileNotFoundError):
        for entry in os.scandir(folder):
            if entry.name.endswith(".log") and entry.path != keep:
                parts = [entry.path + end for end in ("", _NEWER, _OLDER)]
                stats = [os.lstat(part) for part in parts if os.path.lexists(part)]
                if stats:  # another process may prune at the same time
                    newest = max(stat.st_mtime for stat in stats)
                    logs.append((newest, sum(stat.st_size for stat in stats), entry.path))
    logs.sort(reverse=True)
    size = 0
    removed = 0
    for number, (_, bytes_, path) in enumerate(logs, start=1 + bool(keep)):
        size += bytes_
        if number > max_logs or size > max_bytes:
            removed += 1
            for part in (path + _OLDER, path + _NEWER, path):  # the head last: without it there is no log
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(part)
    return removed
