"""Completed steps, recorded under the caller's own keys, so that a caller that was killed can resume.

A step is recorded in the transaction that does it. A caller that starts again with the same key finds that
the step was done, and its result; or that nothing was done.
"""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.sessions.leases import require_live
from landlane.state.key_rules import check_key
from landlane.store import records
from landlane.values import as_dict, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction

NOUN = "step"
LONGEST_MEMO = 256 * 1024


@value
class CompletedStep:
    """A step that was done once; the caller may keep data in `memo` to continue later."""

    id: str  # the caller's key
    task: str
    about: str  # its result: the id of a handoff or a fan, or the verdict on an attempt
    memo: str
    agent: str
    at: int  # wall-clock milliseconds
    state: str = "done"
    is_settled: bool = True


def find_step_in(snapshot: Snapshot, key: str) -> CompletedStep | None:
    """Return the completed step with a key; None if there is none."""
    document = records.find(snapshot, NOUN, key)
    return CompletedStep(**document) if document is not None else None


def find_step(repo: Repository, key: str) -> CompletedStep | None:
    """Return the completed step with a key; None if there is none."""
    return repo.store.view(lambda snapshot: find_step_in(snapshot, key))


def record_step_in(
    tx: Transaction,
    repo: Repository,
    session: Session,
    key: str,
    *,
    task: str = "",
    about: str = "",
    memo: str = "",
) -> CompletedStep:
    """Record a step that is done in this transaction.

    Raises:
        Malformed: the key or the memo cannot be kept.
    """
    check_key(key)
    if len(memo) > LONGEST_MEMO:
        raise Malformed(
            f"the memo of a step has {len(memo):,} characters; {LONGEST_MEMO:,} are the most",
            code="TEXT_TOO_LONG",
            hint="keep large things in files of the repository, and name those",
        )
    step = CompletedStep(
        id=key, task=task, about=about, memo=memo, agent=session.agent, at=repo.store.wall_of(tx.now)
    )
    records.put(tx, NOUN, as_dict(step), "done", session)
    return step


def record_step(
    repo: Repository, session: Session, key: str, *, task: str = "", about: str = "", memo: str = ""
) -> CompletedStep:
    """Record a step in its own transaction, or return the one that has this key already.

    Raises:
        Malformed: the key or the memo cannot be kept.
        Stale: the session is over.
    """

    def work(tx: Transaction) -> CompletedStep:
        me = require_live(tx, session)
        return find_step_in(tx, key) or record_step_in(tx, repo, me, key, task=task, about=about, memo=memo)

    return repo.change(work)
