"""Update the checkouts of the target branch after a landing; those with local changes are left alone."""

from __future__ import annotations

import os

from landlane.errors import RepositoryError
from landlane.git.discovery import Checkout
from landlane.git.lock import git_lock
from landlane.git.remove_checkout import list_worktrees
from landlane.git.run import run_git, run_in, try_git_output
from landlane.git.stale_locks import wait_for_locks
from landlane.git.target import commit_at
from landlane.git.tree_diff import find_untracked_in_the_way, is_reachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.git.target import TargetBranch

_PLAIN_FILES = ("000000", "100644", "100755")


def forward_checkouts(
    home: Checkout, target: TargetBranch, before: str, after: str, on_tick: Callable[[], None] | None = None
) -> list[str]:
    """Move clean checkouts of the target branch forward; return notes about those that are not clean.

    A checkout with changes keeps its files and index. Only its HEAD is set to the commit that its files are
    based on: otherwise its next commit would revert everything that landed.
    """
    notes: list[str] = []
    roots = [Checkout(root=home.root, git_dir=home.common_dir, common_dir=home.common_dir)]
    roots += [
        Checkout(root=root, git_dir=git_dir, common_dir=home.common_dir)
        for git_dir, root in list_worktrees(home)
    ]
    for checkout in roots:
        if os.path.isdir(checkout.root) and _head_ref(checkout) == target.ref:
            with git_lock(home.common_dir, f"move {checkout.root} forward", on_tick=on_tick):
                note = _forward_checkout(checkout, target, before, after)
            if note:
                notes.append(note)
    return notes


def _head_ref(checkout: Checkout) -> str:
    try:
        with open(os.path.join(checkout.git_dir, "HEAD"), encoding="utf-8", errors="replace") as file:
            return file.readline().strip().removeprefix("ref: ")
    except OSError:
        return ""


def _forward_checkout(checkout: Checkout, target: TargetBranch, before: str, after: str) -> str:
    if try_git_output(checkout, "rev-parse", "--is-bare-repository") == "true":
        return ""
    try:
        wait_for_locks(checkout)  # a git process of a killed client may still be running
    except RepositoryError as error:
        return _leave_alone(checkout, target, before, after, error.message)
    if target.remote:  # only the remote's branch has moved: fast-forward this one if it is behind
        return _fast_forward(checkout, target, after)
    # The branch may have moved again since: HEAD already refers to its current tip.
    after = commit_at(checkout, target.ref) or after
    if not run_in(checkout, "diff-index", "--cached", "--quiet", after).exit_code and _is_clean(checkout):
        return ""  # already forwarded
    trouble = _find_obstacle(checkout, before, after)
    is_as_before = not run_in(checkout, "diff-index", "--cached", "--quiet", before).exit_code
    if not trouble and is_as_before and _is_clean(checkout):
        moved = run_in(checkout, "read-tree", "-m", "-u", before, after)
        if not moved.exit_code:
            return ""
        trouble = moved.stderr  # an untracked file is in the way, or a file is locked
    if _finish_interrupted(checkout, before, after):
        return ""
    return _leave_alone(checkout, target, before, after, trouble)


def _find_obstacle(checkout: Checkout, before: str, after: str) -> str:
    try:
        untracked = find_untracked_in_the_way(checkout, before, after) if before else []
    except RepositoryError as error:
        return error.message
    return f"{untracked[0]} lies there without being under version control" if untracked else ""


def _is_clean(checkout: Checkout) -> bool:
    run_git("update-index", "-q", "--refresh", cwd=checkout.root)
    return not run_in(checkout, "diff-files", "--quiet").exit_code


def _finish_interrupted(checkout: Checkout, before: str, after: str) -> bool:
    """Finish an update that a killed git left half done; return whether that worked."""
    if not _is_interrupted(checkout, before, after):
        return False
    return not run_in(checkout, "read-tree", "--reset", "-u", after).exit_code


def _is_interrupted(checkout: Checkout, before: str, after: str) -> bool:
    """Return whether every file is as in one of two commits, as after an interrupted update between them."""
    if all(
        run_in(checkout, "diff-index", "--cached", "--quiet", commit).exit_code for commit in (before, after)
    ):
        return False  # there are staged changes
    fields = try_git_output(checkout, "diff-tree", "-r", "-z", "--no-renames", before, after).split("\0")
    between = {path: facts.split() for facts, path in zip(fields[::2], fields[1::2], strict=False)}
    dirty = try_git_output(checkout, "diff-files", "-z", "--name-only").split("\0")
    if any(path and path not in between for path in dirty):
        return False
    ours = frozenset(between)
    return all(
        is_reachable(checkout.root, path, ours) and _matches_either(checkout, path, facts)
        for path, facts in between.items()
    )


def _matches_either(checkout: Checkout, path: str, facts: list[str]) -> bool:
    modes, blobs = [facts[0].lstrip(":"), facts[1]], facts[2:4]
    file = os.path.join(checkout.root, path)
    if not os.path.lexists(file):
        return "000000" in modes
    if os.path.islink(file) or not os.path.isfile(file) or any(mode not in _PLAIN_FILES for mode in modes):
        return False
    return try_git_output(checkout, "hash-object", "--", path) in blobs


def _leave_alone(checkout: Checkout, target: TargetBranch, before: str, after: str, why: str = "") -> str:
    if not target.remote:
        run_in(checkout, "update-ref", "--no-deref", "-m", "landlane: left alone", "HEAD", before)
    lines = [line.strip() for line in why.splitlines() if line.strip() and line.strip() != "Aborting"]
    reason = " ".join(lines[:3]).removeprefix("error: ").rstrip(".") or "it has changes of its own"
    if target.remote:
        return f"{checkout.root} was left alone: {reason}; git pull brings it to {after[:12]}"
    return (
        f"{checkout.root} was left alone: {reason}. It stands on {before[:12]}, off {target.branch};"
        f" `git switch {target.branch}` brings it to {after[:12]}"
    )


def _fast_forward(checkout: Checkout, target: TargetBranch, after: str) -> str:
    now = try_git_output(checkout, "rev-parse", "HEAD")
    if now == after or not run_in(checkout, "merge-base", "--is-ancestor", after, now).exit_code:
        return ""
    if run_in(checkout, "merge-base", "--is-ancestor", now, after).exit_code:
        return (
            f"{checkout.root} was left alone: {target.branch} there has commits that {target.remote} has not"
        )
    trouble = _find_obstacle(checkout, now, after)
    is_as_before = not run_in(checkout, "diff-index", "--cached", "--quiet", "HEAD").exit_code
    if not trouble and is_as_before and _is_clean(checkout):
        merged = run_git("merge", "--ff-only", "--quiet", "--no-verify", after, cwd=checkout.root)
        if not merged.exit_code:
            return ""
        trouble = merged.stderr or "git refused"
    if _finish_interrupted(checkout, now, after):
        run_in(checkout, "update-ref", "-m", "landlane: landed", "HEAD", after, now)
        return ""
    return _leave_alone(checkout, target, now, after, trouble)


def update_local_target(home: Checkout, target: TargetBranch, after: str) -> None:
    """Fast-forward a local target branch that is not checked out to the remote's commit."""
    now = commit_at(home, target.ref)
    if not target.remote or now == after:
        return
    with git_lock(home.common_dir, f"follow {target.branch}"):
        roots = [home.common_dir, *(git_dir for git_dir, _ in list_worktrees(home))]
        is_checked_out = any(
            _head_ref(Checkout(root="", git_dir=folder, common_dir=home.common_dir)) == target.ref
            for folder in roots
        )
        is_behind = not now or not run_in(home, "merge-base", "--is-ancestor", now, after).exit_code
        if not is_checked_out and is_behind:
            run_in(home, "update-ref", "-m", "landlane: landed", target.ref, after, now or "")
