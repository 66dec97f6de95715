"""Commit what a worker returned on the branch of its task, after checking it against claims and role.

A worker that may not commit returns its change as a patch or as files. The resulting tree is checked, not
what the patch claims: each path must be inside the task's claims and the worker's role. Committing the same
change again has no effect.
"""

from __future__ import annotations

from landlane.errors import LandlaneError, NotAllowed, RepositoryError, Stale
from landlane.git import trial_merge as trials
from landlane.git.commits import find_forged_trailer, is_ancestor, merge_base, with_trailers
from landlane.git.run import run_in, try_git_output
from landlane.git.target import commit_at, find_target, target_tip
from landlane.git.tree_diff import diff_trees
from landlane.roles.model import forbidden, why_not_verb
from landlane.sessions.leases import renew_session
from landlane.values import replace
from landlane.workers.returned import apply
from landlane.workers.returned.check import (
    ReturnedWork,
    check_change,
    check_claims,
    check_still_ours,
    claim_changed,
    watch_violations,
)
from landlane.workspaces.commit import CommitResult, record_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.claims.model import Claim
    from landlane.git.commits import Trailers
    from landlane.git.discovery import Checkout
    from landlane.git.tree_diff import TreeChange
    from landlane.tasks.model import Task


_MAX_SUMMARY = 4_000
_TRIES = 3

__all__ = ["ReturnedWork", "commit_returned", "commit_unclaimed"]


def commit_returned(work: ReturnedWork) -> str:
    """Commit returned work on the branch of its task and return the head; empty if nothing changed.

    The commits of a worker that commits itself must have been fetched already.

    Raises:
        NotAllowed: the change does not apply, is unsafe, or leaves the task's claims or the worker's role.
        Held: another session holds one of its paths.
        Stale: the task is not the session's any more, a lease is over, or the branch has moved.
        RepositoryError: the branch is checked out somewhere, or git fails.
    """
    renew_session(work.repo.store, work.session)
    check_still_ours(work)
    if work.message.patch is None and work.message.files is None:
        return _check_committed(work, work.message.commit or "")
    return _apply_and_commit(work, work.task.branch, is_claimed=True)


def commit_unclaimed(work: ReturnedWork, branch: str) -> str:
    """Commit returned work without claims, and return its head; empty if nothing changed.

    This keeps the change while a person is asked, or when another session has the task. It is not verified
    and does not land: the next owner is shown the branch, and what it uses is checked again.

    Raises:
        NotAllowed: the change does not apply, is unsafe, or leaves the worker's role.
        Stale: something else is on the branch.
        RepositoryError: the branch is checked out somewhere, or git fails.
    """
    if work.message.patch is None and work.message.files is None:
        return ""
    return _apply_and_commit(work, branch, is_claimed=False)


def _apply_and_commit(work: ReturnedWork, branch: str, *, is_claimed: bool) -> str:
    """Apply the change in a throwaway checkout, check it, and commit it on a branch."""
    home, message, base = work.repo.home, work.message, work.base
    with apply.open_throwaway_checkout(home, base) as checkout:
        with watch_violations(work):
            if message.patch is not None:
                tree = apply.tree_with_patch(checkout, message.patch)
            else:
                tree = apply.tree_with_files(checkout, message.files or (), work.scratch)
        changes = diff_trees(checkout, base, tree)
        if not changes:
            return ""
        trailers = check_change(work, checkout, tree, changes)
        claims = check_claims(work, changes) if is_claimed else []
        trailers = replace(trailers, tokens=tuple(sorted({claim.token for claim in claims})))
        text = with_trailers(_commit_message(work.task, message.summary), trailers)
        committer = trials.find_committer(home)
        error = ""
        for _ in range(_TRIES):
            before, head = _read_branch(home, branch, base, tree)
            if head:
                return head
            commit = trials.create_commit(checkout, tree, [base], text, committer=committer)
            if is_claimed:
                check_still_ours(work)  # the checks may have taken long
            error = apply.fetch_commit(home, checkout, branch, commit, before)
            if not error:
                made = _describe(work, branch, commit, changes, trailers)
                _record_or_undo(work, made, before, claims)
                return commit
        raise _branch_moved(branch, error)


def _check_committed(work: ReturnedWork, commit: str) -> str:
    """Return the head of a branch that the worker committed on itself; empty if it did not."""
    task, role, home = work.task, work.role, work.repo.home
    reason = why_not_verb(role, "commit")
    if reason and commit:
        raise forbidden(
            work.session.agent, role.name, f"{reason}: it hands its change in as a patch or as files"
        )
    head = commit_at(home, f"refs/heads/{task.branch}")
    if not commit:
        if reason or not _has_changes(work, head):
            return ""
        _claim_commits(work, head)
        return head
    if not head or not is_ancestor(home, commit, head):
        raise NotAllowed(
            f"{commit[:12]} is not on {task.branch}",
            code="CHANGE_UNFIT",
            hint=f"commit the work there, in the checkout that was given: git switch {task.branch}",
            branch=task.branch,
            paths=[],
        )
    if not _has_changes(work, head):
        return ""
    _claim_commits(work, head)
    return head


def _claim_commits(work: ReturnedWork, head: str) -> None:
    """Claim what the commits of a branch change on the target, if its task names no paths."""
    home = work.repo.home
    tip = target_tip(home, find_target(home, work.repo.settings))
    base = merge_base(home, tip, head) or work.base
    claim_changed(work, diff_trees(home, base, head))


def _has_changes(work: ReturnedWork, head: str) -> bool:
    """Return whether a branch changes any file: its commits may be empty, or revert each other."""
    if head == work.base or not head:
        return False
    return bool(run_in(work.repo.home, "diff-tree", "--quiet", work.base, head).exit_code)


def _commit_message(task: Task, summary: str) -> str:
    """Return the title of the task and the worker's summary, without trailers that only Landlane writes."""
    lines = [
        "".join(letter for letter in line if letter.isprintable() or letter == "\t")
        for line in summary[:_MAX_SUMMARY].split("\n")
    ]
    body = "\n".join(line.rstrip() for line in lines if not find_forged_trailer(line)).strip()
    return f"{task.title}\n\n{body}\n" if body and body != task.title else f"{task.title}\n"


def _read_branch(home: Checkout, branch: str, base: str, tree: str) -> tuple[str, str]:
    """Return the commit a branch is at (empty if it is new), and its head if it has exactly this change.

    Raises:
        Stale: something else was committed there.
        RepositoryError: the branch is checked out.
    """
    ref = f"refs/heads/{branch}"
    form = "--format=%(objectname) %(tree) %(parent)%00%(worktreepath)"
    facts, _, worktree = try_git_output(home, "for-each-ref", form, ref).partition("\0")
    if not facts:
        return "", ""
    head, head_tree, *parents = facts.split(" ")
    if head_tree == tree and parents == [base]:
        return head, head
    if worktree:
        raise RepositoryError(
            f"{branch} is checked out at {worktree}: nothing can be handed in there",
            code="BRANCH_IN_USE",
            hint=f"commit the work in {worktree}, or close that workspace",
        )
    if head != base:
        raise _branch_moved(branch, f"it is at {head[:12]}, not at {base[:12]}")
    return head, ""


def _branch_moved(branch: str, why: str) -> Stale:
    return Stale(
        f"{branch} has moved on: {why[:300]}",
        code="BRANCH_MOVED",
        hint=f"another agent committed there: git log {branch}",
        branch=branch,
    )


def _describe(
    work: ReturnedWork, branch: str, commit: str, changes: Sequence[TreeChange], trailers: Trailers
) -> CommitResult:
    return CommitResult(
        commit=commit,
        branch=branch,
        subject=work.task.title,
        paths=tuple(change.path for change in changes),
        trailers=trailers,
    )


def _record_or_undo(work: ReturnedWork, made: CommitResult, before: str, claims: Sequence[Claim]) -> None:
    """Record a commit, or take it off its branch if one of its claims has ended since they were checked."""
    try:
        record_commit(work.repo, work.session, made, claims)
    except LandlaneError:
        ref = f"refs/heads/{made.branch}"
        words = (ref, before, made.commit) if before else ("-d", ref, made.commit)
        undone = run_in(work.repo.home, "update-ref", "-m", "landlane: undone", *words)
        if undone.exit_code:
            work.repo.report(f"{made.commit[:8]} stays on {made.branch}: {undone.stderr.strip()[:200]}")
        raise
