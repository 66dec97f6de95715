"""Save changes that previous holders left on paths that were just claimed."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.claims.model import Claim
    from landlane.cli.command_call import CommandCall
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot


def save_former_work(call: CommandCall, session: Session, granted: tuple[Claim, ...]) -> dict[str, str]:
    """Save changes that holders of lapsed leases left on these paths; return fields for the answer."""
    repo = call.repo

    def has_lapsed(snapshot: Snapshot) -> bool:
        return snapshot.one("lapsed_of_others", agent=session.agent) is not None

    if not repo.checkout.common_dir or not repo.store.view(has_lapsed):
        return {}
    from landlane.claims.takeover import save_former_work as save  # noqa: PLC0415 - few leases run out

    taken = save(repo.require_git(), session, granted)
    if taken is None:
        return {}
    call.terminal.note(taken.note)
    return {"rescued": taken.rescue} if taken.rescue else {}
