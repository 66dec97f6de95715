"""Whether the work of a branch is in another: by its commits, or by content if it was squashed or rebased."""

from __future__ import annotations

import time

from landlane.git.ancestry import is_ancestor, merge_base
from landlane.git.refs import is_oid
from landlane.git.run import run_in, try_git_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.git.discovery import Checkout


_MOST_KNOWN = 256
_MOST_PATHS = 500  # more are not named to git in one call
_SAME_SECONDS = 5.0  # that a no is believed, which may have come from a git that failed
_known: dict[tuple[str, str, str], tuple[float, bool]] = {}


def is_merged(home: Checkout, commit: str, into: str) -> bool:
    """Whether nothing of a commit's own is missing in `into`.

    Three ways to see it: it is an ancestor; merging it would change nothing; or the change as a whole, or
    each of its commits, was applied there as a patch (what came later may have changed these lines again).
    """
    if not commit or not into:
        return False
    question = (home.common_dir, commit, into)
    at, found = _known.get(question, (0.0, False))
    if found or (at and time.monotonic() - at < _SAME_SECONDS):
        return found
    found = _is_merged(home, commit, into)
    if is_oid(commit) and is_oid(into):  # a name may mean another commit tomorrow
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[question] = (time.monotonic(), found)
    return found


def _is_merged(home: Checkout, commit: str, into: str) -> bool:
    if is_ancestor(home, commit, into):
        return True
    base = merge_base(home, into, commit)
    if not base or base == into:
        return False  # nothing in common, or nothing has come there since
    paths = run_in(home, "diff", "--name-only", "-z", "--no-renames", base, commit).stdout.split("\0")[:-1]
    if not paths:
        return False  # commits that come to nothing are in no other branch by their content
    if len(paths) <= _MOST_PATHS and not _is_touched(home, base, into, paths):
        return False
    return _adds_nothing(home, commit, into) or _was_applied(home, commit, into, base)


def _is_touched(home: Checkout, base: str, into: str, paths: Sequence[str]) -> bool:
    """Whether anything since the base has to do with these paths: what has not cannot be the same work."""
    found = run_in(
        home,
        *("rev-list", "--max-count=1", "--full-history", f"{base}..{into}", "--", *paths),
        variables={"GIT_LITERAL_PATHSPECS": "1"},
    )
    return bool(found.exit_code or found.stdout.strip())


def _adds_nothing(home: Checkout, commit: str, into: str) -> bool:
    merged = run_in(home, "merge-tree", "--write-tree", into, commit)
    tree = merged.stdout.partition("\n")[0].strip()
    return not merged.exit_code and tree == try_git_output(home, "rev-parse", f"{into}^{{tree}}")


def _was_applied(home: Checkout, commit: str, into: str, base: str) -> bool:
    each = try_git_output(home, "cherry", into, commit, base).splitlines()
    # `cherry` passes over merges, and those may hold work of their own.
    has_merges = bool(try_git_output(home, "rev-list", "--merges", "--max-count=1", f"{base}..{commit}"))
    if not has_merges and each and all(line.startswith("-") for line in each):
        return True
    as_one = run_in(
        home,
        *("commit-tree", f"{commit}^{{tree}}", "-p", base, "-m", "as one"),
        variables={
            "GIT_AUTHOR_NAME": "landlane",
            "GIT_AUTHOR_EMAIL": "landlane@localhost",
            "GIT_COMMITTER_NAME": "landlane",
            "GIT_COMMITTER_EMAIL": "landlane@localhost",
        },
    ).stdout.strip()
    whole = try_git_output(home, "cherry", into, as_one, base).splitlines() if as_one else []
    return bool(whole) and all(line.startswith("-") for line in whole)
