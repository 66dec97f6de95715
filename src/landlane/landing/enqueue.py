"""Add an entry to the landing queue with its claims, in one transaction."""

from __future__ import annotations

from landlane.claims.read import claims_near, claims_of
from landlane.errors import Held, NotAllowed
from landlane.landing.entry_claims import give_claims_to_entry, is_covered, start_entry_session
from landlane.landing.model import HELD, QUEUED, Landing, landing_id_of, name_some
from landlane.landing.records import NOUN, read_landings
from landlane.landing.rejected_tasks import check_not_stopped
from landlane.landing.target_rules import lander_role
from landlane.patterns.pattern import Alternative, areas_of, covers_alternative
from landlane.reviews.open import step_for
from landlane.reviews.records import is_approved
from landlane.sessions.leases import require_live
from landlane.sessions.model import Claim
from landlane.store import records
from landlane.tasks.records import find_task, get_in
from landlane.values import as_dict, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Task


_NO_AUTHOR: Mapping[str, str] = {}
_MAX_PATHS = 20


@value
class Submission:
    """A branch to be added to the queue."""

    branch: str
    head: str
    target: str
    paths: tuple[str, ...]
    mergeable: frozenset[str]  # the paths for which a shared claim is enough
    subject: str
    machine: str
    home: str
    task: str = ""
    gate: str = ""
    author: Mapping[str, str] = _NO_AUTHOR  # of the head: name, mail, date
    unidentified: tuple[str, ...] = ()  # commits without a known session
    free: tuple[str, ...] = ()  # patterns of the target's settings that need no claim


def enqueue(repo: Repository, session: Session, submission: Submission) -> tuple[Landing, bool]:
    """Add a branch to the queue with the claims that cover it; also return whether the entry is new.

    Raises:
        NotAllowed: it changes paths that its author has not claimed, or its task is not the author's.
        Held: another session holds some of the paths, or the branch is queued with another head.
        Stale: the session has ended.
    """
    patterns = [repo.git.pattern_of(path, "literal") for path in submission.paths]
    free = [glob for text in submission.free for glob in repo.git.pattern_of(text, "glob").alternatives]

    def work(tx: Transaction) -> tuple[Landing, bool]:
        author = require_live(tx, session)
        queued = _find_queued(tx, submission)
        if queued is not None:
            return queued, False
        if not submission.task:
            check_not_stopped(tx, author, submission.branch, submission.target, submission.home)
        claims = claims_of(tx, author.id)
        uncovered = [
            pattern
            for path, pattern in zip(submission.paths, patterns, strict=True)
            if not is_covered(claims, pattern, is_mergeable=path in submission.mergeable)
            and not _is_free(free, pattern)
        ]
        if uncovered:
            raise _outside_claims_error(tx, author, uncovered, claims)
        _check_reviewed(tx, repo, submission, patterns, claims)
        task = get_in(tx, submission.task) if submission.task else None
        if task is not None:
            _check_role(tx, repo, author, task, submission.head)
        landing_id = records.next_id(tx, NOUN)
        holder = start_entry_session(tx, author, landing_id)
        landing = _new_landing(submission, author, holder, landing_id, repo.store.wall_of(tx.now), task)
        give_claims_to_entry(tx, repo, author, holder, landing, patterns, claims)
        records.put(tx, NOUN, as_dict(landing), "submitted", author)
        tx.frees = True
        return landing, True

    return repo.change(work, areas={**areas_of(patterns), "//landings": True})


def _check_reviewed(
    tx: Snapshot,
    repo: Repository,
    submission: Submission,
    patterns: Sequence[Pattern],
    claims: Sequence[Claim],
) -> None:
    """Refuse paths that were claimed for another task that needs a review: they would bypass it."""
    for task_id in dict.fromkeys(claim.task for claim in claims if claim.task not in ("", submission.task)):
        task_claims = [claim for claim in claims if claim.task == task_id]
        task = find_task(tx, task_id)
        is_touched = any(claim.covers(pattern) for claim in task_claims for pattern in patterns)
        if task is None or not is_touched:
            continue
        if step_for(repo, task, task.kind) is not None and not is_approved(tx, task, submission.head):
            raise NotAllowed(
                f"{submission.branch} changes what was claimed for {task_id},"
                " which is reviewed before it lands",
                code="REVIEW_NEEDED",
                hint=f"commit it on {task.branch}, then: landlane done {task_id}",
                task=task_id,
            )


def _new_landing(
    submission: Submission,
    session: Session,
    holder: Session,
    landing_id: str,
    wall_ms: int,
    task: Task | None,
) -> Landing:
    return Landing(
        id=landing_id,
        branch=submission.branch,
        head=submission.head,
        target=submission.target,
        agent=session.agent,
        session=session.id,
        holder=holder.id,
        state=HELD if submission.gate else QUEUED,
        submitted_at=wall_ms,
        machine=submission.machine,
        home=submission.home,
        subject=submission.subject,
        author=dict(submission.author),
        task=submission.task,
        role=session.role,  # of its task, unless a worker handed it back and it was checked then
        unidentified=list(submission.unidentified),
        attempt=task.attempt if task is not None else 0,
        paths=list(submission.paths),
        gate=submission.gate,
        reason=submission.gate,
    )


def _find_queued(tx: Snapshot, submission: Submission) -> Landing | None:
    key = (submission.branch, submission.target, submission.home)
    for landing in read_landings(tx):
        if (landing.branch, landing.target, landing.home) != key:
            continue
        if landing.head == submission.head:
            return landing
        raise Held(
            f"{landing.id} of {landing.agent} has {landing.branch} in the queue already,"
            f" at {landing.head[:12]}",
            code="LANDING_QUEUED",
            hint=f"wait for it, or take it out: landlane queue eject {landing.id}",
            holder=landing.agent,
        )
    return None


def _is_free(free: Sequence[Alternative], pattern: Pattern) -> bool:
    (path,) = pattern.alternatives
    return any(covers_alternative(glob, path) for glob in free)


def _check_role(tx: Snapshot, repo: Repository, session: Session, task: Task, head: str) -> None:
    if task.role and task.role != session.role and not _is_handed_back(tx, repo, session, task, head):
        raise NotAllowed(
            f"{task.id} is for the role {task.role}, and {session.agent} has {session.role or 'none'}",
            code="WRONG_ROLE",
            hint=f"landlane join {session.agent} --role {task.role}, if that is what you are",
        )


def _is_handed_back(tx: Snapshot, repo: Repository, session: Session, task: Task, head: str) -> bool:
    """Return whether a worker whose role does not commit made exactly this head and handed it back.

    It was checked against that role then. Its supervisor submits it, or another process if that one died.
    """
    if lander_role(repo.settings, task):
        return False
    attempts = records.by_key(tx, "attempt", task.id)
    wanted = (task.attempt, task.role, head)
    return not session.role and any((one["attempt"], one["role"], one["head"]) == wanted for one in attempts)


def _outside_claims_error(
    tx: Snapshot, session: Session, uncovered: Sequence[Pattern], claims: Sequence[Claim]
) -> NotAllowed | Held:
    paths = [pattern.text for pattern in uncovered]
    shown = name_some(paths)
    for pattern in uncovered:
        for claim in claims_near(tx, pattern.alternatives, session.id):
            is_another = claim.session != session.id and not claim.is_over(tx.now)
            if is_another and claim.covers(pattern):
                return _claim_held_error(pattern, claim, paths)
    if any(is_covered(claims, pattern, is_mergeable=True) for pattern in uncovered):
        return NotAllowed(
            f"{session.agent} holds only a share of {shown}, which is not mergeable",
            code="OUTSIDE_CLAIMS",
            hint="claim it exclusively, or list it in [landing.merge.files] in the target's landlane.toml",
            paths=paths[:_MAX_PATHS],
        )
    return NotAllowed(
        f"the branch changes what {session.agent} does not hold: {shown}",
        code="OUTSIDE_CLAIMS",
        hint=f"{_claim_command(paths[0])}, or take the change out of the branch",
        paths=paths[:_MAX_PATHS],
    )


def _claim_command(path: str) -> str:
    """Return the command that claims a path; a name that is not valid text needs a wider claim."""
    if "\ufffd" in path:
        folder = path.rpartition("/")[0]
        return f"landlane claim '{folder}/**'" if folder else "landlane claim '**'"
    return f"landlane claim {path}"


def _claim_held_error(pattern: Pattern, claim: Claim, paths: Sequence[str]) -> Held:
    """Another session holds a changed path: an agent that can be asked, or an entry that will land."""
    holder = claim.agent
    hint = f"take that change out, or ask {holder}; then claim it and submit again"
    if landing_id_of(holder):
        hint = (
            f"it is on its way ({claim.note}): wait until that has landed, claim the path, and submit again"
        )
    return Held(
        f"the branch changes {pattern.text}, which {holder} holds",
        code="CLAIM_HELD",
        hint=hint,
        holder=holder,
        paths=list(paths[:_MAX_PATHS]),
    )
