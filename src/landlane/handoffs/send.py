"""Send a handoff: seal it, hold its claims and workspace, and return the task to the queue."""

from __future__ import annotations

from landlane.claims.holder_sessions import begin_holder, drop_claims, give_claim
from landlane.claims.take import claims_of
from landlane.errors import WaitsForPerson
from landlane.gates.model import APPROVED
from landlane.gates.open import open_gate_in
from landlane.gates.records import gates_of_task
from landlane.handoffs.collect_state import collect_state, literals_of
from landlane.handoffs.model import REFUSED, Handoff, check_draft, digest_of, summary_of
from landlane.handoffs.transfer import NOUN
from landlane.patterns.pattern import areas_of, covers_alternative
from landlane.sessions.leases import require_live
from landlane.sessions.model import Claim, SessionKind
from landlane.store import records
from landlane.tasks.model import ANYBODY, IN_PROGRESS, LONGEST_LINE, READY
from landlane.tasks.records import actor_of, move_task, require_owner, tasks_of
from landlane.values import as_dict, replace
from landlane.workspaces.model import OPEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from landlane.handoffs.model import Draft, OnStep
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.tasks.model import Task


def collect_and_send(
    repo: Repository,
    session: Session,
    draft: Draft,
    on_step: OnStep = lambda _: None,
    also: Callable[[Transaction, Handoff], object] = lambda _tx, _sent: None,
) -> Handoff:
    """Collect the state of a task from git, the journal and the hooks, and send it with the draft.

    Raises:
        Malformed: the handoff does not match the schema of this project.
        Stale: the session does not own the task any more.
        WaitsForPerson: the work was handed off too often; a person must decide.
    """
    # Collecting saves uncommitted work, so refuse first what sending would refuse.
    check_draft(draft, repo.settings)
    repo.change(lambda tx: require_owner(tx, require_live(tx, session), draft.task, allow_worker=True))
    taken = collect_state(repo, draft.task, session)
    on_step("observed")
    return send_handoff(repo, session, replace(draft, taken=taken), on_step, also)


def send_handoff(
    repo: Repository,
    session: Session,
    draft: Draft,
    on_step: OnStep = lambda _: None,
    also: Callable[[Transaction, Handoff], object] = lambda _tx, _sent: None,
) -> Handoff:
    """Hand off a task that the session owns, with its claims and its workspace.

    `on_step` gets the name of each step, also inside the transaction; `also` writes in the same transaction.

    Raises:
        Malformed: the handoff does not match the schema of this project.
        Stale: the session does not own the task any more.
        WaitsForPerson: the work was handed off too often; a person must decide.
    """
    draft = check_draft(draft, repo.settings)

    def work(tx: Transaction) -> Handoff:
        me = require_live(tx, session)
        task = require_owner(tx, me, draft.task, allow_worker=True)
        handoff = _seal(tx, repo, me, task, draft)
        on_step("sealed")
        maximum = handoff.maximum + _count_approvals(tx, task)
        if handoff.attempt > maximum and not me.is_person:
            return _refuse(tx, repo, me, task, handoff)
        sent = _send(tx, repo, me, task, handoff, on_step)
        also(tx, sent)
        return sent

    handoff = repo.change(work)
    if handoff.state == REFUSED:
        raise _limit_error(handoff)
    on_step("sent")
    return handoff


def _seal(tx: Transaction, repo: Repository, me: Session, task: Task, draft: Draft) -> Handoff:
    settings = repo.settings
    now = repo.store.wall_of(tx.now)
    wait_ms = 0 if draft.to == ANYBODY else settings.handoffs.wait_ms
    handoff = Handoff(
        id=records.next_id(tx, NOUN),
        task=task.id,
        lineage=task.lineage,
        sender=me.agent,
        session=task.session,  # that of the owner, also if a subagent sends it
        to=draft.to,
        attempt=_count_sent(tx, task.lineage) + 1,
        maximum=draft.maximum or settings.handoffs.max,
        product=draft.product,
        context=draft.context,
        constraints=list(draft.constraints),
        next=draft.next,
        blockers=list(draft.blockers),
        assumptions=list(draft.assumptions),
        fields=dict(draft.fields),
        taken={**draft.taken, "attempt": task.attempt},
        digest="",
        sent_at=now,
        until=now + wait_ms,
    )
    return replace(handoff, digest=digest_of(handoff))


def _count_sent(tx: Transaction, lineage: str) -> int:
    """Return how often the work of a lineage was handed off since a person last decided about it."""
    count = 0
    for document in records.find_all(tx, NOUN):
        if document["lineage"] == lineage:
            count = 0 if document["state"] == REFUSED else count + 1
    return count


def _send(
    tx: Transaction, repo: Repository, me: Session, task: Task, handoff: Handoff, on_step: OnStep
) -> Handoff:
    owner = task.session
    claims = _claims_for(tx, repo, task, handoff)
    patterns = [repo.git.pattern_of(claim.pattern, claim.kind) for claim in claims]
    tx.lock_areas(areas_of(patterns))
    drop_claims(tx, claims)
    wait_ms = handoff.until - handoff.sent_at
    if wait_ms > 0:
        holder = begin_holder(tx, me, handoff.id, SessionKind.HANDOFF, wait_ms)
        note = f"{handoff.id}: {task.id} is handed to {handoff.to}"
        for claim, pattern in zip(claims, patterns, strict=True):
            give_claim(tx, holder, pattern, claim.mode, wait_ms, task=task.id, note=note)
        _keep_workspaces(tx, me, task.id, owner, holder)
        handoff = replace(handoff, holder=holder.id)
    on_step("kept")
    summary = summary_of(handoff)
    is_for_any = handoff.to == ANYBODY
    why = summary if is_for_any else f"handed to {handoff.to} ({handoff.id}): {summary}"[:LONGEST_LINE]
    move_task(tx, task, READY, why=why, ready_at=tx.now, next_action=handoff.next or None)
    facts = {"task": task.id, "why": why, "attempt": task.attempt, "state": READY, "handed": True}
    tx.record("task.returned", *actor_of(me), facts)
    records.put(tx, NOUN, as_dict(handoff), "sent", me, task=task.id)
    on_step("written")
    tx.has_freed = True
    return handoff


def _claims_for(tx: Transaction, repo: Repository, task: Task, handoff: Handoff) -> list[Claim]:
    """Return the claims that go with a task: those taken for it, and those that cover its changes."""
    paths = (*handoff.taken.get("changed", ()), *handoff.taken.get("dirty", ()))
    touched = literals_of(repo, paths).values()
    has_others = any(
        other.id != task.id and other.state in IN_PROGRESS for other in tasks_of(tx, task.session)
    )

    def is_included(claim: Claim) -> bool:
        if claim.task:
            return claim.task == task.id
        # A claim taken for no task is included unless it may be for another task of the session.
        return not has_others or any(
            covers_alternative(held, path) for held in claim.alternatives for path in touched
        )

    return [claim for claim in claims_of(tx, task.session) if is_included(claim)]


def _keep_workspaces(tx: Transaction, me: Session, task_id: str, owner: str, holder: Session) -> None:
    for document in records.find_by_key(tx, "workspace", task_id, OPEN):
        if document["session"] in (owner, me.id):
            kept = {**document, "session": holder.id, "agent": holder.agent}
            records.put(tx, "workspace", kept, "kept", me)


def _refuse(tx: Transaction, repo: Repository, me: Session, task: Task, handoff: Handoff) -> Handoff:
    """Keep a handoff over the maximum, and let a person decide how the work continues."""
    times, to = handoff.maximum, handoff.to
    why = f"it was handed on {times} times already, and {me.agent} wants to hand it to {to} again"
    refused = handoff.become(REFUSED, why=why, until=handoff.sent_at)
    records.put(tx, NOUN, as_dict(refused), "refused", me, task=task.id)
    about: Mapping[str, Any] = {"handoff": refused.id, "hash": refused.digest}
    open_gate_in(tx, repo, me, task=task, kind="approval", why=why, about=about)
    return refused


def _count_approvals(tx: Transaction, task: Task) -> int:
    """Return how many further handoffs of a task people have approved."""
    return sum("handoff" in gate.about for gate in gates_of_task(tx, task.id, APPROVED))


def _limit_error(refused: Handoff) -> WaitsForPerson:
    return WaitsForPerson(
        f"{refused.task} was handed on {refused.maximum} times, which is the most; a person decides now",
        code="HANDOFF_LIMIT",
        hint=f"{refused.id} keeps what you said (landlane handoff show {refused.id}); `landlane next` has"
        " other work for you, and `landlane gate list` shows a person what to decide",
        task=refused.task,
        handoff=refused.id,
        attempt=refused.attempt,
        maximum=refused.maximum,
    )
