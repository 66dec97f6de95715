"""How an entry of the landing queue ends: landed, rejected, ejected, or approved by a person.

Its claims end with it. Its task is done with the commit that landed, or goes back to the author.
"""

from __future__ import annotations

from landlane.errors import NotAllowed, Stale
from landlane.git.target import find_target
from landlane.landing.after_landing import delete_entry_ref
from landlane.landing.entry_claims import (
    end_entry_session,
    find_live_author,
    notify_affected_sessions,
    release_author_claims,
    return_claims,
)
from landlane.landing.model import (
    BOUNCED,
    EJECTED,
    HELD,
    LANDED,
    MAX_OUTPUT_CHARS,
    QUEUE_LEASE_MS,
    QUEUED,
    REJECTED,
    TESTING,
    Landing,
    LandingState,
    Rejection,
    person_rejection,
    queue_lease_name,
)
from landlane.landing.records import NOUN, get_landing, get_queue, lock_landing, lock_queue
from landlane.landing.rejected_tasks import drop_fix_task, reopen_task, return_task
from landlane.roles.model import forbidden
from landlane.sessions.notices import add_notice
from landlane.sessions.read import find_session
from landlane.sessions.runner_lease import RunnerBusy, check_runner, end_runner, wait_for_runner
from landlane.store import records
from landlane.tasks.add import ADDING
from landlane.tasks.finish import finish
from landlane.tasks.model import LANDING, REPORTED
from landlane.tasks.records import get_in
from landlane.values import as_dict, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.sessions.runner_lease import RunnerLease
    from landlane.store.interface import Transaction

_EJECT_WAIT_MS = 10_000


@value
class LandedEntry:
    """An entry that is on the target now: as which commit, on which base, and the notes for its author."""

    id: str
    commit: str
    base: str = ""
    notes: list[str] = []  # noqa: RUF012 - never changed
    flaky: list[str] = []  # noqa: RUF012 - never changed


def mark_landed(
    repo: Repository,
    lease: RunnerLease,
    target: str,
    entries: Sequence[LandedEntry],
    tip: str,
    *,
    is_late: bool = False,
) -> list[Landing]:
    """Record that the target has moved and that these entries landed; end their claims and tasks.

    A push that arrives late (`is_late`) can land an entry that was rejected or ejected meanwhile.

    Raises:
        Stale: another process runs the queue now.
    """

    def work(tx: Transaction) -> list[Landing]:
        check_runner(tx, lease)
        landed: list[Landing] = []
        for entry in entries:
            before = lock_landing(tx, entry.id)
            if before.state == LANDED or (before.state not in (TESTING, QUEUED) and not is_late):
                continue
            landing = replace(
                before,
                state=LANDED,
                stage="",
                reason="",
                code="",
                ended_at=repo.store.wall_of(tx.now),
                **as_dict(entry),
            )
            records.put(tx, NOUN, as_dict(landing), "landed")
            end_entry_session(tx, landing, landing.commit)
            drop_fix_task(tx, repo, landing)
            _finish_task(tx, repo, landing)
            landed.append(landing)
        release_author_claims(tx, repo, landed)
        for landing in landed:  # after the release: authors whose own work landed need no notice
            notify_affected_sessions(tx, repo, landing)
        queue = lock_queue(tx, target)
        queue = replace(queue, tip=tip, move={}, landed=queue.landed + len(landed))
        records.put(tx, "queue", as_dict(queue), "moved")
        tx.frees = True
        return landed

    return repo.change(work)


def _finish_task(tx: Transaction, repo: Repository, landing: Landing) -> None:
    task = get_in(tx, landing.task) if landing.task else None
    if task is None or task.state not in (LANDING, REPORTED) or task.attempt != landing.attempt:
        return
    found = f"{landing.commit[:12]} on {landing.target}"
    evidence: list[dict[str, object]] = [{"name": "landed", "is_seen": True, "found": found, "hint": ""}]
    finish(tx, repo, task, None, head=landing.head, evidence=evidence)


def reject_entry(
    repo: Repository,
    lease: RunnerLease | None,
    landing_id: str,
    rejection: Rejection,
    *,
    state: LandingState = BOUNCED,
    base: str = "",
) -> Landing:
    """End an entry without landing it: its claims and its task go back to its author if that is alive.

    Raises:
        Stale: another process runs the queue now.
        NotAllowed: it has already ended, or it is being tested and `lease` is missing.
    """

    def work(tx: Transaction) -> Landing:
        if lease is not None:
            check_runner(tx, lease)
        landing = lock_landing(tx, landing_id)
        if not landing.is_open:
            raise NotAllowed(
                f"{landing_id} is {landing.state} already",
                code="LANDING_ENDED",
                hint="`landlane queue show` tells how it ended",
            )
        is_moving = lease is None and lock_queue(tx, landing.target).is_moving(landing_id)
        if lease is None and (landing.state == TESTING or is_moving):
            raise NotAllowed(
                f"{landing_id} is being tested, or on its way onto {landing.target}",
                code="LANDING_BUSY",
                hint="wait for the verdict; `landlane queue show` tells how far it is",
            )
        author = find_live_author(tx, landing)
        output = rejection.output[-MAX_OUTPUT_CHARS:]
        task_id = ""
        if state == EJECTED:
            reopen_task(tx, landing, author, rejection.reason)
        else:
            task_id = return_task(tx, repo, landing, author, replace(rejection, output=output))
        landing = replace(
            landing,
            state=state,
            stage="",
            reason=rejection.reason,
            code=rejection.code,
            output=output,
            pair=rejection.pair,
            advice=rejection.hint,
            bounce_task=task_id,
            ended_at=repo.store.wall_of(tx.now),
            base=base or landing.base,
        )
        return_claims(tx, repo, landing, author)
        if author is not None and rejection.code == REJECTED:  # a person decided, maybe much later
            text = f"{landing_id} ({landing.branch}) will not land: {rejection.reason}. {rejection.hint}"
            add_notice(tx, author.id, text)
        records.put(tx, NOUN, as_dict(landing), state)
        tx.frees = True
        return landing

    return repo.change(work, areas=ADDING)


def eject_entry(repo: Repository, session: Session, landing_id: str, why: str) -> Landing:
    """Take an entry out of the queue: its author may, and everyone once the author's session has ended.

    Raises:
        NotAllowed: another session submitted it, or it is being moved onto the target.
    """
    landing = get_landing(repo, landing_id)
    target = find_target(repo.home, repo.settings)
    is_own = landing.session == session.id or landing.agent == session.agent
    if not is_own and session.kind != "person" and _is_alive(repo, landing.session):
        raise NotAllowed(
            f"{landing_id} is {landing.agent}'s",
            code="NOT_YOURS",
            hint=f"ask {landing.agent}, or a person at a terminal",
            holder=landing.agent,
        )
    lease = None
    if landing.state == TESTING:  # its runner must have stopped, or it could land at the same time
        lease = wait_for_runner(
            repo, session, queue_lease_name(target.branch), QUEUE_LEASE_MS, _EJECT_WAIT_MS
        )
        if isinstance(lease, RunnerBusy):
            raise NotAllowed(
                f"{landing_id} is being tested by {lease.agent}",
                code="LANDING_BUSY",
                hint="wait for the verdict, or end that process",
                holder=lease.agent,
            )
    try:
        if get_queue(repo, target.branch).is_moving(landing_id):
            raise NotAllowed(
                f"{landing_id} is on its way onto {target.branch}",
                code="LANDING_BUSY",
                hint="`landlane queue run --drain` settles it",
            )
        rejection = Rejection(code="EJECTED", reason=f"{session.agent}: {why}", hint="")
        ended = reject_entry(repo, lease, landing_id, rejection, state=EJECTED)
        delete_entry_ref(repo, target, ended)
        return ended
    finally:
        if lease is not None:
            end_runner(repo, lease)


def _is_alive(repo: Repository, session_id: str) -> bool:
    session, now = repo.store.view(lambda snapshot: (find_session(snapshot, session_id), snapshot.now))
    return session is not None and session.is_alive(now)


def decide_held_entry(
    repo: Repository, session: Session, landing_id: str, *, is_approved: bool, head: str = "", why: str = ""
) -> Landing:
    """Let a person approve a held entry at its current head, or reject it.

    Raises:
        NotAllowed: it does not wait for a person, or the session has a role.
        Stale: its head differs from the one the person saw.
    """
    if session.role:
        raise forbidden(session.agent, session.role, "no role decides what waits for a person")
    held = get_landing(repo, landing_id)
    if held.state != HELD:
        raise NotAllowed(
            f"{landing_id} is {held.state}: it does not wait for a person",
            code="NOT_WAITING",
            hint="`landlane gate list` shows what does",
        )
    if head and not held.head.startswith(head):
        raise Stale(
            f"{landing_id} is at {held.head[:12]}, not at {head[:12]}",
            code="HEAD_MOVED",
            hint=f"look at the change again: git show {held.head[:12]}",
        )
    if not is_approved:
        return reject_entry(repo, None, landing_id, person_rejection(session.agent, why))

    def work(tx: Transaction) -> Landing:
        landing = lock_landing(tx, landing_id)
        if landing.state != HELD or landing.head != held.head:
            raise Stale(f"{landing_id} has changed meanwhile", code="HEAD_MOVED", hint="look at it again")
        landing = replace(
            landing, state=QUEUED, approved_by=session.agent, approved_head=landing.head, reason=""
        )
        records.put(tx, NOUN, as_dict(landing), "approved", session)
        if find_live_author(tx, landing) is not None:
            text = f"{session.agent} let {landing_id} ({landing.branch}) land: it is queued again"
            add_notice(tx, landing.session, text)
        tx.frees = True
        return landing

    return repo.change(work)
