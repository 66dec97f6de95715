"""Add an entry to the landing queue with its claims, in one transaction."""

from __future__ import annotations

from landlane.claims.read import claims_near, claims_of
from landlane.claims.take import living
from landlane.errors import Held, NotAllowed
from landlane.landing.entry_claims import begin_entry_holder, hand_over, is_covered
from landlane.landing.fix_tasks import check_mend
from landlane.landing.model import HELD, OPEN, QUEUED, Landing, holder_name
from landlane.landing.records import NOUN, landing_from
from landlane.landing.role_check import lander_role
from landlane.patterns.pattern import Alternative, covers_alternative
from landlane.reviews.open import step_for
from landlane.reviews.records import is_approved
from landlane.sessions.model import Claim
from landlane.store import records
from landlane.store.lock_areas import areas_of
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


_NOBODY: Mapping[str, str] = {}
_MOST_NAMED = 20
_MOST_SHOWN = 5


@value
class Submission:
    """What an author hands in."""

    branch: str
    head: str
    target: str
    paths: tuple[str, ...]
    mergeable: frozenset[str]  # those of the paths that may be held shared
    subject: str
    machine: str
    home: str
    task: str = ""
    gate: str = ""
    author: Mapping[str, str] = _NOBODY  # who wrote the head
    unidentified: tuple[str, ...] = ()  # commits that no session is known to have made
    free: tuple[str, ...] = ()  # patterns that need no claim, as the target says


def submit(repo: Repository, session: Session, wish: Submission, wall_ms: int) -> tuple[Landing, bool]:
    """Enter a branch into the queue, with the claims that cover it; tells whether it is new.

    Raises:
        NotAllowed: it changes paths that its author does not hold, or its task is another's.
        Held: another holds some of them, or the branch is in the queue with another head.
        Stale: the session is over.
    """
    patterns = [repo.git.pattern_of(path, "literal") for path in wish.paths]
    free = [one for text in wish.free for one in repo.git.pattern_of(text, "glob").alternatives]

    def work(tx: Transaction) -> tuple[Landing, bool]:
        me = living(tx, session)
        there = _already(tx, wish)
        if there is not None:
            return there, False
        if not wish.task:
            check_mend(tx, me, wish.branch, wish.target, wish.home)
        claims = claims_of(tx, me.id)
        uncovered = [
            pattern
            for path, pattern in zip(wish.paths, patterns, strict=True)
            if not is_covered(claims, pattern, is_mergeable=path in wish.mergeable)
            and not _is_free(free, pattern)
        ]
        if uncovered:
            raise _outside(tx, me, uncovered, claims)
        _check_reviewed(tx, repo, wish, patterns, claims)
        task = get_in(tx, wish.task) if wish.task else None
        if task is not None:
            _check_role(tx, repo, me, task, wish.head)
        landing_id = records.next_id(tx, NOUN)
        holder = begin_entry_holder(tx, me, landing_id)
        made = _entry(wish, me, holder, landing_id, wall_ms, task)
        hand_over(tx, repo, me, holder, made, patterns, claims)
        records.put(tx, NOUN, as_dict(made), "submitted", me)
        tx.frees = True
        return made, True

    return repo.change(work, areas={**areas_of(patterns), "//landings": True})


def _check_reviewed(
    tx: Snapshot, repo: Repository, wish: Submission, patterns: Sequence[Pattern], claims: Sequence[Claim]
) -> None:
    """Refuse what was claimed for another task that needs a review: under another name it would pass by."""
    for task_id in dict.fromkeys(claim.task for claim in claims if claim.task not in ("", wish.task)):
        theirs = [claim for claim in claims if claim.task == task_id]
        task = find_task(tx, task_id)
        is_touched = any(claim.covers(pattern) for claim in theirs for pattern in patterns)
        if task is None or not is_touched:
            continue
        if step_for(repo, task, task.kind) is not None and not is_approved(tx, task, wish.head):
            raise NotAllowed(
                f"{wish.branch} changes what was claimed for {task_id}, which is reviewed before it lands",
                code="REVIEW_NEEDED",
                hint=f"commit it on {task.branch}, then: landlane done {task_id}",
                task=task_id,
            )


def _entry(
    wish: Submission, me: Session, holder: Session, landing_id: str, wall_ms: int, task: Task | None
) -> Landing:
    return Landing(
        id=landing_id,
        branch=wish.branch,
        head=wish.head,
        target=wish.target,
        agent=me.agent,
        session=me.id,
        holder=holder.id,
        state=HELD if wish.gate else QUEUED,
        submitted_at=wall_ms,
        machine=wish.machine,
        home=wish.home,
        subject=wish.subject,
        author=dict(wish.author),
        task=wish.task,
        role=me.role,  # that of its task, if it has one, unless it was handed back and judged by it then
        unidentified=list(wish.unidentified),
        attempt=task.attempt if task is not None else 0,
        paths=list(wish.paths),
        gate=wish.gate,
        reason=wish.gate,
    )


def _already(tx: Snapshot, wish: Submission) -> Landing | None:
    for document in records.all_of(tx, NOUN, OPEN):
        one = landing_from(document)
        if (one.branch, one.target, one.home) != (wish.branch, wish.target, wish.home):
            continue
        if one.head == wish.head:
            return one
        raise Held(
            f"{one.id} of {one.agent} has {wish.branch} in the queue already, at {one.head[:12]}",
            code="LANDING_QUEUED",
            hint=f"wait for it, or take it out: landlane queue eject {one.id}",
            holder=one.agent,
        )
    return None


def _is_free(free: Sequence[Alternative], pattern: Pattern) -> bool:
    (path,) = pattern.alternatives
    return any(covers_alternative(branch, path) for branch in free)


def _check_role(tx: Snapshot, repo: Repository, me: Session, task: Task, head: str) -> None:
    if task.role and task.role != me.role and not _was_handed_back(tx, repo, me, task, head):
        raise NotAllowed(
            f"{task.id} is for the role {task.role}, and {me.agent} has {me.role or 'none'}",
            code="WRONG_ROLE",
            hint=f"landlane join {me.agent} --role {task.role}, if that is what you are",
        )


def _was_handed_back(tx: Snapshot, repo: Repository, me: Session, task: Task, head: str) -> bool:
    """Whether a worker made just this in the role of the task, which does not commit, and handed it back.

    It was judged by that role then. Its keeper submits it, or who lands it for a keeper that is gone.
    """
    if lander_role(repo.settings, task):
        return False
    tries = [one for one in records.by_key(tx, "attempt", task.id) if one["attempt"] == task.attempt]
    return not me.role and any((one["role"], one["head"]) == (task.role, head) for one in tries)


def _outside(
    tx: Snapshot, me: Session, uncovered: Sequence[Pattern], claims: Sequence[Claim]
) -> NotAllowed | Held:
    named = [pattern.text for pattern in uncovered]
    more = f" and {len(named) - _MOST_SHOWN} more" if len(named) > _MOST_SHOWN else ""
    shown = ", ".join(named[:_MOST_SHOWN]) + more
    for pattern in uncovered:
        for claim in claims_near(tx, pattern.alternatives, me.id):
            is_another = claim.session != me.id and not claim.is_over(tx.now)
            if is_another and claim.covers(pattern):
                return _held_by(pattern, claim, named)
    if any(is_covered(claims, pattern, is_mergeable=True) for pattern in uncovered):
        return NotAllowed(
            f"{me.agent} holds only a share of {shown}, which is not mergeable",
            code="OUTSIDE_CLAIMS",
            hint="claim it exclusively, or list it in [landing.merge.files] in the target's landlane.toml",
            paths=named[:_MOST_NAMED],
        )
    return NotAllowed(
        f"the branch changes what {me.agent} does not hold: {shown}",
        code="OUTSIDE_CLAIMS",
        hint=f"{_how_to_claim(named[0])}, or take the change out of the branch",
        paths=named[:_MOST_NAMED],
    )


def _how_to_claim(path: str) -> str:
    """The command that would do; a name that is no text has to be covered by a wider claim."""
    if "\ufffd" in path:
        folder = path.rpartition("/")[0]
        return f"landlane claim '{folder}/**'" if folder else "landlane claim '**'"
    return f"landlane claim {path}"


def _held_by(pattern: Pattern, claim: Claim, named: Sequence[str]) -> Held:
    """Somebody else holds what the branch changes: an agent who can be asked, or an entry that will land."""
    holder = claim.agent
    is_entry = holder.startswith(holder_name(""))
    hint = f"take that change out, or ask {holder}; then claim it and submit again"
    if is_entry:
        hint = (
            f"it is on its way ({claim.note}): wait until that has landed, claim the path, and submit again"
        )
    return Held(
        f"the branch changes {pattern.text}, which {holder} holds",
        code="CLAIM_HELD",
        hint=hint,
        holder=holder,
        paths=list(named[:_MOST_NAMED]),
    )
