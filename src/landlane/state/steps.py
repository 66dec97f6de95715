"""Steps: what a caller that may be killed has done already, kept under its own key with what it did.

A step is written in the transaction of what it tells of. So whoever begins again, and uses the same key,
finds that it was done and what came of it; or that nothing was.
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
class Step:
    """Something that was done once. `memo` is the caller's own, to go on with."""

    id: str  # the caller's key
    task: str
    about: str  # what came of it: the id of a handoff or a fan, or how an attempt was judged
    memo: str
    agent: str
    at: int  # the calendar's, in milliseconds
    state: str = "done"
    is_settled: bool = True


def step_in(snapshot: Snapshot, key: str) -> Step | None:
    """What was done under a key, if anything was."""
    document = records.find(snapshot, NOUN, key)
    return Step(**document) if document is not None else None


def find_step(repo: Repository, key: str) -> Step | None:
    """What was done under a key, if anything was."""
    return repo.store.view(lambda snapshot: step_in(snapshot, key))


def put_step_in(
    tx: Transaction,
    repo: Repository,
    session: Session,
    key: str,
    *,
    task: str = "",
    about: str = "",
    memo: str = "",
) -> Step:
    """Write down what is done in this transaction.

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
    step = Step(id=key, task=task, about=about, memo=memo, agent=session.agent, at=repo.store.wall_of(tx.now))
    records.put(tx, NOUN, as_dict(step), "done", session)
    return step


def keep_step(
    repo: Repository, session: Session, key: str, *, task: str = "", about: str = "", memo: str = ""
) -> Step:
    """Write down by itself that something was done; the first one counts.

    Raises:
        Malformed: the key or the memo cannot be kept.
        Stale: the session is over.
    """

    def work(tx: Transaction) -> Step:
        me = require_live(tx, session)
        there = step_in(tx, key)
        return there or put_step_in(tx, repo, me, key, task=task, about=about, memo=memo)

    return repo.change(work)
