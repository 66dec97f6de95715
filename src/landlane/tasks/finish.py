"""Report done, finish, release the task's claims."""

from __future__ import annotations

from landlane.claims.holder_sessions import drop_claims
from landlane.claims.read import claims_of
from landlane.sessions.leases import require_live
from landlane.tasks.dependencies import unblock_dependents
from landlane.tasks.model import (
    ACTIVE,
    DONE,
    LONGEST_BODY,
    REPORTED,
)
from landlane.tasks.owner import owned
from landlane.tasks.rows import (
    get_in,
    move_task,
    who,
    whole,
)
from landlane.text import check_text
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.tasks.model import Task


def report_done(repo: Repository, session: Session, task_id: str, result: str = "") -> Task:
    """The owner says it is done. Whether it is, evidence tells; until then it is `reported`.

    Raises:
        Stale: the task is not this session's any more.
    """
    check_text(result, "result", LONGEST_BODY)

    def work(tx: Transaction) -> Task:
        require_live(tx, session)
        task = owned(tx, session, task_id)
        if task.state == ACTIVE:
            move_task(tx, task, REPORTED, keep_owner=True, result=result, why="reported; not yet proved")
            tx.record("task.reported", *who(session), {"task": task_id, "result": result})
        return whole(tx, get_in(tx, task_id))

    return repo.change(work)


def finish(
    tx: Transaction,
    repo: Repository,
    task: Task,
    session: Session | None,
    *,
    head: str,
    evidence: Sequence[dict[str, object]],
) -> None:
    """A task is over and proved: release its claims and let those go on that waited for it."""
    from landlane.tasks.add import forget_signs  # noqa: PLC0415 - few calls need it

    move_task(tx, task, DONE, keep_owner=True, head=head, next_action="")
    release_claims(tx, task, head)
    forget_signs(tx, repo, task)
    facts = {"task": task.id, "head": head, "result": task.result, "evidence": list(evidence)}
    tx.record("task.done", *who(session), facts)
    unblock_dependents(tx, task.id)
    tx.frees = True


def release_claims(tx: Transaction, task: Task, commit: str) -> None:
    """Give back what is held for a task."""
    claims = [claim for claim in claims_of(tx, task.session) if claim.task == task.id]
    drop_claims(tx, claims, commit)
    tx.frees = tx.frees or bool(claims)


def finish_on_word(repo: Repository, session: Session, task_id: str, result: str) -> Task:
    """End a task of a kind that has nothing to show: its owner's word is all there is.

    Raises:
        Stale: the task is not this session's any more.
    """
    check_text(result, "result", LONGEST_BODY)

    def work(tx: Transaction) -> Task:
        require_live(tx, session)
        task = owned(tx, session, task_id)
        ended = replace(task, result=result or task.result)
        finish(tx, repo, ended, session, head="", evidence=())
        return whole(tx, replace(ended, state=DONE, head="", why="", next_action=""))

    return repo.change(work)
