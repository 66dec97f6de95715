"""Plain files beside the store that follow it: `journal.jsonl` line by line, what is live as a whole.

Lines are appended only after the commit of what they tell, under a lock of their own. Whoever finds the lock
taken goes on: the one who has it looks once more after letting go. Nobody does so for ever: where others
write faster than one process can copy, the rest is left to the next command. A line torn by a crash is cut
off and written again.
"""

from __future__ import annotations

import json
import os
import time

from landlane.clock import rfc3339
from landlane.errors import StoreError
from landlane.store.file_lock import FairLock
from landlane.store.journal_chain import as_line, from_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from landlane.store.interface import Store
    from landlane.store.journal_chain import Entry

JOURNAL = "journal.jsonl"
# What is live, a file each, and the kinds of entries after which it has to be written again.
LIVE = {
    "claims": ("claim.", "session.", "store.", "repository."),
    "tasks": ("task.", "store.", "repository."),
}
_LOOK_BACK = 500
_TAIL = 65_536
_SMALL = 32_768
_LONGEST_SECONDS = 0.5  # how long one command copies what others go on writing
_BYTES_A_SECOND = 100_000  # how much of such a file we are willing to write in a second, on average


class Mirror:
    """The files of one repository in its state folder."""

    def __init__(
        self, folder: str, store: Store, live: Mapping[str, Callable[[], list[dict[str, Any]]]]
    ) -> None:
        self._folder = folder
        self._store = store
        self._live = live
        self.journal_path = os.path.join(folder, JOURNAL)

    def sync(self, *, wait_seconds: float = 0.0) -> int:
        """Bring the files up to the store; tells how many entries were added.

        A file that cannot be written never fails the operation that was committed: the next one catches up.
        """
        try:
            # A lock of its own for each call: threads that share one would not keep each other out.
            lock = FairLock(os.path.join(self._folder, "mirror.lock"))
        except OSError:
            return 0
        try:
            return self._sync_under(lock, wait_seconds)
        finally:
            lock.close()

    def _sync_under(self, lock: FairLock, wait_seconds: float) -> int:
        added = 0
        give_up_at = time.monotonic() + max(wait_seconds, _LONGEST_SECONDS)
        try:
            while lock.acquire(wait_seconds):
                try:
                    position, new = self._append_new(give_up_at)
                    added += new
                    for noun in self._live:
                        if self._is_behind(noun, position):
                            self._write_live(noun, position)
                finally:
                    lock.release()
                if time.monotonic() >= give_up_at:
                    break
                last = self._store.last_entry()
                if last is None or last.position <= self.last_position():
                    break
        except (OSError, StoreError):
            return added
        return added

    def _append_new(self, give_up_at: float) -> tuple[int, int]:
        """Copy what is missing; tells the last position in the file now, and how many entries were added."""
        position = self._mend_tail()
        added = 0
        file = os.open(self.journal_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            while page := self._store.entries(position, 500):
                text = "".join(as_line(entry) + "\n" for entry in page)
                _write_all(file, text.encode("utf-8"))
                position = page[-1].position
                added += len(page)
                if time.monotonic() >= give_up_at:
                    break
        finally:
            os.close(file)
        return position, added

    def _mend_tail(self) -> int:
        """The last whole entry in the file; a torn line behind it is cut off."""
        try:
            size = os.path.getsize(self.journal_path)
        except OSError:
            return 0
        entry, end = read_tail(self.journal_path)
        if end < size:
            os.truncate(self.journal_path, end)
        return entry.position if entry else 0

    def last_position(self) -> int:
        """The position of the last whole line."""
        entry, _ = read_tail(self.journal_path)
        return entry.position if entry else 0

    def _is_behind(self, noun: str, position: int) -> bool:
        """Whether something has happened since that a file must show; perhaps its last writer died."""
        written_at = self._written_at(noun)
        if written_at == position:
            return False
        if written_at < 0 or position - written_at >= _LOOK_BACK:
            return True
        since = self._store.entries(written_at, _LOOK_BACK)
        return any(entry.kind.startswith(LIVE[noun]) for entry in since)

    def _written_at(self, noun: str) -> int:
        """The position that a file was written at; -1 when it is not there or unreadable."""
        try:
            with open(os.path.join(self._folder, f"{noun}.json"), "rb") as file:
                head = file.read(64)
            return int(head.partition(b'"position": ')[2].partition(b",")[0])
        except (OSError, ValueError):
            return -1

    def _write_live(self, noun: str, position: int) -> None:
        """All that is live in one file; very large ones are not rewritten for every single change."""
        path = os.path.join(self._folder, f"{noun}.json")
        try:
            old = os.stat(path)
            if old.st_size > _SMALL and time.time() - old.st_mtime < old.st_size / _BYTES_A_SECOND:
                return
        except OSError:
            pass
        # A line for each, so that `diff` and `grep` work; indented all through, it would take twice as long.
        lines = ",\n".join(json.dumps(item, ensure_ascii=False) for item in self._live[noun]())
        text = f'{{"position": {position}, "{noun}": [\n{lines}\n]}}'
        scratch = f"{path}.new"  # always this one: we have the lock, and a dead writer's is overwritten
        with open(scratch, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        os.replace(scratch, path)


def read_tail(path: str) -> tuple[Entry | None, int]:
    """The last whole entry of a journal file, and the offset at which whole lines end."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            reach = _TAIL
            while True:
                start = max(size - reach, 0)
                file.seek(start)
                raw = file.read(size - start)
                entry, end = _last_whole(raw)
                if entry is not None or start == 0:
                    return entry, start + end
                reach *= 8
    except OSError:
        return None, 0


def _last_whole(raw: bytes) -> tuple[Entry | None, int]:
    end = raw.rfind(b"\n") + 1
    while end > 0:
        start = raw.rfind(b"\n", 0, end - 1) + 1
        try:
            return from_line(raw[start : end - 1].decode("utf-8")), end
        except ValueError:
            end = start
    return None, 0


def read_journal(path: str) -> Iterator[Entry]:
    """All entries of a journal file.

    Raises:
        ValueError: a line is not one of ours (a torn last line is passed over).
    """
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                if line.endswith("\n"):
                    yield from_line(line)
    except FileNotFoundError:
        return


def set_aside(path: str) -> str:
    """Keep a file under another name, and tell which."""
    stem, ending = os.path.splitext(path)
    stamp = rfc3339(time.time_ns() // 1_000_000).replace(":", "").replace(".", "-")
    kept = f"{stem}.before-{stamp}{ending}"
    os.replace(path, kept)
    return kept


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]
