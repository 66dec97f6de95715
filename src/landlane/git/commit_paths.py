"""A commit of chosen paths, made from an index of its own: what others have staged is left as it is.

git's own `commit --only` keeps the checkout's index locked while hooks run, and a killed one leaves the lock
behind. Here the paths are put into a copy of the index, in which everything else is as in HEAD; git commits
that copy with the user's hooks and signing; then the same paths are brought up to date in the real index.
What fails before leaves the real index as it was.
"""

from __future__ import annotations

import os
import re

from landlane.errors import PatternError
from landlane.git.hook_pass import hooks_folder
from landlane.git.hooks.former_hooks import user_hooks_folder
from landlane.git.paths import pattern_from
from landlane.git.run import (
    LOCATION_VARIABLES,
    git_failed,
    resolve_revision,
    run_git_with_hooks,
    run_in,
    try_git_output,
)
from landlane.git.trailers import read_trailers
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from landlane.git.discovery import Checkout
    from landlane.git.run import GitResult
    from landlane.git.trailers import Trailers

    Version = tuple[str, str]  # mode and id of a file; ABSENT_MODE where there is none


ABSENT_MODE = "000000"
_LITERAL = {"GIT_LITERAL_PATHSPECS": "1"}
_HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit")
_COMMIT_SECONDS = 3600.0  # the user's hooks may test
_PRIVATE = "landlane-index-"
_UNDER_WAY = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
}


@value
class Changed:
    """A path that differs between two trees."""

    path: str
    old: Version
    new: Version

    @property
    def is_deletion(self) -> bool:
        """Whether it is gone in the newer one."""
        return self.new[0] == ABSENT_MODE


@value
class WorktreeStatus:
    """Where HEAD is, and which paths are not as it has them; `head` is empty before the first commit."""

    head: str
    branch: str
    paths: tuple[str, ...]


@value
class MadeCommit:
    """A commit that is there."""

    id: str
    parent: str
    trailers: Trailers


def operation_under_way(here: Checkout) -> str:
    """The merge, rebase or the like that waits to be finished in this checkout."""
    for name, verb in _UNDER_WAY.items():
        if os.path.lexists(os.path.join(here.git_dir, name)):
            return verb
    return ""


def resolve_path(text: str, here: Checkout, cwd: str) -> str:
    """The path below the root that a person means; of a link, the link itself.

    Raises:
        PatternError: it leads out of this checkout.
    """
    if not text or "\0" in text:
        pattern_from(text, here, cwd)  # which says what is wrong: a forgotten value must not mean everything
    named = os.path.join(here.root, text[2:]) if text.startswith(":/") else os.path.join(cwd, text)
    folder, name = os.path.split(named.rstrip("/") or "/")
    whole = (
        os.path.realpath(named) if name in ("", ".", "..") else os.path.join(os.path.realpath(folder), name)
    )
    # Says what is wrong with a path outside, in git's own folder or in another repository; of a link only the
    # folder it lies in counts.
    pattern_from(os.path.dirname(whole) if os.path.islink(whole) else whole, here, cwd, is_literal=True)
    inside = os.path.relpath(whole, here.root)
    if inside.partition("/")[0] == "..":
        raise PatternError(
            f"{text[:80]!r} lies in another checkout of this repository",
            code="PATH_OUTSIDE",
            hint="commit it there: cd to that checkout, or give --repo",
        )
    return inside


def read_status(here: Checkout, named: Sequence[str] = ()) -> WorktreeStatus:
    """What is not as in HEAD at or below these paths, or anywhere; ignored files do not count."""
    words = ("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-renames")
    found = run_in(
        here, *words, "--ignore-submodules=dirty", "--", *named, variables=_LITERAL, limit_seconds=600
    )
    if found.exit_code:
        raise git_failed(words, found)
    head = branch = ""
    paths: dict[str, None] = {}
    for line in found.stdout.split("\0"):
        kind, _, rest = line.partition(" ")
        if kind == "#":
            key, _, text = rest.partition(" ")
            head = text if key == "branch.oid" and text != "(initial)" else head
            branch = text if key == "branch.head" and text != "(detached)" else branch
        elif kind in ("1", "u"):
            paths[rest.split(" ", 7 if kind == "1" else 9)[-1]] = None
        # A repository inside of this one is taken in only by its own name, not with the folder around it.
        elif kind == "?" and (not rest.endswith("/") or rest.rstrip("/") in named):
            paths[rest.rstrip("/")] = None
    return WorktreeStatus(head=head, branch=branch, paths=tuple(paths))


def list_tracked(here: Checkout, named: Sequence[str]) -> set[str]:
    """The paths that git knows, at or below these."""
    found = run_in(here, "ls-files", "-z", "--", *named, variables=_LITERAL)
    return set(found.stdout.split("\0")) - {""}


def changes_between(here: Checkout, old: str, new: str) -> list[Changed]:
    """What differs between two commits; `old` may be empty."""
    words = ("diff-tree", "-r", "--raw", "-z", "--no-abbrev", "--no-renames", "--no-commit-id")
    found = run_in(here, *words, *((old, new) if old else ("--root", new)))
    if found.exit_code:
        raise git_failed(words, found)
    return list(parse_raw(found.stdout))


def parse_raw(text: str) -> Iterator[Changed]:
    """What git's raw form with -z says."""
    tokens = iter(text.split("\0"))
    for token in tokens:
        if token.startswith(":"):
            old_mode, new_mode, old, new, _ = token[1:].split(" ")
            yield Changed(path=next(tokens), old=(old_mode, old), new=(new_mode, new))


class PrivateIndex:
    """A copy of the checkout's index that only this commit uses; leaving the block removes it."""

    def __init__(self, here: Checkout) -> None:
        self._here = here
        self.path = os.path.join(here.git_dir, f"{_PRIVATE}{os.getpid()}")

    def __enter__(self) -> PrivateIndex:
        real = os.path.join(self._here.git_dir, "index")
        try:
            with open(real, "rb") as source, open(self.path, "wb") as copy:
                copy.write(source.read())
                at = os.fstat(source.fileno())
            # By the time of the index git tells which files it has to read again: a younger copy would make
            # it overlook what was changed in the same instant.
            os.utime(self.path, ns=(at.st_atime_ns, at.st_mtime_ns))
        except FileNotFoundError:
            pass  # nothing was ever added here
        return self

    def __exit__(self, *_: object) -> None:
        for path in (self.path, f"{self.path}.lock"):
            try:
                os.unlink(path)
            except FileNotFoundError:
                continue

    def fill(self, sight: WorktreeStatus) -> tuple[list[Changed], list[Changed]]:
        """Make it HEAD with these paths as on disk; tells what that changes, and what else is staged."""
        base = sight.head or self._git_output("hash-object", "-t", "tree", "--stdin").strip()
        chosen = set(sight.paths)
        listed = "".join(f"{path}\0" for path in sight.paths)
        add = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
        self._git_output(*add, stdin=listed)
        changes = self._against(base)
        others = [one for one in changes if one.path not in chosen]
        if others:
            # Once more at the end: a file that is put back as in HEAD may lie where a chosen one must be.
            _write_entries(self._run, {one.path: one.old for one in others})
            self._git_output(*add, stdin=listed)
            changes = self._against(base)
        return changes, others

    def _against(self, tree: str) -> list[Changed]:
        words = ("diff-index", "--cached", "--raw", "-z", "--no-abbrev", "--no-renames")
        return list(parse_raw(self._git_output(*words, "--ignore-submodules=dirty", tree)))

    def _git_output(self, *words: str, stdin: str = "") -> str:
        found = self._run(*words, stdin=stdin)
        if found.exit_code:
            raise git_failed(words, found)
        return found.stdout

    def _run(self, *words: str, stdin: str = "") -> GitResult:
        data = stdin.encode("utf-8", "surrogateescape")
        variables = {"GIT_INDEX_FILE": self.path}
        return run_in(self._here, *words, stdin=data, variables=variables, limit_seconds=600)


def finish_killed_commits(here: Checkout) -> None:
    """Clear away what killed commits left; for those who hold the lock on git.

    One that was killed after git had committed, but before the real index could follow, is finished: else the
    index would say that somebody wants to undo it.
    """
    for name in os.listdir(here.git_dir):
        left = re.fullmatch(rf"{_PRIVATE}(\d+)(\.lock)?", name)
        if left is None or os.path.exists(f"/proc/{left[1]}"):
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
    """Bring those paths of the newest commit up to date in the real index that are as before it."""
    head = read_head(here)
    parent = resolve_revision(here, "HEAD^")
    said = run_in(here, "diff-index", "--cached", "--raw", "-z", "--no-abbrev", "--no-renames", "HEAD")
    staged = {change.path: change.new for change in parse_raw(said.stdout)}
    left = [change for change in changes_between(here, parent, head) if staged.get(change.path) == change.old]
    if left:
        update_index(here, left)


def _write_entries(run: Callable[..., GitResult], versions: Mapping[str, Version]) -> GitResult:
    """Put entries into an index as they are named; what is gone first, for it may be in the way of others."""
    ordered = sorted(versions.items(), key=lambda item: item[1][0] != ABSENT_MODE)
    lines = [f"{'0' if mode == ABSENT_MODE else mode} {id}\t{path}\0" for path, (mode, id) in ordered]
    return run("update-index", "--replace", "-z", "--index-info", stdin="".join(lines))


def update_index(here: Checkout, changes: Sequence[Changed]) -> str:
    """Bring paths up to date in the real index as they were committed; tells what went wrong, or nothing."""

    def run(*words: str, stdin: str = "") -> GitResult:
        data = stdin.encode("utf-8", "surrogateescape")
        return run_in(here, *words, stdin=data, variables=_LITERAL, limit_seconds=600)

    written = _write_entries(run, {one.path: one.new for one in changes})
    if written.exit_code:
        return written.stderr[-300:]
    kept = "".join(f"{one.path}\0" for one in changes if not one.is_deletion)
    if kept:  # only the times: whoever looks next need not read these files again
        run("add", "--refresh", "--pathspec-from-file=-", "--pathspec-file-nul", stdin=kept)
    return ""


def list_commit_hooks(here: Checkout) -> list[str]:
    """The hooks of the user that a commit will run."""
    folder = os.path.join(here.root, try_git_output(here, "rev-parse", "--git-path", "hooks"))
    if folder == hooks_folder(here.home_dir):  # ours runs those, and does not judge a commit of ours
        folder = user_hooks_folder(here)
    return [name for name in _HOOKS if os.access(os.path.join(folder, name), os.X_OK)]


def make_commit(here: Checkout, index: PrivateIndex, message: str, variables: Mapping[str, str]) -> GitResult:
    """Let git commit an index, in the environment that the user's hooks and signing know."""
    environment = {name: text for name, text in os.environ.items() if name not in LOCATION_VARIABLES}
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
    """The commit that HEAD is at; empty before the first."""
    return resolve_revision(here, "HEAD")


def find_made_commit(here: Checkout, session: str, head: str) -> MadeCommit | None:
    """The commit that a session just made: of all since `head` its own, else the first."""
    since = (f"^{head}",) if head else ()
    found = run_in(here, "log", "-z", "-n", "100", "--format=%H%n%P%n%B", *since, "HEAD")
    first: MadeCommit | None = None
    for record in found.stdout.split("\0"):
        commit, _, rest = record.partition("\n")
        parents, _, message = rest.partition("\n")
        one = MadeCommit(id=commit, parent=parents.partition(" ")[0], trailers=read_trailers(message))
        if one.trailers.session == session:
            return one
        first = one if one.parent == head else first
    return first


def undo_commit(here: Checkout, made: MadeCommit) -> bool:
    """Undo a commit, unless something came on top of it; files and the real index stay as they are."""
    why = ("-m", "landlane commit: taken back")
    words = (*why, "HEAD", made.parent, made.id) if made.parent else (*why, "-d", "HEAD", made.id)
    return not run_in(here, "update-ref", *words).exit_code


def stamp_changed_files(here: Checkout) -> dict[str, tuple[int, ...]]:
    """What is not as in HEAD, each with what tells its state on disk from another."""
    return {path: _state_of(os.path.join(here.root, path)) for path in read_status(here).paths}


def _state_of(path: str) -> tuple[int, ...]:
    try:
        found = os.lstat(path)
    except OSError:
        return ()
    return found.st_mode, found.st_size, found.st_mtime_ns, found.st_ino
