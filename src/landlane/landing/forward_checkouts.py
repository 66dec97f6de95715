"""Checkouts of the target branch follow it: moved forward where clean, left alone with a note where not."""

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
    """Move checkouts of the target branch forward where they are clean; tells of those that are not.

    A checkout with changes is left as it is, files and index. Only its HEAD is set to the commit it shows:
    otherwise its next commit would take back everything that landed.
    """
    notes: list[str] = []
    roots = [Checkout(root=home.root, git_dir=home.common_dir, common_dir=home.common_dir)]
    roots += [
        Checkout(root=root, git_dir=git_dir, common_dir=home.common_dir)
        for git_dir, root in list_worktrees(home)
    ]
    for checkout in roots:
        if os.path.isdir(checkout.root) and _branch_of(checkout) == target.ref:
            with git_lock(home.common_dir, f"move {checkout.root} forward", on_tick=on_tick):
                note = _forward(checkout, target, before, after)
            if note:
                notes.append(note)
    return notes


def _branch_of(checkout: Checkout) -> str:
    try:
        with open(os.path.join(checkout.git_dir, "HEAD"), encoding="utf-8", errors="replace") as file:
            return file.readline().strip().removeprefix("ref: ")
    except OSError:
        return ""


def _forward(checkout: Checkout, target: TargetBranch, before: str, after: str) -> str:
    if try_git_output(checkout, "rev-parse", "--is-bare-repository") == "true":
        return ""
    try:
        wait_for_locks(checkout)  # a git of somebody who was killed may still be at it
    except RepositoryError as error:
        return _leave_alone(checkout, target, before, after, error.message)
    if target.remote:  # only the remote's branch has moved: this one follows if it is behind
        return _fast_forward(checkout, target, after)
    # What has moved on since then is shown as it is now: HEAD means that already.
    after = commit_at(checkout, target.ref) or after
    if not run_in(checkout, "diff-index", "--cached", "--quiet", after).exit_code and _is_clean(checkout):
        return ""  # done before
    trouble = _in_the_way(checkout, before, after)
    is_as_before = not run_in(checkout, "diff-index", "--cached", "--quiet", before).exit_code
    if not trouble and is_as_before and _is_clean(checkout):
        moved = run_in(checkout, "read-tree", "-m", "-u", before, after)
        if not moved.exit_code:
            return ""
        trouble = moved.stderr  # an untracked file is in the way, or a file is locked
    if _finish_half_done(checkout, before, after):
        return ""
    return _leave_alone(checkout, target, before, after, trouble)


def _in_the_way(checkout: Checkout, before: str, after: str) -> str:
    try:
        strange = find_untracked_in_the_way(checkout, before, after) if before else []
    except RepositoryError as error:
        return error.message  # what cannot be judged is left alone
    return f"{strange[0]} lies there without being under version control" if strange else ""


def _is_clean(checkout: Checkout) -> bool:
    run_git("update-index", "-q", "--refresh", cwd=checkout.root)
    return not run_in(checkout, "diff-files", "--quiet").exit_code


def _finish_half_done(checkout: Checkout, before: str, after: str) -> bool:
    """Bring to its end what a git that was killed left half way; tells whether that was all there was."""
    if not _is_half_done(checkout, before, after):
        return False
    return not run_in(checkout, "read-tree", "--reset", "-u", after).exit_code


def _is_half_done(checkout: Checkout, before: str, after: str) -> bool:
    """Whether every file is as in one of two commits: a git that went from one to the other was killed."""
    if all(
        run_in(checkout, "diff-index", "--cached", "--quiet", commit).exit_code for commit in (before, after)
    ):
        return False  # somebody has staged something
    fields = try_git_output(checkout, "diff-tree", "-r", "-z", "--no-renames", before, after).split("\0")
    between = {path: facts.split() for facts, path in zip(fields[::2], fields[1::2], strict=False)}
    dirty = try_git_output(checkout, "diff-files", "-z", "--name-only").split("\0")
    if any(path and path not in between for path in dirty):
        return False
    ours = frozenset(between)
    return all(
        is_reachable(checkout.root, path, ours) and _is_one_of(checkout, path, facts)
        for path, facts in between.items()
    )


def _is_one_of(checkout: Checkout, path: str, facts: list[str]) -> bool:
    modes, blobs = [facts[0].lstrip(":"), facts[1]], facts[2:4]
    place = os.path.join(checkout.root, path)
    if not os.path.lexists(place):
        return "000000" in modes
    if os.path.islink(place) or not os.path.isfile(place) or any(mode not in _PLAIN_FILES for mode in modes):
        return False
    return try_git_output(checkout, "hash-object", "--", path) in blobs


def _leave_alone(checkout: Checkout, target: TargetBranch, before: str, after: str, why: str = "") -> str:
    if not target.remote:
        run_in(checkout, "update-ref", "--no-deref", "-m", "landlane: left alone", "HEAD", before)
    said = [line.strip() for line in why.splitlines() if line.strip() and line.strip() != "Aborting"]
    reason = " ".join(said[:3]).removeprefix("error: ").rstrip(".") or "it has changes of its own"
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
    trouble = _in_the_way(checkout, now, after)
    is_as_before = not run_in(checkout, "diff-index", "--cached", "--quiet", "HEAD").exit_code
    if not trouble and is_as_before and _is_clean(checkout):
        found = run_git("merge", "--ff-only", "--quiet", "--no-verify", after, cwd=checkout.root)
        if not found.exit_code:
            return ""
        trouble = found.stderr or "git refused"
    if _finish_half_done(checkout, now, after):
        run_in(checkout, "update-ref", "-m", "landlane: landed", "HEAD", after, now)
        return ""
    return _leave_alone(checkout, target, now, after, trouble)


def follow_locally(home: Checkout, target: TargetBranch, after: str) -> None:
    """Let a local target branch that is checked out nowhere follow the remote's."""
    now = commit_at(home, target.ref)
    if not target.remote or now == after:
        return
    with git_lock(home.common_dir, f"follow {target.branch}"):
        roots = [home.common_dir, *(git_dir for git_dir, _ in list_worktrees(home))]
        used = any(
            _branch_of(Checkout(root="", git_dir=folder, common_dir=home.common_dir)) == target.ref
            for folder in roots
        )
        is_behind = not now or not run_in(home, "merge-base", "--is-ancestor", now, after).exit_code
        if not used and is_behind:
            run_in(home, "update-ref", "-m", "landlane: landed", target.ref, after, now or "")
