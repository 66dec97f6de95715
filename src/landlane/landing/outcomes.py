"""End an entry of the landing queue, landed or rejected, and with it its claims and its task."""

from __future__ import annotations

import os

from landlane.claims.holder_sessions import drop_claims, give_claim
from landlane.claims.take import claims_near, claims_of
from landlane.errors import NotAllowed
from landlane.landing.model import (
    BOUNCED,
    EJECTED,
    LANDED,
    MAX_OUTPUT_CHARS,
    QUEUED,
    REJECTED,
    TESTING,
    Landing,
    LandingState,
    Rejection,
    is_landing_id,
    name_some,
)
from landlane.landing.records import lock_landing, lock_queue, put_landing, put_queue, read_landings
from landlane.landing.rejected_tasks import drop_fix_task, reopen_task, return_task
from landlane.sessions.client_sessions import list_live_links
from landlane.sessions.leases import end_session, lock_live_session
from landlane.sessions.notices import add_notice
from landlane.sessions.runner_lease import check_runner
from landlane.sessions.tool_calls import list_reads
from landlane.tasks.add import ADD_LOCK
from landlane.tasks.finish import finish_task
from landlane.tasks.model import LANDING, REPORTED
from landlane.tasks.records import lock_task
from landlane.values import as_dict, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from landlane.repository import Repository
    from landlane.sessions.model import Claim, Session
    from landlane.sessions.runner_lease import RunnerLease
    from landlane.store.interface import Transaction


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
    tested: str = "",
) -> list[Landing]:
    """Record that the target has moved and that these entries landed; end their claims and tasks.

    `tested` is the commit whose checks passed.

    A push that arrives late (`is_late`) can land an entry that was rejected or ejected meanwhile.

    Raises:
        Stale: another process runs the queue now.
    """

    def work(tx: Transaction) -> list[Landing]:
        check_runner(tx, lease)
        landed: list[Landing] = []
        submitted: dict[str, int] = {}  # when each entry got its claims, on the store's clock
        for entry in entries:
            before = lock_landing(tx, entry.id)
            if not before.state.can_become(LANDED) or not (is_late or before.state in (TESTING, QUEUED)):
                continue
            ended_at = repo.store.wall_of(tx.now)
            landing = before.become(LANDED, reason="", code="", ended_at=ended_at, **as_dict(entry))
            put_landing(tx, landing, "landed")
            given = [claim.granted_at for claim in claims_of(tx, landing.holder)]
            submitted |= {landing.id: max(given)} if given else {}
            _end_entry_session(tx, landing, landing.commit)
            drop_fix_task(tx, repo, landing)
            _finish_task(tx, repo, landing)
            landed.append(landing)
        _release_author_claims(tx, repo, landed, submitted)
        for landing in landed:  # after the release: authors whose own work landed need no notice
            _notify_affected_sessions(tx, repo, landing)
        queue = lock_queue(tx, target)
        queue = replace(queue, tip=tip, move={}, landed=queue.landed + len(landed))
        if tested:
            recheck_before = repo.store.wall_of(tx.now) if queue.failing else queue.recheck_before
            queue = replace(queue, passing=tested, failing={}, recheck_before=recheck_before)
        put_queue(tx, queue, "moved")
        tx.has_freed = True
        return landed

    return repo.change(work)


def _finish_task(tx: Transaction, repo: Repository, landing: Landing) -> None:
    task = lock_task(tx, landing.task) if landing.task else None
    if task is None or task.state not in (LANDING, REPORTED) or task.attempt != landing.attempt:
        return
    found = f"{landing.commit[:12]} on {landing.target}"
    evidence: list[dict[str, object]] = [{"name": "landed", "is_seen": True, "found": found, "hint": ""}]
    finish_task(tx, repo, task, None, head=landing.head, evidence=evidence)


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
                hint="see how it ended: landlane queue list --all",
            )
        is_moving = lease is None and lock_queue(tx, landing.target).is_moving(landing_id)
        if lease is None and (landing.state == TESTING or is_moving):
            raise NotAllowed(
                f"{landing_id} is being tested, or on its way onto {landing.target}",
                code="LANDING_BUSY",
                hint="wait for the verdict: landlane queue list",
            )
        author = find_live_author(tx, landing)
        output = rejection.output[-MAX_OUTPUT_CHARS:]
        task_id = ""
        if state == EJECTED:
            reopen_task(tx, landing, author, rejection.reason)
        else:
            task_id = return_task(tx, repo, landing, author, replace(rejection, output=output))
        landing = landing.become(
            state,
            reason=rejection.reason,
            code=rejection.code,
            output=output,
            pair=rejection.pair,
            pair_commit=rejection.pair_commit,
            checks=[as_dict(run) for run in rejection.checks] or landing.checks,
            advice=rejection.hint,
            bounce_task=task_id,
            ended_at=repo.store.wall_of(tx.now),
            base=base or landing.base,
        )
        _return_claims(tx, repo, landing, author)
        if author is not None and rejection.code == REJECTED:  # a person decided, maybe much later
            text = f"{landing_id} ({landing.branch}) will not land: {rejection.reason}. {rejection.hint}"
            add_notice(tx, author.id, text)
        put_landing(tx, landing, state)
        tx.has_freed = True
        return landing

    return repo.change(work, areas=ADD_LOCK)


def _end_entry_session(tx: Transaction, landing: Landing, commit: str) -> None:
    """Release the claims of an entry, and end its session."""
    holder = lock_live_session(tx, landing.holder)
    if holder is None:
        return
    drop_claims(tx, claims_of(tx, holder.id), commit)
    end_session(tx, holder, "session.left", {})


def _release_author_claims(
    tx: Transaction, repo: Repository, landed: Sequence[Landing], submitted: Mapping[str, int]
) -> None:
    """Release the authors' claims on paths that landed, unless another entry of theirs still needs them.

    What an author claimed or renewed after it submitted is for further work, and stays.
    """
    waiting = read_landings(tx) if landed else []
    for session in dict.fromkeys(landing.session for landing in landed):
        if lock_live_session(tx, session) is None:
            continue
        own = [landing for landing in landed if landing.session == session]
        tasks = {"", *(landing.task for landing in own)}
        claims = [claim for claim in claims_of(tx, session) if claim.task in tasks]
        needed = _tokens_used(repo, claims, [landing for landing in waiting if landing.session == session])
        for landing in own:
            earlier = [c for c in claims if c.granted_at <= submitted.get(landing.id, c.granted_at)]
            unneeded = _tokens_used(repo, earlier, [landing]) - needed
            drop_claims(tx, [claim for claim in earlier if claim.token in unneeded], landing.commit)


def _tokens_used(repo: Repository, claims: Sequence[Claim], landings: Sequence[Landing]) -> set[int]:
    """Return the tokens of the claims that cover a path of these entries."""
    used: set[int] = set()
    for path in dict.fromkeys(path for landing in landings for path in landing.paths):
        unused = [claim for claim in claims if claim.token not in used]
        if not unused:
            break
        pattern = repo.git.pattern_of(path, "literal")
        used |= {claim.token for claim in unused if claim.covers(pattern)}
    return used


def find_live_author(tx: Transaction, landing: Landing) -> Session | None:
    """Return the session that submitted an entry, if it is still alive."""
    author = lock_live_session(tx, landing.session)
    return author if author is not None and author.is_alive(tx.now) else None


def _return_claims(tx: Transaction, repo: Repository, landing: Landing, author: Session | None) -> None:
    """Return the claims of an ended entry to its author; release them if the author is gone."""
    if author is not None:
        held = {claim.pattern for claim in claims_of(tx, author.id)}
        for claim in claims_of(tx, landing.holder):
            if claim.pattern in held:
                continue
            drop_claims(tx, [claim])
            pattern = repo.git.pattern_of(claim.pattern, claim.kind)
            # Only for the lease that the author's session has anyway: it is renewed together with that.
            give_claim(tx, author, pattern, claim.mode, author.shortest_ms, task=landing.task)
    _end_entry_session(tx, landing, "")


def _notify_affected_sessions(tx: Transaction, repo: Repository, landing: Landing) -> None:
    """Notify every other session that holds or has read a path that a landing changed."""
    affected = _list_readers(tx, landing)
    for path in landing.paths:
        pattern = repo.git.pattern_of(path, "literal")
        for claim in claims_near(tx, pattern.alternatives, ""):
            is_own = claim.session in (landing.holder, landing.session) or is_landing_id(claim.agent)
            if not is_own and claim.overlaps(pattern) and not claim.is_over(tx.now):
                affected.setdefault(claim.session, []).append(path)
    for session, paths in affected.items():
        changed = name_some(list(dict.fromkeys(paths)))
        how = f"{landing.id} of {landing.agent} landed as {landing.commit[:12]}"
        add_notice(tx, session, f"{how} and changed {changed}: read it again")


def _list_readers(tx: Transaction, landing: Landing) -> dict[str, list[str]]:
    """Return the client sessions that have read a changed path, without the author's and its subagents'.

    The paths that were read are absolute: each parent folder may be the root of a checkout.
    """
    readers: dict[str, list[str]] = {}
    changed = set(landing.paths)
    for link in list_live_links(tx):
        if landing.session in (link.session, link.parent):
            continue
        for path in list_reads(tx, link.session):
            at = path.find("/", 1)
            while at > 0:
                if path[at + 1 :] in changed and _may_be_checkout(path[:at]):
                    readers.setdefault(link.session, []).append(path[at + 1 :])
                    break
                at = path.find("/", at + 1)
    return readers


def _may_be_checkout(folder: str) -> bool:
    """Return whether a folder is the root of a checkout, or is not on this machine."""
    return os.path.lexists(os.path.join(folder, ".git")) or not os.path.isdir(folder)
