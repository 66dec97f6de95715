"""Commit chosen paths from a private index, so that paths staged by others are left as they are.

git's own `commit --only` keeps the checkout's index locked while hooks run, and a killed one leaves the lock
behind. Here the paths are added to a copy of the index, in which everything else is as in HEAD; git commits
that copy with the user's hooks and signing; then the same paths are updated in the real index. A failure
before that leaves the real index as it was.
"""

from __future__ import annotations

import os
import re

from landlane.errors import PatternError
from landlane.git.commits import Trailers, read_trailers
from landlane.git.hook_pass import hooks_folder
from landlane.git.hooks.hooks_path import user_hooks_folder
from landlane.git.repository import pattern_from
from landlane.git.run import (
    GitResult,
    git_failed,
    resolve_revision,
    run_git_with_hooks,
    run_in,
    try_git_output,
    user_environment,
)
from landlane.git.tree_diff import TreeChange, diff_trees, parse_raw_diff
from landlane.git.untrusted_checkout import copy_index
from landlane.platform.process import owner_of
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from landlane.git.discovery import Checkout

_LITERAL = {"GIT_LITERAL_PATHSPECS": "1"}
_HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit")
_COMMIT_SECONDS = 3600.0  # the user's hooks may run tests
_INDEX_SECONDS = 600.0
_PRIVATE = "landlane-index-"
_OPERATIONS = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
}


@value
class WorktreeStatus:
    """Where HEAD is, and which paths differ from it; `head` is empty before the first commit."""

    head: str
    branch: str
    paths: tuple[str, ...]


@value
class MadeCommit:
    """A commit that git has made."""

    id: str
    parent: str
    trailers: Trailers


def operation_under_way(here: Checkout) -> str:
    """Return the name of the merge, rebase or the like that is unfinished in this checkout, if any."""
    markers = (name for name in _OPERATIONS if os.path.lexists(os.path.join(here.git_dir, name)))
    return _OPERATIONS.get(next(markers, ""), "")


def resolve_path(text: str, here: Checkout, cwd: str) -> str:
    """Return the path below the root that a text means; for a link, the link itself.

    Raises:
        PatternError: it leads out of this checkout.
    """
    if not text or "\0" in text:
        pattern_from(text, here, cwd)  # it raises: a forgotten value must not mean everything
    named = os.path.join(here.root, text[2:]) if text.startswith(":/") else os.path.join(cwd, text)
    folder, name = os.path.split(named.rstrip("/") or "/")
    is_name = name not in ("", ".", "..")
    full = os.path.join(os.path.realpath(folder), name) if is_name else os.path.realpath(named)
    # Raises for a path outside, in git's own folder or in another repository; of a link, its folder counts.
    pattern_from(os.path.dirname(full) if os.path.islink(full) else full, here, cwd, is_literal=True)
    inside = os.path.relpath(full, here.root)
    if inside.partition("/")[0] == "..":
        raise PatternError(
            f"{text[:80]!r} lies in another checkout of this repository",
            code="PATH_OUTSIDE",
            hint="commit it there: cd to that checkout, or give --repo",
        )
    return inside


def read_status(here: Checkout, named: Sequence[str] = ()) -> WorktreeStatus:
    """Return what differs from HEAD at or below these paths, or anywhere; ignored files do not count."""
    words = ("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-renames")
    words = (*words, "--ignore-submodules=dirty", "--", *named)
    result = run_in(here, *words, variables=_LITERAL, limit_seconds=_INDEX_SECONDS)
    if result.exit_code:
        raise git_failed(words, result)
    head = branch = ""
    paths: dict[str, None] = {}
    for line in result.stdout.split("\0"):
        kind, _, rest = line.partition(" ")
        if kind == "#":
            key, _, text = rest.partition(" ")
            head = text if key == "branch.oid" and text != "(initial)" else head
            branch = text if key == "branch.head" and text != "(detached)" else branch
        elif kind in ("1", "u"):
            paths[rest.split(" ", 7 if kind == "1" else 9)[-1]] = None
        # A repository inside this one is added only by its own name, not with the folder around it.
        elif kind == "?" and (not rest.endswith("/") or rest.rstrip("/") in named):
            paths[rest.rstrip("/")] = None
    return WorktreeStatus(head=head, branch=branch, paths=tuple(paths))


def list_tracked(here: Checkout, named: Sequence[str]) -> set[str]:
    """Return the tracked paths at or below these."""
    listed = run_in(here, "ls-files", "-z", "--", *named, variables=_LITERAL)
    return set(listed.stdout.split("\0")) - {""}


class PrivateIndex:
    """A copy of the checkout's index that only this commit uses; leaving the block removes it."""

    def __init__(self, here: Checkout) -> None:
        self._here = here
        self.path = os.path.join(here.git_dir, f"{_PRIVATE}{os.getpid()}")

    def __enter__(self) -> PrivateIndex:
        real = os.path.realpath(os.path.join(self._here.git_dir, "index"))
        try:
            copy_index(real, self.path)
        except FileNotFoundError:
            pass  # nothing was ever added here
        return self

    def __exit__(self, *_: object) -> None:
        for path in (self.path, f"{self.path}.lock"):
            try:
                os.unlink(path)
            except FileNotFoundError:
                continue

    def fill(self, status: WorktreeStatus) -> tuple[list[TreeChange], list[TreeChange]]:
        """Make it HEAD with these paths as on disk; return what that changes, and what else is staged."""
        base = status.head or self._git_output("hash-object", "-t", "tree", "--stdin").strip()
        chosen = set(status.paths)
        listed = "".join(f"{path}\0" for path in status.paths)
        add = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
        self._git_output(*add, stdin=listed)
        changes = self._diff(base)
        others = [change for change in changes if change.path not in chosen]
        if others:
            # Add once more at the end: a file that is reset to HEAD may lie where a chosen one must be.
            self._git_output(*_WRITE_ENTRIES, stdin=_index_entries(others, is_undoing=True))
            self._git_output(*add, stdin=listed)
            changes = self._diff(base)
        return changes, others

    def _diff(self, tree: str) -> list[TreeChange]:
        words = ("diff-index", "--cached", "--raw", "-z", "--no-abbrev", "--no-renames")
        return list(parse_raw_diff(self._git_output(*words, "--ignore-submodules=dirty", tree)))

    def _git_output(self, *words: str, stdin: str = "") -> str:
        result = _run_with_input(self._here, words, stdin, {"GIT_INDEX_FILE": self.path})
        if result.exit_code:
            raise git_failed(words, result)
        return result.stdout


_WRITE_ENTRIES = ("update-index", "--replace", "-z", "--index-info")


def _run_with_input(
    here: Checkout, words: Sequence[str], stdin: str, variables: Mapping[str, str]
) -> GitResult:
    data = stdin.encode("utf-8", "surrogateescape")
    return run_in(here, *words, stdin=data, variables=variables, limit_seconds=_INDEX_SECONDS)


def _index_entries(changes: Sequence[TreeChange], *, is_undoing: bool = False) -> str:
    """Return the entries after or before changes; deletions first, as they may be in the way of others."""
    entries: list[str] = []
    for change in sorted(changes, key=lambda change: bool((change.old if is_undoing else change.new)[0])):
        mode, oid = change.old if is_undoing else change.new
        zero = "0" * len(change.old_oid or change.new_oid)
        entries.append(f"{mode or '0'} {oid or zero}\t{change.path}\0")
    return "".join(entries)


def finish_killed_commits(here: Checkout) -> None:
    """Clean up after killed commits; the caller holds the lock on git.

    A commit that was killed before the real index could follow is finished: else the index would stage its
    reversal.
    """
    for name in os.listdir(here.git_dir):
        left = re.fullmatch(rf"{_PRIVATE}(\d+)(\.lock)?", name)
        if left is None or owner_of(int(left[1])) >= 0:  # its process still runs
            continue
        path = os.path.join(here.git_dir, name)
        is_index = left[2] is None
        words = ("diff-index", "--cached", "--quiet", "HEAD")
        if is_index and not run_in(here, *words, variables={"GIT_INDEX_FILE": path}).exit_code:
            _follow_head(here)
        try:
            os.unlink(path)
        except FileNotFoundError:
            continue


def _follow_head(here: Checkout) -> None:
    """Update the paths of the newest commit in the real index, where it has them as before that commit."""
    words = ("diff-index", "--cached", "--raw", "-z", "--no-abbrev", "--no-renames", "HEAD")
    staged = {change.path: change.new for change in parse_raw_diff(run_in(here, *words).stdout)}
    committed = diff_trees(here, resolve_revision(here, "HEAD^"), read_head(here))
    left = [change for change in committed if staged.get(change.path) == change.old]
    if left:
        update_index(here, left)


def update_index(here: Checkout, changes: Sequence[TreeChange]) -> str:
    """Update paths in the real index as they were committed; return what went wrong, or an empty text."""
    written = _run_with_input(here, _WRITE_ENTRIES, _index_entries(changes), _LITERAL)
    if written.exit_code:
        return written.stderr[-300:]
    kept = "".join(f"{change.path}\0" for change in changes if not change.is_deletion)
    if kept:  # only the times, so that the next status need not read these files again
        words = ("add", "--refresh", "--pathspec-from-file=-", "--pathspec-file-nul")
        _run_with_input(here, words, kept, _LITERAL)
    return ""


def list_commit_hooks(here: Checkout) -> list[str]:
    """Return the user's hooks that a commit will run."""
    folder = os.path.join(here.root, try_git_output(here, "rev-parse", "--git-path", "hooks"))
    if folder == hooks_folder(here.home_dir):  # our hooks run the user's, and let our own commits pass
        folder = user_hooks_folder(here)
    return [name for name in _HOOKS if os.access(os.path.join(folder, name), os.X_OK)]


def make_commit(here: Checkout, index: PrivateIndex, message: str, variables: Mapping[str, str]) -> GitResult:
    """Let git commit an index, in the environment that the user's hooks and signing expect."""
    environment = user_environment()
    if not os.path.lexists(os.path.join(here.root, ".git")):
        environment |= {"GIT_DIR": here.git_dir, "GIT_WORK_TREE": here.root}
    environment |= {"GIT_INDEX_FILE": index.path, **variables}
    return run_git_with_hooks(
        *("commit", "--quiet", "--file=-"),
        cwd=here.root,
        environment=environment,
        stdin=message.encode("utf-8", "surrogateescape"),
        limit_seconds=_COMMIT_SECONDS,
    )


def read_head(here: Checkout) -> str:
    """Return the commit of HEAD; empty before the first."""
    return resolve_revision(here, "HEAD")


def find_made_commit(here: Checkout, session: str, head: str) -> MadeCommit | None:
    """Return the commit that a session just made: of all since `head` its own, else the first."""
    since = (f"^{head}",) if head else ()
    listed = run_in(here, "log", "-z", "-n", "100", "--format=%H%n%P%n%B", *since, "HEAD")
    first: MadeCommit | None = None
    for record in listed.stdout.split("\0"):
        commit, _, rest = record.partition("\n")
        parents, _, message = rest.partition("\n")
        made = MadeCommit(id=commit, parent=parents.partition(" ")[0], trailers=read_trailers(message))
        if made.trailers.session == session:
            return made
        first = made if made.parent == head else first
    return first


def undo_commit(here: Checkout, made: MadeCommit) -> bool:
    """Undo a commit unless there are newer ones; files and the real index stay as they are."""
    why = ("-m", "landlane commit: taken back")
    words = (*why, "HEAD", made.parent, made.id) if made.parent else (*why, "-d", "HEAD", made.id)
    return not run_in(here, "update-ref", *words).exit_code


def stamp_changed_files(here: Checkout) -> dict[str, tuple[int, ...]]:
    """Return the paths that differ from HEAD, each with a stamp of its state on disk."""
    return {path: _stamp(os.path.join(here.root, path)) for path in read_status(here).paths}


def _stamp(path: str) -> tuple[int, ...]:
    try:
        found = os.lstat(path)
    except OSError:
        return ()
    return found.st_mode, found.st_size, found.st_mtime_ns, found.st_ino
