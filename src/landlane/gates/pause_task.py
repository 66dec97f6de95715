"""Pause a task at a gate: its owner keeps it, and the gate holds its claims until the answer.

The gate has a session of its own that holds the claims and never expires. The lease of the owner does not run
out meanwhile (`leases.lapse`). So no other session can change what a person is asked about.
"""

from __future__ import annotations

from landlane.gates.model import Gate
from landlane.sessions.leases import end_if_gone, end_session, list_processes, lock_live_session
from landlane.sessions.model import SessionKind
from landlane.tasks.finish import move_claims_to_holder
from landlane.tasks.model import IN_PROGRESS, REVIEW, WAITING
from landlane.tasks.records import move_task
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.tasks.model import Task


RESUMABLE = frozenset({*IN_PROGRESS, REVIEW})  # in these states a task has an owner that can resume it


def pause_reason(gate: Gate) -> str:
    """Return why a task at this gate is paused."""
    return f"{gate.id} waits for a person ({gate.kind}): {gate.why}"


def pause_task(tx: Transaction, repo: Repository, task: Task, gate: Gate) -> Gate:
    """Pause a task at a gate; its owner keeps it, and the gate takes over the claims."""
    gate = replace(gate, attempt=task.attempt, before=task.state)
    why = pause_reason(gate)
    if task.state == WAITING:
        tx.run("task_set_why", task=task.id, why=why, next_action=task.next_action)
        return gate
    owner = lock_live_session(tx, task.session) if task.session else None
    if owner is not None and task.state in RESUMABLE:
        note = f"{gate.id}: {owner.agent} waits for a person"
        holder, claims = move_claims_to_holder(
            tx, repo, owner, task.id, name=gate.id, kind=SessionKind.GATE, note=note
        )
        gate = replace(gate, agent=owner.agent, session=owner.id, holder=holder, claims=claims)
    move_task(tx, task, WAITING, why=why, keep_owner=True)
    return gate


def find_living_owner(tx: Transaction, repo: Repository, task: Task) -> Session | None:
    """Return the session that resumes a paused task: a silent one, too, unless its processes have ended."""
    if not task.session or end_if_gone(tx, task.session, repo.processes):
        return None
    owner = lock_live_session(tx, task.session)
    if owner is None:
        return None
    if not owner.is_alive(tx.now) and _ran_before_reboot(tx, repo, owner):
        end_session(tx, owner, "session.gone", {"reason": "its machine was restarted"})
        return None
    return owner


def _ran_before_reboot(tx: Transaction, repo: Repository, session: Session) -> bool:
    boot_id = repo.processes.current().boot_id
    known = list_processes(tx, session.id)
    return (
        bool(known)
        and session.machine == repo.processes.machine
        and all(process.boot_id != boot_id for process in known)
    )
