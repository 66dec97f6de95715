"""The plain files beside the store: keep them up to date, and detect a store that came from a backup.

`journal.jsonl` grows line by line; `claims.json` and `tasks.json` are rewritten. `journal.store` holds the id
of the store that the journal file was copied from.

Lines are appended after the commit of what they describe, under a separate lock. A process that finds it
taken does nothing, because its holder checks for new entries once more after releasing it. The holder stops
after a while even if others keep writing, and leaves the rest to the next command. A line torn by a crash is
cut off and written again.
"""

from __future__ import annotations

import json
import os
import time

from landlane.app.repository_record import begin_epoch, newest_epoch
from landlane.app.store_place import JOURNAL, STORE_ID_FILE
from landlane.claims.take import list_claims
from landlane.clock import rfc3339
from landlane.errors import StoreCorrupt, StoreError
from landlane.files import open_regular, read_regular, write_atomically
from landlane.store.file_lock import FairLock
from landlane.store.journal_chain import format_line, parse_line
from landlane.store.sqlite.database import translate_os_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from landlane.claims.json_types import ClaimJson
    from landlane.repository import Repository
    from landlane.store.interface import Store
    from landlane.store.journal_chain import JournalEntry
    from landlane.tasks.json_types import TaskJson


def update_files(repo: Repository, wait_seconds: float) -> None:
    """Bring the files up to the state of the store."""
    contents = {"claims": lambda: _live_claims(repo), "tasks": lambda: _open_tasks(repo)}
    added = Mirror(repo.state_folder, repo.store, contents).sync(wait_seconds=wait_seconds)
    if added and repo.settings.journal.git and repo.common_dir:
        from landlane.journal.git_copy import commit_journal  # noqa: PLC0415 - few repositories keep this copy

        commit_journal(repo.home, journal_path(repo))


def journal_path(repo: Repository) -> str:
    """Return where the plain copy of the journal is."""
    return os.path.join(repo.state_folder, JOURNAL)


def _live_claims(repo: Repository) -> list[ClaimJson]:
    from landlane.claims.to_json import claim_json  # noqa: PLC0415 - not every command writes the file

    return [claim_json(claim, repo.store) for claim in list_claims(repo)]


def _open_tasks(repo: Repository) -> list[TaskJson]:
    from landlane.tasks import model, records, to_json  # noqa: PLC0415 - not every command writes the file

    return [to_json.task_json(task, repo.store) for task in records.list_tasks(repo, tuple(model.OPEN))]


def detect_restore(store: Store, folder: str) -> None:
    """Raise the token epoch if the store is older than the journal file: it was restored from a backup."""
    path = os.path.join(folder, JOURNAL)
    tail, _ = read_tail(path)
    if not _is_copy_of(store, folder, path) or tail is None:
        return
    entries = store.entries(tail.position - 1, 1)
    if entries and entries[0].hash == tail.hash:
        return
    # The epoch first: if this process dies in between, the next one detects the restore again.
    try:
        begin_epoch(store, newest_epoch(_readable_entries(path)), "store.restored", {})
        move_aside(path)
    except FileNotFoundError:
        return  # another process was quicker


def _readable_entries(path: str) -> Iterator[JournalEntry]:
    """Yield the entries of a journal file up to the first invalid line."""
    try:
        yield from read_journal(path)
    except ValueError:
        return


def _is_copy_of(store: Store, folder: str, path: str) -> bool:
    """Return whether the journal file is a copy of this store; the file of another store is set aside."""
    store_id = read_store_id(store)
    copied_id = read_copied_store_id(folder)
    if copied_id == store_id:
        return True
    if copied_id and os.path.exists(path):
        move_aside(path)
    write_copied_store_id(folder, store_id)
    return not copied_id


def read_store_id(store: Store) -> str:
    """Return the id of a store."""
    row = store.view(lambda snapshot: snapshot.one("meta_get", key="store_id"))
    return str(row["value"]) if row else ""


def read_copied_store_id(folder: str) -> str:
    """Return the id of the store that the journal file is a copy of; empty if unknown."""
    try:
        return read_regular(os.path.join(folder, STORE_ID_FILE), 1000).decode("ascii", "replace").strip()
    except OSError:
        return ""


def write_copied_store_id(folder: str, store_id: str) -> None:
    """Record which store the journal file is a copy of.

    Raises:
        StoreError: the file cannot be written.
    """
    path = os.path.join(folder, STORE_ID_FILE)
    try:
        write_atomically(path, store_id + "\n")
    except IsADirectoryError as error:
        raise StoreCorrupt(
            f"{path} is a folder", code="STORE_CORRUPT", hint="landlane doctor --fix"
        ) from error
    except OSError as error:
        raise translate_os_error(error, path) from error


# Each live file, and the kinds of entries after which it must be written again.
_TRIGGERS = {
    "claims": ("claim.", "session.", "store.", "repository."),
    "tasks": ("task.", "store.", "repository."),
}
_LOOK_BACK = 500
_TAIL_BYTES = 65_536
_SMALL_BYTES = 32_768
_LONGEST_SECONDS = 0.5  # how long one command copies while others keep writing
_BYTES_PER_SECOND = 100_000  # how fast large live files are rewritten, on average


class Mirror:
    """The files of one repository in its state folder."""

    def __init__(
        self, folder: str, store: Store, live: Mapping[str, Callable[[], Sequence[Mapping[str, Any]]]]
    ) -> None:
        self._folder = folder
        self._store = store
        self._live = live
        self.journal_path = os.path.join(folder, JOURNAL)

    def sync(self, *, wait_seconds: float = 0.0) -> int:
        """Update the files from the store; return how many entries were added.

        A file that cannot be written never fails the operation that was committed: the next one catches up.
        """
        try:
            # A separate lock object for each call, because threads that share one do not exclude each other.
            lock = FairLock(os.path.join(self._folder, "mirror.lock"))
        except OSError:
            return 0
        try:
            return self._sync_with(lock, wait_seconds)
        finally:
            lock.close()

    def _sync_with(self, lock: FairLock, wait_seconds: float) -> int:
        added = 0
        deadline = time.monotonic() + max(wait_seconds, _LONGEST_SECONDS)
        try:
            while lock.acquire(wait_seconds):
                try:
                    position, new = self._append_new(deadline)
                    added += new
                    for noun in self._live:
                        if self._is_behind(noun, position):
                            self._write_live(noun, position)
                finally:
                    lock.release()
                if time.monotonic() >= deadline:
                    break
                last = self._store.last_entry()
                if last is None or last.position <= self.last_position():
                    break
        except (OSError, StoreError):
            return added
        return added

    def _append_new(self, deadline: float) -> tuple[int, int]:
        """Append missing entries; return the last position in the file, and how many were added."""
        position = self._cut_torn_line()
        added = 0
        file = open_regular(self.journal_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            while page := self._store.entries(position, 500):
                text = "".join(format_line(entry) + "\n" for entry in page)
                _write_all(file, text.encode("utf-8"))
                position = page[-1].position
                added += len(page)
                if time.monotonic() >= deadline:
                    break
        finally:
            os.close(file)
        return position, added

    def _cut_torn_line(self) -> int:
        """Cut off an incomplete last line; return the position of the last entry."""
        try:
            size = os.lstat(self.journal_path).st_size
        except OSError:
            return 0
        entry, end = read_tail(self.journal_path)
        if end < size:
            os.truncate(self.journal_path, end)
        return entry.position if entry else 0

    def last_position(self) -> int:
        """Return the position of the last complete line."""
        entry, _ = read_tail(self.journal_path)
        return entry.position if entry else 0

    def _is_behind(self, noun: str, position: int) -> bool:
        """Return whether a live file is out of date; a killed process may not have written it."""
        written_at = self._written_position(noun)
        if written_at == position:
            return False
        if written_at < 0 or position - written_at >= _LOOK_BACK:
            return True
        since = self._store.entries(written_at, _LOOK_BACK)
        return any(entry.kind.startswith(_TRIGGERS[noun]) for entry in since)

    def _written_position(self, noun: str) -> int:
        """Return the journal position in a live file; -1 if the file is missing or unreadable."""
        try:
            head = read_regular(os.path.join(self._folder, f"{noun}.json"), 64)
            return int(head.partition(b'"position": ')[2].partition(b",")[0])
        except (OSError, ValueError):
            return -1

    def _write_live(self, noun: str, position: int) -> None:
        """Write a live file; a very large one is not rewritten for every change."""
        path = os.path.join(self._folder, f"{noun}.json")
        try:
            old = os.stat(path)
            if old.st_size > _SMALL_BYTES and time.time() - old.st_mtime < old.st_size / _BYTES_PER_SECOND:
                return
        except OSError:
            pass
        # One line per item, so that `diff` and `grep` work; indenting everything takes twice as long.
        lines = ",\n".join(json.dumps(item, ensure_ascii=False) for item in self._live[noun]())
        text = f'{{"position": {position}, "{noun}": [\n{lines}\n]}}'
        write_atomically(path, text + "\n")


def read_tail(path: str) -> tuple[JournalEntry | None, int]:
    """Return the last complete entry of a journal file, and the offset of its end."""
    try:
        with open(path, "rb", opener=open_regular) as file:
            size = file.seek(0, os.SEEK_END)
            length = _TAIL_BYTES
            while True:
                start = max(size - length, 0)
                file.seek(start)
                entry, end = _last_full_entry(file.read(size - start))
                if entry is not None or start == 0:
                    return entry, start + end
                length *= 8
    except OSError:
        return None, 0


def _last_full_entry(raw: bytes) -> tuple[JournalEntry | None, int]:
    end = raw.rfind(b"\n") + 1
    while end > 0:
        start = raw.rfind(b"\n", 0, end - 1) + 1
        try:
            return parse_line(raw[start : end - 1].decode("utf-8")), end
        except ValueError:
            end = start
    return None, 0


def read_journal(path: str) -> Iterator[JournalEntry]:
    """Yield all entries of a journal file.

    Raises:
        ValueError: a line is not a journal entry; a torn last line is skipped.
    """
    try:
        with open(path, encoding="utf-8", opener=open_regular) as file:
            for line in file:
                if line.endswith("\n"):
                    yield parse_line(line)
    except FileNotFoundError:
        return
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error


def move_aside(path: str) -> str:
    """Rename a file to a name with the current time, and return the new path."""
    moved = name_aside(path)
    os.replace(path, moved)
    return moved


def name_aside(path: str) -> str:
    """Return a name with the current time, for what is kept when a file is replaced."""
    stem, ending = os.path.splitext(path)
    stamp = rfc3339(time.time_ns() // 1_000_000).replace(":", "").replace(".", "-")
    return f"{stem}.before-{stamp}{ending}"


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]
