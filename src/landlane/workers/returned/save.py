"""Saving what a worker returned and nobody could take in, such as when the store stayed away."""

from __future__ import annotations

import os
import stat

from landlane.git.worktree_files import TreeReader, TreeWriter, is_inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.protocol.worker.messages import WorkComplete
    from landlane.tasks.model import Task

FOLDER = "returned"  # in the state; nothing removes it but a person
_PATCH, _FILES = "change.patch", "files"
_PIECE = 1 << 20


def save_returned(state: str, task: Task, said: WorkComplete, scratch: str) -> str:
    """Save a patch or files that lie in a scratch; tells the folder, or nothing when nothing was returned.

    Raises:
        OSError: they cannot be written.
        RepositoryError: they cannot be read.
    """
    if not said.patch and not said.files:
        return ""
    folder = os.path.join(state, FOLDER, f"{task.id}-{task.attempt}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with TreeWriter(folder) as writer:
        if said.patch:
            writer.replace(_PATCH, iter([said.patch.encode("utf-8", "surrogateescape")]), 0o600)
        with TreeReader(scratch) as reader:
            for path in filter(is_inside, sorted(set(said.files or ()))):
                _copy(path, reader, writer)
    return folder


def _copy(path: str, reader: TreeReader, writer: TreeWriter) -> None:
    place = f"{_FILES}/{path}"
    handle = reader.open(path)
    if handle is None:
        target = reader.read_link(path)
        if target is not None:  # otherwise it said that it is there, and it is not
            writer.link(place, target)
        return
    with open(handle, "rb") as file:
        seen = os.fstat(handle).st_mode
        if not stat.S_ISREG(seen):
            return
        mode = 0o700 if seen & 0o100 else 0o600
        writer.replace(place, iter(lambda: file.read(_PIECE), b""), mode)
