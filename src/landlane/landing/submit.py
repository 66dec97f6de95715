"""Submit a branch to the landing queue: verify the evidence, keep its head, add the entry with its claims."""

from __future__ import annotations

import re

from landlane.claims.check import needs_no_claim
from landlane.errors import LandlaneError, Malformed, NotAllowed, RepositoryError
from landlane.git import create_checkout as checkouts
from landlane.git import trial_merge as trials
from landlane.git.commits import is_ancestor, merge_base
from landlane.git.run import git_output, run_in, try_git_output
from landlane.git.target import (
    commit_at,
    drop_submitted,
    fetch_commit,
    fetch_target,
    find_target,
    keep_submitted,
)
from landlane.git.tree_diff import list_changed_paths
from landlane.landing.combine import merge_rule_for
from landlane.landing.enqueue import Submission, enqueue
from landlane.landing.model import LANDED, QUEUED, TESTING
from landlane.landing.records import list_landings
from landlane.landing.target_rules import (
    check_author,
    find_gate_of_branch,
    settings_at,
    unidentified_commits,
)
from landlane.reviews.records import commit_under_review
from landlane.rules.violations import CLAIM_CODES, CLAIM_FIRST, Watched
from landlane.tasks.evidence import complete_task
from landlane.tasks.model import DONE, LANDING, REPORTED, REVIEW
from landlane.tasks.records import get_task
from landlane.tasks.worker_paths import bound_task
from landlane.text import nearest_word, printable
from landlane.values import as_dict, replace, value
from landlane.workspaces.fix_unauthorized_writes import refuse_breached
from landlane.workspaces.model import CLONE
from landlane.workspaces.records import list_local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from landlane.git.target import TargetBranch
    from landlane.landing.model import Landing
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.settings.model import Settings
    from landlane.tasks.model import Task


_TASK_BRANCH = re.compile(r"landlane/(?P<task>[^/]+)-\d+/work")


@value
class Submitted:
    """A queue entry, and whether it is new."""

    landing: Landing
    is_new: bool


def submit_branch(
    repo: Repository,
    session: Session,
    branch: str,
    task_id: str,
    *,
    expect: Mapping[str, int] | None = None,
) -> Submitted:
    """Submit a branch to the queue.

    `expect` are the versions of shared keys that it is based on: they are judged now, and again in the
    transaction in which the target is about to move.

    Raises:
        Malformed: it is the target itself.
        RepositoryError: there is no such branch, it is empty, or it has no common ancestor with the target.
        Stale: a key that it expects has another version.
        NotAllowed: its evidence is missing, or it changes paths that its author has not claimed
            or its role may not change.
    """
    target = find_target(repo.home, repo.settings)
    name = (branch or _current_branch(repo)).removeprefix("refs/heads/")
    if name == target.branch:
        raise _target_branch_error(name)
    _fetch_clone_commits(repo, name)
    task_branch = _TASK_BRANCH.fullmatch(name)
    task = task_id or (task_branch["task"] if task_branch else "")
    head = _find_head(repo, task, name, commit_at(repo.home, f"refs/heads/{name}"))
    if not head:
        raise _unknown_branch(repo, target, name)
    trouble = fetch_target(repo.home, target)
    if trouble:
        repo.report(f"cannot reach {target.remote} now ({trouble}); the queue tries again")
    try:
        submission = _describe(repo, session, target, name, head, task)
    except RepositoryError as error:
        known = _find_entry(repo, target, name, head) if error.code == "EMPTY_BRANCH" else None
        if known is None:
            raise
        return Submitted(landing=known, is_new=False)
    submission = replace(submission, expects=expect or {})
    refuse_breached(repo, session, submission.paths)
    _warn_about_uncommitted(repo, name)
    if task:
        _verify_evidence(repo, session, task, head)
    keep_submitted(repo.home, target, head, is_shared=repo.store.is_shared)
    try:
        with Watched(repo=repo, session=session, rule=CLAIM_FIRST, guard="land", codes=CLAIM_CODES):
            landing, is_new = _enqueue_once(repo, session, target, submission)
    except LandlaneError:
        if not any(landing.head == head for landing in list_landings(repo)):
            drop_submitted(repo.home, target, head, is_shared=repo.store.is_shared)
        raise
    return Submitted(landing=landing, is_new=is_new)


def _enqueue_once(
    repo: Repository, session: Session, target: TargetBranch, submission: Submission
) -> tuple[Landing, bool]:
    """Add a branch to the queue; if it has landed since it was looked at, return that entry."""
    try:
        return enqueue(repo, session, submission)
    except LandlaneError:
        known = _find_entry(repo, target, submission.branch, submission.head)
        if known is None:
            raise
        return known, False


def _unknown_branch(repo: Repository, target: TargetBranch, name: str) -> RepositoryError:
    """Return the error for a branch that does not exist; the id of a task may be meant for its branch."""
    names = git_output(repo.home, "for-each-ref", "--format=%(refname:short)", "refs/heads").splitlines()
    names = [one for one in names if one != target.branch]
    of_task = [one for one in names if one.startswith(f"landlane/{name.upper()}-")]
    meant = of_task[-1] if of_task else nearest_word(name, names)
    facts = {"unknown": name, "meant": meant} if meant else {}
    return RepositoryError(
        f"no branch {name[:200]}", code="UNKNOWN_BRANCH", hint="list them: git branch", **facts
    )


def _target_branch_error(branch: str) -> Malformed:
    return Malformed(
        f"{branch} is the target; land another branch onto it",
        code="TARGET_ITSELF",
        hint="git switch -c my-change",
    )


def _find_entry(repo: Repository, target: TargetBranch, branch: str, head: str) -> Landing | None:
    """Return the entry with which exactly this head landed, if the target still contains it.

    If the runner was killed right after it moved the target, the entry is still open; the next one ends it.
    """
    for landing in reversed(list_landings(repo, (QUEUED, TESTING, LANDED))):
        is_same = (landing.branch, landing.head, landing.target) == (branch, head, target.branch)
        if is_same and (
            landing.is_open or is_ancestor(repo.home, landing.commit, target.remote_ref or target.ref)
        ):
            return landing
    return None


def _current_branch(repo: Repository) -> str:
    branch = try_git_output(repo.checkout, "symbolic-ref", "--quiet", "--short", "HEAD")
    if not branch:
        raise Malformed(
            "this checkout is not on a branch", code="NO_BRANCH", hint="create one: git switch -c my-change"
        )
    return branch


def _warn_about_uncommitted(repo: Repository, branch: str) -> None:
    """Report uncommitted changes, which are not submitted."""
    if try_git_output(repo.checkout, "symbolic-ref", "--quiet", "--short", "HEAD") != branch:
        return
    uncommitted = [line[3:] for line in try_git_output(repo.checkout, "status", "--porcelain").splitlines()]
    if uncommitted:
        more = f" and {len(uncommitted) - 3} more" if len(uncommitted) > 3 else ""
        repo.report(f"! uncommitted changes do not land: {', '.join(uncommitted[:3])}{more}")


def _fetch_clone_commits(repo: Repository, branch: str) -> None:
    """Fetch commits of a branch that were made in a clone workspace."""
    if repo.checkout.home:
        checkouts.fetch_clone_branch(repo.home, repo.checkout.root, branch)
        return
    for workspace in list_local(repo):
        if workspace.branch == branch and workspace.kind == CLONE:
            checkouts.fetch_clone_branch(repo.home, workspace.path, branch)


def is_commit_available(repo: Repository, head: str, *, is_offline: bool = False) -> bool:
    """Return whether a verified commit is in this clone, after fetching it if another machine shared it."""
    target = find_target(repo.home, repo.settings)
    return fetch_commit(
        repo.home, replace(target, remote="") if is_offline else target, head, is_submitted=False
    )


def why_commit_unavailable(repo: Repository, head: str) -> str:
    """Return why a verified commit cannot be landed from this clone; empty if it can."""
    try:
        return "" if is_commit_available(repo, head) else "it is in another clone, which lands it"
    except RepositoryError as error:
        return error.message


def fetch_reviewed_commit(repo: Repository, task: Task) -> str:
    """Fetch the commit under review if another machine made it; return an error text if that fails."""
    try:
        head = commit_under_review(repo, task)
        if not head or is_commit_available(repo.require_git(), head):
            return ""
    except LandlaneError as error:
        return error.message  # the reviewer can take the task nevertheless
    return f"{head[:8]} of {task.id} is not in this clone: review it where it was made"


def _find_head(repo: Repository, task_id: str, branch: str, head: str) -> str:
    """Return the head of a branch; create the branch if its task was verified on another machine."""
    if head or not task_id:
        return head
    try:
        task = get_task(repo, task_id)
    except Malformed:
        return ""
    is_verified = task.state in (REPORTED, LANDING) and task.branch == branch and task.head
    if not is_verified or not is_commit_available(repo, task.head):
        return ""
    run_in(repo.home, "update-ref", f"refs/heads/{branch}", task.head, "0" * len(task.head))
    return commit_at(repo.home, f"refs/heads/{branch}")


def fetch_task_commits(repo: Repository, task_id: str) -> None:
    """Fetch the commits that were made for a task in clone workspaces of this machine, as evidence.

    Raises:
        RepositoryError: an object in the clone is damaged.
    """
    for workspace in list_local(repo):
        if workspace.task == task_id and workspace.kind == CLONE:
            checkouts.fetch_clone_branch(repo.home, workspace.path, workspace.branch)


def _verify_evidence(repo: Repository, session: Session, task_id: str, head: str) -> None:
    """Verify the task on exactly this head.

    Raises:
        NotAllowed: evidence is missing, or the task waits for its review.
    """
    completion = complete_task(repo, session, task_id)
    task = completion.task
    if task.state == DONE and not task.head:
        return
    missing = completion.missing
    if task.state == REVIEW:
        raise NotAllowed(
            f"{task_id} cannot land before its review: {task.why}",
            code="REVIEW_OPEN",
            hint=task.next_action or f"see where it stands: landlane task show {task_id}",
            task=task_id,
        )
    if missing is not None or task.state not in (LANDING, DONE):
        found = missing.found if missing else f"it is {task.state}"
        raise NotAllowed(
            f"{task_id} has no evidence yet: {found}",
            code="EVIDENCE_MISSING",
            hint=missing.hint if missing else f"see where it stands: landlane task show {task_id}",
            task=task_id,
        )
    if task.head and task.head != head:
        raise NotAllowed(
            f"{task_id} was verified at {task.head[:8]}, and the branch is at {head[:8]}",
            code="EVIDENCE_MISSING",
            hint=f"landlane done {task_id}",
        )


def _describe(
    repo: Repository, session: Session, target: TargetBranch, branch: str, head: str, task: str
) -> Submission:
    """Return the submission of a branch, checked by the rules of the target."""
    home = repo.home
    tip = commit_at(home, target.remote_ref or target.ref)
    if not tip:
        raise RepositoryError(
            f"{target.remote} has no branch {target.branch} to land on",
            code="NO_TARGET",
            hint=f"git push {target.remote} {target.branch}",
        )
    settings = settings_at(repo, target, tip)
    base = merge_base(home, tip, head)
    if not base:
        raise RepositoryError(
            f"{branch} has no common ancestor with {target.branch}",
            code="NO_COMMON_ANCESTOR",
            hint=f"move its commits onto {target.branch}: git rebase --root --onto {target.branch} {branch}",
        )
    paths = [printable(path) for path in list_changed_paths(home, base, head)]
    if not paths:
        raise RepositoryError(
            f"nothing to land: {target.branch} already contains {branch}"
            if base == head
            else f"nothing to land: the commits of {branch} change no file",
            code="EMPTY_BRANCH",
            hint="anything uncommitted? git status --short",
        )
    check_author(repo, session, settings, base, head)
    if not task:
        _check_review_paths(repo, settings, paths)
    return Submission(
        branch=branch,
        head=head,
        target=target.branch,
        paths=tuple(paths),
        mergeable=frozenset(path for path in paths if merge_rule_for(repo, settings, path)),
        subject=printable(try_git_output(home, "show", "-s", "--format=%s", head))[:200],
        author=as_dict(trials.read_author(home, head)),
        machine=repo.processes.machine,
        home=repo.common_dir,
        task=task,
        gate=find_gate_of_branch(repo, settings, paths, tip, head),
        # A worker is bound to the paths of its task, whatever needs no claim.
        free=frozenset(
            path
            for path in (paths if bound_task(repo, session) is None else ())
            if needs_no_claim(repo, settings.claims, path)
        ),
        unidentified=tuple(unidentified_commits(repo, tip, head)),
    )


def _check_review_paths(repo: Repository, settings: Settings, paths: Sequence[str]) -> None:
    """Refuse changes of paths that need a review if there is no task to review."""
    for path in paths:
        rule = repo.git.find_glob(settings.review.paths, path)
        if rule:
            raise NotAllowed(
                f"{path} needs a review ([review] paths lists {rule}), and this branch has no task",
                code="REVIEW_NEEDED",
                hint=f"add one, take it and land its branch: landlane task add 'Change {path}' --path {path}",
                paths=[path],
            )


def diff_stat(repo: Repository, head: str) -> str:
    """Return `git diff --stat` of what a commit would change on the target; empty if git fails."""
    target = find_target(repo.home, repo.settings)
    tip = commit_at(repo.home, target.remote_ref or target.ref)
    for checkout in (repo.home, repo.checkout):
        stat = try_git_output(checkout, "diff", "--stat", f"{tip}...{head}")
        if stat:
            return stat.rstrip()
    return ""
