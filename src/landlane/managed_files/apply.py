"""Change files of users: plan the changes, keep backups and a record, then write; and undo it.

Nothing is written before every file was found writable and every old content is saved. A failure half way
restores what was changed; a crash leaves the record, from which `init` or `init --undo` goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any

from landlane.clients.setup_files import JSON, NEW, WHOLE, FileForm
from landlane.errors import LandlaneError
from landlane.managed_files.formats import NotMergeable, insert_content, remove_content
from landlane.managed_files.manifest import FileRecord, InitRecord, load_backup, save_backup, save_record
from landlane.managed_files.user_files import (
    check_writable,
    fingerprint,
    missing_folders,
    mode_of,
    read_bytes,
    remove_file,
    remove_folders,
    remove_scratch,
    write_bytes,
)
from landlane.merge.json_source import NotJson, find_extras
from landlane.values import replace, value

OnStep = Callable[[str], None]


class ChangeVerb(StrEnum):
    """What is done with a file."""

    CREATE = "create"
    CHANGE = "change"
    REMOVE = "remove"
    RESTORE = "restore"


CREATE, CHANGE, REMOVE, RESTORE = ChangeVerb


@value
class FileRequest:
    """A file and what must be in it. The content of a private one is valid on this machine only."""

    path: str
    root: str
    form: FileForm
    content: Any
    why: str
    is_private: bool = False
    reader: str = ""  # the client that reads it
    accepted: tuple[str, ...] = ()  # what its reader accepts beyond plain JSON


@value
class FileChange:
    """One file to write or remove: its content before and after; `original` is what undo would restore."""

    verb: ChangeVerb
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
    """The files to change, and those that are left alone."""

    steps: tuple[FileChange, ...] = ()
    skipped: tuple[SkippedFile, ...] = ()


def _make_plan(planned: Iterable[tuple[str, Callable[[], FileChange | None]]]) -> ChangePlan:
    steps: list[FileChange] = []
    skipped: list[SkippedFile] = []
    for path, plan_file in planned:
        try:
            step = plan_file()
        except NotMergeable as error:
            skipped.append(SkippedFile(path=path, why=str(error)))
        except LandlaneError as error:
            skipped.append(SkippedFile(path=path, why=error.message.removeprefix(f"{path}: ")))
        else:
            steps += [step] if step else []
    return ChangePlan(steps=tuple(steps), skipped=tuple(skipped))


def plan_changes(state: str, record: InitRecord, requests: Sequence[FileRequest]) -> ChangePlan:
    """Plan what is missing in these files."""
    return _make_plan(
        (request.path, lambda request=request: _plan_change(state, record, request)) for request in requests
    )


def _plan_change(state: str, record: InitRecord, request: FileRequest) -> FileChange | None:
    before = read_bytes(request.path)
    if problem := why_unreadable(request, before):
        raise NotMergeable(problem)
    after = insert_content(request.form, request.content, before)
    if after == before:
        return None
    known = record.entry_of(request.path)
    if known is not None and before is not None:
        entry, original = _extend_entry(state, known, request, before, after)
    else:
        folders = tuple(dict.fromkeys((*missing_folders(request.path), *(known.folders if known else ()))))
        entry, original = _new_entry(request, before, after, mode_of(request.path), folders), before
    return FileChange(
        verb=CREATE if before is None else CHANGE,
        path=request.path,
        why=request.why,
        before=before,
        after=after,
        entry=entry,
        original=original,
    )


def why_unreadable(request: FileRequest, content: bytes | None) -> str:
    """Return why the client itself cannot read its file, so that what we write there has no effect."""
    if request.form != JSON or not request.reader or content is None:
        return ""
    try:
        extras = find_extras(content.decode("utf-8"))
    except (UnicodeDecodeError, NotJson):
        return ""  # it is not JSON at all, which is reported elsewhere
    for what, line in extras.items():
        if what not in request.accepted:
            return f"{request.reader} cannot read it: {what} on line {line}"
    return ""


def _new_entry(
    request: FileRequest, original: bytes | None, after: bytes, mode: int, folders: tuple[str, ...]
) -> FileRecord:
    return FileRecord(
        path=request.path,
        root=request.root,
        existed=original is not None,
        mode=mode,
        before=fingerprint(original),
        after=(fingerprint(after),),
        form=request.form,
        content=request.content,
        folders=folders,
    )


def _extend_entry(
    state: str, known: FileRecord, request: FileRequest, before: bytes, after: bytes
) -> tuple[FileRecord, bytes | None]:
    """Return the entry of a file that we wrote before: undo restores what was there before the first time."""
    if fingerprint(before) in (*known.after, known.before):
        contents = (*known.after, fingerprint(after))
        return replace(known, after=contents, content=request.content, form=request.form), None
    # It was changed since. What undo would make of it now is the new original.
    original = remove_content(known.form, known.content, _original(state, known), before)
    return _new_entry(request, original, after, mode_of(request.path), known.folders), original


def carry_out(
    state: str,
    record: InitRecord,
    plan: ChangePlan,
    clients: Sequence[str] = (),
    on_step: OnStep = lambda _: None,
) -> InitRecord:
    """Write all planned files or none, and return the new record.

    Raises:
        LandlaneError: a file cannot be written; everything is as it was.
    """
    for step in plan.steps:
        check_writable(step.path)
    written = {step.path: step.entry for step in plan.steps}
    kept = tuple(entry for entry in record.entries if entry.path not in written)
    named = tuple(dict.fromkeys((*record.clients, *clients)))
    new = InitRecord(entries=(*kept, *written.values()), clients=named)
    if new == record and not plan.steps:
        return record
    for step in plan.steps:
        if step.original is not None:
            save_backup(state, step.original)
    save_record(state, new)
    on_step("recorded")
    done: list[FileChange] = []
    try:
        for step in plan.steps:
            _check_unchanged(step)
            done.append(step)
            write_bytes(step.path, step.after or b"")
            on_step(step.path)
    except BaseException as error:
        _roll_back(state, record, done, error)
        raise
    return new


def _roll_back(state: str, record: InitRecord, done: Sequence[FileChange], error: BaseException) -> None:
    """Restore what was changed so far. New files are removed first, which makes room on a full disk.

    Raises:
        LandlaneError: that failed, too; the new record stays, so that it can be undone later.
    """
    stuck: list[str] = []
    for step in sorted(done, key=lambda step: step.before is not None):
        try:
            _revert(step)
        except LandlaneError:
            stuck.append(step.path)
    if stuck:
        raise LandlaneError(
            f"{error}; and these could not be restored: {', '.join(stuck)}",
            code="INIT_HALF_DONE",
            hint="free some disk space, then: landlane init --undo",
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


def _revert(step: FileChange) -> None:
    if step.before is None:
        remove_file(step.path)
        remove_folders(step.entry.folders)
    elif read_bytes(step.path) != step.before:  # the write that failed has changed nothing
        write_bytes(step.path, step.before)


def plan_undo(state: str, record: InitRecord) -> ChangePlan:
    """Plan how every file is restored: as it was, or without our content if it was changed since."""
    return _make_plan(
        (entry.path, lambda entry=entry: _plan_restore(state, entry)) for entry in reversed(record.entries)
    )


def _plan_restore(state: str, entry: FileRecord) -> FileChange | None:
    content = read_bytes(entry.path)
    now = fingerprint(content)
    if content is None or (entry.existed and now == entry.before):
        return None
    original = _original(state, entry)
    if now in entry.after:
        verb, why = (RESTORE, "as it was before init") if entry.existed else (REMOVE, "as init wrote it")
        return FileChange(verb=verb, path=entry.path, why=why, before=content, after=original, entry=entry)
    rest = remove_content(entry.form, entry.content, original, content)
    if rest == content:
        return None
    return FileChange(
        verb=REMOVE if rest is None else CHANGE,
        path=entry.path,
        why="you changed it since; only what init added is removed",
        before=content,
        after=rest,
        entry=entry,
        is_exact=False,
    )


def removal(request: FileRequest, content: bytes) -> FileChange:
    """Return the step that removes a file which is known to be as we wrote it."""
    entry = _new_entry(request, None, content, -1, ())
    return FileChange(
        verb=REMOVE, path=request.path, why=request.why, before=content, after=None, entry=entry
    )


def carry_out_undo(
    state: str, record: InitRecord, plan: ChangePlan, on_step: OnStep = lambda _: None
) -> None:
    """Restore every file, then delete the record; if it is interrupted, it can be repeated.

    Raises:
        LandlaneError: a file cannot be written; what was restored until then stays so.
    """
    for step in plan.steps:
        check_writable(step.path)
    for step in plan.steps:
        _check_unchanged(step)
        if step.after is None:
            remove_file(step.path)
        else:
            write_bytes(step.path, step.after, step.entry.mode if step.verb == RESTORE else -1)
        on_step(step.path)
    for entry in record.entries:
        remove_scratch(entry.path)
        if not entry.existed:
            remove_folders(entry.folders)
    skipped = {file.path for file in plan.skipped}
    rest = tuple(one for one in record.entries if one.path in skipped and one.form not in (NEW, WHOLE))
    is_exact = all(step.is_exact for step in plan.steps)
    save_record(state, InitRecord(entries=rest), keeps_backups=not is_exact)


def _original(state: str, entry: FileRecord) -> bytes | None:
    return load_backup(state, entry.before) if entry.existed else None
