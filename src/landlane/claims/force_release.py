"""Release a claim of another session: only a person may."""

from __future__ import annotations

from landlane.errors import Malformed, NotAllowed, Stale
from landlane.ids import is_record_id
from landlane.roles.require_person import check_person
from landlane.sessions.leases import drop_claim, note_lost, require_live
from landlane.sessions.model import Claim
from landlane.sessions.notices import add_notice
from landlane.text import check_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction

_LONGEST_WHY = 2_000


def release_by_force(repo: Repository, person: Session, token: int, why: str) -> Claim:
    """Release the claim of another session; its holder is notified, and its late writes are refused.

    What the holder has changed stays in its checkout: the next holder's claim saves it, as after a lapse.
    Claims that wait for a landing, an answer or a review are released by deciding those.

    Raises:
        NotAllowed: the session is not a person's, or the claim waits for a decision.
        Malformed: there is no reason.
        Stale: the claim has ended.
    """
    check_person(person)
    if not why.strip():
        raise Malformed("a reason is missing", code="NO_REASON", hint="say why; the holder reads it")
    reason = check_text(why.strip(), "reason", _LONGEST_WHY)

    def work(tx: Transaction) -> Claim:
        require_live(tx, person)
        found = [claim for claim in Claim.from_rows(tx.all("claims_all")) if claim.token == token]
        if not found or found[0].is_over(tx.now):
            hint = "see who holds what: landlane claims"
            raise Stale("that claim has ended already", code="LEASE_OVER", hint=hint)
        claim = found[0]
        if is_record_id(claim.agent):
            raise NotAllowed(
                f"{claim.pattern} is held by {claim.agent} until that is decided",
                code="CLAIM_HELD",
                hint=f"landlane inbox {claim.agent}",
            )
        drop_claim(tx, claim.session, claim.token)
        note_lost(tx, claim.agent, claim, tx.now)
        facts = {"pattern": claim.pattern, "token": claim.token, "holder": claim.agent, "why": reason}
        tx.record("claim.released", person.agent, person.id, facts)
        add_notice(tx, claim.session, f'{person.agent} released your claim on {claim.pattern}: "{reason}"')
        tx.has_freed = True
        return claim

    return repo.change(work)
