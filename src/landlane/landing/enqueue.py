"""Add an entry to the landing queue, with claims that it holds until it ends (see `outcomes.py`).

A session of the entry's own holds the claims. So the author can leave, expire or crash, and no other session
can change the paths that are being landed. An author who stays keeps its own claims beside those of the
entry; claims made for the entry's task move to the entry, and come back if it is rejected.
"""

from __future__ import annotations

import shlex

from landlane.claims.holder_sessions import FOR_EVER_MS, begin_holder, drop_claims, give_claim
from landlane.claims.model import ClaimMode
from landlane.claims.take import claims_near, claims_of
from landlane.errors import Held, NotAllowed
from landlane.landing.model import HELD, QUEUED, Landing, is_landing_id, name_some
from landlane.landing.records import NOUN, put_landing, read_landings
from landlane.landing.rejected_tasks import check_not_stopped
from landlane.landing.target_rules import lander_role
from landlane.patterns.pattern import areas_of
from landlane.reviews.open import find_required_review
from landlane.reviews.records import is_approved
from landlane.sessions.leases import require_live
from landlane.sessions.model import Claim, SessionKind
from landlane.state.keys import require_states, state_areas
from landlane.store import records
from landlane.tasks.records import find_task, lock_task
from landlane.values import as_dict, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Task


_NO_KEYS: Mapping[str, int] = {}
_NO_AUTHOR: Mapping[str, str] = {}
_MAX_PATHS = 20  # in an error
_MAX_CLAIMED_PATHS = 100


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
    expects: Mapping[str, int] = _NO_KEYS  # versions of shared keys that the branch is based on
    free: frozenset[str] = frozenset()  # the paths that need no claim by the target's settings


def enqueue(repo: Repository, session: Session, submission: Submission) -> tuple[Landing, bool]:
    """Add a branch to the queue with the claims that cover it; also return whether the entry is new.

    Raises:
        NotAllowed: it changes paths that its author has not claimed, or its task is not the author's.
        Held: another session holds some of the paths, or the branch is queued with another head.
        Stale: the session has ended, or a key that it expects has another version.
    """
    patterns = [repo.git.pattern_of(path, "literal") for path in submission.paths]

    def work(tx: Transaction) -> tuple[Landing, bool]:
        author = require_live(tx, session)
        require_states(tx, repo, submission.expects)
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
            and path not in submission.free
        ]
        if uncovered:
            raise _outside_claims_error(tx, author, uncovered, claims)
        _check_reviewed(tx, repo, submission, patterns, claims)
        task = lock_task(tx, submission.task) if submission.task else None
        if task is not None:
            _check_role(tx, repo, author, task, submission.head)
        landing_id = records.next_id(tx, NOUN)
        # Its session has no process and never expires.
        holder = begin_holder(tx, author, landing_id, SessionKind.LANDING)
        fields = as_dict(submission)
        fields |= {"paths": list(submission.paths), "unidentified": list(submission.unidentified)}
        fields["expects"] = {**submission.expects}
        del fields["mergeable"], fields["free"]
        landing = Landing(
            id=landing_id,
            agent=author.agent,
            session=author.id,
            holder=holder.id,
            state=HELD if submission.gate else QUEUED,
            submitted_at=repo.store.wall_of(tx.now),
            role=author.role,  # of its task, unless a worker handed it back and it was checked then
            attempt=task.attempt if task is not None else 0,
            reason=submission.gate,
            **fields,
        )
        _give_claims_to_entry(tx, repo, holder, landing, patterns, claims)
        put_landing(tx, landing, "submitted", author)
        tx.has_freed = True
        return landing, True

    return repo.change(
        work, areas={**areas_of(patterns), **state_areas(submission.expects), "//landings": True}
    )


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
        if find_required_review(repo, task, task.kind) is not None and not is_approved(
            tx, task, submission.head
        ):
            raise NotAllowed(
                f"{submission.branch} changes what was claimed for {task_id},"
                " which is reviewed before it lands",
                code="REVIEW_NEEDED",
                hint=f"commit it on {task.branch}, then: landlane done {task_id}",
                task=task_id,
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
    attempts = records.find_by_key(tx, "attempt", task.id)
    wanted = (task.attempt, task.role, head)
    return not session.role and any((one["attempt"], one["role"], one["head"]) == wanted for one in attempts)


def _outside_claims_error(
    tx: Snapshot, session: Session, uncovered: Sequence[Pattern], claims: Sequence[Claim]
) -> NotAllowed | Held:
    paths = [pattern.text for pattern in uncovered]
    some = name_some(paths)
    for pattern in uncovered:
        for claim in claims_near(tx, pattern.alternatives, session.id):
            is_another = claim.session != session.id and not claim.is_over(tx.now)
            if is_another and claim.covers(pattern):
                return _claim_held_error(pattern, claim, paths)
    if any(is_covered(claims, pattern, is_mergeable=True) for pattern in uncovered):
        return NotAllowed(
            f"{session.agent} holds only a share of {some}, which is not mergeable",
            code="OUTSIDE_CLAIMS",
            hint="claim it exclusively, or list it in [landing.merge.files] in the target's landlane.toml",
            paths=paths[:_MAX_PATHS],
        )
    return NotAllowed(
        f"the branch changes paths that {session.agent} has not claimed: {some}",
        code="OUTSIDE_CLAIMS",
        hint=_claim_command(paths),
        paths=paths[:_MAX_PATHS],
    )


def _claim_command(paths: Sequence[str]) -> str:
    """Return the command that claims paths; a name that is not valid text needs a wider claim."""
    wider = [f"{path.rpartition('/')[0]}/**".lstrip("/") if "\ufffd" in path else path for path in paths]
    return f"landlane claim {shlex.join(dict.fromkeys(wider))}"


def _claim_held_error(pattern: Pattern, claim: Claim, paths: Sequence[str]) -> Held:
    """Return the error for a path that another session holds: an agent's, or that of an entry."""
    return Held(
        f"the branch changes {pattern.text}, which {claim.agent} holds",
        code="CLAIM_HELD",
        hint=f"it is on its way ({claim.note}): wait until that has landed, claim the path, and submit again"
        if is_landing_id(claim.agent)
        else f"take that change out, or ask {claim.agent}; then claim it and submit again",
        holder=claim.agent,
        paths=list(paths[:_MAX_PATHS]),
    )


def is_covered(claims: Sequence[Claim], pattern: Pattern, *, is_mergeable: bool) -> bool:
    """Return whether one of these claims allows to change a path; a shared one only if it is mergeable."""
    return any(
        claim.covers(pattern) and (claim.mode == ClaimMode.EXCLUSIVE or is_mergeable) for claim in claims
    )


def _give_claims_to_entry(
    tx: Transaction,
    repo: Repository,
    holder: Session,
    landing: Landing,
    patterns: Sequence[Pattern],
    claims: Sequence[Claim],
) -> None:
    """Move the author's claims for the entry's task to the entry, and claim its other paths one by one."""
    note = f"{landing.id}: {landing.branch} of {landing.agent}"

    def give(pattern: Pattern, mode: ClaimMode) -> None:
        give_claim(tx, holder, pattern, mode, FOR_EVER_MS, task=landing.task, note=note)

    moved = [claim for claim in claims if landing.task and claim.task == landing.task]
    rest = [pattern for pattern in patterns if not is_covered(moved, pattern, is_mergeable=True)]
    copied: list[Claim] = []
    if len(rest) > _MAX_CLAIMED_PATHS:  # fewer claims cover the same paths if the author's are copied
        copied = [c for c in claims if c not in moved and any(c.covers(pattern) for pattern in rest)]
        rest = []
    drop_claims(tx, moved)
    for claim in (*moved, *copied):
        give(repo.git.pattern_of(claim.pattern, claim.kind), claim.mode)
    for pattern in rest:
        modes = {claim.mode for claim in claims if claim.covers(pattern)}
        if modes:
            give(pattern, ClaimMode.SHARED if modes == {ClaimMode.SHARED} else ClaimMode.EXCLUSIVE)
