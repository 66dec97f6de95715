"""Find out whether a commit would undo what others landed, by comparing it with older versions."""

from __future__ import annotations

from landlane.git.commit_paths import read_status
from landlane.git.commits import read_trailers
from landlane.git.run import git_failed, resolve_revision, run_in
from landlane.git.tree_diff import diff_trees, parse_raw_diff
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.git.discovery import Checkout
    from landlane.git.tree_diff import TreeChange, Version

_LOOK_BACK = 200  # commits that touch the paths in question
_FURTHEST = 1000  # commits in all: else the history of a new file would be read to its beginning
_MOST_COMPARED = 20  # older versions of one file, line by line
_AT_ONCE = 500  # paths on one command line


@value
class RevertedChange:
    """A path that would be as before these commits, newest first."""

    path: str
    commits: tuple[str, ...]
    subject: str
    author: str


@value
class _PathCommit:
    """A commit that changed a path, and the version before it."""

    commit: str
    parent: str
    before: Version


def find_reverted_changes(
    here: Checkout, head: str, changes: Sequence[TreeChange], session: str
) -> list[RevertedChange]:
    """Return the paths that would again be as they were before other sessions changed them.

    A file whose new content is exactly an older version was probably written from an old copy. A deletion
    says less, since every file was absent once, and so does a file in which only some lines are as before.
    These count only if everything that landed since is missing here as well, as in an old tree on a new base.
    """
    if not head:
        return []
    history = _read_history(here, head, [change.path for change in changes])
    trees = _OldTrees(here, head)
    suspects = {
        change.path: reverted
        for change in changes
        if (reverted := _reverted_commits(change, history.get(change.path, []), trees))
    }
    if not suspects:
        return []
    undone: list[RevertedChange] = []
    described = _describe(here, {one.commit for reverted in suspects.values() for one in reverted})
    for path, reverted in suspects.items():
        theirs = [one.commit for one in reverted if described[one.commit][2] != session]
        if theirs:
            subject, author, _ = described[theirs[0]]
            undone.append(RevertedChange(path=path, commits=tuple(theirs), subject=subject, author=author))
    return undone


def _read_history(here: Checkout, head: str, paths: list[str]) -> dict[str, list[_PathCommit]]:
    """Return the commits that changed each path, newest first."""
    found: dict[str, list[_PathCommit]] = {}
    end = resolve_revision(here, f"{head}~{_FURTHEST}")
    span = (head, f"^{end}") if end else (head,)
    words = ("log", "-z", "--raw", "--no-abbrev", "--no-renames", "--first-parent", "-m", "--format=%H %P")
    for start in range(0, len(paths), _AT_ONCE):
        part = paths[start : start + _AT_ONCE]
        variables = {"GIT_LITERAL_PATHSPECS": "1"}
        result = run_in(here, *words, "-n", str(_LOOK_BACK), *span, "--", *part, variables=variables)
        if result.exit_code:
            raise git_failed(words, result)
        for record in _split_log(result.stdout):
            commit, *parents = record[0].split(" ")
            for change in parse_raw_diff("\0".join(record[1:])):
                parent = parents[0] if parents else ""
                entry = _PathCommit(commit=commit, parent=parent, before=change.old)
                found.setdefault(change.path, []).append(entry)
    return found


def _split_log(text: str) -> list[list[str]]:
    """Split git's raw log with -z into commits: one line each, then pairs of a change and its path."""
    records: list[list[str]] = []
    tokens = iter(text.split("\0"))
    for token in tokens:
        change = token.removeprefix("\n")
        if change.startswith(":"):
            records[-1] += [change, next(tokens)]
        elif change:
            records.append([change])
    return records


def _reverted_commits(change: TreeChange, history: list[_PathCommit], trees: _OldTrees) -> list[_PathCommit]:
    """Return the commits that a change reverts: all since the older version that it restores, or none."""
    for index, entry in enumerate(history):
        if entry.before == change.new:
            is_sure = not change.is_deletion or trees.is_here(entry.parent)
            return history[: index + 1] if is_sure else []
    if change.is_deletion or change.is_addition:
        return []
    reverted: list[_PathCommit] = []
    for entry in history[:_MOST_COMPARED]:
        if not trees.is_here(entry.parent) or not trees.restores(change, entry.before):
            break
        reverted.append(entry)
    return reverted


def _describe(here: Checkout, commits: set[str]) -> dict[str, tuple[str, str, str]]:
    """Return the subject, author and session of commits."""
    words = ("log", "-z", "--no-walk=unsorted", "--stdin", "--format=%H%n%an%n%s%n%B")
    result = run_in(here, *words, stdin="".join(f"{commit}\n" for commit in commits).encode())
    if result.exit_code:
        raise git_failed(words, result)
    found: dict[str, tuple[str, str, str]] = {}
    for record in result.stdout.split("\0"):
        commit, author, subject, message = (*record.split("\n", 3), "", "", "")[:4]
        found[commit] = (subject, author, read_trailers(message).session)
    return found


class _OldTrees:
    """Compares the files here with older commits, as far as these differ from HEAD."""

    def __init__(self, here: Checkout, head: str) -> None:
        self._here = here
        self._head = head
        self._may_be: bool | None = None
        self._differing: set[str] | None = None
        self._known: dict[str, bool] = {}

    def is_here(self, commit: str) -> bool:
        """Return whether none of the changes since this commit is present here."""
        if not commit or not self._may_be_old():
            return False
        if commit not in self._known:
            if self._differing is None:
                self._differing = set(read_status(self._here).paths)
            self._known[commit] = self._later_than(commit) <= self._differing
        return self._known[commit]

    def _may_be_old(self) -> bool:
        """Return whether even the newest commit is missing; usually it is not, and that is enough."""
        if self._may_be is None:
            newest = sorted(self._later_than(f"{self._head}^"))[:_AT_ONCE]
            self._may_be = not newest or set(newest) <= set(read_status(self._here, newest).paths)
        return self._may_be

    def _later_than(self, commit: str) -> set[str]:
        return {change.path for change in diff_trees(self._here, commit, self._head)}

    def restores(self, change: TreeChange, older: Version) -> bool:
        """Return whether every line that changed since an older version is as it was then."""
        if not older[0]:
            return False
        back = self._hunks(change.old[1], older[1])
        return bool(back) and back <= self._hunks(change.old[1], change.new[1])

    def _hunks(self, old: str, new: str) -> set[str]:
        """Return the hunks in which two text files differ, each with its position and added lines."""
        words = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--unified=0", old, new)
        parts = f"\n{run_in(self._here, *words).stdout}".split("\n@@ -")[1:]
        found: set[str] = set()
        for part in parts:
            place, _, lines = part.partition("\n")
            added = [line for line in lines.split("\n") if line.startswith("+")]
            found.add("\n".join([place.split(" ")[0], *added]))
        return found
