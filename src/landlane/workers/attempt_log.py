"""Logs of attempts: what a worker said, line by line with the time, in a file that cannot grow without end.

A log is a head and two pieces of a tail. The head is written until it is full and then stays. The tail goes
on in pieces: when the newer one is full, the older one goes. A piece begins with the number of lines of the
tail that came before it, so that a reader can tell how much was left out, whoever wrote it and however that
ended.
"""

from __future__ import annotations

import contextlib
import os
import time

from landlane.errors import Malformed
from landlane.protocol.worker.messages import Heartbeat, Progress, WorkComplete
from landlane.redact import redact
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from landlane.workers.run_worker import Says, WorkerEnd

FOLDER = "attempts"
_HEAD_BYTES = 512 * 1024
_PIECE_BYTES = 256 * 1024
_LINE_BYTES = 8 * 1024
_MOST_LOGS = 500
_MOST_BYTES = 100 * 1024 * 1024  # of all logs together
_POLL_SECONDS = 0.2
_NEWER, _OLDER = ".tail", ".tail.1"
_MARK = b"#after "
_NEW = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


@value
class LogText:
    """A log as it stands: its beginning, how many lines were left out, and its end."""

    head: tuple[str, ...]
    left_out: int
    tail: tuple[str, ...]

    @property
    def lines(self) -> list[str]:
        """All of it, for people."""
        return [*self.head, *([_gap(self.left_out)] if self.left_out else []), *self.tail]


def log_path(state: str, task: str, attempt: int) -> str:
    """Where the log of an attempt lies."""
    if not task or task.startswith(".") or "/" in task or "\0" in task:
        raise Malformed(f"{task[:40]!r} is no task", code="UNKNOWN_TASK", hint="`landlane task list`")
    return os.path.join(state, FOLDER, f"{task}-{attempt}.log")


class AttemptLog:
    """The log of one attempt, for the one process that writes it. Logging never fails an attempt."""

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
        self.trouble = ""  # why it is not written any more
        self._secrets = secrets
        self._wall = wall
        self._doing: str | None = None
        try:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            prune_logs(state, keep=self.path)
            self._mend()
        except OSError as error:
            self.trouble = str(error)

    def hide(self, secret: str) -> None:
        """Keep one more secret out of what is written from now on."""
        self._secrets = (*self._secrets, secret)

    def write(self, kind: str, text: str) -> None:
        """Add what happened: `kind` in a word. Further lines of a text stand below it, moved in."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(self._wall()))
        first, *more = redact(text, self._secrets).splitlines() or [""]
        lines = [f"{at}Z {kind:<8} {first}", *(f"{'':<21}{'':<8} {line}" for line in more)]
        self._append(b"".join(_as_line(line) for line in lines))

    def heard(self, message: Says) -> None:
        """Add what the worker said; a heartbeat only when it is at something else."""
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

    def ended(self, end: WorkerEnd) -> None:
        """Add what it wrote to its errors, and how its process ended."""
        if end.trouble.strip():
            self.write("stderr", end.trouble.strip())
        code = "never began" if end.exit_code is None else f"exit {end.exit_code}"
        if end.exit_code is not None and end.exit_code < 0:
            code = f"signal {-end.exit_code}"
        self.write("ended", f"{code}, after {end.messages} messages{', by us' if end.ended_by_us else ''}")

    def _mend(self) -> None:
        """End a line that somebody was killed in the middle of."""
        for path in (self.path, self.path + _NEWER):
            with contextlib.suppress(FileNotFoundError), open(path, "rb+") as file:
                if file.seek(0, os.SEEK_END) and (file.seek(-1, os.SEEK_END), file.read(1))[1] != b"\n":
                    file.write(b"\n")

    def _append(self, data: bytes) -> None:
        if self.trouble:
            return
        try:
            for piece in _pieces(data):
                self._append_piece(piece)
        except OSError as error:  # a full disk, most likely; the work goes on
            self.trouble = str(error)

    def _append_piece(self, data: bytes) -> None:
        newer = self.path + _NEWER
        if not os.path.lexists(newer) and _size(self.path) + len(data) <= _HEAD_BYTES:
            _add(self.path, data)
            return
        if _size(newer) + len(data) > _PIECE_BYTES:
            before = _after(newer)
            os.replace(newer, self.path + _OLDER)
            _add(newer, _MARK + str(before).encode() + b"\n")
        elif not os.path.lexists(newer):
            _add(newer, _MARK + b"0\n")
        _add(newer, data)


def _pieces(data: bytes) -> Iterator[bytes]:
    """What is written at once: whole lines, and never more than would fill half a piece."""
    most = _PIECE_BYTES // 2
    start = 0
    while len(data) - start > most:
        end = data.rindex(b"\n", start, start + most) + 1
        yield data[start:end]
        start = end
    yield data[start:]


def _as_line(text: str) -> bytes:
    """One line of plain text: what would move the cursor is shown escaped, what is too long is cut."""
    plain = "".join(letter if letter.isprintable() or letter == "\t" else _escaped(letter) for letter in text)
    data = plain.encode("utf-8", "backslashreplace")
    if len(data) > _LINE_BYTES:
        data = data[:_LINE_BYTES].decode("utf-8", "ignore").encode() + f" … {len(data):,} bytes".encode()
    return data.rstrip() + b"\n"


def _escaped(letter: str) -> str:
    return (
        letter.encode("unicode_escape").decode("ascii") if letter.isascii() else "\N{REPLACEMENT CHARACTER}"
    )


def _add(path: str, data: bytes) -> None:
    handle = os.open(path, _NEW, 0o600)
    try:
        while data:
            data = data[os.write(handle, data) :]
    finally:
        os.close(handle)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _after(piece: str) -> int:
    """How many lines of the tail there were up to the end of a piece."""
    before, lines = _read_piece(piece)
    return before + len(lines)


def _read_piece(path: str) -> tuple[int, list[str]]:
    """How many lines of the tail came before a piece, and its own; a torn last line is no line yet."""
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


# ------------------------------------------------------------------------------------------------- reading


def read_log(state: str, task: str, attempt: int) -> LogText | None:
    """The log of an attempt; nothing when there is none on this machine."""
    path = log_path(state, task, attempt)
    if not os.path.lexists(path):
        return None
    # The newer piece first: it can only become the older one meanwhile, and is then read twice, not missed.
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
    """The lines of a log as they come, until it is over; what goes too fast to be read is counted."""
    heads = tails = 0  # lines that were given out already
    while True:
        is_last = is_over()  # asked before reading: what was written until then is read below
        found = read_log(state, task, attempt)
        if found is not None:
            yield from found.head[heads:]
            heads = len(found.head)
            if found.left_out > tails:
                yield _gap(found.left_out - tails)
                tails = found.left_out
            yield from found.tail[tails - found.left_out :]
            tails = found.left_out + len(found.tail)
        if is_last:
            return
        sleep(_POLL_SECONDS)


def _gap(lines: int) -> str:
    return f"… {lines:,} line{'s' if lines != 1 else ''} left out …"


def prune_logs(
    state: str, *, keep: str = "", most_logs: int = _MOST_LOGS, most_bytes: int = _MOST_BYTES
) -> int:
    """Remove the oldest logs beyond a number and a size; tells how many. `keep` is left alone."""
    folder = os.path.join(state, FOLDER)
    logs: list[tuple[float, int, str]] = []
    with contextlib.suppress(FileNotFoundError):
        for entry in os.scandir(folder):
            if entry.name.endswith(".log") and entry.path != keep:
                parts = [entry.path + end for end in ("", _NEWER, _OLDER)]
                stats = [os.lstat(part) for part in parts if os.path.lexists(part)]
                if stats:  # others prune, too
                    newest = max(one.st_mtime for one in stats)
                    logs.append((newest, sum(one.st_size for one in stats), entry.path))
    logs.sort(reverse=True)
    size = 0
    removed = 0
    for number, (_, bytes_, path) in enumerate(logs, start=1 + bool(keep)):
        size += bytes_
        if number > most_logs or size > most_bytes:
            removed += 1
            for part in (path + _OLDER, path + _NEWER, path):  # the head last: without it there is no log
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(part)
    return removed
