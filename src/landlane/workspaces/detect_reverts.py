"""Would a commit undo what others landed? Found by comparing it with the versions its paths had before."""

from __future__ import annotations

from landlane.git.commit_paths import read_status
from landlane.git.run import git_failed, resolve_revision, run_in
from landlane.git.trailers import read_trailers
from landlane.git.tree_diff import diff_trees, parse_raw_diff
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.git.discovery import Checkout
    from landlane.git.tree_diff import TreeChange, Version

_LOOK_BACK = 200  # commits that touch the paths in question
_FURTHEST = 1000  # commits at all: the history of a file that is new would be read to its beginning
_MOST_COMPARED = 20  # older versions of one file, line by line
_AT_ONCE = 500  # paths on one command line


@value
class RevertedChange:
    """A path that would be as it was before these commits, the newest first."""

    path: str
    commits: tuple[str, ...]
    subject: str
    author: str


@value
class _Step:
    commit: str
    parent: str
    before: Version


def find_reverted_changes(
    here: Checkout, head: str, changes: Sequence[TreeChange], session: str
) -> list[RevertedChange]:
    """The paths that would be put back to how they were before others than this session changed them.

    A file whose new content is exactly an older one was probably written from an old copy. A deletion says
    less, since every file was absent once, and so does a file in which only some lines are as before. These
    count when all that came since then is missing here as well, as in an old tree put on a new base.
    """
    if not head:
        return []
    steps = _history(here, head, [change.path for change in changes])
    trees = _OldTrees(here, head)
    suspects = {
        change.path: way
        for change in changes
        if (way := _way_back(change, steps.get(change.path, []), trees))
    }
    if not suspects:
        return []
    undone: list[RevertedChange] = []
    told = _told_of(here, {step.commit for way in suspects.values() for step in way})
    for path, way in suspects.items():
        theirs = [step.commit for step in way if told[step.commit][2] != session]
        if theirs:
            subject, author, _ = told[theirs[0]]
            undone.append(RevertedChange(path=path, commits=tuple(theirs), subject=subject, author=author))
    return undone


def _history(here: Checkout, head: str, paths: list[str]) -> dict[str, list[_Step]]:
    """Each path's changes on the way back from HEAD."""
    found: dict[str, list[_Step]] = {}
    end = resolve_revision(here, f"{head}~{_FURTHEST}")
    span = (head, f"^{end}") if end else (head,)
    words = ("log", "-z", "--raw", "--no-abbrev", "--no-renames", "--first-parent", "-m", "--format=%H %P")
    for start in range(0, len(paths), _AT_ONCE):
        part = paths[start : start + _AT_ONCE]
        variables = {"GIT_LITERAL_PATHSPECS": "1"}
        said = run_in(here, *words, "-n", str(_LOOK_BACK), *span, "--", *part, variables=variables)
        if said.exit_code:
            raise git_failed(words, said)
        for record in _records(said.stdout):
            commit, *parents = record[0].split(" ")
            for change in parse_raw_diff("\0".join(record[1:])):
                step = _Step(commit=commit, parent=parents[0] if parents else "", before=change.old)
                found.setdefault(change.path, []).append(step)
    return found


def _records(text: str) -> list[list[str]]:
    """The commits in git's raw form with -z: a line of its own, then pairs of a change and its path."""
    records: list[list[str]] = []
    tokens = iter(text.split("\0"))
    for token in tokens:
        change = token.removeprefix("\n")
        if change.startswith(":"):
            records[-1] += [change, next(tokens)]
        elif change:
            records.append([change])
    return records


def _way_back(change: TreeChange, steps: list[_Step], trees: _OldTrees) -> list[_Step]:
    """The steps that a change takes back: all up to an older version that it leads to, or nothing."""
    for index, step in enumerate(steps):
        if step.before == change.new:
            is_sure = not change.is_deletion or trees.is_here(step.parent)
            return steps[: index + 1] if is_sure else []
    if change.is_deletion or change.is_addition:
        return []
    way: list[_Step] = []
    for step in steps[:_MOST_COMPARED]:
        if not trees.is_here(step.parent) or not trees.leads_back(change, step.before):
            break
        way.append(step)
    return way


def _told_of(here: Checkout, commits: set[str]) -> dict[str, tuple[str, str, str]]:
    """The subject, author and session of commits."""
    words = ("log", "-z", "--no-walk=unsorted", "--stdin", "--format=%H%n%an%n%s%n%B")
    said = run_in(here, *words, stdin="".join(f"{commit}\n" for commit in commits).encode())
    if said.exit_code:
        raise git_failed(words, said)
    found: dict[str, tuple[str, str, str]] = {}
    for record in said.stdout.split("\0"):
        commit, author, subject, message = (*record.split("\n", 3), "", "", "")[:4]
        found[commit] = (subject, author, read_trailers(message).session)
    return found


class _OldTrees:
    """Whether the files here are those of an older commit, as far as it differs from HEAD."""

    def __init__(self, here: Checkout, head: str) -> None:
        self._here = here
        self._head = head
        self._may_be: bool | None = None
        self._differing: set[str] | None = None
        self._known: dict[str, bool] = {}

    def is_here(self, commit: str) -> bool:
        """Whether nothing that came after this commit is here as HEAD has it."""
        if not commit or not self._may_be_old():
            return False
        if commit not in self._known:
            if self._differing is None:
                self._differing = set(read_status(self._here).paths)
            self._known[commit] = self._later_than(commit) <= self._differing
        return self._known[commit]

    def _may_be_old(self) -> bool:
        """Whether not even the newest commit is here; mostly it is, and then no more need be looked at."""
        if self._may_be is None:
            newest = sorted(self._later_than(f"{self._head}^"))[:_AT_ONCE]
            self._may_be = not newest or set(newest) <= set(read_status(self._here, newest).paths)
        return self._may_be

    def _later_than(self, commit: str) -> set[str]:
        return {change.path for change in diff_trees(self._here, commit, self._head)}

    def leads_back(self, change: TreeChange, older: Version) -> bool:
        """Whether every line that came since an older version is as it was then, whatever else changed."""
        if not older[0]:
            return False
        back = self._hunks(change.old[1], older[1])
        return bool(back) and back <= self._hunks(change.old[1], change.new[1])

    def _hunks(self, old: str, new: str) -> set[str]:
        """The places where two files differ, each with the lines that come there; of text only."""
        words = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--unified=0", old, new)
        parts = f"\n{run_in(self._here, *words).stdout}".split("\n@@ -")[1:]
        found: set[str] = set()
        for part in parts:
            place, _, lines = part.partition("\n")
            added = [line for line in lines.split("\n") if line.startswith("+")]
            found.add("\n".join([place.split(" ")[0], *added]))
        return found
