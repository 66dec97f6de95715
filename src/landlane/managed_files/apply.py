"""Installing into files of others: a plan, then backups and a record, then the changes; and the way back.

Nothing is written before every file was found writable and every old content is kept. A failure half way puts
back what was done; a crash leaves the record, and `init` or `init --undo` goes on from there.
"""

from __future__ import annotations

from landlane.errors import LandlaneError
from landlane.managed_files.formats import JSON, NEW, OUTSIDE, WHOLE, NotMergeable, bring_in, take_back
from landlane.managed_files.manifest import FileRecord, InitRecord, backup, keep_backup, save_record
from landlane.managed_files.user_files import (
    check_writable,
    fingerprint,
    forget_scratch,
    missing_folders,
    mode_of,
    read_bytes,
    remove_empty,
    remove_file,
    write_bytes,
)
from landlane.merge.json_source import NotJson, find_extras
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    OnStep = Callable[[str], None]

CREATE, CHANGE, REMOVE, RESTORE = "create", "change", "remove", "restore"


@value
class FileRequest:
    """A file and what has to be in it. A private one holds what is true on this machine only."""

    path: str
    root: str
    form: str
    content: Any
    why: str
    is_private: bool = False
    reader: str = ""  # who reads it
    accepted: tuple[str, ...] = ()  # what its reader accepts beyond plain JSON


@value
class FileChange:
    """One file to write or remove: its content now and then; `original` is what undoing would bring back."""

    verb: str
    path: str
    why: str
    before: bytes | None
    after: bytes | None
    entry: FileRecord
    original: bytes | None = None
    is_exact: bool = True


@value
class SkippedFile:
    """A file that is left alone, and why."""

    path: str
    why: str


@value
class ChangePlan:
    """What has to be done to files, and what is left alone."""

    steps: tuple[FileChange, ...] = ()
    skipped: tuple[SkippedFile, ...] = ()


# ------------------------------------------------------------------------------------------------ the way in


def plan_changes(state: str, record: InitRecord, wishes: Sequence[FileRequest]) -> ChangePlan:
    """What is missing in these files."""
    steps: list[FileChange] = []
    skipped: list[SkippedFile] = []
    for wish in wishes:
        try:
            step = _plan(state, record, wish)
        except NotMergeable as error:
            skipped.append(SkippedFile(path=wish.path, why=str(error)))
        except LandlaneError as error:
            skipped.append(SkippedFile(path=wish.path, why=error.message.removeprefix(f"{wish.path}: ")))
        else:
            steps += [step] if step else []
    return ChangePlan(steps=tuple(steps), skipped=tuple(skipped))


def _plan(state: str, record: InitRecord, wish: FileRequest) -> FileChange | None:
    before = read_bytes(wish.path)
    unread = what_is_unread(wish, before)
    if unread:
        raise NotMergeable(unread)
    after = bring_in(wish.form, wish.content, before)
    if after == before:
        return None
    known = record.entry_of(wish.path)
    if known is not None and before is not None:
        entry, original = _go_on(state, known, wish, before, after)
    else:
        folders = tuple(dict.fromkeys((*missing_folders(wish.path), *(known.folders if known else ()))))
        entry = _new_entry(wish, before, after, mode_of(wish.path), folders)
        original = before
    verb = CREATE if before is None else CHANGE
    return FileChange(
        verb=verb, path=wish.path, why=wish.why, before=before, after=after, entry=entry, original=original
    )


def what_is_unread(wish: FileRequest, there: bytes | None) -> str:
    """Why the client itself cannot read its file, so that whatever we write there has no effect."""
    if wish.form != JSON or not wish.reader or there is None:
        return ""
    try:
        extras = find_extras(there.decode("utf-8"))
    except (UnicodeDecodeError, NotJson):
        return ""  # nobody can: that is told elsewhere
    for what, line in extras.items():
        if what not in wish.accepted:
            return f"{wish.reader} itself cannot read it: {what} on line {line}; mend that first"
    return ""


def _new_entry(
    wish: FileRequest, original: bytes | None, after: bytes, mode: int, folders: tuple[str, ...]
) -> FileRecord:
    return FileRecord(
        path=wish.path,
        root=wish.root,
        existed=original is not None,
        mode=mode,
        before=fingerprint(original),
        after=(fingerprint(after),),
        form=wish.form,
        content=wish.content,
        folders=folders,
    )


def _go_on(
    state: str, known: FileRecord, wish: FileRequest, before: bytes, after: bytes
) -> tuple[FileRecord, bytes | None]:
    """The entry of a file that we wrote before: undoing brings back what was there before the first time."""
    now = fingerprint(before)
    if now in (*known.after, known.before):
        more = replace(known, after=(*known.after, fingerprint(after)), content=wish.content, form=wish.form)
        return more, None
    # Somebody changed it since. What undoing would make of it now is the new original.
    original = take_back(known.form, known.content, _original(state, known), before)
    return _new_entry(wish, original, after, mode_of(wish.path), known.folders), original


def carry_out(
    state: str,
    record: InitRecord,
    changes: ChangePlan,
    clients: Sequence[str] = (),
    on_step: OnStep = lambda _: None,
) -> InitRecord:
    """Write what was planned, all of it or nothing; tells the record as it is then.

    Raises:
        LandlaneError: a file cannot be written; everything is as it was.
    """
    for step in changes.steps:
        check_writable(step.path)
    written = {step.path: step.entry for step in changes.steps}
    kept = tuple(entry for entry in record.entries if entry.path not in written)
    named = (*record.clients, *(name for name in clients if name not in record.clients))
    new = InitRecord(entries=(*kept, *written.values()), clients=named)
    if new == record and not changes.steps:
        return record
    for step in changes.steps:
        if step.original is not None:
            keep_backup(state, step.original)
    save_record(state, new)
    on_step("recorded")
    done: list[FileChange] = []
    try:
        for step in changes.steps:
            _check_unchanged(step)
            done.append(step)
            write_bytes(step.path, step.after or b"")
            on_step(step.path)
    except BaseException as error:
        _roll_back(state, record, done, error)
        raise
    return new


def _roll_back(state: str, record: InitRecord, done: Sequence[FileChange], error: BaseException) -> None:
    """Put back what was done so far. What was created goes first: it makes room on a full disk.

    Raises:
        LandlaneError: that failed, too; the new record stays, by which it can be undone later.
    """
    stuck: list[str] = []
    for step in sorted(done, key=lambda step: step.before is not None):
        try:
            _put_back(step)
        except LandlaneError:
            stuck.append(step.path)
    if stuck:
        raise LandlaneError(
            f"{error}; and not everything could be put back: {', '.join(stuck)}",
            code="INIT_HALF_DONE",
            hint="make room on the disk, then run `landlane init --undo`",
        ) from error
    save_record(state, record)


def _check_unchanged(step: FileChange) -> None:
    if read_bytes(step.path) != step.before:
        raise LandlaneError(
            f"{step.path} was changed by another program just now",
            code="FILE_CHANGED",
            hint="nothing was changed; try again",
            path=step.path,
        )


def _put_back(step: FileChange) -> None:
    if step.before is None:
        remove_file(step.path)
        remove_empty(list(step.entry.folders))
    elif read_bytes(step.path) != step.before:  # the one that failed is as it was
        write_bytes(step.path, step.before)


# ---------------------------------------------------------------------------------------------- the way back


def plan_undo(state: str, record: InitRecord) -> ChangePlan:
    """What brings every file back: as it was, or without what is ours where somebody changed it since."""
    steps: list[FileChange] = []
    skipped: list[SkippedFile] = []
    for entry in reversed(record.entries):
        try:
            there = read_bytes(entry.path)
            step = _plan_back(state, entry, there) if there is not None else None
        except NotMergeable as error:
            skipped.append(SkippedFile(path=entry.path, why=str(error)))
        except LandlaneError as error:
            skipped.append(SkippedFile(path=entry.path, why=error.message.removeprefix(f"{entry.path}: ")))
        else:
            steps += [step] if step else []
    return ChangePlan(steps=tuple(steps), skipped=tuple(skipped))


def _plan_back(state: str, entry: FileRecord, there: bytes) -> FileChange | None:
    now = fingerprint(there)
    if entry.existed and now == entry.before:
        return None
    original = _original(state, entry)
    if now in entry.after:
        verb, why = (RESTORE, "as it was before init") if entry.existed else (REMOVE, "as init wrote it")
        return FileChange(verb=verb, path=entry.path, why=why, before=there, after=original, entry=entry)
    rest = take_back(entry.form, entry.content, original, there)
    if rest == there:
        return None
    why = "changed since init: only what init put in goes"
    verb = REMOVE if rest is None else CHANGE
    return FileChange(
        verb=verb, path=entry.path, why=why, before=there, after=rest, entry=entry, is_exact=False
    )


def removal(wish: FileRequest, there: bytes) -> FileChange:
    """The step that removes a file which is known to be as we wrote it."""
    entry = _new_entry(wish, None, there, -1, ())
    return FileChange(verb=REMOVE, path=wish.path, why=wish.why, before=there, after=None, entry=entry)


def carry_out_undo(
    state: str, record: InitRecord, changes: ChangePlan, on_step: OnStep = lambda _: None
) -> None:
    """Put every file back, then forget the record; cut off anywhere, it can be done again.

    Raises:
        LandlaneError: a file cannot be written; what was put back until then stays so.
    """
    for step in changes.steps:
        check_writable(step.path)
    for step in changes.steps:
        _check_unchanged(step)
        if step.after is None:
            remove_file(step.path)
        else:
            is_restored = step.verb == RESTORE
            write_bytes(step.path, step.after, step.entry.mode if is_restored else -1)
        on_step(step.path)
    for entry in record.entries:
        forget_scratch(entry.path)
        if not entry.existed:
            remove_empty(list(entry.folders))
    stuck = {left.path for left in changes.skipped}
    rest = tuple(entry for entry in record.entries if entry.path in stuck and entry.form not in (NEW, WHOLE))
    is_exact = all(step.is_exact for step in changes.steps)
    save_record(state, InitRecord(entries=rest), keeps_backups=not is_exact)


def _original(state: str, entry: FileRecord) -> bytes | None:
    return backup(state, entry.before) if entry.existed else None


__all__ = [
    "CHANGE",
    "CREATE",
    "JSON",
    "OUTSIDE",
    "REMOVE",
    "RESTORE",
    "ChangePlan",
    "SkippedFile",
    "FileChange",
    "FileRequest",
]
