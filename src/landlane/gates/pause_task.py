"""A task at rest before a gate: its owner keeps it, its claims lie with the gate, and both come back.

The gate has a session of its own that holds the claims and never lapses; the lease of the owner stands still
meanwhile (`leases.lapse`). So nobody else changes what a person is asked about.
"""

from __future__ import annotations

from landlane.claims import holder_sessions as holders
from landlane.claims.read import claims_of
from landlane.gates.model import Gate, holder_name
from landlane.sessions.leases import end_if_gone, end_session
from landlane.sessions.model import SessionKind
from landlane.sessions.notices import add_notice, has_notices
from landlane.sessions.read import list_processes, lock_live_session
from landlane.tasks import finish as keep_claims
from landlane.tasks.model import AT_WORK, REVIEW, WAITING
from landlane.tasks.records import move_task
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.tasks.model import Task


RESUMABLE = frozenset({*AT_WORK, REVIEW})  # what somebody goes on with; all else has no owner to resume


def why_at_rest(gate: Gate) -> str:
    """Why a task at this gate is not further."""
    return f"{gate.id} waits for a person ({gate.kind}): {gate.why}"


def rest(tx: Transaction, repo: Repository, task: Task, gate: Gate) -> Gate:
    """Let a task rest at a gate; whoever has it in hand keeps it, and the gate keeps the claims."""
    gate = replace(gate, attempt=task.attempt, before=task.state)
    why = why_at_rest(gate)
    if task.state == WAITING:
        tx.run("task_set_why", task=task.id, why=why, next_action=task.next_action)
        return gate
    owner = lock_live_session(tx, task.session) if task.session else None
    if owner is not None and task.state in RESUMABLE:
        gate = replace(gate, agent=owner.agent, session=owner.id)
        gate = _keep_claims(tx, repo, owner, task, gate)
    move_task(tx, task, WAITING, why=why, keep_owner=True)
    return gate


def _keep_claims(tx: Transaction, repo: Repository, owner: Session, task: Task, gate: Gate) -> Gate:
    """Move the owner's claims for a task into a session of the gate, remembering how they were."""
    holder, kept = keep_claims.keep_claims(
        tx,
        repo,
        owner,
        task.id,
        name=holder_name(gate.id),
        kind=SessionKind.GATE,
        note=f"{gate.id}: {owner.agent} waits for a person",
    )
    return replace(gate, holder=holder, claims=kept) if holder else gate


def living_owner(tx: Transaction, repo: Repository, task: Task) -> Session | None:
    """The session that goes on with a task; silence at a gate is no sign of death, ended processes are."""
    if not task.session or end_if_gone(tx, task.session, repo.processes):
        return None
    owner = lock_live_session(tx, task.session)
    if owner is None:
        return None
    if not owner.is_alive(tx.now) and _was_restarted(tx, repo, owner):
        end_session(tx, owner, "session.gone", {"reason": "its machine was started anew"})
        return None
    return owner


def _was_restarted(tx: Transaction, repo: Repository, session: Session) -> bool:
    """Whether all processes of a session ran on this machine before it was last started."""
    boot_id = repo.processes.current().boot_id
    known = list_processes(tx, session.id)
    return (
        bool(known)
        and session.machine == repo.processes.machine
        and all(process.boot_id != boot_id for process in known)
    )


def give_back(tx: Transaction, repo: Repository, gate: Gate, owner: Session) -> None:
    """Return the claims as they were, and let the lease of their owner begin anew."""
    end_holder(tx, gate, heir=owner.id)
    holders.give_kept(tx, repo, gate.claims, owner)


def end_holder(tx: Transaction, gate: Gate, heir: str = "") -> None:
    """Give back what a gate kept, and end its session; what it should have heard goes to the heir."""
    holder = lock_live_session(tx, gate.holder) if gate.holder else None
    if holder is None:
        return
    for notice in has_notices(tx, gate.holder) if heir else ():
        add_notice(tx, heir, str(notice["text"]))
    holders.drop_claims(tx, claims_of(tx, gate.holder))
    end_session(tx, holder, "session.left", {})
