"""Handing in what a worker returned: judged by claims and role, then one commit on the branch of its task.

A worker that may not commit gives its change back as a patch or as files. What it makes of the tree is looked
at, not what it says: each path must be inside the task's claims and the worker's role, whatever the patch
calls itself. Only then is it committed, under the task's identity. Handing in the same again changes nothing.
"""

from __future__ import annotations

from landlane.errors import NotAllowed, RepositoryError, Stale
from landlane.git import trial_merge as trials
from landlane.git.ancestry import is_ancestor
from landlane.git.run import run_in, try_git_output
from landlane.git.target import commit_at
from landlane.git.trailers import find_forged_trailer, with_trailers
from landlane.git.tree_diff import diff_trees
from landlane.roles.model import forbidden, why_not_verb
from landlane.sessions.leases import renew_session
from landlane.tasks.records import owned
from landlane.values import value
from landlane.workers.returned import apply as returned
from landlane.workers.returned.check import Returner, judge, judge_unclaimed, watched
from landlane.workspaces.commit import Made, tell_journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.git.discovery import Checkout
    from landlane.git.trailers import Trailers
    from landlane.git.tree_diff import TreeChange
    from landlane.protocol.worker.messages import WorkComplete
    from landlane.repository import Repository
    from landlane.roles.model import Role
    from landlane.sessions.model import Session
    from landlane.tasks.model import Task


_LONGEST_SUMMARY = 4_000
_ATTEMPTS = 3


def hand_in(
    repo: Repository,
    session: Session,
    task: Task,
    role: Role,
    base: str,
    complete: WorkComplete,
    scratch: str,
) -> str:
    """Bring what a worker returned onto the branch of its task, and tell the head; nothing: nothing changed.

    `base` is the commit that the worker's checkout stood on, `scratch` the folder that its files lie in. Of a
    worker that commits by itself, the branch must have been brought home already.

    Raises:
        NotAllowed: the change does not fit, is unsafe, or leaves the task's claims or the worker's role.
        Held: another session holds one of its paths.
        Stale: the task is not the session's any more, a lease is over, or the branch has moved on.
        RepositoryError: the branch is checked out somewhere, or git fails.
    """
    renew_session(repo.store, session)
    who = Returner(repo=repo, session=session, task=task, role=role)
    check_still_ours(who)
    if complete.patch is None and complete.files is None:
        return _committed(who, base, complete.commit or "")
    way = _Way(branch=task.branch, judge=judge, check=check_still_ours)
    return _lay(who, way, base, complete, scratch)


def keep_returned(
    repo: Repository,
    session: Session,
    task: Task,
    role: Role,
    base: str,
    complete: WorkComplete,
    scratch: str,
    *,
    branch: str,
) -> str:
    """Keep what a worker returned that cannot be handed in now on a branch, and tell its head.

    So it is while a person is asked, or when the task went on elsewhere: the claims are not the session's
    then. Nothing is proved or landed by it. Whoever goes on is told of the branch, and what is taken from
    there is judged as any change.

    Raises:
        NotAllowed: the change does not fit, is unsafe, or leaves the worker's role.
        Stale: something else is on the branch.
        RepositoryError: the branch is checked out somewhere, or git fails.
    """
    if complete.patch is None and complete.files is None:
        return ""
    who = Returner(repo=repo, session=session, task=task, role=role)
    way = _Way(branch=branch, judge=judge_unclaimed, check=lambda _: None)
    return _lay(who, way, base, complete, scratch)


@value
class _Way:
    """Where a change goes, by what it is judged, and what must still be so when it is there."""

    branch: str
    judge: Callable[[Returner, Checkout, str, Sequence[TreeChange]], Trailers]
    check: Callable[[Returner], None]


def _lay(who: Returner, way: _Way, base: str, complete: WorkComplete, scratch: str) -> str:
    """Lay what was returned on a bench, and commit it from there."""
    with returned.open_bench(who.repo.home, base) as bench:
        with watched(who):
            if complete.patch is not None:
                tree = returned.tree_with_patch(bench, complete.patch)
            else:
                tree = returned.tree_with_files(bench, complete.files or (), scratch)
        changes = diff_trees(bench, base, tree)
        return _commit(who, way, bench, base, tree, changes, complete.summary) if changes else ""


def check_still_ours(who: Returner) -> None:
    """Refuse whoever lost the task meanwhile, or has it in another attempt.

    Raises:
        Stale: so it is.
    """
    task = who.task
    now = who.repo.change(lambda tx: owned(tx, who.session, task.id))
    if now.attempt != task.attempt:
        raise Stale(
            f"{task.id} is in its attempt {now.attempt} by now; this is attempt {task.attempt}",
            code="TASK_NOT_YOURS",
            hint="what was done stays in the branch of its own attempt",
            state=now.state,
        )


def _committed(who: Returner, base: str, commit: str) -> str:
    """The head of a branch that a worker committed on by itself; nothing when it has not."""
    task, role, home = who.task, who.role, who.repo.home
    reason = why_not_verb(role, "commit")
    if reason and commit:
        raise forbidden(
            who.session.agent, role.name, f"{reason}: it hands its change in as a patch or as files"
        )
    head = commit_at(home, f"refs/heads/{task.branch}")
    if not commit:
        return "" if reason or not _differs(who, base, head) else head
    if not head or not is_ancestor(home, commit, head):
        raise NotAllowed(
            f"{commit[:12]} is not on {task.branch}",
            code="CHANGE_UNFIT",
            hint=f"commit the work there, in the checkout that was given: git switch {task.branch}",
            branch=task.branch,
            paths=[],
        )
    return head if _differs(who, base, head) else ""


def _differs(who: Returner, base: str, head: str) -> bool:
    """Whether a branch brings anything; one may commit nothing, or take everything back."""
    if head == base or not head:
        return False
    return bool(run_in(who.repo.home, "diff-tree", "--quiet", base, head).exit_code)


def _commit(
    who: Returner,
    way: _Way,
    bench: Checkout,
    base: str,
    tree: str,
    changes: Sequence[TreeChange],
    summary: str,
) -> str:
    """Judge a change that lies on the bench, and commit it."""
    home = who.repo.home
    trailers = way.judge(who, bench, tree, changes)
    message = with_trailers(_message_of(who.task, summary), trailers)
    committer = trials.find_committer(home)
    trouble = ""
    for _ in range(_ATTEMPTS):
        before, same = _look_at_branch(home, way.branch, base, tree)
        if same:
            return same
        commit = trials.create_commit(bench, tree, [base], message, committer=committer)
        way.check(who)  # judging may have taken its time
        trouble = returned.bring_home(home, bench, way.branch, commit, before)
        if not trouble:
            _tell(who, way.branch, commit, changes, trailers)
            return commit
    raise _moved(way.branch, trouble)


def _message_of(task: Task, summary: str) -> str:
    """The title of the task, and what the worker said of its work, without lines that only we write."""
    lines = [
        "".join(letter for letter in line if letter.isprintable() or letter == "\t")
        for line in summary[:_LONGEST_SUMMARY].split("\n")
    ]
    said = "\n".join(line.rstrip() for line in lines if not find_forged_trailer(line)).strip()
    return f"{task.title}\n\n{said}\n" if said and said != task.title else f"{task.title}\n"


def _look_at_branch(home: Checkout, branch: str, base: str, tree: str) -> tuple[str, str]:
    """Where the branch is before, if it is there; and its head when exactly this was handed in already.

    Raises:
        Stale: something else was committed there.
        RepositoryError: somebody stands on it.
    """
    ref = f"refs/heads/{branch}"
    form = "--format=%(objectname) %(tree) %(parent)%00%(worktreepath)"
    facts, _, place = try_git_output(home, "for-each-ref", form, ref).partition("\0")
    if not facts:
        return "", ""
    head, head_tree, *parents = facts.split(" ")
    if head_tree == tree and parents == [base]:
        return head, head
    if place:
        raise RepositoryError(
            f"{branch} is checked out at {place}: nothing can be handed in there",
            code="BRANCH_IN_USE",
            hint=f"commit the work in {place}, or close that workspace",
        )
    if head != base:
        raise _moved(branch, f"it is at {head[:12]}, not at {base[:12]}")
    return head, ""


def _moved(branch: str, why: str) -> Stale:
    return Stale(
        f"{branch} has moved on: {why[:300]}",
        code="BRANCH_MOVED",
        hint=f"somebody else committed there; look: git log {branch}",
        branch=branch,
    )


def _tell(who: Returner, branch: str, commit: str, changes: Sequence[TreeChange], trailers: Trailers) -> None:
    made = Made(
        commit=commit,
        branch=branch,
        subject=who.task.title,
        paths=tuple(change.path for change in changes),
        trailers=trailers,
    )
    tell_journal(who.repo, who.session, made)
