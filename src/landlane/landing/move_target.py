"""Move the target branch: only forward, and only from the tip that was checked.

Here, git itself makes sure that a runner that was overtaken moves nothing: it moves the branch and looks at
a ref of its own in one transaction, and whoever takes over removes that ref first. A remote has no such ref:
a push that arrives after its runner was given up still moves the branch, to what was tested there.
"""

from __future__ import annotations

from landlane.errors import RepositoryError
from landlane.git.ancestry import is_ancestor
from landlane.git.lock import git_lock
from landlane.git.pins import PUSH_SECONDS
from landlane.git.remove_checkout import list_worktrees
from landlane.git.run import run_in, try_git_output
from landlane.git.stale_locks import wait_for_refs
from landlane.git.target import commit_at
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.git.discovery import Checkout
    from landlane.git.target import TargetBranch


MOVED = "moved"
ELSEWHERE = "elsewhere"  # the target is not where it was tested from
REFUSED = "refused"
UNKNOWN = "unknown"  # nobody can tell whether it was moved
_RUNNER_REFS = "refs/landlane/moving/"


@value
class Advanced:
    """What became of a move."""

    state: str
    trouble: str = ""


def runner_ref(target: TargetBranch, token: int) -> str:
    """The ref that one run of the queue moves the target by; it also keeps what is about to land."""
    return f"{_RUNNER_REFS}{target.branch}/{token}"


def write_runner_ref(home: Checkout, ref: str, after: str) -> None:
    """Say what is about to be moved to; before that is written down, so that only the living get that far.

    Raises:
        RepositoryError: git refuses.
    """
    found = run_in(home, "update-ref", ref, after)
    if found.exit_code:
        raise RepositoryError(
            f"{ref} cannot be written: {found.stderr[-300:]}",
            code="GIT_FAILED",
            hint="look for a full disk, and run `git fsck`",
        )


def clear_way(home: Checkout, target: TargetBranch) -> None:
    """Wait for whoever writes the refs that a landing needs; what a killed git left there is removed.

    Raises:
        RepositoryError: somebody does not end.
    """
    refs = [ref for ref in (target.ref, target.remote_ref) if ref]
    with git_lock(home.common_dir, f"clear the way to {target.branch}"):
        wait_for_refs(home, refs, [root for _, root in list_worktrees(home)])


def delete_runner_refs(home: Checkout, target: TargetBranch, keep: str = "") -> None:
    """Take the right to move the target from everybody, but for the one who has this ref."""
    for ref in try_git_output(
        home, "for-each-ref", "--format=%(refname)", _RUNNER_REFS + target.branch
    ).splitlines():
        if ref != keep:
            delete_runner_ref(home, ref)


def delete_runner_ref(home: Checkout, ref: str) -> None:
    """Give up the right to move the target."""
    run_in(home, "update-ref", "-d", ref)


def advance(
    home: Checkout,
    target: TargetBranch,
    before: str,
    after: str,
    why: str,
    *,
    runner_ref: str = "",
    on_tick: Callable[[], None] | None = None,
) -> Advanced:
    """Move the target from one commit to a later one, or tell why it is not moved.

    With a remote the remote's branch is moved, by a push that holds only if it is still where it was.
    """
    if not is_ancestor(home, before, after):
        return Advanced(state=REFUSED, trouble=f"{after[:12]} does not contain {before[:12]}")
    if target.remote:
        return _push(home, target, before, after, on_tick)
    with git_lock(home.common_dir, f"land on {target.branch}", on_tick=on_tick):
        now = commit_at(home, target.ref)
        if now == after:
            return Advanced(state=MOVED)
        if now != before:
            return Advanced(state=ELSEWHERE, trouble=f"{target.branch} is at {now[:12]} by now")
        wanted = f"update {target.ref} {after} {before}\n" + (
            f"verify {runner_ref} {after}\n" if runner_ref else ""
        )
        found = run_in(home, "update-ref", "-m", why, "--stdin", stdin=wanted.encode())
        if not found.exit_code:
            return Advanced(state=MOVED)
        return Advanced(state=where_is(home, target, before, after).state, trouble=found.stderr[-500:])


def _push(
    home: Checkout, target: TargetBranch, before: str, after: str, on_tick: Callable[[], None] | None
) -> Advanced:
    found = run_in(
        home,
        *("push", "--quiet", "--porcelain", "--atomic", f"--force-with-lease={target.ref}:{before}"),
        *("--no-recurse-submodules", target.remote, f"{after}:{target.ref}"),
        limit_seconds=PUSH_SECONDS,
        on_tick=on_tick,
    )
    if not found.exit_code:
        run_in(home, "update-ref", target.remote_ref, after)
        return Advanced(state=MOVED)
    asked = where_is(home, target, before, after)
    said = (found.stderr or found.stdout).strip()[-500:]
    return Advanced(state=asked.state, trouble=said or asked.trouble)


def where_is(home: Checkout, target: TargetBranch, before: str, after: str) -> Advanced:
    """Whether a move that may have been cut off was made: the one who has the branch is asked."""
    if not target.remote:
        now = commit_at(home, target.ref)
    else:
        found = run_in(home, "ls-remote", "--quiet", target.remote, target.ref, limit_seconds=PUSH_SECONDS)
        if found.exit_code:
            return Advanced(state=UNKNOWN, trouble=found.stderr[-500:])
        now = found.stdout.split("\t")[0].strip()
    if now == after:
        return Advanced(state=MOVED)
    if now == before:
        return Advanced(state=REFUSED)
    if target.remote and now and try_git_output(home, "cat-file", "-t", now) != "commit":
        run_in(home, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", target.remote, target.ref)
    contains = now and is_in(home, after, now)
    return Advanced(state=MOVED if contains else ELSEWHERE, trouble=f"{target.branch} is at {now[:12]}")


def is_in(home: Checkout, commit: str, tip: str) -> bool:
    """Whether a tip contains a commit; one that is not here at all is in nothing."""
    return is_ancestor(home, commit, tip)
