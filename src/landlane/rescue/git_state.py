"""What a checkout's own git directory knows and nobody else: an operation half done, and refs of its own."""

from __future__ import annotations

import os
import re

from landlane.git.untrusted_checkout import CLONE, SUBMODULE, quoted_store, read_small, run_home_git
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from landlane.git.private_dir.temporary import Shadow
    from landlane.git.untrusted_checkout import UntrustedCheckout

STASH = "refs/stash"
_LOG = "logs/HEAD"
_NAMES = ("HEAD", "ORIG_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "AUTO_MERGE", "SQUASH_MSG")
_FAMILIES = ("MERGE_", "BISECT_", "NOTES_MERGE_")
_FOLDERS = ("rebase-merge", "rebase-apply", "sequencer", "refs/bisect", "refs/worktree", "refs/rewritten")
_FILES = ("info/sparse-checkout", "config.worktree", _LOG, "logs/refs/stash")
_OID = re.compile(rb"(?<![0-9a-f])(?:[0-9a-f]{64}|[0-9a-f]{40})(?![0-9a-f])")
KEPT_REFS = ("refs/heads", "refs/remotes", "refs/tags")


@value
class GitDirState:
    """The files that matter in a checkout's git directory, the refs that only it has, and what they name."""

    operation: str
    files: tuple[tuple[str, bytes], ...]
    refs: tuple[tuple[str, str], ...]
    mentioned: tuple[str, ...]
    logged: tuple[str, ...]
    stashed: tuple[str, ...]


def is_state_path(path: str) -> bool:
    """Whether a path within a git directory is one that a rescue may bring back."""
    parts = path.split("/")
    if any(part in {"", ".", ".."} for part in parts):
        return False
    is_top = len(parts) == 1 and (path in _NAMES or path.startswith(_FAMILIES))
    return is_top or path in _FILES or path.startswith(tuple(f"{folder}/" for folder in _FOLDERS))


def operation_in_progress(git_dir: str) -> str:
    """The name of the operation that a checkout is in the middle of; empty when there is none."""

    def has(name: str) -> bool:
        return os.path.lexists(os.path.join(git_dir, name))

    if has("rebase-apply"):
        return "am" if has("rebase-apply/applying") else "rebase"
    if has("rebase-merge"):
        return "rebase"
    for marker, name in (
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
        ("sequencer/todo", "cherry-pick"),
        ("BISECT_START", "bisect"),
    ):
        if has(marker):
            return name
    return ""


def read_state(shadow: Shadow) -> GitDirState:
    """Read what a checkout's git directory knows."""
    place = shadow.place
    files = tuple(_state_files(place))
    refs = tuple(sorted(_own_refs(shadow).items())) if place.has_own_objects else ()
    told = [text for path, text in files if path not in {"config.worktree", _LOG}]
    mentioned = {found.decode() for text in told for found in _OID.findall(text)} - {shadow.zero}
    logged = {found.decode() for found in _OID.findall(dict(files).get(_LOG, b""))} - {shadow.zero}
    log = dict(files).get("logs/refs/stash", b"") if place.has_own_objects else b""
    stashed = [line.split(b" ")[1].decode() for line in log.splitlines() if line.count(b" ") > 1]
    if not stashed and STASH in dict(refs):
        stashed = [dict(refs)[STASH]]
    return GitDirState(
        operation=operation_in_progress(place.git_dir),
        files=files,
        refs=refs,
        mentioned=tuple(sorted(mentioned)),
        logged=tuple(sorted(logged - mentioned)),
        stashed=tuple(stashed),
    )


def _state_files(place: UntrustedCheckout) -> Iterator[tuple[str, bytes]]:
    for path in _state_paths(place):
        text = read_small(os.path.join(place.git_dir, path))
        if text is not None:
            yield path, text


def _state_paths(place: UntrustedCheckout) -> Iterator[str]:
    for name in sorted(os.listdir(place.git_dir)):
        if name in _NAMES or name.startswith(_FAMILIES):
            yield name
    for name in _FILES:
        # The stash is at home for all but clones.
        if name != "logs/refs/stash" or place.has_own_objects:
            yield name
    for folder in _FOLDERS:
        for inside, _, names in os.walk(os.path.join(place.git_dir, folder)):
            for name in sorted(names):
                yield os.path.relpath(os.path.join(inside, name), place.git_dir)


def _own_refs(shadow: Shadow) -> dict[str, str]:
    """The refs of a clone or submodule that are not at home, or not there like this."""
    at_home: dict[str, str] = {}
    if shadow.place.kind == CLONE:
        listed = run_home_git(shadow.home, "for-each-ref", "--format=%(objectname) %(refname)").stdout
        at_home = {name: oid for oid, _, name in (line.partition(" ") for line in listed.splitlines())}
    foreign = ("refs/remotes/", "refs/landlane/", "refs/bisect/", "refs/worktree/", "refs/rewritten/")
    return {
        name: oid
        for name, oid in shadow.refs.items()
        if at_home.get(name) != oid and not name.startswith(foreign)
    }


def commits_missing_at(
    shadow: Shadow,
    commits: Iterable[str],
    kept: Sequence[str] = KEPT_REFS,
    lost: Sequence[str] = (),
    *known: str,
) -> list[str] | None:
    """Everything that these commits lead to and no kept ref does; nothing when a commit is damaged.

    `lost` are refs that are about to go, so that they keep nothing; `known` are commits that are safe.
    """
    wanted = list(dict.fromkeys(commits))
    if not wanted:
        return []
    arguments = ["rev-list", "--stdin", "--not", *known]
    if shadow.place.kind == SUBMODULE:
        # What is on a remote-tracking ref is elsewhere, too.
        remote = {oid for name, oid in shadow.refs.items() if name.startswith("refs/remotes/")}
        wanted += [f"^{oid}" for oid in remote]
        found = shadow.run(*arguments, stdin="\n".join(wanted).encode() + b"\n")
    else:
        for prefix in kept:
            arguments += [*(f"--exclude={name}" for name in lost), f"--glob={prefix}"]
        stores: dict[str, str] = {}
        if shadow.place.has_own_objects:
            stores["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = quoted_store(
                os.path.join(shadow.place.git_dir, "objects")
            )
        found = run_home_git(shadow.home, *arguments, stdin="\n".join(wanted).encode() + b"\n", **stores)
    return None if found.exit_code else found.stdout.split()
