"""Submit a branch: verify the evidence, pin its head, hand its claims to the entry."""

from __future__ import annotations

import re

from landlane.errors import LandlaneError, Malformed, NotAllowed, RepositoryError
from landlane.git import create_checkout as checkouts
from landlane.git import pins
from landlane.git import trial_merge as trials
from landlane.git.ancestry import merge_base
from landlane.git.run import run_in, try_git_output
from landlane.git.target import commit_at, fetch_target, find_target
from landlane.git.tree_diff import list_changed_paths
from landlane.landing import move_target as advancing
from landlane.landing.combine import merge_rule_for, merge_rules
from landlane.landing.enqueue import Submission, submit
from landlane.landing.model import LANDED
from landlane.landing.records import list_landings
from landlane.landing.role_check import check_author, unidentified_commits
from landlane.landing.target_settings import gate_for, settings_at
from landlane.patterns.pattern import covers_alternative
from landlane.reviews.give_verdict import commit_under_review
from landlane.rules.violations import CLAIM_CODES, CLAIM_FIRST, Watched
from landlane.tasks.evidence import complete_task
from landlane.tasks.model import DONE, LANDING, REPORTED, REVIEW
from landlane.tasks.records import get_task
from landlane.values import as_dict, replace, value
from landlane.workspaces.fix_unauthorized_writes import refuse_breached
from landlane.workspaces.model import CLONE
from landlane.workspaces.records import is_here, list_workspaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.git.target import TargetBranch
    from landlane.landing.model import Landing
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.settings.model import Settings
    from landlane.tasks.model import Task


_TASK_BRANCH = re.compile(r"landlane/(?P<task>[^/]+)-\d+/work")


@value
class Submitted:
    """An entry, and whether it is new."""

    landing: Landing
    is_new: bool


def submit_branch(repo: Repository, session: Session, branch: str, task_id: str) -> Submitted:
    """Enter a branch into the queue.

    Raises:
        RepositoryError: there is no such branch, or it shares nothing with the target.
        NotAllowed: it is empty, its evidence is missing, or it changes what its author does not hold or
            its role may not change.
    """
    target = find_target(repo.home, repo.settings)
    named = (branch or _current_branch(repo)).removeprefix("refs/heads/")
    if named == target.branch:
        raise _target_itself(repo, named)
    _bring_home(repo, named)
    task = task_id or _task_of(named)
    head = _bring_proved(repo, task, named, commit_at(repo.home, f"refs/heads/{named}"))
    if not head:
        raise RepositoryError(
            f"there is no branch {named[:200]!r}",
            code="UNKNOWN_BRANCH",
            hint="`git branch` shows those there are",
        )
    trouble = fetch_target(repo.home, target)
    if trouble:
        repo.report(f"{target.remote} cannot be reached now ({trouble}); the queue will ask again")
    try:
        wish = _describe(repo, session, target, named, head, task)
    except NotAllowed as error:
        landed = _landed_before(repo, target, named, head) if error.code == "EMPTY_BRANCH" else None
        if landed is None:
            raise
        return Submitted(landing=landed, is_new=False)
    refuse_breached(repo, session, wish.paths)
    _tell_of_rest(repo, named)
    if task:
        _see_evidence(repo, session, task, head)
    pins.pin_submitted(repo.home, target, head, is_shared=repo.store.is_shared)
    try:
        with Watched(repo=repo, session=session, rule=CLAIM_FIRST, guard="land", codes=CLAIM_CODES):
            landing, is_new = submit(repo, session, wish, repo.wall_ms())
    except LandlaneError:
        if not any(one.head == head for one in list_landings(repo)):
            pins.unpin_submitted(repo.home, target, head, is_shared=repo.store.is_shared)
        raise
    return Submitted(landing=landing, is_new=is_new)


def _target_itself(repo: Repository, branch: str) -> NotAllowed:
    hint = "commit on a branch of your own: landlane workspace open TASK, or git switch -c BRANCH"
    if not repo.settings.landing.target:
        hint += "; if work should land elsewhere, say so under [landing] target in landlane.toml"
    return NotAllowed(f"{branch} is the target branch itself", code="TARGET_ITSELF", hint=hint)


def _landed_before(repo: Repository, target: TargetBranch, branch: str, head: str) -> Landing | None:
    """The entry with which exactly this has landed, if it is on the target: asking again is no mistake."""
    for one in reversed(list_landings(repo, (LANDED,))):
        is_same = (one.branch, one.head, one.target) == (branch, head, target.branch)
        if is_same and advancing.is_in(repo.home, one.commit, target.remote_ref or target.ref):
            return one
    return None


def _current_branch(repo: Repository) -> str:
    branch = try_git_output(repo.checkout, "symbolic-ref", "--quiet", "--short", "HEAD")
    if not branch:
        raise Malformed(
            "this checkout is on no branch", code="NO_BRANCH", hint="name the branch: landlane land BRANCH"
        )
    return branch


def _tell_of_rest(repo: Repository, branch: str) -> None:
    """Say that what is in no commit stays out; whoever forgot it can still eject the entry."""
    if try_git_output(repo.checkout, "symbolic-ref", "--quiet", "--short", "HEAD") != branch:
        return
    rest = [line[3:] for line in try_git_output(repo.checkout, "status", "--porcelain").splitlines()]
    if rest:
        named = ", ".join(rest[:3]) + (f" and {len(rest) - 3} more" if len(rest) > 3 else "")
        repo.report(f"only what is committed is submitted; not {named}")


def _task_of(branch: str) -> str:
    found = _TASK_BRANCH.fullmatch(branch)
    return found["task"] if found else ""


def _bring_home(repo: Repository, branch: str) -> None:
    """What was committed in a clone must be here before it can land."""
    if repo.checkout.home:
        checkouts.fetch_clone_branch(repo.home, repo.checkout.root, branch)
        return
    for one in list_workspaces(repo):
        if one.branch == branch and one.kind == CLONE and is_here(repo, one, repo.common_dir):
            checkouts.fetch_clone_branch(repo.home, one.path, branch)


def is_within_reach(repo: Repository, head: str, *, is_offline: bool = False) -> bool:
    """Whether a proved commit is here: what another machine proved is fetched from where it was shared."""
    target = find_target(repo.home, repo.settings)
    return pins.ensure_commit(
        repo.home, replace(target, remote="") if is_offline else target, head, is_entered=False
    )


def why_out_of_reach(repo: Repository, head: str) -> str:
    """Why a proved commit cannot be landed from here; empty when it can. Nobody is to blame for that."""
    try:
        return "" if is_within_reach(repo, head) else "it lands from where it is"
    except RepositoryError as error:
        return error.message


def bring_reviewed(repo: Repository, task: Task) -> str:
    """Fetch the commit that a reviewer's task is about, if another machine made it; tells what is missing."""
    try:
        head = commit_under_review(repo, task)
        if not head or is_within_reach(repo.require_git(), head):
            return ""
    except LandlaneError as error:
        return error.message  # the task is taken all the same
    return f"{head[:12]}, which {task.id} is about, is not here: review it where it was made"


def _bring_proved(repo: Repository, task_id: str, branch: str, head: str) -> str:
    """The head of a branch. One that was proved on another machine is made here as it was proved there."""
    if head or not task_id:
        return head
    try:
        task = get_task(repo, task_id)
    except Malformed:
        return ""
    is_meant = task.state in (REPORTED, LANDING) and task.branch == branch and task.head
    if not is_meant or not is_within_reach(repo, task.head):
        return ""
    run_in(repo.home, "update-ref", f"refs/heads/{branch}", task.head, "0" * len(task.head))
    return commit_at(repo.home, f"refs/heads/{branch}")


def bring_task_home(repo: Repository, task_id: str) -> None:
    """Fetch what was committed for a task in clones on this machine, so that it can be seen as evidence.

    Raises:
        RepositoryError: what is there does not hash to what it says.
    """
    clones = [one for one in list_workspaces(repo) if one.task == task_id and one.kind == CLONE]
    for one in clones:
        if is_here(repo, one, repo.common_dir):
            checkouts.fetch_clone_branch(repo.home, one.path, one.branch)


def _see_evidence(repo: Repository, session: Session, task_id: str, head: str) -> None:
    """The task must be proved on exactly this head.

    Raises:
        NotAllowed: something is missing, and is named.
    """
    completion = complete_task(repo, session, task_id, on_step=lambda name: repo.report(f"evidence: {name}"))
    task = completion.task
    if task.state == DONE and not task.head:
        return
    missing = completion.missing
    if task.state == REVIEW:
        raise NotAllowed(
            f"{task_id} cannot land before its review: {task.why}",
            code="REVIEW_OPEN",
            hint=task.next_action or f"`landlane task show {task_id}` tells more",
            task=task_id,
        )
    if missing is not None or task.state not in (LANDING, DONE):
        found = missing.found if missing else f"it is {task.state}"
        raise NotAllowed(
            f"{task_id} is not proved: {found}",
            code="EVIDENCE_MISSING",
            hint=missing.hint if missing else f"`landlane task show {task_id}` tells more",
            task=task_id,
        )
    if task.head and task.head != head:
        raise NotAllowed(
            f"{task_id} was proved at {task.head[:12]}, and the branch is at {head[:12]}",
            code="EVIDENCE_MISSING",
            hint=f"landlane done {task_id}, then land again",
        )


def _describe(
    repo: Repository, session: Session, target: TargetBranch, branch: str, head: str, task: str
) -> Submission:
    """What the queue has to know of a branch, judged by the rules of the target."""
    home = repo.home
    tip = commit_at(home, target.remote_ref or target.ref)
    if not tip:
        raise RepositoryError(
            f"{target.remote} has no {target.branch} yet, and that is where work lands",
            code="NO_TARGET",
            hint=f'git push {target.remote} {target.branch}; or [landing] remote = "none" to land here',
        )
    settings = settings_at(repo, target, tip)
    base = merge_base(home, tip, head)
    if not base:
        raise RepositoryError(
            f"{branch} has no common ancestor with {target.branch}",
            code="NO_COMMON_ANCESTOR",
            hint=f"begin it from {target.branch}, and bring the work there",
        )
    paths = [as_text(path) for path in list_changed_paths(home, base, head)]
    if not paths:
        what = "has all of it already" if base == head else "would not change by it"
        raise NotAllowed(
            f"{branch} brings nothing: {target.branch} {what}",
            code="EMPTY_BRANCH",
            hint="commit the work there first: landlane commit",
        )
    check_author(repo, session, settings, base, head)
    if not task:
        _check_reviewed(repo, settings, paths)
    classes = merge_rules(settings)
    return Submission(
        branch=branch,
        head=head,
        target=target.branch,
        paths=tuple(paths),
        mergeable=frozenset(path for path in paths if merge_rule_for(repo, classes, path)),
        subject=as_text(try_git_output(home, "show", "-s", "--format=%s", head))[:200],
        author=as_dict(trials.read_author(home, head)),
        machine=repo.processes.machine,
        home=repo.common_dir,
        task=task,
        gate=gate_for(repo, settings, paths),
        free=settings.claims.free,
        unidentified=tuple(unidentified_commits(repo, tip, head)),
    )


def _check_reviewed(repo: Repository, settings: Settings, paths: Sequence[str]) -> None:
    """Refuse what changes paths that need a review, without a task that could be reviewed."""
    pattern_of = repo.git.pattern_of
    asked = [(text, one) for text in settings.review.paths for one in pattern_of(text, "glob").alternatives]
    for path in paths if asked else ():
        (branch,) = pattern_of(path, "literal").alternatives
        rule = next((text for text, one in asked if covers_alternative(one, branch)), "")
        if rule:
            raise NotAllowed(
                f"{path} is not changed without a review ([review] paths has {rule}), and there is no task",
                code="REVIEW_NEEDED",
                hint=f"landlane task add 'what it is about' --path {path}; take it, and land its branch",
                paths=[path],
            )


def as_text(name: str) -> str:
    """A name or message as text; bytes that are none are replaced: only a wider claim covers such a path."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def stat_of(repo: Repository, head: str) -> str:
    """What a commit would bring to the target, file by file; nothing when git cannot tell."""
    target = find_target(repo.home, repo.settings)
    tip = commit_at(repo.home, target.remote_ref or target.ref)
    places = (repo.home, repo.checkout)
    return next(
        (said for place in places if (said := try_git_output(place, "diff", "--stat", f"{tip}...{head}"))), ""
    )


def show_commits(repo: Repository, landing: Landing) -> str:
    """What an entry would bring, for a person who decides."""
    target = find_target(repo.home, repo.settings)
    tip = commit_at(repo.home, target.remote_ref or target.ref)
    return run_in(repo.home, "diff", "--stat", f"{tip}...{landing.head}").stdout.rstrip()
