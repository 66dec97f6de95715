"""Claim paths and save what a former holder left on them: the one way in which every entry point claims."""

from __future__ import annotations

from landlane.claims.model import Refused
from landlane.claims.take import list_lost_by_others, take
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.claims.model import Claim, Request, SavedWork, Taken
    from landlane.repository import Repository
    from landlane.sessions.model import Session


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
    if wait_ms > 0:
        from landlane.claims.wait import wait_for_claims  # noqa: PLC0415 - a hook never waits

        outcome = wait_for_claims(repo, session, request, wait_ms, on_wait, on_beat)
    else:
        outcome = take(repo, session, request)
    if isinstance(outcome, Refused):
        return outcome
    saved = save_former_work(repo, session, outcome.granted)
    return replace(outcome, saved=saved) if saved is not None else outcome


def save_former_work(repo: Repository, session: Session, granted: Sequence[Claim]) -> SavedWork | None:
    """Save changes that others left on paths when their lease expired, before this session changes them."""
    if not granted or not repo.checkout.common_dir:
        return None
    lost = repo.store.view(lambda snapshot: list_lost_by_others(snapshot, session.agent))
    if not lost:
        return None
    from landlane.claims.former_work import save_changes  # noqa: PLC0415 - few leases expire

    return save_changes(repo, session, granted, lost)
