"""Read refs from their files: starting git would take longer than a command."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_HEX = frozenset("0123456789abcdef")


def read_refs(common_dir: str, refs: Sequence[str]) -> dict[str, str] | None:
    """Return the commits of these refs, without missing ones; None if only git can read them."""
    if os.path.isdir(os.path.join(common_dir, "reftable")) or not all(_is_plain(ref) for ref in refs):
        return None
    found: dict[str, str] = {}
    missing: list[str] = []
    for ref in refs:
        try:
            text = _read(os.path.join(common_dir, ref))
        except OSError:
            return None  # it exists and cannot be read: git says why
        if text is None:
            missing.append(ref)
        elif is_oid(text.strip()):
            found[ref] = text.strip()
        else:
            return None  # it is symbolic or damaged
    try:
        packed = _packed(common_dir) if missing else {}
    except OSError:
        return None
    return found | {ref: packed[ref] for ref in missing if ref in packed}


def _is_plain(ref: str) -> bool:
    """Return whether a name is a ref's, and does not lead to another file."""
    parts = ref.split("/")
    return parts[0] == "refs" and not any(
        part.startswith(".") or part.endswith(".lock") or not part for part in parts
    )


def refs_below(common_dir: str, folder: str, ending: str) -> dict[str, str] | None:
    """Return the commits of the refs `<folder><name><ending>`; None if only git can read them.

    `folder` may end in the middle of a name, and `name` has no slash.
    """
    parent, _, begin = folder.rpartition("/")
    try:
        names = os.listdir(os.path.join(common_dir, parent))
    except OSError:
        names = []
    loose = [f"{parent}/{name}{ending}" for name in names if name.startswith(begin)]
    try:
        known = _packed(common_dir)
    except OSError:
        return None
    packed = [
        ref
        for ref in known
        if ref.startswith(folder) and ref.endswith(ending) and "/" not in ref[len(folder) : -len(ending)]
    ]
    return read_refs(common_dir, sorted({*loose, *packed}))


def is_oid(text: str) -> bool:
    """Return whether a text is the full id of an object."""
    return len(text) in (40, 64) and _HEX.issuperset(text)


def _packed(common_dir: str) -> dict[str, str]:
    text = _read(os.path.join(common_dir, "packed-refs")) or ""
    lines = (line.partition(" ") for line in text.split("\n") if line and line[0] not in "#^")
    return {ref: oid for oid, _, ref in lines}


def _read(path: str) -> str | None:
    """Return the content of a file; None where there is none.

    Raises:
        OSError: it exists and cannot be read.
    """
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
