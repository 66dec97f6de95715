"""Sending a handoff: sealed, its claims and workspace kept, and the task let go, in one transaction."""

from __future__ import annotations

from landlane.claims.holder_sessions import begin_holder, drop_claims, give_claim
from landlane.claims.read import claims_of
from landlane.errors import PatternError, WaitsForPerson
from landlane.gates.ask import open_gate_in
from landlane.gates.model import APPROVED
from landlane.gates.records import gates_of
from landlane.handoffs.model import REFUSED, Draft, Handoff, check_draft, digest_of, holder_name, summary_of
from landlane.handoffs.transfer import NOUN
from landlane.patterns.pattern import Alternative, areas_of, covers_alternative
from landlane.sessions.leases import require_live
from landlane.sessions.model import Claim, SessionKind
from landlane.store import records
from landlane.tasks.model import ANYBODY, AT_WORK, LONGEST_LINE, READY
from landlane.tasks.records import move_task, owned, tasks_of, who
from landlane.values import as_dict, replace
from landlane.workspaces.model import OPEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.tasks.model import Task

    Step = Callable[[str], None]


def send_handoff(
    repo: Repository,
    session: Session,
    handoff: Draft,
    on_step: Step = lambda _: None,
    also: Callable[[Transaction, Handoff], object] = lambda _tx, _made: None,
) -> Handoff:
    """The owner hands a task over, with its claims and its workspace; from then on it is not its own.

    `handoff.taken` is what was found mechanically (see `flows.handoffs.observe`). `on_step` hears the name of
    each step, those inside the transaction too; what `also` writes is in that transaction.

    Raises:
        Malformed: the handoff is not as the schema of this project wants it.
        Stale: the task is not this session's any more.
        WaitsForPerson: the work was handed on too often: the task is put before a person instead.
    """
    draft = check_draft(handoff, repo.settings)

    def work(tx: Transaction) -> Handoff:
        me = require_live(tx, session)
        task = owned(tx, me, draft.task, by_hands=True)
        made = _seal(tx, repo, me, task, draft)
        on_step("sealed")
        most = made.maximum + _allowed_more(tx, task)
        if made.attempt > most and not me.is_person:
            return _refuse(tx, repo, me, task, made)
        sent = _send(tx, repo, me, task, made, on_step)
        also(tx, sent)
        return sent

    made = repo.change(work)
    if made.state == REFUSED:
        raise _over_limit(made)
    on_step("sent")
    return made


def _seal(tx: Transaction, repo: Repository, me: Session, task: Task, draft: Draft) -> Handoff:
    settings = repo.settings
    now = repo.store.wall_of(tx.now)
    wait_ms = 0 if draft.to == ANYBODY else settings.handoffs.wait_ms
    made = Handoff(
        id=records.next_id(tx, NOUN),
        task=task.id,
        lineage=task.lineage,
        sender=me.agent,
        session=task.session,  # its owner's, if a subagent speaks for it
        to=draft.to,
        attempt=_sent_before(tx, task.lineage) + 1,
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
    return replace(made, digest=digest_of(made))


def _sent_before(tx: Transaction, lineage: str) -> int:
    """How often the work of a lineage was handed on, since a person last looked at that."""
    count = 0
    for document in records.all_of(tx, NOUN):
        if document["lineage"] == lineage:
            count = 0 if document["state"] == REFUSED else count + 1
    return count


def _send(
    tx: Transaction, repo: Repository, me: Session, task: Task, made: Handoff, on_step: Step
) -> Handoff:
    owner = task.session
    claims = _claims_for(tx, repo, task, made)
    patterns = [repo.git.pattern_of(claim.pattern, claim.kind) for claim in claims]
    tx.lock_areas(areas_of(patterns))
    drop_claims(tx, claims)
    if made.until > made.sent_at:
        wait_ms = made.until - made.sent_at
        holder = begin_holder(tx, me, holder_name(made.id), SessionKind.HANDOFF, wait_ms)
        note = f"{made.id}: {task.id} is handed to {made.to}"
        for claim, pattern in zip(claims, patterns, strict=True):
            give_claim(tx, holder, pattern, claim.mode, wait_ms, task=task.id, note=note)
        _keep_workspaces(tx, me, task.id, owner, holder)
        made = replace(made, holder=holder.id)
    on_step("kept")
    why = _why(made)
    move_task(tx, task, READY, why=why, ready_at=tx.now)
    facts = {"task": task.id, "why": why, "attempt": task.attempt, "state": READY, "handed": True}
    tx.record("task.returned", *who(me), facts)
    records.put(tx, NOUN, as_dict(made), "sent", me, task=task.id)
    on_step("written")
    tx.frees = True
    return made


def _why(made: Handoff) -> str:
    said = summary_of(made)
    return said if made.to == ANYBODY else f"handed to {made.to} ({made.id}): {said}"[:LONGEST_LINE]


def _claims_for(tx: Transaction, repo: Repository, task: Task, made: Handoff) -> list[Claim]:
    """Return the claims that go with a task: those made for it, and what covers its changes."""
    touched = _branches(repo, (*made.taken.get("changed", ()), *made.taken.get("dirty", ())))
    has_more = any(other.id != task.id and other.state in AT_WORK for other in tasks_of(tx, task.session))

    def goes_along(claim: Claim) -> bool:
        if claim.task:
            return claim.task == task.id
        # What was taken for no task goes along, unless it may be for another one in hand.
        return not has_more or any(
            covers_alternative(held, path) for held in claim.alternatives for path in touched
        )

    return [claim for claim in claims_of(tx, task.session) if goes_along(claim)]


def _branches(repo: Repository, paths: Iterable[str]) -> list[Alternative]:
    found: list[Alternative] = []
    for path in paths:
        try:
            found += repo.git.pattern_of(path, "literal").alternatives
        except PatternError:
            continue  # a name that nobody can claim
    return found


def _keep_workspaces(tx: Transaction, me: Session, task_id: str, owner: str, holder: Session) -> None:
    for document in records.by_key(tx, "workspace", task_id, OPEN):
        if document["session"] in (owner, me.id):
            kept = {**document, "session": holder.id, "agent": holder.agent}
            records.put(tx, "workspace", kept, "kept", me)


def _refuse(tx: Transaction, repo: Repository, me: Session, task: Task, made: Handoff) -> Handoff:
    """Over the maximum: what it says is kept, and a person decides how the work goes on."""
    why = f"it was handed on {made.maximum} times already, and {me.agent} wants to hand it to {made.to} again"
    refused = replace(made, state=REFUSED, why=why, until=made.sent_at, is_settled=True)
    records.put(tx, NOUN, as_dict(refused), "refused", me, task=task.id)
    about: Mapping[str, Any] = {"handoff": refused.id, "hash": refused.digest}
    open_gate_in(tx, repo, me, task=task, kind="approval", why=why, about=about)
    return refused


def _allowed_more(tx: Transaction, task: Task) -> int:
    """How many more times people have let a task be handed on."""
    return sum("handoff" in gate.about for gate in gates_of(tx, task.id, APPROVED))


def _over_limit(refused: Handoff) -> WaitsForPerson:
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
