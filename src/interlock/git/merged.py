"""Whether the work of a branch is in another: by its commits, or by content if it was squashed or rebased."""

from __future__ import annotations

from interlock.git.run import ask, run_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interlock.git.layout import Checkout


def is_merged(home: Checkout, commit: str, into: str) -> bool:
    """Whether nothing of a commit's own is missing in `into`.

    Three ways to see it: it is an ancestor; merging it would change nothing; or the change as a whole, or
    each of its commits, was applied there as a patch (what came later may have changed these lines again).
    """
    if not commit or not into:
        return False
    if not run_in(home, "merge-base", "--is-ancestor", commit, into).exit_code:
        return True
    base = ask(home, "merge-base", into, commit)
    if not base or not run_in(home, "diff", "--quiet", base, commit).exit_code:
        return False  # commits that come to nothing are in no other branch by their content
    return _adds_nothing(home, commit, into) or _was_applied(home, commit, into, base)


def _adds_nothing(home: Checkout, commit: str, into: str) -> bool:
    merged = run_in(home, "merge-tree", "--write-tree", into, commit)
    tree = merged.text.partition("\n")[0].strip()
    return not merged.exit_code and tree == ask(home, "rev-parse", f"{into}^{{tree}}")


def _was_applied(home: Checkout, commit: str, into: str, base: str) -> bool:
    each = ask(home, "cherry", into, commit, base).splitlines()
    # `cherry` passes over merges, and those may hold work of their own.
    has_merges = bool(ask(home, "rev-list", "--merges", "--max-count=1", f"{base}..{commit}"))
    if not has_merges and each and all(line.startswith("-") for line in each):
        return True
    as_one = run_in(
        home,
        *("commit-tree", f"{commit}^{{tree}}", "-p", base, "-m", "as one"),
        variables={
            "GIT_AUTHOR_NAME": "interlock",
            "GIT_AUTHOR_EMAIL": "interlock@localhost",
            "GIT_COMMITTER_NAME": "interlock",
            "GIT_COMMITTER_EMAIL": "interlock@localhost",
        },
    ).text.strip()
    whole = ask(home, "cherry", into, as_one, base).splitlines() if as_one else []
    return bool(whole) and all(line.startswith("-") for line in whole)
