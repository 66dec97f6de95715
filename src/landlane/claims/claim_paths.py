"""Claim paths and save what a former holder left on them: the one way in which every entry point claims."""

from __future__ import annotations

import time

from landlane.claims.agent_locks import find_agent_locks, refuse_locked
from landlane.claims.model import Refused, check_can_wait
from landlane.claims.take import list_lost_by_others, live_claims_of, take
from landlane.sessions.leases import touch
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.claims.model import Claim, Refusal, Request, SavedWork, Taken
    from landlane.repository import Repository
    from landlane.sessions.model import Session

_LOCK_SECONDS = 0.25  # between two looks for lock files, which notify no one


def claim_paths(
    repo: Repository,
    session: Session,
    request: Request,
    wait_ms: int = 0,
    on_wait: Callable[[Refused], None] | None = None,
    on_beat: Callable[[Refused], None] | None = None,
) -> Taken | Refused:
    """Take claims, waiting for them at most `wait_ms`; `Taken.saved` is what a former holder left on them.

    `on_wait` is called once if the claims are held, `on_beat` about every second of the wait.

    Raises:
        Malformed: a request for part of a set cannot wait.
        Stale: the session is over.
        NotAllowed: its role may not claim this.
    """
    locked = _find_locked(repo, session, request)
    if locked and wait_ms > 0:
        wait_ms, locked = _wait_for_locks(repo, session, request, wait_ms, on_wait, locked)
    free = [pattern for pattern in request.patterns if pattern.text not in locked]
    if locked and not (request.is_partial and free):
        code = "WAIT_TIMED_OUT" if wait_ms < 0 else "CLAIM_HELD"
        return Refused(refused=tuple(locked.values()), code=code, free=tuple(one.text for one in free))
    if locked:
        request = replace(request, patterns=tuple(free))
    if wait_ms > 0:
        from landlane.claims.wait import wait_for_claims  # noqa: PLC0415 - a hook never waits

        outcome = wait_for_claims(repo, session, request, wait_ms, on_wait, on_beat)
    else:
        outcome = take(repo, session, request)
    if locked:
        outcome = replace(outcome, refused=(*outcome.refused, *locked.values()))
    if isinstance(outcome, Refused):
        return outcome
    saved = save_former_work(repo, session, outcome.granted)
    return replace(outcome, saved=saved) if saved is not None else outcome


def _find_locked(repo: Repository, session: Session, request: Request) -> dict[str, Refusal]:
    """Return the patterns that lock files of others stand in the way of, without those held already."""
    locks = find_agent_locks(repo, request.patterns)
    if not locks:
        return {}
    mine = repo.store.view(lambda snapshot: live_claims_of(snapshot, session.id))
    wanted = [one for one in request.patterns if not any(claim.covers(one) for claim in mine)]
    refusals = ((pattern.text, refuse_locked(pattern, locks)) for pattern in wanted)
    return {text: refusal for text, refusal in refusals if refusal is not None}


def _wait_for_locks(
    repo: Repository,
    session: Session,
    request: Request,
    wait_ms: int,
    on_wait: Callable[[Refused], None] | None,
    locked: dict[str, Refusal],
) -> tuple[int, dict[str, Refusal]]:
    """Wait until the lock files are removed; return what is left of the time (below 0: nothing)."""
    check_can_wait(request)
    if on_wait is not None:
        on_wait(Refused(refused=tuple(locked.values())))
    give_up_at = time.monotonic() + wait_ms / 1000
    while locked and time.monotonic() < give_up_at:
        time.sleep(_LOCK_SECONDS)
        touch(repo.store, session)
        locked = _find_locked(repo, session, request)
    left = round((give_up_at - time.monotonic()) * 1000)
    return (-1 if locked else max(left, 0)), locked


def save_former_work(repo: Repository, session: Session, granted: Sequence[Claim]) -> SavedWork | None:
    """Save changes that others left on paths when their lease expired, before this session changes them."""
    if not granted or not repo.checkout.common_dir:
        return None
    lost = repo.store.view(lambda snapshot: list_lost_by_others(snapshot, session.agent))
    if not lost:
        return None
    from landlane.claims.former_work import save_changes  # noqa: PLC0415 - few leases expire

    return save_changes(repo, session, granted, lost)
