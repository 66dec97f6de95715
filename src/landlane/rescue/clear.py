"""Taking out of a checkout what a rescue of it holds, and nothing else: what it does not hold stays."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat

from landlane.git.run import git_output, run_in
from landlane.git.untrusted_checkout import home_git_output
from landlane.git.worktree_reader import TreeReader
from landlane.git.worktree_writer import TreeWriter
from landlane.rescue.find_unsaved import LINK, MODE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from landlane.git.discovery import Checkout
    from landlane.rescue.refs import Rescue

_CHUNK = 1 << 20
_GONE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


def clear_rescued(home: str, checkout: Checkout, rescue: Rescue) -> None:
    """Put what a rescue holds back to HEAD, the index with it; submodules and what is ignored stay.

    A file that was written since, a checkout within this one, and whatever else is not in the rescue byte
    for byte is left as it is: `git clean` would not ask.

    Raises:
        RepositoryError: git refuses.
    """
    outer = json.loads(home_git_output(home, "cat-file", "blob", f"{rescue.commit}:contents.json"))[
        "sections"
    ][0]
    blobs = _blobs_of(home, rescue.commit)
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
        # Before the files are back only what stands in their place goes: somebody may stand in the others.
        _remove_empty(writer, {folder for folder in folders if _is_in_the_way(folder, set(wanted))})
        missing = [path for path in dict.fromkeys(wanted) if tree.look(path) is None]
        _write(checkout, missing)
        _remove_empty(writer, folders)
    run_in(checkout, "update-index", "-q", "--refresh", variables={"GIT_OPTIONAL_LOCKS": "1"})


def _blobs_of(home: str, commit: str) -> dict[str, str]:
    """Every file of a rescue's own tree, with the name of its bytes."""
    rows = home_git_output(home, "ls-tree", "-r", "-z", commit).split("\0")
    return {name: head.split(" ")[2] for head, _, name in (row.partition("\t") for row in rows if row)}


def _is_as_saved(tree: TreeReader, entry: dict[str, Any], blobs: dict[str, str]) -> bool:
    """Whether a file or link has the very bytes that were saved of it."""
    oid = blobs.get(entry["at"], "")
    if entry["type"] == LINK:
        target = tree.read_link(entry["path"])
        return target is not None and _name(oid, len(target), [target]) == oid
    handle = tree.open(entry["path"])
    if handle is None:
        return False
    with open(handle, "rb") as file:
        seen = os.fstat(file.fileno())
        if not stat.S_ISREG(seen.st_mode):
            return False
        return _name(oid, seen.st_size, iter(lambda: file.read(_CHUNK), b"")) == oid


def _name(oid: str, size: int, chunks: Iterable[bytes]) -> str:
    """The name that git gives to these bytes, by the hash that the other name is made with."""
    digest = hashlib.sha256() if len(oid) == 64 else hashlib.sha1(usedforsecurity=False)
    digest.update(f"blob {size}\0".encode())
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def _is_in_the_way(folder: str, wanted: set[str]) -> bool:
    while folder and folder not in wanted:
        folder = os.path.dirname(folder)
    return bool(folder)


def _remove_empty(writer: TreeWriter, folders: set[str]) -> None:
    for folder in sorted(folders, reverse=True):
        with contextlib.suppress(OSError):
            writer.remove_empty(folder)


def _write(checkout: Checkout, paths: list[str]) -> None:
    """Write tracked files that are not there; without force, so that git overwrites nothing."""
    if paths:
        asked = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
        how = ("--quiet", "--index", "--ignore-skip-worktree-bits", "-z", "--stdin")
        git_output(checkout, "checkout-index", *how, stdin=asked)
