"""Moving the target branch: only forward, only from the tip that was tested, and never between."""

from __future__ import annotations

import os

from interlock.errors import RepositoryError
from interlock.git.checkouts import worktree_entries
from interlock.git.layout import Checkout
from interlock.git.lock import git_lock
from interlock.git.run import ask, run_git, run_in
from interlock.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interlock.git.target import Target

MOVED = "moved"
ELSEWHERE = "elsewhere"  # the target is not where it was tested from
REFUSED = "refused"
UNKNOWN = "unknown"  # nobody can tell whether it was moved
_PUSH_SECONDS = 600.0
_PINS = "refs/interlock/landing/"


@value
class Advanced:
    """What became of a move."""

    state: str
    trouble: str = ""


def pin_ref(commit: str) -> str:
    """The ref that keeps what was submitted, whatever becomes of its branch."""
    return _PINS + commit


def advance(home: Checkout, target: Target, before: str, after: str, why: str) -> Advanced:
    """Move the target from one commit to a later one, or tell why it is not moved.

    With a remote the remote's branch is moved, by a push that holds only if it is still where it was.
    """
    if run_in(home, "merge-base", "--is-ancestor", before, after).exit_code:
        return Advanced(state=REFUSED, trouble=f"{after[:12]} does not contain {before[:12]}")
    if target.remote:
        return _push(home, target, before, after)
    with git_lock(home.common_dir, f"land on {target.branch}"):
        now = ask(home, "rev-parse", "--verify", "--quiet", target.ref)
        if now == after:
            return Advanced(state=MOVED)
        if now != before:
            return Advanced(state=ELSEWHERE, trouble=f"{target.branch} is at {now[:12]} by now")
        found = run_in(home, "update-ref", "-m", why, target.ref, after, before)
        if not found.exit_code:
            return Advanced(state=MOVED)
        return Advanced(state=where_is(home, target, before, after).state, trouble=found.trouble[-500:])


def _push(home: Checkout, target: Target, before: str, after: str) -> Advanced:
    found = run_in(
        home,
        *("push", "--quiet", "--porcelain", "--atomic", f"--force-with-lease={target.ref}:{before}"),
        *("--no-recurse-submodules", target.remote, f"{after}:{target.ref}"),
        limit_seconds=_PUSH_SECONDS,
    )
    if not found.exit_code:
        run_in(home, "update-ref", target.remote_ref, after)
        return Advanced(state=MOVED)
    asked = where_is(home, target, before, after)
    said = (found.trouble or found.text).strip()[-500:]
    return Advanced(state=asked.state, trouble=said or asked.trouble)


def where_is(home: Checkout, target: Target, before: str, after: str) -> Advanced:
    """Whether a move that may have been cut off was made: the one who has the branch is asked."""
    if not target.remote:
        now = ask(home, "rev-parse", "--verify", "--quiet", target.ref)
    else:
        found = run_in(home, "ls-remote", "--quiet", target.remote, target.ref, limit_seconds=_PUSH_SECONDS)
        if found.exit_code:
            return Advanced(state=UNKNOWN, trouble=found.trouble[-500:])
        now = found.text.split("\t")[0].strip()
    if now == after:
        return Advanced(state=MOVED)
    if now == before:
        return Advanced(state=REFUSED)
    if target.remote and now and ask(home, "cat-file", "-t", now) != "commit":
        run_in(home, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", target.remote, target.ref)
    contains = now and not run_in(home, "merge-base", "--is-ancestor", after, now).exit_code
    return Advanced(state=MOVED if contains else ELSEWHERE, trouble=f"{target.branch} is at {now[:12]}")


def forward_checkouts(home: Checkout, target: Target, before: str, after: str) -> list[str]:
    """Move checkouts of the target branch forward where they are clean; tells of those that are not.

    A checkout with changes is left as it is, files and index. Only its HEAD is set to the commit it shows:
    otherwise its next commit would take back everything that landed.
    """
    notes: list[str] = []
    roots = [Checkout(root=home.root, git_dir=home.common_dir, common_dir=home.common_dir)]
    roots += [
        Checkout(root=root, git_dir=git_dir, common_dir=home.common_dir)
        for git_dir, root in worktree_entries(home)
    ]
    for checkout in roots:
        if os.path.isdir(checkout.root) and _branch_of(checkout) == target.ref:
            note = _forward(home, checkout, target, before, after)
            if note:
                notes.append(note)
    return notes


def _branch_of(checkout: Checkout) -> str:
    try:
        with open(os.path.join(checkout.git_dir, "HEAD"), encoding="utf-8", errors="replace") as file:
            return file.readline().strip().removeprefix("ref: ")
    except OSError:
        return ""


def _forward(home: Checkout, checkout: Checkout, target: Target, before: str, after: str) -> str:
    if ask(checkout, "rev-parse", "--is-bare-repository") == "true":
        return ""
    with git_lock(home.common_dir, f"move {checkout.root} forward"):
        if target.remote:  # only the remote's branch has moved: this one follows if it is behind
            return _fast_forward(checkout, target, after)
        if not run_in(checkout, "diff-index", "--cached", "--quiet", after).exit_code and _is_clean(checkout):
            return ""  # done before
        if run_in(checkout, "diff-index", "--cached", "--quiet", before).exit_code or not _is_clean(checkout):
            return _leave_alone(checkout, target, before, after)
        moved = run_in(checkout, "read-tree", "-m", "-u", before, after)
        if moved.exit_code:  # an untracked file is in the way, or a file is locked
            return _leave_alone(checkout, target, before, after, moved.trouble)
    return ""


def _is_clean(checkout: Checkout) -> bool:
    run_git("update-index", "-q", "--refresh", cwd=checkout.root)
    return not run_in(checkout, "diff-files", "--quiet").exit_code


def _leave_alone(checkout: Checkout, target: Target, before: str, after: str, why: str = "") -> str:
    run_in(checkout, "update-ref", "--no-deref", "-m", "interlock: left alone", "HEAD", before)
    reason = why.strip().splitlines()[-1] if why.strip() else "it has changes of its own"
    return (
        f"{checkout.root} was left alone: {reason}. It stands on {before[:12]}, off {target.branch};"
        f" `git switch {target.branch}` brings it to {after[:12]}"
    )


def _fast_forward(checkout: Checkout, target: Target, after: str) -> str:
    now = ask(checkout, "rev-parse", "HEAD")
    if now == after or not run_in(checkout, "merge-base", "--is-ancestor", after, now).exit_code:
        return ""
    if run_in(checkout, "merge-base", "--is-ancestor", now, after).exit_code:
        return (
            f"{checkout.root} was left alone: {target.branch} there has commits that {target.remote} has not"
        )
    if run_in(checkout, "diff-index", "--quiet", "HEAD").exit_code:
        return (
            f"{checkout.root} was left alone: it has changes of its own; git pull brings it to {after[:12]}"
        )
    found = run_git("merge", "--ff-only", "--quiet", "--no-verify", after, cwd=checkout.root)
    if found.exit_code:
        return f"{checkout.root} was left alone: {(found.trouble or 'git refused').splitlines()[-1]}"
    return ""


def follow_locally(home: Checkout, target: Target, after: str) -> None:
    """Let a local target branch that is checked out nowhere follow the remote's."""
    now = ask(home, "rev-parse", "--verify", "--quiet", target.ref)
    if not target.remote or now == after:
        return
    with git_lock(home.common_dir, f"follow {target.branch}"):
        roots = [home.common_dir, *(git_dir for git_dir, _ in worktree_entries(home))]
        used = any(
            _branch_of(Checkout(root="", git_dir=folder, common_dir=home.common_dir)) == target.ref
            for folder in roots
        )
        is_behind = not now or not run_in(home, "merge-base", "--is-ancestor", now, after).exit_code
        if not used and is_behind:
            run_in(home, "update-ref", "-m", "interlock: landed", target.ref, after, now or "")


def pin(home: Checkout, target: Target, commit: str, *, is_shared: bool) -> None:
    """Keep a submitted commit; with several machines, also where the others can fetch it.

    Raises:
        RepositoryError: the remote does not take it.
    """
    run_in(home, "update-ref", pin_ref(commit), commit)
    if is_shared and target.remote:
        found = run_in(
            home,
            *("push", "--quiet", "--no-verify", target.remote, f"{commit}:{pin_ref(commit)}"),
            limit_seconds=_PUSH_SECONDS,
        )
        if found.exit_code:
            raise RepositoryError(
                f"{target.remote} does not take the branch: {found.trouble[-300:]}",
                code="PUSH_REFUSED",
                hint="other machines could not see it; mend the connection and land again",
            )


def unpin(home: Checkout, target: Target, commit: str, *, is_shared: bool) -> None:
    """Let go of a submitted commit that has landed or gone back."""
    run_in(home, "update-ref", "-d", pin_ref(commit))
    if is_shared and target.remote:
        run_in(
            home,
            *("push", "--quiet", "--no-verify", target.remote, f":{pin_ref(commit)}"),
            limit_seconds=_PUSH_SECONDS,
        )


def bring_in(home: Checkout, target: Target, commit: str) -> bool:
    """Whether a submitted commit is here, fetched if need be."""
    if ask(home, "cat-file", "-t", commit) == "commit":
        return True
    if target.remote:
        run_in(
            home,
            *("-c", "transfer.fsckObjects=true", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head"),
            *(target.remote, f"+{pin_ref(commit)}:{pin_ref(commit)}"),
            limit_seconds=_PUSH_SECONDS,
        )
    return ask(home, "cat-file", "-t", commit) == "commit"
