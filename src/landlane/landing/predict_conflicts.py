"""Predict conflicts between open branches without touching any checkout.

Only branches that changed a common path are merged with each other, as objects. What a hot class can join is
no conflict. All of it is computed anew each time, so nothing can be out of date.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

from landlane.git import trial_merge as trials
from landlane.git.ancestry import merge_base
from landlane.git.run import try_git_output
from landlane.git.target import commit_at, find_target
from landlane.git.tree_diff import list_changed_paths
from landlane.landing.combine import merge_rule_for, merge_rules
from landlane.landing.records import list_landings
from landlane.landing.suggest_order import best_order
from landlane.merge.merge_file import merge_file
from landlane.merge.model import Conflict, MergeRule
from landlane.values import value
from landlane.workspaces.committed_settings import read_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from landlane.git.discovery import Checkout
    from landlane.git.target import TargetBranch
    from landlane.repository import Repository


_OURS = "refs/heads/landlane/"
_WORK = re.compile(r"landlane/[^/]+/work")
_AT_ONCE = 4  # gits that run beside each other
_MOST_PATHS = 20


@value
class Open:
    """A branch that has not landed: where it parted from the target, and what it changes."""

    branch: str
    head: str
    base: str
    paths: frozenset[str]
    own: frozenset[str]  # its commits beyond the base
    landing: str = ""
    agent: str = ""


def foresee(repo: Repository) -> dict[str, Any]:
    """Which open branches conflict, in which files, and in which order they would conflict least."""
    home, target = repo.home, find_target(repo.home, repo.settings)
    tip = commit_at(home, target.remote_ref or target.ref)
    branches = _open_branches(repo, target, tip)
    rules = merge_rules(read_at(repo, tip))
    mergeable = {path: merge_rule_for(repo, rules, path) for one in branches for path in one.paths}
    look = _Look(home, {path: rule for path, rule in mergeable.items() if rule})
    with_target = _in_parallel(branches, lambda one: look.against_tip(one, tip))
    alive = [one for one, found in zip(branches, with_target, strict=True) if found is not None]
    late = {one.branch: found for one, found in zip(branches, with_target, strict=True) if found}
    pairs = [(one, other) for one, other in combinations(alive, 2) if _shared(one, other)]
    found = _in_parallel(pairs, lambda pair: look.against_each_other(*pair))
    conflicts = [
        {"one": branch, "other": target.branch, "paths": list(paths)} for branch, paths in late.items()
    ]
    met = [(one, other, paths) for (one, other), paths in zip(pairs, found, strict=True) if paths]
    conflicts += [
        {"one": one.branch, "other": other.branch, "paths": list(paths[:_MOST_PATHS])}
        for one, other, paths in met
    ]
    order = best_order(
        [one.branch for one in alive], [(one.branch, other.branch) for one, other, _ in met], late
    )
    return {
        "target": target.branch,
        "branches": [
            {
                "branch": one.branch,
                "landing": one.landing or None,
                "agent": one.agent or None,
                "head": one.head,
            }
            for one in alive
        ],
        "conflicts": conflicts,
        "hot": _rank(alive, [paths for _, _, paths in met], look.hot),
        "order": order,
    }


def _open_branches(repo: Repository, target: TargetBranch, tip: str) -> list[Open]:
    """What stands in the queue, in its order, then what is being worked on and has not landed."""
    queued = [one for one in list_landings(repo) if one.target == target.branch]
    heads = {one.branch: (one.head, one.id, one.agent) for one in queued}
    form = "--format=%(refname:lstrip=2) %(objectname)"
    listed = try_git_output(repo.home, "for-each-ref", form, f"--no-merged={tip}", _OURS)
    for line in listed.splitlines():
        branch, _, head = line.rpartition(" ")
        if _WORK.fullmatch(branch):
            heads.setdefault(branch, (head, "", ""))
    missing = trials.missing_commits(repo.home, [head for head, _, _ in heads.values()])
    here = [(branch, *facts) for branch, facts in heads.items() if facts[0] not in missing]
    found = _in_parallel(here, lambda one: _open(repo.home, tip, *one))
    return [one for one in found if one is not None]


def _open(home: Checkout, tip: str, branch: str, head: str, landing: str, agent: str) -> Open | None:
    base = merge_base(home, tip, head)
    if not base:
        return None
    paths = list_changed_paths(home, base, head)
    own = try_git_output(home, "rev-list", f"{base}..{head}").splitlines()
    return Open(
        branch=branch,
        head=head,
        base=base,
        paths=frozenset(paths),
        own=frozenset(own),
        landing=landing,
        agent=agent,
    )


def _shared(one: Open, other: Open) -> frozenset[str]:
    """What both change: the same path, or a file where the other has a folder."""
    both = one.paths & other.paths
    if both:
        return both
    return frozenset((one.paths & _folders(other.paths)) | (other.paths & _folders(one.paths)))


def _folders(paths: Iterable[str]) -> set[str]:
    return {path[:at] for path in paths for at, letter in enumerate(path) if letter == "/"}


def _in_parallel(items: Sequence[Any], work: Callable[[Any], Any]) -> list[Any]:
    """The same for every item, a few at a time: nearly all of it is waiting for git."""
    if len(items) < _AT_ONCE:
        return [work(item) for item in items]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(work, items))


def _rank(
    branches: Sequence[Open], met: Sequence[Sequence[str]], hot: dict[str, MergeRule]
) -> list[dict[str, Any]]:
    """The paths that several branches change: where they conflict most, then where most meet."""
    users: dict[str, int] = {}
    for one in branches:
        for path in one.paths:
            users[path] = users.get(path, 0) + 1
    clashes: dict[str, int] = {}
    for paths in met:
        for path in paths:
            clashes[path] = clashes.get(path, 0) + 1
    busy = [path for path, count in users.items() if count > 1 or path in clashes]
    busy.sort(key=lambda path: (-clashes.get(path, 0), -users[path], path))
    return [
        {
            "path": path,
            "branches": users[path],
            "conflicts": clashes.get(path, 0),
            "class": hot[path].kind if path in hot else None,
        }
        for path in busy[:_MOST_PATHS]
    ]


class _Look:
    """Looks at two branches at a time; what it has read of hot files it remembers."""

    def __init__(self, home: Checkout, hot: dict[str, MergeRule]) -> None:
        self._home = home
        self.hot = hot
        self._blobs: dict[tuple[str, str], bytes | None] = {}

    def against_tip(self, one: Open, tip: str) -> tuple[str, ...] | None:
        """Where a branch conflicts with the target; nothing at all if the target has all of it."""
        tried = trials.try_merge(self._home, tip, one.head)
        if isinstance(tried, trials.MergeConflict):
            return tuple(path for path in tried.paths if not self._joins(path, one.base, tip, one.head))
        return None if tried.tree == trials.tree_of(self._home, tip) else ()

    def against_each_other(self, one: Open, other: Open) -> tuple[str, ...]:
        """Where two branches conflict."""
        base = self._parted(one, other)
        both = _shared(one, other)
        if both and all(path in self.hot for path in both):  # git need not be asked
            return tuple(path for path in sorted(both) if not self._joins(path, base, one.head, other.head))
        tried = trials.try_merge(self._home, one.head, other.head)
        if isinstance(tried, trials.MergedTree):
            return ()
        return tuple(path for path in tried.paths if not self._joins(path, base, one.head, other.head))

    def _parted(self, one: Open, other: Open) -> str:
        if one.base == other.base and not one.own & other.own:
            return one.base
        return merge_base(self._home, one.head, other.head)

    def _joins(self, path: str, base: str, ours: str, theirs: str) -> bool:
        found = self.hot.get(path)
        if found is None:
            return False
        before, now, then = (self._blob(commit, path) for commit in (base, ours, theirs))
        return not isinstance(merge_file(found.kind, before, now, then, path, found.options), Conflict)

    def _blob(self, commit: str, path: str) -> bytes | None:
        if (commit, path) not in self._blobs:
            self._blobs[commit, path] = trials.read_blob(self._home, commit, path)
        return self._blobs[commit, path]
