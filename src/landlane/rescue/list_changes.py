"""List what a rescue would change: every file, compared with the commit that the checkout was on."""

from __future__ import annotations

import json
import os
import tempfile
from enum import StrEnum

from landlane.git.untrusted_checkout import home_git_output
from landlane.rescue.find_unsaved import FILE, LINK
from landlane.rescue.restore_checkout import RescueReader
from landlane.text import path_text
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.rescue.refs import Rescue


class RescuedChangeKind(StrEnum):
    """How a rescued file differs from the commit."""

    CHANGED = "changed"
    NEW = "new"
    DELETED = "deleted"


_KINDS = {"A": RescuedChangeKind.NEW, "D": RescuedChangeKind.DELETED}


@value
class RescuedChange:
    """One file of a rescue; the numbers of lines are None for a binary file."""

    path: str
    kind: RescuedChangeKind
    added: int | None
    removed: int | None


def list_rescued_changes(home: str, rescue: Rescue) -> list[RescuedChange]:
    """Return the files of a rescue that differ from its commit, without those of submodules.

    Raises:
        RepositoryError: git cannot read the rescue.
    """
    with RescueReader(home, rescue.commit) as reader:
        section = json.loads(reader.read_all("contents.json"))["sections"][0]
    base = rescue.head or home_git_output(home, "hash-object", "-t", "tree", "--stdin", stdin=b"").strip()
    blobs = _read_blobs(home, rescue.commit)
    with tempfile.TemporaryDirectory() as folder:
        index = os.path.join(folder, "index")
        home_git_output(home, "read-tree", base, GIT_INDEX_FILE=index)
        lines = _index_lines(section, blobs, "0" * len(rescue.commit))
        home_git_output(home, "update-index", "-z", "--index-info", stdin=lines, GIT_INDEX_FILE=index)
        words = ("diff-index", "--cached", "-z", "--no-renames", base)
        statuses = home_git_output(home, *words, "--name-status", GIT_INDEX_FILE=index).split("\0")
        counts = home_git_output(home, *words, "--numstat", GIT_INDEX_FILE=index).split("\0")
    kinds = dict(zip(statuses[1::2], statuses[::2], strict=False))
    return [_change(line, kinds) for line in counts if line]


def _read_blobs(home: str, commit: str) -> dict[str, str]:
    """Return the object of each numbered file in the rescue's own tree."""
    listed = home_git_output(home, "ls-tree", "-r", "-z", commit, "files").split("\0")
    return {name: head.split(" ")[2] for head, _, name in (line.partition("\t") for line in listed) if name}


def _index_lines(section: dict[str, Any], blobs: dict[str, str], zero: str) -> bytes:
    deleted = [f"0 {zero}\t{path}" for path in section["deleted"]]
    saved = [
        f"{_mode(entry)} {blobs[entry['at']]}\t{entry['path']}"
        for entry in section["files"]
        if entry["type"] in (FILE, LINK) and entry["at"] in blobs
    ]
    return "".join(f"{line}\0" for line in (*deleted, *saved)).encode("utf-8", "surrogateescape")


def _mode(entry: dict[str, Any]) -> str:
    """Return the mode that git has for a file: a link, an executable or a plain file."""
    if entry["type"] == LINK:
        return "120000"
    return "100755" if entry["mode"] & 0o100 else "100644"


def _change(line: str, kinds: dict[str, str]) -> RescuedChange:
    added, removed, path = line.split("\t", 2)
    return RescuedChange(
        path=path_text(path),
        kind=_KINDS.get(kinds.get(path, ""), RescuedChangeKind.CHANGED),
        added=int(added) if added.isdecimal() else None,
        removed=int(removed) if removed.isdecimal() else None,
    )
