"""Predict conflicts between open branches without touching any checkout.

Only branches that change a common path are merged with each other, as git objects. Files that Landlane can
merge by their kind do not conflict. Everything is computed again each time, so nothing can be out of date.
"""

from __future__ import annotations

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

from landlane.git import trial_merge as trials
from landlane.git.commits import merge_base
from landlane.git.run import try_git_output
from landlane.git.target import commit_at, find_target
from landlane.git.tree_diff import list_changed_paths
from landlane.landing.combine import merge_rule_for
from landlane.landing.records import list_landings
from landlane.merge.merge_file import merge_file
from landlane.merge.model import Conflict, MergeKind
from landlane.values import as_dict, value
from landlane.workspaces.committed_settings import read_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from landlane.git.discovery import Checkout
    from landlane.git.target import TargetBranch
    from landlane.repository import Repository
    from landlane.settings.model import MergeFile


_BRANCHES = "refs/heads/landlane/"
_WORK_BRANCH = re.compile(r"landlane/[^/]+/work")
_MAX_PARALLEL = 4  # git processes
_MAX_PATHS = 20
MAX_EXACT = 8  # branches for which every combination is tried; more are ordered greedily


@value
class OpenBranch:
    """A branch that has not landed: its merge base with the target, and what it changes."""

    branch: str
    head: str
    base: str
    paths: frozenset[str]
    own: frozenset[str]  # its commits beyond the base
    landing: str = ""
    agent: str = ""


def predict_conflicts(repo: Repository) -> dict[str, Any]:
    """Return the open branches that conflict, the files, and the landing order with the fewest conflicts."""
    home, target = repo.home, find_target(repo.home, repo.settings)
    tip = commit_at(home, target.remote_ref or target.ref)
    branches = _open_branches(repo, target, tip)
    settings = read_at(repo, tip)
    mergeable = {path: merge_rule_for(repo, settings, path) for one in branches for path in one.paths}
    finder = _ConflictFinder(home, {path: rule for path, rule in mergeable.items() if rule})
    with_target = _in_parallel(branches, lambda one: finder.conflicts_with_target(one, tip))
    alive = [one for one, found in zip(branches, with_target, strict=True) if found is not None]
    late = {one.branch: found for one, found in zip(branches, with_target, strict=True) if found}
    pairs = [(one, other) for one, other in combinations(alive, 2) if _common_paths(one, other)]
    found = _in_parallel(pairs, lambda pair: finder.conflicts_between(*pair))
    conflicts = [
        {"one": branch, "other": target.branch, "paths": list(paths)} for branch, paths in late.items()
    ]
    met = [(one, other, paths) for (one, other), paths in zip(pairs, found, strict=True) if paths]
    conflicts += [
        {"one": one.branch, "other": other.branch, "paths": list(paths[:_MAX_PATHS])}
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
        "hot": _rank_paths(alive, [paths for _, _, paths in met], finder.rules),
        "order": order,
    }


def _open_branches(repo: Repository, target: TargetBranch, tip: str) -> list[OpenBranch]:
    """Return the branches in the queue, in its order, then the other branches that have not landed."""
    queued = [one for one in list_landings(repo) if one.target == target.branch]
    heads = {one.branch: (one.head, one.id, one.agent) for one in queued}
    form = "--format=%(refname:lstrip=2) %(objectname)"
    listed = try_git_output(repo.home, "for-each-ref", form, f"--no-merged={tip}", _BRANCHES)
    for line in listed.splitlines():
        branch, _, head = line.rpartition(" ")
        if _WORK_BRANCH.fullmatch(branch):
            heads.setdefault(branch, (head, "", ""))
    missing = trials.missing_commits(repo.home, [head for head, _, _ in heads.values()])
    here = [(branch, *entry) for branch, entry in heads.items() if entry[0] not in missing]
    described = _in_parallel(here, lambda one: _describe_branch(repo.home, tip, *one))
    return [one for one in described if one is not None]


def _describe_branch(
    home: Checkout, tip: str, branch: str, head: str, landing: str, agent: str
) -> OpenBranch | None:
    base = merge_base(home, tip, head)
    if not base:
        return None
    paths = list_changed_paths(home, base, head)
    own = try_git_output(home, "rev-list", f"{base}..{head}").splitlines()
    return OpenBranch(
        branch=branch,
        head=head,
        base=base,
        paths=frozenset(paths),
        own=frozenset(own),
        landing=landing,
        agent=agent,
    )


def _common_paths(one: OpenBranch, other: OpenBranch) -> frozenset[str]:
    """Return the paths that both change, or where one has a file and the other a folder."""
    both = one.paths & other.paths
    if both:
        return both
    return frozenset((one.paths & _folders(other.paths)) | (other.paths & _folders(one.paths)))


def _folders(paths: Iterable[str]) -> set[str]:
    return {path[:at] for path in paths for at, letter in enumerate(path) if letter == "/"}


def _in_parallel(items: Sequence[Any], work: Callable[[Any], Any]) -> list[Any]:
    """Call `work` for every item in a few threads: nearly all of the time is spent in git."""
    if len(items) < _MAX_PARALLEL:
        return [work(item) for item in items]
    with ThreadPoolExecutor(_MAX_PARALLEL) as pool:
        return list(pool.map(work, items))


def _rank_paths(
    branches: Sequence[OpenBranch], met: Sequence[Sequence[str]], rules: dict[str, MergeFile]
) -> list[dict[str, Any]]:
    """Return the paths that several branches change, those with the most conflicts first."""
    users = Counter(path for one in branches for path in one.paths)
    clashes = Counter(path for paths in met for path in paths)
    busy = [path for path, count in users.items() if count > 1 or clashes[path]]
    busy.sort(key=lambda path: (-clashes[path], -users[path], path))
    return [
        {
            "path": path,
            "branches": users[path],
            "conflicts": clashes[path],
            "class": rules[path].kind if path in rules else None,
        }
        for path in busy[:_MAX_PATHS]
    ]


class _ConflictFinder:
    """Merges two branches at a time, and caches the mergeable files that it reads."""

    def __init__(self, home: Checkout, rules: dict[str, MergeFile]) -> None:
        self._home = home
        self.rules = rules
        self._blobs: dict[tuple[str, str], bytes | None] = {}

    def conflicts_with_target(self, one: OpenBranch, tip: str) -> tuple[str, ...] | None:
        """Return where a branch conflicts with the target; None if the target already contains it."""
        tried = trials.try_merge(self._home, tip, one.head)
        if isinstance(tried, trials.MergeConflict):
            return tuple(path for path in tried.paths if not self._can_merge(path, one.base, tip, one.head))
        return None if tried.tree == trials.tree_of(self._home, tip) else ()

    def conflicts_between(self, one: OpenBranch, other: OpenBranch) -> tuple[str, ...]:
        """Return the paths in which two branches conflict."""
        base = self._merge_base(one, other)
        both = _common_paths(one, other)
        if both and all(path in self.rules for path in both):  # no need to start git
            return tuple(
                path for path in sorted(both) if not self._can_merge(path, base, one.head, other.head)
            )
        tried = trials.try_merge(self._home, one.head, other.head)
        if isinstance(tried, trials.MergedTree):
            return ()
        return tuple(path for path in tried.paths if not self._can_merge(path, base, one.head, other.head))

    def _merge_base(self, one: OpenBranch, other: OpenBranch) -> str:
        if one.base == other.base and not one.own & other.own:
            return one.base
        return merge_base(self._home, one.head, other.head)

    def _can_merge(self, path: str, base: str, ours: str, theirs: str) -> bool:
        rule = self.rules.get(path)
        if rule is None:
            return False
        before, now, then = (self._blob(commit, path) for commit in (base, ours, theirs))
        return not isinstance(
            merge_file(MergeKind(rule.kind), before, now, then, path, as_dict(rule)), Conflict
        )

    def _blob(self, commit: str, path: str) -> bytes | None:
        if (commit, path) not in self._blobs:
            self._blobs[commit, path] = trials.read_blob(self._home, commit, path)
        return self._blobs[commit, path]


def best_order(
    names: Sequence[str], conflicts: Iterable[tuple[str, str]], last: Iterable[str] = ()
) -> list[str]:
    """Order branches: first those that can all land, then those that conflict with one of them.

    `last` are those that conflict with the target already. Otherwise the given order is kept.
    """
    conflicts_of: dict[str, set[str]] = {name: set() for name in names}
    for one, other in conflicts:
        conflicts_of[one].add(other)
        conflicts_of[other].add(one)
    late = set(last)
    free = [name for name in names if name not in late]
    landing = _largest_set(free, conflicts_of) if len(free) <= MAX_EXACT else _greedy_set(free, conflicts_of)
    first = [name for name in free if name in landing]
    rest = [name for name in free if name not in landing]
    behind = sorted(rest, key=lambda name: len(conflicts_of[name] & landing))
    return [*first, *behind, *(name for name in names if name in late)]


def _largest_set(names: Sequence[str], conflicts_of: Mapping[str, set[str]]) -> set[str]:
    """Return the largest set of names without a conflict; of equal sets the first in the given order."""
    best: list[str] = []
    for choice in range((1 << len(names)) - 1, 0, -1):
        # The first name is the highest bit, so sets with earlier names come first.
        chosen = [name for index, name in enumerate(reversed(names)) if choice >> index & 1][::-1]
        if len(chosen) > len(best) and not any(conflicts_of[name] & set(chosen) for name in chosen):
            best = chosen
    return set(best)


def _greedy_set(names: Sequence[str], conflicts_of: Mapping[str, set[str]]) -> set[str]:
    """Take the name that conflicts with the fewest of the others, again and again."""
    left: list[str] = list(names)
    chosen: set[str] = set()
    while left:
        others = set(left)
        name = min(left, key=lambda one: len(conflicts_of[one] & others))
        chosen.add(name)
        left = [one for one in left if one != name and one not in conflicts_of[name]]
    return chosen
