"""Setting up the index of a lens from the checkout's own, so that what was not touched need not be read."""

from __future__ import annotations

import contextlib
import os
import shutil

from landlane.errors import RepositoryError
from landlane.files import write_whole
from landlane.git.untrusted_checkout import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.git.private_dir.cached import Lens

# Stronger than any attribute in the checkout: every file counts as the bytes that it is.
_RAW = b"* -text -filter -ident -working-tree-encoding !eol -crlf\n"


def begin_index(lens: Lens) -> list[str]:
    """Set up the index from the checkout's own, and tell the paths that must be looked at anew.

    The checkout's index knows which files were not touched; those need not be read. It names what git
    would store, however: where a filter or a line end makes that differ from the bytes on the disk, the
    bytes are taken.
    """
    attributes = os.path.join(lens.folder, "info", "attributes")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(attributes)
    try:
        anew = _copy_index(lens)
    except RepositoryError:
        lens.remove_index()
        anew = []
    write_whole(attributes, _RAW)
    lens.git_output("update-index", "--index-version", "4", "--force-untracked-cache")
    lens.note(is_begun=True, named=[], tree="", head="")
    return anew


def _copy_index(lens: Lens) -> list[str]:
    git_dir = lens.place.git_dir
    lens.remove_index()
    for name in ("index", *(one for one in os.listdir(git_dir) if one.startswith("sharedindex."))):
        source = os.path.join(git_dir, name)
        if os.path.islink(source) or not os.path.isfile(source):
            continue
        # With its time: by it git knows which entries are too young to be trusted.
        shutil.copy2(source, os.path.join(lens.folder, name))
    if not os.path.exists(os.path.join(lens.folder, "index")):
        return []
    lens.git_output("update-index", "--no-split-index")
    entries = [row for row in lens.git_output("ls-files", "-v", "--stage", "-z").split("\0") if row]
    flagged: list[str] = []
    anew: dict[str, None] = {}
    tracked: list[tuple[str, str]] = []
    for row in entries:
        head, _, path = row.partition("\t")
        tag, mode, oid, stage = head.split(" ")
        if tag.islower() or tag == "S":
            flagged.append(path)
        if stage != "0":
            anew[path] = None
        elif mode.startswith("100"):
            tracked.append((path, oid))
    if flagged:  # what somebody told git not to look at is looked at all the same
        for option in ("--no-assume-unchanged", "--no-skip-worktree"):
            lens.git_output("update-index", option, "-z", "--stdin", stdin=_listed(flagged))
    anew |= dict.fromkeys(_converted(lens, tracked))
    if anew:
        lens.git_output("update-index", "--force-remove", "-z", "--stdin", stdin=_listed(list(anew)))
    return list(anew)


def _converted(lens: Lens, tracked: Sequence[tuple[str, str]]) -> list[str]:
    """The files whose bytes on the disk are others than those that git has of them."""
    asked = "".join(f"{oid}\n" for _, oid in tracked).encode()
    form = "--batch-check=%(objectsize)"
    sizes = lens.git_output("cat-file", form, "--buffer", stdin=asked).splitlines() if tracked else []
    found: list[str] = []
    has_attributes = os.path.exists(os.path.join(lens.place.git_dir, "info", "attributes"))
    for (path, _), size in zip(tracked, sizes, strict=True):
        has_attributes |= path.endswith(".gitattributes")
        with contextlib.suppress(OSError):
            if str(os.lstat(os.path.join(lens.place.root, path)).st_size) != size:
                found.append(path)
    if has_attributes:
        listed = _listed([path for path, _ in tracked])
        words = ("check-attr", "-z", "--stdin", "filter", "working-tree-encoding", "ident")
        fields = lens.git_output(*words, stdin=listed).split("\0")
        for path, text in zip(fields[0::3], fields[2::3], strict=False):
            if text not in ("unspecified", "unset"):
                found.append(path)
    return found


def _listed(paths: Sequence[str]) -> bytes:
    return b"".join(to_bytes(path) + b"\0" for path in paths)
