"""Return a change in a checkout as the end of the work: as a commit, a patch or files."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from landlane.clients.as_worker.collect_changes import commit_rest, copy_changed, patch_since
from landlane.protocol.worker.fields import COMPLETE, MOST_LINE_BYTES, TABLE
from landlane.protocol.worker.messages import WorkComplete
from landlane.worker import Failure, Work

MOST_SUMMARY = 16_000
_LONGEST_TITLE = 200
_BESIDE_PATCH = 400_000  # bytes of a line that everything but the patch may take


def hand_back_commit(work: Work, base: str, summary: str, is_stopped: Callable[[], bool]) -> WorkComplete:
    """Commit what is uncommitted, and return the end of the work with that commit.

    Raises:
        Failure: the worker was stopped meanwhile.
        RepositoryError: git or one of its hooks refuses.
    """
    assignment = work.assignment
    message = " ".join(assignment.title.split())[:_LONGEST_TITLE] or assignment.task
    head = commit_rest(assignment.folder, f"{message}\n")
    if is_stopped():
        raise Failure("stopped by SIGTERM", code="stopped")
    return work.complete(summary, commit=head if head and head != base else None)


def hand_back_patch(work: Work, base: str, summary: str) -> WorkComplete:
    """Return the end of the work with everything that differs from the base: as a patch, or as files.

    Raises:
        Failure: the change fits neither.
        RepositoryError: git refuses.
    """
    assignment = work.assignment
    patch = patch_since(assignment.folder, base)
    if not patch.changed and not patch.deleted:
        return work.complete(summary)
    if patch.text is not None and _fits(patch.text):
        return work.complete(summary, patch=patch.text)
    if patch.deleted or not assignment.scratch:
        raise Failure(
            "the change is too large for a patch, or is not text, and cannot be returned as files: some are "
            "deleted, or there is no scratch folder",
            retry=False,
        )
    copy_changed(assignment.folder, assignment.scratch, patch.changed)
    return work.complete(summary, files=patch.changed)


def hand_back_files(work: Work, base: str, summary: str, ignored: Sequence[str]) -> WorkComplete:
    """Return the end of the work with the changed files and these ignored ones; deletions need a patch.

    Raises:
        Failure: the change fits neither.
        RepositoryError: git refuses.
    """
    assignment = work.assignment
    patch = patch_since(assignment.folder, base)
    if patch.deleted or not assignment.scratch:
        return hand_back_patch(work, base, summary)
    files = (*patch.changed, *ignored)
    if not files:
        return work.complete(summary)
    copy_changed(assignment.folder, assignment.scratch, files)
    return work.complete(summary, files=files)


def _fits(patch: str) -> bool:
    """Return whether a patch fits into one line of the protocol."""
    if len(patch) > TABLE[COMPLETE]["patch"].most:
        return False
    return len(json.dumps(patch, ensure_ascii=False).encode()) <= MOST_LINE_BYTES - _BESIDE_PATCH
