"""Remove from a checkout what a rescue of it holds, and nothing else."""

from __future__ import annotations

import contextlib
import json
import os

from landlane.git.run import git_output, run_in
from landlane.git.untrusted_checkout import home_git_output, to_bytes
from landlane.git.worktree_files import TreeReader, TreeWriter
from landlane.rescue.compare_files import blob_id, file_blob_id
from landlane.rescue.find_unsaved import LINK, MODE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.git.discovery import Checkout
    from landlane.rescue.refs import Rescue

_GONE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


def clear_rescued(home: str, checkout: Checkout, rescue: Rescue) -> None:
    """Reset what a rescue holds to HEAD, and the index; submodules and ignored files stay.

    A file that was written since, a checkout within this one, and anything else that is not in the rescue
    byte for byte is left as it is, unlike with `git clean`.

    Raises:
        RepositoryError: git refuses.
    """
    contents = json.loads(home_git_output(home, "cat-file", "blob", f"{rescue.commit}:contents.json"))
    outer = contents["sections"][0]
    blobs = _list_blobs(home, rescue.commit)
    git_output(checkout, "reset", "--quiet")
    tracked = set(git_output(checkout, "ls-files", "-z").split("\0"))
    changed = [entry for entry in outer["files"] if entry["type"] != MODE]
    wanted = [path for path in (*(entry["path"] for entry in changed), *outer["deleted"]) if path in tracked]
    with TreeReader(checkout.root) as tree, TreeWriter(checkout.root) as writer:
        removed = [entry["path"] for entry in changed if _is_as_saved(tree, entry, blobs)]
        for path in removed:
            with contextlib.suppress(*_GONE):
                writer.unlink(path)
        folders = {os.path.dirname(path) for path in removed} | set(outer["empty_folders"])
        # Before the files are back, remove only the folders in their place: others may be in use.
        _remove_empty(writer, {folder for folder in folders if _is_in_the_way(folder, set(wanted))})
        missing = [path for path in dict.fromkeys(wanted) if not tree.exists(path)]
        if missing:  # without force, so that git overwrites nothing
            options = ("--quiet", "--index", "--ignore-skip-worktree-bits", "-z", "--stdin")
            listed = to_bytes("".join(f"{path}\0" for path in missing))
            git_output(checkout, "checkout-index", *options, stdin=listed)
        _remove_empty(writer, folders)
    run_in(checkout, "update-index", "-q", "--refresh", variables={"GIT_OPTIONAL_LOCKS": "1"})


def _list_blobs(home: str, commit: str) -> dict[str, str]:
    """Return every file of a rescue's own tree, with the id of its bytes."""
    rows = home_git_output(home, "ls-tree", "-r", "-z", commit).split("\0")
    return {name: head.split(" ")[2] for head, _, name in (row.partition("\t") for row in rows if row)}


def _is_as_saved(tree: TreeReader, entry: dict[str, Any], blobs: dict[str, str]) -> bool:
    """Return whether a file or link has the bytes that were saved of it."""
    oid = blobs.get(entry["at"], "")
    algorithm = "sha256" if len(oid) == 64 else "sha1"
    if entry["type"] == LINK:
        target = tree.read_link(entry["path"])
        return target is not None and blob_id(algorithm, len(target), [target]) == oid
    return bool(oid) and file_blob_id(tree, entry["path"], algorithm) == oid


def _is_in_the_way(folder: str, wanted: set[str]) -> bool:
    while folder and folder not in wanted:
        folder = os.path.dirname(folder)
    return bool(folder)


def _remove_empty(writer: TreeWriter, folders: set[str]) -> None:
    for folder in sorted(folders, reverse=True):
        with contextlib.suppress(OSError):
            writer.remove_empty(folder)
