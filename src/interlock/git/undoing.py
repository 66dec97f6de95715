"""Would a commit undo what others landed? Found by comparing it with the versions its paths had before."""

from __future__ import annotations

from interlock.git.commits import changes_between, look_at, parse_raw
from interlock.git.run import git_failed, run_in
from interlock.git.trailers import read_trailers
from interlock.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.git.commits import Changed, Version
    from interlock.git.layout import Checkout

_LOOK_BACK = 200  # commits that touch the paths in question
_AT_ONCE = 500  # paths on one command line


@value
class Undone:
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


def find_undone(here: Checkout, head: str, changes: Sequence[Changed], session: str) -> list[Undone]:
    """The paths that would be put back to how they were before others than this session changed them.

    A file whose new content is exactly an older one was probably written from an old copy. Of a deletion that
    says nothing, since every file was absent once: it counts when all that came since then is missing here as
    well, as in an old tree that was put on a new base.
    """
    if not head:
        return []
    undone: list[Undone] = []
    steps = _history(here, head, [change.path for change in changes])
    suspects = {change.path: way for change in changes if (way := _way_back(change, steps))}
    if not suspects:
        return []
    is_deleted = {change.path: change.is_deletion for change in changes}
    told = _told_of(here, {step.commit for way in suspects.values() for step in way})
    old_trees = _OldTrees(here, head)
    for path, way in suspects.items():
        theirs = [step.commit for step in way if told[step.commit][2] != session]
        if theirs and not (is_deleted[path] and not old_trees.is_here(way[-1].parent)):
            subject, author, _ = told[theirs[0]]
            undone.append(Undone(path=path, commits=tuple(theirs), subject=subject, author=author))
    return undone


def _history(here: Checkout, head: str, paths: list[str]) -> dict[str, list[_Step]]:
    """Each path's changes on the way back from HEAD."""
    found: dict[str, list[_Step]] = {}
    words = ("log", "-z", "--raw", "--no-abbrev", "--no-renames", "--first-parent", "-m", "--format=%H %P")
    for start in range(0, len(paths), _AT_ONCE):
        part = paths[start : start + _AT_ONCE]
        variables = {"GIT_LITERAL_PATHSPECS": "1"}
        said = run_in(here, *words, "-n", str(_LOOK_BACK), head, "--", *part, variables=variables)
        if said.exit_code:
            raise git_failed(words, said)
        for record in _records(said.text):
            commit, *parents = record[0].split(" ")
            for change in parse_raw("\0".join(record[1:])):
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


def _way_back(change: Changed, steps: dict[str, list[_Step]]) -> list[_Step]:
    """The steps that a change takes back, if it leads exactly to an older version."""
    way: list[_Step] = []
    for step in steps.get(change.path, ()):
        way.append(step)
        if step.before == change.new:
            return way
    return []


def _told_of(here: Checkout, commits: set[str]) -> dict[str, tuple[str, str, str]]:
    """The subject, author and session of commits."""
    words = ("log", "-z", "--no-walk=unsorted", "--stdin", "--format=%H%n%an%n%s%n%B")
    said = run_in(here, *words, stdin="".join(f"{commit}\n" for commit in commits).encode())
    if said.exit_code:
        raise git_failed(words, said)
    found: dict[str, tuple[str, str, str]] = {}
    for record in said.text.split("\0"):
        commit, author, subject, message = (*record.split("\n", 3), "", "", "")[:4]
        found[commit] = (subject, author, read_trailers(message).session)
    return found


class _OldTrees:
    """Whether the files here are those of an older commit, as far as it differs from HEAD."""

    def __init__(self, here: Checkout, head: str) -> None:
        self._here = here
        self._head = head
        self._differing: set[str] | None = None
        self._known: dict[str, bool] = {}

    def is_here(self, commit: str) -> bool:
        """Whether nothing that came after this commit is here as HEAD has it."""
        if not commit:
            return False
        if commit not in self._known:
            if self._differing is None:
                self._differing = set(look_at(self._here).paths)
            later = {change.path for change in changes_between(self._here, commit, self._head)}
            self._known[commit] = later <= self._differing
        return self._known[commit]
